"""Overlap of two ground truths: how far they call the same items relevant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_type, row_blocks
from bittern.errors import InputError
from bittern.metrics.precision import ratio
from bittern.relevance import Relevance


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Per query, how many items are relevant by two ground truths, and by both.

    A ratio is NaN for queries where it would divide by zero.  *By chance* is the expectation if the
    second ground truth called as many items relevant as it does, but drew them at random.
    """

    n_items: NDArray[np.int64]  # (n_queries,) the database without excluded items
    first: NDArray[np.int64]  # (n_queries,)
    second: NDArray[np.int64]  # (n_queries,)
    both: NDArray[np.int64]  # (n_queries,)

    @property
    def share(self) -> Float64Array:
        """Which part of the first's relevant items is relevant by the second too."""
        return ratio(self.both, self.first)

    @property
    def share_by_chance(self) -> Float64Array:
        """The same by chance: the part of all items that is relevant by the second."""
        return np.where(self.first > 0, ratio(self.second, self.n_items), np.nan)

    @property
    def jaccard(self) -> Float64Array:
        """Items relevant by both, of those relevant by either."""
        return ratio(self.both, self.first + self.second - self.both)

    @property
    def f1(self) -> Float64Array:
        """Harmonic mean of the shares of either side; also called Dice's coefficient."""
        return ratio(2 * self.both, self.first + self.second)

    @property
    def f1_by_chance(self) -> Float64Array:
        """The same by chance; the expected number of shared items is that of a hypergeometric."""
        expected = self.first * ratio(self.second, self.n_items)
        return ratio(2 * expected, self.first + self.second)


def truth_overlap(first: Relevance, second: Relevance) -> Overlap:
    """Count, per query, the items that are relevant by either and by both; gains do not matter."""
    for side in (first, second):
        check_type(side, Relevance, "truth_overlap: each ground truth")
    if (first.n_queries, first.n_database) != (second.n_queries, second.n_database):
        raise InputError(
            "truth_overlap: both ground truths must have the same queries and database, got "
            f"{first.n_queries:,} × {first.n_database:,} and "
            f"{second.n_queries:,} × {second.n_database:,}."
        )
    n, excluded = first.n_queries, first.excluded
    if not np.array_equal(_positions(first), _positions(second)):
        raise InputError("truth_overlap: both ground truths must exclude the same items.")
    both = np.zeros(n, np.int64)
    for rows in row_blocks(n, 32 * first.n_database):
        shared = (first.block(rows) > 0) & (second.block(rows) > 0)
        if excluded is not None:
            inside = np.flatnonzero(excluded[rows] >= 0)
            shared[inside, excluded[rows][inside]] = False
        both[rows] = shared.sum(axis=1)
    n_items = first.n_database - (_positions(first) >= 0)
    return Overlap(n_items, first.n_relevant, second.n_relevant, both)


def _positions(relevance: Relevance) -> NDArray[np.int64]:
    if relevance.excluded is None:
        return np.full(relevance.n_queries, -1)
    return relevance.excluded
