"""Figures of what is retrieved: precision and recall, classes, and hash tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bittern.analysis import Analysis, ClassMeans
from bittern.analysis.curves import Surface
from bittern.metrics import Curve
from bittern.report.charts import (
    UNIT,
    Figure,
    Frame,
    Panel,
    Scale,
    heat_map,
    line,
    linear,
    ordinal,
    points,
    row_rules,
    shortened,
)
from bittern.report.figures.quality import method_styles
from bittern.report.results_table import bits_of, number

CURVES = {
    "micro": (
        "Over radius",
        "All items within each radius are retrieved, and counts are summed over queries first; "
        "each point is a radius, the smallest at the left. Mean over runs.",
    ),
    "interpolated": (
        "Interpolated",
        "Precision of each query at recall 0, 0.1, …, 1, averaged over the queries that have "
        "relevant items. Mean over runs.",
    ),
}
MOST_MARKS = 40  # points of a line that are marked
CLASS_ROW, HEAT_ROW = 20, 30  # pixels


def curves_figure(analysis: Analysis, kind: str) -> Figure | None:
    """Precision-recall curves of a kind, a panel per length; None if no method has any."""
    curves = {
        n_bits: {
            method: curve
            for method in analysis.methods
            if (curve := analysis.curve(method, n_bits, kind)) is not None
        }
        for n_bits in analysis.columns
    }
    shown = {method for found in curves.values() for method in found}
    if not shown:
        return None
    title, caption = CURVES[kind]
    styles = {m: style for m, style in method_styles(analysis).items() if m in shown}
    panels = [_curves_panel(analysis, n, found, title) for n, found in curves.items() if found]
    return Figure(panels, styles, "Precision and recall", [caption], title)


def classes_figure(analysis: Analysis) -> Figure | None:
    """The main metric of each class, a panel per length; None without classes."""
    found = analysis.classes
    if not found:
        return None
    values = [v for one in found for means in (one.means or {}).values() for v in means]
    scale = linear(values, n_ticks=4)
    classes = found[-1].easiest_first
    panels = [_classes_panel(analysis, one, classes, scale) for one in found]
    caption = (
        f"Mean {analysis.main_metric} over the queries of each class in all runs; the class with "
        f"the highest mean at {bits_of(found[-1].n_bits)} is on top."
    )
    return Figure(panels, method_styles(analysis), "By class", [caption], has_lines=False)


def tables_figure(analysis: Analysis) -> Figure | None:
    """A heat map of the F1 of hash tables per method and length; None without hash tables."""
    found = [
        (method, n_bits, surface)
        for method in analysis.coded
        for n_bits in analysis.lengths
        if (surface := analysis.surface(method, n_bits)) is not None
    ]
    if not found:
        return None
    largest = max(float(np.nanmax(s.f1, initial=0.0)) for *_, s in found)
    caption = (
        "F1 of the items that share a bucket with the query, counts summed over queries first, "
        "for L tables of K bits; mean over runs. Blank where a code is shorter than K × L bits. "
        "All maps share one scale of shades; tooltips show precision and recall."
    )
    panels = [_heat_panel(*one, largest) for one in found]
    return Figure(panels, {}, "Hash tables", [caption])


def _curves_panel(
    analysis: Analysis, n_bits: int | None, curves: dict[str, Curve], title: str
) -> Panel:
    heading = "" if n_bits is None else bits_of(n_bits)
    frame = Frame(UNIT, UNIT, "recall", "precision", heading, height=290)
    styles = method_styles(analysis)
    drawn = []
    for method, curve in curves.items():
        at = list(zip(curve.recall.tolist(), curve.precision.tolist(), strict=True))
        drawn.append(line(frame, at, styles[method]))
        if len(at) <= MOST_MARKS and method in analysis.coded:
            drawn.append(points(frame, at, styles[method], size=2.6))
    methods = ", ".join(curves)
    label = f"Precision against recall, {title.lower()}, {bits_of(n_bits)}: {methods}."
    return frame.draw(label, *drawn)


def _classes_panel(
    analysis: Analysis, found: ClassMeans, classes: Sequence[int], scale: Scale
) -> Panel:
    rows = list(reversed(classes))
    names = [analysis.class_name(one) for one in rows]
    frame = Frame(
        scale,
        ordinal(names),
        found.metric,
        "class",
        bits_of(found.n_bits),
        height=CLASS_ROW * len(rows) + 78,
    )
    styles = method_styles(analysis)
    drawn = [row_rules(frame)]
    for method, means in (found.means or {}).items():
        at = [
            (value, float(rows.index(one)))
            for one, value in zip(found.classes, means, strict=True)
            if one in rows
        ]
        titles = [f"{method}, {names[int(y)]}: {number(x)}" for x, y in at]
        drawn.append(points(frame, at, styles[method], titles, size=3.6))
    label = f"{found.metric} of each class at {bits_of(found.n_bits)}; the table below has numbers."
    return frame.draw(label, *drawn)


def _heat_panel(method: str, n_bits: int, surface: Surface, largest: float) -> Panel:
    rows, columns = ([str(n) for n in side] for side in (surface.bits_per_table, surface.n_tables))
    titles = [
        [
            f"K = {k}, L = {n}: F1 {number(surface.f1[i, j])}, "
            f"precision {number(surface.precision[i, j])}, recall {number(surface.recall[i, j])}"
            for j, n in enumerate(columns)
        ]
        for i, k in enumerate(rows)
    ]
    frame = Frame(
        ordinal(columns),
        ordinal(rows),
        "L, tables",
        "K, bits per table",
        f"{shortened(method)}, {bits_of(n_bits)}",
        height=94 + HEAT_ROW * len(rows),
    )
    label = f"F1 of hash tables of {method}, {bits_of(n_bits)}. {_best(surface)}"
    return heat_map(frame, label, surface.f1.tolist(), titles, largest)


def _best(surface: Surface) -> str:
    if np.isnan(surface.f1).all():
        return "No setting is possible."
    i, j = np.unravel_index(np.nanargmax(surface.f1), surface.f1.shape)
    return (
        f"The best is {surface.f1[i, j]:.3f}, with K = {surface.bits_per_table[i]} "
        f"and L = {surface.n_tables[j]}."
    )
