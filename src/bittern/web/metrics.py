"""Metrics of all workers: counts in a file that they map, added up in Prometheus's text form."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from starlette.responses import Response

from bittern.web.guard import App, Receive, Scope, Send
from bittern.web.source import Source

# fmt: off
ROUTES = (
    "/search", "/items", "/items/{id}", "/items/{id}/image", "/add", "/delete", "/info",
    "/health", "/metrics", "/openapi.json", "other",
)
STATUSES = (200, 303, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 500, 503, 0)
BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, float("inf"),
)
# fmt: on
WIDTH = len(STATUSES) + len(BUCKETS) + 1  # of a route: requests, durations, their sum
KIND = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of requests by route, status and duration, one part for each worker.

    A worker that is started again continues the counts of the one that it replaces.
    """

    def __init__(self, counts: NDArray[np.float64], worker: int = 0) -> None:
        self._counts, self._own = counts, counts[worker]

    @classmethod
    def alone(cls) -> Metrics:
        """For one process."""
        return cls(np.zeros((1, len(ROUTES), WIDTH)))

    @classmethod
    def shared(cls, path: Path, worker: int) -> Metrics:
        """In a file that :func:`create` made."""
        shape = -1, len(ROUTES), WIDTH
        return cls(np.memmap(path, np.float64, "r+").reshape(shape), worker)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        row = self._own[ROUTES.index(route) if route in ROUTES else -1]
        row[STATUSES.index(status) if status in STATUSES else -1] += 1
        row[len(STATUSES) + int(np.searchsorted(BUCKETS, seconds))] += 1
        row[-1] += seconds

    def text(self, n_items: int) -> str:
        """All counts, in Prometheus's text form."""
        return "\n".join([*self._lines(n_items), ""])

    def _lines(self, n_items: int) -> Iterator[str]:
        total = self._counts.sum(axis=0)
        statuses, buckets = total[:, : len(STATUSES)], total[:, len(STATUSES) : -1].cumsum(axis=1)
        yield "# HELP bittern_items Items of the collection."
        yield "# TYPE bittern_items gauge"
        yield f"bittern_items {n_items}"
        yield "# HELP bittern_requests_total Requests by route and status."
        yield "# TYPE bittern_requests_total counter"
        for r, s in zip(*np.nonzero(statuses), strict=True):
            status = STATUSES[s] or "other"
            labels = f'route="{ROUTES[r]}",status="{status}"'
            yield f"bittern_requests_total{{{labels}}} {statuses[r, s]:.0f}"
        yield "# HELP bittern_errors_total Requests that the server could not answer (5xx)."
        yield "# TYPE bittern_errors_total counter"
        yield f"bittern_errors_total {statuses[:, _is_error()].sum():.0f}"
        yield "# HELP bittern_request_seconds Time from the request to the end of the answer."
        yield "# TYPE bittern_request_seconds histogram"
        for r in np.flatnonzero(buckets[:, -1]):
            label = f'route="{ROUTES[r]}"'
            for bound, n in zip(BUCKETS, buckets[r], strict=True):
                most = "+Inf" if np.isinf(bound) else f"{bound:g}"
                yield f'bittern_request_seconds_bucket{{{label},le="{most}"}} {n:.0f}'
            yield f"bittern_request_seconds_sum{{{label}}} {total[r, -1]:.6f}"
            yield f"bittern_request_seconds_count{{{label}}} {buckets[r, -1]:.0f}"


class Measured:
    """An application whose requests are counted."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it when it is answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, begin = 500, time.perf_counter()

        async def sent(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(route, status, time.perf_counter() - begin)


def create(path: Path, n_workers: int) -> None:
    """Make the file of counts, with zeros."""
    path.write_bytes(bytes(8 * n_workers * len(ROUTES) * WIDTH))


def routes(source: Source, metrics: Metrics) -> APIRouter:
    """The route of the metrics."""
    router = APIRouter()

    @router.get("/metrics", response_class=Response)
    async def show() -> Response:
        """Requests, durations, items and errors, in Prometheus's text form."""
        return Response(metrics.text(source.now().count()), headers={"Content-Type": KIND})

    return router


def _is_error() -> NDArray[np.bool_]:
    return np.array(STATUSES) >= 500
