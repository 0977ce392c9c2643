"""Ground truth by distance: balls, graded balls and nearest neighbours of real vectors.

Distances come from blocked matrix products.  Where rounding could decide on which side of a radius
a pair lies, or which of two items is nearer, the distance is computed again from the differences in
double precision.  So the result is that of the direct formula, for any block size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    Float64Array,
    check_array,
    check_choice,
    check_count,
    check_vectors,
    row_blocks,
    squared_lengths,
    to_unit_length,
)
from bittern.errors import InputError, shown
from bittern.relevance.base import MEMORY
from bittern.relevance.sparse import MAX_GAIN, SparseRelevance

LARGEST = 1e140  # a sum of many squares of it still fits in a double


def ball_radius(
    train_vectors: ArrayLike,
    neighbours: int = 50,
    sample: int = 100,
    random_state: int = 0,
    *,
    metric: str = "euclidean",
    memory: int = MEMORY,
) -> float:
    """Mean distance of a training point to its ``neighbours``-th nearest other training point.

    The mean is over ``sample`` random training points, or all of them if there are fewer
    (section 3.3.1 of [Moran-2016], with 50 and 100).
    """
    vectors = check_vectors(train_vectors, "ball_radius: train_vectors")
    n = len(vectors)
    check_count(neighbours, "ball_radius: neighbours", most=None)
    check_count(sample, "ball_radius: sample")
    random_state = check_count(random_state, "ball_radius: random_state", least=0)
    if neighbours >= n:
        raise InputError(
            f"ball_radius: needs more than neighbours={shown(neighbours)} training vectors, "
            f"got {n}."
        )
    rng = np.random.default_rng(random_state)
    chosen = np.sort(rng.choice(n, min(sample, n), replace=False))
    distances = _Distances(vectors[chosen], vectors, metric, memory, "ball_radius")
    squares = []
    for rows, block in distances.blocks():
        block[np.arange(len(block)), chosen[rows]] = np.inf  # a point is not its own neighbour
        nearest_squares, _, _ = _nearest_of_block(distances, rows, block, neighbours)
        squares.append(nearest_squares[neighbours - 1 :: neighbours])
    return float(distances.from_squares(np.concatenate(squares)).mean())


def within(
    query_vectors: ArrayLike,
    database_vectors: ArrayLike,
    radii: Sequence[float] | NDArray[Any],
    gains: Sequence[int] | NDArray[Any],
    metric: str,
    memory: int,
) -> SparseRelevance:
    """Graded balls; one radius and the gain 1 make an ε-ball."""
    r, g = _check_balls(radii, gains)
    distances = _Distances(query_vectors, database_vectors, metric, memory)
    sizes, items, found = [], [], []
    for rows, block in distances.blocks():
        limits = distances.to_squares(r)
        row, column = np.nonzero(block <= limits[-1] + 2 * distances.margin)
        square = distances.settle(rows, row, column, block[row, column], limits)
        ball = np.searchsorted(
            r, distances.from_squares(square)
        )  # the first ball with distance <= radius
        inside = ball < len(r)
        sizes.append(np.bincount(row[inside], minlength=len(block)))
        items.append(column[inside])
        found.append(g[ball[inside]])
    return _lists(sizes, items, found, distances.n_database)


def nearest(
    query_vectors: ArrayLike, database_vectors: ArrayLike, k: int, metric: str, memory: int
) -> SparseRelevance:
    """The k nearest items of each query; equal distances by database position."""
    _, found = nearest_pairs(query_vectors, database_vectors, k, metric, memory)
    items = np.sort(found, axis=1).ravel()
    offsets = np.arange(0, found.size + 1, found.shape[1])
    return SparseRelevance.from_lists(
        offsets,
        items,
        np.ones(len(items), np.int64),
        len(database_vectors),  # type: ignore[arg-type]
    )


def nearest_pairs(
    query_vectors: ArrayLike,
    database_vectors: ArrayLike,
    k: int,
    metric: str,
    memory: int = MEMORY,
) -> tuple[Float64Array, NDArray[np.intp]]:
    """Squared distances and positions of the k nearest items of each query, nearest first."""
    distances = _Distances(query_vectors, database_vectors, metric, memory)
    k = check_count(k, "Relevance: k", most=None)
    if k > distances.n_database:
        raise InputError(
            f"Relevance: k must be at most {distances.n_database}, the number of items, "
            f"got {shown(k)}."
        )
    squares, items = [], []
    for rows, block in distances.blocks():
        square, _, column = _nearest_of_block(distances, rows, block, k)
        squares.append(square.reshape(-1, k))
        items.append(column.reshape(-1, k))
    return np.concatenate(squares), np.concatenate(items)


def count_answers(
    query_vectors: ArrayLike,
    database_vectors: ArrayLike,
    k: int | None,
    radius: float | None,
    *,
    metric: str,
    tolerance: float,
    memory: int = MEMORY,
) -> tuple[Float64Array, NDArray[np.int64]]:
    """Where the exact answer of each query ends, and how many items are there.

    The answer is the k nearest items, those within ``radius``, or the k nearest of these.  The
    first array has its limit: the distance of its last item, or the radius if k does not cut it.
    The second, ``(3, n_queries)``, counts the items nearer than that, those as far up to a relative
    ``tolerance``, and the items of the answer.
    """
    distances = _Distances(query_vectors, database_vectors, metric, memory, "audit")
    n = len(distances)
    limits, counts = np.empty(n), np.empty((3, n), np.int64)
    most = distances.n_database if k is None else min(k, distances.n_database)
    for rows, block in distances.blocks():
        row, d = _candidates(distances, rows, block, most, radius, tolerance)
        starts = np.searchsorted(row, np.arange(len(block) + 1))
        inside = d <= (np.inf if radius is None else radius)
        wanted = np.minimum(np.bincount(row[inside], minlength=len(block)), most)
        last = d[np.minimum(starts[:-1] + np.maximum(wanted, 1) - 1, len(d) - 1)] if len(d) else 0.0
        limit = np.where(wanted == most, last, np.inf if radius is None else radius)
        is_tied = np.abs(d - limit[row]) <= tolerance * limit[row]
        is_nearer = (d < limit[row]) & ~is_tied
        limits[rows] = limit
        for i, which in enumerate((is_nearer, is_tied)):
            counts[i, rows] = np.bincount(row[which], minlength=len(block))
        counts[2, rows] = wanted
    return limits, counts


def pair_distances(
    query_vectors: ArrayLike,
    database_vectors: ArrayLike,
    queries: NDArray[np.intp],
    items: NDArray[np.intp],
    metric: str,
) -> Float64Array:
    """The distances of listed pairs of a query and an item."""
    distances = _Distances(query_vectors, database_vectors, metric, MEMORY, "audit")
    return distances.from_squares(distances.direct(slice(0, None), queries, items))


def _candidates(
    distances: _Distances,
    rows: slice,
    block: Float64Array,
    most: int,
    radius: float | None,
    tolerance: float,
) -> tuple[NDArray[np.intp], Float64Array]:
    """Row and distance of all pairs near enough for an answer or its last tie, nearest first."""
    kth = np.partition(block, most - 1, axis=1)[:, most - 1] + 2 * distances.margin
    ends = distances.from_squares(kth)
    if radius is not None:
        ends = np.minimum(ends, radius)
    ends = distances.to_squares(ends * (1 + 2 * tolerance)) + 4 * distances.margin
    row, column = np.nonzero(block <= ends[:, None])
    d = distances.from_squares(distances.direct(rows, row, column))
    order = np.lexsort((d, row))
    return row[order], d[order]


class _Distances:
    """Squared distances between two sets of rows, block by block, within a memory bound."""

    def __init__(
        self,
        queries: ArrayLike,
        database: ArrayLike,
        metric: str,
        memory: int,
        owner: str = "Relevance",
    ) -> None:
        q = check_vectors(queries, f"{owner}: query_vectors")
        d = check_vectors(database, f"{owner}: database_vectors")
        if q.shape[1] != d.shape[1]:
            raise InputError(
                f"{owner}: query_vectors and database_vectors must have the same dimension, "
                f"got {q.shape[1]} and {d.shape[1]}."
            )
        check_choice(metric, f"{owner}: metric", ("euclidean", "cosine"))
        self.n_database = len(d)
        self._owner = owner
        self._memory = check_count(memory, f"{owner}: memory", least=1 << 20)
        for vectors in (q, d):
            _check_scale(vectors, owner)
        self._cosine = metric == "cosine"
        self._queries, self._database = q, d
        self._centre = d.mean(axis=0, dtype=np.float64) if not self._cosine else 0.0
        self._database_squares = np.concatenate(
            [squared_lengths(self._rows(d, rows)) for rows in self._database_blocks()]
        )
        query_squares = [
            squared_lengths(self._rows(q, rows)) for rows in row_blocks(len(q), 8 * q.shape[1])
        ]
        largest = max(float(s.max()) for s in (*query_squares, self._database_squares))
        #: bound on the rounding error of a squared distance from matrix products
        self.margin = 8 * np.finfo(np.float64).eps * (q.shape[1] + 4) * largest

    def __len__(self) -> int:
        """Number of queries."""
        return len(self._queries)

    def blocks(self) -> Iterator[tuple[slice, Float64Array]]:
        """Slices of queries, each with its squared distances to the whole database."""
        # A block of distances, its boolean mask, and the indices found in it.
        for rows in row_blocks(len(self._queries), 32 * self.n_database, self._memory):
            q = self._rows(self._queries, rows)
            block = np.empty((len(q), self.n_database))
            for part in self._database_blocks():
                d = self._rows(self._database, part)
                np.matmul(q, d.T, out=block[:, part])
            block *= -2
            block += squared_lengths(q)[:, None]
            block += self._database_squares
            yield rows, block

    def from_squares(self, squares: Float64Array) -> Float64Array:
        """Distances from squared ones: Euclidean, or 1 - cos, half the square between unit rows."""
        return squares / 2 if self._cosine else np.sqrt(np.maximum(squares, 0))

    def to_squares(self, distances: Float64Array) -> Float64Array:
        """The inverse of :meth:`from_squares`."""
        return 2 * distances if self._cosine else distances**2

    def settle(
        self,
        rows: slice,
        row: NDArray[np.intp],
        column: NDArray[np.intp],
        square: Float64Array,
        limits: Float64Array,
    ) -> Float64Array:
        """Squared distances, computed again directly where one is within the margin of a limit."""
        gap = np.abs(square[:, None] - limits)
        rounding = 4 * np.finfo(np.float64).eps * limits  # of a radius squared
        doubtful = np.flatnonzero((gap <= self.margin + rounding).any(axis=1))
        settled = square.copy()
        settled[doubtful] = self.direct(rows, row[doubtful], column[doubtful])
        return settled

    def direct(self, rows: slice, row: NDArray[np.intp], column: NDArray[np.intp]) -> Float64Array:
        """Squared distances of listed pairs, from their differences."""
        out = np.empty(len(row))
        for some in row_blocks(len(row), 24 * self._queries.shape[1], self._memory):
            q = self._unit(self._queries[rows.start + row[some]].astype(np.float64))
            d = self._unit(self._database[column[some]].astype(np.float64))
            out[some] = squared_lengths(q - d)
        return out

    def _rows(self, vectors: NDArray[Any], rows: slice) -> Float64Array:
        """Rows in double precision, centred (which keeps distances) or of unit length."""
        return self._unit(vectors[rows].astype(np.float64)) - self._centre

    def _unit(self, rows: Float64Array) -> Float64Array:
        return to_unit_length(rows, self._owner) if self._cosine else rows

    def _database_blocks(self) -> list[slice]:
        return row_blocks(self.n_database, 16 * self._database.shape[1], self._memory // 4)


def _nearest_of_block(
    distances: _Distances, rows: slice, block: Float64Array, k: int
) -> tuple[Float64Array, NDArray[np.intp], NDArray[np.intp]]:
    """Squared distance, row and column of the k nearest of each row, nearest first.

    Pairs with an infinite square in the block are never taken.
    """
    kth = np.partition(block, k - 1, axis=1)[:, k - 1]
    row, column = np.nonzero(block <= (kth + 2 * distances.margin)[:, None])
    square = distances.direct(rows, row, column)
    order = np.lexsort((column, square, row))
    row, column, square = row[order], column[order], square[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    near = rank < k
    return square[near], row[near], column[near]


def _lists(
    sizes: list[NDArray[Any]], items: list[NDArray[Any]], gains: list[NDArray[Any]], n: int
) -> SparseRelevance:
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
    return SparseRelevance.from_lists(offsets, np.concatenate(items), np.concatenate(gains), n)


def _check_balls(radii: Any, gains: Any) -> tuple[Float64Array, NDArray[np.int64]]:
    """Radii ascending, with their gains."""
    r, g = check_array(radii, "Relevance: radii"), check_array(gains, "Relevance: gains")
    if r.dtype.kind not in "iuf":
        raise InputError(f"Relevance: a radius must be a number, got {shown(radii)}.")
    r = r.astype(np.float64)
    if r.ndim != 1 or r.shape != g.shape or len(r) == 0:
        raise InputError(
            "Relevance: radii and gains must be lists of the same length, "
            f"got {r.shape} and {g.shape}."
        )
    if not np.isfinite(r).all() or (r < 0).any():
        raise InputError(f"Relevance: a radius must be finite and not negative, got {r.tolist()}.")
    if g.dtype.kind not in "iu" or (g < 1).any() or (g > MAX_GAIN).any():
        raise InputError(
            f"Relevance: gains must be whole numbers from 1 to {MAX_GAIN}, got {g.tolist()}."
        )
    order = np.argsort(r)
    r, g = r[order], g[order].astype(np.int64)
    if (np.diff(r) <= 0).any() or (np.diff(g) >= 0).any():
        raise InputError(
            "Relevance: radii must differ and a smaller radius must have a larger gain, "
            f"got radii {r.tolist()} with gains {g.tolist()}."
        )
    return r, g


def _check_scale(vectors: NDArray[Any], owner: str) -> None:
    """Raise an error if squares of the numbers overflow or vanish in double precision."""
    largest = max(
        float(np.abs(vectors[rows]).max())
        for rows in row_blocks(len(vectors), 8 * vectors.shape[1])
    )
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise InputError(
            f"{owner}: the largest entry must be in {1 / LARGEST:g} … {LARGEST:g}, "
            f"got {largest:g}; rescale them."
        )
