"""Twin of ``bittern.kernels.boosting``: all weak classifiers as one array of mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TOTAL = 1 << 30


def boost(
    rows: Array,
    positives: Array,
    negatives: Array,
    features: Array,
    thresholds: Array,
    signs: Array,
    errors: Array,
) -> int:
    """Twin of ``boosting.boost``."""
    high = rows[positives].astype(float).mean(axis=0)
    low, spread = (f(rows[negatives].astype(float), axis=0) for f in (np.mean, np.var))
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.nan_to_num((high - low) ** 2 / spread, nan=0.0, posinf=np.inf)
    middle, side = ((high + low) / 2).astype(np.float32), np.where(high >= low, 1.0, -1.0)
    is_positive = np.arange(len(positives) + len(negatives)) < len(positives)
    examples = rows[np.concatenate([positives, negatives])]
    wrong = (side * (examples - middle) > 0) != is_positive[:, None]
    counts = np.where(is_positive, len(positives), len(negatives))
    weights = TOTAL // (2 * counts)
    free = np.ones(rows.shape[1], bool)
    for t in range(len(features)):
        mistakes = weights @ wrong
        order = np.lexsort((-gap, mistakes, ~free))
        best = order[0]
        if not free[best] or 2 * mistakes[best] >= weights.sum():
            return t
        features[t], thresholds[t], signs[t] = best, middle[best], side[best]
        errors[t] = mistakes[best] / weights.sum()
        free[best] = False
        if errors[t] > 0:
            factor = np.where(wrong[:, best], 0.5 / errors[t], 0.5 / (1 - errors[t]))
            weights = np.rint(weights * factor).astype(np.int64)
    return len(features)
