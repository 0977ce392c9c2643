"""Kernels of hash tables: keys, sorted buckets in flat arrays, look-ups, and counts of collisions.

A table is stored as sorted arrays, not as a dictionary.  Table t holds the database's positions
``ids[t]`` in the order of their keys.  The items whose keys begin with prefix p, that is ``key >>
shift == p``, are at ``directory[t, p] … directory[t, p + 1] - 1``::

    directory[t]   0    2    2    5 …           prefix 0: two items, prefix 1: none, prefix 2: three
                   ↓         ↓
    ids[t]         7    3    9    4    1 …
    keys[t]        0a   0c   20   20   2f …     only if a prefix is shorter than a key

With a shift of 0 a prefix is a key and its range is the bucket.  Otherwise ``keys[t]`` holds the
keys of ``ids[t]``, and the bucket is found in the range by binary search.

``bittern.index`` guarantees, and nothing here checks: arrays are C-contiguous, keys are uint32 or
uint64, directories ascend from 0 to the number of items, which is below 2^32, outputs are long
enough and zeroed.  Unsorted keys are not found, but do no harm.  Each kernel has a NumPy twin of
the same name and signature in ``tests/kernels/twins/hash_table_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

DIGIT = 11  # bits sorted at a time, few enough for the counters to stay in the L1 cache
BLOCK = 512  # items whose first tables are held at once
ONE = np.uint64(1)
SIX = np.uint64(6)
LOW = np.uint64(63)


@njit(cache=True, nogil=True)
def gather_keys(words, pieces, keys):
    """Fill ``keys[i]`` with chosen bits of code i.

    A piece ``(word, right, mask, left)`` moves neighbouring bits: the word is shifted to the right,
    masked, and shifted to the left into its place in the key.
    """
    for i in range(words.shape[0]):
        key = np.uint64(0)
        for p in range(pieces.shape[0]):
            bits = (words[i, pieces[p, 0]] >> pieces[p, 1]) & pieces[p, 2]
            key |= bits << pieces[p, 3]
        keys[i] = key


@njit(cache=True, nogil=True)
def sort_keys(keys, n_bits, ids, spare_keys, spare_ids):
    """Stably sort keys of ``n_bits`` bits in place; fill ``ids`` with the old position of each.

    This is a radix sort, lowest digit first; it overwrites the spare arrays.
    """
    n, radix = keys.shape[0], 1 << DIGIT
    low = np.uint64(radix - 1)
    starts = np.empty(radix + 1, np.int64)
    for i in range(n):
        ids[i] = i
    for done in range(0, n_bits, DIGIT):
        shift = np.uint64(done)
        for digit in range(radix + 1):
            starts[digit] = 0
        for i in range(n):
            starts[((np.uint64(keys[i]) >> shift) & low) + ONE] += 1
        for digit in range(radix):
            starts[digit + 1] += starts[digit]
        for i in range(n):
            own = (np.uint64(keys[i]) >> shift) & low
            place = starts[own]
            spare_keys[place] = keys[i]
            spare_ids[place] = ids[i]
            starts[own] = place + 1
        for i in range(n):
            keys[i] = spare_keys[i]
            ids[i] = spare_ids[i]


@njit(cache=True, nogil=True)
def count_prefixes(keys, shift, directory):
    """Fill ``directory[p]`` with the number of keys whose prefix is below p."""
    for i in range(keys.shape[0]):
        directory[(np.uint64(keys[i]) >> shift) + ONE] += 1
    for prefix in range(directory.shape[0] - 1):
        directory[prefix + 1] += directory[prefix]


@njit(cache=True, nogil=True)
def find(key, shift, directory, keys):
    """Start and end of the bucket of a key."""
    prefix = key >> shift
    start, stop = np.int64(directory[prefix]), np.int64(directory[prefix + ONE])
    if keys.shape[0] > 0:
        start = _first_not_below(keys, key, start, stop)
        end = start
        while end < stop and keys[end] == key:
            end += 1
        stop = end
    return start, stop


@njit(cache=True, nogil=True)
def _first_not_below(keys, key, start, stop):
    while start < stop:
        middle = (start + stop) >> 1
        if keys[middle] < key:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True, nogil=True)
def measure_buckets(query_keys, probes, shift, directory, keys, sizes):
    """Fill ``sizes[q]`` with the number of items in all buckets of query q, with repetitions.

    ``query_keys[t, q]`` is its key in table t; the query looks into the bucket of that key XOR each
    probe.
    """
    for q in range(query_keys.shape[1]):
        for t in range(query_keys.shape[0]):
            for p in range(probes.shape[0]):
                key = query_keys[t, q] ^ probes[p]
                start, stop = find(key, shift, directory[t], keys[t])
                sizes[q] += stop - start


@njit(cache=True, nogil=True)
def collect(
    query_keys,
    probes,
    shift,
    directory,
    keys,
    ids,
    excluded,
    seen,
    offsets,
    found,
    examined,
    occupied,
):
    """Write the union of query q's buckets, in the order found, to ``found[offsets[q] …]``.

    The item ``excluded[q]`` is skipped.  Fills ``offsets``; ``examined[q]`` counts repetitions; bit
    j of ``occupied[q]`` is set if look-up j found something.  ``seen`` has a bit for each item; all
    are 0 before and after.  Stops and returns False at an item that does not exist: ``ids`` may be
    mapped from a damaged file, which is never read as a whole.
    """
    n, n_items = 0, np.uint64(ids.shape[1])
    for q in range(query_keys.shape[1]):
        look_up = 0
        for t in range(query_keys.shape[0]):
            for p in range(probes.shape[0]):
                key = query_keys[t, q] ^ probes[p]
                start, stop = find(key, shift, directory[t], keys[t])
                before = examined[q]
                for i in range(start, stop):
                    item = np.uint64(ids[t, i])
                    if item >= n_items:
                        return False
                    if np.int64(item) == excluded[q]:
                        continue
                    examined[q] += 1
                    bit = ONE << (item & LOW)
                    if not seen[item >> SIX] & bit:
                        seen[item >> SIX] |= bit
                        found[n] = item
                        n += 1
                if examined[q] > before:
                    occupied[q, look_up >> 3] |= np.uint8(1 << (look_up & 7))
                look_up += 1
        offsets[q + 1] = n
        for i in range(offsets[q], n):
            seen[np.uint64(found[i]) >> SIX] = 0
    return True


@njit(cache=True, nogil=True)
def measure_found(queries, words, offsets, found, distances):
    """Fill ``distances`` with the distances of query q from its items ``found[offsets[q] …]``."""
    for q in range(queries.shape[0]):
        for i in range(offsets[q], offsets[q + 1]):
            d = 0
            for w in range(queries.shape[1]):
                d += popcount(queries[q, w] ^ words[found[i], w])
            distances[i] = d


@njit(cache=True, nogil=True)
def count_collisions(query_keys, item_keys, probe, kinds, bins, counts, examined):
    """Add to ``counts[q, v, bins[t]]``: items of kind v that first collide with q in table t.

    ``query_keys[t, q]`` and ``item_keys[t, i]`` collide if they differ in at most ``probe`` bits.
    For a pair that collides in no table, t is the number of tables.  ``kinds[q, i]`` is 0 or 1, or
    2 for an item that does not count.  ``examined[q, bins[t]]`` counts all collisions in table t.
    """
    n_tables, n_items = item_keys.shape
    first = np.empty(BLOCK, np.int32)
    for q in range(query_keys.shape[1]):
        for s in range(0, n_items, BLOCK):
            stop = min(n_items, s + BLOCK)
            near, kind = first[: stop - s], kinds[q, s:stop]
            near[:] = n_tables
            for t in range(n_tables - 1, -1, -1):  # so that the first table is written last
                key, items = query_keys[t, q], item_keys[t, s:stop]
                if probe == 0:
                    n = _note_equal(key, items, kind, np.int32(t), near)
                else:
                    n = _note_near(key, items, np.uint64(probe), kind, np.int32(t), near)
                examined[q, bins[t]] += n
            for i in range(stop - s):
                counts[q, kind[i], bins[near[i]]] += 1


# Separate loops without branches, which the compiler vectorises.


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
