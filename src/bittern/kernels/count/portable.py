"""Counting kernels for any processor, and for codes of any length.

**Codes of one word.**  A loop of popcounts is limited by the increments in memory.  So a pair of
queries shares a *joint table*, whose entry ``[d, e]`` counts the items at distance d from the first
and e from the second: one increment serves two distances.  The sums of its rows and of its columns
are the two histograms::

              e = 0   1   2  …                Four queries go over the database together, in two
      d = 0   ┌───┬───┬───┐                   pairs, so that each word of it is read once for four.
          1   │   │ 7 │   │ → histogram
          2   └───┴───┴───┘   of the first
                    ↓ histogram of the second

**Longer codes.**  The distances of a block of items are summed plane by plane into a buffer, which
the compiler turns into vector code for any number of words.  Then the buffer is counted, into four
histograms in turn, so that stores do not wait for each other.

At the end are the kernels over listed pairs of a query and an item.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.bits import popcount

STRIDE = 128  # entries in a row of the joint table: 65 distances, rounded up to a power of two
SHIFT = np.uint64(7)  # multiplies by STRIDE
WIDE = 256  # the same with each distance twice: relevant or not
WIDE_SHIFT = np.uint64(8)
BLOCK = 256  # items whose distances are held at once
NEARBY = 1 << 15  # words of the database at a time, which stay in the cache while all queries pass
ONE = np.uint32(1)


def count_ranges(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    starts: NDArray[Any],
    stops: NDArray[Any],
    counts: NDArray[np.uint32],
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    count = count_ranges_of_one_word if len(planes) == 1 else count_ranges_of_words
    count(queries, planes, starts, stops, counts)


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

    Without ``graded``, v is at most 1.  ``categories[i]`` is the category of item i, ascending;
    ``starts[c]`` is where category c begins; ``masks[w, c]`` is word w of its tags.
    """
    tags = query_masks, masks, graded
    if len(planes) == 1:
        count_categories_of_one_word(queries, planes[0], categories, starts, *tags, counts)
    else:
        count_categories_of_words(queries, planes, categories, *tags, counts)


# Codes of one word


@njit(cache=True, nogil=True)
def count_ranges_of_one_word(queries, planes, starts, stops, counts):
    """Count four queries at a time; if they share one range, inside and outside in turn."""
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
            _sum_four(tables, counts, q, 0)
            _scan_four(queries, q, database[start:stop], tables)
            _sum_four(tables, counts, q, 1)
        else:
            _scan_four(queries, q, database, tables)
            _sum_four(tables, counts, q, 0)
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
def _sum_four(tables, counts, q, level):
    _sum_joint(tables[0], STRIDE, counts[q, level], counts[q + 1, level])
    _sum_joint(tables[1], STRIDE, counts[q + 2, level], counts[q + 3, level])


@njit(cache=True, nogil=True)
def _sum_joint(table, stride, by_row, by_column):
    """Add the sums of the rows and columns of a joint table to two histograms, and clear it."""
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
    """Count all items by distance from one query."""
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
def count_categories_of_one_word(
    queries, database, categories, starts, query_masks, masks, graded, counts
):
    """Count in joint tables over (relevant or not, distance) of two queries each.

    ``offsets[p, c]`` is what an item of category c adds to its entry in the table of pair p.  Items
    that share more than one tag are few: they are moved to their level afterwards.
    """
    n_queries, n_levels, n_distances = counts.shape
    flat = counts.reshape(n_queries, -1)[:, : 2 * n_distances]
    tables = np.zeros((2, 2 * 65 * WIDE), np.uint32)
    levels = np.empty((4, masks.shape[1]), np.uint16)
    offsets = np.zeros((2, masks.shape[1]), np.uint32)
    words = np.zeros(4, np.uint64)
    spare = np.zeros((4, 2 * n_distances), np.uint32)  # for a last group of fewer than four queries
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
        _sum_joint(tables[0], WIDE, out[0], out[1])
        _sum_joint(tables[1], WIDE, out[2], out[3])
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


# Codes of any number of words


@njit(cache=True, nogil=True)
def count_ranges_of_words(queries, planes, starts, stops, counts):
    """Count one query at a time over a part of the database that stays in the cache."""
    n_words, n = planes.shape
    buffer = np.empty(BLOCK, np.uint64)
    histograms = np.zeros((4, counts.shape[2]), np.uint32)
    step = max(BLOCK, NEARBY // n_words)
    for near in range(0, n, step):
        far = min(n, near + step)
        for q in range(queries.shape[0]):
            start, stop = max(near, min(starts[q], far)), max(near, min(stops[q], far))
            _scan_words(queries[q], planes, near, start, buffer, histograms)
            _scan_words(queries[q], planes, stop, far, buffer, histograms)
            _sum_histograms(histograms, counts[q, 0])
            _scan_words(queries[q], planes, start, stop, buffer, histograms)
            _sum_histograms(histograms, counts[q, 1])


@njit(cache=True, nogil=True)
def _scan_words(query, planes, start, stop, buffer, histograms):
    """Count items start … stop - 1 by distance.

    Four histograms, so that stores do not wait for each other: neighbouring items often lie at the
    same distance, and an increment must wait for an unfinished one of the same entry.
    """
    first, second, third, fourth = histograms[0], histograms[1], histograms[2], histograms[3]
    for s in range(start, stop, BLOCK):
        width = min(BLOCK, stop - s)
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
def _sum_histograms(histograms, out):
    """Add four histograms to one, and clear them."""
    for d in range(out.shape[0]):
        out[d] += histograms[0, d] + histograms[1, d] + histograms[2, d] + histograms[3, d]
    histograms[:] = 0


@njit(cache=True, nogil=True)
def measure(query, planes, start, out):
    """Fill ``out[i]`` with the distance from the query to item ``start + i``.

    Two planes at a time, which halves the reads and writes of ``out``.
    """
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
def count_categories_of_words(queries, planes, categories, query_masks, masks, graded, counts):
    """Count one query at a time; a category's level selects the histogram of its items."""
    n = planes.shape[1]
    n_queries, n_distances = queries.shape[0], counts.shape[2]
    flat = counts.reshape(n_queries, -1)
    buffer = np.empty(BLOCK, np.uint64)
    levels = np.empty((1, masks.shape[1]), np.uint16)
    offsets = np.empty(masks.shape[1], np.uint64)
    for q in range(n_queries):
        histogram = flat[q]
        shared_tags(query_masks[q : q + 1], masks, graded, levels)
        for c in range(masks.shape[1]):
            offsets[c] = levels[0, c] * n_distances
        for s in range(0, n, BLOCK):
            width = min(BLOCK, n - s)
            measure(queries[q], planes, s, buffer[:width])
            for i in range(width):
                histogram[buffer[i] + offsets[categories[s + i]]] += ONE


# Listed pairs and tags


@njit(cache=True, nogil=True)
def move_listed(queries, database, offsets, items, levels, counts):
    """Move items ``offsets[q] … offsets[q + 1] - 1`` of query q from level 0 to their own level."""
    for q in range(queries.shape[0]):
        for k in range(offsets[q], offsets[q + 1]):
            d = 0
            for w in range(queries.shape[1]):
                d += popcount(queries[q, w] ^ database[items[k], w])
            counts[q, 0, d] -= ONE
            counts[q, levels[k], d] += ONE


@njit(cache=True, nogil=True)
def remove_listed(queries, database, items, levels, counts):
    """Take item ``items[q]``, of level ``levels[q]``, out of the counts of query q; -1 for none."""
    for q in range(queries.shape[0]):
        if items[q] >= 0:
            d = 0
            for w in range(queries.shape[1]):
                d += popcount(queries[q, w] ^ database[items[q], w])
            counts[q, levels[q], d] -= ONE


@njit(cache=True, nogil=True)
def shared_tags(query_masks, planes, graded, levels):
    """Fill ``levels[q, c]``: number of tags that q and c share, at most 1 without ``graded``.

    ``planes[w, c]`` is word w of the mask of c: one word at a time, so that the compiler vectorises
    the loops.
    """
    n_words, n = planes.shape
    for q in range(query_masks.shape[0]):
        row = levels[q]
        row[:] = 0
        for w in range(n_words):
            a, x = query_masks[q, w], planes[w]
            if a == 0:
                continue
            if graded:
                for c in range(n):
                    row[c] += popcount(a & x[c])
            else:
                for c in range(n):
                    row[c] |= (a & x[c]) != 0
