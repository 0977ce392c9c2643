"""Paired values of the same queries: their differences, and how large these are."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, exp, inf, lgamma, log, nan

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array, check_array
from bittern.errors import InputError
from bittern.metrics.scores import Score, Scores

Values = ArrayLike | Score

ROUNDING = 16 * np.finfo(np.float64).eps  # relative, of a value computed in a few operations


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Differences of at least two pairs; undefined pairs are left out and counted.

    Differences whose sizes differ only by rounding have equal sizes here, and a difference of
    rounding alone is zero: 0.9 - 0.8 ties with 0.3 - 0.2, as on paper.
    """

    difference: Float64Array  # (n,), first minus second
    left_out: int
    slack: float  # how far rounding can move the sum of the differences

    @property
    def n(self) -> int:
        """Number of pairs compared."""
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
    """Pair ``a`` with ``b``, without pairs that have a NaN; ``title`` begins error messages."""
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


def cohen_d(a: Values, b: Values) -> float:
    r"""Mean difference over the standard deviation of differences, :math:`d_z = \bar d / s_d`.

    Zero if no pair differs; infinite if all differences are equal.  Reference: [Cohen-1988].
    """
    return standardised(pair(a, b, "cohen_d").difference)


def hedges_g(a: Values, b: Values) -> float:
    r"""Cohen's :math:`d_z` without its bias in small samples.

    .. math:: g = d_z \, \frac{\Gamma(m/2)}{\sqrt{m/2} \; \Gamma((m-1)/2)}, \qquad m = n - 1

    for n pairs.  NaN for two pairs, where the correction does not exist.  Reference:
    [Hedges-1981].
    """
    difference = pair(a, b, "hedges_g").difference
    m = len(difference) - 1
    if m < 2:
        return nan
    bias = lgamma(m / 2) - log(m / 2) / 2 - lgamma((m - 1) / 2)
    return standardised(difference) * exp(bias)


def rank_biserial(a: Values, b: Values) -> float:
    r"""Matched-pairs rank-biserial correlation :math:`(W^+ - W^-) / (W^+ + W^-)`.

    :math:`W^+` and :math:`W^-` are the sums of the ranks of positive and of negative differences,
    ranked by size; pairs without a difference are dropped.  From -1 (every difference is negative)
    to 1; zero if no pair differs.  Reference: [Kerby-2014].
    """
    difference = pair(a, b, "rank_biserial").difference
    return balance(signed_ranks(difference[difference != 0]))


def dominance(a: Values, b: Values) -> float:
    r"""Share of pairs where a is larger, minus the share where b is larger.

    The paired form of Cliff's delta, from -1 to 1.  Reference: [Cliff-1993].
    """
    return float(np.sign(pair(a, b, "dominance").difference).mean())


def standardised(difference: Float64Array) -> float:
    """Mean over standard deviation; zero or infinite if all differences are equal."""
    first = float(difference[0])
    if (difference == first).all():
        return copysign(inf, first) if first else 0.0
    unit = difference / np.abs(difference).max()  # so that no square overflows or vanishes
    return float(unit.mean() / unit.std(ddof=1))


def signed_ranks(difference: Float64Array) -> Float64Array:
    """Ranks of the sizes, from 1, with the signs of the differences; ties get their mean rank."""
    _, place, count = np.unique(np.abs(difference), return_inverse=True, return_counts=True)
    ranks = np.cumsum(count) - (count - 1) / 2
    return np.sign(difference) * ranks[place]


def balance(signed: Float64Array) -> float:
    """Sum divided by the sum of sizes; zero if both are zero."""
    whole = np.abs(signed).sum()
    return float(signed.sum() / whole) if whole else 0.0


def _values(values: Values, name: str) -> Float64Array:
    if isinstance(values, Scores):
        raise InputError(f"{name} must be one score, got a table of them; pass scores['ap'].")
    if isinstance(values, Score):
        if values.per_query is None:
            raise InputError(
                f"{name} must have a value for each query, but {values.name} has one for all."
            )
        values = values.per_query
    v = check_array(values, name)
    if v.ndim != 1 or v.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a 1-D array of numbers, got {v.dtype} {v.shape}.")
    if np.isinf(v).any():
        raise InputError(
            f"{name} must be finite or NaN, but value {int(np.isinf(v).argmax())} is not."
        )
    return v.astype(np.float64)


def _check_same_queries(a: Values, b: Values, title: str) -> None:
    """Raise an error for scores of different queries; scores without ids cannot be checked."""
    if not (isinstance(a, Score) and isinstance(b, Score)):
        return
    if a.query_ids is None or b.query_ids is None:
        return
    if differ := int((a.query_ids != b.query_ids).sum()):
        raise InputError(
            f"{title}: a and b must be scores of the same queries in the same order, "
            f"but the ids of {differ} differ."
        )


def _settled(difference: Float64Array, slack: Float64Array) -> Float64Array:
    """Differences, with sizes that differ only by rounding made equal."""
    size = np.abs(difference)
    real = size > slack
    size, slack = np.where(real, size, 0.0), np.where(real, slack, 0.0)
    order = np.argsort(size)
    ascending, slack = size[order], slack[order]
    is_new = np.ones(len(size), bool)
    is_new[1:] = np.diff(ascending) > np.maximum(slack[1:], slack[:-1])
    size[order] = ascending[is_new][np.cumsum(is_new) - 1]
    return np.sign(difference) * size + 0.0  # no negative zero
