"""Distances of trellis codes from queries, of single items and of the nearest of all.

The code of an item is a string of bits as :mod:`bittern.kernels.trellis` says; what it stands for
is never written out.  The product with a query is a sum over components, each with one look-up.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from bittern.kernels.trellis import STATES

TOGETHER = 64  # rows copied at a time
FIRST = 0.25  # of the components, the largest, are enough to abandon most items
ROUNDING = np.float32(1e-5)  # of the squared lengths: more than any sum of products errs


class Asked(NamedTuple):
    """Queries, and how a distance is made of a product and squared lengths.

    The distance of query q and item i is ``by[0] * (lengths[q] + lengths of i) + by[1] * p``, where
    p is their product.  ``weights[q, -1 - j]`` is the query's component j times its scale.
    """

    weights: NDArray[np.float32]  # (q, k)
    to_centres: NDArray[np.float32]  # (q, g)
    lengths: NDArray[np.float32]  # (q,)
    rests: NDArray[np.float32]  # (q,), lengths without the first components
    by: NDArray[np.float32]  # (2,)


class Held(NamedTuple):
    """Items: codes, and what does not depend on the query."""

    codes: NDArray[np.uint8]  # (n, n_bytes); if there are centres, the first byte says which
    numbers: NDArray[np.float32]  # (n, 3): SCALE, LENGTH, REST


class Reading(NamedTuple):
    """How codes are read: segments, of which the first few have the largest components; levels."""

    segments: NDArray[np.uint64]  # (n_segments, 5)
    n_first: int
    levels: NDArray[np.float32]  # (6, 256)


#: Of an item: the scale of its code, its squared length, and the scaled length of what its code
#: says without the first components.
SCALE, LENGTH, REST = (np.uint64(i) for i in range(3))
BITS, FIRST_WEIGHT, LAST_WEIGHT, END, SHIFT = (np.uint64(i) for i in range(5))  # of a segment


def segments_of(n_bits: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The segments of components with these bits, from the last to the first, ``(n_segments, 5)``.

    A segment is a run of components with equally many bits, whose states lie in one word of 64
    bits: the one that ends before byte END, shifted right by SHIFT.  Its lowest eight bits are the
    state of the segment's last component, whose weight is at FIRST_WEIGHT; a further shift by BITS
    brings that of the component before, and so on up to LAST_WEIGHT, which is not included.
    """
    found = []
    places, k = np.cumsum(n_bits), len(n_bits)
    last = k
    while last > 0:
        b, place = int(n_bits[last - 1]), int(places[last - 1])
        end = -(-place // 8)
        shift = 8 * end - place
        first = last - 1
        while first > 0 and n_bits[first - 1] == b and shift + (last - first) * b + 8 <= 64:
            first -= 1
        found.append((b, k - last, k - first, end, shift))
        last = first
    return np.array(found, np.uint64).reshape(-1, 5)


def first_segments(segments: NDArray[np.uint64]) -> tuple[int, int]:
    """How many segments have the first components, those that are largest; and how many these are.

    >>> first_segments(segments_of(np.array([1] * 40 + [2] * 20)))
    (1, 20)
    """
    covered = segments[:, LAST_WEIGHT].astype(np.int64)
    if not len(covered):
        return 0, 0
    n = int(np.abs(covered - FIRST * covered[-1]).argmin())
    return n + 1, int(covered[n])


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def distances_of_pairs(
    asked: Asked,
    held: Held,
    queries: NDArray[np.int64],
    rows: NDArray[np.int64],
    reading: Reading,
    out: NDArray[np.float32],
) -> None:
    """The distances of pairs of a query and an item.

    What is known of an item is copied for some pairs at a time: so the processor waits for many
    rows at once, and then computes without waiting.  Sums are rounded as in :func:`nearest_rows`.
    """
    codes, numbers = held
    segments, n_first, levels = reading
    weights, to_centres = asked.weights, asked.to_centres
    width, n_segments = codes.shape[1], len(segments)
    skip = np.uint64(to_centres.shape[1] > 1)
    near, zero = np.empty((TOGETHER, width), np.uint8), np.float32(0)
    scales, lengths = np.empty(TOGETHER, np.float32), np.empty(TOGETHER, np.float32)
    for start in range(0, len(rows), TOGETHER):
        n = min(TOGETHER, len(rows) - start)
        for i in range(n):
            row = np.uint64(rows[start + i])
            for byte in range(width):
                near[i, byte] = codes[row, byte]
            scales[i], lengths[i] = numbers[row, SCALE], numbers[row, LENGTH]
        for at in range(n):
            own, q = np.uint64(at), np.uint64(queries[start + at])
            total = _add_segments(zero, weights, q, near, own, skip, segments, 0, n_first, levels)
            total = _add_segments(
                total, weights, q, near, own, skip, segments, n_first, n_segments, levels
            )
            centre = to_centres[q, near[own, 0] if skip else np.uint8(0)]
            squares = asked.lengths[q] + lengths[own]
            out[start + at] = _distance(asked.by, squares, scales[own], total, centre)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def nearest_rows(
    asked: Asked,
    q: int,
    held: Held,
    first: int,
    last: int,
    allowed: NDArray[np.bool_],
    reading: Reading,
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Fill ``nearest`` and ``rows`` with the k nearest of the rows from ``first`` to ``last``.

    They begin with infinity and -1; of equal distances the first row stays.  After its first
    components an item is abandoned if it cannot be nearer than the k-th so far, whatever the others
    say: their part of the product is at most that of their lengths (Cauchy-Schwarz).
    """
    codes, numbers = held
    segments, n_first, levels = reading
    k, n_segments = len(nearest), len(segments)
    weights, to_centres, by = asked.weights, asked.to_centres, asked.by
    own, most = asked.lengths[q], abs(by[1]) * asked.rests[q]
    skip, query, zero = np.uint64(to_centres.shape[1] > 1), np.uint64(q), np.float32(0)
    sums, hopeful = np.empty(TOGETHER, np.float32), np.empty(TOGETHER, np.uint64)
    for start in range(first, last, TOGETHER):
        n, worst = 0, nearest[k - 1]
        for i in range(start, min(start + TOGETHER, last)):
            row = np.uint64(i)
            total = _add_segments(
                zero, weights, query, codes, row, skip, segments, 0, n_first, levels
            )
            squares = own + numbers[row, LENGTH]
            centre = to_centres[query, codes[row, 0] if skip else np.uint8(0)]
            reached = _distance(by, squares, numbers[row, SCALE], total, centre)
            sums[n], hopeful[n] = total, row
            n += int(reached - most * numbers[row, REST] - ROUNDING * squares < worst)
        for i in range(n):
            row = hopeful[i]
            if len(allowed) > 0 and not allowed[row]:
                continue
            total = _add_segments(
                sums[i], weights, query, codes, row, skip, segments, n_first, n_segments, levels
            )
            centre = to_centres[query, codes[row, 0] if skip else np.uint8(0)]
            distance = _distance(by, own + numbers[row, LENGTH], numbers[row, SCALE], total, centre)
            insert(distance, np.int64(row), nearest, rows)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def distance_of(asked: Asked, q: int, held: Held, row: int, reading: Reading) -> np.float32:
    """The distance of one query from one item, rounded as in :func:`nearest_rows`."""
    codes, numbers = held
    segments, n_first, levels = reading
    skip, query, own = np.uint64(asked.to_centres.shape[1] > 1), np.uint64(q), np.uint64(row)
    total = _add_segments(
        np.float32(0), asked.weights, query, codes, own, skip, segments, 0, n_first, levels
    )
    total = _add_segments(
        total, asked.weights, query, codes, own, skip, segments, n_first, len(segments), levels
    )
    centre = asked.to_centres[query, codes[own, 0] if skip else np.uint8(0)]
    squares = asked.lengths[query] + numbers[own, LENGTH]
    return _distance(asked.by, squares, numbers[own, SCALE], total, centre)


@numba.njit(cache=True, nogil=True)
def _distance(
    by: NDArray[np.float32],
    squares: np.float32,
    scale: np.float32,
    total: np.float32,
    centre: np.float32,
) -> np.float32:
    """The distance, rounded alike wherever it is computed."""
    return by[0] * squares + by[1] * (scale * total + centre)


@numba.njit(cache=True, nogil=True)
def insert(
    distance: np.float32, row: int, nearest: NDArray[np.float32], rows: NDArray[np.int64]
) -> None:
    """Put a row behind those that are as near, if it is among the nearest."""
    at = len(nearest) - 1
    if not distance < nearest[at]:
        return
    while at > 0 and nearest[at - 1] > distance:
        nearest[at], rows[at] = nearest[at - 1], rows[at - 1]
        at -= 1
    nearest[at], rows[at] = distance, row


@numba.njit(inline="always")
def _add_segments(total, weights, q, codes, row, skip, segments, first, last, levels):
    """A sum, and the products of some segments of a code that begins after ``skip`` bytes.

    Inlined, because an array is slow to hand over.  Indexes are unsigned, which spares the test for
    negative ones, and there are four sums, so that no addition waits for the one before.
    """
    low, one, two = np.uint64(STATES - 1), np.uint64(1), np.uint64(2)
    three, four = np.uint64(3), np.uint64(4)
    p1 = p2 = p3 = np.float32(0)
    for at in range(first, last):
        s = np.uint64(at)
        b, j, stop = segments[s, BITS], segments[s, FIRST_WEIGHT], segments[s, LAST_WEIGHT]
        word = _word(codes, row, skip, segments[s, END]) >> segments[s, SHIFT]
        while j + four <= stop:
            total += weights[q, j] * levels[b, word & low]
            p1 += weights[q, j + one] * levels[b, (word >> b) & low]
            p2 += weights[q, j + two] * levels[b, (word >> (b * two)) & low]
            p3 += weights[q, j + three] * levels[b, (word >> (b * three)) & low]
            word >>= b * four
            j += four
        while j < stop:
            p1 += weights[q, j] * levels[b, word & low]
            word >>= b
            j += one
    return (total + p1) + (p2 + p3)


@numba.njit(inline="always")
def _word(codes, row, skip, end):
    """The eight bytes of a code before ``end``, the first being the highest; zeros before it."""
    word = np.uint64(0)
    if end >= np.uint64(8):
        begin = skip + end - np.uint64(8)
        for i in range(8):  # of known length: one load
            word |= np.uint64(codes[row, begin + np.uint64(i)]) << np.uint64(56 - 8 * i)
    else:
        for i in range(end):
            word = (word << np.uint64(8)) | np.uint64(codes[row, skip + np.uint64(i)])
    return word
