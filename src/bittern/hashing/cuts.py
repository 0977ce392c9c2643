"""Cuts of sorted values into regions: least squares, and neighbours in the same region."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float64Array, PositionArray

MAX_STEPS = 50  # of Dinkelbach's method, which needs about five


@dataclass(frozen=True, eq=False)
class Levels:
    """Different values in increasing order; values that only rounding tells apart are one level.

    A cut c has the first c levels below it.
    """

    of_row: PositionArray  # (n,) the level of each value
    low: Float64Array  # (n_levels,) smallest and largest value of each level
    high: Float64Array
    weight: Float64Array  # (n_levels,) number of values
    mean: Float64Array  # (n_levels,) minus the mean of all values

    @classmethod
    def of(cls, z: NDArray[Any], rounding: float) -> Levels:
        """The levels of values; those at most ``rounding`` apart are one."""
        order = np.argsort(z, kind="stable")
        inorder = z[order].astype(np.float64)
        first = np.flatnonzero(np.diff(inorder, prepend=-np.inf) > rounding)
        last = np.append(first[1:], len(z)) - 1
        weight = np.diff(np.append(first, len(z))).astype(np.float64)
        of_row = np.empty(len(z), np.intp)
        of_row[order] = np.repeat(np.arange(len(first)), weight.astype(np.intp))
        sums = np.add.reduceat(inorder - inorder.mean(), first)
        return cls(of_row, inorder[first], inorder[last], weight, sums / weight)

    def __len__(self) -> int:
        return len(self.low)

    def thresholds(self, cuts: PositionArray, n: int) -> Float64Array:
        """The values midway between the levels of each cut, and ∞ for the rest of n."""
        found = (self.high[cuts - 1] + self.low[cuts]) / 2
        return np.concatenate((found, np.full(n - len(cuts), np.inf)))

    def square_errors(self, low: Any, high: Any) -> Any:
        """The squared error of levels ``low`` … ``high - 1`` around their mean."""
        weight, first, second = self.sums
        n = weight[high] - weight[low]
        total = first[high] - first[low]
        return second[high] - second[low] - total**2 / np.where(n > 0, n, 1)

    @cached_property
    def sums(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Weights, values and squares, summed over the first 0 … n_levels levels."""
        powers = (self.weight, self.weight * self.mean, self.weight * self.mean**2)
        weight, first, second = (np.concatenate(([0.0], np.cumsum(one))) for one in powers)
        return weight, first, second


def least_squares_cuts(levels: Levels, n_cuts: int) -> PositionArray:
    """At most ``n_cuts`` cuts for which the squared error around the regions' means is least.

    This is k-means in one dimension, solved exactly by dynamic programming [Wang-Song-2011].
    """
    n_cuts = min(n_cuts, len(levels) - 1)
    return _traced(_least_squares(*levels.sums, n_cuts), n_cuts)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """How well regions keep similar rows together."""

    levels: Levels
    similar: NDArray[
        np.int32
    ]  # (n_levels + 1, n_levels + 1) similar rows in the first a × b levels
    beta: float

    @classmethod
    def of(
        cls, levels: Levels, pairs: tuple[PositionArray, PositionArray], beta: float
    ) -> Neighbourhood:
        """From the two rows of each similar pair; each pair is listed in both orders."""
        g = len(levels)
        place = levels.of_row[pairs[0]] * g + levels.of_row[pairs[1]]
        sums = np.zeros((g + 1, g + 1), np.int32)
        sums[1:, 1:] = np.bincount(place, minlength=g * g).reshape(g, g)
        for axis in (0, 1):
            np.cumsum(sums, axis=axis, out=sums)
        return cls(levels, sums, beta)

    def f_measure(self, cuts: PositionArray) -> float:
        """F of "in the same region" as a prediction of "similar"; 0 if no rows are similar."""
        edges = np.concatenate(([0], cuts, [len(self.levels)]))
        hits, pairs = self.pairs(edges[:-1], edges[1:])
        return float(self.ratio(hits.sum(), pairs.sum()))

    def pairs(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Twice the number of similar pairs, and of all pairs, in levels ``low`` … ``high - 1``."""
        S, weight = self.similar, self.levels.sums[0]
        n = weight[high] - weight[low]
        return S[high, high] - 2.0 * S[high, low] + S[low, low], n * (n - 1)

    def ratio(self, hits: Any, pairs: Any) -> Any:
        """F from the number of similar and of all pairs in the same region."""
        square, total = self.beta**2, float(self.similar[-1, -1])
        return (1 + square) * hits / np.maximum(square * total + pairs, 1)

    def best_cuts(self, n_cuts: int, start: PositionArray) -> PositionArray:
        r"""At most ``n_cuts`` cuts with the largest F; ``start`` if none is better.

        F is a ratio of two sums over regions.  Dinkelbach's method maximises
        :math:`(1 + \beta^2) \cdot \text{hits} - F \cdot \text{pairs}` by dynamic programming, with
        F the best so far, until that finds nothing better; then F is the largest.
        """
        n_cuts = min(n_cuts, len(self.levels) - 1)
        best, score = start, self.f_measure(start)
        for _ in range(MAX_STEPS):
            table = _most_pairs(self.similar, self.levels.sums[0], 1 + self.beta**2, score, n_cuts)
            cuts = _traced(table, n_cuts)
            found = self.f_measure(cuts)
            if found <= score * (1 + 1e-12):
                break
            best, score = cuts, found
        return best


def _traced(table: NDArray[np.int64], n_cuts: int) -> PositionArray:
    """The cuts of a table ``(n_levels + 1, n_cuts + 1)`` of the last of k cuts; -1 for none."""
    cuts, end = [], len(table) - 1
    for k in range(n_cuts, 0, -1):
        if table[end, k] > 0:
            end = int(table[end, k])
            cuts.append(end)
    return np.array(cuts[::-1], dtype=np.intp)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _least_squares(
    weight: Float64Array, first: Float64Array, second: Float64Array, n_cuts: int
) -> NDArray[np.int64]:
    """The last of k cuts of the first b levels, ``(n_levels + 1, n_cuts + 1)``.

    The best last cut never moves left as b grows, so those of every second b bound the others: the
    search takes O(n log n) steps for each k.
    """
    g = len(weight) - 1
    table = np.zeros((g + 1, n_cuts + 1), np.int64)
    before = np.zeros(g + 1)
    for b in range(1, g + 1):
        before[b] = second[b] - first[b] ** 2 / weight[b]
    for k in range(1, n_cuts + 1):
        cost = np.full(g + 1, np.inf)
        table[k, k] = k
        step = 1
        while k + 2 * step <= g:
            step *= 2
        while step >= 1:
            for b in range(k + step, g + 1, 2 * step):
                most = table[b + step, k] if b + step <= g else b - 1
                for a in range(table[b - step, k], min(most, b - 1) + 1):
                    total = first[b] - first[a]
                    found = before[a] + second[b] - second[a] - total**2 / (weight[b] - weight[a])
                    if found < cost[b]:
                        cost[b], table[b, k] = found, a
            step //= 2
        before = cost
    return table


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _most_pairs(
    similar: NDArray[np.int32], weight: Float64Array, gain: float, price: float, n_cuts: int
) -> NDArray[np.int64]:
    """The last of at most k cuts, for ``gain`` × similar pairs - ``price`` × pairs in a region."""
    g = len(weight) - 1
    table = np.full((g + 1, n_cuts + 1), -1, np.int64)
    value = np.full((g + 1, n_cuts + 1), -np.inf)
    for b in range(1, g + 1):
        for a in range(b):
            n = weight[b] - weight[a]
            hits = float(similar[b, b] - 2 * similar[b, a] + similar[a, a])
            region = gain * hits - price * n * (n - 1)
            if a == 0:
                value[b, 0] = region
            for k in range(1, n_cuts + 1):
                found = value[a, k - 1] + region
                if found > value[b, k]:
                    value[b, k], table[b, k] = found, a
        for k in range(1, n_cuts + 1):
            if value[b, k - 1] >= value[b, k]:
                value[b, k], table[b, k] = value[b, k - 1], -1
    return table
