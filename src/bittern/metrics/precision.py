"""Precision, recall, F and hit rate, at a cut-off or within a radius."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.metrics.ranks import cutoffs_of, each_query, inside_radius, ratio
from bittern.profile import TieProfile

__all__ = [
    "Retrieved",
    "fbeta",
    "hit_rate",
    "precision",
    "r_precision",
    "recall",
    "reciprocal_rank",
    "retrieved_at",
]


class Retrieved:
    """What a cut-off or a radius retrieves of each query.

    ``found`` are the relevant items retrieved (true positives; in expectation, where a cut-off
    divides a tie), ``retrieved`` all items retrieved, ``relevant`` all relevant ones.  A cut-off
    retrieves as many items as it says, a shorter ranking's missing items being not relevant.
    """

    def __init__(
        self, found: NDArray[np.float64], retrieved: NDArray[np.int64], relevant: NDArray[np.int64]
    ) -> None:
        self.found, self.retrieved, self.relevant = found, retrieved, relevant


def retrieved_at(profile: TieProfile, cutoff: int | None, radius: int | None) -> Retrieved:
    """True positives, retrieved and relevant items of each query (eqs. 3.3–3.5 of [Moran-2016])."""
    if radius is not None:
        inside = inside_radius(profile, radius)
        found = (profile.relevant * inside).sum(axis=1)
        retrieved = (profile.total * inside).sum(axis=1)
        return Retrieved(found.astype(np.float64), retrieved, profile.n_relevant)
    cutoffs = cutoffs_of(profile, cutoff)
    return Retrieved(_found(profile, cutoffs), cutoffs, profile.n_relevant)


def precision(
    profile: TieProfile, cutoff: int | None, radius: int | None, empty_is_zero: bool = False
) -> NDArray[np.float64]:
    r"""Relevant items retrieved, divided by items retrieved: :math:`TP / (TP + FP)`.

    At a cut-off k the divisor is k.  Within a radius that holds nothing there is no precision: the
    value is NaN, or 0 if ``empty_is_zero``.  NaN for a query with nothing relevant.

    Reference: eq. 3.6 of [Moran-2016].
    """
    at = retrieved_at(profile, cutoff, radius)
    value = ratio(at.found, at.retrieved)
    if empty_is_zero:
        value[at.retrieved == 0] = 0.0
    return np.where(at.relevant > 0, value, np.nan)


def recall(profile: TieProfile, cutoff: int | None, radius: int | None) -> NDArray[np.float64]:
    r"""Relevant items retrieved, divided by all relevant items: :math:`TP / (TP + FN)`.

    NaN for a query with nothing relevant.  Reference: eq. 3.7 of [Moran-2016].
    """
    at = retrieved_at(profile, cutoff, radius)
    return ratio(at.found, at.relevant)


def fbeta(
    profile: TieProfile, cutoff: int | None, radius: int | None, beta: float = 1.0
) -> NDArray[np.float64]:
    r"""Weighted harmonic mean of precision and recall.

    .. math:: F_\beta = \frac{(1 + \beta^2)\,TP}{(1 + \beta^2)\,TP + \beta^2 FN + FP}

    It is linear in TP, because retrieved and relevant items are fixed; so the expectation over
    ties is exact.  NaN for a query with nothing relevant; 0 where nothing is retrieved.

    Reference: eq. 3.10 of [Moran-2016], after [vanRijsbergen-1979].
    """
    at = retrieved_at(profile, cutoff, radius)
    value = (1 + beta**2) * at.found / np.maximum(at.retrieved + beta**2 * at.relevant, 1e-300)
    return np.where(at.relevant > 0, value, np.nan)


def hit_rate(profile: TieProfile, cutoff: int | None, radius: int | None) -> NDArray[np.float64]:
    r"""Probability that at least one relevant item is retrieved.

    Where the cut-off leaves :math:`m` ranks of a tie of :math:`n`, :math:`r` relevant, and nothing
    relevant is nearer, it is :math:`1 - \binom{n-r}{m} / \binom{n}{m}`.  This is what some call
    recall.  NaN for a query with nothing relevant.
    """
    if radius is not None:
        value = (retrieved_at(profile, None, radius).found > 0).astype(np.float64)
    else:
        from bittern.kernels import ties

        value = each_query(ties.hit_probability, profile, cutoff)
    return np.where(profile.n_relevant > 0, value, np.nan)


def r_precision(profile: TieProfile) -> NDArray[np.float64]:
    """Precision at R, the number of relevant items of the query; NaN if there are none."""
    relevant = profile.n_relevant
    return ratio(_found(profile, np.maximum(relevant, 1)), relevant)


def reciprocal_rank(profile: TieProfile, cutoff: int | None = None) -> NDArray[np.float64]:
    r"""One divided by the rank of the first relevant item, in expectation; 0 if none is retrieved.

    If the first tie with relevant items has :math:`n`, :math:`r` of them relevant, after :math:`N`
    nearer ones, the value is :math:`\sum_t \binom{n-t}{r-1} / \binom{n}{r} / (N + t)`.

    NaN for a query with nothing relevant.  Reference: [McSherry-Najork-2008].
    """
    from bittern.kernels import ties

    value = each_query(ties.reciprocal_ranks, profile, cutoff)
    return np.where(profile.n_relevant > 0, value, np.nan)


def _found(profile: TieProfile, cutoffs: NDArray[np.int64]) -> NDArray[np.float64]:
    from bittern.kernels import ties

    return each_query(ties.count_found, profile, cutoffs)
