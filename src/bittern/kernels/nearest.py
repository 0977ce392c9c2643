"""The nearest of many items, kept while blocks of distances come in."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


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
    k = nearest.shape[1]
    for q in range(len(distances)):
        worst = nearest[q, k - 1]
        for j in range(distances.shape[1]):
            d = distances[q, j]
            if d >= worst or (len(allowed) > 0 and not allowed[j]):
                continue
            place = np.searchsorted(nearest[q], d, side="right")
            for at in range(k - 1, place, -1):
                nearest[q, at] = nearest[q, at - 1]
                rows[q, at] = rows[q, at - 1]
            nearest[q, place] = d
            rows[q, place] = first_row + j
            worst = nearest[q, k - 1]
