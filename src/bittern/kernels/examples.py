"""City-block distances, and the similarity of items to the nearest of some examples.

Guaranteed by the callers in ``bittern.fusion``: arrays are C-contiguous, rows of one length,
positions inside the arrays they point into, 1 <= k.  Twins in ``kernels.fusion_reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STRIP = 2048  # dimensions at a time: so much of many rows stays in the cache
ROWS = 16  # rows of one side that meet the other side's strip while it is there


@njit(cache=True, nogil=True)
def city_block(items, examples, out):
    """Fill ``out[i, e]`` with the sum of absolute differences of item i and example e."""
    n, dim = items.shape
    m = examples.shape[0]
    out[:] = 0
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        for start in range(0, dim, STRIP):
            stop = min(start + STRIP, dim)
            for e in range(m):
                for i in range(first, last):
                    out[i, e] += _city_block(items[i, start:stop], examples[e, start:stop])


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _city_block(a, b):
    total = a.dtype.type(0)
    for j in range(a.shape[0]):
        total += abs(a[j] - b[j])
    return total


@njit(cache=True, nogil=True)
def nearest_examples(closeness, positives, offsets, negatives, k, epsilon, out):
    """Fill ``out[q, i]`` with the closeness of item i to q's positives over that to its negatives.

    ``closeness[i, e]`` is 1 / (distance of item i and example e + epsilon).  The positives of
    query q are ``positives[offsets[q]:offsets[q + 1]]``, its negatives ``negatives[q]``.  Only the
    k closest of both together count; of equally close ones, positives before negatives, and each
    in the order given.
    """
    widest = 0
    for q in range(offsets.shape[0] - 1):
        widest = max(widest, offsets[q + 1] - offsets[q])
    found = np.empty(widest + negatives.shape[1], np.float64)
    scratch = np.empty_like(found)
    for i in range(closeness.shape[0]):  # one item's row stays in the cache for all queries
        row = closeness[i]
        for q in range(offsets.shape[0] - 1):
            p = offsets[q + 1] - offsets[q]
            m = p + negatives.shape[1]
            for j in range(p):
                found[j] = row[positives[offsets[q] + j]]
            for j in range(negatives.shape[1]):
                found[p + j] = row[negatives[q, j]]
            least, spare = -1.0, m
            if k < m:
                least, spare = _closest(found, scratch, m, k)
            above, below = 0.0, 0.0
            for j in range(m):
                counts = found[j] > least
                if found[j] == least and spare > 0:
                    counts = True
                    spare -= 1
                if counts and j < p:
                    above += found[j]
                elif counts:
                    below += found[j]
            out[q, i] = above / (below + epsilon)


@njit(cache=True, nogil=True)
def _closest(found, scratch, m, k):
    """The k-th largest of ``found[:m]``, and how many that equal it are among the k largest."""
    for j in range(m):
        scratch[j] = found[j]
    low, high = 0, m - 1
    while low < high:  # quickselect, by Hoare's partition around the middle
        pivot = scratch[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while scratch[i] > pivot:
                i += 1
            while scratch[j] < pivot:
                j -= 1
            if i <= j:
                scratch[i], scratch[j] = scratch[j], scratch[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    least, larger = scratch[k - 1], 0
    for j in range(m):
        larger += found[j] > least
    return least, k - larger
