"""Search: which points of a method's grid are tried, and which of them is chosen."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.checks import check_choice, check_count
from bittern.errors import InputError
from bittern.experiments.paradigm import check_different
from bittern.metrics import parse

if TYPE_CHECKING:
    from bittern.experiments.record import Record

HELD_OUT, TRAIN = "held-out", "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How grids are searched: on training rows alone, with one choice per method and length.

    ``points`` is the largest number of points per method and length; None tries the whole grid.
    ``runs`` are those whose training rows are used.  In each of ``repeats``, another share
    ``held_out`` of the rows is held out; if the split has validation sets, they are used instead.
    Held-out rows are queries; ``database`` says whether they search each other or the rows that the
    trial was fitted on.  ``metric`` is the protocol's main metric by default.
    """

    points: int | None = None
    runs: tuple[int, ...] = (0,)
    repeats: int = 1
    held_out: float = 0.2
    database: str = HELD_OUT
    metric: str | None = None

    def __post_init__(self) -> None:
        if self.points is not None:
            check_count(self.points, "search.points")
        check_count(self.repeats, "search.repeats")
        if not self.runs:
            raise InputError("search.runs must name at least one run, such as 0.")
        check_different(self.runs, "search.runs")
        for run in self.runs:
            check_count(run, "search.runs", least=0)
        if not 0 < self.held_out < 1:
            raise InputError(f"search.held_out must be between 0 and 1, got {self.held_out}.")
        check_choice(self.database, "search.database", (HELD_OUT, TRAIN))
        if self.metric is not None and parse(self.metric).tie_rule == "trec":
            raise InputError(f"search.metric: {self.metric} is for runs read from TREC files.")


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen parameters, and every point that was tried with its score."""

    parameters: dict[str, Any]
    tried: tuple[dict[str, Any], ...] = ()


def choose(tried: Sequence[dict[str, Any]]) -> Choice:
    """The point with the best score; the first of equals, and NaN is the worst."""
    scores = [one["score"] for one in tried]
    defined = [-math.inf if s is None or math.isnan(s) else s for s in scores]
    return Choice(tried[int(np.argmax(defined))]["parameters"], tuple(tried))


def tried_points(trials: Sequence[Record]) -> list[dict[str, Any]]:
    """Each point of these trials with its mean score over runs and repeats, in their order."""
    points: dict[str, dict[str, Any]] = {}
    scores: dict[str, list[float]] = {}
    for trial in trials:
        (value,) = trial.values.values()
        key = json.dumps(trial.parameters, sort_keys=True)
        points.setdefault(key, trial.parameters)
        scores.setdefault(key, []).append(value.mean)
    return [
        {"parameters": point, "score": float(np.mean(scores[key]))} for key, point in points.items()
    ]


def draw_points(
    grid: Mapping[str, Sequence[Any]], n: int | None, random_state: int
) -> list[dict[str, Any]]:
    """``n`` different points of the grid, at random; all points, in order, if it has no more.

    The values of a parameter come from a random sequence of its own, seeded by its name.  So
    methods that share parameters meet the same values of them, draw by draw.  A draw that gives a
    point again is skipped, and a larger ``n`` continues the same sequence.
    """
    if n is None or n >= math.prod(len(values) for values in grid.values()):
        return [dict(zip(grid, one, strict=True)) for one in itertools.product(*grid.values())]
    streams = {name: np.random.default_rng([random_state, *name.encode()]) for name in grid}
    places: dict[tuple[int, ...], None] = {}  # in order of first draw
    while len(places) < n:
        drawn = (int(streams[name].random() * len(values)) for name, values in grid.items())
        places[tuple(drawn)] = None
    return [
        {name: values[i] for (name, values), i in zip(grid.items(), one, strict=True)}
        for one in places
    ]


def point_text(point: Mapping[str, Any]) -> str:
    """A point in words, such as ``dropout = 0.5, network = mlp``."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in point.items())


def value_text(value: Any) -> str:
    """A parameter's value in few letters: 0.001, mlp, [1, 4]."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)
