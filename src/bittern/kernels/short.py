"""Counting kernels for codes of one word.

Four queries go over the database together.  A pair of queries shares one table whose entry
``[d, e]`` counts the items at distance ``d`` from the first and ``e`` from the second: one
increment serves two distances, and the sums of rows and of columns are the two histograms.

Not checked here, guaranteed by ``bittern.counting``: arrays are C-contiguous, ``counts`` is
``(n_queries, n_levels, n_bits + 1)``, and no count exceeds 32 bits.  Each kernel has a NumPy
twin of the same name and signature in ``kernels.reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

STRIDE = 128  # entries a row of the joint table: 65 distances, rounded up to a shift
SHIFT = np.uint64(7)
ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v = 1 in rows ``starts[q]:stops[q]``, else 0."""
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
            _unload(tables, counts, q, 0)
            _scan_four(queries, q, database[start:stop], tables)
            _unload(tables, counts, q, 1)
        else:
            _scan_four(queries, q, database, tables)
            _unload(tables, counts, q, 0)
            for j in range(q, q + 4):
                _move_range(queries[j, 0], database[starts[j] : stops[j]], counts[j])
    for q in range(4 * n_quads, queries.shape[0]):
        _scan_one(queries[q, 0], database, counts[q, 0])
        _move_range(queries[q, 0], database[starts[q] : stops[q]], counts[q])


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
def _unload(tables, counts, q, level):
    """Add the rows' and columns' sums to the histograms of four queries; empty the tables."""
    n_distances = counts.shape[2]
    for pair in range(2):
        table = tables[pair]
        by_row, by_column = counts[q + 2 * pair, level], counts[q + 2 * pair + 1, level]
        for d in range(n_distances):
            row = table[d * STRIDE : d * STRIDE + n_distances]
            total = np.uint32(0)
            for e in range(n_distances):
                total += row[e]
            if total > 0:
                by_row[d] += total
                for e in range(n_distances):
                    by_column[e] += row[e]
                    row[e] = 0


@njit(cache=True, nogil=True)
def _scan_one(query, database, histogram):
    for i in range(database.shape[0]):
        histogram[popcount(query ^ database[i])] += ONE


@njit(cache=True, nogil=True)
def _move_range(query, relevant, counts):
    """Move the items of ``relevant`` from level 0 to level 1."""
    for i in range(relevant.shape[0]):
        d = popcount(query ^ relevant[i])
        counts[0, d] -= ONE
        counts[1, d] += ONE


@njit(cache=True, nogil=True)
def count_categories(queries, planes, categories, levels, counts):
    """Add to ``counts[q, v, d]``: items at distance d whose category has level v for q.

    ``categories[i]`` is the category of item i and ``levels[q, c]`` the level of category c.
    """
    database = planes[0]
    n_queries, n_distances = queries.shape[0], counts.shape[2]
    flat = counts.reshape(n_queries, -1)
    offsets = np.empty((4, levels.shape[1]), np.uint32)
    spare = np.zeros((4, flat.shape[1]), np.uint32)
    for q in range(0, n_queries, 4):
        width = min(4, n_queries - q)
        for j in range(width):
            for c in range(levels.shape[1]):
                offsets[j, c] = levels[q + j, c] * n_distances
        a, h = queries[q, 0], flat[q]
        b, k = (queries[q + 1, 0], flat[q + 1]) if width > 1 else (a, spare[1])
        c0, m = (queries[q + 2, 0], flat[q + 2]) if width > 2 else (a, spare[2])
        d, p = (queries[q + 3, 0], flat[q + 3]) if width > 3 else (a, spare[3])
        u, v, w, z = offsets[0], offsets[1], offsets[2], offsets[3]
        for i in range(database.shape[0]):
            x, category = database[i], categories[i]
            h[popcount(a ^ x) + u[category]] += ONE
            k[popcount(b ^ x) + v[category]] += ONE
            m[popcount(c0 ^ x) + w[category]] += ONE
            p[popcount(d ^ x) + z[category]] += ONE
