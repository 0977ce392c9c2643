"""The sign test."""

from __future__ import annotations

import numpy as np

from bittern.metrics.significance.effects import balance
from bittern.metrics.significance.outcome import ALTERNATIVES, Significance, conclude
from bittern.metrics.significance.pairs import Values, pair

__all__ = ["sign_test"]


def sign_test(a: Values, b: Values, alternative: str = "two-sided") -> Significance:
    r"""Sign test: whether a wins as many pairs as it loses.

    The statistic is the number of pairs where a is larger; p is the exact binomial tail

    .. math:: P(X \ge w) = 2^{-m} \sum_{k \ge w} \binom{m}{k}

    for w wins of m decided pairs (two-sided: twice the smaller tail).  Pairs without a difference
    are dropped, and counted in ``zeros``; if all are, p = 1.

    The effect size is the share of wins less the share of losses among the decided pairs.
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
        statistic=wins,
        p_value=p_of(bdtr(wins, decided, 0.5), bdtr(decided - wins, decided, 0.5)),
        alternative=alternative,
        effect="wins - losses",
        effect_size=balance(np.sign(pairs.difference)),
    )
