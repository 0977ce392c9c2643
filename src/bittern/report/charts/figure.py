"""Figures: panels with one legend and a caption, for the page or as an SVG file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from bittern.report.charts.chart import LETTER
from bittern.report.charts.svg import Panel, Style, join, legend_sample, tag

GAP = 16  # between panels, and around them
ROW = 20  # the height of a row of the legend
SAMPLE = 36  # the room of a legend's sample
COLUMNS = 2
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels that share a legend, with the words around them on the page.

    ``styles`` are those of the legend, which may be empty.  ``layout`` has classes of the style
    sheet: ``wide`` for one large panel, ``beside`` to put legend and caption to its right.
    """

    panels: Sequence[Panel]
    styles: dict[str, Style]
    heading: str
    caption: Sequence[str]  # paragraphs
    title: str = ""  # below the heading, if a section has several figures
    has_lines: bool = True
    layout: str = ""

    def legend(self) -> list[tuple[str, Markup]]:
        """Each method with a sample of its style."""
        return [
            (method, legend_sample(style, has_lines=self.has_lines))
            for method, style in self.styles.items()
        ]

    def to_svg(self) -> str:
        """A standalone file, in light colours and without CSS variables."""
        n_columns = min(COLUMNS, len(self.panels))
        cell = max(one.width for one in self.panels)
        width = n_columns * cell + (n_columns + 1) * GAP
        y, placed = float(GAP), []
        entries, height = self._legend_rows(width)
        placed.append(_moved(GAP, y, entries))
        y += height
        for first in range(0, len(self.panels), n_columns):
            row = self.panels[first : first + n_columns]
            placed += [_moved(GAP + i * (cell + GAP), y, one.svg) for i, one in enumerate(row)]
            y += max(one.height for one in row) + GAP
        whole = tag(
            "svg",
            tag("style", Markup(_plain_style())),
            tag("rect", width=f"{width:g}", height=f"{y:g}", fill="#fff"),
            *placed,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:g} {y:g}",
            width=f"{width:g}",
            height=f"{y:g}",
            font_family=FONT,
            class_="chart",
        )
        return f"{whole}\n"

    def _legend_rows(self, width: float) -> tuple[Markup, float]:
        """The legend in as many rows as it needs, and their height; empty for one method."""
        if len(self.styles) < 2:
            return join(), 0
        x, y, drawn = 0.0, 0.0, []
        for name, sample in self.legend():
            room = SAMPLE + LETTER * len(name) + GAP
            if x and x + room > width - 2 * GAP:
                x, y = 0.0, y + ROW
            text = tag("text", name, x=f"{SAMPLE:g}", y="11")
            drawn.append(_moved(x, y, join(sample, text)))
            x += room
        return join(*drawn), y + ROW + 6


def chart_style() -> str:
    """The style sheet of charts; its colours are variables that a page may override."""
    return files("bittern.report.charts").joinpath("chart.css").read_text(encoding="utf-8")


@cache
def _plain_style() -> str:
    """The style sheet for programs without CSS variables: each colour is written out."""
    sheet = re.sub(r"/\*.*?\*/", "", chart_style(), flags=re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w+);", sheet))
    classes = dict(re.findall(r"\.(\w+) \{ --c: var\(--(\w+)\); \}", sheet))
    lines = []
    for names, body in re.findall(r"^(\.[^{\n]+) \{ ([^}]+) \}$", sheet, flags=re.MULTILINE):
        if body.startswith("--c:"):
            continue
        written = re.sub(r"var\(--(c\d|[a-z]{2,})\)", lambda found: colours[found[1]], body)
        if "var(--c)" not in written:
            lines.append(f"{names} {{ {written} }}")
            continue
        lines += [
            f"{names}.{name} {{ {written.replace('var(--c)', colours[colour])} }}"
            for name, colour in classes.items()
        ]
    return "\n".join(lines)


def _moved(x: float, y: float, content: Markup) -> Markup:
    return tag("g", content, transform=f"translate({x:g} {y:g})")
