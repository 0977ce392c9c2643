"""The routes of an experiment's views."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from bittern.web.explorer import experiment_compare, experiment_quality
from bittern.web.explorer.experiment import Experiment
from bittern.web.explorer.jobs import Jobs
from bittern.web.explorer.pages import VIEWS, Job, Size, Skip, add_pages, add_progress


def experiment_pages(found: Experiment) -> APIRouter:
    """The views of an experiment: its quality, and two of its methods or lengths compared."""
    router, jobs = APIRouter(include_in_schema=False), Jobs()
    views = ("quality", "compare")
    add_pages(router, {name: VIEWS[name] for name in views}, found.title)
    add_progress(router, jobs)

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

    _add_quality(router, found, jobs)
    _add_compare(router, found, jobs)
    return router


def _add_quality(router: APIRouter, found: Experiment, jobs: Jobs) -> None:
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


def _add_compare(router: APIRouter, found: Experiment, jobs: Jobs) -> None:
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
