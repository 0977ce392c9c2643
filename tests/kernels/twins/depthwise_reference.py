"""NumPy twin of ``bittern.kernels.depthwise``."""

import numpy as np


def depthwise_weight_gradient(x, g, stride, padding, first, out):
    """Pad the input with zeros, and sum slopes times the input under each place of the kernel."""
    side, depth = out.shape[0], out.shape[2]
    rows, columns = g.shape[1:3]
    edges = (padding, padding + side + stride)
    padded = np.pad(x, ((0, 0), edges, edges, (0, 0)))[..., first : first + depth]
    slopes = g[..., first : first + depth]
    for a in range(side):
        for b in range(side):
            seen = padded[:, a : a + rows * stride : stride, b : b + columns * stride : stride]
            out[a, b] = (slopes * seen).sum(axis=(0, 1, 2))
