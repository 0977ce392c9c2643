"""Precision-recall curves: micro over radius, and interpolated and averaged over queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array, check_type
from bittern.errors import InputError
from bittern.metrics.precision import ratio
from bittern.profile import TieProfile

ELEVEN = np.arange(11) / 10  # recall 0, 0.1, …, 1


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Precision against recall; ``radius`` is the distance of each point, None if interpolated."""

    recall: Float64Array
    precision: Float64Array
    radius: Float64Array | None = None

    def __len__(self) -> int:
        return len(self.recall)


def pr_curve(profile: TieProfile) -> Curve:
    r"""Micro-averaged precision and recall within each radius 0 … b.

    True positives, false positives and false negatives are summed over queries first (eqs. 3.8,
    3.9 of [Moran-2016]).  Precision is NaN where nothing is retrieved.  For real distances the
    radii are the distinct distances of all queries.
    """
    check_type(profile, TieProfile, "pr_curve: profile")
    radius, total, found = _pooled_by_radius(profile)
    retrieved, hits = np.cumsum(total), np.cumsum(found)
    relevant = np.full(len(hits), profile.n_relevant.sum())
    return Curve(ratio(hits, relevant), ratio(hits, retrieved), radius)


def interpolated_pr_curve(profile: TieProfile, recalls: ArrayLike = ELEVEN) -> Curve:
    r"""Interpolated precision at given recalls, averaged over the queries with relevant items.

    The points :math:`(R_i, P_i)` of a query are where its recall grows: the end of every tie with a
    relevant item, because an ε-query returns whole ties.  Then :math:`p(r) = P_i` for
    :math:`R_{i-1} < r \le R_i`, with :math:`R_0 = 0`, and :math:`p(0) = P_1`.  The precision is 0
    at a recall that the ranking never reaches.
    """
    check_type(profile, TieProfile, "interpolated_pr_curve: profile")
    levels = _check_recalls(recalls)
    values = _interpolated(profile, levels)
    defined = profile.n_relevant > 0
    mean = values[defined].mean(axis=0) if defined.any() else np.full(len(levels), np.nan)
    return Curve(levels, mean)


def interpolated_ap(profile: TieProfile) -> Float64Array:
    """Mean of interpolated precision at recall 0, 0.1, …, 1; NaN if nothing is relevant."""
    return _interpolated(profile, ELEVEN).mean(axis=1)


def _interpolated(profile: TieProfile, recalls: Float64Array) -> Float64Array:
    """Precision of each query at each recall, ``(n_queries, n_recalls)``."""
    found = np.cumsum(profile.relevant, axis=1)
    precision = ratio(found.astype(np.float64), np.cumsum(profile.total, axis=1))
    # Recall r is reached by the first whole tie with ceil(r R) relevant items, at least one.
    wanted = np.multiply.outer(profile.n_relevant, recalls)
    wanted = np.maximum(np.ceil(wanted * (1 - 1e-12) - 1e-9), 1)  # because 0.3 R may round up
    values = np.empty(wanted.shape)
    rows = np.arange(profile.n_queries)
    for j in range(len(recalls)):
        reached = found >= wanted[:, j, None]
        values[:, j] = np.where(reached[:, -1], precision[rows, reached.argmax(axis=1)], 0.0)
    values[profile.n_relevant == 0] = np.nan
    return values


def _pooled_by_radius(
    profile: TieProfile,
) -> tuple[Float64Array, NDArray[np.int64], NDArray[np.float64]]:
    """Radii ascending, with items and relevant items at each, summed over queries."""
    total, relevant = profile.total, profile.relevant
    if profile.distances is None:
        radius = np.arange(total.shape[1], dtype=np.float64)
        return radius, total.sum(axis=0), relevant.sum(axis=0).astype(np.float64)
    if profile.is_compact:
        raise InputError(
            "pr_curve: a compact profile has lost its radii; make it with compact=False."
        )
    used = total > 0
    radius, place = np.unique(profile.distances[used], return_inverse=True)
    items = np.bincount(place, total[used], minlength=len(radius)).astype(np.int64)
    return (
        radius,
        items,
        np.bincount(place, relevant[used], minlength=len(radius)).astype(np.float64),
    )


def _check_recalls(recalls: ArrayLike) -> Float64Array:
    levels = np.atleast_1d(check_array(recalls, "interpolated_pr_curve: recalls"))
    if levels.dtype.kind not in "iuf":
        raise InputError(f"interpolated_pr_curve: recalls must lie in [0, 1], got {recalls!r}.")
    levels = levels.astype(np.float64)
    if levels.ndim != 1 or not len(levels) or not ((levels >= 0) & (levels <= 1)).all():
        raise InputError(f"interpolated_pr_curve: recalls must lie in [0, 1], got {recalls!r}.")
    return levels
