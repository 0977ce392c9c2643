"""Expectations over the orders of tied items, in closed form for each tie.

A tie of ``n`` items, ``r`` of them relevant, comes after ``before`` items of which ``found`` were
relevant.  The formulas are derived in ``docs/maths``.  Rows of ``total`` and ``relevant`` are the
ties of one query from nearest to farthest; ``cutoffs[q]`` is the number of ranks that count.

The callers in ``bittern.metrics`` guarantee: arrays have the same shape and are C-contiguous,
counts are not negative, cut-offs are at least 1.  Each kernel has a NumPy twin in
``tests/kernels/twins/tie_reference.py``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-18  # probability below which we stop summing


@njit(cache=True, nogil=True)
def harmonic_difference(low, high):
    """H_high - H_low, accurate in relative terms for all 0 <= low <= high."""
    total = 0.0
    if high - low > 16:
        while low < 16:
            low += 1
            total += 1.0 / low
        a, b = low + 0.5, high + 0.5
        return total + math.log1p((high - low) / a) + _correction(b) - _correction(a)
    for t in range(low + 1, high + 1):
        total += 1.0 / t
    return total


@njit(cache=True, nogil=True)
def _correction(x):
    """H_{x - 1/2} minus ln x and Euler's constant, accurate to 1e-14 for x >= 16.5."""
    s = 1.0 / (x * x)
    return s * (1 / 24 - s * (7 / 960 - s * (31 / 8064 - s * (127 / 30720))))


@njit(cache=True, nogil=True)
def precision_sum(before, found, n, r, ranks):
    """Expected sum of precisions at the relevant items on the first ``ranks`` places of a tie."""
    h = harmonic_difference(before, before + ranks)
    slope = (r - 1) / (n - 1) if n > 1 else 0.0
    return r / n * ((found + 1) * h + slope * (ranks - (before + 1) * h))


@njit(cache=True, nogil=True)
def sum_precisions(total, relevant, cutoffs, out):
    """Fill ``out[q]`` with the expected sum of precisions at relevant items up to the cut-off."""
    for q in range(total.shape[0]):
        before, found, value = np.int64(0), np.int64(0), 0.0
        for d in range(total.shape[1]):
            n, r = total[q, d], relevant[q, d]
            if r > 0:
                value += precision_sum(before, found, n, r, min(n, cutoffs[q] - before))
            before += n
            found += r
            if before >= cutoffs[q]:
                break
        out[q] = value


@njit(cache=True, nogil=True)
def count_found(total, relevant, cutoffs, out):
    """Fill ``out[q]`` with the expected number of relevant items up to the cut-off."""
    for q in range(total.shape[0]):
        before, found = np.int64(0), 0.0
        for d in range(total.shape[1]):
            n, r = total[q, d], relevant[q, d]
            if before + n <= cutoffs[q]:
                found += r
            else:
                found += r * ((cutoffs[q] - before) / n)
                break
            before += n
        out[q] = found


@njit(cache=True, nogil=True)
def hit_probability(total, relevant, cutoffs, out):
    """Fill ``out[q]`` with the probability of a relevant item up to the cut-off."""
    for q in range(total.shape[0]):
        before = np.int64(0)
        out[q] = 0.0
        for d in range(total.shape[1]):
            n, r = total[q, d], relevant[q, d]
            if before >= cutoffs[q]:
                break
            if r > 0:
                out[q] = 1.0 - _miss(n, r, min(n, cutoffs[q] - before))
                break
            before += n


@njit(cache=True, nogil=True)
def _miss(n, r, ranks):
    """Probability that none of r items is on the first ``ranks`` of n places."""
    few, many = min(r, ranks), max(r, ranks)
    if many > n - few:
        return 0.0
    miss = 1.0
    for i in range(few):
        miss *= 1.0 - many / (n - i)
        if miss < NEGLIGIBLE:
            return 0.0
    return miss


@njit(cache=True, nogil=True)
def reciprocal_ranks(total, relevant, cutoffs, out):
    """Fill ``out[q]`` with the expected reciprocal rank of the first relevant item."""
    for q in range(total.shape[0]):
        before = np.int64(0)
        out[q] = 0.0
        for d in range(total.shape[1]):
            n, r = total[q, d], relevant[q, d]
            if before >= cutoffs[q]:
                break
            if r > 0:
                out[q] = _first(before, n, r, min(n - r + 1, cutoffs[q] - before))
                break
            before += n


@njit(cache=True, nogil=True)
def _first(before, n, r, ranks):
    """Sum of P(the first of r is on place t) / (before + t) over t up to ``ranks``."""
    if r == 1:
        return harmonic_difference(before, before + ranks) / n
    p, value = r / n, 0.0
    for t in range(1, ranks + 1):
        value += p / (before + t)
        if p * (n - t) < NEGLIGIBLE * r:
            break
        p *= (n - r - t + 1) / (n - t)
    return value


@njit(cache=True, nogil=True)
def mean_precisions(total, relevant, cutoffs, out):
    """Fill ``out[q]`` with the expected mean of precisions at the relevant items *retrieved*.

    If the cut-off divides a tie, both the sum and the number of its terms are random.  So we sum
    over the number of relevant items of that tie that come before the cut-off, which is
    hypergeometric.  The value is 0 if nothing relevant is retrieved.
    """
    for q in range(total.shape[0]):
        before, found, value, cut = np.int64(0), np.int64(0), 0.0, False
        for d in range(total.shape[1]):
            n, r = total[q, d], relevant[q, d]
            if before + n > cutoffs[q]:
                cut = True
                value = _mean_over_cut(before, found, n, r, cutoffs[q] - before, value)
                break
            if r > 0:
                value += precision_sum(before, found, n, r, n)
            before += n
            found += r
        if not cut:
            value = value / found if found > 0 else 0.0
        out[q] = value


@njit(cache=True, nogil=True)
def _mean_over_cut(before, found, n, r, ranks, whole):
    """Expectation over the number x of relevant items on the first ``ranks`` places of a tie.

    Weights of the hypergeometric distribution are computed outwards from its mode, where they are
    largest, until they are negligible.
    """
    if ranks == 0:
        return whole / found if found > 0 else 0.0
    least, most = max(np.int64(0), ranks - (n - r)), min(ranks, r)
    mode = min(most, max(least, np.int64((ranks + 1.0) * (r + 1.0) / (n + 2.0))))
    weight, mass, value = 1.0, 0.0, 0.0
    for x in range(mode, most + 1):
        mass += weight
        value += weight * _mean_given(before, found, x, ranks, whole)
        weight *= (r - x) / (x + 1) * ((ranks - x) / max(n - r - ranks + x + 1, 1))
        if weight < NEGLIGIBLE:
            break
    weight = 1.0
    for x in range(mode, least, -1):
        weight *= x / (r - x + 1) * ((n - r - ranks + x) / (ranks - x + 1))
        if weight < NEGLIGIBLE:
            break
        mass += weight
        value += weight * _mean_given(before, found, x - 1, ranks, whole)
    return value / mass


@njit(cache=True, nogil=True)
def _mean_given(before, found, hits, ranks, whole):
    if found + hits == 0:
        return 0.0
    part = precision_sum(before, found, ranks, hits, ranks) if hits > 0 else 0.0
    return (whole + part) / (found + hits)


@njit(cache=True, nogil=True)
def extreme_mean_precisions(total, relevant, cutoffs, best, out):
    """Fill ``out[q]`` with the largest (or smallest) value that ``mean_precisions`` averages.

    In whole ties the relevant items come first (last).  In the tie that the cut-off divides, the
    number of relevant items before it is also free: fewer late hits can raise the mean.
    """
    for q in range(total.shape[0]):
        before, found, whole, cut = np.int64(0), np.int64(0), 0.0, False
        for d in range(total.shape[1]):
            n, r = total[q, d], relevant[q, d]
            if before + n > cutoffs[q]:
                cut = True
                out[q] = _extreme_of_cut(before, found, n, r, cutoffs[q] - before, whole, best)
                break
            whole += _run_of_hits(before if best else before + n - r, found, r)
            before += n
            found += r
        if not cut:
            out[q] = whole / found if found > 0 else 0.0


@njit(cache=True, nogil=True)
def _extreme_of_cut(before, found, n, r, ranks, whole, best):
    least, most = max(np.int64(0), ranks - (n - r)), min(ranks, r)
    extreme = -1.0
    for x in range(least, most + 1):
        value = 0.0
        if found + x > 0:
            part = _run_of_hits(before if best else before + ranks - x, found, x)
            value = (whole + part) / (found + x)
        if extreme < 0 or (value > extreme) == best:
            extreme = value
    return extreme


@njit(cache=True, nogil=True)
def _run_of_hits(before, found, hits):
    """Sum of precisions at ``hits`` relevant items in a row, after ``before`` ranks."""
    return hits + (found - before) * harmonic_difference(before, before + hits)
