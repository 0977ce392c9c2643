"""Reciprocal rank fusion: an item gets the reciprocals of its ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.places import mean_over_places
from bittern.fusion.sources import check_scores, check_weights, retrieved

__all__ = ["reciprocal_rank"]


def reciprocal_rank(
    scores: ArrayLike,
    *,
    normalise: str = "none",
    weights: ArrayLike | None = None,
    damping: float = 60.0,
) -> Float64Array:
    r"""The sum of the damped reciprocals of an item's ranks.

    .. math:: \sum_s \frac{w_s}{c + \mathrm{rank}_s}

    with c the ``damping``.  Tied items share the mean of what their places give, which is the
    expectation over their orders.  A source that has not retrieved an item (NaN) gives nothing;
    NaN comes back where no source has it.  ``scores`` is ``(sources, queries, items)`` or
    ``(sources, items)``, larger is better.  A normalisation changes no rank: its name is checked
    and that is all.

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
