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
    scales: NDArray[np.float32]  # (n,)
    lengths: NDArray[np.float32]  # (n,), squared
    rests: NDArray[np.float32]  # (n,), scaled lengths of the codes without the first components


class Segments(NamedTuple):
    """Runs of components with equally many bits, whose states lie in one word of 64 bits.

    Component ``lasts[s] - 1`` of segment s has the state in the lowest eight bits of the word that
    ends with byte ``ends[s] - 1``, shifted right by ``shifts[s]``; the one before it has the state
    that a further shift by ``n_bits[s]`` brings there, and so on down to ``firsts[s]``.
    """

    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    n_bits: NDArray[np.int64]
    ends: NDArray[np.int64]
    shifts: NDArray[np.int64]


def segments_of(n_bits: NDArray[np.int64]) -> Segments:
    """The segments of components with these bits, from the last to the first."""
    found = []
    places = np.cumsum(n_bits)
    last = len(n_bits)
    while last > 0:
        b, place = int(n_bits[last - 1]), int(places[last - 1])
        end = -(-place // 8)
        shift = 8 * end - place
        first = last - 1
        while first > 0 and n_bits[first - 1] == b and shift + (last - first) * b + 8 <= 64:
            first -= 1
        found.append((first, last, b, end, shift))
        last = first
    return Segments(*np.array(found, np.int64).reshape(-1, 5).T.copy())


def first_segments(segments: Segments) -> int:
    """How many segments have the first components, those that are largest."""
    n_components = int(segments.lasts.max(initial=0))
    covered = n_components - segments.firsts
    return int(np.searchsorted(covered, FIRST * n_components) + 1) if n_components else 0


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def distances_of_pairs(
    asked: Asked,
    held: Held,
    queries: NDArray[np.int64],
    rows: NDArray[np.int64],
    segments: Segments,
    levels: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """The distances of pairs of a query and an item.

    What is known of an item is copied for some pairs at a time: so the processor waits for many
    rows at once, and then computes without waiting.
    """
    width, n_segments = held.codes.shape[1], len(segments.firsts)
    skip = np.int64(asked.to_centres.shape[1] > 1)
    near = np.empty((TOGETHER, width), np.uint8)
    scales, lengths = np.empty(TOGETHER, np.float32), np.empty(TOGETHER, np.float32)
    for start in range(0, len(rows), TOGETHER):
        n = min(TOGETHER, len(rows) - start)
        for i in range(n):
            row = np.uint64(rows[start + i])
            for byte in range(width):
                near[i, byte] = held.codes[row, byte]
            scales[i], lengths[i] = held.scales[row], held.lengths[row]
        for i in range(n):
            q = np.uint64(queries[start + i])
            total = _add_segments(
                np.float32(0), asked.weights[q], near[i], skip, segments, 0, n_segments, levels
            )
            centre = asked.to_centres[q, near[i, 0] if skip else 0]
            squares = asked.lengths[q] + lengths[i]
            out[start + i] = _distance(asked.by, squares, scales[i], total, centre)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def nearest_rows(
    asked: Asked,
    q: int,
    held: Held,
    first: int,
    last: int,
    allowed: NDArray[np.bool_],
    segments: Segments,
    n_first: int,
    levels: NDArray[np.float32],
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Fill ``nearest`` and ``rows`` with the k nearest of the rows from ``first`` to ``last``.

    They begin with infinity and -1; of equal distances the first row stays.  After its first
    components an item is abandoned if it cannot be nearer than the k-th so far, whatever the others
    say: their part of the product is at most that of their lengths (Cauchy-Schwarz).
    """
    k, n_segments = len(nearest), len(segments.firsts)
    skip = np.int64(asked.to_centres.shape[1] > 1)
    w, to_centres, by = asked.weights[q], asked.to_centres[q], asked.by
    sums, hopeful = np.empty(TOGETHER, np.float32), np.empty(TOGETHER, np.int64)
    for start in range(first, last, TOGETHER):
        n, worst = 0, nearest[k - 1]
        for row in range(start, min(start + TOGETHER, last)):
            code = held.codes[np.uint64(row)]
            total = _add_segments(np.float32(0), w, code, skip, segments, 0, n_first, levels)
            squares = asked.lengths[q] + held.lengths[np.uint64(row)]
            centre = to_centres[code[0] if skip else 0]
            rest = abs(by[1]) * asked.rests[q] * held.rests[np.uint64(row)] + ROUNDING * squares
            sums[n], hopeful[n] = total, row
            reached = _distance(by, squares, held.scales[np.uint64(row)], total, centre)
            n += np.int64(reached - rest < worst)
        for i in range(n):
            row = hopeful[i]
            if len(allowed) > 0 and not allowed[row]:
                continue
            code = held.codes[row]
            total = _add_segments(sums[i], w, code, skip, segments, n_first, n_segments, levels)
            squares = asked.lengths[q] + held.lengths[row]
            centre = to_centres[code[0] if skip else 0]
            _insert(_distance(by, squares, held.scales[row], total, centre), row, nearest, rows)


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
def _insert(
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


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _add_segments(
    total: np.float32,
    weights: NDArray[np.float32],
    code: NDArray[np.uint8],
    skip: int,
    segments: Segments,
    first: int,
    last: int,
    levels: NDArray[np.float32],
) -> np.float32:
    """A sum, and the products of some segments of a code that begins after ``skip`` bytes."""
    k = len(weights)
    for s in range(first, last):
        b, end = segments.n_bits[s], segments.lasts[s]
        word = _word(code, skip, segments.ends[s]) >> np.uint64(segments.shifts[s])
        total += _run(weights, k - end, k - segments.firsts[s], word, b, levels[np.uint64(b)])
    return total


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _run(
    weights: NDArray[np.float32],
    first: int,
    last: int,
    word: np.uint64,
    b: int,
    levels: NDArray[np.float32],
) -> np.float32:
    """The sum of a segment, in four parts, so that no addition waits for the one before.

    Indexes are unsigned, which spares the test for negative ones.
    """
    low, step, one = np.uint64(STATES - 1), np.uint64(b), np.uint64(1)
    p0 = p1 = p2 = p3 = np.float32(0)
    j, end = np.uint64(first), np.uint64(last)
    while j + np.uint64(4) <= end:
        p0 += weights[j] * levels[word & low]
        word >>= step
        p1 += weights[j + one] * levels[word & low]
        word >>= step
        p2 += weights[j + np.uint64(2)] * levels[word & low]
        word >>= step
        p3 += weights[j + np.uint64(3)] * levels[word & low]
        word >>= step
        j += np.uint64(4)
    while j < end:
        p0 += weights[j] * levels[word & low]
        word >>= step
        j += one
    return (p0 + p1) + (p2 + p3)


@numba.njit(cache=True, nogil=True)
def _word(code: NDArray[np.uint8], skip: int, end: int) -> np.uint64:
    """The eight bytes of a code before ``end``, the first being the highest; zeros before it."""
    word = np.uint64(0)
    if end >= 8:
        first = np.uint64(skip + end - 8)
        for i in range(8):  # of known length: one load
            word |= np.uint64(code[first + np.uint64(i)]) << np.uint64(56 - 8 * i)
        return word
    for i in range(skip, skip + end):
        word = (word << np.uint64(8)) | np.uint64(code[np.uint64(i)])
    return word
