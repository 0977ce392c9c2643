"""Kernels over listed pairs of a query and a database item.

Guaranteed by the caller as in ``kernels.short``; twins in ``kernels.reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def move_listed(queries, database, offsets, items, levels, counts):
    """Move items ``offsets[q] … offsets[q + 1] - 1`` of query q from level 0 to their own level."""
    for q in range(queries.shape[0]):
        for k in range(offsets[q], offsets[q + 1]):
            d = 0
            for w in range(queries.shape[1]):
                d += popcount(queries[q, w] ^ database[items[k], w])
            counts[q, 0, d] -= ONE
            counts[q, levels[k], d] += ONE


@njit(cache=True, nogil=True)
def remove_listed(queries, database, items, levels, counts):
    """Take item ``items[q]``, of level ``levels[q]``, out of the counts of query q; -1 is none."""
    for q in range(queries.shape[0]):
        if items[q] >= 0:
            d = 0
            for w in range(queries.shape[1]):
                d += popcount(queries[q, w] ^ database[items[q], w])
            counts[q, levels[q], d] -= ONE


@njit(cache=True, nogil=True)
def shared_tags(query_masks, database_masks, graded, levels):
    """Fill ``levels[q, c]`` with the tags that q and c share: how many, or 1 for any if not graded."""
    for q in range(query_masks.shape[0]):
        for c in range(database_masks.shape[0]):
            shared = 0
            for w in range(query_masks.shape[1]):
                shared += popcount(query_masks[q, w] & database_masks[c, w])
            levels[q, c] = shared if graded else min(shared, 1)
