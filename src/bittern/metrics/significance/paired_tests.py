"""Tests of paired values: Student's t, Wilcoxon's signed rank, and the sign test.

SciPy gives the distributions (t, normal, binomial).  Its own tests are not called, because they
treat 0.9 - 0.8 and 0.3 - 0.2 as different, ignore ties in Wilcoxon's exact distribution, and give
NaN for the t-test if no pair differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.metrics.significance.pairs import (
    Pairs,
    Values,
    balance,
    pair,
    signed_ranks,
    standardised,
)
from bittern.registry import Registry

FEW, FEW_WITH_TIES = 50, 13  # pairs up to which Wilcoxon's p is exact by default, as in SciPy
MOST = 500  # pairs for which its exact distribution takes a fraction of a second


@dataclass(frozen=True, slots=True)
class Significance:
    """Outcome of a paired test.

    ``p_value`` is the probability, if there is no difference, of a statistic at least as extreme as
    this one in the direction of the ``alternative``.  ``difference`` is the mean of first minus
    second.  Of ``n`` pairs compared, ``zeros`` had no difference; ``left_out`` more were undefined.
    """

    name: str
    statistic: float
    p_value: float
    alternative: str
    n: int
    left_out: int
    zeros: int
    difference: float
    effect_size: float
    effect: str  # name of the effect size
    method: str  # how the p-value was computed
    p_interval: tuple[float, float] | None = None  # 95 % interval of a p from random draws

    def __str__(self) -> str:
        left_out = f", {self.left_out:,} left out" if self.left_out else ""
        return (
            f"{self.name} ({self.method}, {self.alternative}): p = {self.p_value:.4g}, "
            f"difference {self.difference:+.4f}, {self.effect} {self.effect_size:+.3f} "
            f"({self.n:,} pairs{left_out})"
        )

    def __repr__(self) -> str:
        return str(self)


# p from the probabilities of a statistic at most, and at least, as large as the one seen.  Under
# the null hypothesis all our statistics are symmetric, so two-sided is twice the smaller tail.  A
# sum of probabilities may round to a little above 1.
ALTERNATIVES: Registry[Callable[[float, float], float]] = Registry(
    "alternative",
    {
        "two-sided": lambda at_most, at_least: min(1.0, 2 * min(at_most, at_least)),
        "greater": lambda at_most, at_least: min(1.0, at_least),
        "less": lambda at_most, at_least: min(1.0, at_most),
    },
)


def conclude(pairs: Pairs, **findings: Any) -> Significance:
    """The outcome of a test: its results, and the pairs it compared."""
    return Significance(
        n=pairs.n,
        left_out=pairs.left_out,
        zeros=pairs.zeros,
        difference=pairs.mean,
        **findings,
    )


def paired_t_test(a: Values, b: Values, alternative: str = "two-sided") -> Significance:
    r"""Paired t-test: whether the mean of normally distributed differences is zero.

    .. math:: t = \sqrt{n} \; \bar d / s_d

    for n differences with mean :math:`\bar d` and standard deviation :math:`s_d`, against Student's
    distribution with n - 1 degrees of freedom.  The alternative ``greater``
    means that a is greater.

    If no pair differs, t = 0 and p = 1.  If all differences are equal, we take the limit: t is
    infinite and p = 0 (1 for the other side).  Such a p only says that the model does not fit; use
    :func:`randomisation_test` there.

    The effect size is Cohen's :math:`d_z`.  References: [Student-1908];
    [Smucker-Allan-Carterette-2007], who find that it agrees with the randomisation test.
    """
    from scipy.special import stdtr

    p_of = ALTERNATIVES[alternative]
    pairs = pair(a, b, "paired_t_test")
    effect_size = standardised(pairs.difference)
    t, freedom = sqrt(pairs.n) * effect_size, pairs.n - 1
    tails = (stdtr(freedom, t), stdtr(freedom, -t)) if pairs.zeros < pairs.n else (1.0, 1.0)
    return conclude(
        pairs,
        name="paired t-test",
        method="t distribution",
        statistic=t,
        p_value=float(p_of(*tails)),
        alternative=alternative,
        effect="Cohen's d",
        effect_size=effect_size,
    )


def wilcoxon(
    a: Values,
    b: Values,
    alternative: str = "two-sided",
    *,
    zeros: str = "wilcox",
    exact: bool | None = None,
) -> Significance:
    r"""Wilcoxon's signed-rank test: whether differences are symmetric about zero.

    The statistic is :math:`W^+`, the sum of the ranks :math:`r_i` of the positive differences.  All
    differences are ranked by size, and ties get their mean rank.  If both signs are equally likely,
    it has mean :math:`\frac12 \sum_i r_i` and variance :math:`\frac14 \sum_i r_i^2`, which
    accounts for ties.

    ``zeros`` says how to treat pairs without a difference: ``wilcox`` drops them before ranking,
    ``pratt`` ranks them and drops their ranks.  If no pair differs, p = 1.

    ``exact=True`` takes the distribution over all :math:`2^m` signs (at most 500 pairs, with or
    without ties), ``exact=False`` the normal distribution without a continuity correction.  By
    default p is exact for up to 50 pairs without ties or zeros, and for up to 13 with them.

    The effect size is the matched-pairs rank-biserial correlation (with ``pratt``, of its ranks).
    References: [Wilcoxon-1945], [Pratt-1959].
    """
    p_of, ranked = ALTERNATIVES[alternative], ZEROS[zeros]
    pairs = pair(a, b, "wilcoxon")
    signed = ranked(pairs.difference)
    if exact is None:
        exact = pairs.n <= (FEW_WITH_TIES if _has_ties(pairs) else FEW)
    elif exact and len(signed) > MOST:
        raise InputError(
            f"wilcoxon: exact is for at most {MOST} pairs that differ, got {len(signed)}; "
            "exact=False uses the normal distribution."
        )
    tails = _exact_tails(signed) if exact else _normal_tails(signed)
    return conclude(
        pairs,
        name="Wilcoxon signed rank",
        method="exact" if exact else "normal approximation",
        statistic=float(signed[signed > 0].sum()),
        p_value=float(p_of(*tails)),
        alternative=alternative,
        effect="rank-biserial",
        effect_size=balance(signed),
    )


def sign_test(a: Values, b: Values, alternative: str = "two-sided") -> Significance:
    r"""Sign test: whether a wins as many pairs as it loses.

    The statistic is the number of pairs where a is larger; p is the exact binomial tail

    .. math:: P(X \ge w) = 2^{-m} \sum_{k \ge w} \binom{m}{k}

    for w wins in m decided pairs (two-sided: twice the smaller tail).  Pairs without a difference
    are dropped, and counted in ``zeros``; if no pair differs, p = 1.

    The effect size is the share of wins minus the share of losses among the decided pairs.
    """
    from scipy.special import bdtr

    p_of = ALTERNATIVES[alternative]
    pairs = pair(a, b, "sign_test")
    decided = pairs.n - pairs.zeros
    wins = int((pairs.difference > 0).sum())
    return conclude(
        pairs,
        name="sign test",
        method="exact",
        statistic=float(wins),
        p_value=float(p_of(bdtr(wins, decided, 0.5), bdtr(decided - wins, decided, 0.5))),
        alternative=alternative,
        effect="wins - losses",
        effect_size=balance(np.sign(pairs.difference)),
    )


def _dropped(difference: Float64Array) -> Float64Array:
    return signed_ranks(difference[difference != 0])


def _ranked_then_dropped(difference: Float64Array) -> Float64Array:
    return signed_ranks(difference)[difference != 0]


ZEROS: Registry[Callable[[Float64Array], Float64Array]] = Registry(
    "treatment of zeros", {"wilcox": _dropped, "pratt": _ranked_then_dropped}
)


def _has_ties(pairs: Pairs) -> bool:
    return pairs.zeros > 0 or len(np.unique(np.abs(pairs.difference))) < pairs.n


def _exact_tails(signed: Float64Array) -> tuple[float, float]:
    """Probabilities of a sum of positive ranks at most, and at least, the one seen."""
    doubled = np.rint(2 * signed).astype(np.int64)  # mean ranks are multiples of one half
    probability = np.zeros(np.abs(doubled).sum() + 1)
    probability[0] = 1.0
    for rank in np.abs(doubled):
        probability[rank:] += probability[:-rank].copy()
        probability /= 2  # both signs are equally likely
    seen = doubled[doubled > 0].sum()
    return float(probability[: seen + 1].sum()), float(probability[seen:].sum())


def _normal_tails(signed: Float64Array) -> tuple[float, float]:
    from scipy.special import ndtr

    if len(signed) == 0:
        return 1.0, 1.0
    z = signed.sum() / np.sqrt(np.square(signed).sum())  # half the signed sum is W+ minus its mean
    return float(ndtr(z)), float(ndtr(-z))
