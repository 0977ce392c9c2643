"""How many relevant items the first results hold, by codes alone and after rescoring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, row_blocks, squared_lengths
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
        block = estimate(some)
        for part, size, truth in zip(parts, sizes, truths, strict=True):
            kept = [one.first(size) for one in rescorers]
            found = _counted(block[:, :size], queries[some], some.start, truth, kept, cuts, k)
            part.append(np.stack(found, axis=1))
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
        found += _counted(block, queries[some], some.start, truth, [None], [k], k)
    return np.concatenate(found)[:, 0]


def _counted(
    estimates: Float32Array,
    queries: Float32Array,
    first: int,
    truth: Relevance,
    rescorers: Sequence[Rescorer | None],
    cuts: Sequence[int],
    k: int,
) -> list[Float64Array]:
    """Counts ``(n_queries, n_cuts)`` of a block of queries for each rescorer."""
    depth = np.minimum(cuts, estimates.shape[1])
    bounds = np.partition(estimates, depth - 1, axis=1)[:, depth - 1]
    which, items = np.nonzero(estimates <= bounds[:, -1:])
    relevant = truth.levels_of(which + first, items) > 0
    near = estimates[which, items]
    offsets = np.searchsorted(which, np.arange(len(queries) + 1))
    out = []
    for order in _orders(rescorers, queries, which, items):
        out.append(
            expected_relevant(near[order], relevant[order], offsets, bounds, depth, min(k, depth[-1]))
        )
    return out


def _orders(
    rescorers: Sequence[Rescorer | None],
    queries: Float32Array,
    which: NDArray[np.intp],
    items: NDArray[np.intp],
) -> Iterator[Any]:
    """Orders of pairs: query by query, then by the distance of a rescorer."""
    for rescorer in rescorers:
        if rescorer is None:
            yield slice(None)
        else:
            yield np.lexsort((rescorer.distances(queries, which, items), which))


def _squares(rows: NDArray[Any]) -> Float32Array:
    return squared_lengths(rows.astype(np.float64)).astype(np.float32)
