"""Fusions that combine an item's scores: CombMIN, CombMAX, CombSUM, CombMNZ and weighted sum.

``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better; NaN marks an
item that a source has not retrieved.  The fused score is NaN where no source has the item.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.fusion.scores import NORMALISATIONS, add_up, check_scores, check_weights


def comb_min(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The least score that a source gives each item, :math:`\min_s z_s`.

    z are the normalised scores.  Sources without the item (NaN) are ignored; NaN if none has it.
    There are no weights.

    Reference: [Fox-Shaw-1994].
    """
    return _extreme(np.fmin, scores, normalise, weights, "comb-min")


def comb_max(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The greatest score that a source gives each item, :math:`\max_s z_s`.

    z are the normalised scores.  Sources without the item (NaN) are ignored; NaN if none has it.
    There are no weights.

    Reference: [Fox-Shaw-1994].
    """
    return _extreme(np.fmax, scores, normalise, weights, "comb-max")


def comb_sum(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The sum of the scores that sources give each item, :math:`\sum_s w_s z_s`.

    z are the normalised scores.  Weights, one for each source or a row of them for each query,
    default to 1.  A source without the item (NaN) adds zero, which after ``zscore`` is the score
    of an average item; NaN if no source has it.

    Reference: [Fox-Shaw-1994].
    """
    s = check_scores(scores, "comb-sum")
    return add_up(s, normalise, check_weights(weights, s, "comb-sum"))


def comb_mnz(
    scores: ArrayLike, *, normalise: str = "minmax", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The sum of an item's scores times the number of sources that retrieved it.

    .. math:: m \sum_s w_s z_s, \qquad m = |\{s : s \text{ has retrieved the item}\}|

    z are the normalised scores.  The default normalisation is ``minmax``, as in [Lee-1997]: a
    negative z-score times m would punish an item for being found by many sources.  A source
    without the item (NaN) adds zero and does not count in m; NaN if no source has it.  If every
    source has every item, the ranking is that of ``comb-sum``.

    References: [Fox-Shaw-1994], [Lee-1997].
    """
    s = check_scores(scores, "comb-mnz")
    found = np.zeros(s.shape[1:])
    for source in s:
        found += ~np.isnan(source)
    return found * add_up(s, normalise, check_weights(weights, s, "comb-mnz"))


def weighted_sum(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The weighted sum of the scores that sources give each item, :math:`\sum_s w_s z_s`.

    It is ``comb_sum`` with required ``weights``: ``(sources,)``, or ``(queries, sources)`` for
    separate weights of each query.  They may be negative.
    """
    if weights is None:
        raise InputError("weighted-sum: needs weights, one for each source; comb-sum needs none.")
    s = check_scores(scores, "weighted-sum")
    return add_up(s, normalise, check_weights(weights, s, "weighted-sum"))


def _extreme(
    choose: np.ufunc, scores: ArrayLike, normalise: str, weights: ArrayLike | None, owner: str
) -> Float64Array:
    if weights is not None:
        raise InputError(f"{owner}: takes no weights; comb-sum and weighted-sum do.")
    s = check_scores(scores, owner)
    normalised = NORMALISATIONS[normalise]
    fused = np.array(normalised(s[0]))
    for source in s[1:]:
        fused = choose(fused, normalised(source))
    return fused
