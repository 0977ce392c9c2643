"""Kernels of fusion: average precision of weighted sums of scores, and similarity to examples.

**Weighted sums.**  ``scores[s, q, i]`` is the score of item i for query q from source s, larger is
better.  ``judged[q, i]`` is 1 if i is relevant to q, 0 if not, and -1 if i cannot be retrieved.  A
fused score is the sum of weight times score over the sources, in their order and in double
precision, so that two scores tie exactly if they tie when a caller adds up the same numbers.  Ties
count in expectation, by the formulas of ``kernels.ties``.  A query with nothing relevant gets NaN.

**Examples.**  City-block distances, and the similarity of items to the nearest of some examples.

The callers in ``bittern.fusion`` guarantee: scores are finite doubles; arrays are C-contiguous and
their shapes agree; positions lie inside the arrays they point into; there is at least one source
and one point, and 1 <= k.  Each kernel has a NumPy twin in
``tests/kernels/twins/fusion_reference.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.ties import precision_sum

ZERO = np.uint32(0)
STRIP = 2048  # dimensions at a time, so that those of many rows stay in the cache
ROWS = 16  # rows compared with one strip of the other side while it is in the cache


# Weighted sums of scores


@njit(cache=True, nogil=True)
def scan_grid(scores, judged, grid, changed, sums, best, best_ap):
    """Try every point of a grid for each query.

    ``grid[p]`` is a weight vector that differs from ``grid[p - 1]`` from component ``changed[p]``
    on.  Adds to ``sums[p]`` the average precisions of all queries that have one; fills ``best[q]``
    with the best point, or -1 if there is none, and ``best_ap[q]`` with its value.  Of equally good
    points the one nearest to equal weights wins, then the first.
    """
    n_sources = scores.shape[0]
    squares = _squares(grid)
    items = np.empty((n_sources, scores.shape[2]))
    partial = np.empty((n_sources, scores.shape[2]))
    scratch = _scratch(scores.shape[2])
    for q in range(scores.shape[1]):
        n, r = _load(scores, judged, q, items)
        best[q], best_ap[q] = -1, np.nan
        if r == 0:
            continue
        for p in range(grid.shape[0]):
            for s in range(changed[p], n_sources):
                _add(partial, s, grid[p, s], items, n)
            ap = _average_precision(partial[n_sources - 1], n, r, scratch)
            sums[p] += ap
            if best[q] < 0 or _beats(ap, squares[p], best_ap[q], squares[best[q]]):
                best[q], best_ap[q] = p, ap


@njit(cache=True, nogil=True)
def score_points(scores, judged, points, out):
    """Fill ``out[q, p]`` with the average precision of query q with weights ``points[q, p]``."""
    n_sources = scores.shape[0]
    items = np.empty((n_sources, scores.shape[2]))
    partial = np.empty((n_sources, scores.shape[2]))
    scratch = _scratch(scores.shape[2])
    for q in range(scores.shape[1]):
        n, r = _load(scores, judged, q, items)
        for p in range(points.shape[1]):
            out[q, p] = np.nan
            if r > 0:
                for s in range(n_sources):
                    _add(partial, s, points[q, p, s], items, n)
                out[q, p] = _average_precision(partial[n_sources - 1], n, r, scratch)


@njit(cache=True, nogil=True)
def climb(scores, judged, step, weights, values):
    """Hill-climb: move ``step`` of weight between the two sources that help most, while it helps.

    ``weights[q]`` and its average precision ``values[q]`` are changed in place.  No weight becomes
    negative.
    """
    n_sources = scores.shape[0]
    items = np.empty((n_sources, scores.shape[2]))
    partial = np.empty((n_sources, scores.shape[2]))
    scratch = _scratch(scores.shape[2])
    trial, winner = np.empty(n_sources), np.empty(n_sources)
    for q in range(scores.shape[1]):
        n, r = _load(scores, judged, q, items)
        better = r > 0
        while better:
            better = False
            for pair in range(n_sources * n_sources):
                a, b = pair // n_sources, pair % n_sources
                given = min(step, weights[q, a])
                if a == b or given <= 0:
                    continue
                trial[:] = weights[q]
                trial[a] -= given
                trial[b] += given
                for s in range(n_sources):
                    _add(partial, s, trial[s], items, n)
                ap = _average_precision(partial[n_sources - 1], n, r, scratch)
                if ap > values[q]:
                    values[q], better = ap, True
                    winner[:] = trial
            if better:
                weights[q] = winner


@njit(cache=True, nogil=True)
def _squares(grid):
    squares = np.zeros(grid.shape[0])
    for p in range(grid.shape[0]):
        for s in range(grid.shape[1]):
            squares[p] += grid[p, s] * grid[p, s]
    return squares


@njit(cache=True, nogil=True)
def _beats(ap, square, best_ap, best_square):
    return ap > best_ap or (ap == best_ap and square < best_square)


@njit(cache=True, nogil=True)
def _scratch(n):
    """Working memory: marks, the number of relevant items at each, counts, and rounded scores."""
    counts = np.empty((n, 2), np.uint32)
    return np.empty(n), np.empty(n, np.int64), counts, np.empty(n, np.float32)


@njit(cache=True, nogil=True)
def _load(scores, judged, q, items):
    """Copy the items that query q may retrieve, relevant ones first; return both numbers."""
    n = 0
    for level in (1, 0):
        for i in range(judged.shape[1]):
            if judged[q, i] == level:
                for s in range(scores.shape[0]):
                    items[s, n] = scores[s, q, i]
                n += 1
        if level == 1:
            r = n
    return n, r


@njit(cache=True, nogil=True)
def _add(partial, s, weight, items, n):
    """Fill row s of the partial sums from the row before it."""
    row, source = partial[s], items[s]
    if s == 0:
        for i in range(n):
            row[i] = weight * source[i]
    else:
        before = partial[s - 1]
        for i in range(n):
            row[i] = before[i] + weight * source[i]


@njit(cache=True, nogil=True)
def _average_precision(fused, n, r, scratch):
    """Average precision of ``n`` items, the first ``r`` of them relevant.

    Only the scores of the relevant items are sorted.  Only their ranks matter, so for each of their
    distinct scores, the *marks*, the other items above it and at it are counted.
    """
    marks, hits, counts, rounded = scratch
    distinct = _mark(fused, r, marks, hits)
    others = fused[r:n]
    _count(others, marks[:distinct], rounded[: n - r], counts)
    found, value = 0, 0.0
    for d in range(distinct - 1, -1, -1):
        above, tied = np.int64(counts[d, 0]), hits[d]
        if counts[d, 1] > counts[d, 0]:
            above, equal = _count_exactly(others, marks[d])
            tied += equal
        value += precision_sum(above + found, found, tied, hits[d], tied)
        found += hits[d]
    return value / r


@njit(cache=True, nogil=True)
def _mark(fused, r, marks, hits):
    """Fill the distinct scores of relevant items and how many have each; return their number."""
    marks[:r] = fused[:r]
    marks[:r].sort()
    last = 0
    hits[0] = 1
    for j in range(1, r):
        if marks[j] != marks[last]:
            last += 1
            marks[last] = marks[j]
            hits[last] = 0
        hits[last] += 1
    return last + 1


@njit(cache=True, nogil=True)
def _count(values, marks, rounded, counts):
    """Fill ``counts[d]``: the number of values above mark d, and of values that seem to reach it.

    Computed in single precision, because one instruction handles twice as many values.  Rounding
    can make different values equal but never reverses their order: if the two counts agree, they
    are exact.
    """
    for i in range(values.shape[0]):
        rounded[i] = np.float32(values[i])
    for d in range(marks.shape[0]):
        mark = np.float32(marks[d])
        above, reached = ZERO, ZERO
        for i in range(rounded.shape[0]):
            above = np.uint32(above + np.uint32(rounded[i] > mark))  # (Numba would widen it)
            reached = np.uint32(reached + np.uint32(rounded[i] >= mark))
        counts[d, 0], counts[d, 1] = above, reached


@njit(cache=True, nogil=True)
def _count_exactly(values, mark):
    """Number of values above the mark, and of values equal to it."""
    above, equal = np.int64(0), np.int64(0)
    for i in range(values.shape[0]):
        above += values[i] > mark
        equal += values[i] == mark
    return above, equal


# Similarity to examples


@njit(cache=True, nogil=True)
def city_block(items, examples, out):
    """Fill ``out[i, e]`` with the sum of absolute differences of item i and example e."""
    n, dim = items.shape
    m = examples.shape[0]
    out[:] = 0
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        for start in range(0, dim, STRIP):
            stop = min(start + STRIP, dim)
            for e in range(m):
                for i in range(first, last):
                    out[i, e] += _city_block(items[i, start:stop], examples[e, start:stop])


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _city_block(a, b):
    total = a.dtype.type(0)
    for j in range(a.shape[0]):
        total += abs(a[j] - b[j])
    return total


@njit(cache=True, nogil=True)
def nearest_examples(closeness, positives, offsets, negatives, k, epsilon, out):
    """Fill ``out[q, i]``: closeness of item i to q's positives, divided by that to its negatives.

    ``closeness[i, e]`` is 1 / (distance of item i and example e + epsilon).  The positives of query
    q are ``positives[offsets[q]:offsets[q + 1]]``, its negatives ``negatives[q]``.  Only the k
    closest of both together count; among equally close ones, positives come before negatives, each
    in the given order.
    """
    widest = 0
    for q in range(offsets.shape[0] - 1):
        widest = max(widest, offsets[q + 1] - offsets[q])
    found = np.empty(widest + negatives.shape[1], np.float64)
    scratch = np.empty_like(found)
    for i in range(closeness.shape[0]):  # one item's row stays in the cache for all queries
        row = closeness[i]
        for q in range(offsets.shape[0] - 1):
            p = offsets[q + 1] - offsets[q]
            m = p + negatives.shape[1]
            for j in range(p):
                found[j] = row[positives[offsets[q] + j]]
            for j in range(negatives.shape[1]):
                found[p + j] = row[negatives[q, j]]
            least, spare = -1.0, m
            if k < m:
                least, spare = _closest(found, scratch, m, k)
            above, below = 0.0, 0.0
            for j in range(m):
                counts = found[j] > least
                if found[j] == least and spare > 0:
                    counts = True
                    spare -= 1
                if counts and j < p:
                    above += found[j]
                elif counts:
                    below += found[j]
            out[q, i] = above / (below + epsilon)


@njit(cache=True, nogil=True)
def _closest(found, scratch, m, k):
    """The k-th largest of ``found[:m]``, and how many equal to it are among the k largest."""
    for j in range(m):
        scratch[j] = found[j]
    low, high = 0, m - 1
    while low < high:  # quickselect, by Hoare's partition around the middle
        pivot = scratch[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while scratch[i] > pivot:
                i += 1
            while scratch[j] < pivot:
                j -= 1
            if i <= j:
                scratch[i], scratch[j] = scratch[j], scratch[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    least, larger = scratch[k - 1], 0
    for j in range(m):
        larger += found[j] > least
    return least, k - larger
