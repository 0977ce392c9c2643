"""CombMNZ: the sum of an item's scores, times the number of sources that retrieved it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.fusion.sources import check_scores, check_weights
from bittern.fusion.weighted_sum import add_up

__all__ = ["comb_mnz"]


def comb_mnz(
    scores: ArrayLike, *, normalise: str = "minmax", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The sum of an item's scores times the number of sources that have it.

    .. math:: m \sum_s w_s z_s, \qquad m = |\{s : s \text{ has retrieved the item}\}|

    ``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better; z are
    the normalised ones.  Here the normalisation is ``minmax`` if none is named, as in [Lee-1997]:
    a negative z-score times m would punish an item for being found by many.  An item that a source
    has not retrieved (NaN) gets nothing from it and m is smaller; NaN comes back where no source
    has it.  Where every source has every item, the ranking is that of ``comb-sum``.

    References: [Fox-Shaw-1994], [Lee-1997].
    """
    s = check_scores(scores, "comb-mnz")
    found = np.zeros(s.shape[1:])
    for source in s:
        found += ~np.isnan(source)
    return found * add_up(s, normalise, check_weights(weights, s, "comb-mnz"))
