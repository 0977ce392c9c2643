"""Queries with lists of training rows to rank, and the levels of gain in each list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, PositionArray, row_blocks
from bittern.hashing.targets import Targets

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
BitColumn = NDArray[np.bool_]  # a bit of each row


@dataclass(frozen=True, eq=False)
class RankingLists:
    r"""Queries with lists of rows to rank, as pairs; rows of the largest gain come first.

    A list with gains :math:`v_0 < v_1 < \dots` has the levels 1, 2, …: at level l, rows with a gain
    of at least :math:`v_l` are relevant and the others are not.  With :math:`G(v) = 2^v - 1`, the
    discounted cumulative gain of a ranking is a sum over levels of :math:`G(v_l) - G(v_{l-1})`
    times its gain with yes/no relevance at level l, plus the constant
    :math:`G(v_0) \sum_k 1 / \log_2(1 + k)`.  The best order by gain is best at every level.  So,
    with :math:`I_l = \sum_{k \le n_l} 1 / \log_2(1 + k)` for the :math:`n_l` relevant rows and
    :math:`I_0` for all,

    .. math::

        1 - \mathrm{NDCG} = \sum_{l \ge 1} \omega_l (1 - \mathrm{NDCG}_l), \qquad
        \omega_l = \frac{(G(v_l) - G(v_{l-1}))\, I_l}
            {G(v_0) I_0 + \sum_{j \ge 1} (G(v_j) - G(v_{j-1}))\, I_j}.

    These are the weights of the levels for NDCG; for AUC all levels of a list count the same.
    """

    is_ndcg: bool  # otherwise AUC
    rows: PositionArray  # (n_rows,) training rows in any list; below, positions among these
    query: Ints  # (n_pairs,)
    item: Ints  # (n_pairs,) a row in the query's list
    start: Longs  # (n_queries + 1,) pairs of query i are start[i]:start[i + 1]
    first: Longs  # (n_queries + 1,) levels of query i are first[i]:first[i + 1]
    n_relevant: Longs  # (n_levels,) of a list's rows at this level; the highest level comes first
    weight: Float64Array  # (n_levels,)

    @classmethod
    def draw(
        cls,
        targets: Targets,
        is_ndcg: bool,
        n_queries: int,
        most: tuple[int, int],
        rng: np.random.Generator,
    ) -> RankingLists:
        """Random queries, each with at most ``most`` random relevant and irrelevant rows.

        The relevant rows are divided as evenly as possible among the different gains.  If no row
        has gain 0, those of the smallest gain count as irrelevant.  Queries whose other rows all
        have the same gain are left out.
        """
        queries = np.sort(rng.permutation(targets.n)[:n_queries])
        gains_of = targets.gains if is_ndcg else targets.affinity
        pairs, sizes, counts, weights = [np.empty((2, 0), np.intp)], [0], [], [np.empty(0)]
        for some in row_blocks(len(queries), 8 * targets.n):
            block = gains_of(queries[some], np.arange(targets.n))
            for i, gains in zip(queries[some], block, strict=True):
                by_gain = _rows_by_gain(i, gains)
                if len(by_gain) < 2:
                    continue
                chosen = _choose(by_gain, most, rng)
                counts.append(np.cumsum([len(part) for part in chosen.values()][:-1]))
                items = np.concatenate(list(chosen.values()))
                pairs.append(np.stack([np.full(len(items), i), items]))
                sizes.append(len(items))
                weights.append(_level_weights(list(chosen), counts[-1], len(items), is_ndcg))
        both = np.concatenate(pairs, axis=1)
        rows, position = np.unique(both, return_inverse=True) if counts else (queries, both)
        query, item = position.astype(np.int32).reshape(2, -1)
        return cls(
            is_ndcg,
            rows,
            query.copy(),  # one layout, compiled once
            item.copy(),
            np.cumsum(sizes),
            np.cumsum([0, *map(len, counts)]),
            np.concatenate([np.empty(0, np.int64), *counts]),
            np.concatenate(weights),
        )

    @property
    def n_queries(self) -> int:
        """The number of lists."""
        return len(self.start) - 1

    def differ(self, bits: BitColumn) -> BitColumn:
        """Whether a bit differs between the two rows of each pair."""
        return bits[self.query] != bits[self.item]

    def matrix(self, weights: Float64Array) -> Any:
        """Weights of pairs as a sparse symmetric matrix."""
        from scipy.sparse import csr_array

        slot, indices, indptr = self._pattern
        data = np.bincount(slot, np.tile(weights, 2), minlength=len(indices))
        return csr_array((data, indices, indptr), shape=(len(self.rows), len(self.rows)))

    @cached_property
    def _pattern(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The places of the pairs and of their mirror images in the matrix, and its structure."""
        n = len(self.rows)
        there = self.query.astype(np.int64) * n + self.item
        back = self.item.astype(np.int64) * n + self.query
        entries, slot = np.unique(np.concatenate((there, back)), return_inverse=True)
        indptr = np.searchsorted(entries, n * np.arange(n + 1, dtype=np.int64))
        return slot, (entries % max(n, 1)).astype(np.int32), indptr.astype(np.int32)


def _rows_by_gain(i: int, gains: NDArray[Any]) -> dict[float, PositionArray]:
    """The rows of each gain that occurs, largest gain first; without row i itself."""
    values = np.unique(np.delete(gains, i))[::-1]
    groups = {float(value): np.flatnonzero(gains == value) for value in values}
    return {value: group[group != i] for value, group in groups.items()}


def _choose(
    by_gain: dict[float, PositionArray], most: tuple[int, int], rng: np.random.Generator
) -> dict[float, PositionArray]:
    """Random rows of each gain; all gains but the last share ``most[0]``, or drop out."""
    n_relevant, n_irrelevant = most
    *relevant, last = by_gain
    share = {last: min(n_irrelevant, len(by_gain[last]))}
    relevant.sort(key=lambda value: len(by_gain[value]))
    for n_before, value in enumerate(relevant):
        share[value] = min(len(by_gain[value]), n_relevant // (len(relevant) - n_before))
        n_relevant -= share[value]
    return {
        value: rng.choice(group, share[value], replace=False)
        for value, group in by_gain.items()
        if share[value]
    }


def _level_weights(
    values: Sequence[float], n_relevant: Longs, n_items: int, is_ndcg: bool
) -> Float64Array:
    """The share of each level in the loss."""
    if not is_ndcg:
        return np.full(len(n_relevant), 1 / len(n_relevant))
    gain = np.exp2(np.array(values)) - 1
    ideal = np.cumsum(1 / np.log2(2.0 + np.arange(n_items)))
    parts = (gain[:-1] - gain[1:]) * ideal[n_relevant - 1]
    return np.asarray(parts / (gain[-1] * ideal[-1] + parts.sum()))
