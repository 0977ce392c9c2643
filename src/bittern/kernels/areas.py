"""Means over areas of a image, and deviations in a sliding window.

All sums are of whole numbers and therefore exact, whatever the size of the image.

Not checked here, guaranteed by ``bittern.features``: inputs are C-contiguous uint8, outputs are
allocated and of the right shape.  Twins in ``kernels.image_reference``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shrink(image, out):
    """Fill ``out[i, j, c]`` with the mean of channel c over its share of the image's area.

    A pixel that lies in two shares counts in each by the part of it that lies there.  With the
    image ``(h, w)`` and out ``(m, n)``, lengths are counted in m-ths and n-ths of a pixel: a
    pixel is m by n long and a share h by w, all whole numbers.
    """
    height, width, depth = image.shape
    m, n = out.shape[0], out.shape[1]
    flat = image.reshape(height, width * depth)
    row = np.empty(width * depth, np.int64)
    for i in range(m):
        row[:] = 0
        for y in range(i * height // m, ((i + 1) * height + m - 1) // m):
            part = min((i + 1) * height, (y + 1) * m) - max(i * height, y * m)
            pixels = flat[y]
            for k in range(row.shape[0]):
                row[k] += part * pixels[k]
        for j in range(n):
            for c in range(depth):
                total = 0
                for x in range(j * width // n, ((j + 1) * width + n - 1) // n):
                    part = min((j + 1) * width, (x + 1) * n) - max(j * width, x * n)
                    total += part * row[x * depth + c]
                out[i, j, c] = total / (height * width)


@njit(cache=True, nogil=True)
def count_deviations(grey, side_y, side_x, bin_width, row_starts, column_starts, counts):
    """Fill ``counts[i, j, k]``: window positions of tile (i, j) with a deviation in bin k.

    Positions are those of a ``side_y`` × ``side_x`` window inside the image; ``row_starts[i]``
    is where tile row i of them begins, and a last entry is where the last one ends (columns
    alike).  The last bin also has what lies beyond it.
    """
    n, last = side_y * side_x, counts.shape[2] - 1
    width = grey.shape[1]
    sums, squares = np.zeros((2, width), np.int64)
    for y in range(side_y):
        _slide(grey[y], 1, sums, squares)
    at = 0  # row of positions that the sums are for
    counts[:] = 0
    bins = np.empty(width - side_x + 1, np.int64)
    for i in range(counts.shape[0]):
        for y in range(row_starts[i], max(row_starts[i + 1], row_starts[i] + 1)):
            if y > at:
                _slide(grey[at], -1, sums, squares)
                _slide(grey[at + side_y], 1, sums, squares)
                at = y
            _deviations(sums, squares, side_x, n, bin_width, last, bins)
            for j in range(counts.shape[1]):
                start = column_starts[j]
                for x in range(start, max(column_starts[j + 1], start + 1)):
                    counts[i, j, bins[x]] += 1


@njit(cache=True, nogil=True)
def _slide(row, sign, sums, squares):
    for x in range(row.shape[0]):
        z = np.int64(row[x])
        sums[x] += sign * z
        squares[x] += sign * z * z


@njit(cache=True, nogil=True, error_model="numpy")
def _deviations(sums, squares, side, n, bin_width, last, bins):
    """Fill ``bins`` with the bin of the deviation at each position of a row."""
    total, square = np.int64(0), np.int64(0)
    for x in range(side - 1):
        total += sums[x]
        square += squares[x]
    for x in range(bins.shape[0]):
        total += sums[x + side - 1]
        square += squares[x + side - 1]
        deviation = math.sqrt(n * square - total * total)  # times n
        bins[x] = min(int(deviation / (n * bin_width)), last)
        total -= sums[x]
        square -= squares[x]
