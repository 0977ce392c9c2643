"""Plates: drawings with one legend, on a page or as an SVG file of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bittern.report.charts.frame import LETTER, Drawing
from bittern.report.charts.styles import Style, sample
from bittern.report.markup import Html, fragment

__all__ = ["Plate", "chart_style"]

GAP = 16  # between drawings, and around all
ROW = 20  # of the legend
SAMPLE = 36  # the room of a sample, and of what is left free after a name
COLUMNS = 2
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


@dataclass(frozen=True, slots=True)
class Plate:
    """Drawings that belong together; ``styles`` are those of the legend, which may be empty."""

    drawings: Sequence[Drawing]
    styles: dict[str, Style]
    has_lines: bool = True

    def to_svg(self) -> str:
        """A file that needs no page around it, in light colours and without CSS variables."""
        n_columns = min(COLUMNS, len(self.drawings))
        cell = max(one.width for one in self.drawings)
        width = n_columns * cell + (n_columns + 1) * GAP
        y, placed = float(GAP), []
        entries, height = self._legend(width)
        placed.append(_moved(GAP, y, entries))
        y += height
        for first in range(0, len(self.drawings), n_columns):
            row = self.drawings[first : first + n_columns]
            placed += [_moved(GAP + i * (cell + GAP), y, one) for i, one in enumerate(row)]
            y += max(one.height for one in row) + GAP
        whole = Html.tag(
            "svg",
            Html.tag("style", Html(_plain_style())),
            Html.tag("rect", width=f"{width:g}", height=f"{y:g}", fill="#fff"),
            *placed,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:g} {y:g}",
            width=f"{width:g}",
            height=f"{y:g}",
            font_family=FONT,
            class_="chart",
        )
        return f"{whole}\n"

    def _legend(self, width: float) -> tuple[Html, float]:
        """The names with their samples, in as many rows as they need, and the rows' height."""
        if len(self.styles) < 2:
            return fragment(), 0
        x, y, drawn = 0.0, 0.0, []
        for name, style in self.styles.items():
            room = SAMPLE + LETTER * len(name) + GAP
            if x and x + room > width - 2 * GAP:
                x, y = 0.0, y + ROW
            words = Html.tag("text", name, x=f"{SAMPLE:g}", y="11")
            drawn.append(_moved(x, y, fragment(sample(style, has_lines=self.has_lines), words)))
            x += room
        return fragment(*drawn), y + ROW + 6


def chart_style() -> str:
    """The style sheet of charts, with its colours as variables that a page may set anew."""
    return files("bittern.report.charts").joinpath("chart.css").read_text(encoding="utf-8")


@cache
def _plain_style() -> str:
    """The same for programs that know no variables: each colour is written out."""
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


def _moved(x: float, y: float, content: Html) -> Html:
    return Html.tag("g", content, transform=f"translate({x:g} {y:g})")
