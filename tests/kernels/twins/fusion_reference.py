"""Twins of ``bittern.kernels.fusion``, by sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twins.tie_reference import precision_sum

Array = NDArray[Any]


def city_block(items: Array, examples: Array, out: Array) -> None:
    """Twin of ``fusion.city_block``."""
    out[:] = np.abs(items[:, None].astype(np.float64) - examples).sum(axis=2)


def nearest_examples(
    closeness: Array,
    positives: Array,
    offsets: Array,
    negatives: Array,
    k: int,
    epsilon: float,
    out: Array,
) -> None:
    """Twin of ``fusion.nearest_examples``."""
    for q, unwanted in enumerate(negatives):
        wanted = positives[offsets[q] : offsets[q + 1]]
        both = closeness[:, np.concatenate([wanted, unwanted])]
        order = np.argsort(-both, axis=1, kind="stable")[:, :k]
        counted = np.zeros_like(both)
        np.put_along_axis(counted, order, np.take_along_axis(both, order, axis=1), axis=1)
        above, below = counted[:, : len(wanted)], counted[:, len(wanted) :]
        out[q] = above.sum(axis=1) / (below.sum(axis=1) + epsilon)


def scan_grid(
    scores: Array,
    judged: Array,
    grid: Array,
    changed: Array,
    sums: Array,
    best: Array,
    best_ap: Array,
) -> None:
    """Twin of ``fusion.scan_grid``."""
    points = np.broadcast_to(grid, (scores.shape[1], *grid.shape))
    values = np.empty(points.shape[:2])
    score_points(scores, judged, points, values)
    sums += np.nansum(values, axis=0)
    squares = (grid**2).sum(axis=1)
    for q, row in enumerate(values):
        defined = not np.isnan(row).any()
        best[q] = min(range(len(grid)), key=lambda p: (-row[p], squares[p])) if defined else -1
        best_ap[q] = row[best[q]]


def score_points(scores: Array, judged: Array, points: Array, out: Array) -> None:
    """Twin of ``fusion.score_points``."""
    for q in range(scores.shape[1]):
        there = judged[q] >= 0
        relevant = judged[q][there] == 1
        for p, weights in enumerate(points[q]):
            fused = sum(w * s[q][there] for w, s in zip(weights, scores, strict=True))
            out[q, p] = average_precision(np.asarray(fused), relevant)


def climb(scores: Array, judged: Array, step: float, weights: Array, values: Array) -> None:
    """Twin of ``fusion.climb``."""
    n = len(scores)
    for q in range(scores.shape[1]):
        while True:
            moves = [(a, b) for a in range(n) for b in range(n) if a != b and weights[q, a] > 0]
            trials = np.tile(weights[q], (len(moves), 1))
            for trial, (a, b) in zip(trials, moves, strict=True):
                given = min(step, trial[a])
                trial[a] -= given
                trial[b] += given
            found = np.empty((1, len(moves)))
            score_points(scores[:, q : q + 1], judged[q : q + 1], trials[None], found)
            if not found.max(initial=-1.0) > values[q]:
                break
            weights[q], values[q] = trials[found[0].argmax()], found.max()


def average_precision(fused: Array, relevant: Array) -> float:
    """Of one ranking, in expectation over ties; NaN if nothing is relevant."""
    if not relevant.any():
        return math.nan
    value, before, found = 0.0, 0, 0
    for score in np.unique(fused)[::-1]:
        tie = fused == score
        n, r = int(tie.sum()), int(relevant[tie].sum())
        value += precision_sum(before, found, n, r, n)
        before, found = before + n, found + r
    return value / int(relevant.sum())
