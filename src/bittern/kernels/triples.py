"""Counting kernels for codes of one word, where AVX2 is at hand.

Three queries go over the database together and share one table, by the places of
``kernels.vectors``: one increment serves three distances.

Guaranteed by the caller as in ``kernels.short``, whose twin is this module's.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount
from bittern.kernels.short import _move_range, _scan_one
from bittern.kernels.vectors import (
    LANES,
    MIDDLE,
    NIBBLES,
    TILE,
    count_and_place_three,
    fill_table,
    place_three,
    take_row,
    tiles_of,
)

ROWS, HALVES = 64, 32  # first distances, and halves of the others, in a table
LAG = 2  # tiles between finding places and counting them, lest the counting wait
ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    database, tiles = planes[0], tiles_of(planes)
    n_queries, n_tiles = queries.shape[0], tiles.shape[0]
    filled = np.uint32(n_tiles * TILE - database.shape[0])
    scratch = _scratch()
    words = np.empty((3, 1), np.uint64)
    found = np.empty((3, 2, counts.shape[2]), np.uint32)
    for q in range(0, n_queries, 3):
        width = min(3, n_queries - q)
        _load_queries(queries, q, words, scratch)
        start, stop = starts[q], stops[q]
        together = True
        for j in range(1, width):
            together &= starts[q + j] == start and stops[q + j] == stop
        near, far = -(-start // TILE), stop // TILE
        if not together or far <= near:
            near = far = 0
        found[:] = 0
        _scan(tiles, 0, near, scratch)
        _scan(tiles, far, n_tiles, scratch)
        exact = _unload(words, scratch, found[:, 0])
        _scan(tiles, near, far, scratch)
        exact &= _unload(words, scratch, found[:, 1])
        for j in range(width):
            query, here = words[j, 0], counts[q + j]
            start, stop = starts[q + j], stops[q + j]
            if not exact:
                _scan_one(query, database, here[0])
                _move_range(query, database[start:stop], here)
                continue
            found[j, 0, popcount(query)] -= filled
            here[:2] += found[j]
            if far > near:
                _move_range(query, database[start : near * TILE], here)
                _move_range(query, database[far * TILE : stop], here)
            else:
                _move_range(query, database[start:stop], here)


@njit(cache=True, nogil=True)
def _load_queries(queries, q, words, scratch):
    """Take queries q, q + 1, q + 2, the last for those that are not there."""
    for j in range(3):
        words[j] = queries[min(q + j, queries.shape[0] - 1)]
        fill_table(words[j], scratch[0], j)


@njit(cache=True, nogil=True)
def _scratch():
    """Tables of look-ups, extents, places of some tiles, the counts of places."""
    extent = np.empty((3, 2, LANES), np.uint8)
    extent[:, 0], extent[:, 1] = 255, 0
    joint = np.empty((LAG, TILE), np.uint16)
    table = np.zeros((ROWS, HALVES, HALVES), np.uint32)
    return np.empty((NIBBLES, 3, LANES), np.uint8), extent, joint, table


@njit(cache=True, nogil=True)
def _scan(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    tables, extent, joint, table = scratch
    none = extent[0, 0]  # no kinds
    for t in range(first, min(last, first + LAG)):
        place_three(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    for t in range(first + LAG, last):
        count_and_place_three(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    flat = table.reshape(-1)
    for t in range(max(first, last - LAG), last):
        for i in range(TILE):
            flat[joint[t % LAG, i]] += ONE


@njit(cache=True, nogil=True)
def _unload(words, scratch, histograms):
    """Add the counts to three histograms and empty them; False if an item was 64 bits away."""
    _, extent, _, table = scratch
    least, most = np.empty(3, np.int64), np.empty(3, np.int64)
    for j in range(3):
        least[j], most[j] = extent[j, 0].min(), extent[j, 1].max()
    extent[:, 0], extent[:, 1] = 255, 0
    if most.max() >= ROWS:
        table[:] = 0
        return False
    first, second, third = histograms[0], histograms[1], histograms[2]
    differ = popcount(words[0, 0] ^ words[1, 0]) & np.uint64(1)
    columns = np.zeros((2, HALVES), np.uint32)
    for d in range(least[0], most[0] + 1):
        total, odd = np.uint32(0), np.uint64(d & 1)
        for e in range(least[1] >> 1, (most[1] >> 1) + 1):
            here = take_row(table, d * HALVES + (e ^ (d & 31)), columns, d & 1)
            if here > 0:
                total += here
                second[np.uint64(2 * e) + (odd ^ differ)] += here
        if total > 0:
            first[d] += total
    differ = popcount(words[0, 0] ^ words[2, 0]) & np.uint64(1)
    for odd in range(2):
        for f in range(HALVES):
            here = columns[odd, (f + 16 * odd + MIDDLE) & 31]
            if here > 0:
                third[np.uint64(2 * f) + (np.uint64(odd) ^ differ)] += here
    return True
