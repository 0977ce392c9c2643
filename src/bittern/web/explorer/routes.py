"""The routes of a collection's views: its pages, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter
from starlette.responses import Response

from bittern.errors import InputError
from bittern.features.catalogue import BUILT_IN
from bittern.web.asked import Id
from bittern.web.explorer import (
    codes,
    compare,
    duplicates,
    plane,
    quality,
)
from bittern.web.explorer import search as searching
from bittern.web.explorer.asking import Asked, Uploads, asked
from bittern.web.explorer.contents import Contents
from bittern.web.explorer.jobs import Jobs
from bittern.web.explorer.pages import VIEWS, Job, Size, Skip, add_pages, add_progress
from bittern.web.images import Limits, read_own_image, thumbnail, whole
from bittern.web.source import CollectionSource, Source

MOST_IDS = 500  # items whose tiles are asked for at once
DECISIONS = TypeAdapter(dict[Id, str | None])
Query_ = Annotated[Asked, Depends(asked)]
Radius = Annotated[int | None, Query(ge=0)]


def collection_pages(
    source: Source | None, against: CollectionSource | None = None, limits: Limits | None = None
) -> APIRouter:
    """The five views of a collection; ``against`` is another one to compare it with."""
    if not isinstance(source, CollectionSource):
        raise InputError("explore: needs a collection that this process has open.")
    limits, jobs, contents = limits or Limits(), Jobs(), Contents(source)
    uploads = Uploads(contents, limits)
    other = None
    if against is not None:
        second = Contents(against, "/view/other")
        other = (second, Uploads(second, limits))
    router = APIRouter(include_in_schema=False)
    add_pages(router, VIEWS, Path(source.place).name)
    add_progress(router, jobs)
    _add_search(router, contents, uploads, other, jobs)
    _add_compare(router, contents, uploads, other, jobs)
    _add_quality(router, contents, jobs)
    _add_codes(router, contents, jobs)
    _add_duplicates(router, contents, jobs)
    return router


def _add_search(
    router: APIRouter,
    contents: Contents,
    uploads: Uploads,
    other: tuple[Contents, Uploads] | None,
    jobs: Jobs,
) -> None:
    @router.get("/view/info")
    def info() -> dict[str, Any]:
        return about(contents, None if other is None else other[0])

    @router.get("/view/rankings")
    def rankings() -> list[str]:
        return searching.rankings(contents)

    @router.get("/view/search")
    def search(
        query: Query_, radius: Radius = None, rank: str | None = None, job: Job = None
    ) -> dict[str, Any]:
        return jobs.run(
            job, lambda: searching.search(contents, query, uploads, radius, rank or None)
        )

    @router.get("/view/band")
    def band(query: Query_, distance: int, skip: Skip = 0, job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: searching.band(contents, query, uploads, distance, skip))

    @router.post("/view/image")
    async def upload(request: Request) -> dict[str, Any]:
        content = await request.body()
        found = await run_in_threadpool(uploads.add, content)
        if other is not None:
            await run_in_threadpool(_also, other[1], content)
        return found

    @router.get("/view/image/{name}")
    def uploaded(name: str) -> Response:
        found = uploads.get(name)
        if found is None:
            return Response(status_code=404)
        return Response(found[1], media_type="image/jpeg")

    @router.post("/view/tiles")
    def tiles(ids: Annotated[list[Id], Body(max_length=MOST_IDS)]) -> list[dict[str, Any]]:
        return contents.tiles(ids)

    @router.get("/view/values")
    def values(column: str) -> list[str]:
        return contents.values_of(column)


def _add_compare(
    router: APIRouter,
    contents: Contents,
    uploads: Uploads,
    other: tuple[Contents, Uploads] | None,
    jobs: Jobs,
) -> None:
    @router.get("/view/compare")
    def both(
        query: Query_, bits: Annotated[int | None, Query(ge=1)] = None, job: Job = None
    ) -> dict[str, Any]:
        sides = compare.sides_of(contents, uploads, other, bits)
        return jobs.run(job, lambda: compare.compare(sides, query))

    @router.get("/view/other/{id}/image")
    def image(id: Id, size: Annotated[int | None, Query(ge=16, le=1024)] = None) -> Response:
        if other is None:
            return Response(status_code=404)
        known = other[0].collection.get([id]).metadata[0]
        content = read_own_image(other[0].source, id, known)
        shown, kind = whole(content, id) if size is None else thumbnail(content, id, size)
        return Response(shown, media_type=kind)


def _add_quality(router: APIRouter, contents: Contents, jobs: Jobs) -> None:
    @router.get("/view/quality")
    def summary(job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: quality.summary(contents))

    @router.get("/view/quality/queries")
    def queries(
        low: float = 0.0,
        high: float = 1.0,
        label: int | None = None,
        skip: Skip = 0,
        n: Size = 8,
        job: Job = None,
    ) -> dict[str, Any]:
        return jobs.run(job, lambda: quality.queries(contents, low, high, label, skip, n))

    @router.get("/view/quality/query")
    def query(item: Id, radius: Radius = None, job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: quality.query(contents, item, radius))

    @router.get("/view/quality/confusion")
    def confusion(job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: quality.confusion(contents))

    @router.get("/view/quality/confused")
    def confused(
        of: int, taken_for: Annotated[int, Query(alias="as")], job: Job = None
    ) -> dict[str, Any]:
        return jobs.run(job, lambda: quality.confused(contents, of, taken_for))


def _add_codes(router: APIRouter, contents: Contents, jobs: Jobs) -> None:
    @router.get("/view/codes/bits")
    def bits(job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: codes.bits(contents))

    @router.get("/view/codes/bit/{number}")
    def bit(number: int, job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: codes.bit(contents, number))

    @router.get("/view/codes/buckets")
    def buckets(job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: codes.buckets(contents))

    @router.get("/view/codes/map")
    def about_map(x: str | None = None, y: str | None = None, job: Job = None) -> dict[str, Any]:
        return jobs.run(job, lambda: plane.about(contents, (x, y) if x and y else None))

    @router.get("/view/codes/points")
    def points(x: str | None = None, y: str | None = None, job: Job = None) -> Response:
        content = jobs.run(job, lambda: plane.points(contents, (x, y) if x and y else None))
        return Response(content, media_type="application/octet-stream")


def _add_duplicates(router: APIRouter, contents: Contents, jobs: Jobs) -> None:
    @router.get("/view/duplicates")
    def groups(
        radius: Radius = None, link: str = "complete", skip: Skip = 0, job: Job = None
    ) -> dict[str, Any]:
        linked: Any = link  # checked by the library
        return jobs.run(job, lambda: duplicates.groups(contents, radius, linked, skip))

    @router.post("/view/decisions")
    def decide(changes: Annotated[dict[Any, Any], Body(max_length=MOST_IDS)]) -> dict[str, int]:
        decided: Any = DECISIONS.validate_python(changes)  # checked by the library
        return {"n_decided": len(duplicates.decisions_of(contents).change(decided))}

    @router.get("/view/decisions.csv")
    def decided() -> Response:
        name = f"{Path(contents.source.place).stem}-decisions.csv".replace('"', "")
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        text = duplicates.decisions_of(contents).to_csv()
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def about(contents: Contents, other: Contents | None) -> dict[str, Any]:
    """What the pages need to know of the collection."""
    said = contents.collection.info()
    takes = _takes(contents, said)
    return {
        "kind": "collection",
        "title": Path(contents.source.place).name,
        "views": list(VIEWS),
        "n_items": len(contents.ids),
        "n_bits": contents.source.n_bits,
        "hasher": said.get("hasher"),
        "features": said.get("features"),
        "columns": contents.kinds,
        "takes_images": "images" in takes,
        "takes_texts": "texts" in takes,
        "is_crossmodal": contents.source.is_crossmodal,
        "first": contents.ids[contents.comparable[:1]].tolist(),
        "other": None if other is None else Path(other.source.place).name,
    }


def _takes(contents: Contents, said: dict[str, Any]) -> set[str]:
    """What can be searched for: images, texts or both; known features need not be loaded."""
    names = [said.get(part) for part in ("features", "texts")]
    if "features" in said and all(name is None or name in BUILT_IN for name in names):
        return {BUILT_IN[name][0] for name in names if name is not None}
    recipe = contents.source.recipe
    return {part.takes for part in (recipe.features, recipe.texts) if part is not None}


def _also(uploads: Uploads, content: bytes) -> None:
    """Encode an image for the other collection too, if it takes images."""
    from bittern.errors import BitternError

    try:
        uploads.add(content)
    except BitternError:  # the compare view says so when it is asked
        return
