"""Counting by ranges for codes of one word, where AVX2 is at hand.

Three queries go over the database together and share one table, by the places of
``kernels.vectors``: one increment serves three distances.

Guaranteed by the caller as in ``kernels.short``, whose twin is this module's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.bits import popcount
from bittern.kernels.short import move_range, scan_one
from bittern.kernels.vectors import (
    LAG,
    MIDDLE,
    TILE,
    clear,
    count_and_place_three,
    load_queries,
    place_three,
    scratch_for,
    take_extent,
    take_row,
    tiles_of,
)

ROWS, HALVES = 64, 32  # first distances, and halves of the others, in a table
ONE = np.uint32(1)


def count_ranges(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    starts: NDArray[Any],
    stops: NDArray[Any],
    counts: NDArray[np.uint32],
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    scratch = scratch_for(3, 1, counts.shape[2], (ROWS * HALVES, HALVES), (2, HALVES))
    _count_ranges(queries, planes[0], tiles_of(planes), starts, stops, scratch, counts)


@njit(cache=True, nogil=True)
def _count_ranges(queries, database, tiles, starts, stops, scratch, counts):
    n_queries, n_tiles, n_distances = queries.shape[0], tiles.shape[0], counts.shape[2]
    filled = np.uint32(n_tiles * TILE - database.shape[0])
    found = scratch.found
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
        for piece in range(3):  # before the range, behind it, inside it
            if piece == 1:
                first, last = far, n_tiles
            elif piece == 2:
                first, last = near, far
            _scan(tiles, first, last, scratch)
            if piece > 0:
                exact &= _unload(scratch, piece - 1)
        for j in range(width):
            query, here = queries[q + j, 0], counts[q + j]
            inside, outside = near * TILE, far * TILE
            if not exact or far == near:
                inside = outside = stops[q + j]
            if exact:
                found[0, j, popcount(query)] -= filled
                for level in range(2):
                    for d in range(n_distances):
                        here[level, d] += found[level, j, d]
            else:
                scan_one(query, database, here[0])
            move_range(query, database[starts[q + j] : inside], here)
            move_range(query, database[outside : stops[q + j]], here)


@njit(cache=True, nogil=True)
def _scan(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    tables, extent, joint, table = scratch.tables, scratch.extent, scratch.joint, scratch.table
    none = joint[0]  # no kinds
    for t in range(first, min(last, first + LAG)):
        place_three(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    for t in range(first + LAG, last):
        count_and_place_three(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    flat = table.reshape(-1)
    for t in range(max(first, last - LAG), last):
        for i in range(joint.shape[1]):
            flat[joint[t % LAG, i]] += ONE


@njit(inline="always")
def _unload(scratch, level):
    """Add the counts to the histograms of a level and empty them.

    False if an item was 64 bits away, and the counts are void.
    """
    table, columns, bounds, words = scratch.table, scratch.columns, scratch.bounds, scratch.words
    if take_extent(scratch) >= ROWS:
        clear(table.reshape(-1))
        return False
    found = scratch.found[level]
    differ = popcount(words[0, 0] ^ words[1, 0]) & np.uint64(1)
    for d in range(bounds[0, 0], bounds[0, 1] + 1):
        total, odd = np.uint32(0), np.uint64(d & 1)
        for e in range(bounds[1, 0] >> 1, (bounds[1, 1] >> 1) + 1):
            here = take_row(table, d * HALVES + (e ^ (d & 31)), columns, d & 1)
            total += here
            if here > 0:
                found[1, np.uint64(2 * e) + (odd ^ differ)] += here
        found[0, d] += total
    differ = popcount(words[0, 0] ^ words[2, 0]) & np.uint64(1)
    for parity in range(2):
        for f in range(bounds[2, 0] >> 1, (bounds[2, 1] >> 1) + 1):
            here = columns[parity, (f + 16 * parity + MIDDLE) & 31]
            if here > 0:
                found[2, np.uint64(2 * f) + (np.uint64(parity) ^ differ)] += here
    clear(columns.reshape(-1))
    return True
