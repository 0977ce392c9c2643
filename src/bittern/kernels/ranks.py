"""Ranks of the relevant items if tied items keep the order of the database.

``bittern.profile`` guarantees, and nothing here checks: arrays are C-contiguous, word arrays have
the same width, and ``ranks`` and ``hits`` have a column for each relevant item.  The NumPy twin is
``tests/kernels/twins/rank_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount


@njit(cache=True, nogil=True)
def rank_relevant(queries, database, levels, excluded, nearer, found, ranks, hits):
    """Fill ``ranks[q, j]`` with the rank of query q's relevant item j, and ``hits`` with its level.

    Ranks count from 1.  ``nearer[q, d]`` and ``found[q, d]`` are the items, and the relevant items,
    nearer than distance d; one pass over the database advances them, so that an item's rank is
    known without sorting.  ``levels[q, i]`` is the level of item i; item ``excluded[q]`` is not in
    the ranking.
    """
    for q in range(queries.shape[0]):
        for i in range(database.shape[0]):
            if i == excluded[q]:
                continue
            d = np.int64(0)
            for w in range(queries.shape[1]):
                d += np.int64(popcount(queries[q, w] ^ database[i, w]))
            nearer[q, d] += 1
            if levels[q, i] > 0:
                j = found[q, d]
                ranks[q, j] = nearer[q, d]
                hits[q, j] = levels[q, i]
                found[q, d] += 1
