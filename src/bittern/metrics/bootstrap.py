"""Bootstrap intervals over queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.metrics.micro import Pooled

__all__ = ["interval", "resampled"]

RESAMPLES = 1000
AT_ONCE = 1 << 22  # draws held in memory


def interval(
    pooled: Pooled, random_state: int = 0, confidence: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of a value when queries are drawn again with replacement.

    Reference: [Efron-Tibshirani-1993], with 1,000 resamples.
    """
    values = resampled(pooled, random_state)
    if np.isnan(values).all():
        return (np.nan, np.nan)
    tail = 100 * (1 - confidence) / 2
    low, high = np.nanpercentile(values, [tail, 100 - tail])
    return float(low), float(high)


def resampled(
    pooled: Pooled, random_state: int = 0, n_resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """The values of ``n_resamples`` draws of the queries with replacement."""
    rng = np.random.default_rng(random_state)
    n = len(pooled.parts)
    return np.concatenate(
        [pooled.value(_weights(rng, rows, n) @ pooled.parts) for rows in _batches(n, n_resamples)]
    )


def _batches(n: int, n_resamples: int) -> list[int]:
    """How many resamples to draw at a time."""
    step = max(1, min(n_resamples, AT_ONCE // max(n, 1)))
    return [min(step, n_resamples - start) for start in range(0, n_resamples, step)]


def _weights(rng: np.random.Generator, rows: int, n: int) -> NDArray[np.float64]:
    """How often each query was drawn, ``(rows, n)``."""
    drawn = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
