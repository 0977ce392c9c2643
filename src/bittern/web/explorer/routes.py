"""The routes of the explorer: its pages, and what they ask for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

import bittern
from bittern.errors import InputError
from bittern.report.charts import chart_style
from bittern.web.explorer import (
    codes,
    compare,
    duplicates,
    experiment_compare,
    experiment_quality,
    plane,
    quality,
)
from bittern.web.explorer import search as searching
from bittern.web.explorer.asking import Asked, Uploads, asked
from bittern.web.explorer.contents import Contents
from bittern.web.explorer.experiment import Experiment
from bittern.web.explorer.jobs import Jobs
from bittern.web.images import Limits, read_own_image, thumbnail, whole
from bittern.web.source import CollectionSource, Source

if TYPE_CHECKING:
    from jinja2 import Environment

VIEWS = {
    "search": "Search",
    "compare": "Compare",
    "quality": "Quality",
    "codes": "Codes",
    "duplicates": "Duplicates",
}
MOST_IDS = 500  # items whose tiles are asked for at once
Query_ = Annotated[Asked, Depends(asked)]
Job = Annotated[str | None, Query(max_length=64)]
Skip = Annotated[int, Query(ge=0)]
Radius = Annotated[int | None, Query(ge=0)]
Size = Annotated[int, Query(ge=1, le=50)]


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
    _add_pages(router, VIEWS, Path(source.place).name)
    _add_progress(router, jobs)
    _add_search(router, contents, uploads, other, jobs)
    _add_compare(router, contents, uploads, other, jobs)
    _add_quality(router, contents, jobs)
    _add_codes(router, contents, jobs)
    _add_duplicates(router, contents, jobs)
    return router


def experiment_pages(found: Experiment) -> APIRouter:
    """The views of an experiment: its quality, and two of its methods or lengths compared."""
    router, jobs = APIRouter(include_in_schema=False), Jobs()
    views = ("quality", "compare")
    _add_pages(router, {name: VIEWS[name] for name in views}, found.title)
    _add_progress(router, jobs)

    @router.get("/view/info")
    def info() -> dict[str, Any]:
        return {
            "kind": "experiment",
            "title": found.title,
            "views": list(views),
            "cells": found.cells,
            "tasks": found.task_names,
        }

    @router.get("/view/experiment/images/{position}")
    def image(position: int) -> Response:
        return Response(found.items.image(position), media_type="image/png")

    _add_experiment_quality(router, found, jobs)
    _add_experiment_compare(router, found, jobs)
    return router


def _add_experiment_quality(router: APIRouter, found: Experiment, jobs: Jobs) -> None:
    @router.get("/view/quality")
    def summary(
        cell: int | None = None, task: str | None = None, job: Job = None
    ) -> dict[str, Any]:
        return jobs.run(job, lambda: experiment_quality.summary(found.of_task(task), cell))

    @router.get("/view/quality/queries")
    def queries(
        cell: int | None = None,
        task: str | None = None,
        low: float = 0.0,
        high: float = 1.0,
        skip: Skip = 0,
        n: Size = 8,
        job: Job = None,
    ) -> dict[str, Any]:
        return jobs.run(
            job,
            lambda: experiment_quality.queries(found.of_task(task), cell, low, high, skip, n),
        )

    @router.get("/view/quality/query")
    def query(
        item: int, cell: int | None = None, task: str | None = None, job: Job = None
    ) -> dict[str, Any]:
        return jobs.run(job, lambda: experiment_quality.query(found.of_task(task), cell, item))

    @router.get("/view/quality/confusion")
    def confusion(
        cell: int | None = None, task: str | None = None, job: Job = None
    ) -> dict[str, Any]:
        return jobs.run(job, lambda: experiment_quality.confusion(found.of_task(task), cell))

    @router.get("/view/quality/confused")
    def confused(
        of: int,
        taken_for: Annotated[int, Query(alias="as")],
        cell: int | None = None,
        task: str | None = None,
        job: Job = None,
    ) -> dict[str, Any]:
        return jobs.run(
            job, lambda: experiment_quality.confused(found.of_task(task), cell, of, taken_for)
        )


def _add_experiment_compare(router: APIRouter, found: Experiment, jobs: Jobs) -> None:
    @router.get("/view/compare")
    def both(
        first: int | None = None,
        second: int | None = None,
        task: str | None = None,
        job: Job = None,
    ) -> dict[str, Any]:
        return jobs.run(job, lambda: experiment_compare.summary(found.of_task(task), first, second))

    @router.get("/view/compare/queries")
    def queries(
        first: int | None = None,
        second: int | None = None,
        task: str | None = None,
        better: str | None = None,
        item: int | None = None,
        skip: Skip = 0,
        n: Size = 4,
        job: Job = None,
    ) -> dict[str, Any]:
        asked = (first, second, better, item, skip, n)
        return jobs.run(job, lambda: experiment_compare.queries(found.of_task(task), *asked))


def _add_pages(router: APIRouter, views: dict[str, str], name: str) -> None:
    first = next(iter(views))

    @router.get("/")
    def start() -> Response:
        return RedirectResponse(f"/{first}", 307)

    for view in views:

        def page(view: str = view) -> Response:
            text = (
                environment()
                .get_template("explorer.html")
                .render(view=view, views=views, name=name, version=bittern.__version__)
            )
            return HTMLResponse(text)

        router.add_api_route(f"/{view}", page, methods=["GET"])

    @router.get("/chart.css")
    def charts() -> Response:
        return Response(chart_style(), media_type="text/css")


def _add_progress(router: APIRouter, jobs: Jobs) -> None:
    @router.get("/view/progress")
    async def progress(job: Annotated[str, Query(max_length=64)]) -> dict[str, Any]:
        return jobs.progress(job)


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
    def tiles(ids: Annotated[list[int], Body(max_length=MOST_IDS)]) -> list[dict[str, Any]]:
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
    def image(id: int, size: Annotated[int | None, Query(ge=16, le=1024)] = None) -> Response:
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
    def query(item: int, radius: Radius = None, job: Job = None) -> dict[str, Any]:
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
    def decide(changes: Annotated[dict[int, str | None], Body()]) -> dict[str, int]:
        checked: Any = changes  # checked by the library
        return {"n_decided": len(duplicates.decisions_of(contents).change(checked))}

    @router.get("/view/decisions.csv")
    def decided() -> Response:
        name = f"{Path(contents.source.place).stem}-decisions.csv".replace('"', "")
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        text = duplicates.decisions_of(contents).to_csv()
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def about(contents: Contents, other: Contents | None) -> dict[str, Any]:
    """What the pages need to know of the collection."""
    recipe, said = contents.source.recipe, contents.collection.info()
    features = recipe.features
    return {
        "kind": "collection",
        "title": Path(contents.source.place).name,
        "views": list(VIEWS),
        "n_items": len(contents.ids),
        "n_bits": contents.source.n_bits,
        "hasher": said.get("hasher"),
        "features": said.get("features"),
        "columns": contents.kinds,
        "takes_images": features is not None and features.takes == "images",
        "takes_texts": recipe.texts is not None
        or (features is not None and features.takes == "texts"),
        "is_crossmodal": contents.source.is_crossmodal,
        "rankings": searching.rankings(contents),
        "first": contents.ids[contents.comparable[:1]].tolist(),
        "other": None if other is None else Path(other.source.place).name,
    }


def _also(uploads: Uploads, content: bytes) -> None:
    """Encode an image for the other collection too, if it takes images."""
    from bittern.errors import BitternError

    try:
        uploads.add(content)
    except BitternError:  # the compare view says so when it is asked
        return


@cache
def environment() -> Environment:
    """The templates of the pages, which escape what they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("bittern.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
