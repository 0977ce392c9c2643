"""Kernels of boosting: choose a few of very many features that tell positive examples from others.

A *weak classifier* calls an item positive if its value of one feature is on the positive examples'
side of a threshold, half way between the mean of the positive and that of the negative examples.
Each round chooses the classifier with the least weighted error, and then gives the examples that it
gets wrong half of all weight.

Weights are whole numbers that sum to about ``TOTAL``, so that sums are exact in any order and equal
errors are equal.  The caller in ``bittern.fusion.boosting`` guarantees: ``rows`` is C-contiguous
and finite; positions lie inside it; there is at least one example of each kind, and at least one
round.  ``tests/kernels/twins/boosting_reference.py`` has the NumPy twin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TOTAL = 1 << 30
STRIP = 512  # features at a time, so that those of all examples stay in the cache
GROUP = 8  # examples whose mistakes share a byte


@njit(cache=True, nogil=True)
def boost(rows, positives, negatives, features, thresholds, signs, errors):
    """Fill one weak classifier for each round, and return how many were found.

    Round t chooses feature ``features[t]``; an item is positive if ``signs[t]`` times its value
    exceeds ``signs[t] * thresholds[t]``.  ``errors[t]`` is the share of weight of its mistakes.
    No feature is chosen twice, and there are no more rounds if none has an error below one half.
    Of classifiers with equal errors, the one whose means are farthest apart in standard deviations
    of the negative examples wins, then the first.
    """
    examples = np.concatenate((positives, negatives))
    n, dim = len(examples), rows.shape[1]
    middles, sides = np.empty(dim, np.float32), np.empty(dim, np.float32)
    gaps = np.empty(dim)
    wrong = np.zeros(((n + GROUP - 1) // GROUP, dim), np.uint8)
    for start in range(0, dim, STRIP):
        stop = min(start + STRIP, dim)
        _place(rows, positives, negatives, start, stop, middles, sides, gaps)
        _judge(rows, examples, len(positives), start, stop, middles, sides, wrong)
    weights = np.empty(n, np.int64)
    weights[: len(positives)] = TOTAL // (2 * len(positives))
    weights[len(positives) :] = TOTAL // (2 * len(negatives))
    mistakes = np.empty(dim, np.int32)
    for t in range(len(features)):
        _add_mistakes(wrong, weights, mistakes)
        best = _least(mistakes, gaps)
        total = weights.sum()
        if best < 0 or 2 * np.int64(mistakes[best]) >= total:
            return t
        features[t], thresholds[t], signs[t] = best, middles[best], sides[best]
        errors[t] = mistakes[best] / total
        gaps[best] = -1.0  # never again
        _reweight(weights, wrong[:, best], errors[t])
    return len(features)


@njit(cache=True, nogil=True)
def _place(rows, positives, negatives, start, stop, middles, sides, gaps):
    """Fill the threshold of each feature, its positive side, and how far apart the means are."""
    width = stop - start
    high, low, square = np.zeros(width), np.zeros(width), np.zeros(width)
    for e in positives:
        for j in range(width):
            high[j] += rows[e, start + j]
    for e in negatives:
        for j in range(width):
            low[j] += rows[e, start + j]
    for j in range(width):
        high[j] /= len(positives)
        low[j] /= len(negatives)
    for e in negatives:
        for j in range(width):
            square[j] += (rows[e, start + j] - low[j]) ** 2
    for j in range(width):
        gap = (high[j] - low[j]) ** 2
        middles[start + j] = (high[j] + low[j]) / 2
        sides[start + j] = 1 if high[j] >= low[j] else -1
        if square[j] > 0:
            gap = gap / (square[j] / len(negatives))
        elif gap > 0:
            gap = np.inf
        gaps[start + j] = gap


@njit(cache=True, nogil=True)
def _judge(rows, examples, n_positives, start, stop, middles, sides, wrong):
    """Set a bit for each example that a feature's classifier gets wrong."""
    for i in range(len(examples)):
        row, bits = rows[examples[i], start:stop], wrong[i // GROUP, start:stop]
        shift, is_positive = np.uint8(i % GROUP), np.uint8(i < n_positives)
        side, middle = sides[start:stop], middles[start:stop]
        for j in range(stop - start):
            said = np.uint8(side[j] * row[j] > side[j] * middle[j])
            bits[j] = np.uint8(bits[j] | np.uint8((said ^ is_positive) << shift))


@njit(cache=True, nogil=True)
def _add_mistakes(wrong, weights, mistakes):
    """Fill the summed weights of each feature's mistakes, by a table for each byte."""
    table = np.empty(1 << GROUP, np.int32)
    mistakes[:] = 0
    for g in range(wrong.shape[0]):
        table[0] = 0
        for b in range(GROUP):
            i = g * GROUP + b
            weight = np.int32(weights[i]) if i < len(weights) else np.int32(0)
            for low in range(1 << b):
                table[(1 << b) + low] = table[low] + weight
        bits = wrong[g]
        for j in range(len(mistakes)):
            mistakes[j] += table[bits[j]]


@njit(cache=True, nogil=True)
def _least(mistakes, gaps):
    """The best feature that is not used up, whose gap is then not negative; or -1."""
    best = -1
    for j in range(len(mistakes)):
        if gaps[j] < 0:
            continue
        if (
            best < 0
            or mistakes[j] < mistakes[best]
            or (mistakes[j] == mistakes[best] and gaps[j] > gaps[best])
        ):
            best = j
    return best


@njit(cache=True, nogil=True)
def _reweight(weights, wrong, error):
    """Give the mistakes half of the weight, unless there are none."""
    if error == 0:
        return
    for i in range(len(weights)):
        is_wrong = wrong[i // GROUP] >> (i % GROUP) & 1
        factor = 0.5 / error if is_wrong else 0.5 / (1 - error)
        weights[i] = np.int64(np.rint(weights[i] * factor))
