"""Counting kernel for codes of two words.

Three queries go over the database together, each with a histogram of its own, so that increments of
one do not wait for those of another; three, because that is what the registers hold.

Guaranteed by the caller as in ``kernels.short``, and that ``n_words`` is 2; the twin is that of
``kernels.short`` and ``kernels.long``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    n, n_queries = planes.shape[1], queries.shape[0]
    rows = np.zeros((3, counts.shape[2]), np.uint32)
    for q in range(0, n_queries, 3):
        width = min(3, n_queries - q)
        together = width == 3
        for j in range(1, width):
            together &= starts[q + j] == starts[q] and stops[q + j] == stops[q]
        if together:
            _scan_three(queries, q, planes, 0, starts[q], rows)
            _scan_three(queries, q, planes, stops[q], n, rows)
            _unload(rows, counts[q : q + 3, 0])
            _scan_three(queries, q, planes, starts[q], stops[q], rows)
            _unload(rows, counts[q : q + 3, 1])
        else:
            for j in range(q, q + width):
                _scan_one(queries[j], planes, 0, starts[j], counts[j, 0])
                _scan_one(queries[j], planes, stops[j], n, counts[j, 0])
                _scan_one(queries[j], planes, starts[j], stops[j], counts[j, 1])


@njit(cache=True, nogil=True)
def _scan_three(queries, q, planes, start, stop, rows):
    a, b = queries[q, 0], queries[q, 1]
    c, d = queries[q + 1, 0], queries[q + 1, 1]
    e, f = queries[q + 2, 0], queries[q + 2, 1]
    low, high = planes[0, start:stop], planes[1, start:stop]
    first, second, third = rows[0], rows[1], rows[2]
    for i in range(low.shape[0]):
        x, y = low[i], high[i]
        first[popcount(a ^ x) + popcount(b ^ y)] += ONE
        second[popcount(c ^ x) + popcount(d ^ y)] += ONE
        third[popcount(e ^ x) + popcount(f ^ y)] += ONE


@njit(cache=True, nogil=True)
def _unload(rows, histograms):
    for j in range(3):
        for d in range(rows.shape[1]):
            histograms[j, d] += rows[j, d]
    rows[:] = 0


@njit(cache=True, nogil=True)
def _scan_one(query, planes, start, stop, histogram):
    a, b = query[0], query[1]
    low, high = planes[0, start:stop], planes[1, start:stop]
    for i in range(low.shape[0]):
        histogram[popcount(a ^ low[i]) + popcount(b ^ high[i])] += ONE
