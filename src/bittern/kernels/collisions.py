"""Counting every pair by the first table in which it collides.

Guaranteed by the caller as in ``kernels.buckets``; the twin is in ``kernels.bucket_reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

RUN = 512  # items whose first tables are held at once


@njit(cache=True, nogil=True)
def count_collisions(query_keys, item_keys, probe, kinds, bins, counts, examined):
    """Add to ``counts[q, v, bins[t]]``: items of kind v that first collide with q in table t.

    ``query_keys[t, q]`` and ``item_keys[t, i]`` collide if they differ in at most ``probe`` bits;
    t is the number of tables for a pair that collides in none.  ``kinds[q, i]`` is 0, 1, or 2 for
    an item that is not to be counted.  ``examined[q, bins[t]]`` counts all collisions of table t.
    """
    n_tables, n_items = item_keys.shape
    first = np.empty(RUN, np.int32)
    for q in range(query_keys.shape[1]):
        for s in range(0, n_items, RUN):
            stop = min(n_items, s + RUN)
            near, kind = first[: stop - s], kinds[q, s:stop]
            near[:] = n_tables
            for t in range(n_tables - 1, -1, -1):  # so that the first is the last to be noted
                key, items = query_keys[t, q], item_keys[t, s:stop]
                if probe == 0:
                    n = _note_equal(key, items, kind, np.int32(t), near)
                else:
                    n = _note_near(key, items, np.uint64(probe), kind, np.int32(t), near)
                examined[q, bins[t]] += n
            for i in range(stop - s):
                counts[q, kind[i], bins[near[i]]] += 1


# Loops of their own, without a branch, are vector code.


@njit(cache=True, nogil=True)
def _note_equal(key, items, kind, table, first):
    n = np.uint32(0)
    for i in range(items.shape[0]):
        hit = items[i] == key
        first[i] = table if hit else first[i]
        n += np.uint32(hit & (kind[i] < 2))
    return n


@njit(cache=True, nogil=True)
def _note_near(key, items, probe, kind, table, first):
    n = np.uint32(0)
    for i in range(items.shape[0]):
        hit = popcount(np.uint64(items[i] ^ key)) <= probe
        first[i] = table if hit else first[i]
        n += np.uint32(hit & (kind[i] < 2))
    return n
