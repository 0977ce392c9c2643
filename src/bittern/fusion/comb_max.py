"""CombMAX: the greatest of an item's scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.sources import check_scores

__all__ = ["comb_max"]


def comb_max(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The greatest score that a source gives each item, :math:`\max_s z_s`.

    ``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better; z are
    the normalised ones.  Of an item that a source has not retrieved (NaN), the greatest of the
    other sources counts; NaN comes back where no source has it.  There are no weights.

    Reference: [Fox-Shaw-1994].
    """
    if weights is not None:
        raise InputError("comb-max: takes no weights; comb-sum and weighted-sum do.")
    s = check_scores(scores, "comb-max")
    normalised = NORMALISATIONS[normalise]
    fused = np.array(normalised(s[0]))
    for source in s[1:]:
        fused = np.fmax(fused, normalised(source))
    return fused
