"""Average precision of weighted sums of scores, for many weights.

``scores[s, q, i]`` is what source s gives item i for query q, larger is better; ``judged[q, i]`` is
1 if i is relevant to q, 0 if not, -1 if it is not there to be retrieved.  A fused score is the sum
of weight times score over the sources in their order, in double precision, so that ties are what
they are where a caller adds up the same numbers.  Ties count in expectation, by the formulas of
``kernels.ties``.  A query with nothing relevant gets NaN.

Guaranteed by the callers in ``bittern.fusion``: scores are finite doubles, C-contiguous; shapes
agree; there is at least one source and one point.  Twins in ``kernels.fusion_reference``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.kernels.ties import precision_sum

ZERO = np.uint32(0)


@njit(cache=True, nogil=True)
def scan_grid(scores, judged, grid, changed, sums, best, best_ap):
    """Try every point of a grid for each query.

    ``grid[p]`` is a weight vector that differs from ``grid[p - 1]`` from component ``changed[p]``
    on.  Adds to ``sums[p]`` the average precisions of all queries that have one; fills ``best[q]``
    with the point of the largest (of equal ones that nearest to equal weights, then the first), -1
    if there is none, and ``best_ap[q]`` with its value.
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
    """Move ``step`` of weight between the two sources where it helps a query most, while it helps.

    ``weights[q]`` and its average precision ``values[q]`` are changed in place.  A source gives at
    most what it has.
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
    """Room for marks, how many relevant items have each, counts, and rounded scores."""
    counts = np.empty((n, 2), np.uint32)
    return np.empty(n), np.empty(n, np.int64), counts, np.empty(n, np.float32)


@njit(cache=True, nogil=True)
def _load(scores, judged, q, items):
    """Copy what query q may retrieve, relevant items first; give how many, and how many those."""
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
    """Of ``n`` items, the first ``r`` of them relevant.

    Only the places of the relevant items matter: for each of their distinct scores, the *marks*,
    the other items above it and on it are counted.
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
    """Fill in the distinct scores of the relevant items and how many have each; give how many."""
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
    """Fill ``counts[d]``: how many values are above mark d, and how many at least seem to reach it.

    In single precision, where twice as many fit an instruction.  Rounding keeps the order but for
    what it makes equal: where the two counts agree, they are exact.
    """
    for i in range(values.shape[0]):
        rounded[i] = np.float32(values[i])
    for d in range(marks.shape[0]):
        mark = np.float32(marks[d])
        above, reached = ZERO, ZERO
        for i in range(rounded.shape[0]):
            above = np.uint32(above + np.uint32(rounded[i] > mark))  # (numba would widen it)
            reached = np.uint32(reached + np.uint32(rounded[i] >= mark))
        counts[d, 0], counts[d, 1] = above, reached


@njit(cache=True, nogil=True)
def _count_exactly(values, mark):
    """How many values are above the mark, and how many equal it."""
    above, equal = np.int64(0), np.int64(0)
    for i in range(values.shape[0]):
        above += values[i] > mark
        equal += values[i] == mark
    return above, equal
