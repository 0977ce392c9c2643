"""Hash functions made of decision trees: stumps, single trees, and boosted sums of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.hashing.base import Rows
from bittern.hashing.hash_functions import HashFunction, best_cuts, best_first, fit_targets
from bittern.hashing.ranking_lists import BitColumn, Ints, RankingLists
from bittern.hashing.trees import BoostedTrees, Forest

TREE_DEPTH = 4
N_LEVELS = 256  # of a column, between which it may be cut
MAX_STUMPS = 256  # candidate cuts of different columns for a new bit
N_BOOSTED = 50  # trees of a boosted sum
N_FEATURES = 200  # random columns that each boosted tree sees


class Trees:
    """Complete decision trees."""

    depth = TREE_DEPTH

    def __init__(self, X: Rows, lists: RankingLists):
        self.lists = lists
        self.level = np.empty(X.shape[::-1], np.uint8)
        self.cuts = []
        for column, level in zip(X.T, self.level, strict=True):
            self.cuts.append(_cuts(column))
            level[:] = np.searchsorted(self.cuts[-1], column)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[HashFunction]:
        """Functions of positive score, the best first."""
        return fit_targets(self.lists, weights, self._fit, rng)

    def random(self, rng: np.random.Generator) -> HashFunction:
        """A random cut."""
        varying = [f for f, cuts in enumerate(self.cuts) if len(cuts)]
        feature = int(rng.choice(varying)) if varying else 0
        cut = int(rng.integers(len(self.cuts[feature]))) if varying else N_LEVELS - 1
        return self._stump(feature, cut, 0.0)

    def model(self, parameters: list[Forest]) -> dict[str, Any]:
        """The learned attributes."""
        return Forest.joined(parameters).attributes()

    def _fit(self, matrix: Any, target: Float64Array, weights: Float64Array) -> HashFunction:
        feature, cut, leaf, end = _grow_tree(self.level, -(matrix @ target), self.depth)
        bits = leaf[end]
        return HashFunction(
            self._tree(feature, cut, leaf), bits, float(weights @ self.lists.differ(bits))
        )

    def _stump(self, feature: int, cut: int, score: float) -> HashFunction:
        """A single cut."""
        tree = self._tree(np.array([feature]), np.array([cut]), np.array([False, True]))
        return HashFunction(tree, self.level[feature] > cut, score)

    def _tree(self, feature: NDArray[Any], cut: NDArray[Any], leaf: BitColumn) -> Forest:
        """A complete tree whose value is above 0 where the bit is 1."""
        threshold = [
            self.cuts[f][c] if c < len(self.cuts[f]) else np.inf
            for f, c in zip(feature, cut, strict=True)
        ]
        return Forest.complete(feature, np.array(threshold), np.where(leaf, 1.0, -1.0))


class Stumps(Trees):
    """Single cuts of single columns."""

    depth = 1

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[HashFunction]:
        """Functions of positive score, the best first."""
        score, cut = best_cuts(self.level, self.lists.query, self.lists.item, weights)
        some = np.argsort(-score, kind="stable")[:MAX_STUMPS]
        return best_first([self._stump(int(f), int(cut[f]), float(score[f])) for f in some])


class BoostedSums(Trees):
    """Signs of boosted sums of trees."""

    def __init__(self, X: Rows, lists: RankingLists):
        super().__init__(X, lists)
        self.rows = X
        self.boosted = BoostedTrees(X, N_BOOSTED, TREE_DEPTH, N_FEATURES)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[HashFunction]:
        """Functions of positive score, the best first."""
        seed = int(rng.integers(2**31))

        def fit(matrix: Any, target: Float64Array, weights: Float64Array) -> HashFunction:
            pull = -(matrix @ target)
            forest = self.boosted.fit(np.where(pull > 0, 1, -1).astype(np.int8), abs(pull), seed)
            bits = forest.sums(self.rows)[:, 0] > 0
            return HashFunction(forest, bits, float(weights @ self.lists.differ(bits)))

        return fit_targets(self.lists, weights, fit, rng)


def _cuts(column: Rows) -> Float64Array:
    """Cuts between the distinct values, or between quantiles if there are too many."""
    values = np.unique(column).astype(np.float64)
    if len(values) > N_LEVELS:
        quantiles = np.quantile(column, np.linspace(0, 1, N_LEVELS), method="nearest")
        values = np.unique(quantiles).astype(np.float64)
    return values[:-1] / 2 + values[1:] / 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _grow_tree(
    level: NDArray[np.uint8], pull: Float64Array, depth: int
) -> tuple[Ints, Ints, BitColumn, NDArray[np.int64]]:
    """A tree whose leaves differ most in the mean sign of the pull, and the leaves of the rows.

    A split maximises the sum over both sides of (Σ pull)² / Σ |pull|; a node that no split
    improves cuts at 255, which nothing exceeds.
    """
    n_nodes, n = 2**depth - 1, level.shape[1]
    feature, cut = np.zeros(n_nodes, np.int32), np.full(n_nodes, 255, np.int32)
    node = np.zeros(n, np.int64)  # within a generation
    for generation in range(depth):
        first, width = 2**generation - 1, 2**generation
        best = np.zeros(width)
        for f in range(level.shape[0]):
            sums = np.zeros((width, 256, 2))
            for i in range(n):
                sums[node[i], level[f, i], 0] += pull[i]
                sums[node[i], level[f, i], 1] += abs(pull[i])
            for m in range(width):
                gain, c = _best_split(sums[m])
                if gain > best[m]:
                    best[m], feature[first + m], cut[first + m] = gain, f, c
        for i in range(n):
            m = first + node[i]
            node[i] = 2 * node[i] + (level[feature[m], i] > cut[m])
    total = np.zeros(2**depth)
    for i in range(n):
        total[node[i]] += pull[i]
    return feature, cut, total > 0, node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _best_split(sums: Float64Array) -> tuple[float, int]:
    """The gain of the best split of a node, and the level after which it splits."""
    pull, size = sums[:, 0].sum(), sums[:, 1].sum()
    best, cut, left, weight = 0.0, 255, 0.0, 0.0
    if size <= 0:
        return best, cut
    for c in range(255):
        left += sums[c, 0]
        weight += sums[c, 1]
        if 0 < weight < size:
            gain = left**2 / weight + (pull - left) ** 2 / (size - weight) - pull**2 / size
            if gain > best + 1e-12 * size:
                best, cut = gain, c
    return best, cut
