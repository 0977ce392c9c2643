"""Figures of learning: what a search of parameters found, and how trainings went."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bittern.analysis import Analysis, SearchOutcome, Training, Tried
from bittern.experiments.search import TRAIN, point_text, value_text
from bittern.report.charts import (
    Figure,
    Frame,
    Panel,
    Scale,
    Style,
    join,
    line,
    linear,
    ordinal,
    points,
    styles_of,
    tag,
)
from bittern.report.results_table import bits_of, number

ASIDE = 0.5  # how far lengths stand apart, of a step between values
MOST_TICKS = 6  # of the epochs
FEW = 15  # epochs that are also shown as points
CURVES = {  # of a training, by their names in records
    "train_exact": ("training rows, exact", Style("c0", "")),
    "train_relaxed": ("training rows, relaxed", Style("c0", "", "6 3")),
    "held_out_exact": ("held-out rows, exact", Style("c1", "")),
    "held_out_relaxed": ("held-out rows, relaxed", Style("c1", "", "6 3")),
}


def search_figure(analysis: Analysis) -> Figure:
    """A panel per method and parameter: the score of every point, and the best per value."""
    by_method: dict[str, list[SearchOutcome]] = {}
    for outcome in analysis.searches:
        by_method.setdefault(outcome.method, []).append(outcome)
    lengths = dict.fromkeys(outcome.n_bits for outcome in analysis.searches)
    styles = styles_of([bits_of(n_bits) for n_bits in lengths])
    panels = [
        _parameter_panel(outcomes, parameter, styles)
        for outcomes in by_method.values()
        for parameter in outcomes[0].parameters
    ]
    search = analysis.protocol.search
    assert search is not None
    where = "the rows that were fitted" if search.database == TRAIN else "the others"
    caption = (
        f"{analysis.protocol.search_metric} of held-out rows, each searched among "
        f"{where}, against each parameter of the grids. A small point is a combination of "
        "parameters; the line joins the best one of each value. The large point is the chosen "
        "combination. A line that rises to the border asks for more values there; a flat one says "
        "that the parameter hardly matters."
    )
    return Figure(panels, styles, "Search of the parameters", [caption])


def training_figure(analysis: Analysis) -> Figure:
    """A panel per method: exact and relaxed metric after each epoch, at its middle length."""
    trainings = analysis.trainings
    present = [name for name in CURVES if any(name in one.curves for one in trainings)]
    caption = (
        "The metric after each epoch, without dropout. A gap between the solid lines, training "
        "rows above held-out rows, is overfitting; a low line of training rows is underfitting. A "
        "gap between a solid and a dashed line is that between the metric and its relaxation, "
        "which has gradients."
    )
    trials = [one.method for one in trainings if one.is_trial]
    if trials:
        caption += f" Shown is the trial of the chosen parameters: {', '.join(trials)}."
    return Figure(
        [_training_panel(one) for one in trainings],
        dict(CURVES[name] for name in present),
        "Training",
        [caption],
    )


def _parameter_panel(
    outcomes: Sequence[SearchOutcome], parameter: str, styles: dict[str, Style]
) -> Panel:
    first = outcomes[0]
    values = first.values(parameter)
    scores = [one.score for outcome in outcomes for one in outcome.tried]
    frame = Frame(
        ordinal([value_text(value) for value in values]),
        linear(scores),
        parameter,
        first.metric,
        first.method,
    )
    drawn = [
        _length(frame, outcome, parameter, values, _aside(i, len(outcomes)), styles)
        for i, outcome in enumerate(outcomes)
    ]
    best = "; ".join(
        f"{bits_of(outcome.n_bits)}: {value_text(outcome.chosen.point[parameter])} is chosen"
        for outcome in outcomes
    )
    label = f"{first.metric} against {parameter} of {first.method}. {best}."
    return frame.draw(label, *drawn)


def _length(
    frame: Frame,
    outcome: SearchOutcome,
    parameter: str,
    values: Sequence[Any],
    aside: float,
    styles: dict[str, Style],
) -> Markup:
    """The points of a length, a little aside of the other lengths."""
    style = styles[bits_of(outcome.n_bits)]
    best = [(i + aside, outcome.best_with(parameter, value)) for i, value in enumerate(values)]
    drawn = [(x, score) for x, score in best if not math.isnan(score)]  # others were not tried
    others = [one for one in outcome.tried if one is not outcome.chosen]
    chosen = outcome.chosen
    at = [(values.index(one.point[parameter]) + aside, one.score) for one in others]
    return join(
        tag("g", line(frame, drawn, style), class_="faint"),
        points(frame, at, style, [_title(outcome, one) for one in others], size=2.8),
        points(
            frame,
            [(values.index(chosen.point[parameter]) + aside, chosen.score)],
            style,
            [f"chosen: {_title(outcome, chosen)}"],
            size=5.5,
        ),
    )


def _title(outcome: SearchOutcome, one: Tried) -> str:
    return f"{bits_of(outcome.n_bits)}, {point_text(one.point)}: {number(one.score)}"


def _aside(i: int, n: int) -> float:
    return ASIDE * ((i + 0.5) / n - 0.5)


def _training_panel(training: Training) -> Panel:
    curves = {name: training.curves[name] for name in CURVES if name in training.curves}
    longest = max(map(len, curves.values()))
    frame = Frame(
        _epochs(longest),
        linear([value for one in curves.values() for value in one]),
        "epoch",
        "metric",
        f"{training.method}, {bits_of(training.n_bits)}",
    )
    drawn = [_curve(frame, name, values) for name, values in curves.items()]
    ends = "; ".join(f"{CURVES[name][0]} {number(values[-1])}" for name, values in curves.items())
    label = f"Training of {training.method}, {bits_of(training.n_bits)}. After the last epoch: "
    return frame.draw(f"{label}{ends}.", *drawn)


def _epochs(n: int) -> Scale:
    """From 0 to n, with a few ticks at whole epochs."""
    steps = (first * 10**power for power in itertools.count() for first in (1, 2, 5))
    step = next(step for step in steps if n <= MOST_TICKS * step)
    return Scale(0.0, float(n), tuple((float(i), f"{i:,}") for i in range(0, n + 1, step)))


def _curve(frame: Frame, name: str, values: Sequence[float]) -> Markup:
    words, style = CURVES[name]
    at = [(float(epoch), value) for epoch, value in enumerate(values, start=1)]
    dots: Markup | None = None
    if len(values) <= FEW:
        titles = [f"{words}, epoch {epoch:g}: {number(value)}" for epoch, value in at]
        dots = points(frame, at, Style(style.colour, "circle"), titles, size=2.6)
    return join(line(frame, at, style), dots)
