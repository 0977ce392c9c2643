"""Discounted cumulative gain, in expectation over the orders of tied items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.metrics.precision import EVERYTHING, ratio
from bittern.profile import TieProfile
from bittern.relevance.sparse import MAX_GAIN

TABLE = 1 << 22  # ranks up to this are summed one by one


def dcg(profile: TieProfile, cutoff: int | None = None, linear: bool = False) -> Float64Array:
    r"""Discounted cumulative gain of each query, in expectation over the orders of tied items.

    With :math:`n_{d,v}` items of gain :math:`v` among the :math:`n_d` at distance :math:`d`, and
    :math:`N_d` items strictly nearer,

    .. math::

        \mathrm{DCG@k} = \sum_d \sum_v \frac{G(v)\, n_{d,v}}{n_d}
            \sum_{t = N_d + 1}^{\min(N_d + n_d,\, k)} \frac{1}{\log_2(t + 1)},
        \qquad G(v) = 2^v - 1,

    or :math:`G(v) = v` if ``linear``.  NaN if nothing is relevant.

    References: eqs. 2 and 4 of [He-Cakir-Bargal-Sclaroff-2018], [Jarvelin-Kekalainen-2002];
    ``docs/maths/discounts.md`` derives the sum over long ties.
    """
    total = profile.total
    gained = profile.counts @ _gain(profile, linear)
    after = np.cumsum(total, axis=1)
    limit = EVERYTHING if cutoff is None else cutoff
    hit = np.nonzero((gained > 0) & (after - total < limit))
    first = (after - total)[hit]
    sums = discount_sum(first, np.minimum(after[hit], limit))
    value = np.bincount(hit[0], gained[hit] / total[hit] * sums, minlength=profile.n_queries)
    return np.where(profile.n_relevant > 0, value, np.nan)


def ndcg(profile: TieProfile, cutoff: int | None = None, linear: bool = False) -> Float64Array:
    r"""DCG divided by the DCG of the best ranking of *all* relevant items, retrieved or not.

    The ideal is cut at the same k; ties do not change it.  NaN if nothing is relevant.

    Reference: section 3.2 of [He-Cakir-Bargal-Sclaroff-2018].
    """
    return ratio(dcg(profile, cutoff, linear), _ideal(profile, cutoff, linear))


def discount_sum(low: NDArray[np.int64], high: NDArray[np.int64]) -> Float64Array:
    r"""Sums of :math:`1 / \log_2(t + 1)` over ranks ``low < t <= high``."""
    if high.max(initial=0) <= TABLE:
        sums = np.zeros(int(high.max(initial=0)) + 1)
        np.cumsum(1 / np.log2(np.arange(2, len(sums) + 1)), out=sums[1:])
        return sums[high] - sums[low]
    start = np.minimum(high, np.maximum(low, TABLE))
    near = discount_sum(np.minimum(low, TABLE), np.minimum(high, TABLE))
    return near + _far_discount_sum(start.astype(np.float64), high.astype(np.float64))


def _far_discount_sum(low: Float64Array, high: Float64Array) -> Float64Array:
    r"""The same beyond rank 2²²: :math:`\ln 2\,[\mathrm{li}(high + 3/2) - \mathrm{li}(low + 3/2)]`.

    This is the midpoint rule, used in reverse.  For ties much shorter than their rank the
    difference would cancel, so two terms of the series around their middle replace it.
    """
    from scipy.special import expi

    n, x = high - low, (low + high + 3) / 2
    log = np.log(x)
    curvature = (1 + 2 / log) / (x * log) ** 2
    short = np.log(2) * (n / log + (n**3 - n) / 24 * curvature)
    long = np.log(2) * (expi(np.log(high + 1.5)) - expi(np.log(low + 1.5)))
    return np.where(n < 1e-3 * x, short, long)


def _gain(profile: TieProfile, linear: bool) -> Float64Array:
    v = profile.gains.astype(np.float64)
    if linear:
        return v
    if v[-1] > MAX_GAIN:
        raise InputError(
            f"dcg: the gain 2^v - 1 is too large for v = {profile.gains[-1]} (v may be at most "
            f"{MAX_GAIN}); use the option ':linear'."
        )
    return np.exp2(v) - 1


def _ideal(profile: TieProfile, cutoff: int | None, linear: bool) -> Float64Array:
    """DCG of the ranking by decreasing gain."""
    totals = profile.totals_by_gain[:, :0:-1]  # largest gain first, without 0
    limit = EVERYTHING if cutoff is None else cutoff
    after = np.cumsum(totals, axis=1)
    sums = discount_sum(np.minimum(after - totals, limit), np.minimum(after, limit))
    return sums @ _gain(profile, linear)[:0:-1]
