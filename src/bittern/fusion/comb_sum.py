"""CombSUM: the sum of an item's scores."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bittern.checks import Float64Array
from bittern.fusion.sources import check_scores, check_weights
from bittern.fusion.weighted_sum import add_up

__all__ = ["comb_sum"]


def comb_sum(
    scores: ArrayLike, *, normalise: str = "zscore", weights: ArrayLike | None = None
) -> Float64Array:
    r"""The sum of the scores that sources give each item, :math:`\sum_s w_s z_s`.

    ``scores`` is ``(sources, queries, items)`` or ``(sources, items)``, larger is better; z are
    the normalised ones.  Weights, one for each source or a row of them for each query, are 1 if
    not given.  A source that has not retrieved an item (NaN) adds nothing, which after ``zscore``
    is as much as an average item; NaN comes back where no source has it.

    Reference: [Fox-Shaw-1994].
    """
    s = check_scores(scores, "comb-sum")
    return add_up(s, normalise, check_weights(weights, s, "comb-sum"))
