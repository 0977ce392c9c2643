"""Counting by ranges for codes of two to four words, where AVX2 is at hand.

Two queries go over the database together and share one table, by the places of
``kernels.vectors``.

Guaranteed by the caller as in ``kernels.short``; the twin is that of ``kernels.long``, which also
counts for queries that have an item too far away for this.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels import long
from bittern.kernels.bits import popcount
from bittern.kernels.vectors import (
    LANES,
    NIBBLES,
    TILE,
    count_and_place_two,
    fill_table,
    place_two,
    take_row,
    tiles_of,
)

ROWS, HALVES = 256, 128  # first distances, and halves of the second, in the table
PARTS = HALVES // LANES
SHIFTS = HALVES // 16  # rows are shifted by 16 d
LAG = 2  # tiles between finding places and counting them, lest the counting wait
ONE = np.uint32(1)

_recount = long.count_ranges


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    tiles = tiles_of(planes)
    n_queries, n_tiles, n = queries.shape[0], tiles.shape[0], planes.shape[1]
    filled = np.uint32(n_tiles * TILE - n)
    scratch = _scratch(queries.shape[1])
    found = np.empty((2, 2, counts.shape[2]), np.uint32)
    zero = np.zeros(queries.shape[1], np.uint64)
    for q in range(0, n_queries, 2):
        last = min(q + 1, n_queries - 1)
        fill_table(queries[q], scratch[0], 0)
        fill_table(queries[last], scratch[0], 1)
        start, stop = starts[q], stops[q]
        near, far = -(-start // TILE), stop // TILE
        if starts[last] != start or stops[last] != stop or far <= near:
            near = far = 0
        differ = _distance(queries[q], queries[last]) & np.uint64(1)
        found[:] = 0
        _scan(tiles, 0, near, scratch)
        _scan(tiles, far, n_tiles, scratch)
        exact = _unload(differ, scratch, found[:, 0])
        _scan(tiles, near, far, scratch)
        exact &= _unload(differ, scratch, found[:, 1])
        if not exact:
            some = slice(q, last + 1)
            _recount(queries[some], planes, starts[some], stops[some], counts[some])
            continue
        for j in range(q, last + 1):
            here, start, stop = counts[j], starts[j], stops[j]
            found[j - q, 0, _distance(queries[j], zero)] -= filled
            here[:2] += found[j - q]
            if far > near:
                _move_range(queries[j], planes, start, near * TILE, here)
                _move_range(queries[j], planes, far * TILE, stop, here)
            else:
                _move_range(queries[j], planes, start, stop, here)


@njit(cache=True, nogil=True)
def _distance(a, b):
    d = np.uint64(0)
    for w in range(a.shape[0]):
        d += popcount(a[w] ^ b[w])
    return d


@njit(cache=True, nogil=True)
def _move_range(query, planes, start, stop, counts):
    """Move items start … stop - 1 from level 0 to level 1."""
    for i in range(start, stop):
        d = _distance(query, planes[:, i])
        counts[0, d] -= ONE
        counts[1, d] += ONE


@njit(cache=True, nogil=True)
def _scratch(n_words):
    """Tables of look-ups, extents, places of some tiles, the counts of places."""
    extent = np.empty((2, 2, LANES), np.uint8)
    extent[:, 0], extent[:, 1] = 255, 0
    joint = np.empty((LAG, TILE), np.uint16)
    table = np.zeros((ROWS, HALVES), np.uint32)
    return np.empty((n_words * NIBBLES, 2, LANES), np.uint8), extent, joint, table


@njit(cache=True, nogil=True)
def _scan(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    tables, extent, joint, table = scratch
    none = extent[0, 0]  # no kinds
    for t in range(first, min(last, first + LAG)):
        place_two(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    for t in range(first + LAG, last):
        count_and_place_two(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    flat = table.reshape(-1)
    for t in range(max(first, last - LAG), last):
        for i in range(TILE):
            flat[joint[t % LAG, i]] += ONE


@njit(cache=True, nogil=True)
def _unload(differ, scratch, histograms):
    """Add the counts to two histograms and empty them; False if an item was too far away."""
    _, extent, _, table = scratch
    bounds = take_extent(extent)
    if bounds[:, 1].max() >= ROWS - 1:
        table[:] = 0
        return False
    take_table(table, 0, bounds, differ, histograms[0], histograms[1])
    return True


@njit(cache=True, nogil=True)
def take_extent(extent):
    """Least and greatest distance from each query, over all lanes, which begin anew."""
    bounds = np.empty((extent.shape[0], 2), np.int64)
    for j in range(extent.shape[0]):
        bounds[j] = extent[j, 0].min(), extent[j, 1].max()
    extent[:, 0], extent[:, 1] = 255, 0
    return bounds


@njit(cache=True, nogil=True)
def take_table(table, start, bounds, differ, first, second):
    """Add the counts of a table to two histograms, and empty them.

    The table's first row is row ``start``; ``bounds`` are the least and the greatest distances;
    ``differ`` is 1 if one distance is odd where the other is even.
    """
    columns = np.zeros((SHIFTS, HALVES), np.uint32)
    for d in range(bounds[0, 0], bounds[0, 1] + 1):
        total, row = np.uint32(0), (start + d) * PARTS
        for part in range(PARTS):
            total += take_row(table, row + part, columns, d % SHIFTS * PARTS + part)
        if total > 0:
            first[d] += total
    for shift in range(SHIFTS):
        odd = np.uint64(shift & 1) ^ differ
        for e in range(bounds[1, 0] >> 1, (bounds[1, 1] >> 1) + 1):
            here = columns[shift, (e + 16 * shift) % HALVES]
            if here > 0:
                second[np.uint64(2 * e) + odd] += here
