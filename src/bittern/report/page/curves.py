"""Sections with curves: quality against length, and precision against recall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bittern.analysis import Summary, summarise
from bittern.analysis.averages import mean_curve
from bittern.metrics import Curve
from bittern.report.charts import (
    UNIT,
    Drawing,
    Frame,
    Plate,
    Scale,
    Style,
    across_line,
    band,
    legend,
    line,
    linear,
    ordinal,
    points,
    span,
)
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import bits_of, figure, folded, panels, plated, section
from bittern.report.page.view import View

__all__ = ["against_bits", "bits_plate", "curve_plate", "precision_recall"]

KINDS = {
    "micro": (
        "Over radius",
        "All items within each radius are retrieved, and counts are summed over queries "
        "first; a point is a radius, the least at the left.",
    ),
    "interpolated": (
        "Interpolated",
        "Precision of each query at recall 0, 0.1, …, 1, averaged over the queries that have "
        "relevant items.",
    ),
}
MOST_MARKS = 40  # points of a line that are marked


def against_bits(view: View) -> Html | None:
    """Each metric against code length, the main one first; nothing where there are no codes."""
    plate = bits_plate(view)
    if plate is None:
        return None
    first, *rest = view.records.protocol.metrics
    main = figure(
        plate.drawings[0],
        legend(plate.styles),
        Html.tag(
            "p",
            f"Mean {first} over runs; the bands are 95 % intervals over {_basis(view)}. ",
            _said_of_uncoded(view),
        ),
        class_="beside wide",
    )
    others = [_against_bits(view, metric, title=metric) for metric in rest]
    more = folded("The other metrics against code length", panels(others)) if others else None
    return section("Quality against code length", "bits", main, more)


def bits_plate(view: View) -> Plate | None:
    """The main metric against code length."""
    if not view.coded:
        return None
    drawn = _against_bits(view, view.main_metric, width=480, height=310)
    return Plate([drawn], view.styles)


def precision_recall(view: View) -> Html | None:
    """Precision-recall curves of every method, a panel a length."""
    found = [_curves(view, kind) for kind in KINDS]
    figures = [one for one in found if one is not None]
    return section("Precision and recall", "curves", *figures) if figures else None


def _against_bits(
    view: View, metric: str, title: str = "", width: int = 360, height: int = 250
) -> Drawing:
    summaries = [s for s in summarise(view.records, metric) if s.method in view.styles]
    lengths = view.records.lengths
    frame = Frame(
        ordinal([str(n) for n in lengths]),
        _fitting(summaries),
        "bits",
        metric,
        title,
        width,
        height,
    )
    drawn = [
        _one_method(frame, view, method, [s for s in summaries if s.method == method])
        for method in (*view.uncoded, *view.coded)
    ]
    label = f"{metric} against code length for {_listed(view.records.methods)}."
    return frame.draw(label, *drawn)


def _one_method(frame: Frame, view: View, method: str, found: Sequence[Summary]) -> Html:
    style = view.styles[method]
    if method in view.uncoded:
        values = [s for s in found if s.n_bits is None] or list(found)
        return fragment(
            *(across_line(frame, s.mean, style, f"{method}: {s.mean:.3f}") for s in values[:1])
        )
    places = {n_bits: i for i, n_bits in enumerate(view.records.lengths)}
    found = sorted((s for s in found if s.n_bits in places), key=lambda s: s.n_bits or 0)
    shift = 0.0 if len(places) > 1 else _aside(view, method)
    at = [(places[s.n_bits] + shift, s.mean) for s in found if s.n_bits is not None]
    reach = [(x, *s.interval) for (x, _), s in zip(at, found, strict=True)]
    titles = [f"{method}, {bits_of(s.n_bits)}: {s.mean:.3f}" for s in found]
    return fragment(
        band(frame, reach, style) or _whiskers(frame, reach, style),
        line(frame, at, style),
        points(frame, at, style, titles, size=4),
    )


def _fitting(summaries: Sequence[Summary]) -> Scale:
    """Room for all means and intervals; an interval that leaves 0 to 1 is cut if no mean does."""
    means = [s.mean for s in summaries if math.isfinite(s.mean)]
    ends = [end for s in summaries for end in s.interval]
    if all(0 <= mean <= 1 for mean in means):
        ends = [min(max(end, 0.0), 1.0) for end in ends]
    return linear([*means, *ends])


def _aside(view: View, method: str) -> float:
    """Where a method stands when all have one length, so that none hides another."""
    return 0.8 * (view.coded.index(method) + 0.5) / len(view.coded) - 0.4


def _whiskers(frame: Frame, reach: Iterable[tuple[float, float, float]], style: Style) -> Html:
    """Intervals as thin bars, where there is no second length for a band."""
    return fragment(*(span(frame, (x, low), (x, high), style, width=2) for x, low, high in reach))


def _basis(view: View) -> str:
    return "runs" if view.records.protocol.runs > 1 else "the queries of the one run"


def _said_of_uncoded(view: View) -> str:
    if not view.uncoded:
        return ""
    return (
        f"The dashed line is {_listed(view.uncoded)}: the ranking by real distances, without "
        "codes. Codes learned from labels can pass it."
    )


def _curves(view: View, kind: str) -> Html | None:
    plate = curve_plate(view, kind)
    if plate is None:
        return None
    name, meaning = KINDS[kind]
    return fragment(Html.tag("h3", name), figure(plated(plate), meaning + " Mean over runs."))


def curve_plate(view: View, kind: str) -> Plate | None:
    """Curves of a kind, a panel a length."""
    curves = {
        n_bits: {
            method: curve
            for method in view.records.methods
            if (curve := mean_curve(view.records, method, n_bits, kind)) is not None
        }
        for n_bits in view.lengths
    }
    shown = {method for found in curves.values() for method in found}
    if not shown:
        return None
    name = KINDS[kind][0]
    styles = {method: style for method, style in view.styles.items() if method in shown}
    drawn = [_panel(view, n_bits, found, name) for n_bits, found in curves.items() if found]
    return Plate(drawn, styles)


def _panel(view: View, n_bits: int | None, curves: dict[str, Curve], name: str) -> Drawing:
    title = "" if n_bits is None else bits_of(n_bits)
    frame = Frame(UNIT, UNIT, "recall", "precision", title, height=290)
    drawn = []
    for method, curve in curves.items():
        style = view.styles[method]
        at = list(zip(curve.recall.tolist(), curve.precision.tolist(), strict=True))
        drawn.append(line(frame, at, style))
        if len(at) <= MOST_MARKS and method in view.coded:
            drawn.append(points(frame, at, style, size=2.6))
    label = f"Precision against recall, {name.lower()}, {bits_of(n_bits)}: {_listed(curves)}."
    return frame.draw(label, *drawn)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
