"""The likelihood of all triplets of a batch, and its gradient, in one pass.

``bittern.hashing.objectives`` guarantees, and nothing here checks: arrays are square, of one size,
and contiguous.  The NumPy twin is ``tests/kernels/twins/triplet_reference.py``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LARGEST = 700.0  # exponent of a finite number


@njit(cache=True, nogil=True)
def triplet_likelihood(theta, levels, margin, slopes):
    """Sum and number of the triplets (q, p, n); fills ``slopes`` with the gradient of the sum.

    A triplet counts if ``levels[q, p] > levels[q, n] >= 0``, and adds ``log(1 + exp(x))`` for
    ``x = margin - theta[q, p] + theta[q, n]``.
    """
    total, count = 0.0, 0
    for q in range(len(theta)):
        order = np.argsort(levels[q])
        level, value = levels[q][order], theta[q][order].astype(np.float64)
        first = np.searchsorted(level, 0)
        level, value = level[first:], value[first:]
        if len(level) == 0 or level[-1] == level[0]:
            continue
        value -= (value.max() + value.min()) / 2  # only differences matter
        slope = np.zeros(len(value))
        farther = np.searchsorted(level, level)  # items below the level of each
        exponent = value.max() - value.min() + margin + 1  # of the largest factor
        if exponent < LARGEST:
            total += _by_products(value, farther, margin, int(LARGEST / exponent), slope)
        else:
            total += _one_by_one(value, farther, margin, slope)
        count += farther.sum()
        for i in range(len(slope)):
            slopes[q, order[first + i]] = slope[i]
    return total, count


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _by_products(value, farther, margin, at_once, slope):
    """One exponential for each item, and one logarithm for a product of ``at_once`` triplets."""
    raised = np.exp(value)
    products = np.empty(len(value))
    total = 0.0
    for p in range(len(value)):
        n_farther = farther[p]
        if n_farther == 0:
            continue
        factor = math.exp(margin - value[p])
        pulled = 0.0
        for n in range(n_farther):
            z = factor * raised[n]
            weight = z / (1.0 + z)
            slope[n] += weight
            pulled += weight
        slope[p] -= pulled
        width = -(-n_farther // at_once)
        products[:width] = 1.0
        for start in range(0, n_farther, width):
            for n in range(min(width, n_farther - start)):
                products[n] *= 1.0 + factor * raised[start + n]
        for n in range(width):
            total += math.log(products[n])
    return total


@njit(cache=True, nogil=True)
def _one_by_one(value, farther, margin, slope):
    """The same where exponentials would overflow."""
    total = 0.0
    for p in range(len(value)):
        for n in range(farther[p]):
            x = margin - value[p] + value[n]
            weight = 1.0 / (1.0 + math.exp(-abs(x)))
            total += max(x, 0.0) + math.log1p(math.exp(-abs(x)))
            weight = weight if x > 0 else 1.0 - weight
            slope[n] += weight
            slope[p] -= weight
    return total
