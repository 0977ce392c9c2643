"""Counting by ranges for codes of two to four words, where AVX2 is at hand.

Two queries go over the database together and share one table, by the places of
``kernels.vectors``.

Guaranteed by the caller as in ``kernels.short``; the twin is that of ``kernels.long``, which also
counts for queries that have an item too far away for this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels import long
from bittern.kernels.bits import popcount
from bittern.kernels.emit import LANES
from bittern.kernels.vectors import (
    LAG,
    TILE,
    clear,
    count_and_place_two,
    load_queries,
    place_two,
    scratch_for,
    take_extent,
    take_row,
    tiles_of,
)

ROWS, HALVES = 256, 128  # first distances, and halves of the second, in the table
PARTS = HALVES // LANES
SHIFTS = HALVES // 16  # rows are shifted by 16 d
ONE = np.uint32(1)

_recount = long.count_ranges


def count_ranges(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    starts: NDArray[Any],
    stops: NDArray[Any],
    counts: NDArray[np.uint32],
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    scratch = scratch_for(2, len(planes), counts.shape[2], (ROWS, HALVES), (SHIFTS, HALVES))
    _count_ranges(queries, planes, tiles_of(planes), starts, stops, scratch, counts)


@njit(cache=True, nogil=True)
def _count_ranges(queries, planes, tiles, starts, stops, scratch, counts):
    n_queries, n_tiles, n_distances = queries.shape[0], tiles.shape[0], counts.shape[2]
    filled = np.uint32(n_tiles * TILE - planes.shape[1])
    found, words = scratch.found, scratch.words
    for q in range(0, n_queries, 2):
        other = min(q + 1, n_queries - 1)
        load_queries(queries, q, scratch)
        start, stop = starts[q], stops[q]
        near, far = -(-start // TILE), stop // TILE
        if starts[other] != start or stops[other] != stop or far <= near:
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
                exact &= _unload(scratch, found[piece - 1])
        if not exact:
            some = slice(q, other + 1)
            _recount(queries[some], planes, starts[some], stops[some], counts[some])
            continue
        for j in range(q, other + 1):
            here = counts[j]
            length = np.uint64(0)
            for w in range(words.shape[1]):
                length += popcount(queries[j, w])
            found[0, j - q, length] -= filled
            for level in range(2):
                for d in range(n_distances):
                    here[level, d] += found[level, j - q, d]
            inside, outside = near * TILE, far * TILE
            if far == near:
                inside = outside = stops[j]
            _move_range(queries[j], planes, starts[j], inside, here)
            _move_range(queries[j], planes, outside, stops[j], here)


@njit(cache=True, nogil=True)
def _move_range(query, planes, start, stop, counts):
    """Move items start … stop - 1 from level 0 to level 1."""
    for i in range(start, stop):
        d = np.uint64(0)
        for w in range(query.shape[0]):
            d += popcount(query[w] ^ planes[w, i])
        counts[0, d] -= ONE
        counts[1, d] += ONE


@njit(cache=True, nogil=True)
def _scan(tiles, first, last, scratch):
    """Count tiles ``first … last - 1``."""
    tables, extent, joint, table = scratch.tables, scratch.extent, scratch.joint, scratch.table
    none = joint[0]  # no kinds
    for t in range(first, min(last, first + LAG)):
        place_two(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    for t in range(first + LAG, last):
        count_and_place_two(tiles, t, tables, extent, joint[t % LAG], none, 0, table)
    flat = table.reshape(-1)
    for t in range(max(first, last - LAG), last):
        for i in range(joint.shape[1]):
            flat[joint[t % LAG, i]] += ONE


@njit(cache=True, nogil=True)
def _unload(scratch, found):
    """Add the counts to two histograms and empty them; False if an item was too far away."""
    if take_extent(scratch) >= ROWS - 1:
        clear(scratch.table.reshape(-1))
        return False
    take_table(scratch, 0, found[0], found[1])
    return True


@njit(cache=True, nogil=True)
def take_table(scratch, start, first, second):
    """Add the counts in rows ``start`` and following to two histograms, and empty them."""
    table, columns, bounds, words = scratch.table, scratch.columns, scratch.bounds, scratch.words
    differ = np.uint64(0)  # odd if one distance is odd where the other is even
    for w in range(words.shape[1]):
        differ += popcount(words[0, w] ^ words[1, w])
    for d in range(bounds[0, 0], bounds[0, 1] + 1):
        total, row = np.uint32(0), (start + d) * PARTS
        for part in range(PARTS):
            total += take_row(table, row + part, columns, d % SHIFTS * PARTS + part)
        first[d] += total
    for shift in range(SHIFTS):
        odd = (np.uint64(shift) ^ differ) & np.uint64(1)
        for e in range(bounds[1, 0] >> 1, (bounds[1, 1] >> 1) + 1):
            here = columns[shift, (e + 16 * shift) % HALVES]
            if here > 0:
                second[np.uint64(2 * e) + odd] += here
    clear(columns.reshape(-1))
