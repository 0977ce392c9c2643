r"""From databases of several sizes to one that is larger than all of them.

Among n items the c candidates of the codes are the share c/n of all.  Let true neighbours and all
other items have scores that are normal after some common transformation.  Then the share s of
neighbours among the candidates follows the binormal curve of signal detection, a line between
:math:`\Phi^{-1}(s)` and :math:`\Phi^{-1}(c/n)`.  Among more items the neighbours
are nearer, which moves the line; for the k nearest,

.. math:: \Phi^{-1}(s) = a + b \, \Phi^{-1}(c / n) + g \, \Phi^{-1}(k / n).

One plane is fitted by least squares to all measured sizes n and numbers of candidates c, each share
weighted by the inverse variance of :math:`\Phi^{-1}(s)` over draws of queries.  That variance is at
least that of half an item found more or less.  A share of 1 has no finite value, and only says that
the plane is not below the largest one that could be measured.  For ground truth by labels or
judgements, where a share may be above 1, s itself is linear in :math:`\log n`, with a line for each
c.

The interval is one of prediction.  Queries and splits are drawn with replacement, and each draw has
its own plane.  To its value at n an error is added: Student's t, with as many degrees of freedom as
there are sizes, times :math:`\hat\sigma \sqrt{h + v}`.  Here :math:`\hat\sigma^2` is
the weighted residual variance, h the leverage of the point, and v the variance at the largest size.
So shares that do not fit the model, or sizes far from n, widen the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bittern.checks import Float64Array
from bittern.experiments.advice.record import Estimate

TAIL = 2.5  # per cent outside a 95 % interval, at each end
LARGEST_SHARE = 0.9  # of all items that candidates may be on the curve
LEAST_VARIANCE = 1e-12


def predict_shares(
    sizes: Sequence[int],
    cuts: Sequence[int],
    shares: Float64Array,
    draws: Float64Array,
    totals: Float64Array,
    n: int,
) -> list[Estimate]:
    """The share of neighbours among n items, for each number of candidates in ``cuts``.

    Measured ``shares`` are ``(n_sizes, n_cuts)``, ``draws`` of them ``(n_sizes, n_draws, n_cuts)``,
    and ``totals`` ``(n_sizes,)`` how many neighbours there were.
    """
    half = (0.5 / totals)[:, None]
    y = ndtri(np.clip(shares, half, 1 - half))
    drawn = ndtri(np.clip(draws, half[:, None], 1 - half[:, None]))
    density = np.exp(-np.square(y) / 2) / np.sqrt(2 * np.pi)
    variances = drawn.var(axis=1) + np.square(half / density)
    design = np.concatenate([_terms(cuts, size) for size in sizes])
    is_full = (shares > 1 - 2 * half).ravel()  # less than one item was missed
    fit = _Fit(design, y.ravel(), variances.ravel(), len(sizes), is_full)
    flat = drawn.transpose(0, 2, 1).reshape(len(design), -1)  # (n_sizes * n_cuts, n_draws)
    return [
        _estimate(*fit.at(there, flat, own), back=ndtr)
        for there, own in zip(_terms(cuts, n), variances[-1], strict=True)
    ]


def predict_ratios(
    sizes: Sequence[int], ratios: Float64Array, draws: Float64Array, n: int
) -> list[Estimate]:
    """The same for shares that may be above 1, each linear in the logarithm of the size."""
    x = np.log(sizes)
    design = np.stack([np.ones_like(x), x], axis=1)
    out = []
    for y, drawn in zip(ratios.T, draws.transpose(2, 0, 1), strict=True):
        variances = np.maximum(np.nanvar(drawn, axis=1), LEAST_VARIANCE)
        fit = _Fit(design, y, variances, len(sizes), np.zeros(len(x), bool))
        found = fit.at(np.array([1.0, np.log(n)]), drawn, variances[-1])
        out.append(_estimate(*found, back=lambda z: np.maximum(z, 0.0)))
    return out


def _terms(cuts: Sequence[int], n: int) -> Float64Array:
    """What a, b and g are multiplied by, ``(n_cuts, 3)``."""
    z = ndtri(np.minimum(np.asarray(cuts) / n, LARGEST_SHARE))
    return np.stack([np.ones_like(z), z, np.full_like(z, z[0])], axis=1)


class _Fit:
    """Weighted least squares, whose values are weighted sums of what was measured.

    A value that ``is_full`` is only known to be at least so large.  One after the other is left
    out, the one farthest below the fit first, until the fit is above none, or few are left.
    """

    def __init__(
        self,
        design: Float64Array,
        y: Float64Array,
        variances: Float64Array,
        n_sizes: int,
        is_full: NDArray[np.bool_],
    ) -> None:
        weights = 1 / variances
        while True:
            self._inverse = np.linalg.pinv((design.T * weights) @ design)
            self._solve = self._inverse @ (design.T * weights)  # from values to coefficients
            residuals = y - design @ (self._solve @ y)
            below = np.where(is_full & (weights > 0), residuals, 0.0)
            enough = int((weights > 0).sum()) > n_sizes + design.shape[1]
            if not enough or not (below < 0).any():
                break
            weights[below.argmin()] = 0.0
        freedom = max(1, int((weights > 0).sum()) - design.shape[1])
        self._sigma = np.sqrt((np.square(residuals) * weights).sum() / freedom)
        self._y, self._freedom = y, n_sizes

    def at(
        self, there: Float64Array, drawn: Float64Array, own_variance: float
    ) -> tuple[float, Float64Array]:
        """The value at a point, and draws of it with the error of the model."""
        weights = there @ self._solve
        spread = self._sigma * np.sqrt(there @ self._inverse @ there + own_variance)
        errors = np.random.default_rng(0).standard_t(self._freedom, drawn.shape[1])
        return float(weights @ self._y), weights @ drawn + spread * errors


def _estimate(value: float, values: Float64Array, back: Callable[[Any], Any]) -> Estimate:
    low, high = np.nanpercentile(back(values), [TAIL, 100 - TAIL])
    return Estimate(float(back(value)), float(low), float(high))
