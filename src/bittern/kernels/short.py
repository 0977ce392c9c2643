"""Counting kernels for codes of one word.

Four queries go over the database together.  A pair of queries shares one table whose entry
``[d, e]`` counts the items at distance ``d`` from the first and ``e`` from the second: one
increment serves two distances, and the sums of rows and of columns are the two histograms.

Not checked here, guaranteed by ``bittern.relevance``: arrays are C-contiguous, ``counts`` is
``(n_queries, n_levels, n_bits + 1)``, and no count exceeds 32 bits.  Each kernel has a NumPy
twin of the same name and signature in ``kernels.reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount
from bittern.kernels.pairs import shared_tags

STRIDE = 128  # entries a row of the joint table: 65 distances, rounded up to a shift
SHIFT = np.uint64(7)
WIDE = 256  # the same where a distance comes in two kinds, relevant or not
WIDE_SHIFT = np.uint64(8)
ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    database = planes[0]
    tables = np.zeros((2, 65 * STRIDE), np.uint32)
    n_quads = queries.shape[0] // 4
    for quad in range(n_quads):
        q = 4 * quad
        start, stop = starts[q], stops[q]
        together = True
        for j in range(1, 4):
            together &= starts[q + j] == start and stops[q + j] == stop
        if together:
            _scan_four(queries, q, database[:start], tables)
            _scan_four(queries, q, database[stop:], tables)
            _unload_four(tables, counts, q, 0)
            _scan_four(queries, q, database[start:stop], tables)
            _unload_four(tables, counts, q, 1)
        else:
            _scan_four(queries, q, database, tables)
            _unload_four(tables, counts, q, 0)
            for j in range(q, q + 4):
                move_range(queries[j, 0], database[starts[j] : stops[j]], counts[j])
    for q in range(4 * n_quads, queries.shape[0]):
        scan_one(queries[q, 0], database, counts[q, 0])
        move_range(queries[q, 0], database[starts[q] : stops[q]], counts[q])


@njit(cache=True, nogil=True)
def _scan_four(queries, q, database, tables):
    """Fill the two joint tables of queries q … q + 3."""
    a, b, c, d = queries[q, 0], queries[q + 1, 0], queries[q + 2, 0], queries[q + 3, 0]
    first, second = tables[0], tables[1]
    for i in range(database.shape[0]):
        x = database[i]
        first[(popcount(a ^ x) << SHIFT) + popcount(b ^ x)] += ONE
        second[(popcount(c ^ x) << SHIFT) + popcount(d ^ x)] += ONE


@njit(cache=True, nogil=True)
def _unload_four(tables, counts, q, level):
    _unload(tables[0], STRIDE, counts[q, level], counts[q + 1, level])
    _unload(tables[1], STRIDE, counts[q + 2, level], counts[q + 3, level])


@njit(cache=True, nogil=True)
def _unload(table, stride, by_row, by_column):
    """Add the rows' and the columns' sums of a joint table to two histograms, and empty it."""
    n = by_row.shape[0]
    for d in range(n):
        row = table[d * stride : d * stride + n]
        total = np.uint32(0)
        for e in range(n):
            total += row[e]
        if total > 0:
            by_row[d] += total
            for e in range(n):
                by_column[e] += row[e]
            row[:] = 0


@njit(inline="always")
def scan_one(query, database, histogram):
    """Count all items by distance."""
    for i in range(database.shape[0]):
        histogram[popcount(query ^ database[i])] += ONE


@njit(inline="always")
def move_range(query, relevant, counts):
    """Move the items of ``relevant`` from level 0 to level 1."""
    for i in range(relevant.shape[0]):
        d = popcount(query ^ relevant[i])
        counts[0, d] -= ONE
        counts[1, d] += ONE


@njit(cache=True, nogil=True)
def count_categories(queries, planes, categories, starts, query_masks, masks, graded, counts):
    """Add to ``counts[q, v, d]``: items at distance d that share v tags with q.

    At most 1 if not graded.  ``categories[i]`` is the category of item i, ascending; ``starts[c]``
    is where category c begins; ``masks[w, c]`` is word w of its tags.
    """
    database = planes[0]
    n_queries, n_levels, n_distances = counts.shape
    flat = counts.reshape(n_queries, -1)[:, : 2 * n_distances]
    tables = np.zeros((2, 2 * 65 * WIDE), np.uint32)
    levels = np.empty((4, masks.shape[1]), np.uint16)
    offsets = np.zeros((2, masks.shape[1]), np.uint32)
    words = np.zeros(4, np.uint64)
    spare = np.zeros((4, 2 * n_distances), np.uint32)  # for queries that the last quad lacks
    for q in range(0, n_queries, 4):
        width = min(4, n_queries - q)
        shared_tags(query_masks[q : q + width], masks, graded, levels)
        offsets[:] = 0
        for j in range(width):
            words[j] = queries[q + j, 0]
            step, row = n_distances * (1 if j % 2 else WIDE), offsets[j // 2]
            for c in range(masks.shape[1]):
                row[c] += min(levels[j, c], 1) * step
        _scan_categories(words, database, categories, offsets, tables)
        out = spare
        out[:width] = flat[q : q + width]
        _unload(tables[0], WIDE, out[0], out[1])
        _unload(tables[1], WIDE, out[2], out[3])
        flat[q : q + width] = out[:width]
        if n_levels > 2:
            for j in range(width):
                _grade(words[j], database, starts, levels[j], counts[q + j])


@njit(cache=True, nogil=True)
def _scan_categories(words, database, categories, offsets, tables):
    """Fill two joint tables over (relevant or not, distance), two queries each."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    first, second, u, v = tables[0], tables[1], offsets[0], offsets[1]
    for i in range(database.shape[0]):
        x, category = database[i], categories[i]
        first[(popcount(a ^ x) << WIDE_SHIFT) + popcount(b ^ x) + u[category]] += ONE
        second[(popcount(c ^ x) << WIDE_SHIFT) + popcount(d ^ x) + v[category]] += ONE


@njit(cache=True, nogil=True)
def _grade(query, database, starts, levels, counts):
    """Move the items of categories above level 1 from level 1 to their own."""
    for c in range(levels.shape[0]):
        if levels[c] > 1:
            for i in range(starts[c], starts[c + 1]):
                d = popcount(query ^ database[i])
                counts[1, d] -= ONE
                counts[levels[c], d] += ONE
