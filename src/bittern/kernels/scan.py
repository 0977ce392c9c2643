"""Scans for near items on any processor, and the record of the nearest so far.

``blocks[b, w, i]`` is word w of item i of block b: the distances of a block are summed over its
words into a buffer, which the compiler turns into vector code, and then compared with the bound.

The caller guarantees: arrays are C-contiguous, ``nearest`` comes from :func:`nothing_yet`, k is at
least 1, and ``allowed`` is a mask over all rows, or empty if all rows are allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.count.portable import BLOCK, measure

NEARBY = 1 << 17  # bytes of blocks at a time, which stay in the cache while all queries pass
HIGHEST = np.uint64(1 << 63)


class NearestSoFar(NamedTuple):
    """The k nearest so far of several queries, during a scan in row order.

    An item is wanted if it is nearer than ``bounds[q]``: k items at most that far are known, and
    later ones at exactly that distance come after them.  The bound shrinks as items are taken, and
    soon one comparison rejects nearly all items.  There are few distances, so ``counts[q, d]``, the
    items taken at distance d, is enough to move the bound and to sort by counting.
    """

    bounds: NDArray[np.int64]  # (n_queries,)
    nearer: NDArray[np.int64]  # (n_queries,) items taken that are nearer than the bound
    sizes: NDArray[np.int64]  # (n_queries,) entries of the two lists below
    counts: NDArray[np.int64]  # (n_queries, n_bits + 1)
    rows: NDArray[np.int64]  # (n_queries, room)
    distances: NDArray[np.int32]  # (n_queries, room)


def nothing_yet(n_queries: int, k: int, n_bits: int, n: int) -> NearestSoFar:
    """The record at the start of a scan of n items."""
    room = min(2 * k + 64, n)
    return NearestSoFar(
        np.full(n_queries, n_bits + 1),
        np.zeros(n_queries, np.int64),
        np.zeros(n_queries, np.int64),
        np.zeros((n_queries, n_bits + 1), np.int64),
        np.empty((n_queries, room), np.int64),
        np.empty((n_queries, room), np.int32),
    )


def blocks_of(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """``(n_blocks, n_words, BLOCK)``; the last block is padded with zeros."""
    n, n_words = words.shape
    padded = np.zeros((-(-n // BLOCK) * BLOCK, n_words), np.uint64)
    padded[:n] = words
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, n_words).transpose(0, 2, 1))


@njit(cache=True, nogil=True)
def find_nearest(queries, n, blocks, allowed, k, nearest):
    """Offer all n items of the blocks to ``nearest``."""
    buffer = np.empty(BLOCK, np.uint64)
    step = max(1, NEARBY // (8 * blocks.shape[1] * BLOCK))
    for near in range(0, blocks.shape[0], step):
        for q in range(queries.shape[0]):
            for b in range(near, min(blocks.shape[0], near + step)):
                measure(queries[q], blocks[b], 0, buffer)
                if _any_below(buffer, np.uint64(nearest.bounds[q])):
                    for i in range(min(BLOCK, n - b * BLOCK)):
                        distance, row = np.int64(buffer[i]), b * BLOCK + i
                        if distance < nearest.bounds[q] and (allowed.shape[0] == 0 or allowed[row]):
                            take(nearest, q, row, distance, k)


@njit(cache=True, nogil=True)
def find_within(queries, n, blocks, radius, allowed, places, rows, distances):
    """Count the items at each distance up to the radius, or write them to their places.

    If ``rows`` is empty, ``places[q, d]`` grows by the number of items at distance d from query q.
    Otherwise each item is written to ``rows[places[q, d]]``, and ``places[q, d]`` grows by one.
    """
    buffer = np.empty(BLOCK, np.uint64)
    step = max(1, NEARBY // (8 * blocks.shape[1] * BLOCK))
    for near in range(0, blocks.shape[0], step):
        for q in range(queries.shape[0]):
            for b in range(near, min(blocks.shape[0], near + step)):
                measure(queries[q], blocks[b], 0, buffer)
                if _any_below(buffer, np.uint64(radius + 1)):
                    for i in range(min(BLOCK, n - b * BLOCK)):
                        distance, row = np.int64(buffer[i]), b * BLOCK + i
                        if distance <= radius and (allowed.shape[0] == 0 or allowed[row]):
                            place = places[q, distance]
                            if rows.shape[0] > 0:
                                rows[place], distances[place] = row, distance
                            places[q, distance] = place + 1


@njit(inline="always")
def _any_below(buffer, bound):
    """Whether any distance is below the bound.

    Distance minus bound is unsigned: if it is negative it wraps around, which sets the highest bit.
    OR over all differences needs no branch, so the compiler vectorises the loop.
    """
    joined = np.uint64(0)
    for i in range(buffer.shape[0]):
        joined |= buffer[i] - bound
    return joined >= HIGHEST


@njit(inline="always")
def take(nearest, q, row, distance, k):
    """Take an item that is nearer than the bound; its row comes after all rows taken so far."""
    if nearest.sizes[q] == nearest.rows.shape[1]:
        trim(nearest, q, k)
    size = nearest.sizes[q]
    nearest.rows[q, size], nearest.distances[q, size] = row, distance
    nearest.sizes[q] = size + 1
    nearest.counts[q, distance] += 1
    nearer, bound = nearest.nearer[q] + 1, nearest.bounds[q]
    while nearer >= k:
        bound -= 1
        nearer -= nearest.counts[q, bound]
    nearest.nearer[q], nearest.bounds[q] = nearer, bound


@njit(cache=True, nogil=True)
def trim(nearest, q, k):
    """Drop the items beyond the bound, and of those at the bound keep the first, up to k in all."""
    rows, distances, bound = nearest.rows[q], nearest.distances[q], nearest.bounds[q]
    spare, kept = k - nearest.nearer[q], 0
    for i in range(nearest.sizes[q]):
        if distances[i] < bound or (distances[i] == bound and spare > 0):
            spare -= distances[i] == bound
            rows[kept], distances[kept] = rows[i], distances[i]
            kept += 1
    nearest.sizes[q] = kept


@njit(cache=True, nogil=True)
def put_in_order(nearest, k, rows, distances):
    """Fill ``rows[q]`` and ``distances[q]`` with the k nearest, by distance, then row."""
    for q in range(rows.shape[0]):
        trim(nearest, q, k)
        counts = nearest.counts[q]
        counts[:] = 0
        for i in range(nearest.sizes[q]):
            counts[nearest.distances[q, i]] += 1
        place = 0
        for d in range(counts.shape[0]):
            counts[d], place = place, place + counts[d]
        for i in range(nearest.sizes[q]):
            d = nearest.distances[q, i]
            rows[q, counts[d]], distances[q, counts[d]] = nearest.rows[q, i], d
            counts[d] += 1
