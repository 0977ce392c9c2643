"""Ground truth by distance: balls, graded balls and nearest neighbours of real vectors.

Distances come from blocked matrix products.  Where rounding could decide on which side of a
radius a pair lies, or which of two items is nearer, the pair is measured again by its differences
in double precision; so the result is that of the direct formula, for any size of block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count, check_vectors, row_blocks
from bittern.errors import InputError
from bittern.relevance.base import MEMORY
from bittern.relevance.sparse import MAX_GAIN, SparseRelevance

__all__ = ["ball_radius", "nearest", "within"]

Doubles = NDArray[np.float64]


def ball_radius(
    train_vectors: ArrayLike,
    neighbours: int = 50,
    sample: int = 100,
    random_state: int = 0,
    *,
    metric: str = "euclidean",
    memory: int = MEMORY,
) -> float:
    """Radius at which a training point has ``neighbours`` others within reach, on average.

    For each of ``sample`` random training points (all, if there are fewer) the distance to its
    ``neighbours``-th nearest other training point is taken, and these distances are averaged
    (section 3.3.1 of [Moran-2016], with 50 and 100).
    """
    vectors = check_vectors(train_vectors, "ball_radius: train_vectors")
    n = len(vectors)
    check_count(neighbours, "ball_radius: neighbours", most=None)
    check_count(sample, "ball_radius: sample")
    if neighbours >= n:
        raise InputError(
            f"ball_radius: needs more than neighbours={neighbours} training vectors, got {n}."
        )
    rng = np.random.default_rng(random_state)
    chosen = np.sort(rng.choice(n, min(sample, n), replace=False))
    pairs = _Pairs(vectors[chosen], vectors, metric, memory)
    squares = []
    for rows, block in pairs.blocks():
        block[np.arange(len(block)), chosen[rows]] = np.inf  # a point is not its own neighbour
        nearest_squares, _, _ = _nearest_of_block(pairs, rows, block, neighbours, chosen)
        squares.append(nearest_squares[neighbours - 1 :: neighbours])
    return float(np.sqrt(np.concatenate(squares)).mean())


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
    pairs = _Pairs(query_vectors, database_vectors, metric, memory)
    sizes, items, found = [], [], []
    for rows, block in pairs.blocks():
        row, column = np.nonzero(block <= r[-1] ** 2 + pairs.margin)
        square = pairs.settle(rows, row, column, block[row, column], r**2)
        ball = np.searchsorted(r**2, square)  # the first ball with square <= radius²
        inside = ball < len(r)
        sizes.append(np.bincount(row[inside], minlength=len(block)))
        items.append(column[inside])
        found.append(g[ball[inside]])
    return _lists(sizes, items, found, pairs.n_database)


def nearest(
    query_vectors: ArrayLike, database_vectors: ArrayLike, k: int, metric: str, memory: int
) -> SparseRelevance:
    """The k nearest items of each query; equal distances by database position."""
    pairs = _Pairs(query_vectors, database_vectors, metric, memory)
    k = check_count(k, "Relevance: k", most=None)
    if k > pairs.n_database:
        raise InputError(f"Relevance: k={k} neighbours of {pairs.n_database} items do not exist.")
    sizes, items = [], []
    for rows, block in pairs.blocks():
        _, row, column = _nearest_of_block(pairs, rows, block, k, None)
        order = np.lexsort((column, row))
        sizes.append(np.full(len(block), k))
        items.append(column[order])
    gains = [np.ones(len(i), np.int64) for i in items]
    return _lists(sizes, items, gains, pairs.n_database)


class _Pairs:
    """Squared distances between two sets of rows, block by block, within a memory bound."""

    def __init__(self, queries: ArrayLike, database: ArrayLike, metric: str, memory: int) -> None:
        q = check_vectors(queries, "Relevance: query_vectors")
        d = check_vectors(database, "Relevance: database_vectors")
        if q.shape[1] != d.shape[1]:
            raise InputError(
                "Relevance: query_vectors and database_vectors must have one dimension, "
                f"got {q.shape[1]} and {d.shape[1]}."
            )
        if metric not in ("euclidean", "cosine"):
            raise InputError(f"Relevance: metric must be 'euclidean' or 'cosine', got {metric!r}.")
        self.n_database = len(d)
        self._memory = check_count(memory, "Relevance: memory", least=1 << 20)
        self._cosine = metric == "cosine"
        self._queries, self._database = q, d
        self._centre = d.mean(axis=0, dtype=np.float64) if not self._cosine else 0.0
        self._database_squares = np.concatenate(
            [_squares(self._rows(d, rows)) for rows in self._database_blocks()]
        )
        query_squares = [
            _squares(self._rows(q, rows)) for rows in row_blocks(len(q), 8 * q.shape[1])
        ]
        largest = max(float(s.max()) for s in (*query_squares, self._database_squares))
        #: bound on the rounding error of a squared distance from matrix products
        self.margin = 8 * np.finfo(np.float64).eps * (q.shape[1] + 4) * largest

    def blocks(self) -> Iterator[tuple[slice, Doubles]]:
        """Slices of queries, each with its squared distances to the whole database."""
        # A block of distances, its boolean mask, and the indices found in it.
        for rows in row_blocks(len(self._queries), 32 * self.n_database, self._memory):
            q = self._rows(self._queries, rows)
            block = np.empty((len(q), self.n_database))
            for part in self._database_blocks():
                d = self._rows(self._database, part)
                np.matmul(q, d.T, out=block[:, part])
            block *= -2
            block += _squares(q)[:, None]
            block += self._database_squares
            yield rows, block

    def settle(
        self,
        rows: slice,
        row: NDArray[np.intp],
        column: NDArray[np.intp],
        square: Doubles,
        limits: Doubles,
    ) -> Doubles:
        """Squared distances, measured directly where one is within the margin of a limit."""
        gap = np.abs(square[:, None] - limits).min(axis=1)
        doubtful = np.flatnonzero(gap <= self.margin)
        settled = square.copy()
        settled[doubtful] = self.direct(rows, row[doubtful], column[doubtful])
        return settled

    def direct(self, rows: slice, row: NDArray[np.intp], column: NDArray[np.intp]) -> Doubles:
        """Squared distances of listed pairs, by their differences."""
        out = np.empty(len(row))
        for some in row_blocks(len(row), 24 * self._queries.shape[1], self._memory):
            q = self._unit(self._queries[rows.start + row[some]].astype(np.float64))
            d = self._unit(self._database[column[some]].astype(np.float64))
            out[some] = _squares(q - d)
        return out

    def _rows(self, vectors: NDArray[Any], rows: slice) -> Doubles:
        """Rows in double precision, centred (which changes no distance) or of unit length."""
        return self._unit(vectors[rows].astype(np.float64)) - self._centre

    def _unit(self, rows: Doubles) -> Doubles:
        if not self._cosine:
            return rows
        lengths = np.sqrt(_squares(rows))
        if not lengths.all():
            raise InputError("Relevance: cosine distance needs rows that are not all zero.")
        return rows / lengths[:, None]

    def _database_blocks(self) -> list[slice]:
        return row_blocks(self.n_database, 16 * self._database.shape[1], self._memory // 4)


def _nearest_of_block(
    pairs: _Pairs, rows: slice, block: Doubles, k: int, own: NDArray[np.intp] | None
) -> tuple[Doubles, NDArray[np.intp], NDArray[np.intp]]:
    """Squared distance, row and column of the k nearest of each row, nearest first.

    ``own`` names for each query the column that it is itself, never to be taken.
    """
    kth = np.partition(block, k - 1, axis=1)[:, k - 1]
    row, column = np.nonzero(block <= (kth + 2 * pairs.margin)[:, None])
    square = pairs.direct(rows, row, column)
    if own is not None:
        square[column == own[rows][row]] = np.inf
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


def _check_balls(radii: Any, gains: Any) -> tuple[Doubles, NDArray[np.int64]]:
    """Radii ascending, with their gains."""
    r, g = np.asarray(radii, np.float64), np.asarray(gains)
    if r.ndim != 1 or r.shape != g.shape or len(r) == 0:
        raise InputError(
            f"Relevance: radii and gains must be lists of one length, got {r.shape} and {g.shape}."
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


def _squares(rows: Doubles) -> Doubles:
    return np.einsum("ij,ij->i", rows, rows)
