"""The k nearest so far of several queries, kept while a scan goes by in the order of rows.

``counts[q, d]`` items were taken at distance d.  An item is wanted if it is nearer than
``bounds[q]``: k items at most that far are known, and later ones at that very distance come after
them.  So the bound falls as items are taken, and soon nearly all others are refused by one
comparison.  Distances are few: items are put in order by counting.

Guaranteed by the caller: all arrays are those of :func:`nothing_found`, and k is at least 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Found(NamedTuple):
    """What is known of each query."""

    bounds: NDArray[np.int64]  # (n_queries,)
    nearer: NDArray[np.int64]  # (n_queries,) items taken that are nearer than the bound
    sizes: NDArray[np.int64]  # (n_queries,) entries of the two lists below
    counts: NDArray[np.int64]  # (n_queries, n_bits + 1)
    rows: NDArray[np.int64]  # (n_queries, room)
    distances: NDArray[np.int32]  # (n_queries, room)


def nothing_found(n_queries: int, k: int, n_bits: int, n: int) -> Found:
    """The beginning of a scan of n items."""
    room = min(2 * k + 64, n)
    return Found(
        np.full(n_queries, n_bits + 1),
        np.zeros(n_queries, np.int64),
        np.zeros(n_queries, np.int64),
        np.zeros((n_queries, n_bits + 1), np.int64),
        np.empty((n_queries, room), np.int64),
        np.empty((n_queries, room), np.int32),
    )


@njit(inline="always")
def take(found, q, row, distance, k):
    """Take an item that is nearer than the bound, of a later row than all before."""
    if found.sizes[q] == found.rows.shape[1]:
        trim(found, q, k)
    size = found.sizes[q]
    found.rows[q, size], found.distances[q, size] = row, distance
    found.sizes[q] = size + 1
    found.counts[q, distance] += 1
    nearer, bound = found.nearer[q] + 1, found.bounds[q]
    while nearer >= k:
        bound -= 1
        nearer -= found.counts[q, bound]
    found.nearer[q], found.bounds[q] = nearer, bound


@njit(cache=True, nogil=True)
def trim(found, q, k):
    """Drop what is beyond the bound, and all but the first at the bound that make k."""
    rows, distances, bound = found.rows[q], found.distances[q], found.bounds[q]
    spare, kept = k - found.nearer[q], 0
    for i in range(found.sizes[q]):
        if distances[i] < bound or (distances[i] == bound and spare > 0):
            spare -= distances[i] == bound
            rows[kept], distances[kept] = rows[i], distances[i]
            kept += 1
    found.sizes[q] = kept


@njit(cache=True, nogil=True)
def put_in_order(found, k, rows, distances):
    """Fill ``rows[q]`` and ``distances[q]`` with the k nearest, by distance, then row."""
    for q in range(rows.shape[0]):
        trim(found, q, k)
        counts = found.counts[q]
        counts[:] = 0
        for i in range(found.sizes[q]):
            counts[found.distances[q, i]] += 1
        place = 0
        for d in range(counts.shape[0]):
            counts[d], place = place, place + counts[d]
        for i in range(found.sizes[q]):
            d = found.distances[q, i]
            rows[q, counts[d]], distances[q, counts[d]] = found.rows[q, i], d
            counts[d] += 1
