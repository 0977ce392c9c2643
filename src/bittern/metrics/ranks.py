"""What rank metrics read off a profile: counts per tie, cut-offs, and ties in a stated order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.errors import InputError
from bittern.parallel import run_blocks
from bittern.profile import TieProfile

__all__ = ["break_ties", "cutoffs_of", "each_query", "inside_radius", "ratio"]

EVERYTHING = np.iinfo(np.int64).max
BLOCK = 1 << 20  # octets of counts that one thread takes at a time


def cutoffs_of(profile: TieProfile, cutoff: int | None) -> NDArray[np.int64]:
    """The same cut-off for every query; all ranks for None."""
    return np.full(profile.n_queries, EVERYTHING if cutoff is None else cutoff, np.int64)


def each_query(
    kernel: Callable[..., None],
    profile: TieProfile,
    cutoff: int | NDArray[np.int64] | None,
    *more: object,
) -> NDArray[np.float64]:
    """A kernel's value for each query, over threads; a cut-off may differ between queries."""
    cutoffs = cutoff if isinstance(cutoff, np.ndarray) else cutoffs_of(profile, cutoff)
    total, relevant, out = profile.total, profile.relevant, np.empty(profile.n_queries)

    def work(rows: slice) -> None:
        kernel(total[rows], relevant[rows], cutoffs[rows], *more, out[rows])

    run_blocks(work, row_blocks(len(out), 8 * total.shape[1], BLOCK))
    return out


def inside_radius(profile: TieProfile, radius: float) -> NDArray[np.bool_]:
    """Which columns lie within the radius, it included; broadcasts to (n_queries, n_columns)."""
    if profile.is_compact:
        raise InputError(
            "metrics: a compact profile has lost its radii; make it with compact=False."
        )
    if profile.distances is None:
        return (np.arange(profile.counts.shape[1]) <= radius)[None]
    return profile.distances <= radius


def break_ties(profile: TieProfile, rule: str | None) -> TieProfile:
    """The profile with its ties broken; each item of a broken tie is ranked by its gain.

    ``optimistic`` puts the larger gains of a tie first, ``pessimistic`` last: every column becomes
    one column for each gain.  ``trec`` is the order of trec_eval, which runs from files have.
    """
    if rule is None:
        return profile
    if rule == "trec":
        if profile.trec is None:
            raise InputError(
                "metrics: ':trec' needs document ids to break ties by; it works on profiles made "
                "by TieProfile.from_trec()."
            )
        return profile.trec
    n_queries, n_columns, n_levels = profile.counts.shape
    order = range(n_levels - 1, -1, -1) if rule == "optimistic" else range(n_levels)
    split = np.zeros((n_queries, n_columns, n_levels, n_levels), profile.counts.dtype)
    for place, level in enumerate(order):
        split[:, :, place, level] = profile.counts[:, :, level]
    distances = profile.distances
    return replace(
        profile,
        counts=split.reshape(n_queries, n_columns * n_levels, n_levels),
        distances=None if distances is None else np.repeat(distances, n_levels, axis=1),
        trec=None,
    )


def ratio(part: NDArray[np.float64], whole: NDArray[np.number]) -> NDArray[np.float64]:
    """``part / whole``, NaN where ``whole`` is zero."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
