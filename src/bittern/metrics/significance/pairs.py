"""Pairs of values of the same queries, as the differences that every test looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array, check_array
from bittern.errors import InputError
from bittern.metrics.scores import Score, Scores

__all__ = ["Float64Array", "Pairs", "Values", "pair"]

Values = ArrayLike | Score

ROUNDING = 16 * np.finfo(np.float64).eps  # of a value that took a few operations to compute


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Differences of at least two pairs; those undefined were left out, and counted.

    Sizes of differences that rounding alone tells apart are equal here, and a difference made of
    rounding alone is zero: 0.9 - 0.8 ties with 0.3 - 0.2, as it would on paper.
    """

    difference: Float64Array  # (n,), first minus second
    left_out: int
    slack: float  # how far rounding may have moved a sum of the differences

    @property
    def n(self) -> int:
        """Number of pairs that are compared."""
        return len(self.difference)

    @property
    def zeros(self) -> int:
        """Number of pairs without a difference."""
        return int((self.difference == 0).sum())

    @property
    def mean(self) -> float:
        """Mean difference."""
        return float(self.difference.mean())


def pair(a: Values, b: Values, title: str) -> Pairs:
    """Pair ``a`` with ``b``, leaving out pairs with a NaN; ``title`` is who asks, for errors."""
    first, second = _values(a, f"{title}: a"), _values(b, f"{title}: b")
    if len(first) != len(second):
        raise InputError(
            f"{title}: a and b must have values of the same queries, "
            f"got {len(first)} and {len(second)} values."
        )
    _check_same_queries(a, b, title)
    defined = ~(np.isnan(first) | np.isnan(second))
    first, second = first[defined], second[defined]
    left_out = len(defined) - len(first)
    if len(first) < 2:
        raise InputError(
            f"{title}: needs at least 2 pairs where both values are defined, got {len(first)} "
            f"({left_out} left out as undefined)."
        )
    slack = ROUNDING * np.maximum(np.abs(first), np.abs(second))
    return Pairs(_settled(first - second, slack), left_out, float(slack.sum()))


def _values(values: Values, name: str) -> Float64Array:
    if isinstance(values, Scores):
        raise InputError(f"{name} must be one score, got a table of them; pass scores['ap'].")
    if isinstance(values, Score):
        if values.per_query is None:
            raise InputError(f"{name} must have a value for each query, {values.name} has one.")
        values = values.per_query
    v = check_array(values, name)
    if v.ndim != 1 or v.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a 1-D array of numbers, got {v.dtype} {v.shape}.")
    if np.isinf(v).any():
        raise InputError(f"{name} must be finite or NaN, value {int(np.isinf(v).argmax())} is not.")
    return v.astype(np.float64)


def _check_same_queries(a: Values, b: Values, title: str) -> None:
    """Refuse scores of different queries; arrays and scores without ids are taken on trust."""
    if not (isinstance(a, Score) and isinstance(b, Score)):
        return
    if a.query_ids is None or b.query_ids is None:
        return
    if differ := int((a.query_ids != b.query_ids).sum()):
        raise InputError(
            f"{title}: a and b must be scores of the same queries in the same order, "
            f"the ids of {differ} differ."
        )


def _settled(difference: Float64Array, slack: Float64Array) -> Float64Array:
    """Differences with their sizes made equal where rounding alone tells them apart."""
    size = np.abs(difference)
    real = size > slack
    size, slack = np.where(real, size, 0.0), np.where(real, slack, 0.0)
    order = np.argsort(size)
    ascending, slack = size[order], slack[order]
    is_new = np.ones(len(size), bool)
    is_new[1:] = np.diff(ascending) > np.maximum(slack[1:], slack[:-1])
    size[order] = ascending[is_new][np.cumsum(is_new) - 1]
    return np.sign(difference) * size + 0.0  # no negative zero
