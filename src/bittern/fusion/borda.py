"""BordaFuse: sources vote, and an item gets the points of its places."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.places import mean_ranks
from bittern.fusion.sources import check_scores, check_weights, retrieved

__all__ = ["borda"]


def borda(
    scores: ArrayLike, *, normalise: str = "none", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The sum of points that an item has for its places in the rankings of the sources.

    .. math:: \sum_s w_s \, (n + 1 - \mathrm{rank}_s)

    The candidates are the n items that at least one source retrieved for the query.  Tied items
    share the mean of their ranks, and the candidates that a source has not retrieved (NaN) share
    the places after those that it has.  NaN comes back where no source has an item.
    ``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better.
    A normalisation changes no rank: its name is checked and that is all.

    Reference: [Aslam-Montague-2001].
    """
    s = check_scores(scores, "borda")
    w = check_weights(weights, s, "borda")
    NORMALISATIONS[normalise]
    candidate = ~np.isnan(retrieved(s, np.zeros(s.shape[1:])))
    n = np.count_nonzero(candidate, axis=-1, keepdims=True)
    nobody = np.count_nonzero(~candidate, axis=-1, keepdims=True)
    total = np.zeros(s.shape[1:])
    for weight, source in zip(w, s, strict=True):
        # Those that nobody has are in the last tie too, and none of them takes a place.
        rank = mean_ranks(source) - np.where(np.isnan(source), nobody / 2, 0.0)
        total += weight * (n + 1 - rank)
    return retrieved(s, total)
