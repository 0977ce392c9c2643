r"""From databases of several sizes to one that is larger than all of them.

Among more items neighbours are closer together, so the share s that codes keep falls with the
number n of items.  The model is a straight line,

.. math:: \log \frac{s}{1 - s} = a + b \log n,

fitted by least squares to the measured sizes; for ground truth by labels or judgements, where a
share may be above 1, s itself is linear in :math:`\log n`.

The interval is one of prediction.  Queries and splits are drawn with replacement, the line is
fitted again to each draw, and an error is added to its value at n: Student's t with m - 2 degrees
of freedom, times the residual standard deviation of the m measured sizes and
:math:`\sqrt{1 + h}`, where h is the leverage of n.  So sizes that do not lie on a line, and sizes
far from n, widen it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.experiments.advice.record import Estimate

FEWEST_SIZES = 3  # two leave nothing to judge the line by
TAIL = 2.5  # per cent outside a 95 % interval, at each end


def predict(
    sizes: list[int],
    shares: Float64Array,
    draws: Float64Array,
    totals: Float64Array,
    n: int,
    *,
    bounded: bool,
) -> list[Estimate]:
    """The share of each of m columns among n items, with its interval.

    ``shares`` are ``(n_sizes, m)``, ``draws`` of them ``(n_sizes, n_draws, m)``, and ``totals``
    ``(n_sizes,)`` how many items a share of 1 stands for; ``bounded`` shares are at most 1.
    """
    x = np.log(sizes)
    weights, leverage = _weights(x, np.log(n))
    y, drawn = shares, draws
    if bounded:
        half = 0.5 / totals  # as in counting half an item; a share of 1 has no logit
        y = _logit(shares, half[:, None])
        drawn = _logit(draws, half[:, None, None])
    fitted = np.stack([_weights(x, at)[0] @ y for at in x])
    freedom = len(x) - 2
    spread = np.sqrt(np.square(y - fitted).sum(axis=0) / freedom * (1 + leverage))
    rng = np.random.default_rng(0)
    errors = rng.standard_t(freedom, draws.shape[1])[:, None] * spread
    values = np.tensordot(weights, drawn, axes=1) + errors
    back = _inverse_logit if bounded else (lambda z: z)
    middle = back(weights @ y)
    low, high = np.nanpercentile(back(values), [TAIL, 100 - TAIL], axis=0)
    return [Estimate(*map(float, three)) for three in zip(middle, low, high, strict=True)]


def _weights(x: Float64Array, at: float) -> tuple[Float64Array, float]:
    """What each point counts for in the value of the least-squares line, and the leverage."""
    gaps = x - x.mean()
    weights = 1 / len(x) + (at - x.mean()) * gaps / np.square(gaps).sum()
    return weights, float(np.square(weights).sum())


def _logit(shares: Float64Array, half: NDArray[np.float64]) -> Float64Array:
    s = np.clip(shares, half, 1 - half)
    return np.asarray(np.log(s / (1 - s)))


def _inverse_logit(z: Float64Array) -> Float64Array:
    return np.asarray(1 / (1 + np.exp(-z)))
