"""Precision-recall curves of a profile, as records keep them."""

from __future__ import annotations

import numpy as np

from bittern.metrics import Curve, interpolated_pr_curve, pr_curve
from bittern.profile import TieProfile

__all__ = ["curves_of"]

MOST_POINTS = 257  # of a curve over real distances


def curves_of(profile: TieProfile) -> dict[str, Curve]:
    """The interpolated curve, and the one over radii where the profile has them."""
    curves = {"interpolated": interpolated_pr_curve(profile)}
    if not profile.is_compact:
        curves["micro"] = _thinned(pr_curve(profile))
    return curves


def _thinned(curve: Curve) -> Curve:
    """The curve with no more points than a image can show."""
    if len(curve) <= MOST_POINTS:
        return curve
    kept = np.unique(np.linspace(0, len(curve) - 1, MOST_POINTS).astype(np.intp))
    radius = None if curve.radius is None else curve.radius[kept]
    return Curve(curve.recall[kept], curve.precision[kept], radius)
