"""Hash tables compared with the Hamming ranking: the radius that retrieves as many items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_type
from bittern.errors import InputError
from bittern.metrics import Curve, pr_curve
from bittern.profile import TieProfile
from bittern.tables.surface import NOT_POSSIBLE, TableSurface


@dataclass(frozen=True, slots=True, eq=False)
class RankingComparison:
    r"""Every setting of a surface, and the ranked list cut where it retrieves as many items.

    ``radius[k, l]`` is the least radius within which all queries together retrieve at least as many
    items as the tables do; -1 if the setting is not possible.

    The two retrieve different sets of that size.  For codes of :math:`b` bits and a probe of
    :math:`p`, tables retrieve everything within ``certain_radius[k, l]``, which for segments is
    :math:`L (p + 1) - 1`, and nothing beyond ``farthest[k, l]``, which is :math:`b - K + p`.  So
    few tables of many bits are like a small radius, and many tables of few bits like a large one.

    Reference: section 3.4.3 and figure 3.5 of [Moran-2016].
    """

    surface: TableSurface
    curve: Curve  # micro precision and recall of the ranking, by radius
    radius: NDArray[np.int64]  # (n_k, n_l)
    certain_radius: NDArray[np.int64]  # (n_k, n_l)
    farthest: NDArray[np.int64]  # (n_k, n_l)

    @property
    def precision(self) -> Float64Array:
        """Micro precision of the ranking within each setting's radius, ``(n_k, n_l)``."""
        return np.where(self.radius >= 0, self.curve.precision[self.radius], np.nan)

    @property
    def recall(self) -> Float64Array:
        """Micro recall of the ranking within each setting's radius, ``(n_k, n_l)``."""
        return np.where(self.radius >= 0, self.curve.recall[self.radius], np.nan)


def compare_with_ranking(surface: TableSurface, profile: TieProfile) -> RankingComparison:
    """Find, for each setting of hash tables, the radius that retrieves as many items.

    ``profile`` is :meth:`bittern.TieProfile.from_codes` of the same queries, database and ground
    truth.
    """
    check_type(surface, TableSurface, "compare_with_ranking: surface")
    check_type(profile, TieProfile, "compare_with_ranking: profile")
    n_bits = surface.settings[0].n_bits
    if (
        profile.distances is not None
        or profile.counts.shape[1] != n_bits + 1
        or not np.array_equal(profile.n_relevant, surface.n_relevant)
    ):
        raise InputError(
            "compare_with_ranking: surface and profile must be of the same queries, database and "
            f"ground truth, got {surface!r} and {profile!r}."
        )
    within = np.cumsum(profile.total.sum(axis=0))
    possible = surface.is_possible
    radius = np.searchsorted(within, np.where(possible, surface.retrieved, 0))
    certain, farthest = np.full((2, *possible.shape), NOT_POSSIBLE, np.int64)
    for place in zip(*np.nonzero(possible), strict=True):
        k, n_tables = place
        tables = surface.tables(int(surface.bits_per_table[k]), int(surface.n_tables[n_tables]))
        certain[place], farthest[place] = tables.certain_radius, tables.farthest
    radius = np.where(possible, radius, NOT_POSSIBLE)
    return RankingComparison(surface, pr_curve(profile), radius, certain, farthest)
