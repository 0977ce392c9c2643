"""Trellis coding: a path through the states of a shift register, chosen by Viterbi's algorithm.

A vector of k components is written as one string of bits, ``n_bits[j]`` for component j, the first
bit of a byte being its highest.  The *state* after component j is the last eight bits written, of
a string that begins with eight zeros, and the value of the component is
``scales[j] * levels[n_bits[j], state]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

STATES = 256  # of a register of eight bits
TOGETHER = 64  # rows copied at a time


@numba.njit(cache=True, nogil=True)
def encode_trellis(
    z: NDArray[np.float32],
    n_bits: NDArray[np.int64],
    scales: NDArray[np.float32],
    levels: NDArray[np.float32],
    out: NDArray[np.uint8],
) -> None:
    """Write the bits of the path with the least squared error of each row into zeros."""
    k = len(n_bits)
    costs = np.empty(STATES, np.float32)
    least = np.empty(STATES, np.float32)
    choices = np.empty((k, STATES), np.uint8)
    for row in range(len(z)):
        costs[:] = np.float32(np.inf)
        costs[0] = 0
        for j in range(k):
            b = n_bits[j]
            _shift(costs, b, least, choices[j])
            _add_errors(least, b, z[row, j], scales[j], levels[b], costs)
        _write(np.argmin(costs), n_bits, choices, out[row])


@numba.njit(cache=True, nogil=True)
def _shift(
    costs: NDArray[np.float32],
    b: int,
    least: NDArray[np.float32],
    choices: NDArray[np.uint8],
) -> None:
    """The least cost of each content of the register that stays when b bits are shifted out.

    ``choices`` gets the bits shifted out.
    """
    kept = STATES >> b
    for low in range(kept):
        least[low] = costs[low]
        choices[low] = 0
    for out in range(1, 1 << b):
        for low in range(kept):
            cost = costs[out * kept + low]
            better = cost < least[low]
            least[low] = cost if better else least[low]
            choices[low] = out if better else choices[low]


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _add_errors(
    least: NDArray[np.float32],
    b: int,
    x: float,
    scale: float,
    levels: NDArray[np.float32],
    costs: NDArray[np.float32],
) -> None:
    """The cost of each state once b bits are shifted in, and the component has its value."""
    for state in range(STATES):
        gap = x - scale * levels[state]
        costs[state] = least[state >> b] + gap * gap


@numba.njit(cache=True, nogil=True)
def _write(
    end: int, n_bits: NDArray[np.int64], choices: NDArray[np.uint8], out: NDArray[np.uint8]
) -> None:
    """Write the bits of the path to the state ``end``, from the last one to the first."""
    place = n_bits.sum()
    state = end
    for j in range(len(n_bits) - 1, -1, -1):
        b = n_bits[j]
        for bit in range(b):
            place -= 1
            out[place >> 3] |= ((state >> bit) & 1) << (7 - (place & 7))
        low = state >> b
        state = choices[j, low] * (STATES >> b) + low


@numba.njit(cache=True, nogil=True)
def decode_trellis(
    codes: NDArray[np.uint8],
    n_bits: NDArray[np.int64],
    scales: NDArray[np.float32],
    levels: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """The values of the components of each row of codes."""
    last = codes.shape[1] - 1
    for row in range(len(codes)):
        place = 0
        for j in range(len(n_bits)):
            b = n_bits[j]
            place += b  # the state is the eight bits before it
            byte = (place - 1) >> 3
            before = np.int64(codes[row, byte - 1]) if byte > 0 else np.int64(0)
            window = (before << 8) | np.int64(codes[row, min(byte, last)])
            state = (window >> (7 - ((place - 1) & 7))) & (STATES - 1)
            out[row, j] = scales[j] * levels[b, state]


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


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def score_pairs(
    weights: NDArray[np.float32],
    codes: NDArray[np.uint8],
    skip: int,
    queries: NDArray[np.int64],
    rows: NDArray[np.int64],
    segments: Segments,
    levels: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """The sum over components j of ``weights[q, -1 - j] * levels[n_bits[j], state]``, of pairs.

    This is the product of query q with a decoded row, if the weights are the query's components
    times their scales, from the last to the first.  Codes begin after ``skip`` bytes.  The rows are
    copied some at a time: so the processor waits for many of them at once, and then computes
    without waiting.
    """
    k, width = weights.shape[1], codes.shape[1] - skip
    near = np.empty((TOGETHER, width), np.uint8)
    for start in range(0, len(rows), TOGETHER):
        n = min(TOGETHER, len(rows) - start)
        for i in range(n):
            row = np.uint64(rows[start + i])
            for byte in range(width):
                near[i, byte] = codes[row, skip + byte]
        for i in range(n):
            w = weights[np.uint64(queries[start + i])]
            total = np.float32(0)
            for s in range(len(segments.firsts)):
                b, last = segments.n_bits[s], segments.lasts[s]
                word = _word(near, np.uint64(i), segments.ends[s]) >> np.uint64(segments.shifts[s])
                total += _run(w, k - last, k - segments.firsts[s], word, b, levels[np.uint64(b)])
            out[start + i] = total


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
def _word(codes: NDArray[np.uint8], row: np.uint64, end: int) -> np.uint64:
    """The eight bytes of a row before ``end``, the first being the highest; zeros before it."""
    word = np.uint64(0)
    if end >= 8:
        first = np.uint64(end - 8)
        for i in range(8):  # of known length: one load
            word |= np.uint64(codes[row, first + np.uint64(i)]) << np.uint64(56 - 8 * i)
        return word
    for i in range(end):
        word = (word << np.uint64(8)) | np.uint64(codes[row, np.uint64(i)])
    return word
