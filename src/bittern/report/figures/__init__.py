"""The figures of the page by name, and as SVG files for papers and slides."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bittern.analysis import Analysis, analyse
from bittern.errors import InputError
from bittern.experiments.records import Records
from bittern.io.files import make_folder, write_text
from bittern.registry import Registry
from bittern.report.charts import Figure
from bittern.report.figures.quality import (
    areas_figure,
    bits_figure,
    costs_figure,
    methods_figure,
    parameter_figure,
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


FIGURES: Registry[FigureKind] = Registry(
    "figure",
    {
        "bits": FigureKind(bits_figure, "bits", "Code length"),
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
    },
)


def to_svg(records: Records | Analysis, figure: str) -> str | None:
    """A figure as the text of an SVG file; None if the records have no data for it."""
    analysis = analyse(records)
    drawn = FIGURES[figure].draw(analysis) if len(analysis) else None
    return None if drawn is None else drawn.to_svg()


def write_figures(records: Records | Analysis, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure that the records have data for as ``NAME.svg``; return the paths."""
    analysis = analyse(records)
    if not len(analysis):
        raise InputError("report: there are no records yet; make them with `bittern run`.")
    place = make_folder(Path(folder))
    written = []
    for name in FIGURES:
        content = to_svg(analysis, name)
        if content is not None:
            write_text(place / f"{name}.svg", content)
            written.append(place / f"{name}.svg")
    return written


def __getattr__(name: str) -> Any:
    if name.startswith("draw_"):  # report.plots was here once
        from bittern.report import plots

        return getattr(plots, name)
    raise AttributeError(f"module 'bittern.report.figures' has no attribute {name!r}")
