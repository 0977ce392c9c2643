"""Values with intervals, when queries and splits are both drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bittern.checks import Float64Array

__all__ = ["Estimate", "Resampling"]

RESAMPLES = 1000
TAIL = 2.5  # per cent that a 95 % interval leaves out at each end


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


class Resampling:
    r"""Draws, with replacement, of splits and of queries, the same for all that is compared.

    Values are ``(n_splits, n_queries)``, NaN where undefined.  With :math:`w_s` and :math:`v_q` how
    often split s and query q were drawn, a share is

    .. math:: \frac{\sum_{s, q} w_s v_q \, c_{sq}}{\sum_{s, q} w_s v_q \, f_{sq}}

    of codes' values c by floats' values f: a query's two values are drawn together.  The interval
    is cut at the 2.5 and 97.5 per cent of 1,000 draws.  With one split, w is 1.

    Reference: [Owen-2007] for drawing rows and columns, [Efron-Tibshirani-1993] for the interval.
    """

    def __init__(self, n_splits: int, n_queries: int, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        self._splits = _times_drawn(rng, n_splits)
        self._queries = _times_drawn(rng, n_queries)

    def share(self, codes: Float64Array, floats: Float64Array) -> Estimate:
        """The mean of codes' values by that of floats' values, where both are defined."""
        defined = ~np.isnan(codes) & ~np.isnan(floats)
        part, whole = np.where(defined, codes, 0.0), np.where(defined, floats, 0.0)
        if not whole.sum() > 0:
            return Estimate(np.nan, np.nan, np.nan)
        sums = self._sums(whole)
        shares = np.divide(self._sums(part), sums, out=np.full(len(sums), np.nan), where=sums > 0)
        low, high = np.nanpercentile(shares, [TAIL, 100 - TAIL])
        return Estimate(float(part.sum() / whole.sum()), float(low), float(high))

    def mean(self, values: Float64Array) -> Estimate:
        """The mean of the values that are defined."""
        return self.share(values, np.ones_like(values))

    def _sums(self, values: Float64Array) -> Float64Array:
        return ((self._splits @ values) * self._queries).sum(axis=1)


def _times_drawn(rng: np.random.Generator, n: int) -> Float64Array:
    """How often each of n was drawn, ``(RESAMPLES, n)``."""
    drawn = rng.integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * n).reshape(-1, n).astype(np.float64)
