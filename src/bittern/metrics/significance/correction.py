"""Holm's correction: several tests at once, with one chance of error for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array
from bittern.errors import InputError

__all__ = ["Correction", "check_alpha", "holm"]


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Adjusted p-values of a family of ``n`` tests; ``left_out`` more had no p-value."""

    adjusted: Float64Array  # in the order of the p-values; NaN where there was none
    significant: NDArray[np.bool_]  # adjusted <= alpha
    alpha: float
    n: int
    left_out: int


def holm(p_values: ArrayLike, alpha: float = 0.05) -> Correction:
    r"""Holm's step-down correction; the chance of any false discovery is at most ``alpha``.

    With the n p-values in ascending order,

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (n - j + 1) \, p_{(j)})

    A NaN stands for a test that could not be made: it stays NaN, is not significant, and does not
    count in n.  Reference: [Holm-1979].

    >>> holm([0.01, 0.04, 0.03]).adjusted.tolist()
    [0.03, 0.06, 0.06]
    """
    p = _check_p_values(p_values)
    check_alpha(alpha, "holm: alpha")
    n = int((~np.isnan(p)).sum())
    order = np.argsort(p)[:n]  # NaN sorts last
    adjusted = np.full(len(p), np.nan)
    steps = np.minimum(1.0, p[order] * np.arange(n, 0, -1))
    adjusted[order] = np.maximum.accumulate(steps)
    return Correction(adjusted, adjusted <= alpha, alpha, n, len(p) - n)


def check_alpha(alpha: float, name: str) -> None:
    """Refuse a level of significance that is no probability."""
    if not 0 < alpha < 1:
        raise InputError(f"{name} must be between 0 and 1, got {alpha!r}.")


def _check_p_values(p_values: ArrayLike) -> Float64Array:
    p = check_array(p_values, "holm: p_values")
    if p.ndim != 1 or p.dtype.kind not in "iuf":
        raise InputError(f"holm: p_values must be a 1-D array of numbers, got {p.dtype} {p.shape}.")
    if ((p < 0) | (p > 1)).any():
        raise InputError("holm: p_values must lie between 0 and 1, or be NaN.")
    return p.astype(np.float64)
