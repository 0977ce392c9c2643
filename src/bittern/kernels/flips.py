"""Sums of differences under random flips of their signs.

``bittern.metrics`` guarantees, and nothing here checks: arrays are C-contiguous, and ``flips`` has
a row for each row of ``eights``.  The NumPy twin is ``tests/kernels/twins/flip_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PAIRS, SUMS = 8, 256  # that one random byte flips, and how many sums they can have


@njit(cache=True, nogil=True)
def add_flipped(eights, flips, sums):
    """Add to ``sums[j]`` the differences of each row of ``eights`` under the signs ``flips[:, j]``.

    Bit i of a byte is the sign of difference i: set means plus.
    """
    table = np.empty(SUMS)
    for row in range(eights.shape[0]):
        table[0] = 0.0
        n = 1
        for i in range(PAIRS):
            d = eights[row, i]
            for k in range(n):
                table[n + k] = table[k] + d
                table[k] -= d
            n *= 2
        for j in range(sums.shape[0]):
            sums[j] += table[flips[row, j]]
