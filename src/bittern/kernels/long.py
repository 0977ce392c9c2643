"""Counting kernels for codes of any number of words.

The database comes as planes: ``planes[w, i]`` is word w of item i.  Distances of a short run of
items are summed over the planes into a buffer, which the compiler turns into vector code whatever
the number of words; then the buffer is counted.

Guaranteed by the caller as in ``kernels.short``; twins in ``kernels.reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount
from bittern.kernels.pairs import shared_tags

RUN = 256  # items whose distances are held at once
TILE = 1 << 15  # words of the database that stay near while all queries pass
ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    n_words, n = planes.shape
    buffer = np.empty(RUN, np.uint64)
    rows = np.zeros((4, counts.shape[2]), np.uint32)
    tile = max(RUN, TILE // n_words)
    for near in range(0, n, tile):
        far = min(n, near + tile)
        for q in range(queries.shape[0]):
            start, stop = max(near, min(starts[q], far)), max(near, min(stops[q], far))
            _scan(queries[q], planes, near, start, buffer, rows)
            _scan(queries[q], planes, stop, far, buffer, rows)
            _unload(rows, counts[q, 0])
            _scan(queries[q], planes, start, stop, buffer, rows)
            _unload(rows, counts[q, 1])


@njit(cache=True, nogil=True)
def _scan(query, planes, start, stop, buffer, rows):
    """Count items start … stop - 1 by distance, into four rows in turn lest ties queue up."""
    first, second, third, fourth = rows[0], rows[1], rows[2], rows[3]
    for s in range(start, stop, RUN):
        width = min(RUN, stop - s)
        measure(query, planes, s, buffer[:width])
        whole = width - width % 4
        for i in range(0, whole, 4):
            first[buffer[i]] += ONE
            second[buffer[i + 1]] += ONE
            third[buffer[i + 2]] += ONE
            fourth[buffer[i + 3]] += ONE
        for i in range(whole, width):
            first[buffer[i]] += ONE


@njit(cache=True, nogil=True)
def _unload(rows, histogram):
    for d in range(histogram.shape[0]):
        histogram[d] += rows[0, d] + rows[1, d] + rows[2, d] + rows[3, d]
    rows[:] = 0


@njit(cache=True, nogil=True)
def measure(query, planes, start, out):
    """Fill ``out[i]`` with the distance from the query to item ``start + i``; two planes a pass."""
    n_words, n = planes.shape[0], out.shape[0]
    stop = start + n
    a, x = query[0], planes[0, start:stop]
    if n_words % 2:
        for i in range(n):
            out[i] = popcount(a ^ x[i])
    else:
        b, y = query[1], planes[1, start:stop]
        for i in range(n):
            out[i] = popcount(a ^ x[i]) + popcount(b ^ y[i])
    for w in range(2 - n_words % 2, n_words, 2):
        a, x = query[w], planes[w, start:stop]
        b, y = query[w + 1], planes[w + 1, start:stop]
        for i in range(n):
            out[i] += popcount(a ^ x[i]) + popcount(b ^ y[i])


@njit(cache=True, nogil=True)
def count_categories(queries, planes, categories, starts, query_masks, masks, graded, counts):
    """Add to ``counts[q, v, d]``: items at distance d that share v tags with q.

    At most 1 if not graded.  ``categories[i]`` is the category of item i; ``masks[w, c]`` is word w
    of its tags; ``starts``, where categories begin, is for the twin in ``kernels.short``.
    """
    n = planes.shape[1]
    n_queries, n_distances = queries.shape[0], counts.shape[2]
    flat = counts.reshape(n_queries, -1)
    buffer = np.empty(RUN, np.uint64)
    levels = np.empty((1, masks.shape[1]), np.uint16)
    offsets = np.empty(masks.shape[1], np.uint64)
    for q in range(n_queries):
        histogram = flat[q]
        shared_tags(query_masks[q : q + 1], masks, graded, levels)
        for c in range(masks.shape[1]):
            offsets[c] = levels[0, c] * n_distances
        for s in range(0, n, RUN):
            width = min(RUN, n - s)
            measure(queries[q], planes, s, buffer[:width])
            for i in range(width):
                histogram[buffer[i] + offsets[categories[s + i]]] += ONE
