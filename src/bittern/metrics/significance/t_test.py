"""Student's t-test for pairs."""

from __future__ import annotations

from math import sqrt

from bittern.metrics.significance.effects import standardised
from bittern.metrics.significance.outcome import ALTERNATIVES, Significance, conclude
from bittern.metrics.significance.pairs import Values, pair

__all__ = ["paired_t_test"]


def paired_t_test(a: Values, b: Values, alternative: str = "two-sided") -> Significance:
    r"""Paired t-test: whether the mean of normally distributed differences is zero.

    .. math:: t = \sqrt{n} \; \bar d / s_d

    for n differences with mean :math:`\bar d` and standard deviation :math:`s_d`, against Student's
    distribution with n - 1 degrees of freedom.  The alternative ``greater`` is that a is.

    If no pair differs, t = 0 and p = 1.  If all differ by the same, the formula is taken to its
    limit: t is infinite and p = 0 (1 towards the other side).  Such a p says only that the model
    does not fit; :func:`randomisation_test` has an answer there.

    The effect size is Cohen's :math:`d_z`.  References: [Student-1908];
    [Smucker-Allan-Carterette-2007], who find it to agree with the randomisation test.
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
        p_value=p_of(*tails),
        alternative=alternative,
        effect="Cohen's d",
        effect_size=effect_size,
    )
