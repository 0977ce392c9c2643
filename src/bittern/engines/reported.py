"""Distances that an engine reported: right, wrong, or right by another formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array

SAME = "distance"
ROUNDING = 1e-6  # of single precision, in which most engines report
NO_FORMULA = "no formula that is known"


@dataclass(frozen=True, slots=True)
class ReportedDistances:
    """What the values reported beside the hits are, and how many are something else.

    ``formula`` says how a value follows from the true distance, such as ``"distance"`` or ``"n_bits
    - distance"``: the plain distance if at least half of the values are that; else the formula that
    most values follow, if more than half do.  If none is, ``n_wrong`` counts the values that are
    not the distance.
    """

    n: int  # values that were compared: of known items
    formula: str  # empty if no values were reported
    n_wrong: int

    @property
    def are_right(self) -> bool:
        """Whether distances were reported, and each is the true one."""
        return self.n > 0 and self.formula == SAME and self.n_wrong == 0


def compare_reported(
    values: Float64Array, distances: Float64Array, n_bits: int | None, tolerance: float
) -> ReportedDistances:
    """Compare values with true distances, both flat; NaN where either is unknown.

    ``n_bits`` is None for vectors.
    """
    known = ~np.isnan(values) & ~np.isnan(distances)
    v, d = values[known], distances[known]
    if len(v) == 0:
        return ReportedDistances(0, "", 0)
    agreeing = {
        name: int(_are_close(v, wanted, tolerance).sum())
        for name, wanted in _formulas(v, d, n_bits)
    }
    n, same = len(v), agreeing[SAME]
    if 2 * same >= n:
        return ReportedDistances(n, SAME, n - same)
    best = max(agreeing, key=lambda name: agreeing[name])
    if 2 * agreeing[best] <= n:
        return ReportedDistances(n, NO_FORMULA, n - same)
    return ReportedDistances(n, best, n - agreeing[best])


def _formulas(
    v: Float64Array, d: Float64Array, n_bits: int | None
) -> Iterator[tuple[str, Float64Array]]:
    """Names of formulas, with the values that each would give; the usual ones first."""
    yield SAME, d
    yield "distance squared", d**2
    yield "square root of the distance", np.sqrt(d)
    yield "-distance", -d
    yield "1 / (1 + distance)", 1 / (1 + d)
    if n_bits is None:
        yield "1 - distance", 1 - d
    else:
        yield "n_bits - distance", n_bits - d
        yield "distance / n_bits", d / n_bits
        yield "1 - distance / n_bits", 1 - d / n_bits
        yield "n_bits - 2 * distance", n_bits - 2 * d
    if (d != d[0]).any():  # one distance alone follows any of these
        factor = float(np.median(v[d > 0] / d[d > 0]))
        yield f"{factor:.6g} * distance", factor * d
        constant = float(np.median(v + d))
        yield f"{constant:.6g} - distance", constant - d


def _are_close(values: Float64Array, wanted: Float64Array, tolerance: float) -> NDArray[np.bool_]:
    """Which values are as wanted, up to rounding; of vectors, relative to the largest too."""
    allowed = ROUNDING * np.maximum(1e-3, np.abs(wanted))
    if tolerance:
        allowed = np.maximum(allowed, tolerance * np.abs(wanted).max())
    return np.abs(values - wanted) <= allowed
