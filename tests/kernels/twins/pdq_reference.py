"""NumPy twins of the kernels of PDQ."""

import numpy as np


def shrink_by_boxes(luma, out):
    """Fill ``out`` (64 × 64) with pixels of the filtered image; ``luma`` is overwritten."""
    if luma.shape != (64, 64):
        for _ in range(2):
            luma[:] = _averages(luma.T, -(-luma.shape[1] // 128)).T
            luma[:] = _averages(luma, -(-luma.shape[0] // 128))
    rows, columns = (((np.arange(64) + 0.5) * length / 64).astype(int) for length in luma.shape)
    out[:] = luma[rows][:, columns]


def _averages(image, window):
    """Means over the window along y: sums change by what enters, then by what leaves."""
    n, ahead = len(image), window // 2
    totals = np.zeros(image.shape[1], np.float32)
    out = np.empty_like(image)
    for last in range(n + ahead):
        if last < n:
            totals = totals + image[last]
        if last >= window:
            totals = totals - image[last - window]
        if last >= ahead:
            first = max(last - window + 1, 0)
            out[last - ahead] = totals / np.float32(min(last, n - 1) - first + 1)
    return out


def sum_gradients(small):
    """Sum of the differences of neighbours, each in whole hundredths of the range, cut off."""
    differences = [np.diff(small, axis=axis).reshape(-1) for axis in (0, 1)]
    scaled = np.concatenate(differences) * np.float32(100) / np.float32(255)
    return int(np.abs(scaled.astype(np.int64)).sum())


def find_frequencies(small, cosines, out):
    """Fill ``out`` with ``cosines @ small @ cosines.T``, each sum in order."""
    half = _product(cosines, small)
    out[:] = _product(half, cosines.T)


def _product(a, b):
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k]
    return total
