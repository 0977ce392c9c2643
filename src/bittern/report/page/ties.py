"""The section on ties: how far the order of tied items could move each value."""

from __future__ import annotations

from collections.abc import Sequence

from bittern.experiments.statistics import Summary, summarise
from bittern.report.charts import Drawing, Frame, Plate, Scale, linear, ordinal, points, span
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import bits_of, figure, number, plated, section
from bittern.report.page.view import View

__all__ = ["tie_plate", "tie_spread"]

ROW = 26  # the height of a method's row


def tie_spread(view: View) -> Html | None:
    """How far each value could move, and what that means."""
    plate = tie_plate(view)
    if plate is None:
        return None
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
    """A bar from the pessimistic to the optimistic value of each method, a panel a length."""
    summaries = [s for s in summarise(view.records, view.main_metric) if s.spread is not None]
    if not summaries or not view.coded:
        return None
    values = [value for s in summaries for value in (s.mean, *(s.spread or ()))]
    scale = linear(values, n_ticks=4)
    drawn = [_panel(view, scale, n_bits, _at(summaries, n_bits)) for n_bits in view.lengths]
    return Plate(drawn, {})


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
