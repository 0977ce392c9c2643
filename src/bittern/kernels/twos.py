"""Counting kernels for codes of one to four words, where AVX2 is at hand.

Two queries go over the database together and share one table, by the places of
``kernels.vectors``.

Guaranteed by the caller as in ``kernels.short``; the twins are those of ``kernels.long``, which
also counts for queries that have an item too far away for this.
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
    count_groups_and_place_two,
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

_recount_ranges, _recount_categories = long.count_ranges, long.count_categories


@njit(cache=True, nogil=True)
def count_ranges(queries, planes, starts, stops, counts):
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    tiles = tiles_of(planes)
    n_queries, n_tiles, n = queries.shape[0], tiles.shape[0], planes.shape[1]
    filled = np.uint32(n_tiles * TILE - n)
    scratch = _scratch(queries.shape[1], 1)
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
        exact = _unload(differ, scratch, 0, found[0, 0], found[1, 0])
        _rest(scratch)
        _scan(tiles, near, far, scratch)
        exact &= _unload(differ, scratch, 0, found[0, 1], found[1, 1])
        _rest(scratch)
        if not exact:
            some = slice(q, last + 1)
            _recount_ranges(queries[some], planes, starts[some], stops[some], counts[some])
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
def count_categories(queries, planes, categories, starts, levels, counts):
    """Add to ``counts[q, v, d]``: items at distance d whose category has level v for q.

    ``categories[i]`` is the category of item i, ascending; ``starts[c]`` is where category c
    begins; ``levels[q, c]`` is the level of category c for query q.
    """
    tiles = tiles_of(planes)
    n_queries, n_levels, n_distances = counts.shape
    n_tiles, n, n_categories = tiles.shape[0], planes.shape[1], levels.shape[1]
    filled = np.uint32(n_tiles * TILE - n)
    scratch = _scratch(queries.shape[1], 4)
    found = np.empty((2, 2, n_distances), np.uint32)
    zero = np.zeros(queries.shape[1], np.uint64)
    kinds = np.zeros(n_categories + 1, np.uint8)  # the last is of what fills the last tile
    grouped = np.full((n_tiles, TILE), n_categories, np.uint32)
    grouped.reshape(-1)[:n] = categories
    high = np.empty(n_categories, np.int64)
    for q in range(0, n_queries, 2):
        last = min(q + 1, n_queries - 1)
        fill_table(queries[q], scratch[0], 0)
        fill_table(queries[last], scratch[0], 1)
        for c in range(n_categories):
            kinds[c] = (levels[q, c] > 0) | (levels[last, c] > 0) << 1
        differ = _distance(queries[q], queries[last]) & np.uint64(1)
        found[:] = 0
        _scan_groups(tiles, grouped, kinds, scratch)
        exact = True
        for kind in range(4):
            exact &= _unload(differ, scratch, kind, found[0, kind & 1], found[1, kind >> 1])
        _rest(scratch)
        if not exact:
            some = slice(q, last + 1)
            _recount_categories(
                queries[some], planes, categories, starts, levels[some], counts[some]
            )
            continue
        for j in range(q, last + 1):
            found[j - q, 0, _distance(queries[j], zero)] -= filled
            counts[j, :2] += found[j - q]
            if n_levels > 2:
                _grade(queries[j], planes, starts, levels[j], high, counts[j])


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
def _grade(query, planes, starts, levels, high, counts):
    """Move the items of categories above level 1 from level 1 to their own."""
    n = 0
    for c in range(levels.shape[0]):
        high[n] = c
        n += levels[c] > 1
    for c in high[:n]:
        level = levels[c]
        for i in range(starts[c], starts[c + 1]):
            d = _distance(query, planes[:, i])
            counts[1, d] -= ONE
            counts[level, d] += ONE


@njit(cache=True, nogil=True)
def _scratch(n_words, n_kinds):
    """Tables of look-ups, extents, places of some tiles, the counts of places of each kind."""
    extent = np.empty((2, 2, LANES), np.uint8)
    extent[:, 0], extent[:, 1] = 255, 0
    joint = np.empty((LAG, TILE), np.uint16)
    table = np.zeros((n_kinds, ROWS, HALVES), np.uint32)
    return np.empty((n_words * NIBBLES, 2, LANES), np.uint8), extent, joint, table


@njit(cache=True, nogil=True)
def _rest(scratch):
    """Forget the extents."""
    scratch[1][:, 0], scratch[1][:, 1] = 255, 0


@njit(cache=True, nogil=True)
def _scan(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    tables, extent, joint, table = scratch
    none = extent[0, 0]  # no categories
    for t in range(first, min(last, first + LAG)):
        place_two(tiles, t, tables, extent, joint[t % LAG], none, none, table)
    for t in range(first + LAG, last):
        count_and_place_two(tiles, t, tables, extent, joint[t % LAG], none, none, table)
    flat = table.reshape(-1)
    for t in range(max(first, last - LAG), last):
        for i in range(TILE):
            flat[joint[t % LAG, i]] += ONE


@njit(cache=True, nogil=True)
def _scan_groups(tiles, grouped, kinds, scratch):
    """Count all tiles, each item by the kind of its category."""
    tables, extent, joint, table = scratch
    n = tiles.shape[0]
    for t in range(min(n, LAG)):
        place_two(tiles, t, tables, extent, joint[t % LAG], grouped[t], kinds, table)
    for t in range(LAG, n):
        before = grouped[t - LAG]
        count_groups_and_place_two(tiles, t, tables, extent, joint[t % LAG], before, kinds, table)
    flat = table.reshape(table.shape[0], -1)
    for t in range(max(0, n - LAG), n):
        for i in range(TILE):
            flat[kinds[grouped[t, i]], joint[t % LAG, i]] += ONE


@njit(cache=True, nogil=True)
def _unload(differ, scratch, kind, first, second):
    """Add the counts of one kind to two histograms and empty them.

    False if an item was too far away, and all counts are void.
    """
    _, extent, _, table = scratch
    least, most = np.int64(extent[0, 0].min()), np.int64(extent[0, 1].max())
    if max(most, np.int64(extent[1, 1].max())) >= ROWS - 1:
        table[:] = 0
        return False
    columns = np.zeros((SHIFTS, HALVES), np.uint32)
    for d in range(least, most + 1):
        total, row = np.uint32(0), (kind * ROWS + d) * PARTS
        for part in range(PARTS):
            total += take_row(table, row + part, columns, d % SHIFTS * PARTS + part)
        if total > 0:
            first[d] += total
    for shift in range(SHIFTS):
        odd = np.uint64(shift & 1) ^ differ
        for e in range(HALVES):
            here = columns[shift, (e + 16 * shift) % HALVES]
            if here > 0:
                second[np.uint64(2 * e) + odd] += here
    return True
