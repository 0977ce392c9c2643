"""Trellis coding: a path through the states of a shift register, chosen by Viterbi's algorithm.

A vector of k components is written as one string of bits, ``n_bits[j]`` for component j, the first
bit of a byte being its highest.  The *state* after component j is the last eight bits written, of
a string that begins with eight zeros, and the value of the component is
``scales[j] * levels[n_bits[j], state]``.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

STATES = 256  # of a register of eight bits


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
