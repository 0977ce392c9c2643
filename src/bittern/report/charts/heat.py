"""Heat maps: a value for each row and column, as a shade and as a number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bittern.report.charts.frame import Drawing, Frame
from bittern.report.charts.scales import ordinal
from bittern.report.markup import Html, fragment

__all__ = ["heat_map"]

CELL = 30  # the height of a row


def heat_map(
    label: str,
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    titles: Sequence[Sequence[str]],
    *,
    row_label: str,
    column_label: str,
    largest: float,
    title: str = "",
) -> Drawing:
    """Cells shaded from 0 to the largest value; one without a value is blank.

    The first row is at the bottom, as on an axis.  ``titles`` are shown under the pointer.
    """
    frame = Frame(
        ordinal(columns),
        ordinal(rows),
        column_label,
        row_label,
        title,
        height=74 + CELL * len(rows) + (20 if title else 0),
    )
    cells = [
        _cell(frame, i, j, value, value / (largest or 1.0), titles[i][j])
        for i, row in enumerate(values)
        for j, value in enumerate(row)
        if math.isfinite(value)
    ]
    return frame.draw(label, *cells)


def _cell(frame: Frame, i: int, j: int, value: float, share: float, title: str) -> Html:
    x, y = frame.across(j - 0.5), frame.up(i + 0.5)
    width, height = frame.across(j + 0.5) - x, frame.up(i - 0.5) - y
    shade = Html.tag(
        "rect",
        Html.tag("title", title),
        class_="cell",
        x=f"{x + 1:.1f}",
        y=f"{y + 1:.1f}",
        width=f"{width - 2:.1f}",
        height=f"{height - 2:.1f}",
        fill_opacity=f"{0.08 + 0.82 * share:.2f}",
    )
    if width < 30:
        return shade
    number = Html.tag(
        "text",
        f"{value:.2f}".replace("0.", "."),
        class_="strong" if share > 0.55 else None,
        x=f"{x + width / 2:.1f}",
        y=f"{y + height / 2 + 4:.1f}",
        text_anchor="middle",
    )
    return fragment(shade, number)
