"""How a method looks, alike in every figure: a colour, a marker and a dash of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bittern.report.markup import Html, fragment

__all__ = ["REFERENCE", "Style", "legend", "marker", "sample", "styles_of"]

N_COLOURS = 7  # Okabe and Ito's, told apart by colour-blind people too; in chart.css
SHAPES = ("circle", "square", "triangle", "diamond", "flag", "plus", "cross")
DASHES = ("", "6 3", "2 2.5", "8 3 2 3")
# Corners of a shape around its middle; a circle has none.
CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
    "flag": ((0, 1.25), (1.15, -0.85), (-1.15, -0.85)),
    "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
}


@dataclass(frozen=True, slots=True)
class Style:
    """A class of the style sheet that sets the colour, the shape of points, and the dash."""

    colour: str
    shape: str
    dash: str = ""


REFERENCE = Style("reference", "circle", "5 4")  # the ranking without codes


def styles_of(methods: Sequence[str], references: Iterable[str] = ()) -> dict[str, Style]:
    """A style for each method; those without codes all look like a line to compare with."""
    apart = set(references)
    coded = [method for method in methods if method not in apart]
    styles = {
        method: Style(
            f"c{i % N_COLOURS}",
            SHAPES[(i + i // N_COLOURS) % len(SHAPES)],
            DASHES[i // N_COLOURS % len(DASHES)],
        )
        for i, method in enumerate(coded)
    }
    return {method: styles.get(method, REFERENCE) for method in methods}


def marker(
    style: Style, x: float, y: float, *, size: float = 4.0, title: str | None = None
) -> Html:
    """A point in the method's shape; ``title`` is shown under the pointer."""
    told = None if title is None else Html.tag("title", title)
    look = f"mark {style.colour}"
    if style.shape == "circle":
        return Html.tag("circle", told, class_=look, cx=_at(x), cy=_at(y), r=size)
    if style.shape in CORNERS:
        corners = [(x + size * a, y + size * b) for a, b in CORNERS[style.shape]]
        outline = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        return Html.tag("polygon", told, class_=look, points=outline)
    return Html.tag("path", told, class_=f"stroke {style.colour}", d=_arms(style.shape, x, y, size))


def legend(styles: dict[str, Style], *, has_lines: bool = True) -> Html:
    """The methods with a point each and a piece of line; one to compare with has one of the two."""
    entries = [
        Html.tag(
            "li",
            Html.tag(
                "svg",
                sample(style, has_lines=has_lines),
                viewBox="0 0 28 14",
                width=28,
                height=14,
                aria_hidden="true",
            ),
            method,
        )
        for method, style in styles.items()
    ]
    return Html.tag("ul", *entries, class_="legend")


def sample(style: Style, *, has_lines: bool = True) -> Html:
    """A point and a piece of line, 28 wide and 14 high."""
    dash = style.dash or None
    line = Html.tag("path", class_=f"line {style.colour}", d="M1 7H27", stroke_dasharray=dash)
    return fragment(
        line if has_lines else None,
        None if has_lines and style == REFERENCE else marker(style, 14, 7),
    )


def _arms(shape: str, x: float, y: float, size: float) -> str:
    turn = math.pi / 4 if shape == "cross" else 0.0
    strokes = []
    for angle in (turn, turn + math.pi / 2):
        dx, dy = 1.25 * size * math.cos(angle), 1.25 * size * math.sin(angle)
        strokes.append(f"M{x - dx:.1f} {y - dy:.1f}L{x + dx:.1f} {y + dy:.1f}")
    return "".join(strokes)


def _at(value: float) -> str:
    return f"{value:.1f}"
