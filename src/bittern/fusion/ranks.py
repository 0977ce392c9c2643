"""Fusions that use only an item's ranks: Borda count and reciprocal rank.

``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better, and NaN
marks an item that a source has not retrieved.  The fused score is NaN where no source has the
item.  Normalisation never changes a rank, so ``normalise`` is only checked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.fusion.scores import (
    NORMALISATIONS,
    check_scores,
    check_weights,
    mean_over_places,
    mean_ranks,
    retrieved,
)


def borda(
    scores: ArrayLike, *, normalise: str = "none", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The sum of points that an item gets for its ranks in the sources (BordaFuse).

    .. math:: \sum_s w_s \, (n + 1 - \mathrm{rank}_s)

    The n candidates are the items that at least one source retrieved for the query.  Tied items
    share the mean of their ranks.  Candidates that a source has not retrieved share the ranks
    after those that it has.

    Reference: [Aslam-Montague-2001].
    """
    s = check_scores(scores, "borda")
    w = check_weights(weights, s, "borda")
    NORMALISATIONS[normalise]
    candidate = ~np.isnan(retrieved(s, np.zeros(s.shape[1:])))
    n = np.count_nonzero(candidate, axis=-1, keepdims=True)
    n_others = np.count_nonzero(~candidate, axis=-1, keepdims=True)
    total = np.zeros(s.shape[1:])
    for weight, source in zip(w, s, strict=True):
        # The last tie also holds the items that no source has; those take no rank.
        rank = mean_ranks(source) - np.where(np.isnan(source), n_others / 2, 0.0)
        total += weight * (n + 1 - rank)
    return retrieved(s, total)


def reciprocal_rank(
    scores: ArrayLike,
    *,
    normalise: str = "none",
    weights: ArrayLike | None = None,
    damping: float = 60.0,
) -> Float64Array:
    r"""The sum of the damped reciprocals of an item's ranks.

    .. math:: \sum_s \frac{w_s}{c + \mathrm{rank}_s}

    with c the ``damping``.  Tied items share the mean of their terms, which is the expectation
    over their orders.  A source without the item adds nothing.

    Reference: [Cormack-Clarke-Buettcher-2009].
    """
    s = check_scores(scores, "reciprocal-rank")
    w = check_weights(weights, s, "reciprocal-rank")
    NORMALISATIONS[normalise]
    if not 0 <= damping < np.inf:
        raise InputError(f"reciprocal-rank: damping must be 0 or more, got {damping!r}.")
    values = 1.0 / (damping + np.arange(1.0, s.shape[-1] + 1))
    total = np.zeros(s.shape[1:])
    for weight, source in zip(w, s, strict=True):
        total += weight * np.where(np.isnan(source), 0.0, mean_over_places(source, values))
    return retrieved(s, total)
