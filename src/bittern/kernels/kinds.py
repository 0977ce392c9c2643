"""Counting by categories for codes of one word, where AVX2 is at hand.

Two queries share one table as in ``kernels.twos``, a part of it for each kind of item: relevant to
neither, to the first, to the second, to both.  The kinds for eight queries fill a byte, so that
they are spread from categories to items once for eight queries.

Guaranteed by the caller as in ``kernels.short``, whose twin is this module's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.bits import popcount
from bittern.kernels.pairs import shared_tags
from bittern.kernels.twos import HALVES, SHIFTS, take_table
from bittern.kernels.vectors import (
    LAG,
    TILE,
    clear,
    count_and_place_two_of_kinds,
    load_queries,
    place_two_of_kinds,
    scratch_for,
    take_extent,
    tiles_of,
)

ROWS = 128  # first distances in the table of a kind
MOST_BITS = 1 << 25  # bytes for one byte a tag and category
ONE = np.uint32(1)


def count_categories(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    categories: NDArray[np.uint32],
    starts: NDArray[Any],
    query_masks: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    graded: bool,
    counts: NDArray[np.uint32],
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d that share v tags with q.

    At most 1 if not graded.  ``categories[i]`` is the category of item i, ascending; ``starts[c]``
    is where category c begins; ``masks[w, c]`` is word w of its tags.
    """
    tiles, n_categories = tiles_of(planes), masks.shape[1]
    level = np.uint8 if counts.shape[1] <= 256 else np.uint16
    n_tags = 64 * len(masks) if 64 * masks.size <= MOST_BITS else 0
    tags = np.empty((n_tags, n_categories), np.uint8)
    _spread_tags(masks, tags)
    _count_categories(
        queries,
        planes[0],
        tiles,
        categories,
        starts,
        query_masks,
        masks,
        tags,
        graded,
        np.empty((8, n_categories), level),
        np.empty(n_categories, np.uint8),
        np.empty(n_categories, np.uint32),
        np.zeros((len(tiles), TILE), np.uint8),
        scratch_for(2, 1, counts.shape[2], (4 * ROWS, HALVES), (SHIFTS, HALVES)),
        counts,
    )


@njit(cache=True, nogil=True)
def _count_categories(
    queries,
    database,
    tiles,
    categories,
    starts,
    query_masks,
    masks,
    tags,
    graded,
    levels,
    relevant,
    high,
    kinds,
    scratch,
    counts,
):
    n_queries, n_levels, n_distances = counts.shape
    filled = np.uint32(tiles.shape[0] * TILE - database.shape[0])
    found = scratch.found
    for eight in range(0, n_queries, 8):
        end = min(eight + 8, n_queries)
        if tags.shape[0] > 0:
            _sum_tags(query_masks[eight:end], tags, graded, levels)
        else:
            shared_tags(query_masks[eight:end], masks, graded, levels)
        _spread_kinds(levels[: end - eight], categories, relevant, kinds.reshape(-1))
        for q in range(eight, end, 2):
            load_queries(queries[:end], q, scratch)
            _scan(tiles, kinds, q - eight, scratch)
            take_extent(scratch)
            for kind in range(4):
                take_table(scratch, kind * ROWS, found[kind & 1, 0], found[kind >> 1, 1])
            for j in range(q, min(q + 2, end)):
                found[0, j - q, popcount(queries[j, 0])] -= filled
                for level in range(2):
                    for d in range(n_distances):
                        counts[j, level, d] += found[level, j - q, d]
                if n_levels > 2:
                    _grade(queries[j, 0], database, starts, levels[j - eight], high, counts[j])


@njit(cache=True, nogil=True)
def _spread_tags(masks, tags):
    """Set ``tags[t, c]`` to 1 where category c has tag t, else 0."""
    for t in range(tags.shape[0]):
        row, words, shift = tags[t], masks[t // 64], np.uint64(t % 64)
        for c in range(row.shape[0]):
            row[c] = np.uint8((words[c] >> shift) & np.uint64(1))


@njit(cache=True, nogil=True)
def _sum_tags(query_masks, tags, graded, levels):
    """The same as ``shared_tags``, one of the queries' few tags after the other."""
    for q in range(query_masks.shape[0]):
        row = levels[q]
        clear(row)
        for t in range(tags.shape[0]):
            if (query_masks[q, t // 64] >> np.uint64(t % 64)) & np.uint64(1):
                tag = tags[t]
                if graded:
                    for c in range(row.shape[0]):
                        row[c] += tag[c]
                else:
                    for c in range(row.shape[0]):
                        row[c] |= tag[c]


@njit(cache=True, nogil=True)
def _spread_kinds(levels, categories, relevant, kinds):
    """Set bit j of an item's kind if it is relevant to query j."""
    clear(relevant)
    for j in range(levels.shape[0]):
        row, bit = levels[j], np.uint8(1 << j)
        for c in range(row.shape[0]):
            relevant[c] |= bit if row[c] > 0 else np.uint8(0)
    for i in range(categories.shape[0]):
        kinds[i] = relevant[categories[i]]


@njit(cache=True, nogil=True)
def _scan(tiles, kinds, shift, scratch):
    """Count all tiles, each item by its distances and its kind."""
    tables, extent, joint, table = scratch.tables, scratch.extent, scratch.joint, scratch.table
    n, by = tiles.shape[0], np.uint8(shift)
    for t in range(min(n, LAG)):
        place_two_of_kinds(tiles, t, tables, extent, joint[t % LAG], kinds[t], by, table)
    for t in range(LAG, n):
        count_and_place_two_of_kinds(tiles, t, tables, extent, joint[t % LAG], kinds[t], by, table)
    flat = table.reshape(-1)
    for t in range(max(0, n - LAG), n):
        for i in range(joint.shape[1]):
            flat[joint[t % LAG, i]] += ONE


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
