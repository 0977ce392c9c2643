"""The frame of a chart: where its axes lie, their ticks and their names."""

from __future__ import annotations

from dataclasses import dataclass

from bittern.report.charts.scales import Scale
from bittern.report.markup import Content, Html, fragment

__all__ = ["Drawing", "Frame", "drawing", "shortened"]

SIZE = 12  # of the text
LETTER = 6.6  # the width of a letter of that size, rather too wide than too narrow
LONGEST = 22  # letters of a name on an axis
TOP, RIGHT = 10, 14


class Drawing(Html):
    """An SVG that knows its size."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A drawing's size, its two scales and their names; ``title`` stands above it."""

    x: Scale
    y: Scale
    x_label: str = ""
    y_label: str = ""
    title: str = ""
    width: int = 360
    height: int = 260
    longest: int = LONGEST  # letters of a name on an axis

    @property
    def left(self) -> float:
        """Where the plot begins: right of the longest tick and of the axis' name."""
        longest = max((len(shortened(name, self.longest)) for _, name in self.y.ticks), default=0)
        return 10 + LETTER * longest + (18 if self.y_label else 0)

    @property
    def right(self) -> float:
        """Where the plot ends."""
        last = len(self.x.ticks[-1][1]) if self.x.ticks and not self.x.is_ordinal else 0
        return self.width - max(RIGHT, LETTER * last / 2 + 2)

    @property
    def top(self) -> float:
        """Where the plot begins: below the title."""
        return TOP + (20 if self.title else 0)

    @property
    def bottom(self) -> float:
        """Where the plot ends: above the ticks and the axis' name."""
        return self.height - 24 - (20 if self.x_label else 0)

    def across(self, value: float) -> float:
        """The place of a value of the horizontal axis."""
        return self.left + self.x.share(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        """The place of a value of the vertical axis."""
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def draw(self, label: str, *content: Content) -> Drawing:
        """The chart; ``label`` says in words what it shows."""
        return drawing(
            self.width, self.height, label, self._grid(), *content, self._ticks(), self._names()
        )

    def _grid(self) -> Html:
        lines = []
        if not self.y.is_ordinal:
            lines += [
                f"M{self.left:.1f} {self.up(v):.1f}H{self.right:.1f}" for v, _ in self.y.ticks
            ]
        if not self.x.is_ordinal:
            lines += [
                f"M{self.across(v):.1f} {self.top:.1f}V{self.bottom:.1f}" for v, _ in self.x.ticks
            ]
        return Html.tag("path", class_="grid", d="".join(lines))

    def _ticks(self) -> Html:
        below = [
            self._written(name, self.across(v), self.bottom + 18, "middle")
            for v, name in self.x.ticks
        ]
        beside = [
            self._written(name, self.left - 7, self.up(v) + 4, "end") for v, name in self.y.ticks
        ]
        return Html.tag("g", *below, *beside, class_="ticks")

    def _written(self, name: str, x: float, y: float, anchor: str) -> Html:
        short = shortened(name, self.longest)
        whole = None if short == name else Html.tag("title", name)
        return Html.tag("text", short, whole, x=_at(x), y=_at(y), text_anchor=anchor)

    def _names(self) -> Html:
        middle = (self.left + self.right) / 2
        y = (self.top + self.bottom) / 2
        return fragment(
            _line(self.title, "heading", x=_at(self.left), y=16),
            _line(self.x_label, "axis", x=_at(middle), y=self.height - 5, text_anchor="middle"),
            _line(
                self.y_label,
                "axis",
                text_anchor="middle",
                transform=f"translate(13 {y:.0f}) rotate(-90)",
            ),
        )


def drawing(width: float, height: float, label: str, *content: Content) -> Drawing:
    """An SVG that says in words what it shows, for those who cannot see it."""
    made = Drawing(
        Html.tag(
            "svg",
            *content,
            viewBox=f"0 0 {width:g} {height:g}",
            width=width,
            height=height,
            role="img",
            aria_label=label,
            class_="chart",
        )
    )
    made.width, made.height = width, height
    return made


def shortened(name: str, longest: int = LONGEST) -> str:
    """The name, or its beginning where it is too long for an axis."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _line(words: str, kind: str, **attributes: str | float) -> Html | None:
    return Html.tag("text", words, class_=kind, **attributes) if words else None


def _at(value: float) -> str:
    return f"{value:.1f}"
