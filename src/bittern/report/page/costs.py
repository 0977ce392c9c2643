"""The section on cost: seconds and memory against quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bittern.analysis import Cost, costs
from bittern.report.charts import Drawing, Frame, Plate, line, linear, logarithmic, points
from bittern.report.charts.styles import REFERENCE
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import bits_of, figure, folded, number, plated, section, table
from bittern.report.page.view import View

__all__ = ["cost_and_quality", "cost_plate"]

MEGA = 1 << 20
Measure = Callable[[Cost], float]
# What is paid, on a logarithmic scale, and how it is read.
TIMES: dict[str, Measure] = {
    "fit": lambda cost: cost.seconds.get("fit", math.nan),
    "encode": lambda cost: cost.seconds.get("encode", math.nan),
}


def cost_and_quality(view: View) -> Html | None:
    """What quality cost; nothing where no cost is known."""
    plate = cost_plate(view)
    if plate is None:
        return None
    return section(
        "Time and memory",
        "costs",
        figure(
            plated(plate),
            f"Mean {view.main_metric} over runs against what it cost: up and to the left is "
            "better. A line joins the lengths of a method, the longest with the largest point. "
            "Seconds are a mean over runs on the machine that ran them, perhaps beside other work; "
            "memory is the most that the process held.",
        ),
        folded("The same as a table", _listed(costs(view.records))),
    )


def cost_plate(view: View) -> Plate | None:
    """Seconds to fit and to encode, and peak memory, against the main metric."""
    found = costs(view.records)
    drawn = [_panel(view, found, f"seconds to {name}", read) for name, read in TIMES.items()]
    drawn.append(_panel(view, found, "peak memory (MB)", _memory, is_log=False))
    shown = [one for one in drawn if one is not None]
    styles = {m: s for m, s in view.styles.items() if s != REFERENCE}
    return Plate(shown, styles or view.styles) if shown else None


def _memory(cost: Cost) -> float:
    return cost.peak_memory / MEGA if cost.peak_memory else math.nan


def _panel(
    view: View, found: Sequence[Cost], name: str, read: Measure, *, is_log: bool = True
) -> Drawing | None:
    usable = [c for c in found if _is_drawn(c, read)]
    usable = [c for c in usable if c.method in view.coded or not view.coded]
    if not usable:
        return None
    paid = [read(cost) for cost in usable]
    x = logarithmic(paid) if is_log else linear([0.0, *paid], n_ticks=4)
    frame = Frame(x, linear([c.mean for c in usable]), name, view.main_metric)
    drawn = [
        _one_method(frame, view, [c for c in usable if c.method == method], read)
        for method in view.records.methods
    ]
    label = f"{view.main_metric} against {name}. " + "; ".join(_told(c, read) for c in usable) + "."
    return frame.draw(label, *drawn)


def _one_method(frame: Frame, view: View, found: Sequence[Cost], read: Measure) -> Html | None:
    if not found:
        return None
    style = view.styles[found[0].method]
    at = [(read(cost), cost.mean) for cost in found]
    largest = max(len(found) - 1, 1)
    return fragment(
        Html.tag("g", line(frame, at, style), class_="faint"),
        *(
            points(frame, [place], style, [_told(cost, read)], size=3 + 3 * i / largest)
            for i, (place, cost) in enumerate(zip(at, found, strict=True))
        ),
    )


def _is_drawn(cost: Cost, read: Measure) -> bool:
    return math.isfinite(cost.mean) and math.isfinite(read(cost)) and read(cost) > 0


def _told(cost: Cost, read: Measure) -> str:
    return f"{cost.method}, {bits_of(cost.n_bits)}: {number(cost.mean)} for {read(cost):.3g}"


def _listed(found: Sequence[Cost]) -> Html:
    stages = [
        s for s in ("tune", "fit", "encode", "evaluate") if any(s in c.seconds for c in found)
    ]
    rows = [
        (
            cost.method,
            bits_of(cost.n_bits),
            *(_seconds(cost.seconds.get(stage, math.nan)) for stage in stages),
            f"{cost.peak_memory / MEGA:,.0f}",
            number(cost.mean),
        )
        for cost in found
    ]
    header = ["method", "length", *(f"{stage} (s)" for stage in stages), "memory (MB)", "quality"]
    return table("Mean seconds of each stage, and peak memory", header, rows)


def _seconds(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:,.1f}"
