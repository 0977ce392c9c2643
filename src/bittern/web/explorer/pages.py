"""What the pages of a collection and of an experiment share: their frame, and progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, RedirectResponse, Response

import bittern
from bittern.report.charts import chart_style
from bittern.web.explorer.jobs import Jobs

if TYPE_CHECKING:
    from jinja2 import Environment

VIEWS = {
    "search": "Search",
    "compare": "Compare",
    "quality": "Quality",
    "codes": "Codes",
    "duplicates": "Duplicates",
}
Job = Annotated[str | None, Query(max_length=64)]
Skip = Annotated[int, Query(ge=0)]
Size = Annotated[int, Query(ge=1, le=50)]


def add_pages(router: APIRouter, views: dict[str, str], name: str) -> None:
    """A page for each view, with the name of what is shown."""
    first = next(iter(views))

    @router.get("/")
    def start() -> Response:
        return RedirectResponse(f"/{first}", 307)

    for view in views:
        router.add_api_route(f"/{view}", _page_of(view, views, name), methods=["GET"])

    @router.get("/chart.css")
    def charts() -> Response:
        return Response(chart_style(), media_type="text/css")


def _page_of(view: str, views: dict[str, str], name: str) -> Callable[[], Response]:
    """The answer with a view's page; it reads no parameter, because the page itself does."""

    def page() -> Response:
        template = environment().get_template("explorer.html")
        values = {"view": view, "views": views, "name": name, "version": bittern.__version__}
        return HTMLResponse(template.render(values))

    return page


def add_progress(router: APIRouter, jobs: Jobs) -> None:
    """How far a job is."""

    @router.get("/view/progress")
    async def progress(job: Annotated[str, Query(max_length=64)]) -> dict[str, Any]:
        return jobs.progress(job)


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
