"""Searches: how the score of held-out training rows depends on a method's parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bittern.checks import is_number
from bittern.experiments.protocol import Method
from bittern.experiments.records import Records
from bittern.experiments.search import choose, tried_points


@dataclass(frozen=True, slots=True)
class Tried:
    """A point of a grid, and its mean score over runs and repeats."""

    point: dict[str, Any]  # of the grid's parameters
    score: float  # NaN if undefined


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search found for a method at a length: all its points, and the one it chose.

    ``grid`` has all values of each parameter, also of points that were not drawn.  ``n_missing``
    trials have no result yet; until then, ``chosen`` is the best so far.
    """

    method: str
    n_bits: int | None
    metric: str
    tried: tuple[Tried, ...]
    chosen: Tried
    grid: dict[str, list[Any]]
    n_missing: int = 0

    @property
    def size(self) -> int:
        """The number of points of the whole grid."""
        return math.prod(len(values) for values in self.grid.values())

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and the highest score; NaN if none is defined."""
        scores = [one.score for one in self.tried if not math.isnan(one.score)]
        return (min(scores), max(scores)) if scores else (math.nan, math.nan)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of the grid that take more than one value."""
        return tuple(name for name, values in self.grid.items() if len(values) > 1)

    def values(self, parameter: str) -> list[Any]:
        """The values of a parameter: numbers ascending, others in the grid's order."""
        values = self.grid[parameter]
        return sorted(values) if all(map(is_number, values)) else values

    def best_with(self, parameter: str, value: Any) -> float:
        """The best score among points with this value of a parameter; NaN if undefined."""
        scores = [one.score for one in self.tried if one.point[parameter] == value]
        return max((score for score in scores if not math.isnan(score)), default=math.nan)


def search_outcomes(records: Records) -> tuple[SearchOutcome, ...]:
    """The outcome of each method with trials, at each length; in the protocol's order."""
    protocol = records.protocol
    found = [
        _outcome(records, method, n_bits)
        for method in protocol.method
        if method.grid
        for n_bits in protocol.kind.lengths(protocol, method)
    ]
    return tuple(one for one in found if one is not None)


def _outcome(records: Records, method: Method, n_bits: int | None) -> SearchOutcome | None:
    trials = [t for t in records.trials if (t.method, t.n_bits) == (method.label, n_bits)]
    if not trials:
        return None
    points = tried_points(trials)
    tried = tuple(Tried(_grid_part(method, one["parameters"]), one["score"]) for one in points)
    chosen = _grid_part(method, choose(points).parameters)
    missing = [
        t for t in records.missing_trials if (t.method.label, t.n_bits) == (method.label, n_bits)
    ]
    return SearchOutcome(
        method.label,
        n_bits,
        records.protocol.search_metric,
        tried,
        next(one for one in tried if one.point == chosen),
        method.grid,
        len(missing),
    )


def _grid_part(method: Method, parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in method.grid}
