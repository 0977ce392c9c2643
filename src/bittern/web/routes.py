"""The service: search, items, images, add, delete, health."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from bittern.web import answers, bodies, images
from bittern.web.asked import MOST_K, Add, Delete, Id, Search
from bittern.web.documented import ADDED, DELETED, ERRORS, ITEM, ITEMS, RESULTS, body_of
from bittern.web.images import MOST_THUMBNAIL, THUMBNAIL, Limits
from bittern.web.searching import checked_condition, encode, find, most_similar, only
from bittern.web.source import Source
from bittern.web.writing import add_items, check_writable

QUICK_K = 1000
PRIVATE = {"Cache-Control": "private, no-cache"}


def routes(source: Source, limits: Limits) -> APIRouter:
    """The routes of the service over one collection."""
    router = APIRouter(responses=ERRORS)
    _add_reading(router, source, limits)
    _add_items(router, source)
    _add_writing(router, source, limits)
    return router


def _add_reading(router: APIRouter, source: Source, limits: Limits) -> None:
    @router.post("/search", openapi_extra=body_of(Search, "query", "image"), responses=RESULTS)
    async def search(request: Request) -> Response:
        """Search by vectors, codes, an image, an item, a text, or examples for and against."""
        asked, uploads = await bodies.read(request, Search, "query", "image")
        now = source.now()
        if now.is_quick and _is_plain(asked):
            text = _answer(now, asked, uploads, limits)
        else:
            text = await run_in_threadpool(_answer, now, asked, uploads, limits)
        return _json(text)

    @router.get("/health")
    async def health() -> dict[str, Any]:
        """Whether the server answers, and what it serves."""
        now = source.now()
        return {"status": "ok", "items": now.count(), "n_bits": now.n_bits}

    @router.get("/info")
    def info() -> dict[str, Any]:
        """The collection: its size, hasher, features and metadata."""
        return source.now().info()


def _add_items(router: APIRouter, source: Source) -> None:
    @router.get("/items", responses=ITEMS)
    def items(
        start: Annotated[int, Query(ge=0)] = 0,
        size: Annotated[int, Query(ge=1, le=MOST_K)] = 100,
        where: Annotated[str | None, Query(max_length=10_000)] = None,
    ) -> Response:
        """Items in the order of adding, those that meet a condition or all."""
        now = source.now()
        rows, total = now.page(start, size, checked_condition(where))
        return _json(answers.page(rows, start, total))

    @router.get("/items/{id}", responses=ITEM)
    def item(id: Id) -> Response:
        """One item: its code and its metadata."""
        return _json(answers.item(source.now().get(np.array([id], np.int64)), 0))

    @router.get("/items/{id}/image", response_class=Response)
    def image(
        request: Request,
        id: Id,
        size: Annotated[int | None, Query(ge=16, le=MOST_THUMBNAIL)] = None,
        thumbnail: bool = False,
    ) -> Response:
        """The image of an item, whole, or as a thumbnail of ``size`` pixels."""
        now = source.now()
        known = now.get(np.array([id], np.int64)).known(0)
        content = images.read_own_image(now, id, known)
        side = size or (THUMBNAIL if thumbnail else None)
        mark = f'"{hashlib.sha256(content).hexdigest()[:32]}-{side or 0}"'
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers={"ETag": mark, **PRIVATE})
        if side is None:
            shown, kind = images.whole(content, id)
        else:
            shown, kind = images.thumbnail(content, id, side)
        return Response(shown, media_type=kind, headers={"ETag": mark, **PRIVATE})


def _add_writing(router: APIRouter, source: Source, limits: Limits) -> None:
    @router.post("/add", openapi_extra=body_of(Add, "items", "images"), responses=ADDED)
    async def add(request: Request) -> dict[str, Any]:
        """Add images, vectors or codes; they are stored and found when the answer arrives."""
        asked, uploads = await bodies.read(request, Add, "items", "images")
        ids = await run_in_threadpool(add_items, source, asked, uploads, limits)
        return {"ids": ids.tolist()}

    @router.post("/delete", openapi_extra=body_of(Delete), responses=DELETED)
    async def delete(request: Request) -> dict[str, int]:
        """Delete items by ids, all or none, or by a condition."""
        asked = await bodies.read_json(request, Delete)
        check_writable(source)
        ids = None if asked.ids is None else np.unique(np.array(asked.ids, np.int64))
        n = await run_in_threadpool(source.delete, ids, checked_condition(asked.where))
        return {"deleted": n}


def _is_plain(asked: Search) -> bool:
    """Whether a search takes a millisecond: by codes, and without much to find or to ask."""
    by_code = asked.codes is not None or asked.id is not None
    few = asked.radius is None and (asked.k or 0) <= QUICK_K and len(asked.codes or ()) <= 1
    return by_code and few and not (asked.where or asked.to or asked.rerank or asked.histogram)


def _answer(source: Source, asked: Search, uploads: list[bytes], limits: Limits) -> bytes:
    where = only(source, asked.to, asked.where)
    if asked.like is not None:
        return answers.results(source, [most_similar(source, asked, where, limits)], asked.metadata)
    query = encode(source, asked, uploads, limits)
    found = find(source, query, asked, where)
    histograms = None
    if asked.histogram:
        n = len(query.codes)
        histograms = [source.histogram(query.codes[q : q + 1], where) for q in range(n)]
    return answers.results(source, found, asked.metadata, histograms)


def _json(text: bytes) -> Response:
    return Response(text, media_type="application/json")
