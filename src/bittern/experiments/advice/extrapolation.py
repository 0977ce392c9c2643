r"""From databases of several sizes to one that is larger than all of them.

Among n items the c candidates of the codes are the share c/n of all.  Let true neighbours and all
other items have scores that are normal after some common transformation.  Then the share s of
neighbours among the candidates follows the binormal curve of signal detection, a line between
:math:`\Phi^{-1}(s)` and :math:`\Phi^{-1}(c/n)`.  Among more items the neighbours
are nearer, which moves the line; for the k nearest,

.. math:: \Phi^{-1}(s) = a + b \, \Phi^{-1}(c / n) + g \, \Phi^{-1}(k / n).

One plane is fitted by least squares to all measured sizes n and numbers of candidates c, each share
weighted by the inverse variance of :math:`\Phi^{-1}(s)` over draws of queries.  That variance is at
least that of half an item found more or less.  Shares of 1 have no finite value, and are left out
if others remain in enough sizes.  The plane does not say where a share is, only how it changes from
the largest measured size on, so a prediction for that size is what was measured.  More candidates
lose no more in a prediction than they did there.  For ground truth by labels or judgements, where a
share may be above 1, s itself is linear in :math:`\log n`, with a line for each c.

The interval is one of prediction.  Queries and splits are drawn with replacement, and each draw has
its own plane and its own share at the largest size.  The *drift* is the root mean square, for each
doubling, of what the plane misses between successive sizes, weighted like the shares.  Student's t,
with as many degrees of freedom as there are sizes, times the drift and the number of doublings to n
is added to each draw.  So shares that do not follow the model, or sizes far from n, widen the
interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from bittern.checks import Float64Array
from bittern.experiments.advice.record import FEWEST_SIZES, Estimate

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
    is_full = shares > 1 - 2 * half  # less than one item was missed
    missed = np.random.default_rng(1).beta(0.5, totals[-1] + 0.5, drawn.shape[1])  # Jeffreys
    drawn[-1, :, is_full[-1]] = ndtri(1 - missed)
    density = np.exp(-np.square(y) / 2) / np.sqrt(2 * np.pi)
    variances = drawn.var(axis=1) + np.square(half / density)
    terms = np.stack([_terms(cuts, size) for size in sizes])
    is_used = ~is_full
    if is_used.any(axis=1).sum() < FEWEST_SIZES:
        is_used[:] = True
    values, moved = _moved(sizes, n, y, drawn, is_used / variances, terms, _terms(cuts, n))
    _lose_no_more(values, y[-1])
    _lose_no_more(moved, drawn[-1].T)
    return [_estimate(v, d, back=ndtr) for v, d in zip(values, moved, strict=True)]


def _lose_no_more(values: Float64Array, measured: Float64Array) -> None:
    """Raise values by number of candidates that fall by more than the measured ones do."""
    for i, fall in enumerate(np.minimum(np.diff(measured, axis=0), 0.0)):
        values[i + 1] = np.maximum(values[i + 1], values[i] + fall)


def predict_ratios(
    sizes: Sequence[int], ratios: Float64Array, draws: Float64Array, n: int
) -> list[Estimate]:
    """The same for shares that may be above 1, each linear in the logarithm of the size."""
    lines = np.stack([np.ones(len(sizes)), np.log(sizes)], axis=1)[:, None]
    out = []
    for y, drawn in zip(ratios.T, draws.transpose(2, 0, 1), strict=True):
        weights = 1 / np.maximum(np.nanvar(drawn, axis=1), LEAST_VARIANCE)
        parts = y[:, None], drawn[:, :, None], weights[:, None]
        values, moved = _moved(sizes, n, *parts, lines, np.array([[1.0, np.log(n)]]))
        out.append(_estimate(values[0], moved[0], back=lambda z: np.maximum(z, 0.0)))
    return out


def _terms(cuts: Sequence[int], n: int) -> Float64Array:
    """What a, b and g are multiplied by, ``(n_cuts, 3)``."""
    z = ndtri(np.minimum(np.asarray(cuts) / n, LARGEST_SHARE))
    return np.stack([np.ones_like(z), z, np.full_like(z, z[0])], axis=1)


def _moved(
    sizes: Sequence[int],
    n: int,
    y: Float64Array,
    drawn: Float64Array,
    weights: Float64Array,
    terms: Float64Array,
    there: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """The values at the largest size, moved to n by a fit, and draws of them ``(n_cuts, n_draws)``.

    ``y`` and ``weights`` are ``(n_sizes, n_cuts)``, ``drawn`` ``(n_sizes, n_draws, n_cuts)``, and
    ``terms`` ``(n_sizes, n_cuts, n_terms)``; ``there`` are the terms at n.
    """
    design, w = terms.reshape(-1, terms.shape[2]), weights.ravel()
    solve = np.linalg.pinv((design.T * w) @ design) @ (design.T * w)  # from values to coefficients
    coefficients, step = solve @ y.ravel(), there - terms[-1]
    changes = step @ (solve @ drawn.transpose(0, 2, 1).reshape(len(design), -1))
    doublings = np.diff(np.log2(sizes))[:, None]
    misses = (np.diff(y, axis=0) - np.diff(terms, axis=0) @ coefficients) / doublings
    with np.errstate(divide="ignore"):
        trust = 1 / (1 / weights[1:] + 1 / weights[:-1])  # of a difference; 0 if one is left out
    drift = np.sqrt((trust * np.square(misses)).sum() / trust.sum()) if trust.any() else 0.0
    errors = np.random.default_rng(0).standard_t(len(sizes), drawn.shape[1])
    spread = drift * np.log2(n / sizes[-1]) * errors
    return y[-1] + step @ coefficients, drawn[-1].T + changes + spread


def _estimate(value: float, values: Float64Array, back: Callable[[Any], Any]) -> Estimate:
    low, high = np.nanpercentile(back(values), [TAIL, 100 - TAIL])
    return Estimate(float(back(value)), float(low), float(high))
