"""The section on ties: how far the order of tied items could move each value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from bittern.analysis import Summary, summarise
from bittern.report.charts import (
    Drawing,
    Frame,
    Plate,
    Scale,
    Style,
    line,
    linear,
    ordinal,
    points,
    span,
)
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import bits_of, figure, number, plated, section
from bittern.report.page.view import View

__all__ = ["tie_plate", "tie_spread"]

ORDERS = {
    "best order of ties": Style("c2", "triangle"),
    "expected": Style("c0", "circle"),
    "worst order of ties": Style("c1", "flag"),
}
ROW = 26  # the height of a method's row


def tie_spread(view: View) -> Html | None:
    """How far each value could move, and what that means."""
    plate = tie_plate(view)
    if plate is None:
        return None
    if plate.styles:
        return section("What ties could do", "ties", figure(plated(plate), _said_of_one(view)))
    return section(
        "What ties could do",
        "ties",
        figure(
            plated(plate),
            f"Each bar reaches from the {view.main_metric} under the worst order of tied items to "
            "that under the best; the point is the expectation over all orders, which the tables "
            "report. Where bars of two methods overlap, breaking ties by accident could have told "
            "either story.",
        ),
    )


def tie_plate(view: View) -> Plate | None:
    """A bar from the pessimistic to the optimistic value of each method, a panel a length.

    One method alone is drawn against length: its values under the worst order, any and the best.
    """
    summaries = [s for s in summarise(view.records, view.main_metric) if s.spread is not None]
    if not summaries or not view.coded:
        return None
    if len(view.records.methods) == 1 and len(view.records.lengths) > 1:
        return Plate([_over_lengths(view)], ORDERS)
    values = [value for s in summaries for value in (s.mean, *(s.spread or ()))]
    scale = linear(values, n_ticks=4)
    drawn = [_panel(view, scale, n_bits, _at(summaries, n_bits)) for n_bits in view.lengths]
    return Plate(drawn, {})


def _said_of_one(view: View) -> str:
    return (
        f"Mean {view.main_metric} of {view.coded[0]} over runs under the worst order of tied "
        "items, in expectation over all, and under the best; bars reach from the least run to the "
        "largest."
    )


def _over_lengths(view: View) -> Drawing:
    metric, lengths = view.main_metric, view.records.lengths
    runs = [_runs(view, n_bits) for n_bits in lengths]
    every = [value for at_length in runs for values in at_length for value in values]
    frame = Frame(
        ordinal([str(n) for n in lengths]), linear(every), "bits", metric, width=480, height=310
    )
    drawn, told = [], []
    for i, (name, style) in enumerate(ORDERS.items()):
        values = [at_length[i] for at_length in runs]
        at = [(place + 0.12 * (i - 1), fmean(of)) for place, of in enumerate(values)]
        words = [f"{name}, {n} bits: {number(y)}" for n, (_, y) in zip(lengths, at, strict=True)]
        told += words
        drawn += [
            span(frame, (x, min(of)), (x, max(of)), style)
            for (x, _), of in zip(at, values, strict=True)
        ]
        drawn += [line(frame, at, style), points(frame, at, style, words, size=4)]
    label = f"{metric} of {view.coded[0]} by the order of tied items. {'; '.join(told)}."
    return frame.draw(label, *drawn)


def _runs(view: View, n_bits: int) -> list[tuple[float, ...]]:
    """The best, expected and worst value of each run, a list each."""
    found = [r.values.get(view.main_metric) for r in view.records.of(view.coded[0], n_bits)]
    known = [(v.spread[1], v.mean, v.spread[0]) for v in found if v is not None and v.spread]
    return list(zip(*known, strict=True)) or [(math.nan,)] * len(ORDERS)


def _at(summaries: Sequence[Summary], n_bits: int | None) -> list[Summary]:
    """Those of a length, and those of methods without codes, each method once."""
    found = {s.method: s for s in summaries if s.n_bits in (n_bits, None)}
    return list(found.values())


def _panel(view: View, scale: Scale, n_bits: int | None, found: Sequence[Summary]) -> Drawing:
    metric = view.main_metric
    rows = [method for method in reversed(view.records.methods)]
    frame = Frame(scale, ordinal(rows), metric, title=bits_of(n_bits), height=ROW * len(rows) + 78)
    drawn, told = [], []
    for s in found:
        if s.spread is None:
            continue
        y, style = float(rows.index(s.method)), view.styles[s.method]
        low, high = s.spread
        words = f"{s.method}: {number(s.mean)}, between {number(low)} and {number(high)}"
        told.append(words)
        drawn.append(
            fragment(
                span(frame, (low, y), (high, y), style),
                points(frame, [(s.mean, y)], style, [words], size=4),
            )
        )
    label = f"Tie spread of {metric} at {bits_of(n_bits)}. {'; '.join(told)}."
    return frame.draw(label, *drawn)
