"""Figures of what is retrieved: precision and recall, ties, classes, and hash tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from markupsafe import Markup

from bittern.analysis import Analysis, ClassMeans, Summary
from bittern.analysis.boxes import Box
from bittern.analysis.curves import Surface
from bittern.metrics import Curve
from bittern.report.charts import (
    UNIT,
    Figure,
    Frame,
    Panel,
    Scale,
    Style,
    box_plot,
    heat_map,
    join,
    line,
    linear,
    ordinal,
    points,
    row_rules,
    shortened,
    span,
    tall_mark,
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
AT_EACH_END = 15  # classes of a chart, if not all fit
GAP = None  # in place of the classes between
ORDERS = {
    "best order of ties": Style("c2", "triangle"),
    "expected": Style("c0", "circle"),
    "worst order of ties": Style("c1", "flag"),
}
TIE_ROW = 26  # pixels
APART = 0.24  # of a step, between the boxes of a length


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
    rows = _shown_classes(classes)
    panels = [_classes_panel(analysis, one, rows, scale) for one in found]
    caption = (
        f"Mean {analysis.main_metric} over the queries of each class in all runs; the class with "
        f"the highest mean at {bits_of(found[-1].n_bits)} is on top."
    )
    if GAP in rows:
        caption += (
            f" Of {len(classes)} classes, the {AT_EACH_END} with the highest and the "
            f"{AT_EACH_END} with the lowest mean are shown; the tables below have all of them."
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


def _shown_classes(classes: Sequence[int]) -> list[int | None]:
    """All classes, or some from each end with a gap between, so that a chart fits a screen."""
    if len(classes) <= 2 * AT_EACH_END + 1:
        return list(classes)
    return [*classes[:AT_EACH_END], GAP, *classes[-AT_EACH_END:]]


def _classes_panel(
    analysis: Analysis, found: ClassMeans, classes: Sequence[int | None], scale: Scale
) -> Panel:
    rows = list(reversed(classes))
    names = ["…" if one is GAP else analysis.class_name(one) for one in rows]
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


def ties_figure(analysis: Analysis) -> Figure | None:
    """A bar from the pessimistic to the optimistic value of each method, a panel per length.

    A single method is drawn against length: its values under the worst and the best order, and
    their expectation; by :func:`boxes_figure` alone if that can be drawn.
    """
    metric = analysis.main_metric
    summaries = [s for s in analysis.summaries() if s.spread is not None]
    if not summaries or not analysis.coded:
        return None
    if len(analysis.methods) == 1 and len(analysis.lengths) > 1:
        if analysis.has_tie_boxes:
            return None
        caption = (
            f"Mean {metric} of {analysis.coded[0]} over runs under the worst order of tied items, "
            "in expectation over all orders, and under the best; bars run from the lowest run to "
            "the highest."
        )
        return Figure([_ties_by_length(analysis)], ORDERS, "The effect of ties", [caption])
    values = [value for s in summaries for value in (s.mean, *(s.spread or ()))]
    scale = linear(values, n_ticks=4)
    panels = [_ties_panel(analysis, scale, n, _at(summaries, n)) for n in analysis.columns]
    caption = (
        f"Each bar runs from the {metric} under the worst order of tied items to the {metric} "
        "under the best; the point is the expectation over all orders, as in the tables. Where "
        "the bars of two methods overlap, the order of tied items decides which looks better."
    )
    if _database_order(analysis) is not None:
        caption += f" The stroke is the {metric} with tied items in the order of the database."
    return Figure(panels, {}, "The effect of ties", [caption])


def boxes_figure(analysis: Analysis) -> Figure | None:
    """Box plots over runs under each order of tied items, a panel per method.

    None unless the protocol asks for both extremes in at least ten runs.
    """
    if not analysis.has_tie_boxes:
        return None
    boxes = {
        method: [analysis.tie_boxes(method, n_bits) for n_bits in analysis.lengths]
        for method in analysis.coded
    }
    drawable = {method: found for method, found in boxes.items() if any(map(any, found))}
    if not drawable:
        return None
    ends = [end for found in drawable.values() for three in found for end in _ends(three)]
    scale, is_alone = linear(ends), len(drawable) == 1
    panels = [
        _boxes_panel(analysis, scale, method, found, is_alone) for method, found in drawable.items()
    ]
    metric, n_runs = analysis.main_metric, analysis.protocol.runs
    caption = (
        f"Mean {metric} of each of {n_runs} runs under the best order of tied items, in "
        "expectation over all orders, and under the worst. A box spans the middle half of the "
        "runs, with a line at the median; whiskers reach the last run within 1.5 times its "
        "height, and points are the runs beyond."
    )
    return Figure(
        panels,
        ORDERS,
        "The effect of ties",
        [caption],
        "" if is_alone else "Over runs",
        has_lines=False,
        layout="wide" if is_alone else "",
    )


def _database_order(analysis: Analysis) -> tuple[Summary, ...] | None:
    """The main metric with ties in the order of the database, if the protocol asks for it."""
    name = f"{analysis.main_metric}:database-order"
    return analysis.summaries(name) if name in analysis.protocol.metrics else None


def _stroke(frame: Frame, value: float | None, y: float, style: Style) -> Markup | None:
    if value is None:
        return None
    return tall_mark(frame, (value, y), style, f"in database order: {number(value)}")


def _ends(boxes: Sequence[Box | None]) -> list[float]:
    return [end for box in boxes if box for end in (box.low, box.high, *box.outliers)]


def _boxes_panel(
    analysis: Analysis,
    scale: Scale,
    method: str,
    found: Sequence[Sequence[Box | None]],
    is_alone: bool,
) -> Panel:
    lengths = analysis.lengths
    frame = Frame(
        ordinal([str(n) for n in lengths]),
        scale,
        "bits",
        analysis.main_metric,
        "" if is_alone else method,
        width=560 if is_alone else 360,
        height=340 if is_alone else 260,
    )
    drawn, labels = [], []
    for place, (n_bits, boxes) in enumerate(zip(lengths, found, strict=True)):
        for i, ((name, style), box) in enumerate(zip(ORDERS.items(), boxes, strict=False)):
            if box is None:
                continue
            x = place + APART * (i - 1)
            labels.append(
                f"{name}, {n_bits} bits: median {number(box.median)}, "
                f"quartiles {number(box.first)} and {number(box.third)}, "
                f"whiskers {number(box.low)} and {number(box.high)}"
            )
            five = (box.low, box.first, box.median, box.third, box.high)
            drawn.append(box_plot(frame, x, five, style, labels[-1], width=22 if is_alone else 12))
            titles = [f"{name}, {n_bits} bits: {number(value)}" for value in box.outliers]
            drawn.append(points(frame, [(x, v) for v in box.outliers], style, titles, size=2.4))
    label = f"{analysis.main_metric} of {method} over runs. {'; '.join(labels)}."
    return frame.draw(label, *drawn)


def _ties_by_length(analysis: Analysis) -> Panel:
    metric, method, lengths = analysis.main_metric, analysis.coded[0], analysis.lengths
    nothing = [(math.nan,)] * len(ORDERS)
    runs = [analysis.tied_runs(method, n_bits) or nothing for n_bits in lengths]
    every = [value for at_length in runs for values in at_length for value in values]
    frame = Frame(
        ordinal([str(n) for n in lengths]), linear(every), "bits", metric, width=480, height=310
    )
    drawn, labels = [], []
    for i, (name, style) in enumerate(ORDERS.items()):
        values = [at_length[i] for at_length in runs]
        at = [(place + 0.12 * (i - 1), fmean(of)) for place, of in enumerate(values)]
        titles = [f"{name}, {n} bits: {number(y)}" for n, (_, y) in zip(lengths, at, strict=True)]
        labels += titles
        drawn += [
            span(frame, (x, min(of)), (x, max(of)), style)
            for (x, _), of in zip(at, values, strict=True)
        ]
        drawn += [line(frame, at, style), points(frame, at, style, titles, size=4)]
    label = f"{metric} of {method} by the order of tied items. {'; '.join(labels)}."
    return frame.draw(label, *drawn)


def _at(summaries: Sequence[Summary], n_bits: int | None) -> list[Summary]:
    """Those of a length, and those of methods without codes, each method once."""
    return list({s.method: s for s in summaries if s.n_bits in (n_bits, None)}.values())


def _ties_panel(
    analysis: Analysis, scale: Scale, n_bits: int | None, found: Sequence[Summary]
) -> Panel:
    metric, styles = analysis.main_metric, method_styles(analysis)
    rows = list(reversed(analysis.methods))
    height = TIE_ROW * len(rows) + 78
    frame = Frame(scale, ordinal(rows), metric, title=bits_of(n_bits), height=height)
    plain = {(s.method, s.n_bits): s.mean for s in _database_order(analysis) or ()}
    drawn, titles = [], []
    for s in found:
        if s.spread is None:
            continue
        y, style = float(rows.index(s.method)), styles[s.method]
        low, high = s.spread
        titles.append(f"{s.method}: {number(s.mean)}, between {number(low)} and {number(high)}")
        drawn.append(
            join(
                span(frame, (low, y), (high, y), style),
                points(frame, [(s.mean, y)], style, titles[-1:], size=4),
                _stroke(frame, plain.get((s.method, s.n_bits)), y, style),
            )
        )
    label = f"Tie spread of {metric} at {bits_of(n_bits)}. {'; '.join(titles)}."
    return frame.draw(label, *drawn)
