"""PDQ: an image shrunk to 64 × 64 by box filters, its gradients, and its lowest frequencies.

All sums are of float32 numbers, one after another in a fixed order, because the published codes
depend on how each of them rounds.

``bittern.features`` guarantees, and nothing here checks: arrays are C-contiguous float32, outputs
are allocated and of the right shape.  Each kernel has a NumPy twin in
``tests/kernels/twins/pdq_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SIDE = 64  # of the small image
N_PASSES = 2  # a box twice is a tent


@njit(cache=True, nogil=True)
def shrink_by_boxes(luma, out):
    """Fill ``out`` (64 × 64) with pixels of the filtered image; ``luma`` is overwritten."""
    height, width = luma.shape
    if height != SIDE or width != SIDE:
        other = np.empty_like(luma)
        for _ in range(N_PASSES):
            _average_along_rows(luma, other, window_for(width))
            _average_along_columns(other, luma, window_for(height))
    for i in range(SIDE):
        y = int((i + 0.5) * height / SIDE)
        for j in range(SIDE):
            out[i, j] = luma[y, int((j + 0.5) * width / SIDE)]


@njit(inline="always")
def window_for(length):
    """The side of the box: half the distance between two pixels of the small image, rounded up."""
    return (length + 2 * SIDE - 1) // (2 * SIDE)


@njit(cache=True, nogil=True)
def _average_along_rows(image, out, window):
    height, width = image.shape
    ahead = (window + 2) // 2 - 1
    for y in range(height):
        row, averages = image[y], out[y]
        total, n = np.float32(0), 0
        for x in range(-ahead, width):
            if x + ahead < width:
                total += row[x + ahead]
                n += 1
            if x + ahead >= window:
                total -= row[x + ahead - window]
                n -= 1
            if x >= 0:
                averages[x] = total / np.float32(n)


@njit(cache=True, nogil=True)
def _average_along_columns(image, out, window):
    height, width = image.shape
    ahead = (window + 2) // 2 - 1
    totals, n = np.zeros(width, np.float32), 0
    for y in range(-ahead, height):
        if y + ahead < height:
            entering = image[y + ahead]
            for x in range(width):
                totals[x] += entering[x]
            n += 1
        if y + ahead >= window:
            leaving = image[y + ahead - window]
            for x in range(width):
                totals[x] -= leaving[x]
            n -= 1
        if y >= 0:
            averages = out[y]
            for x in range(width):
                averages[x] = totals[x] / np.float32(n)


@njit(cache=True, nogil=True)
def sum_gradients(small):
    """Sum of the differences of neighbours, each in whole hundredths of the range, cut off."""
    total = 0
    for i in range(SIDE):
        for j in range(SIDE):
            if i + 1 < SIDE:
                total += _hundredths(small[i, j] - small[i + 1, j])
            if j + 1 < SIDE:
                total += _hundredths(small[i, j] - small[i, j + 1])
    return total


@njit(inline="always")
def _hundredths(difference):
    return abs(int(difference * np.float32(100) / np.float32(255)))


@njit(cache=True, nogil=True)
def find_frequencies(small, cosines, out):
    """Fill ``out`` (16 × 16) with ``cosines @ small @ cosines.T``, each sum in order."""
    n = cosines.shape[0]
    half = np.zeros((n, SIDE), np.float32)
    for i in range(n):
        for k in range(SIDE):
            for j in range(SIDE):
                half[i, j] += cosines[i, k] * small[k, j]
    for i in range(n):
        for j in range(n):
            total = np.float32(0)
            for k in range(SIDE):
                total += half[i, k] * cosines[j, k]
            out[i, j] = total
