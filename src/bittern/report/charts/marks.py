"""What a chart draws in its frame: lines, bands, points and ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bittern.report.charts.frame import Frame
from bittern.report.charts.styles import Style, marker
from bittern.report.markup import Html, fragment

__all__ = ["across_line", "band", "diagonal", "line", "points", "row_rules", "span"]

Point = tuple[float, float]


def line(frame: Frame, at: Iterable[Point], style: Style) -> Html:
    """A line through the points; one that is not finite interrupts it."""
    d, is_drawing = "", False
    for x, y in at:
        if not _is_finite(x, y):
            is_drawing = False
            continue
        d += f"{'L' if is_drawing else 'M'}{frame.across(x):.1f} {frame.up(y):.1f}"
        is_drawing = True
    return Html.tag("path", class_=f"line {style.colour}", d=d, stroke_dasharray=style.dash or None)


def band(frame: Frame, at: Sequence[tuple[float, float, float]], style: Style) -> Html | None:
    """The area between two values above each place."""
    whole = [(x, low, high) for x, low, high in at if _is_finite(x, low, high)]
    if len(whole) < 2:
        return None
    there = [(x, high) for x, _, high in whole]
    back = [(x, low) for x, low, _ in reversed(whole)]
    corners = " ".join(f"{frame.across(x):.1f},{frame.up(y):.1f}" for x, y in there + back)
    return Html.tag("polygon", class_=f"band {style.colour}", points=corners)


def points(
    frame: Frame, at: Sequence[Point], style: Style, titles: Sequence[str] = (), size: float = 3.6
) -> Html:
    """A marker at each point that is finite; ``titles`` say what it is."""
    told: Sequence[str | None] = titles or [None] * len(at)
    return fragment(
        *(
            marker(style, frame.across(x), frame.up(y), size=size, title=title)
            for (x, y), title in zip(at, told, strict=True)
            if _is_finite(x, y)
        )
    )


def span(
    frame: Frame, low: Point, high: Point, style: Style, *, width: float = 7, shift: float = 0
) -> Html | None:
    """A thick bar from one point to another; ``shift`` moves it aside."""
    if not _is_finite(*low, *high):
        return None
    (x1, y1), (x2, y2) = ((frame.across(x), frame.up(y)) for x, y in (low, high))
    return Html.tag(
        "path",
        class_=f"span {style.colour}",
        d=f"M{x1:.1f} {y1 + shift:.1f}L{x2:.1f} {y2 + shift:.1f}",
        stroke_width=width,
    )


def across_line(frame: Frame, value: float, style: Style, title: str) -> Html | None:
    """A line over the whole width at a height."""
    if not _is_finite(value):
        return None
    return Html.tag(
        "path",
        Html.tag("title", title),
        class_=f"line {style.colour}",
        d=f"M{frame.left:.1f} {frame.up(value):.1f}H{frame.right:.1f}",
        stroke_dasharray=style.dash or None,
    )


def diagonal(frame: Frame) -> Html:
    """The line on which both axes have one value."""
    low = max(frame.x.low, frame.y.low)
    high = min(frame.x.high, frame.y.high)
    if low >= high:
        return fragment()
    (x1, y1), (x2, y2) = ((frame.across(v), frame.up(v)) for v in (low, high))
    return Html.tag("path", class_="diagonal", d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")


def row_rules(frame: Frame) -> Html:
    """A thin line along each row of an ordinal axis, to follow with the eye."""
    rows = [f"M{frame.left:.1f} {frame.up(v):.1f}H{frame.right:.1f}" for v, _ in frame.y.ticks]
    return Html.tag("path", class_="grid", d="".join(rows))


def _is_finite(*values: float) -> bool:
    return all(math.isfinite(v) for v in values)
