"""Wilcoxon's signed-rank test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.metrics.significance.effects import balance, signed_ranks
from bittern.metrics.significance.outcome import ALTERNATIVES, Significance, conclude
from bittern.metrics.significance.pairs import Pairs, Values, pair
from bittern.registry import Registry

__all__ = ["wilcoxon"]

FEW, FEW_WITH_TIES = 50, 13  # pairs up to which p is exact unless told otherwise, as SciPy has it
MOST = 500  # pairs for which the exact distribution takes a fraction of a second


def wilcoxon(
    a: Values,
    b: Values,
    alternative: str = "two-sided",
    *,
    zeros: str = "wilcox",
    exact: bool | None = None,
) -> Significance:
    r"""Wilcoxon's signed-rank test: whether differences lie evenly about zero.

    The statistic is :math:`W^+`, the sum of the ranks :math:`r_i` of the positive differences, all
    ranked by size, ties sharing their mean rank.  If each sign is as likely as the other, it has
    mean :math:`\frac12 \sum_i r_i` and variance :math:`\frac14 \sum_i r_i^2`, where ties are
    already accounted for.

    ``zeros`` says what becomes of pairs without a difference: ``wilcox`` drops them before ranking,
    ``pratt`` ranks them and drops their ranks.  If no pair differs, p = 1.

    ``exact`` takes the distribution over all :math:`2^m` signs (at most 500 pairs, with ties or
    without), else the normal distribution without a correction for continuity.  Left to itself it
    is exact for up to 50 pairs without ties or zeros, and for up to 13 with them.

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
            "exact=False takes the normal distribution."
        )
    tails = _exact_tails(signed) if exact else _normal_tails(signed)
    return conclude(
        pairs,
        name="Wilcoxon signed rank",
        method="exact" if exact else "normal approximation",
        statistic=signed[signed > 0].sum(),
        p_value=p_of(*tails),
        alternative=alternative,
        effect="rank-biserial",
        effect_size=balance(signed),
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
    """Chances of a sum of positive ranks at most, and at least, the one seen."""
    doubled = np.rint(2 * signed).astype(np.int64)  # mean ranks are whole or half numbers
    chance = np.zeros(np.abs(doubled).sum() + 1)
    chance[0] = 1.0
    for rank in np.abs(doubled):
        chance[rank:] += chance[:-rank].copy()
        chance /= 2  # each sign is as likely as the other
    seen = doubled[doubled > 0].sum()
    return float(chance[: seen + 1].sum()), float(chance[seen:].sum())


def _normal_tails(signed: Float64Array) -> tuple[float, float]:
    from scipy.special import ndtr

    if len(signed) == 0:
        return 1.0, 1.0
    z = signed.sum() / np.sqrt(np.square(signed).sum())  # W+ less its mean is half the signed sum
    return float(ndtr(z)), float(ndtr(-z))
