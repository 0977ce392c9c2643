"""Kernels over images: areas, cells of a colour space, and banks of filters.

**Areas.**  Means over areas, and deviations in a sliding window.  All sums are of whole numbers, so
they are exact for images of any size.

**Cells.**  Pixels become cells of a quantised colour space, and an 8 × 8 element sees a set of
them.  Quotients of whole numbers below 2^20 are computed in float64 and truncated: the nearest
double to such a quotient never crosses a whole number, so the cells are exact.

**Filters.**  Maps are ``(h, w, n_maps)``, so that the innermost loops run over maps and can be
vectorised.  Kernels ``(n, 5)`` make ``n * n`` separable filters, the one along y slowest.  They are
applied at every other pixel in both directions; the edge pixels are repeated outside the image.

``bittern.features`` guarantees, and nothing here checks: images are C-contiguous uint8 and maps
float32, outputs are allocated and of the right shape.  Each kernel has a NumPy twin in
``tests/kernels/twins/image_reference.py``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bittern.kernels.bits import popcount

STRIP = 32  # rows of positions at a time, so that their masks stay in the cache
MAPS = 128  # maps at a time, so that their intermediate results stay in the cache
CONTRACT = {"contract"}  # fused multiply-add: one instruction, rounded once instead of twice
ONE = np.uint64(1)
LOW = np.uint64(63)


# Areas


@njit(cache=True, nogil=True)
def shrink(image, out):
    """Fill ``out[i, j, c]`` with the mean of channel c over its share of the image's area.

    A pixel that lies in two shares counts in each in proportion.  With the image ``(h, w)`` and out
    ``(m, n)``, lengths are measured in m-ths and n-ths of a pixel: a pixel is m by n and a share h
    by w, all whole numbers.
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

    Positions are those of a ``side_y`` × ``side_x`` window inside the image; ``row_starts[i]`` is
    where row i of the tiles begins, and its last entry is where the last row ends (the same for
    columns).  The last bin also counts larger deviations.
    """
    n, last = side_y * side_x, counts.shape[2] - 1
    width = grey.shape[1]
    sums, squares = np.zeros((2, width), np.int64)
    for y in range(side_y):
        _slide(grey[y], 1, sums, squares)
    at = 0  # the row of positions that the sums belong to
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


# Cells of a colour space


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
    """The greatest of three bytes, and the greatest minus the least."""
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

    The cell of a pixel is one bit of its mask; masks of neighbours are joined in steps of 1, 2, 4,
    … pixels.  Along a row of positions we note only where a cell comes into sight and where it
    leaves, which happens far less often than it is seen.
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
    """Fill ``row[x]`` with the bit of the cell at x, or 0 if it is in another word of the mask."""
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
    """Add the number of masks of a row with each bit: where runs end, minus where they begin."""
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


# Filters


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def rectify(maps, kernels, out):
    """Fill ``out[y, x, f, m]`` with the absolute response of map m to filter f at (2y, 2x)."""
    n, n_maps = kernels.shape[0], maps.shape[2]
    rows, columns = out.shape[0], out.shape[1]
    across = np.empty((maps.shape[0], columns, n * n_maps), np.float32)
    _filter_across(maps, kernels, 0, n_maps, across)
    responses = out.reshape(rows, columns, n, n * n_maps)
    responses[:] = 0
    for y in range(rows):
        for x in range(columns):
            for a in range(n):
                _add_rectified(across, y, x, kernels[a], responses[y, x, a])


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def sum_rectified(maps, kernels, out):
    """Fill ``out[f, m]`` with the sum over y and x of the output of ``rectify``."""
    height, width, n_maps = maps.shape
    n = kernels.shape[0]
    rows, columns = (height + 1) // 2, (width + 1) // 2
    for start in range(0, n_maps, MAPS):
        size = min(MAPS, n_maps - start)
        across = np.empty((height, columns, n * size), np.float32)
        _filter_across(maps, kernels, start, size, across)
        sums = np.zeros((n, n * size), np.float32)
        for x in range(columns):
            for y in range(rows):
                for a in range(n):
                    _add_rectified(across, y, x, kernels[a], sums[a])
        out[:, start : start + size] = sums.reshape(n * n, size)


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def _filter_across(maps, kernels, start, size, across):
    """Fill ``across[y, x, b * size + m]`` with kernel b along x at (y, 2x) of map start + m."""
    last, stop = maps.shape[1] - 1, start + size
    for y in range(maps.shape[0]):
        for x in range(across.shape[1]):
            s = maps[y, max(2 * x - 2, 0), start:stop]
            t = maps[y, max(2 * x - 1, 0), start:stop]
            u = maps[y, 2 * x, start:stop]
            v = maps[y, min(2 * x + 1, last), start:stop]
            w = maps[y, min(2 * x + 2, last), start:stop]
            for b in range(kernels.shape[0]):
                k, out = kernels[b], across[y, x, b * size : (b + 1) * size]
                k0, k1, k2, k3, k4 = k[0], k[1], k[2], k[3], k[4]
                for m in range(size):
                    out[m] = k0 * s[m] + k1 * t[m] + k2 * u[m] + k3 * v[m] + k4 * w[m]


@njit(cache=True, nogil=True, fastmath=CONTRACT)
def _add_rectified(across, y, x, k, out):
    """Add to ``out`` the absolute responses to a kernel along y, at (2y, x)."""
    last = across.shape[0] - 1
    s, t = across[max(2 * y - 2, 0), x], across[max(2 * y - 1, 0), x]
    u, v = across[2 * y, x], across[min(2 * y + 1, last), x]
    w = across[min(2 * y + 2, last), x]
    k0, k1, k2, k3, k4 = k[0], k[1], k[2], k[3], k[4]
    for m in range(out.shape[0]):
        out[m] += abs(k0 * s[m] + k1 * t[m] + k2 * u[m] + k3 * v[m] + k4 * w[m])
