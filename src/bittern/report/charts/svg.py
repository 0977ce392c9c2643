"""SVG elements: every text is escaped, and a method looks the same in every figure.

Charts are written by hand because they are part of the page: in its colours, light and dark,
readable by screen readers, with tooltips and without scripts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

N_COLOURS = 7  # Okabe and Ito's, which colour-blind people can tell apart; in chart.css
SHAPES = ("circle", "square", "triangle", "diamond", "flag", "plus", "cross")
NO_SHAPE = ""  # a line without points
DASHES = ("", "6 3", "2 2.5", "8 3 2 3")
# Corners of a shape around its centre, in units of its size; a circle has none.
CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
    "flag": ((0, 1.25), (1.15, -0.85), (-1.15, -0.85)),
    "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
}


def tag(name: str, /, *content: str | None, **attributes: str | float | None) -> Markup:
    """An element; ``class_`` and ``stroke_width`` are written ``class`` and ``stroke-width``.

    Content and attributes that are None are left out.
    """
    opening = name + "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_shown(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{opening}>{join(*content)}</{name}>")  # every part is escaped


def join(*content: str | None) -> Markup:
    """Elements and texts one after the other; None is skipped."""
    return Markup().join(one for one in content if one is not None)


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of a figure: an SVG element and its size."""

    svg: Markup
    width: float
    height: float

    @staticmethod
    def of(width: float, height: float, label: str, *content: str | None) -> Panel:
        """Draw the content; ``label`` describes the chart for screen readers."""
        svg = tag(
            "svg",
            *content,
            viewBox=f"0 0 {width:g} {height:g}",
            width=width,
            height=height,
            role="img",
            aria_label=label,
            class_="chart",
        )
        return Panel(svg, width, height)

    def __html__(self) -> Markup:
        return self.svg


@dataclass(frozen=True, slots=True)
class Style:
    """A colour (a class of the style sheet), the shape of points, and the dashes of lines."""

    colour: str
    shape: str
    dash: str = ""


REFERENCE = Style("reference", "circle", "5 4")  # the ranking without codes


def styles_of(methods: Sequence[str], references: Iterable[str] = ()) -> dict[str, Style]:
    """A style for each method; the references share one, that of a line to compare with."""
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
) -> Markup:
    """A point in the method's shape, if it has one; ``title`` is its tooltip."""
    if style.shape == NO_SHAPE:
        return join()
    tooltip = None if title is None else tag("title", title)
    look = f"mark {style.colour}"
    if style.shape == "circle":
        return tag("circle", tooltip, class_=look, cx=f"{x:.1f}", cy=f"{y:.1f}", r=size)
    if style.shape in CORNERS:
        corners = [(x + size * a, y + size * b) for a, b in CORNERS[style.shape]]
        outline = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        return tag("polygon", tooltip, class_=look, points=outline)
    return tag("path", tooltip, class_=f"stroke {style.colour}", d=_arms(style.shape, x, y, size))


def legend_sample(style: Style, *, has_lines: bool = True) -> Markup:
    """A point on a short line, 28 wide and 14 high; a reference has no point."""
    dash = style.dash or None
    line = tag("path", class_=f"line {style.colour}", d="M1 7H27", stroke_dasharray=dash)
    return join(
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


def _shown(value: str | float) -> Markup:
    return escape(f"{value:.6g}" if isinstance(value, float) else value)
