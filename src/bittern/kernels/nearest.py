"""The nearest of many items, kept while blocks of distances come in."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

TOGETHER = 64  # distances compared at a time, most of them in vain


@numba.njit(cache=True, nogil=True)
def keep_nearest(
    distances: NDArray[np.float32],
    first_row: int,
    allowed: NDArray[np.bool_],
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Insert the distances ``(q, m)`` of the next m rows into the k nearest so far of each query.

    ``nearest`` and ``rows`` are ``(q, k)``, sorted by distance, and begin with infinity and -1.
    Blocks come in the order of rows, so that of equal distances the first row stays.  ``allowed``
    is empty, or a mask over the m rows.
    """
    n = distances.shape[1]
    for q in range(len(distances)):
        for start in range(0, n, TOGETHER):
            worst, n_near = nearest[q, -1], 0
            end = min(start + TOGETHER, n)
            for j in range(start, end):
                n_near += distances[q, j] < worst
            if n_near > 0:
                _insert(distances[q], start, end, first_row, allowed, nearest[q], rows[q])


@numba.njit(cache=True, nogil=True)
def _insert(
    distances: NDArray[np.float32],
    start: int,
    end: int,
    first_row: int,
    allowed: NDArray[np.bool_],
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Insert the distances from ``start`` to ``end`` of one query."""
    k = len(nearest)
    for j in range(start, end):
        d = distances[j]
        if d >= nearest[k - 1] or (len(allowed) > 0 and not allowed[j]):
            continue
        place = np.searchsorted(nearest, d, side="right")
        for at in range(k - 1, place, -1):
            nearest[at] = nearest[at - 1]
            rows[at] = rows[at - 1]
        nearest[place] = d
        rows[place] = first_row + j
