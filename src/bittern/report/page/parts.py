"""Parts that sections are made of: figures with a caption, tables that scroll, folded rests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bittern.report.charts import Plate, legend
from bittern.report.markup import Content, Html, fragment

__all__ = [
    "bits_of",
    "figure",
    "folded",
    "number",
    "panels",
    "plated",
    "scrolling",
    "section",
    "table",
]

NONE = "–"


def section(title: str, anchor: str, *content: Content) -> Html:
    """A part of the page with its own heading and address."""
    heading = Html.tag("h2", title, id=f"{anchor}-heading")
    return Html.tag("section", heading, *content, id=anchor, aria_labelledby=f"{anchor}-heading")


def figure(drawing: Content, *caption: Content, class_: str = "") -> Html:
    """A drawing and what it shows."""
    return Html.tag("figure", drawing, Html.tag("figcaption", *caption), class_=class_ or None)


def panels(drawings: Iterable[Html]) -> Html:
    """Drawings side by side, as many as there is room for."""
    return Html.tag("div", *drawings, class_="panels")


def plated(plate: Plate) -> Html:
    """The drawings of a plate under their legend."""
    shown = legend(plate.styles, has_lines=plate.has_lines) if plate.styles else None
    return fragment(shown, panels(plate.drawings))


def table(
    caption: str,
    header: Sequence[Content],
    rows: Iterable[Sequence[Content]],
    *,
    class_: str = "",
) -> Html:
    """A table that scrolls by itself if it is too wide; the first cell of a row is its header."""
    head = Html.tag("tr", *(Html.tag("th", name, scope="col") for name in header))
    body = [
        Html.tag(
            "tr",
            Html.tag("th", row[0], scope="row"),
            *(Html.tag("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    whole = Html.tag(
        "table",
        Html.tag("caption", caption),
        Html.tag("thead", head),
        Html.tag("tbody", *body),
        class_=class_ or None,
    )
    return scrolling(whole, caption)


def scrolling(content: Content, name: str) -> Html:
    """What scrolls sideways by itself, also with the keyboard, where the screen is too narrow."""
    return Html.tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=name)


def folded(summary: Content, *content: Content, is_open: bool = False) -> Html:
    """What is shown only to those who ask, and in print."""
    return Html.tag("details", Html.tag("summary", summary), *content, open=is_open)


def number(value: float | None, decimals: int = 3) -> str:
    """A value as tables show it; a dash where it is undefined."""
    return NONE if value is None or not math.isfinite(value) else f"{value:.{decimals}f}"


def bits_of(n_bits: int | None) -> str:
    """A code length in words."""
    return "no codes" if n_bits is None else f"{n_bits} bit{'s' if n_bits != 1 else ''}"
