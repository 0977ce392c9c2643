"""Effect sizes of paired values: how large a difference is beside its own spread."""

from __future__ import annotations

from math import copysign, exp, inf, lgamma, log, nan

import numpy as np

from bittern.checks import Float64Array
from bittern.metrics.significance.pairs import Values, pair

__all__ = ["cohen_d", "dominance", "hedges_g", "rank_biserial"]


def cohen_d(a: Values, b: Values) -> float:
    r"""Mean difference over the standard deviation of differences, :math:`d_z = \bar d / s_d`.

    Zero if no pair differs; infinite if all differ by the same.  Reference: [Cohen-1988].
    """
    return standardised(pair(a, b, "cohen_d").difference)


def hedges_g(a: Values, b: Values) -> float:
    r"""Cohen's :math:`d_z` without its bias in small samples.

    .. math:: g = d_z \, \frac{\Gamma(m/2)}{\sqrt{m/2} \; \Gamma((m-1)/2)}, \qquad m = n - 1

    for n pairs.  The correction does not exist for two pairs: NaN.  Reference: [Hedges-1981].
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
    ranked by size, pairs without a difference dropped.  From -1 (every difference negative) to 1;
    zero if no pair differs.  Reference: [Kerby-2014].
    """
    difference = pair(a, b, "rank_biserial").difference
    return balance(signed_ranks(difference[difference != 0]))


def dominance(a: Values, b: Values) -> float:
    r"""Share of pairs where a is larger, less the share where b is.

    The paired form of Cliff's delta, from -1 to 1.  Reference: [Cliff-1993].
    """
    return float(np.sign(pair(a, b, "dominance").difference).mean())


def standardised(difference: Float64Array) -> float:
    """Mean over standard deviation; where there is no deviation, zero or infinite."""
    first = float(difference[0])
    if (difference == first).all():
        return copysign(inf, first) if first else 0.0
    unit = difference / np.abs(difference).max()  # so that no square can overflow or vanish
    return float(unit.mean() / unit.std(ddof=1))


def signed_ranks(difference: Float64Array) -> Float64Array:
    """Ranks of the sizes from 1, ties sharing their mean rank, with the differences' signs."""
    _, place, count = np.unique(np.abs(difference), return_inverse=True, return_counts=True)
    ranks = np.cumsum(count) - (count - 1) / 2
    return np.sign(difference) * ranks[place]


def balance(signed: Float64Array) -> float:
    """Sum over sum of sizes; zero if there is nothing to sum."""
    whole = np.abs(signed).sum()
    return float(signed.sum() / whole) if whole else 0.0
