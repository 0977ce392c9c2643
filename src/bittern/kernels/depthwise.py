"""The gradient of a depthwise convolution's weights, which torch computes slowly on a CPU.

``bittern.networks.convolution`` guarantees, and nothing here checks: arrays are of one floating
type, rows of channels are contiguous, and the output has the right shape.  The NumPy twin is
``tests/kernels/twins/depthwise_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CHANNELS = 64  # at a time, so that the sums of all places of a kernel stay in the first cache


@njit(cache=True, nogil=True, fastmath={"contract"})
def depthwise_weight_gradient(x, g, stride, padding, first, out):
    """Fill ``out[a, b, c]`` with the sum over all outputs of their slope times the input they saw.

    ``x`` is the input ``(n, height, width, channels)``, ``g`` the slopes of the output
    ``(n, rows, columns, channels)``.  Place (a, b) of a kernel saw, for output (i, j), the input at
    ``(i * stride + a - padding, j * stride + b - padding)``, or 0 outside the image.  Only channels
    ``first`` up to ``first + out.shape[2]`` are computed.
    """
    n, height, width, _ = x.shape
    rows, columns = g.shape[1], g.shape[2]
    side, depth = out.shape[0], out.shape[2]
    sums = np.empty((side * side, CHANNELS), x.dtype)
    for start in range(0, depth, CHANNELS):
        wide = min(CHANNELS, depth - start)
        low, high = first + start, first + start + wide
        sums[:] = 0
        for m in range(n):
            for i in range(rows):
                top = i * stride - padding
                for j in range(columns):
                    left = j * stride - padding
                    slope = g[m, i, j, low:high]
                    for a in range(max(0, -top), min(side, height - top)):
                        for b in range(max(0, -left), min(side, width - left)):
                            seen = x[m, top + a, left + b, low:high]
                            total = sums[a * side + b]
                            for c in range(wide):
                                total[c] += slope[c] * seen[c]
        for place in range(side * side):
            for c in range(wide):
                out[place // side, place % side, start + c] = sums[place, c]
