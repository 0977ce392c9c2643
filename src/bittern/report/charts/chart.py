"""A chart: its scales, the frame between its axes, and the marks drawn in the frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bittern.report.charts.svg import Panel, Style, join, marker, tag

LETTER = 6.6  # upper estimate of the width of a letter at 12 pixels
LONGEST = 22  # letters of a name on an axis
TOP, RIGHT = 10, 14
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
RAISED = dict(zip("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True))
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, and its ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False
    is_ordinal: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1; values outside lie on the border."""
        low, high, at = (
            math.log10(v) if self.is_log else v
            for v in (self.low, self.high, min(max(value, self.low), self.high))
        )
        return (at - low) / (high - low)


UNIT = Scale(0.0, 1.0, tuple((i / 5, f"{i / 5:g}") for i in range(6)))  # precision and recall


def linear(values: Iterable[float], n_ticks: int = 5) -> Scale:
    """A scale over all finite values that ends at ticks."""
    low, high = _reach(values)
    step = _step(high - low, n_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((i * step, _label(i * step, step)) for i in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def logarithmic(values: Iterable[float]) -> Scale:
    """A scale of powers of ten; values that are not positive are ignored."""
    low, high = _reach(math.log10(v) for v in values if v > 0 and math.isfinite(v))
    first, last = math.floor(low + 1e-9), math.ceil(high - 1e-9)
    every = -(-(last - first) // 5)  # few enough that labels do not touch
    ticks = tuple((10.0**e, _power(e)) for e in range(first, last + 1, every))
    return Scale(10.0**first, 10.0**last, ticks, is_log=True)


def ordinal(names: Sequence[str]) -> Scale:
    """Names at equal steps, with half a step before the first and after the last."""
    ticks = tuple((float(i), name) for i, name in enumerate(names))
    return Scale(-0.5, max(len(names), 1) - 0.5, ticks, is_ordinal=True)


@dataclass(frozen=True, slots=True)
class Frame:
    """A chart's size, its two scales and their names; ``title`` stands above the chart."""

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
        """Left edge of the plot: right of the longest tick and of the axis' name."""
        longest = max((len(shortened(name, self.longest)) for _, name in self.y.ticks), default=0)
        return 10 + LETTER * longest + (18 if self.y_label else 0)

    @property
    def right(self) -> float:
        """Right edge of the plot."""
        last = len(self.x.ticks[-1][1]) if self.x.ticks and not self.x.is_ordinal else 0
        return self.width - max(RIGHT, LETTER * last / 2 + 2)

    @property
    def top(self) -> float:
        """Top edge of the plot: below the title."""
        return TOP + (20 if self.title else 0)

    @property
    def bottom(self) -> float:
        """Bottom edge of the plot: above the ticks and the axis' name."""
        return self.height - 24 - (20 if self.x_label else 0)

    def across(self, value: float) -> float:
        """The x coordinate of a value."""
        return self.left + self.x.share(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        """The y coordinate of a value."""
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def draw(self, label: str, *content: str | None) -> Panel:
        """The chart with this content; ``label`` describes it for screen readers."""
        return Panel.of(
            self.width, self.height, label, self._grid(), *content, self._ticks(), self._names()
        )

    def _grid(self) -> Markup:
        lines = []
        if not self.y.is_ordinal:
            lines += [
                f"M{self.left:.1f} {self.up(v):.1f}H{self.right:.1f}" for v, _ in self.y.ticks
            ]
        if not self.x.is_ordinal:
            lines += [
                f"M{self.across(v):.1f} {self.top:.1f}V{self.bottom:.1f}" for v, _ in self.x.ticks
            ]
        return tag("path", class_="grid", d="".join(lines))

    def _ticks(self) -> Markup:
        below = [
            self._written(name, self.across(v), self.bottom + 18, "middle")
            for v, name in self.x.ticks
        ]
        beside = [
            self._written(name, self.left - 7, self.up(v) + 4, "end") for v, name in self.y.ticks
        ]
        return tag("g", *below, *beside, class_="ticks")

    def _written(self, name: str, x: float, y: float, anchor: str) -> Markup:
        short = shortened(name, self.longest)
        whole = None if short == name else tag("title", name)
        return tag("text", short, whole, x=_at(x), y=_at(y), text_anchor=anchor)

    def _names(self) -> Markup:
        middle = (self.left + self.right) / 2
        y = (self.top + self.bottom) / 2
        return join(
            _line(self.title, "heading", x=_at(self.left), y=16),
            _line(self.x_label, "axis", x=_at(middle), y=self.height - 5, text_anchor="middle"),
            _line(
                self.y_label,
                "axis upright",
                text_anchor="middle",
                transform=f"translate(13 {y:.0f}) rotate(-90)",
            ),
        )


def shortened(name: str, longest: int = LONGEST) -> str:
    """The name, or its beginning if it is too long for an axis."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def line(frame: Frame, at: Iterable[Point], style: Style) -> Markup:
    """A line through the points, interrupted where a point is not finite."""
    d, is_drawing = "", False
    for x, y in at:
        if not _is_finite(x, y):
            is_drawing = False
            continue
        d += f"{'L' if is_drawing else 'M'}{frame.across(x):.1f} {frame.up(y):.1f}"
        is_drawing = True
    return tag("path", class_=f"line {style.colour}", d=d, stroke_dasharray=style.dash or None)


def band(frame: Frame, at: Sequence[tuple[float, float, float]], style: Style) -> Markup | None:
    """The area between a low and a high value at each x."""
    whole = [(x, low, high) for x, low, high in at if _is_finite(x, low, high)]
    if len(whole) < 2:
        return None
    there = [(x, high) for x, _, high in whole]
    back = [(x, low) for x, low, _ in reversed(whole)]
    corners = " ".join(f"{frame.across(x):.1f},{frame.up(y):.1f}" for x, y in there + back)
    return tag("polygon", class_=f"band {style.colour}", points=corners)


def points(
    frame: Frame, at: Sequence[Point], style: Style, titles: Sequence[str] = (), size: float = 3.6
) -> Markup:
    """A marker at each finite point; ``titles`` are the tooltips."""
    tooltips: Sequence[str | None] = titles or [None] * len(at)
    return join(
        *(
            marker(style, frame.across(x), frame.up(y), size=size, title=title)
            for (x, y), title in zip(at, tooltips, strict=True)
            if _is_finite(x, y)
        )
    )


def span(frame: Frame, low: Point, high: Point, style: Style, *, width: float = 7) -> Markup | None:
    """A thick bar from one point to another."""
    if not _is_finite(*low, *high):
        return None
    (x1, y1), (x2, y2) = ((frame.across(x), frame.up(y)) for x, y in (low, high))
    return tag(
        "path",
        class_=f"span {style.colour}",
        d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}",
        stroke_width=width,
    )


def tall_mark(frame: Frame, at: Point, style: Style, title: str) -> Markup | None:
    """An upright stroke at a point, for a second value in a row."""
    if not _is_finite(*at):
        return None
    x, y = frame.across(at[0]), frame.up(at[1])
    stroke = f"M{x:.1f} {y - 8:.1f}V{y + 8:.1f}"
    return tag("path", tag("title", title), class_=f"stroke {style.colour}", d=stroke)


def box_plot(
    frame: Frame, x: float, five: Sequence[float], style: Style, title: str, *, width: float = 18
) -> Markup | None:
    """A box with whiskers at x: ``five`` are its low end, three quartiles and its high end."""
    if not _is_finite(x, *five):
        return None
    low, first, median, third, high = map(frame.up, five)
    at, left, cap = frame.across(x), frame.across(x) - width / 2, width / 4
    whiskers = "".join(
        f"M{at:.1f} {edge:.1f}V{end:.1f}M{at - cap:.1f} {end:.1f}h{2 * cap:.1f}"
        for edge, end in ((first, low), (third, high))
    )
    return tag(
        "g",
        tag("title", title),
        tag("path", class_=f"whisker {style.colour}", d=whiskers),
        tag(
            "rect",
            class_=f"box {style.colour}",
            x=_at(left),
            y=_at(third),
            width=width,
            height=f"{max(first - third, 1.0):.1f}",
        ),
        tag("path", class_=f"line {style.colour}", d=f"M{left:.1f} {median:.1f}h{width:g}"),
    )


def across_line(frame: Frame, value: float, style: Style, title: str) -> Markup | None:
    """A horizontal line over the whole width at a value."""
    if not _is_finite(value):
        return None
    return tag(
        "path",
        tag("title", title),
        class_=f"line {style.colour}",
        d=f"M{frame.left:.1f} {frame.up(value):.1f}H{frame.right:.1f}",
        stroke_dasharray=style.dash or None,
    )


def diagonal(frame: Frame) -> Markup:
    """The line where both axes have the same value."""
    low = max(frame.x.low, frame.y.low)
    high = min(frame.x.high, frame.y.high)
    if low >= high:
        return join()
    (x1, y1), (x2, y2) = ((frame.across(v), frame.up(v)) for v in (low, high))
    return tag("path", class_="diagonal", d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")


def row_rules(frame: Frame) -> Markup:
    """A thin line along each row of an ordinal axis, to guide the eye."""
    rows = [f"M{frame.left:.1f} {frame.up(v):.1f}H{frame.right:.1f}" for v, _ in frame.y.ticks]
    return tag("path", class_="grid", d="".join(rows))


def heat_map(
    frame: Frame,
    label: str,
    values: Sequence[Sequence[float]],
    titles: Sequence[Sequence[str]],
    largest: float,
) -> Panel:
    """Cells shaded from 0 to the largest value, the first row at the bottom; NaN is blank.

    ``titles`` are the tooltips.
    """
    cells = [
        _cell(frame, (i, j), value, value / (largest or 1.0), titles[i][j])
        for i, row in enumerate(values)
        for j, value in enumerate(row)
        if math.isfinite(value)
    ]
    return frame.draw(label, *cells)


def _line(words: str, kind: str, **attributes: str | float) -> Markup | None:
    return tag("text", words, class_=kind, **attributes) if words else None


def _at(value: float) -> str:
    return f"{value:.1f}"


def _reach(values: Iterable[float]) -> tuple[float, float]:
    """The smallest and the largest finite value, moved apart if they are equal."""
    finite = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high - low > 1e-9 * max(1.0, abs(high)):
        return low, high
    apart = 0.1 * abs(high) or 1.0
    return low - apart, high + apart


def _step(length: float, n_ticks: int) -> float:
    """The smallest round step that needs at most ``n_ticks`` ticks."""
    rough = length / n_ticks
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(s * unit for s in STEPS if s * unit >= rough * (1 - 1e-9))


def _label(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if not math.isclose(step * 10**decimals, round(step * 10**decimals)):
        decimals += 1  # 0.25 has more than its first digit
    return f"{value + 0.0:,.{decimals}f}"


def _power(exponent: int) -> str:
    if -4 <= exponent <= 4:
        return f"{10.0**exponent:,g}"
    return "10" + "".join(RAISED[c] for c in str(exponent))


def _cell(frame: Frame, at: tuple[int, int], value: float, share: float, title: str) -> Markup:
    i, j = at
    x, y = frame.across(j - 0.5), frame.up(i + 0.5)
    width, height = frame.across(j + 0.5) - x, frame.up(i - 0.5) - y
    shade = tag(
        "rect",
        tag("title", title),
        class_="cell",
        x=f"{x + 1:.1f}",
        y=f"{y + 1:.1f}",
        width=f"{width - 2:.1f}",
        height=f"{height - 2:.1f}",
        fill_opacity=f"{0.08 + 0.82 * share:.2f}",
    )
    if width < 30:
        return shade
    number = tag(
        "text",
        f"{value:.2f}".replace("0.", "."),
        class_="strong" if share > 0.55 else None,
        x=f"{x + width / 2:.1f}",
        y=f"{y + height / 2 + 4:.1f}",
        text_anchor="middle",
    )
    return join(shade, number)


def _is_finite(*values: float) -> bool:
    return all(math.isfinite(v) for v in values)
