"""Bootstrap intervals of a mean difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError
from bittern.metrics import bootstrap
from bittern.metrics.micro import Pooled
from bittern.metrics.significance.pairs import Pairs, Values, pair
from bittern.registry import Registry

__all__ = ["DifferenceInterval", "bootstrap_interval"]


@dataclass(frozen=True, slots=True)
class DifferenceInterval:
    """Interval of the mean of first minus second over ``n`` pairs."""

    low: float
    high: float
    difference: float
    confidence: float
    method: str
    n: int
    left_out: int


def bootstrap_interval(
    a: Values,
    b: Values,
    method: str = "bca",
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int = 0,
) -> DifferenceInterval:
    r"""Interval of the mean difference when pairs are drawn again with replacement.

    ``percentile`` cuts :math:`(1 - c)/2` from each end of the resampled means, where c is the
    ``confidence``.  ``bca`` moves both cuts to correct for bias and for skewness:

    .. math::

        \alpha' = \Phi\Big(z_0 + \frac{z_0 + z_\alpha}{1 - \hat a (z_0 + z_\alpha)}\Big), \qquad
        \hat a = \frac{\sum_i (d_i - \bar d)^3}{6 \, (\sum_i (d_i - \bar d)^2)^{3/2}},

    with :math:`z_\alpha` a quantile of the normal distribution and :math:`z_0` that of the share of
    resampled means below the mean (half of those equal to it).  If all differences are the same,
    the interval is that one value.

    References: [Efron-Tibshirani-1993], [Efron-1987].
    """
    cuts_of = CUTS[method]
    check_count(n_resamples, "bootstrap_interval: n_resamples", least=100)
    check_count(random_state, "bootstrap_interval: random_state", least=0)
    if not 0.5 <= confidence <= 0.999:
        raise InputError(
            f"bootstrap_interval: confidence must be between 0.5 and 0.999, got {confidence!r}."
        )
    pairs = pair(a, b, "bootstrap_interval")
    low, high = _interval(pairs, cuts_of, confidence, n_resamples, random_state)
    return DifferenceInterval(low, high, pairs.mean, confidence, method, pairs.n, pairs.left_out)


Cuts = Callable[[Float64Array, Float64Array, Float64Array], Float64Array]


def _interval(
    pairs: Pairs, cuts_of: Cuts, confidence: float, n_resamples: int, random_state: int
) -> tuple[float, float]:
    difference = pairs.difference
    if (difference == difference[0]).all():
        return pairs.mean, pairs.mean
    mean = Pooled(difference[:, None], lambda sums: sums[:, 0] / len(difference))
    means = bootstrap.resampled(mean, random_state, n_resamples)
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = np.quantile(means, cuts_of(tails, means, difference))
    return float(low), float(high)


def _percentile_cuts(
    tails: Float64Array, means: Float64Array, difference: Float64Array
) -> Float64Array:
    return tails


def _bca_cuts(tails: Float64Array, means: Float64Array, difference: Float64Array) -> Float64Array:
    from scipy.special import ndtr, ndtri

    mean = difference.mean()
    below = ((means < mean).mean() + (means <= mean).mean()) / 2
    least = 0.5 / len(means)  # as if half a resample lay beyond, so that z0 is finite
    z0 = ndtri(np.clip(below, least, 1 - least))
    spread = (difference - mean) / np.abs(difference - mean).max()
    skew = (spread**3).sum() / (6 * np.square(spread).sum() ** 1.5)
    z = z0 + ndtri(tails)
    return ndtr(z0 + z / (1 - skew * z))


CUTS: Registry[Cuts] = Registry(
    "bootstrap interval", {"bca": _bca_cuts, "percentile": _percentile_cuts}
)
