"""Average precision, in expectation over the orders of tied items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.metrics.ranks import each_query, ratio
from bittern.profile import TieProfile

__all__ = [
    "average_precision",
    "average_precision_of_retrieved",
    "extreme_average_precision_of_retrieved",
]


def average_precision(profile: TieProfile, cutoff: int | None = None) -> NDArray[np.float64]:
    r"""Average precision of each query, in expectation over the orders of tied items.

    Let :math:`n_d` items, :math:`r_d` of them relevant, lie at distance :math:`d`; let :math:`N_d`
    and :math:`R_d` count the same strictly nearer, and :math:`R` count all relevant items,
    retrieved or not.  Let :math:`m_d = \min(n_d, k - N_d)` of the tie's ranks count, with :math:`k`
    the cut-off.  Then

    .. math::

        \mathrm{AP@k} = \frac1R \sum_{d:\, m_d > 0} \frac{r_d}{n_d} \sum_{t=1}^{m_d}
            \frac{R_d + 1 + (t-1)\,\rho_d}{N_d + t},
        \qquad \rho_d = \frac{r_d - 1}{n_d - 1}.

    The inner sum has the closed form :math:`(R_d + 1)\,h_d + \rho_d\,(m_d - (N_d + 1)\,h_d)` with
    :math:`h_d = H_{N_d + m_d} - H_{N_d}` a difference of harmonic numbers.

    A query with nothing relevant has no average precision: its value is NaN.

    References: eq. 3 of [He-Cakir-Bargal-Sclaroff-2018], after [McSherry-Najork-2008]; the closed
    form is ours (``docs/maths/average-precision.md``).
    """
    from bittern.kernels import ties

    return ratio(each_query(ties.sum_precisions, profile, cutoff), profile.n_relevant)


def average_precision_of_retrieved(
    profile: TieProfile, cutoff: int | None = None
) -> NDArray[np.float64]:
    r"""Mean precision at the relevant items *retrieved*, in expectation over the orders of ties.

    As much of the hashing literature computes ``AP@k``: the sum of precisions is divided by the
    number of relevant items among the first k, not by all of them; so [+ − −] beats [+ − +].

    If the cut-off divides a tie of :math:`n` items, :math:`r` relevant, of which :math:`m` ranks
    count, that number is random.  With :math:`x` the relevant items of the tie before the cut,
    :math:`S` the expected sum of precisions in the ties before it, and :math:`C(x)` that on the
    tie's first :math:`m` ranks given :math:`x`,

    .. math::

        \sum_x \frac{\binom{r}{x}\binom{n-r}{m-x}}{\binom{n}{m}} \frac{S + C(x)}{R_d + x}.

    Nothing retrieved counts as 0; a query with nothing relevant at all is NaN.  The formula is
    ours (``docs/maths/cut-ties.md``).
    """
    from bittern.kernels import ties

    values = each_query(ties.mean_precisions, profile, cutoff)
    return np.where(profile.n_relevant > 0, values, np.nan)


def extreme_average_precision_of_retrieved(
    profile: TieProfile, cutoff: int | None, best: bool
) -> NDArray[np.float64]:
    """The largest or smallest mean precision of the retrieved that an order of ties can give.

    Relevant items first is not always best here: where the cut-off divides a tie, a late hit can
    lower the mean, so the number of hits before the cut is chosen as well.
    """
    from bittern.kernels import ties

    values = each_query(ties.extreme_mean_precisions, profile, cutoff, best)
    return np.where(profile.n_relevant > 0, values, np.nan)
