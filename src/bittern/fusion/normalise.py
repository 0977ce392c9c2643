"""Ways to make the scores of different sources comparable.

Each takes scores with items along the last axis and treats every row, the scores of one source for
one query, by itself.  NaN, an item that was not retrieved, stays NaN and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.fusion.places import mean_ranks
from bittern.registry import Registry

__all__ = ["NORMALISATIONS", "minmax", "none", "rank", "zscore"]

Normalisation: TypeAlias = Callable[[NDArray[np.floating[Any]]], Float64Array]


def zscore(scores: NDArray[np.floating[Any]]) -> Float64Array:
    r"""Scores of mean 0 and variance 1: :math:`(s - \bar s) / \sigma`.

    The variance is that of the items at hand, divided by their number.  A row of equal scores
    becomes zeros.  Reference: 3.3 of [Yavlinsky-2004].
    """
    s = np.asarray(scores, np.float64)
    n = np.maximum(1, np.count_nonzero(~np.isnan(s), axis=-1, keepdims=True))
    centred = s - np.nansum(s, axis=-1, keepdims=True) / n
    deviation = np.sqrt(np.nansum(centred**2, axis=-1, keepdims=True) / n)
    return _divided(s, centred, deviation)


def minmax(scores: NDArray[np.floating[Any]]) -> Float64Array:
    r"""Scores from 0 to 1: :math:`(s - \min s) / (\max s - \min s)`.

    A row of equal scores becomes zeros.  Reference: [Lee-1997].
    """
    s = np.asarray(scores, np.float64)
    low, high = _extremes(s)
    return _divided(s, s - low, high - low)


def rank(scores: NDArray[np.floating[Any]]) -> Float64Array:
    r"""Places from 1 down to 1/n: :math:`1 - (\mathrm{rank} - 1) / n` of n items retrieved.

    Tied items share the mean of their ranks.
    """
    s = np.asarray(scores, np.float64)
    n = np.maximum(1, np.count_nonzero(~np.isnan(s), axis=-1, keepdims=True))
    return np.where(np.isnan(s), np.nan, 1 - (mean_ranks(s) - 1) / n)


def none(scores: NDArray[np.floating[Any]]) -> Float64Array:
    """The scores as they are."""
    return np.asarray(scores, np.float64)


#: Every normalisation by its name.
NORMALISATIONS: Registry[Normalisation] = Registry(
    "normalisation", {"zscore": zscore, "minmax": minmax, "rank": rank, "none": none}
)


def _divided(scores: Float64Array, part: Float64Array, whole: Float64Array) -> Float64Array:
    """``part / whole``; zeros in rows of equal scores, where rounding may leave a deviation."""
    low, high = _extremes(scores)
    varies = (high > low) & (whole > 0)
    return np.where(varies, part / np.where(varies, whole, 1.0), part * 0.0)


def _extremes(scores: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Least and greatest of each row; rows of nothing but NaN have NaN."""
    low = np.fmin.reduce(scores, axis=-1, keepdims=True)
    high = np.fmax.reduce(scores, axis=-1, keepdims=True)
    return low, high
