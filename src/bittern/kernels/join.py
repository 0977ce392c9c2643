"""All pairs of near codes: codes that agree in a key's bits meet in a bucket.

A *key* is a set of bits, given as a mask.  Codes are put into buckets by a hash of their bits in
the mask, and only codes of one bucket are compared.  If the bits are cut into r + k segments, two
codes within distance r differ in at most r of them, so they agree in all bits of at least k
segments.  So the keys made of any k segments bring every such pair together at least once.

A pair that agrees in several keys is reported for the first of them alone, which the bits in which
the two codes differ show.

The caller guarantees: arrays are those of ``bittern.index.pairs``, rows fit 32 bits, and ``found``
has room for the largest bucket.  The twin of these loops is ``tests/kernels/twins/
join_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
HALF, ONE = np.uint64(32), np.uint64(1)
ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def fill_buckets(words, mask, width, offsets, rows, codes):
    """Put all codes into 2^width buckets by their bits in the mask, each in order of row.

    Bucket x is ``offsets[x] … offsets[x + 1] - 1`` of ``rows`` and ``codes``.
    """
    n, n_words = words.shape
    buckets = np.empty(n, np.uint32)
    offsets[:] = 0
    shift = np.uint64(63 - width)
    for i in range(n):
        mixed = ZERO
        for w in range(n_words):
            mixed = (mixed ^ (words[i, w] & mask[w])) * ODD
            mixed ^= mixed >> HALF
        bucket = np.uint32(((mixed * ODD) >> ONE) >> shift)
        buckets[i] = bucket
        offsets[bucket + 1] += 1
    for x in range(1, offsets.shape[0]):
        offsets[x] += offsets[x - 1]
    places = offsets[:-1].copy()
    for i in range(n):
        place = places[buckets[i]]
        places[buckets[i]] += 1
        rows[place] = i
        for w in range(n_words):
            codes[place, w] = words[i, w]


@njit(cache=True, nogil=True)
def largest_bucket(offsets):
    """Number of codes in the fullest bucket."""
    most = np.int64(0)
    for x in range(offsets.shape[0] - 1):
        size = np.int64(offsets[x + 1]) - np.int64(offsets[x])
        if size > most:
            most = size
    return most


@njit(cache=True, nogil=True)
def join_buckets(codes, rows, offsets, masks, key, radius, since, is_among, cursor, last, found):
    """Fill ``found`` with pairs of one key (first row, second row, distance); return how many.

    The second row is ``since`` or later; the first is any earlier one, or without ``is_among`` one
    before ``since``.  ``cursor`` is the bucket and the place to continue from; the work is done
    when the bucket is beyond the last, or the place has come to ``last``.
    """
    n_buckets, n_found = offsets.shape[0] - 1, 0
    while cursor[0] < n_buckets:
        begin, end = np.int64(offsets[cursor[0]]), np.int64(offsets[cursor[0] + 1])
        if end - begin > 1 and rows[end - 1] >= since:
            split = _first_since(rows, begin, end, since)
            for j in range(max(split, cursor[1]), min(end, last)):
                stop = j if is_among else split
                if stop - begin > found.shape[0] - n_found:
                    cursor[1] = j
                    return n_found
                if codes.shape[1] == 1:
                    n_found = _compare_short(
                        codes, rows, begin, stop, j, masks, key, radius, found, n_found
                    )
                else:
                    n_found = _compare_long(
                        codes, rows, begin, stop, j, masks, key, radius, found, n_found
                    )
        cursor[0] += 1
        cursor[1] = 0
    return n_found


@njit(cache=True, nogil=True)
def _first_since(rows, begin, end, since):
    """The first place in a bucket whose row is ``since`` or later."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < since:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _compare_short(codes, rows, begin, stop, j, masks, key, radius, found, n_found):
    """For codes of one word: take those near code j."""
    code, bound, others = codes[j, 0], np.uint64(radius), codes[begin:stop, 0]
    for i in range(others.shape[0]):
        different = others[i] ^ code
        if popcount(different) <= bound and _is_first_short(different, masks, key):
            found[n_found, 0] = rows[begin + i]
            found[n_found, 1] = rows[j]
            found[n_found, 2] = np.int64(popcount(different))
            n_found += 1
    return n_found


@njit(cache=True, nogil=True)
def _is_first_short(different, masks, key):
    """Whether no key before this one has two codes agree, and this one has."""
    if different & masks[key, 0]:
        return False
    for earlier in range(key):  # noqa: SIM110  (a loop compiles to less than any())
        if not different & masks[earlier, 0]:
            return False
    return True


@njit(cache=True, nogil=True)
def _compare_long(codes, rows, begin, stop, j, masks, key, radius, found, n_found):
    """The same for codes of several words, which are left as soon as they differ too much."""
    n_words, bound = codes.shape[1], np.uint64(radius)
    code, others = codes[j], codes[begin:stop]
    for i in range(others.shape[0]):
        distance = popcount(others[i, 0] ^ code[0]) + popcount(others[i, 1] ^ code[1])
        for w in range(2, n_words):
            if distance > bound:
                break
            distance += popcount(others[i, w] ^ code[w])
        if distance <= bound and _is_first_long(others[i], code, masks, key):
            found[n_found, 0] = rows[begin + i]
            found[n_found, 1] = rows[j]
            found[n_found, 2] = np.int64(distance)
            n_found += 1
    return n_found


@njit(cache=True, nogil=True)
def _is_first_long(one, other, masks, key):
    if not _agree(one, other, masks[key]):
        return False
    for earlier in range(key):  # noqa: SIM110  (a loop compiles to less than any())
        if _agree(one, other, masks[earlier]):
            return False
    return True


@njit(inline="always")
def _agree(one, other, mask):
    different = ZERO
    for w in range(mask.shape[0]):
        different |= (one[w] ^ other[w]) & mask[w]
    return different == ZERO
