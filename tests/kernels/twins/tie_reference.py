"""Twins of ``bittern.kernels.ties``, by sums over positions.

No closed forms: harmonic numbers are added up, and the part of a tie before a cut-off is weighted
by binomial coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tie = tuple[int, int, int, int, int]  # items and relevant ones before it, its own, ranks that count


def harmonic_difference(low: int, high: int) -> float:
    """Twin of ``ties.harmonic_difference``."""
    return math.fsum(1 / t for t in range(low + 1, high + 1))


def precision_sum(before: int, found: int, n: int, r: int, ranks: int) -> float:
    """Twin of ``ties.precision_sum``.

    Place t of the tie is relevant with probability r / n, and then the t - 1 places before it hold
    (t - 1)(r - 1) / (n - 1) other relevant items in the mean.
    """
    others = (r - 1) / (n - 1) if n > 1 else 0.0
    places = range(1, ranks + 1)
    return math.fsum(r / n * (found + 1 + (t - 1) * others) / (before + t) for t in places)


def sum_precisions(total: Array, relevant: Array, cutoffs: Array, out: Array) -> None:
    """Twin of ``ties.sum_precisions``."""
    for q in range(len(total)):
        out[q] = math.fsum(precision_sum(*tie) for tie in _ties(total, relevant, cutoffs, q))


def count_found(total: Array, relevant: Array, cutoffs: Array, out: Array) -> None:
    """Twin of ``ties.count_found``."""
    for q in range(len(total)):
        places = _ties(total, relevant, cutoffs, q)
        out[q] = math.fsum(ranks * r / n for _, _, n, r, ranks in places)


def hit_probability(total: Array, relevant: Array, cutoffs: Array, out: Array) -> None:
    """Twin of ``ties.hit_probability``."""
    for q in range(len(total)):
        miss = 1.0
        for _, _, n, r, ranks in _ties(total, relevant, cutoffs, q):
            miss *= _chance(n, r, ranks, 0)
        out[q] = 1 - miss


def reciprocal_ranks(total: Array, relevant: Array, cutoffs: Array, out: Array) -> None:
    """Twin of ``ties.reciprocal_ranks``: the first hit is on place t if t - 1 places miss."""
    for q in range(len(total)):
        out[q] = 0.0
        for before, _, n, r, ranks in _ties(total, relevant, cutoffs, q):
            if r > 0:
                first = (_chance(n, r, t - 1, 0) * r / (n - t + 1) for t in range(1, ranks + 1))
                out[q] = math.fsum(p / (before + t) for t, p in enumerate(first, start=1))
                break


def mean_precisions(total: Array, relevant: Array, cutoffs: Array, out: Array) -> None:
    """Twin of ``ties.mean_precisions``: over the number x of hits before the cut-off."""
    for q in range(len(total)):
        *whole, last = [(0, 0, 0, 0, 0), *_ties(total, relevant, cutoffs, q)]
        before, found, n, r, ranks = last
        nearer = math.fsum(precision_sum(*tie) for tie in whole)
        out[q] = 0.0
        for x in range(ranks + 1):
            part = precision_sum(before, found, ranks, x, ranks)
            out[q] += _chance(n, r, ranks, x) * (nearer + part) / max(found + x, 1)


def extreme_mean_precisions(
    total: Array, relevant: Array, cutoffs: Array, best: bool, out: Array
) -> None:
    """Twin of ``ties.extreme_mean_precisions``: rankings are written out and compared."""
    for q in range(len(total)):
        *whole, last = [(0, 0, 0, 0, 0), *_ties(total, relevant, cutoffs, q)]
        nearer = [hit for _, _, n, r, _ in whole for hit in _row(n, r, best)]
        _, _, n, r, ranks = last
        possible = [x for x in range(ranks + 1) if x <= r and ranks - x <= n - r]
        values = [_mean_precision(nearer + _row(ranks, x, best)) for x in possible]
        out[q] = max(values) if best else min(values)


def _ties(total: Array, relevant: Array, cutoffs: Array, q: int) -> Iterator[Tie]:
    """The ties of one query of which a rank counts."""
    before = found = 0
    for n, r in zip(total[q].tolist(), relevant[q].tolist(), strict=True):
        ranks = min(n, int(cutoffs[q]) - before)
        if ranks > 0:
            yield before, found, n, r, ranks
        before, found = before + n, found + r


def _chance(n: int, r: int, ranks: int, hits: int) -> float:
    """Probability that the first ``ranks`` of n places hold ``hits`` of r (hypergeometric)."""
    return math.comb(r, hits) * math.comb(n - r, ranks - hits) / math.comb(n, ranks)


def _row(n: int, r: int, best: bool) -> list[bool]:
    """A tie with its relevant items first, or last."""
    return sorted([True] * r + [False] * (n - r), reverse=best)


def _mean_precision(ranking: list[bool]) -> float:
    """Mean of precision at the relevant items of one ranking, 0 if there are none."""
    at = np.flatnonzero(ranking) + 1
    return float(np.mean(np.arange(1, len(at) + 1) / at)) if len(at) else 0.0
