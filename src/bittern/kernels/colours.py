"""Pixels to cells of a quantised colour space, and what an 8 × 8 element sees of the cells.

Quotients of whole numbers below 2^20 are taken in float64 and cut: the nearest double to such a
quotient never crosses a whole number, so the cells are exact.

Not checked here, guaranteed by ``bittern.features``: images are ``(h, w, 3)`` uint8, outputs
are allocated and of the right shape.  Twins in ``kernels.image_reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

ONE = np.uint64(1)
LOW = np.uint64(63)
STRIP = 32  # rows of positions whose masks stay near


@njit(cache=True, nogil=True, error_model="numpy")
def hsv_cells(image, n_hues, n_saturations, n_values, cells):
    """Fill ``cells[y, x]`` with the cell of the pixel: value slowest, hue fastest."""
    height, width = cells.shape
    for y in range(height):
        for x in range(width):
            r, g, b = image[y, x]
            top, diff = _extent(r, g, b)
            hue = saturation = 0
            if diff > 0:
                hue = int(_sixths(r, g, b, top, diff) * n_hues / (6 * diff))
                saturation = min(int(diff * n_saturations / top), n_saturations - 1)
            value = (top * n_values) >> 8
            cells[y, x] = (value * n_saturations + saturation) * n_hues + hue


@njit(cache=True, nogil=True, error_model="numpy")
def hmmd_cells(image, subspaces, hues, sums, cells):
    """Fill ``cells[y, x]`` with the cell of the pixel in a quantised HMMD space.

    ``subspaces[d]`` is the subspace of a difference d; in subspace s a hue of t degrees (0 … 360)
    and a sum z (0 … 255) make cell ``hues[s, t] + sums[s, z]``.
    """
    height, width = cells.shape
    for y in range(height):
        for x in range(width):
            r, g, b = image[y, x]
            top, diff = _extent(r, g, b)
            degrees = 0
            if diff > 0:
                degrees = int((120 * _sixths(r, g, b, top, diff) + diff) / (2 * diff))  # nearest
            s = subspaces[diff]
            cells[y, x] = hues[s, degrees] + sums[s, (2 * top - diff + 1) >> 1]


@njit(cache=True, nogil=True)
def _extent(r, g, b):
    """The greatest of three octets, and how far the least lies below it."""
    top = max(np.int64(r), np.int64(g), np.int64(b))
    return top, top - min(np.int64(r), np.int64(g), np.int64(b))


@njit(cache=True, nogil=True)
def _sixths(r, g, b, top, diff):
    """Hue in sixths of a turn, times ``diff``: a whole number in [0, 6 diff)."""
    red, green, blue = np.int64(r), np.int64(g), np.int64(b)
    if top == red:
        return green - blue if green >= blue else green - blue + 6 * diff
    if top == green:
        return 2 * diff + blue - red
    return 4 * diff + red - green


@njit(cache=True, nogil=True)
def count_seen(cells, side_y, side_x, counts):
    """Fill ``counts[c]``: positions of a ``side_y`` × ``side_x`` element that see cell c.

    Cells are bits of a mask for each pixel; masks of neighbours are joined in steps of 1, 2, 4, …
    pixels.  Along a row of positions a cell is counted where it comes into sight and where it
    leaves, which is far rarer than being seen.
    """
    height, width = cells.shape
    rows, columns = height - side_y + 1, width - side_x + 1
    counts[:] = 0
    masks = np.empty((min(STRIP + side_y - 1, height), width), np.uint64)
    for start in range(0, rows, STRIP):
        stop = min(start + STRIP, rows)
        strip = masks[: stop - start + side_y - 1]
        for word in range((counts.shape[0] + 63) // 64):
            for y in range(strip.shape[0]):
                _mask(cells[start + y], word, strip[y])
                _join_columns(strip[y], side_x)
            _join_rows(strip, side_y)
            for y in range(stop - start):
                _count_row(strip[y, :columns], counts[64 * word :])


@njit(cache=True, nogil=True)
def _mask(cells, word, row):
    """Fill ``row[x]`` with the bit of the cell at x, if it lies in this word of the mask."""
    for x in range(row.shape[0]):
        bit = ONE << (np.uint64(cells[x]) & LOW)
        row[x] = bit if cells[x] >> 6 == word else np.uint64(0)


@njit(cache=True, nogil=True)
def _join_columns(row, side):
    """Each mask becomes the union of itself and the next ``side - 1``."""
    reach = 1
    while reach < side:
        step = min(reach, side - reach)
        for x in range(row.shape[0] - step):
            row[x] |= row[x + step]
        reach += step


@njit(cache=True, nogil=True)
def _join_rows(masks, side):
    """Each row of masks becomes the union of itself and the next ``side - 1``."""
    reach = 1
    while reach < side:
        step = min(reach, side - reach)
        for y in range(masks.shape[0] - step):
            here, there = masks[y], masks[y + step]
            for x in range(masks.shape[1]):
                here[x] |= there[x]
        reach += step


@njit(cache=True, nogil=True)
def _count_row(row, counts):
    """Add how many masks of a row have each bit: ends less beginnings of its runs."""
    n, before = row.shape[0], np.uint64(0)
    for x in range(n + 1):
        now = row[x] if x < n else np.uint64(0)
        changed = now ^ before
        while changed:
            lowest = changed & (~changed + ONE)
            bit = popcount(lowest - ONE)
            counts[bit] += -x if now & lowest else x
            changed ^= lowest
        before = now
