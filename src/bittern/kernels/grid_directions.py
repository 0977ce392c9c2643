"""Directions of a grid of half-integers: the one nearest to a vector's direction."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def nearest_directions(x: NDArray[np.float32], n_bits: int) -> NDArray[np.uint8]:
    """For each row, the grid vector with the largest cosine, as numbers from 0 to 2^n_bits - 1.

    Number m stands for ``m - (2^n_bits - 1) / 2``.  Grid vectors that can be nearest are those to
    which ``t * x`` rounds for some t > 0: as t grows, one entry after the other moves up by 1, and
    the best vector is one of those met on the way.
    """
    n, k = x.shape
    half = 1 << (n_bits - 1)
    out = np.empty((n, k), np.uint8)
    steps = half - 1  # that an entry can move up
    times = np.empty(k * steps, np.float64)
    movers = np.empty(k * steps, np.int64)
    for row in range(n):
        level = np.zeros(k, np.int64)
        product, square = 0.0, 0.25 * k
        n_moves = 0
        for j in range(k):
            size = abs(x[row, j])
            product += 0.5 * size
            if size > 0:
                for step in range(1, half):
                    times[n_moves] = step / size
                    movers[n_moves] = j
                    n_moves += 1
        order = np.argsort(times[:n_moves])
        best, best_moves = product / np.sqrt(square), 0
        for move in range(n_moves):
            j = movers[order[move]]
            square += 2 * (level[j] + 0.5) + 1
            product += abs(x[row, j])
            level[j] += 1
            if product > best * np.sqrt(square):
                best, best_moves = product / np.sqrt(square), move + 1
        level[:] = 0
        for move in range(best_moves):
            level[movers[order[move]]] += 1
        for j in range(k):
            out[row, j] = half + level[j] if x[row, j] > 0 else half - 1 - level[j]
    return out
