"""NumPy twin of ``bittern.kernels.triplets``."""

import numpy as np


def triplet_likelihood(theta, levels, margin, slopes):
    """Sum over a cube of all triplets."""
    x = margin - theta[:, :, None] + theta[:, None, :]
    counted = (levels[:, :, None] > levels[:, None, :]) & (levels[:, None, :] >= 0)
    weights = np.where(counted, 1 / (1 + np.exp(-np.clip(x, -700, 700))), 0)
    slopes[:] = weights.sum(axis=1) - weights.sum(axis=2)
    return np.logaddexp(0, x)[counted].sum(), counted.sum()
