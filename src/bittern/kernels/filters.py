"""Banks of separable five-tap filters over many maps at once.

Maps are ``(h, w, n_maps)``, so that the innermost loops run over maps and are vector code.  From
kernels ``(n, 5)`` come ``n * n`` filters, the one along y slowest.  Filters are applied at every
other pixel of both directions; beyond the edge stands the pixel at the edge.

Not checked here, guaranteed by ``bittern.features``: arrays are C-contiguous float32, outputs are
allocated and of the right shape.  Twins in ``kernels.image_reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 128  # maps whose intermediate results stay near
CONTRACT = {"contract"}  # a product and a sum in one instruction: rounded once instead of twice


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
    """Fill ``out[f, m]`` with the sum over y and x of what ``rectify`` would give."""
    height, width, n_maps = maps.shape
    n = kernels.shape[0]
    rows, columns = (height + 1) // 2, (width + 1) // 2
    for start in range(0, n_maps, BLOCK):
        size = min(BLOCK, n_maps - start)
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
