"""Box plots of the runs of a method under each order of tied items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

REACH = 1.5  # lengths of the box that a whisker spans at most


@dataclass(frozen=True, slots=True)
class Box:
    """Quartiles, the ends of the whiskers, and the values beyond them.

    Quartiles are interpolated linearly between the sorted values.  A whisker ends at the last value
    within 1.5 times the height of the box; values beyond are outliers.  Reference: [Tukey-1977].
    """

    low: float
    first: float
    median: float
    third: float
    high: float
    outliers: tuple[float, ...] = ()


def box_of(values: Sequence[float]) -> Box | None:
    """The box of the defined values; None if there are none."""
    known = np.sort([value for value in values if not np.isnan(value)])
    if not len(known):
        return None
    first, median, third = np.quantile(known, [0.25, 0.5, 0.75])
    reach = REACH * (third - first)
    inside = (known >= first - reach) & (known <= third + reach)
    return Box(
        low=float(known[inside][0]),
        first=float(first),
        median=float(median),
        third=float(third),
        high=float(known[inside][-1]),
        outliers=tuple(known[~inside].tolist()),
    )
