"""Counting kernels for processors with AVX2.

========================  ====================  ==============================
counted                   codes                 queries that share a table
========================  ====================  ==============================
by ranges                 one word              three
by ranges                 two to four words     two
by categories (tags)      one word              two, one table per relevance
========================  ====================  ==============================

:mod:`bittern.kernels.count.slots` finds the slots; here they are counted, and the joint tables are
summed into histograms.  The padding of the last tile is counted too, as items whose bits are all 0.
Their distance is the number of set bits of the query, so they are subtracted there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.bits import popcount
from bittern.kernels.count.portable import (
    count_ranges_of_words,
    move_range,
    scan_one,
    shared_tags,
)
from bittern.kernels.count.slots import (
    LAG,
    MIDDLE,
    clear,
    count_and_find_slots_by_relevance,
    count_and_find_slots_of_three,
    count_and_find_slots_of_two,
    count_latest,
    find_slots_by_relevance,
    find_slots_of_three,
    find_slots_of_two,
    load_queries,
    scratch_for,
    take_extent,
    take_row,
    tiles_of,
)
from bittern.kernels.registers import LANES, TILE

# Shapes of joint tables: distances of the first query, and halves of those of the others.
ROWS_OF_THREE, HALVES_OF_THREE = 64, 32
ROWS_OF_TWO, HALVES_OF_TWO = 256, 128
ROWS_OF_ONE_WORD = 128  # of two queries whose codes have one word
PARTS = HALVES_OF_TWO // LANES  # of a row, as ``take_row`` takes them
SHIFTS = HALVES_OF_TWO // 16  # different rotations of a row, which is rotated by 16 d
TOGETHER = 8  # queries whose relevance to an item is one byte
MOST_TAGS = 1 << 25  # bytes, one per tag and category
ONE = np.uint32(1)


def count_ranges(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    starts: NDArray[Any],
    stops: NDArray[Any],
    counts: NDArray[np.uint32],
    tiles: NDArray[np.uint8] | None = None,
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0.

    ``tiles`` are those of the planes, if they were made before.
    """
    n_words, n_distances = len(planes), counts.shape[2]
    tiles = tiles_of(planes) if tiles is None else tiles
    if n_words == 1:
        joint = ROWS_OF_THREE * HALVES_OF_THREE, HALVES_OF_THREE
        scratch = scratch_for(3, 1, n_distances, joint, (2, HALVES_OF_THREE))
        _count_ranges_of_three(queries, planes[0], tiles, starts, stops, scratch, counts)
    else:
        joint = ROWS_OF_TWO, HALVES_OF_TWO
        scratch = scratch_for(2, n_words, n_distances, joint, (SHIFTS, HALVES_OF_TWO))
        _count_ranges_of_two(queries, planes, tiles, starts, stops, scratch, counts)


def count_categories(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    categories: NDArray[np.uint32],
    starts: NDArray[Any],
    query_masks: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    graded: bool,
    counts: NDArray[np.uint32],
    tiles: NDArray[np.uint8] | None = None,
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d that share v tags with q.

    Without ``graded``, v is at most 1.  Codes have one word.  ``categories[i]`` is the category of
    item i, ascending; ``starts[c]`` is where category c begins; ``masks[w, c]`` is word w of its
    tags.  ``tiles`` are those of the planes, if they were made before.
    """
    tiles, n_categories = tiles_of(planes) if tiles is None else tiles, masks.shape[1]
    level = np.uint8 if counts.shape[1] <= 256 else np.uint16
    n_tags = 64 * len(masks) if 64 * masks.size <= MOST_TAGS else 0
    tags = np.empty((n_tags, n_categories), np.uint8)
    _spread_tags(masks, tags)
    joint = 4 * ROWS_OF_ONE_WORD, HALVES_OF_TWO
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
        np.empty((TOGETHER, n_categories), level),
        np.zeros((len(tiles), TILE), np.uint8),
        scratch_for(2, 1, counts.shape[2], joint, (SHIFTS, HALVES_OF_TWO)),
        counts,
    )


# Ranges, three queries of one word


@njit(cache=True, nogil=True)
def _count_ranges_of_three(queries, database, tiles, starts, stops, scratch, counts):
    """Count whole tiles inside the queries' common range, and all items outside it, by slots.

    Items at the two ends of the range share a tile with others: they are counted as outside, and
    moved inside one by one.  For queries without a common range, all relevant items are moved this
    way.
    """
    n_queries, n_tiles, n_distances = queries.shape[0], tiles.shape[0], counts.shape[2]
    padding = np.uint32(n_tiles * TILE - database.shape[0])
    histograms = scratch.histograms
    for q in range(0, n_queries, 3):
        width = min(3, n_queries - q)
        load_queries(queries, q, scratch)
        start, stop = starts[q], stops[q]
        together = True
        for j in range(1, width):
            together &= starts[q + j] == start and stops[q + j] == stop
        near, far = -(-start // TILE), stop // TILE
        if not together or far <= near:
            near = far = 0
        exact = True
        first, last = 0, near
        for part in range(3):  # before the range, after it, inside it
            if part == 1:
                first, last = far, n_tiles
            elif part == 2:
                first, last = near, far
            _count_tiles_of_three(tiles, first, last, scratch)
            if part > 0:
                exact &= _sum_joint_of_three(scratch, histograms[part - 1])
        for j in range(width):
            query, here = queries[q + j, 0], counts[q + j]
            inside, outside = near * TILE, far * TILE
            if not exact or far == near:
                inside = outside = stops[q + j]
            if exact:
                histograms[0, j, popcount(query)] -= padding
                for level in range(2):
                    for d in range(n_distances):
                        here[level, d] += histograms[level, j, d]
            else:
                scan_one(query, database, here[0])
            move_range(query, database[starts[q + j] : inside], here)
            move_range(query, database[outside : stops[q + j]], here)


@njit(cache=True, nogil=True)
def _count_tiles_of_three(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    lookups, extent, slots, joint = scratch.lookups, scratch.extent, scratch.slots, scratch.joint
    unused = slots[0]
    for t in range(first, min(last, first + LAG)):
        find_slots_of_three(tiles, t, lookups, extent, slots[t % LAG], unused, 0, joint)
    for t in range(first + LAG, last):
        count_and_find_slots_of_three(tiles, t, lookups, extent, slots[t % LAG], unused, 0, joint)
    count_latest(scratch, first, last)


@njit(inline="always")
def _sum_joint_of_three(scratch, histograms):
    """Add the joint table to the histogram of each query, and clear it.

    Returns False if an item was 64 bits away: then the counts are wrong.
    """
    joint, columns, bounds, words = scratch.joint, scratch.columns, scratch.bounds, scratch.words
    if take_extent(scratch) >= ROWS_OF_THREE:
        clear(joint.reshape(-1))
        return False
    differ = popcount(words[0, 0] ^ words[1, 0]) & np.uint64(1)
    for d in range(bounds[0, 0], bounds[0, 1] + 1):
        total, odd = np.uint32(0), np.uint64(d & 1)
        for e in range(bounds[1, 0] >> 1, (bounds[1, 1] >> 1) + 1):
            row = d * HALVES_OF_THREE + (e ^ (d & 31))
            here = take_row(joint, row, columns, d & 1)
            total += here
            if here > 0:
                histograms[1, np.uint64(2 * e) + (odd ^ differ)] += here
        histograms[0, d] += total
    differ = popcount(words[0, 0] ^ words[2, 0]) & np.uint64(1)
    for parity in range(2):  # of d, which also determines how the row was rotated
        for f in range(bounds[2, 0] >> 1, (bounds[2, 1] >> 1) + 1):
            here = columns[parity, (f + 16 * parity + MIDDLE) & 31]
            if here > 0:
                histograms[2, np.uint64(2 * f) + (np.uint64(parity) ^ differ)] += here
    clear(columns.reshape(-1))
    return True


# Ranges, two queries of two to four words


@njit(cache=True, nogil=True)
def _count_ranges_of_two(queries, planes, tiles, starts, stops, scratch, counts):
    """As ``_count_ranges_of_three``."""
    n_queries, n_tiles, n_distances = queries.shape[0], tiles.shape[0], counts.shape[2]
    padding = np.uint32(n_tiles * TILE - planes.shape[1])
    histograms, words = scratch.histograms, scratch.words
    for q in range(0, n_queries, 2):
        other = min(q + 1, n_queries - 1)
        load_queries(queries, q, scratch)
        start, stop = starts[q], stops[q]
        near, far = -(-start // TILE), stop // TILE
        if starts[other] != start or stops[other] != stop or far <= near:
            near = far = 0
        exact = True
        first, last = 0, near
        for part in range(3):  # before the range, after it, inside it
            if part == 1:
                first, last = far, n_tiles
            elif part == 2:
                first, last = near, far
            _count_tiles_of_two(tiles, first, last, scratch)
            if part > 0:
                exact &= _sum_joint_if_exact(scratch, histograms[part - 1])
        if not exact:
            some = slice(q, other + 1)
            count_ranges_of_words(queries[some], planes, starts[some], stops[some], counts[some])
            continue
        for j in range(q, other + 1):
            here = counts[j]
            n_ones = np.uint64(0)
            for w in range(words.shape[1]):
                n_ones += popcount(queries[j, w])
            histograms[0, j - q, n_ones] -= padding
            for level in range(2):
                for d in range(n_distances):
                    here[level, d] += histograms[level, j - q, d]
            inside, outside = near * TILE, far * TILE
            if far == near:
                inside = outside = stops[j]
            _move_range_of_words(queries[j], planes, starts[j], inside, here)
            _move_range_of_words(queries[j], planes, outside, stops[j], here)


@njit(cache=True, nogil=True)
def _move_range_of_words(query, planes, start, stop, counts):
    """Move items start … stop - 1 from level 0 to level 1."""
    for i in range(start, stop):
        d = np.uint64(0)
        for w in range(query.shape[0]):
            d += popcount(query[w] ^ planes[w, i])
        counts[0, d] -= ONE
        counts[1, d] += ONE


@njit(cache=True, nogil=True)
def _count_tiles_of_two(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    lookups, extent, slots, joint = scratch.lookups, scratch.extent, scratch.slots, scratch.joint
    unused = slots[0]
    for t in range(first, min(last, first + LAG)):
        find_slots_of_two(tiles, t, lookups, extent, slots[t % LAG], unused, 0, joint)
    for t in range(first + LAG, last):
        count_and_find_slots_of_two(tiles, t, lookups, extent, slots[t % LAG], unused, 0, joint)
    count_latest(scratch, first, last)


@njit(cache=True, nogil=True)
def _sum_joint_if_exact(scratch, histograms):
    """Add the joint table to two histograms and clear it; return False if an item was too far."""
    if take_extent(scratch) >= ROWS_OF_TWO - 1:
        clear(scratch.joint.reshape(-1))
        return False
    _sum_joint_of_two(scratch, 0, histograms[0], histograms[1])
    return True


@njit(cache=True, nogil=True)
def _sum_joint_of_two(scratch, start, first, second):
    """Add the joint table from row ``start`` on to the histograms of two queries, and clear it."""
    joint, columns, bounds, words = scratch.joint, scratch.columns, scratch.bounds, scratch.words
    differ = np.uint64(0)  # odd if one distance is odd where the other is even
    for w in range(words.shape[1]):
        differ += popcount(words[0, w] ^ words[1, w])
    for d in range(bounds[0, 0], bounds[0, 1] + 1):
        total, row = np.uint32(0), (start + d) * PARTS
        for part in range(PARTS):
            total += take_row(joint, row + part, columns, d % SHIFTS * PARTS + part)
        first[d] += total
    for shift in range(SHIFTS):
        odd = (np.uint64(shift) ^ differ) & np.uint64(1)
        for e in range(bounds[1, 0] >> 1, (bounds[1, 1] >> 1) + 1):
            here = columns[shift, (e + 16 * shift) % HALVES_OF_TWO]
            if here > 0:
                second[np.uint64(2 * e) + odd] += here
    clear(columns.reshape(-1))


# Categories, two queries of one word


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
    relevant_to,
    scratch,
    counts,
):
    """Two queries share four joint tables: relevant to neither, the first, the second, both.

    Bit j of ``relevant_to[i]`` says whether item i is relevant to query j of eight, so that the
    categories of the items are read once for eight queries.
    """
    n_queries, n_levels, n_distances = counts.shape
    padding = np.uint32(tiles.shape[0] * TILE - database.shape[0])
    histograms = scratch.histograms
    by_category = np.empty(masks.shape[1], np.uint8)
    high = np.empty(masks.shape[1], np.uint32)
    for eight in range(0, n_queries, TOGETHER):
        end = min(eight + TOGETHER, n_queries)
        if tags.shape[0] > 0:
            _sum_tags(query_masks[eight:end], tags, graded, levels)
        else:
            shared_tags(query_masks[eight:end], masks, graded, levels)
        _spread_relevance(levels[: end - eight], categories, by_category, relevant_to.reshape(-1))
        for q in range(eight, end, 2):
            load_queries(queries[:end], q, scratch)
            _count_tiles_by_relevance(tiles, relevant_to, q - eight, scratch)
            take_extent(scratch)
            for which in range(4):
                first, second = histograms[which & 1, 0], histograms[which >> 1, 1]
                _sum_joint_of_two(scratch, which * ROWS_OF_ONE_WORD, first, second)
            for j in range(q, min(q + 2, end)):
                histograms[0, j - q, popcount(queries[j, 0])] -= padding
                for level in range(2):
                    for d in range(n_distances):
                        counts[j, level, d] += histograms[level, j - q, d]
                if n_levels > 2:
                    _grade(queries[j, 0], database, starts, levels[j - eight], high, counts[j])


@njit(cache=True, nogil=True)
def _spread_tags(masks, tags):
    """Set ``tags[t, c]`` to 1 where category c has tag t, otherwise to 0."""
    for t in range(tags.shape[0]):
        row, words, shift = tags[t], masks[t // 64], np.uint64(t % 64)
        for c in range(row.shape[0]):
            row[c] = np.uint8((words[c] >> shift) & np.uint64(1))


@njit(cache=True, nogil=True)
def _sum_tags(query_masks, tags, graded, levels):
    """The same as ``shared_tags``, by adding up the rows of each query's few tags."""
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
def _spread_relevance(levels, categories, by_category, relevant_to):
    """Set bit j of ``relevant_to[i]`` if item i is relevant to query j."""
    clear(by_category)
    for j in range(levels.shape[0]):
        row, bit = levels[j], np.uint8(1 << j)
        for c in range(row.shape[0]):
            by_category[c] |= bit if row[c] > 0 else np.uint8(0)
    for i in range(categories.shape[0]):
        relevant_to[i] = by_category[categories[i]]


@njit(cache=True, nogil=True)
def _count_tiles_by_relevance(tiles, relevant_to, shift, scratch):
    """Count all tiles, each item by its distances and its relevance to the two queries."""
    lookups, extent, slots, joint = scratch.lookups, scratch.extent, scratch.slots, scratch.joint
    n, by = tiles.shape[0], np.uint8(shift)
    for t in range(min(n, LAG)):
        here, bits = slots[t % LAG], relevant_to[t]
        find_slots_by_relevance(tiles, t, lookups, extent, here, bits, by, joint)
    for t in range(LAG, n):
        here, bits = slots[t % LAG], relevant_to[t]
        count_and_find_slots_by_relevance(tiles, t, lookups, extent, here, bits, by, joint)
    count_latest(scratch, 0, n)


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
