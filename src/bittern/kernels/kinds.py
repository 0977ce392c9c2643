"""Counting by categories for codes of one word, where AVX2 is at hand.

Two queries share one table as in ``kernels.twos``, a part of it for each kind of item: relevant to
neither, to the first, to the second, to both.  The kinds for eight queries fill a byte, so that
they are spread from categories to items once for eight queries.

Guaranteed by the caller as in ``kernels.short``, whose twin is this module's.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount
from bittern.kernels.pairs import shared_tags
from bittern.kernels.twos import HALVES, LAG, take_extent, take_table
from bittern.kernels.vectors import (
    LANES,
    NIBBLES,
    TILE,
    count_and_place_two_of_kinds,
    fill_table,
    place_two_of_kinds,
    tiles_of,
)

ROWS = 128  # first distances in the table of a kind
ONE = np.uint32(1)


@njit(cache=True, nogil=True)
def count_categories(queries, planes, categories, starts, query_masks, masks, graded, counts):
    """Add to ``counts[q, v, d]``: items at distance d that share v tags with q.

    At most 1 if not graded.  ``categories[i]`` is the category of item i, ascending; ``starts[c]``
    is where category c begins; ``masks[w, c]`` is word w of its tags.
    """
    database, tiles = planes[0], tiles_of(planes)
    n_queries, n_levels, n_distances = counts.shape
    filled = np.uint32(tiles.shape[0] * TILE - database.shape[0])
    scratch = _scratch()
    found = np.empty((2, 2, n_distances), np.uint32)
    levels = np.empty((8, masks.shape[1]), np.uint16)
    relevant = np.empty(masks.shape[1], np.uint8)
    kinds = np.zeros((tiles.shape[0], TILE), np.uint8)
    high = np.empty(masks.shape[1], np.uint32)
    for eight in range(0, n_queries, 8):
        end = min(eight + 8, n_queries)
        shared_tags(query_masks[eight:end], masks, graded, levels)
        _spread_kinds(levels[: end - eight], categories, relevant, kinds.reshape(-1))
        for q in range(eight, end, 2):
            last = min(q + 1, end - 1)
            fill_table(queries[q], scratch[0], 0)
            fill_table(queries[last], scratch[0], 1)
            _scan(tiles, kinds, q - eight, scratch)
            found[:] = 0
            _unload(popcount(queries[q, 0] ^ queries[last, 0]) & np.uint64(1), scratch, found)
            for j in range(q, last + 1):
                found[j - q, 0, popcount(queries[j, 0])] -= filled
                counts[j, :2] += found[j - q]
                if n_levels > 2:
                    _grade(queries[j, 0], database, starts, levels[j - eight], high, counts[j])


@njit(cache=True, nogil=True)
def _spread_kinds(levels, categories, relevant, kinds):
    """Set bit j of an item's kind if it is relevant to query j."""
    relevant[:] = 0
    for j in range(levels.shape[0]):
        row, bit = levels[j], np.uint8(1 << j)
        for c in range(row.shape[0]):
            relevant[c] |= bit if row[c] > 0 else np.uint8(0)
    for i in range(categories.shape[0]):
        kinds[i] = relevant[categories[i]]


@njit(cache=True, nogil=True)
def _scratch():
    """Tables of look-ups, extents, places of some tiles, the counts of places of each kind."""
    extent = np.empty((2, 2, LANES), np.uint8)
    extent[:, 0], extent[:, 1] = 255, 0
    joint = np.empty((LAG, TILE), np.uint16)
    table = np.zeros((4, ROWS, HALVES), np.uint32)
    return np.empty((NIBBLES, 2, LANES), np.uint8), extent, joint, table


@njit(cache=True, nogil=True)
def _scan(tiles, kinds, shift, scratch):
    """Count all tiles, each item by its distances and its kind."""
    tables, extent, joint, table = scratch
    n, by = tiles.shape[0], np.uint8(shift)
    for t in range(min(n, LAG)):
        place_two_of_kinds(tiles, t, tables, extent, joint[t % LAG], kinds[t], by, table)
    for t in range(LAG, n):
        count_and_place_two_of_kinds(tiles, t, tables, extent, joint[t % LAG], kinds[t], by, table)
    flat = table.reshape(-1)
    for t in range(max(0, n - LAG), n):
        for i in range(TILE):
            flat[joint[t % LAG, i]] += ONE


@njit(cache=True, nogil=True)
def _unload(differ, scratch, found):
    """Add the counts of each kind to ``found[j, level]`` and empty them."""
    _, extent, _, table = scratch
    bounds = take_extent(extent)
    for kind in range(4):
        first, second = found[0, kind & 1], found[1, kind >> 1]
        take_table(table, kind * ROWS, bounds, differ, first, second)


@njit(cache=True, nogil=True)
def _grade(query, database, starts, levels, high, counts):
    """Move the items of categories above level 1 from level 1 to their own."""
    n, most = 0, levels[0]
    for c in range(levels.shape[0]):
        most = max(most, levels[c])
    if most < 2:
        return
    for c in range(levels.shape[0]):
        high[n] = c
        n += levels[c] > 1
    for k in range(n):
        level = levels[high[k]]
        for i in range(starts[high[k]], starts[high[k] + 1]):
            d = popcount(query ^ database[i])
            counts[1, d] -= ONE
            counts[level, d] += ONE
