"""The section on methods without codes: each one's quality as a point with its interval."""

from __future__ import annotations

from bittern.analysis import summarise
from bittern.report.charts import (
    REFERENCE,
    Frame,
    Plate,
    Style,
    linear,
    ordinal,
    points,
    row_rules,
    span,
)
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import figure, number, section
from bittern.report.page.view import View

__all__ = ["method_plate", "methods_compared"]

EVERY = Style("c0", "circle")  # rows are named: colours would tell nothing
ROW = 22  # the height of a method's row
LONGEST = 34  # letters of a method's name


def methods_compared(view: View) -> Html | None:
    """The methods in one image; nothing where they have codes, whose length tells more."""
    plate = method_plate(view)
    if plate is None:
        return None
    return section(
        "Quality of each method",
        "methods",
        figure(
            plate.drawings[0],
            f"Mean {view.main_metric}, the highest on top; bars are 95 % intervals over "
            f"{'runs' if view.records.protocol.runs > 1 else 'the queries of the one run'}."
            + (" What is grey has seen the judgements." if view.records.bounds else ""),
            class_="wide",
        ),
    )


def method_plate(view: View) -> Plate | None:
    """A row a method, the best on top."""
    if view.coded:
        return None
    found = [s for s in summarise(view.records, view.main_metric) if s.mean == s.mean]
    if len(found) < 2:
        return None
    rows = sorted(found, key=lambda s: s.mean)
    frame = Frame(
        linear([value for s in rows for value in (s.mean, *s.interval)]),
        ordinal([s.method for s in rows]),
        view.main_metric,
        width=560,
        height=ROW * len(rows) + 58,
        longest=LONGEST,
    )
    drawn = [row_rules(frame)]
    for y, s in enumerate(rows):
        style = REFERENCE if s.method in view.records.bounds else EVERY
        low, high = s.interval
        words = f"{s.method}: {number(s.mean)}, {number(low)} to {number(high)}"
        drawn.append(
            fragment(
                span(frame, (low, y), (high, y), style),
                points(frame, [(s.mean, y)], style, [words], size=4),
            )
        )
    told = "; ".join(f"{s.method} {number(s.mean)}" for s in reversed(rows))
    return Plate([frame.draw(f"Mean {view.main_metric}: {told}.", *drawn)], {})
