"""Root mean square error of predicted similarities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import check_array
from bittern.errors import InputError


def rmse(predicted: ArrayLike, true: ArrayLike) -> float:
    r"""Root mean square error :math:`\sqrt{\frac1n \sum_i (v'_i - v_i)^2}`, as in the lecture.

    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    p, t = check_array(predicted, "rmse: predicted"), check_array(true, "rmse: true")
    if p.dtype.kind not in "biuf" or t.dtype.kind not in "biuf":
        raise InputError(f"rmse: predicted and true must be numbers, got {p.dtype} and {t.dtype}.")
    p, t = p.astype(np.float64), t.astype(np.float64)
    if p.shape != t.shape or p.size == 0:
        raise InputError(
            "rmse: predicted and true must have the same shape, not empty, "
            f"got {p.shape} and {t.shape}."
        )
    if not (np.isfinite(p).all() and np.isfinite(t).all()):
        raise InputError("rmse: predicted and true must be finite.")
    with np.errstate(over="ignore"):
        mean = np.mean((p - t) ** 2)
    if not np.isfinite(mean):
        raise InputError("rmse: the squares of the differences overflow doubles.")
    return float(np.sqrt(mean))
