"""Graph cuts over pairs of rows choose one bit of all training rows, for FastHash and MACHash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, PositionArray, row_blocks
from bittern.hashing.base import Bits
from bittern.hashing.targets import Targets

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Counts = NDArray[np.uint16]
Signs = NDArray[np.int8]  # -1 and 1, or 0 if not yet known
LossOfShare = Callable[[Float64Array], Float64Array]

#: The losses of a similar and of a dissimilar pair whose codes differ in the share x of their bits.
LOSSES: dict[str, tuple[LossOfShare, LossOfShare]] = {
    "hinge": (lambda x: x**2, lambda x: np.maximum(0.5 - x, 0) ** 2),
    "ksh": (lambda x: 4 * x**2, lambda x: 4 * (1 - x) ** 2),
    "exponential": (lambda x: np.exp(2 * x - 1), lambda x: np.exp(1 - 2 * x)),
}


class AffinityPairs(NamedTuple):
    """Sampled pairs of rows, each listed twice: row i with ``other[first[i]:first[i + 1]]``.

    A tuple, so that compiled functions accept it.
    """

    first: Longs  # (n + 1,)
    other: Ints  # (n_listed,)
    affinity: Float32Array  # (n_listed,) 0 … 1, the same both ways

    @classmethod
    def sample(
        cls, targets: Targets, n_similar: int, n_dissimilar: int, rng: np.random.Generator
    ) -> AffinityPairs:
        """For every row some random others of affinity above 0, and some of affinity 0."""
        n = targets.n
        most = min(n_similar, n), min(n_dissimilar, n)
        order, starts = rng.permutation(n), rng.integers(n, size=n)
        place = np.argsort(order)
        keys, affinities = [], []
        for some in row_blocks(n, 16 * n):
            rows = np.arange(some.start, some.stop)
            block = targets.affinity(rows, order)
            chosen = np.full((len(rows), sum(most)), -1)
            _choose(block, place[some], starts[some], *most, chosen)
            at, which = np.nonzero(chosen >= 0)
            columns = chosen[at, which]
            keys.append(rows[at] * n + order[columns])
            affinities.append(block[at, columns])
        return cls._listed(np.concatenate(keys), np.concatenate(affinities), n)

    @classmethod
    def _listed(cls, keys: Longs, affinity: Float32Array, n: int) -> AffinityPairs:
        """Pairs ``i * n + j``; a pair that was drawn twice gets the mean of the two affinities."""
        both = np.concatenate([keys, keys % n * n + keys // n])
        unique, where, count = np.unique(both, return_inverse=True, return_counts=True)
        total = np.bincount(where, np.tile(affinity, 2), len(unique))
        first = np.searchsorted(unique, np.arange(n + 1) * n)
        return cls(first, (unique % n).astype(np.int32), (total / count).astype(np.float32))

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.first) - 1

    def rows(self) -> Ints:
        """The row at which each pair is listed."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.first))

    def sum_by_row(self, values: NDArray[Any]) -> Float64Array:
        """The sum of the values of each row's pairs."""
        return np.bincount(self.rows(), values, self.n).astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows without any pair of affinity below 1 among them, and their pairs."""

    rows: PositionArray
    listed: PositionArray  # where the pairs are listed, each once
    heads: PositionArray  # places in ``rows`` of the pairs' ends
    tails: PositionArray


def make_blocks(pairs: AffinityPairs, rng: np.random.Generator) -> list[Block]:
    """Divide all rows into blocks.

    Each block grows from a random row along pairs of affinity 1 as far as it can.  Rows that would
    stay alone are grouped with rows that they are not paired with.
    """
    block_of = np.full(pairs.n, -1, np.int32)
    n_blocks = _grow_blocks(rng.permutation(pairs.n), pairs, block_of)
    at, place = pairs.rows(), np.empty(pairs.n, np.intp)
    inside = np.flatnonzero((block_of[at] == block_of[pairs.other]) & (at < pairs.other))
    rows_of = _grouped(np.arange(pairs.n), block_of, n_blocks)
    listed_of = _grouped(inside, block_of[at[inside]], n_blocks)
    for rows in rows_of:
        place[rows] = np.arange(len(rows))
    return [
        Block(rows, listed, place[at[listed]], place[pairs.other[listed]])
        for rows, listed in zip(rows_of, listed_of, strict=True)
    ]


def _grouped(items: NDArray[Any], group: Ints, n_groups: int) -> list[NDArray[Any]]:
    order = np.argsort(group, kind="stable")
    return np.split(items[order], np.searchsorted(group[order], np.arange(1, n_groups)))


def loss_steps(loss: str, n_bits: int) -> tuple[Float64Array, Float64Array]:
    """The change of the loss if a pair that differs in d of n_bits bits differs in one more.

    For d = 0 … n_bits - 1, of a similar pair and of a dissimilar one.
    """
    share = np.arange(n_bits + 1) / n_bits
    similar, dissimilar = LOSSES[loss]
    return np.diff(similar(share)), np.diff(dissimilar(share))


def choose_bits(
    bit: Signs,
    weights: Float32Array,
    unary: Float64Array,
    pairs: AffinityPairs,
    blocks: list[Block],
    rng: np.random.Generator,
) -> None:
    r"""Set, block by block, the bits of least energy, given the bits of the other rows.

    The energy is :math:`\sum_{\{i,j\}} w_{ij} [z_i \ne z_j] + \sum_i u_i z_i`, with weights that
    are not negative inside a block.
    """
    for k in rng.permutation(len(blocks)):
        block = blocks[k]
        bit[block.rows] = 0
        outer = unary[block.rows]
        _add_unary(bit, weights, pairs, block.rows, outer)
        inner = weights[block.listed].astype(float)
        chosen = minimum_cut(outer, block.heads, block.tails, inner)
        bit[block.rows] = np.where(chosen, 1, -1)


def minimum_cut(unary: Float64Array, heads: Any, tails: Any, weights: Float64Array) -> Bits:
    r"""Where z is 1 in the minimum of :math:`\sum_e w_e [z_{h(e)} \ne z_{t(e)}] + \sum_i u_i z_i`.

    The maximum flow from the rows that pull to -1 to those that pull to 1 gives it, if no weight is
    negative.  Flow over single pairs is pushed first; often nothing remains.
    """
    excess, there, back = 2 * unary, weights.copy(), weights.copy()
    _push_over_pairs(excess, heads, tails, there, back)
    if not (excess > 0).any() or not (excess < 0).any():
        return np.full(len(unary), not (excess > 0).any())
    import maxflow

    graph = maxflow.GraphFloat(len(unary), len(heads))
    nodes = graph.add_grid_nodes(len(unary))
    graph.add_edges(heads, tails, there, back)
    graph.add_grid_tedges(nodes, np.maximum(excess, 0), np.maximum(-excess, 0))
    graph.maxflow()
    return np.asarray(graph.get_grid_segments(nodes), bool)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def set_weights(
    affinity: Float32Array,
    apart: Counts,
    similar: Float64Array,
    dissimilar: Float64Array,
    weights: Float32Array,
) -> None:
    """Fill in the change of each listed pair's loss if it differs in one more bit."""
    for e in range(affinity.shape[0]):
        d, a = apart[e], affinity[e]
        weights[e] = a * similar[d] + (1 - a) * dissimilar[d]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_differences(bit: Signs, pairs: AffinityPairs, step: int, apart: Counts) -> None:
    """Add ``step`` (1 or -1) to the count of each listed pair that differs in a bit."""
    for i in range(pairs.first.shape[0] - 1):
        for e in range(pairs.first[i], pairs.first[i + 1]):
            if bit[i] != bit[pairs.other[e]]:
                apart[e] += step


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _choose(
    affinity: Float32Array,
    itself: Longs,
    starts: Longs,
    n_similar: int,
    n_dissimilar: int,
    chosen: Longs,
) -> None:
    """Each row's first similar and dissimilar columns from its start on, except the row itself."""
    n = affinity.shape[1]
    for i in range(affinity.shape[0]):
        similar = dissimilar = 0
        for step in range(n):
            j = (starts[i] + step) % n
            if j == itself[i]:
                continue
            if affinity[i, j] > 0 and similar < n_similar:
                chosen[i, similar] = j
                similar += 1
            elif affinity[i, j] <= 0 and dissimilar < n_dissimilar:
                chosen[i, n_similar + dissimilar] = j
                dissimilar += 1
            if similar == n_similar and dissimilar == n_dissimilar:
                break


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _grow_blocks(order: Longs, pairs: AffinityPairs, block_of: Ints) -> int:
    """Number the blocks in ``block_of``, -1 before, and return how many there are."""
    clashes = np.full(block_of.shape[0], -1, np.int64)  # the seed of a block that a row cannot join
    waiting = np.empty(pairs.other.shape[0] + 1, np.int64)
    n_blocks = 0
    for seed in order:
        if block_of[seed] < 0:
            size = _grow_block(seed, n_blocks, pairs, block_of, clashes, waiting)
            if size > 1:
                n_blocks += 1
            else:
                block_of[seed] = -1
    clashes[:] = -1
    for seed in order:
        if block_of[seed] < 0:
            for i in order:
                if block_of[i] < 0 and clashes[i] != seed:
                    _join_block(i, seed, n_blocks, pairs, block_of, clashes)
            n_blocks += 1
    return n_blocks


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _grow_block(
    seed: int, block: int, pairs: AffinityPairs, block_of: Ints, clashes: Longs, waiting: Longs
) -> int:
    """Grow a block from a row along pairs of affinity 1, breadth first, and return its size."""
    waiting[0] = seed
    size, here, n_waiting = 0, 0, 1
    while here < n_waiting:
        i = waiting[here]
        here += 1
        if block_of[i] < 0 and clashes[i] != seed:
            _join_block(i, seed, block, pairs, block_of, clashes)
            size += 1
            for e in range(pairs.first[i], pairs.first[i + 1]):
                if pairs.affinity[e] >= 1 and block_of[pairs.other[e]] < 0:
                    waiting[n_waiting] = pairs.other[e]
                    n_waiting += 1
    return size


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _join_block(
    i: int, seed: int, block: int, pairs: AffinityPairs, block_of: Ints, clashes: Longs
) -> None:
    """Put row i into a block, and keep out the rows paired with it at affinity below 1."""
    block_of[i] = block
    for e in range(pairs.first[i], pairs.first[i + 1]):
        if pairs.affinity[e] < 1:
            clashes[pairs.other[e]] = seed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_unary(
    bit: Signs, weights: Float32Array, pairs: AffinityPairs, rows: Longs, unary: Float64Array
) -> None:
    r"""Add :math:`-\frac12 \sum_j w_{ij} z_j` to the unary terms of some rows."""
    for k in range(rows.shape[0]):
        total = 0.0
        for e in range(pairs.first[rows[k]], pairs.first[rows[k] + 1]):
            total += weights[e] * bit[pairs.other[e]]
        unary[k] -= 0.5 * total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _push_over_pairs(
    excess: Float64Array, heads: Longs, tails: Longs, there: Float64Array, back: Float64Array
) -> None:
    """Push flow from positive to negative excess over single pairs, until none moves."""
    moved = True
    while moved:
        moved = False
        for e in range(heads.shape[0]):
            i, j = heads[e], tails[e]
            if excess[i] > 0 > excess[j]:
                flow = min(excess[i], -excess[j], there[e])
            elif excess[i] < 0 < excess[j]:
                flow = -min(-excess[i], excess[j], back[e])
            else:
                continue
            excess[i] -= flow
            excess[j] += flow
            there[e] -= flow
            back[e] += flow
            moved = moved or flow != 0
