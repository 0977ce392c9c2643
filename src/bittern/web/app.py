"""The application: the service, and with ``pages`` the explorer, behind one guard."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

import bittern
from bittern.web import failures
from bittern.web.guard import LOOPBACK, Guard
from bittern.web.images import Limits
from bittern.web.metrics import Measured, Metrics
from bittern.web.metrics import routes as metrics_routes
from bittern.web.refusal import Refusal
from bittern.web.routes import routes
from bittern.web.source import Source

STATIC = Path(__file__).parent / "static"


def create_app(
    source: Source,
    *,
    pages: bool = False,
    token: str | None = None,
    hosts: Collection[str] | None = LOOPBACK,
    limits: Limits | None = None,
    metrics: Metrics | None = None,
) -> FastAPI:
    """The application over one collection.

    ``pages`` adds the explorer.  ``token``, if given, must come with every request.  ``hosts`` are
    the names by which the server may be addressed; None allows all, and needs a token.
    ``limits`` are those of uploads.  ``metrics`` are by default those of this process alone.
    """
    limits = limits or Limits()
    if hosts is None and not token:
        raise Refusal(500, "create_app: hosts=None needs a token.")
    app = FastAPI(
        title="Bittern",
        version=bittern.__version__,
        description="Search in a collection of binary codes; distances come with their ties.",
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
    )
    failures.install(app)
    metrics = metrics or Metrics.alone()
    app.include_router(routes(source, limits))
    app.include_router(metrics_routes(source, metrics))
    if pages:
        explorer = import_module("bittern.web.explorer")
        app.include_router(explorer.routes(source))
        app.mount("/static", StaticFiles(directory=STATIC), name="static")
    # The last one added is the first to see a request.
    app.add_middleware(Guard, hosts=hosts, token=token, most_bytes=limits.n_bytes)
    app.add_middleware(Measured, metrics=metrics)
    return app
