"""Radii at percentiles of the distances among training vectors, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    Float64Array,
    check_array,
    check_count,
    check_vectors,
    row_blocks,
    squared_lengths,
)
from bittern.errors import InputError, shown

MEMORY = 1 << 28  # bytes of distances held at once
SAMPLED = 1 << 15  # pairs drawn at a time; fixed, so that ``memory`` does not change the draws
DIGIT = 16  # bits of a number that one pass over the pairs determines

Chunks = Callable[[], Iterator[Float64Array]]


def distance_percentiles(
    train_vectors: ArrayLike,
    percentiles: ArrayLike,
    *,
    sample: int | None = None,
    random_state: int = 0,
    memory: int = MEMORY,
) -> Float64Array:
    r"""Radii within which the given percentages of all pairs of training vectors lie.

    Of the :math:`N = n(n-1)/2` Euclidean distances :math:`d_{(0)} \le \dots \le d_{(N-1)}` of pairs
    :math:`i < j`, the percentile :math:`p` is NumPy's "linear" one,

    .. math:: d_{(\lfloor h \rfloor)} + (h - \lfloor h \rfloor)
        (d_{(\lfloor h \rfloor + 1)} - d_{(\lfloor h \rfloor)}), \qquad h = (N - 1)\,p / 100.

    Radii have the order of ``percentiles``; with ``[5, 1, 0.2, 0.1]`` and the gains ``[1, 2, 5,
    10]`` they define the graded ground truth of LabelMe [He-Cakir-Bargal-Sclaroff-2018].  Distances
    are those of the direct formula, as in ``Relevance.from_thresholds``: a pair exactly at a radius
    is within it.

    By default the result is exact, from passes over blocks of at most ``memory`` bytes.  With
    ``sample``, that many pairs are drawn at random with replacement, unless there are no more pairs
    than that.
    """
    vectors = check_vectors(train_vectors, "distance_percentiles: train_vectors")
    wanted = _check_percentiles(percentiles)
    check_count(memory, "distance_percentiles: memory", least=1 << 20)
    check_count(random_state, "distance_percentiles: random_state", least=0)
    n_pairs = len(vectors) * (len(vectors) - 1) // 2
    if n_pairs == 0:
        raise InputError("distance_percentiles: needs at least 2 training vectors, got 1.")
    pairs = _Pairs(vectors, memory)
    if sample is not None and check_count(sample, "distance_percentiles: sample") < n_pairs:
        return _interpolate(
            wanted,
            sample,
            lambda ranks: _order_statistics(pairs.sampled(sample, random_state), ranks, memory),
        )
    return _interpolate(
        wanted, n_pairs, lambda ranks: _exact_order_statistics(pairs, ranks, memory)
    )


class _Pairs:
    """Squared distances of pairs i < j, block by block."""

    def __init__(self, vectors: NDArray[Any], memory: int) -> None:
        self._vectors, self._memory = vectors, memory
        self._centre = vectors.mean(axis=0, dtype=np.float64)
        side = int(np.sqrt(memory / 4 / 24))  # a block of squares and its intermediate results
        self._tile = max(1, min(side, memory // 4 // (16 * vectors.shape[1])))
        self._squares = np.concatenate(
            [squared_lengths(self._rows(some)) for some in self._tiles()]
        )
        # bound on the rounding error of a square from matrix products
        self.margin = 8 * np.finfo(np.float64).eps * (vectors.shape[1] + 4) * self._squares.max()
        if not np.isfinite(self.margin):
            raise InputError("distance_percentiles: the squares of train_vectors overflow doubles.")

    def products(self) -> Iterator[Float64Array]:
        """Squares from matrix products, within the margin of the direct ones."""
        for rows, columns, square in self._blocks():
            yield square[_upper(square)] if rows.start == columns.start else square.ravel()

    def direct_near(self, values: Float64Array) -> Iterator[Float64Array]:
        """Direct squares of the pairs whose product is within two margins of one of ``values``."""
        for rows, columns, square in self._blocks():
            near = _is_near(square, values, 2 * self.margin)
            if rows.start == columns.start:
                near &= _upper(square)
            i, j = np.nonzero(near)
            yield self._direct(rows.start + i, columns.start + j)

    def sampled(self, n: int, random_state: int) -> Chunks:
        """Direct squares of ``n`` random pairs."""

        def chunks() -> Iterator[Float64Array]:
            rng = np.random.default_rng(random_state)
            for start in range(0, n, SAMPLED):
                i = rng.integers(0, len(self._vectors), min(SAMPLED, n - start))
                j = rng.integers(0, len(self._vectors) - 1, len(i))
                yield self._direct(i, j + (j >= i))

        return chunks

    def _blocks(self) -> Iterator[tuple[slice, slice, Float64Array]]:
        """Tiles on and above the diagonal; those on it hold every pair twice, and i = j."""
        for rows in self._tiles():
            left = self._rows(rows)
            for columns in self._tiles(rows.start):
                square = left @ self._rows(columns).T
                square *= -2
                square += self._squares[rows, None]
                square += self._squares[columns]
                np.maximum(square, 0, out=square)
                yield rows, columns, square

    def _direct(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float64Array:
        out = np.empty(len(i))
        for some in row_blocks(len(i), 24 * self._vectors.shape[1], self._memory // 4):
            d = self._vectors[i[some]].astype(np.float64) - self._vectors[j[some]]
            out[some] = squared_lengths(d)
        return out

    def _rows(self, some: slice) -> Float64Array:
        return self._vectors[some].astype(np.float64) - self._centre

    def _tiles(self, start: int = 0) -> list[slice]:
        n = len(self._vectors)
        return [slice(s, min(n, s + self._tile)) for s in range(start, n, self._tile)]


def _exact_order_statistics(pairs: _Pairs, ranks: NDArray[np.int64], memory: int) -> Float64Array:
    """Order statistics of the direct squares.

    The products give each order statistic to within a margin.  All pairs whose product is within
    two margins of it are measured directly; the others are certain to lie below or above it.
    """
    about = _order_statistics(pairs.products, ranks, memory)
    far_below = np.zeros(len(ranks), dtype=np.int64)
    for square in pairs.products():
        far = square[~_is_near(square, about, 2 * pairs.margin)]
        far_below += [np.count_nonzero(far < value) for value in about]
    return _order_statistics(lambda: pairs.direct_near(about), ranks - far_below, memory)


def _is_near(square: Float64Array, values: Float64Array, reach: float) -> NDArray[np.bool_]:
    """Whether a number is within reach of one of the values."""
    starts, ends = np.sort(values) - reach, np.sort(values) + reach
    starts = np.nextafter(starts, -np.inf)  # so that a reach of 0 still finds the value
    apart = starts[1:] > ends[:-1]
    edges = np.stack(
        [starts[np.concatenate([[True], apart])], ends[np.concatenate([apart, [True]])]], axis=1
    )
    return np.searchsorted(edges.ravel(), square) % 2 == 1  # after a start, before its end


def _order_statistics(chunks: Chunks, ranks: NDArray[np.int64], memory: int) -> Float64Array:
    """The values of the given ranks (from 0) among all numbers of the chunks, none negative.

    If the numbers fit in memory, they are partitioned.  If not, radix selection finds the bits of
    each value from the top: a pass counts the next bits of all numbers that share the prefix found
    so far.  (Doubles that are not negative sort like their bits.)
    """
    kept, n_bytes = [], 0
    for chunk in chunks():
        n_bytes += chunk.nbytes
        if n_bytes > memory // 2:
            return _by_digits(chunks, ranks, memory)
        kept.append(chunk)
    numbers = np.concatenate(kept)
    numbers.partition(np.unique(ranks))
    return numbers[ranks]


def _by_digits(chunks: Chunks, ranks: NDArray[np.int64], memory: int) -> Float64Array:
    left = ranks.copy()  # rank among the numbers with the prefix
    prefixes = np.zeros(len(ranks), dtype=np.uint64)
    for shift in range(64 - DIGIT, -1, -DIGIT):
        counts = _count_digits(chunks, np.unique(prefixes), shift)
        sizes = {}
        for i, prefix in enumerate(prefixes.tolist()):
            digit = int(np.searchsorted(np.cumsum(counts[prefix]), left[i], side="right"))
            left[i] -= counts[prefix][:digit].sum()
            prefixes[i] = (prefix << DIGIT) | digit
            sizes[int(prefixes[i])] = int(counts[prefix][digit])
        if shift and 8 * sum(sizes.values()) <= memory // 2:
            return _gathered(chunks, prefixes, left, shift)
    return prefixes.view(np.float64)


def _count_digits(
    chunks: Chunks, prefixes: NDArray[np.uint64], shift: int
) -> dict[int, NDArray[np.int64]]:
    """For each prefix, how many numbers continue with each value of the next bits."""
    counts = {int(prefix): np.zeros(1 << DIGIT, dtype=np.int64) for prefix in prefixes}
    for chunk in chunks():
        for prefix, count in counts.items():
            bits = _with_prefix(chunk, prefix, shift + DIGIT)
            digit = (bits >> np.uint64(shift)) & np.uint64((1 << DIGIT) - 1)
            count += np.bincount(digit.astype(np.intp), minlength=1 << DIGIT)
    return counts


def _gathered(
    chunks: Chunks, prefixes: NDArray[np.uint64], left: NDArray[np.int64], shift: int
) -> Float64Array:
    """The numbers of rank ``left`` among those with the prefixes."""
    found: dict[int, list[NDArray[np.uint64]]] = {int(prefix): [] for prefix in prefixes}
    for chunk in chunks():
        for prefix, kept in found.items():
            kept.append(_with_prefix(chunk, prefix, shift))
    ordered = {prefix: np.sort(np.concatenate(kept)) for prefix, kept in found.items()}
    pairs = zip(prefixes.tolist(), left, strict=True)
    return np.array([ordered[prefix][rank] for prefix, rank in pairs]).view(np.float64)


def _with_prefix(chunk: Float64Array, prefix: int, shift: int) -> NDArray[np.uint64]:
    """Bits of the numbers whose bits above ``shift`` are the prefix."""
    bits = (chunk + 0.0).view(np.uint64)  # + 0.0, because -0.0 has other bits than 0.0
    return bits if shift == 64 else bits[(bits >> np.uint64(shift)) == np.uint64(prefix)]


def _upper(square: Float64Array) -> NDArray[np.bool_]:
    return np.triu(np.ones(square.shape, dtype=bool), k=1)


def _interpolate(
    percentiles: Float64Array, n: int, squares_of: Callable[[NDArray[np.int64]], Float64Array]
) -> Float64Array:
    """Linear percentiles of ``n`` distances from their order statistics."""
    h = (n - 1) * (percentiles / 100)
    low = np.minimum(np.floor(h).astype(np.int64), n - 1)
    high = np.minimum(low + 1, n - 1)
    ranks, where = np.unique(np.concatenate([low, high]), return_inverse=True)
    below, above = np.split(np.sqrt(squares_of(ranks))[where], 2)
    return below + (h - low) * (above - below)


def _check_percentiles(percentiles: ArrayLike) -> Float64Array:
    p = check_array(percentiles, "distance_percentiles: percentiles")
    is_list = p.ndim == 1 and len(p) and p.dtype.kind in "iuf"
    if not is_list or not ((p >= 0) & (p <= 100)).all():
        raise InputError(
            f"distance_percentiles: percentiles must be a list of numbers from 0 to 100, "
            f"got {shown(percentiles)}."
        )
    return p.astype(np.float64)
