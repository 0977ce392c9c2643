"""Figures of quality: against code length, by method, against a parameter, cost, and mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from markupsafe import Markup

from bittern.analysis import Analysis, AreaAndMean, Cost, Summary, Sweep
from bittern.report.charts import (
    REFERENCE,
    Figure,
    Frame,
    Panel,
    Scale,
    Style,
    across_line,
    band,
    diagonal,
    join,
    line,
    linear,
    logarithmic,
    ordinal,
    points,
    row_rules,
    span,
    styles_of,
    tag,
)
from bittern.report.results_table import bits_of, number

MEGABYTE = 1 << 20
ONE_COLOUR = Style("c0", "circle")  # of methods whose rows are named
METHOD_ROW = 22  # pixels
METHOD_LETTERS = 34  # of a method's name
Measure = Callable[[Cost], float]
TIMES: dict[str, Measure] = {
    "fit": lambda cost: cost.seconds.get("fit", math.nan),
    "encode": lambda cost: cost.seconds.get("encode", math.nan),
}


def method_styles(analysis: Analysis) -> dict[str, Style]:
    """The style of each method; those without codes are references if others have codes."""
    return styles_of(analysis.methods, analysis.uncoded if analysis.coded else ())


def bits_figure(analysis: Analysis) -> Figure | None:
    """The main metric against code length; None without codes."""
    if not analysis.coded:
        return None
    panel = bits_panel(analysis, analysis.main_metric, width=480, height=310)
    caption = (
        f"Mean {analysis.main_metric} over runs; the bands are 95 % intervals over "
        f"{_interval_basis(analysis)}. {_reference_caption(analysis)}"
    )
    return Figure(
        [panel],
        method_styles(analysis),
        "Quality against code length",
        [caption],
        layout="beside wide",
    )


def tasks_figure(analysis: Analysis) -> Figure | None:
    """The main metric against code length, a panel per task; None if there is just one."""
    if not analysis.tasks:
        return None
    metric = analysis.main_metric
    panels = [bits_panel(one, metric, task.name) for task, one in analysis.tasks.items()]
    caption = (
        f"Mean {metric} over runs in each direction and setting; the bands are 95 % intervals over "
        f"{_interval_basis(analysis)}. Each panel has its own scale."
    )
    return Figure(panels, method_styles(analysis), "Directions and settings", [caption])


def methods_figure(analysis: Analysis) -> Figure | None:
    """A row per method, the best on top; None if methods have codes."""
    if analysis.coded:
        return None
    found = [s for s in analysis.summaries() if s.mean == s.mean]
    if len(found) < 2:
        return None
    rows = sorted(found, key=lambda s: s.mean)
    frame = Frame(
        linear([value for s in rows for value in (s.mean, *s.interval)]),
        ordinal([s.method for s in rows]),
        analysis.main_metric,
        width=560,
        height=METHOD_ROW * len(rows) + 58,
        longest=METHOD_LETTERS,
    )
    bounds = analysis.records.bounds
    drawn = [row_rules(frame)]
    for y, s in enumerate(rows):
        style = REFERENCE if s.method in bounds else ONE_COLOUR
        low, high = s.interval
        title = f"{s.method}: {number(s.mean)}, {number(low)} to {number(high)}"
        drawn.append(
            join(
                span(frame, (low, y), (high, y), style),
                points(frame, [(s.mean, y)], style, [title], size=4),
            )
        )
    values = "; ".join(f"{s.method} {number(s.mean)}" for s in reversed(rows))
    panel = frame.draw(f"Mean {analysis.main_metric}: {values}.", *drawn)
    caption = (
        f"Mean {analysis.main_metric}, the highest on top; bars are 95 % intervals over "
        f"{_interval_basis(analysis)}."
        + (" Grey methods were chosen by the judgements of the test queries." if bounds else "")
    )
    return Figure([panel], {}, "Quality of each method", [caption], layout="wide")


def parameter_figure(analysis: Analysis) -> Figure | None:
    """The main metric against a parameter, a panel per length; None without a sweep."""
    sweep = analysis.sweep
    if sweep is None:
        return None
    styles = styles_of(list(sweep.series))
    panels = [_parameter_panel(analysis, sweep, styles, n_bits) for n_bits in analysis.columns]
    caption = (
        f"Mean {analysis.main_metric} of methods that differ only in {sweep.parameter}; the bands "
        "are 95 % intervals."
    )
    return Figure(panels, styles, f"Quality against {sweep.parameter}", [caption], layout="wide")


def costs_figure(analysis: Analysis) -> Figure | None:
    """The main metric against seconds to fit and to encode, and against peak memory."""
    styles = method_styles(analysis)
    drawn = [
        _cost_panel(analysis, styles, f"seconds to {name}", measure)
        for name, measure in TIMES.items()
    ]
    drawn.append(_cost_panel(analysis, styles, "peak memory (MB)", _memory, is_log=False))
    panels = [one for one in drawn if one is not None]
    if not panels:
        return None
    caption = (
        f"Mean {analysis.main_metric} over runs against its cost: up and to the left is better. "
        "A line joins the lengths of a method; longer codes have larger points. Seconds are means "
        "over runs on the machine that ran them, which may have been busy; memory is the peak of "
        "the process."
    )
    coded = {method: style for method, style in styles.items() if style != REFERENCE}
    return Figure(panels, coded or styles, "Time and memory", [caption])


def areas_figure(analysis: Analysis) -> Figure | None:
    """AUPRC against mAP, a point per method and length."""
    rows = [r for r in analysis.areas.rows if math.isfinite(r.auprc) and math.isfinite(r.ap)]
    if not rows:
        return None
    styles = method_styles(analysis)
    scale = linear([value for row in rows for value in (row.auprc, row.ap)])
    frame = Frame(scale, scale, "mAP", "AUPRC", width=420, height=370)
    drawn = [diagonal(frame), *(_area_point(frame, analysis, styles, row) for row in rows)]
    label = "AUPRC against mAP. " + "; ".join(map(_area_title, rows)) + "."
    caption = (
        "AUPRC sums counts over queries first, so queries with many relevant items weigh more; "
        "mAP gives each query the same weight. The two are equal on the thin line. Longer codes "
        "have larger points."
    )
    return Figure(
        [frame.draw(label, *drawn)],
        {m: styles[m] for m in styles if any(row.method == m for row in rows)},
        "AUPRC against mAP",
        [analysis.areas.sentence, caption],
        has_lines=False,
        layout="beside",
    )


def bits_panel(
    analysis: Analysis, metric: str, title: str = "", width: int = 360, height: int = 250
) -> Panel:
    """A metric against code length."""
    summaries = analysis.summaries(metric)
    lengths = ordinal([str(n) for n in analysis.lengths])
    frame = Frame(lengths, _fitting(summaries), "bits", metric, title, width, height)
    styles = method_styles(analysis)
    drawn = [
        _method_line(frame, analysis, styles[m], [s for s in summaries if s.method == m])
        for m in (*analysis.uncoded, *analysis.coded)
    ]
    label = f"{metric} against code length for {', '.join(analysis.methods)}."
    return frame.draw(label, *drawn)


def _method_line(
    frame: Frame, analysis: Analysis, style: Style, found: Sequence[Summary]
) -> Markup:
    method = found[0].method
    if method in analysis.uncoded:
        mean = found[0].mean
        return join(across_line(frame, mean, style, f"{method}: {mean:.3f}"))
    places = {n_bits: i for i, n_bits in enumerate(analysis.lengths)}
    found = sorted((s for s in found if s.n_bits in places), key=lambda s: s.n_bits or 0)
    shift = 0.0 if len(places) > 1 else _aside(analysis, method)
    at = [(places[s.n_bits] + shift, s.mean) for s in found if s.n_bits is not None]
    reach = [(x, *s.interval) for (x, _), s in zip(at, found, strict=True)]
    titles = [f"{method}, {bits_of(s.n_bits)}: {s.mean:.3f}" for s in found]
    return join(
        band(frame, reach, style) or _whiskers(frame, reach, style),
        line(frame, at, style),
        points(frame, at, style, titles, size=4),
    )


def _fitting(summaries: Sequence[Summary]) -> Scale:
    """A scale over all means and intervals; intervals are cut to 0 to 1 if all means are inside."""
    means = [s.mean for s in summaries if math.isfinite(s.mean)]
    ends = [end for s in summaries for end in s.interval]
    if all(0 <= mean <= 1 for mean in means):
        ends = [min(max(end, 0.0), 1.0) for end in ends]
    return linear([*means, *ends])


def _aside(analysis: Analysis, method: str) -> float:
    """A method's shift if there is only one length, so that no method hides another."""
    return 0.8 * (analysis.coded.index(method) + 0.5) / len(analysis.coded) - 0.4


def _whiskers(frame: Frame, reach: Iterable[tuple[float, float, float]], style: Style) -> Markup:
    """Intervals as thin bars, if there is no second length for a band."""
    return join(*(span(frame, (x, low), (x, high), style, width=2) for x, low, high in reach))


def _interval_basis(analysis: Analysis) -> str:
    return "runs" if analysis.protocol.runs > 1 else "the queries of the one run"


def _reference_caption(analysis: Analysis) -> str:
    if not analysis.uncoded:
        return ""
    return (
        f"The dashed line is {', '.join(analysis.uncoded)}: the ranking by real distances, without "
        "codes. Codes learned from labels can exceed it."
    )


def _parameter_panel(
    analysis: Analysis, sweep: Sweep, styles: dict[str, Style], n_bits: int | None
) -> Panel:
    metric, is_alone = analysis.main_metric, len(analysis.columns) == 1
    found = sweep.of(analysis.summaries(), n_bits)
    every = [s for series in found.values() for s in series.values()]
    frame = Frame(
        ordinal([f"{value:g}" for value in sweep.values]),
        linear([value for s in every for value in (s.mean, *s.interval)]),
        sweep.parameter,
        metric,
        "" if n_bits is None else bits_of(n_bits),
        width=480 if is_alone else 360,
        height=310 if is_alone else 260,
    )
    drawn = [_series(frame, sweep, styles[name], name, series) for name, series in found.items()]
    label = f"{metric} against {sweep.parameter}, {bits_of(n_bits)}: {', '.join(found)}."
    return frame.draw(label, *drawn)


def _series(
    frame: Frame, sweep: Sweep, style: Style, name: str, series: Mapping[float, Summary]
) -> Markup:
    places = {value: place for place, value in enumerate(sweep.values)}
    at = [(float(places[value]), s.mean) for value, s in series.items()]
    reach = [(float(places[value]), *s.interval) for value, s in series.items()]
    titles = [f"{name}, {sweep.parameter} = {v:g}: {s.mean:.3f}" for v, s in series.items()]
    return join(
        band(frame, reach, style), line(frame, at, style), points(frame, at, style, titles, size=4)
    )


def _cost_panel(
    analysis: Analysis, styles: dict[str, Style], name: str, measure: Measure, is_log: bool = True
) -> Panel | None:
    drawable = [c for c in analysis.costs if math.isfinite(c.mean) and measure(c) > 0]
    usable = [c for c in drawable if c.method in analysis.coded or not analysis.coded]
    if not usable:
        return None
    paid = [measure(cost) for cost in usable]
    x = logarithmic(paid) if is_log else linear([0.0, *paid], n_ticks=4)
    frame = Frame(x, linear([c.mean for c in usable]), name, analysis.main_metric)
    drawn = [
        _cost_line(frame, styles[m], [c for c in usable if c.method == m], measure)
        for m in analysis.methods
    ]
    titles = "; ".join(_cost_title(c, measure) for c in usable)
    return frame.draw(f"{analysis.main_metric} against {name}. {titles}.", *drawn)


def _cost_line(
    frame: Frame, style: Style, found: Sequence[Cost], measure: Measure
) -> Markup | None:
    if not found:
        return None
    at = [(measure(cost), cost.mean) for cost in found]
    largest = max(len(found) - 1, 1)
    return join(
        tag("g", line(frame, at, style), class_="faint"),
        *(
            points(frame, [place], style, [_cost_title(cost, measure)], size=3 + 3 * i / largest)
            for i, (place, cost) in enumerate(zip(at, found, strict=True))
        ),
    )


def _cost_title(cost: Cost, measure: Measure) -> str:
    return f"{cost.method}, {bits_of(cost.n_bits)}: {number(cost.mean)} for {measure(cost):.3g}"


def _memory(cost: Cost) -> float:
    return cost.peak_memory / MEGABYTE if cost.peak_memory else math.nan


def _area_point(
    frame: Frame, analysis: Analysis, styles: dict[str, Style], row: AreaAndMean
) -> Markup:
    lengths = analysis.lengths
    place = lengths.index(row.n_bits) if row.n_bits is not None else 0
    size = 3 + 3 * place / max(len(lengths) - 1, 1)
    return points(frame, [(row.ap, row.auprc)], styles[row.method], [_area_title(row)], size=size)


def _area_title(row: AreaAndMean) -> str:
    return f"{row.method}, {bits_of(row.n_bits)}: mAP {row.ap:.3f}, AUPRC {row.auprc:.3f}"
