"""The figures of the page by name, and as SVG files for papers and slides."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bittern.analysis import Analysis, analyse
from bittern.errors import InputError
from bittern.experiments.records import Records
from bittern.io.files import make_folder, write_text
from bittern.registry import Registry
from bittern.report.charts import Figure
from bittern.report.figures.learning import search_figure, training_figure
from bittern.report.figures.quality import (
    areas_figure,
    bits_figure,
    costs_figure,
    methods_figure,
    parameter_figure,
    tasks_figure,
)
from bittern.report.figures.retrieval import (
    boxes_figure,
    classes_figure,
    curves_figure,
    tables_figure,
    ties_figure,
)

__all__ = ["FIGURES", "FigureKind", "to_svg", "write_figures"]


@dataclass(frozen=True, slots=True)
class FigureKind:
    """How to draw a figure, and the section of the page that holds it."""

    draw: Callable[[Analysis], Figure | None]
    anchor: str
    name: str  # in the page's contents
    needs_cells: bool = True  # otherwise, trials of a search are enough

    def of(self, analysis: Analysis) -> Figure | None:
        """The figure; None if the records have no data for it."""
        return self.draw(analysis) if len(analysis) or not self.needs_cells else None

    def each(self, analysis: Analysis) -> dict[str, Figure]:
        """The figure; if only single tasks have it, that of each main task.

        The keys are what to add to the name of its file.
        """
        if (figure := self.of(analysis)) is not None:
            return {"": figure}
        found = {task: self.of(one) for task, one in analysis.main_tasks.items()}
        return {
            f"-{task.query}-{task.found}": replace(one, title=f"{one.title}: {task.name}")
            for task, one in found.items()
            if one is not None
        }


FIGURES: Registry[FigureKind] = Registry(
    "figure",
    {
        "bits": FigureKind(bits_figure, "bits", "Code length"),
        "tasks": FigureKind(tasks_figure, "tasks", "Directions and settings"),
        "methods": FigureKind(methods_figure, "methods", "Methods"),
        "parameter": FigureKind(parameter_figure, "sweep", "Parameter"),
        "curves": FigureKind(
            lambda analysis: curves_figure(analysis, "micro"), "curves", "Precision and recall"
        ),
        "curves-interpolated": FigureKind(
            lambda analysis: curves_figure(analysis, "interpolated"),
            "curves",
            "Precision and recall",
        ),
        "ties": FigureKind(ties_figure, "ties", "Ties"),
        "ties-boxes": FigureKind(boxes_figure, "ties", "Ties"),
        "costs": FigureKind(costs_figure, "costs", "Time and memory"),
        "classes": FigureKind(classes_figure, "classes", "Classes"),
        "tables": FigureKind(tables_figure, "surface", "Hash tables"),
        "areas": FigureKind(areas_figure, "areas", "AUPRC and mAP"),
        "search": FigureKind(
            lambda analysis: search_figure(analysis) if analysis.searches else None,
            "search",
            "Search",
            needs_cells=False,
        ),
        "training": FigureKind(
            lambda analysis: training_figure(analysis) if analysis.trainings else None,
            "training",
            "Training",
            needs_cells=False,
        ),
    },
)


def to_svg(records: Records | Analysis, figure: str) -> str | None:
    """A figure as the text of an SVG file; None if the records have no data for it."""
    analysis = analyse(records)
    drawn = FIGURES[figure].of(analysis)
    return None if drawn is None else drawn.to_svg()


def write_figures(records: Records | Analysis, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure that the records have data for as ``NAME.svg``; return the paths."""
    analysis = analyse(records)
    if not len(analysis) and not analysis.searches:
        raise InputError("report: there are no records yet; make them with `bittern run`.")
    place = make_folder(Path(folder))
    written = []
    for name, kind in FIGURES.items():
        for ending, figure in kind.each(analysis).items():
            path = place / f"{name}{ending}.svg"
            write_text(path, figure.to_svg())
            written.append(path)
    return written


def __getattr__(name: str) -> Any:
    if name.startswith("draw_"):  # report.plots was here once
        from bittern.report import plots

        return getattr(plots, name)
    raise AttributeError(f"module 'bittern.report.figures' has no attribute {name!r}")
