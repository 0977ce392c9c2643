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
def shared_tags(query_masks, planes, graded, levels):
    """Fill ``levels[q, c]`` with the number of tags that q and c share, at most 1 if not graded.

    ``planes[w, c]`` is word w of the mask of c: with one word at a time the loops are vector code.
    """
    n_words, n = planes.shape
    for q in range(query_masks.shape[0]):
        row = levels[q]
        row[:] = 0
        for w in range(n_words):
            a, x = query_masks[q, w], planes[w]
            if a == 0:
                continue
            if graded:
                for c in range(n):
                    row[c] += popcount(a & x[c])
            else:
                for c in range(n):
                    row[c] |= (a & x[c]) != 0


@njit(cache=True, nogil=True)
def group(classes, offsets, order):
    """Fill ``order`` with positions by class, stable; ``offsets[c]`` is where class c begins."""
    free = offsets.copy()
    for i in range(classes.shape[0]):
        order[free[classes[i]]] = i
        free[classes[i]] += 1
