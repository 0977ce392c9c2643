"""How many relevant items the first results hold, by codes alone and after rescoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, row_blocks, squared_lengths
from bittern.kernels.nearest import keep_nearest
from bittern.kernels.rescored import expected_relevant
from bittern.quantise import Int8
from bittern.relevance import Relevance

BLOCK = 1 << 27  # bytes of estimated distances held at once
SPARSE = 1 / 16  # below this share of all pairs, only candidates are rescored


@dataclass(frozen=True, slots=True, eq=False)
class Rescorer:
    """Vectors that are kept to sort candidates: vector i is about ``centre + scale * rows[i]``."""

    name: str
    rows: NDArray[Any]  # (n, dim) of float32, or of uint8
    scale: Float32Array  # (dim,)
    centre: Float32Array  # (dim,)
    squares: Float32Array  # (n,), squared lengths of ``scale * rows``

    @classmethod
    def of_floats(cls, rows: Float32Array) -> Rescorer:
        """The vectors themselves."""
        # Near the origin rounding loses less; whole numbers stay whole, so their ties stay ties.
        centre = np.round(rows.mean(axis=0))
        shifted = rows - centre
        return cls("float32", shifted, np.ones_like(centre), centre, _squares(shifted))

    @classmethod
    def of_int8(cls, rows: Float32Array, quantiser: Int8) -> Rescorer:
        """The vectors in 8 bits for each number, by a quantiser fitted on other rows."""
        stored = quantiser.encode(rows).bytes
        step = np.asarray(quantiser.step_, np.float32)
        squares = [_squares(stored[some] * step) for some in row_blocks(len(rows), 4 * len(step))]
        low = np.asarray(quantiser.low_, np.float32)
        return cls("int8", stored, step, low, np.concatenate(squares))

    def first(self, n: int) -> Rescorer:
        """The same for the first n rows."""
        return Rescorer(self.name, self.rows[:n], self.scale, self.centre, self.squares[:n])

    def distances(
        self, queries: Float32Array, which: NDArray[np.intp], items: NDArray[np.intp]
    ) -> Float32Array:
        """Numbers that rank the items of each query as squared distances do.

        Pair i is query ``which[i]``, ascending, and item ``items[i]``.
        """
        asked = (queries - self.centre) * self.scale
        if len(items) > SPARSE * len(queries) * len(self.rows):
            products = self._all_products(asked)[which, items]
        else:
            products = np.empty(len(items), np.float32)
            ends = np.searchsorted(which, np.arange(len(queries) + 1))
            for q, row in enumerate(asked):
                some = slice(ends[q], ends[q + 1])
                products[some] = self.rows[items[some]].astype(np.float32, copy=False) @ row
        return np.asarray(self.squares[items] - 2 * products, np.float32)

    def _all_products(self, asked: Float32Array) -> Float32Array:
        out = np.empty((len(asked), len(self.rows)), np.float32)
        for some in row_blocks(len(self.rows), 4 * asked.shape[1]):
            out[:, some] = asked @ self.rows[some].astype(np.float32, copy=False).T
        return out


def count_relevant(
    estimate: Callable[[slice], Float32Array],
    queries: Float32Array,
    sizes: Sequence[int],
    truths: Sequence[Relevance],
    rescorers: Sequence[Rescorer],
    cuts: Sequence[int],
    k: int,
) -> list[Float64Array]:
    """For each size of database, the expected number of relevant items among the first k.

    The database of a size is the first so many items; ``estimate(some)`` gives the distances
    from some queries to all items.  Each array is ``(n_queries, n_rescorers, n_cuts)``: the
    ``cuts`` items of smallest estimate are sorted by the vectors of a rescorer.  Of equal
    estimates at the cut, each choice is equally likely.
    """
    parts: list[list[Float64Array]] = [[] for _ in sizes]
    for some in row_blocks(len(queries), 4 * sizes[-1], BLOCK):
        search = _Search(estimate(some), some.start, cuts, k)
        for part, size, truth in zip(parts, sizes, truths, strict=True):
            search.grow(size)
            kept = [one.first(size) for one in rescorers]
            part.append(np.stack(search.counts(truth, queries[some], kept), axis=1))
    return [np.concatenate(part) for part in parts]


def count_by_vectors(
    queries: Float32Array, floats: Rescorer, truth: Relevance, k: int
) -> Float64Array:
    """The expected number of relevant items among the first k by the vectors, for each query."""
    found = []
    for some in row_blocks(len(queries), 4 * len(floats.rows), BLOCK):
        q = (queries[some] - floats.centre).astype(np.float64)
        block = np.empty((len(q), len(floats.rows)), np.float32)
        for part in row_blocks(len(floats.rows), 8 * q.shape[1]):
            # Doubles, rounded to singles at the end, so that equal distances are equal.
            rows = floats.rows[part].astype(np.float64)
            block[:, part] = squared_lengths(q)[:, None] - 2 * (q @ rows.T) + squared_lengths(rows)
        search = _Search(block, some.start, [k], k)
        search.grow(len(floats.rows))
        found += search.counts(truth, queries[some], [None])
    return np.concatenate(found)[:, 0]


class _Search:
    """The candidates of a block of queries, in a database that grows."""

    def __init__(
        self, estimates: Float32Array, first_query: int, cuts: Sequence[int], k: int
    ) -> None:
        self._estimates, self._first_query = estimates, first_query
        self._cuts, self._k, self._size = np.asarray(cuts), k, 0
        shape = len(estimates), max(cuts) + 1  # one more, to see whether it is tied with the last
        self._nearest = np.full(shape, np.inf, np.float32)
        self._rows = np.full(shape, -1, np.int64)

    def grow(self, size: int) -> None:
        """Search the first ``size`` items."""
        new = self._estimates[:, self._size : size]
        keep_nearest(new, self._size, np.empty(0, bool), self._nearest, self._rows)
        self._size = size

    def counts(
        self, truth: Relevance, queries: Float32Array, rescorers: Sequence[Rescorer | None]
    ) -> list[Float64Array]:
        """The expected number of relevant items ``(n_queries, n_cuts)`` for each rescorer."""
        depth = np.minimum(self._cuts, self._size)
        bounds = self._nearest[:, depth - 1]
        which, items = self._candidates(int(depth[-1]))
        relevant = truth.levels_of(which + self._first_query, items) > 0
        near = self._estimates[which, items]
        offsets = np.searchsorted(which, np.arange(len(queries) + 1))
        out = []
        for rescorer in rescorers:
            again = near if rescorer is None else rescorer.distances(queries, which, items)
            order = _sorted_by(again, offsets)
            k = min(self._k, self._size)
            out.append(expected_relevant(near[order], relevant[order], offsets, bounds, depth, k))
        return out

    def _candidates(self, depth: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs of a query and an item at most as far as the last candidate, all ties included.

        Both ascend.
        """
        is_tied = self._nearest[:, depth] == self._nearest[:, depth - 1]
        rows = [
            np.flatnonzero(self._estimates[q, : self._size] <= self._nearest[q, depth - 1])
            if is_tied[q]
            else np.sort(self._rows[q, :depth])
            for q in range(len(self._rows))
        ]
        which = np.repeat(np.arange(len(rows)), [len(some) for some in rows])
        return which, np.concatenate(rows).astype(np.intp)


def _sorted_by(values: Float32Array, offsets: NDArray[np.intp]) -> NDArray[np.intp]:
    """The order that sorts each part of the values, from one offset to the next; stable."""
    order = np.empty(len(values), np.intp)
    for first, last in pairwise(offsets.tolist()):
        order[first:last] = first + np.argsort(values[first:last], kind="stable")
    return order


def _squares(rows: NDArray[Any]) -> Float32Array:
    return squared_lengths(rows.astype(np.float64)).astype(np.float32)
