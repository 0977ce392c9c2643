"""The weighted sum of an item's scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.sources import (
    Scores,
    check_scores,
    check_weights,
    retrieved,
)

__all__ = ["add_up", "weighted_sum"]


def weighted_sum(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The weighted sum of the scores that sources give each item, :math:`\sum_s w_s z_s`.

    ``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better; z are
    the normalised ones.  ``weights`` must be given: ``(sources,)``, or ``(queries, sources)`` for
    weights of each query's own; they may be negative.  A source that has not retrieved an item
    (NaN) adds nothing, which after ``zscore`` is as much as an average item; NaN comes back where
    no source has it.
    """
    if weights is None:
        raise InputError("weighted-sum: needs weights, one for each source; comb-sum needs none.")
    s = check_scores(scores, "weighted-sum")
    return add_up(s, normalise, check_weights(weights, s, "weighted-sum"))


def add_up(scores: Scores, normalise: str, weights: Float64Array) -> Float64Array:
    """The weighted sum of checked scores, added in the order of the sources."""
    normalised = NORMALISATIONS[normalise]
    total = np.zeros(scores.shape[1:])
    for weight, source in zip(weights, scores, strict=True):
        total += weight * np.nan_to_num(normalised(source), nan=0.0)
    return retrieved(scores, total)
