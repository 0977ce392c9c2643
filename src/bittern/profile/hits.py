"""Counts from what a search returned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_array, check_same_length, check_type
from bittern.errors import InputError
from bittern.profile.tallies import Columns, Counts, are_radii, refuse_merging, tally, tally_values
from bittern.relevance.base import Relevance

__all__ = ["count_hits"]


def count_hits(
    ids: ArrayLike, distances: ArrayLike, relevance: Relevance, offsets: ArrayLike | None
) -> tuple[Counts, Columns]:
    """Counts of what a search returned, and the distance of each column."""
    check_type(relevance, Relevance, "TieProfile: relevance")
    query, item, distance = _flat_hits(ids, distances, relevance, offsets)
    refuse_merging(distance)
    if relevance.excluded is not None:
        keep = item != relevance.excluded[query]
        query, item, distance = query[keep], item[keep], distance[keep]
    keys = np.sort(query * relevance.n_database + item)
    if (np.diff(keys) == 0).any():
        twice = keys[:-1][np.diff(keys) == 0][0]
        raise InputError(
            f"TieProfile: item {twice % relevance.n_database} was hit twice by query "
            f"{twice // relevance.n_database}; a ranking holds an item once."
        )
    levels = relevance.levels_of(query, item)
    shape = relevance.n_queries, relevance.n_levels
    if are_radii(distance):
        return tally(query, distance.astype(np.intp), levels, *shape), None
    return tally_values(query, distance.astype(np.float64), levels, *shape)


def _flat_hits(
    ids: ArrayLike, distances: ArrayLike, relevance: Relevance, offsets: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Hits as flat (query, item, distance), without the empty places."""
    i, d = check_array(ids, "TieProfile: ids"), check_array(distances, "TieProfile: distances")
    if i.shape != d.shape or i.ndim != (2 if offsets is None else 1):
        raise InputError(
            "TieProfile: ids and distances must be of one shape, (n_queries, k) or flat with "
            f"offsets, got {i.shape} and {d.shape}."
        )
    if i.dtype.kind not in "iu" and i.size:
        raise InputError(f"TieProfile: ids must be whole numbers, got {i.dtype}.")
    if d.dtype.kind not in "iuf":
        raise InputError(f"TieProfile: distances must be numbers, got {d.dtype}.")
    if offsets is None:
        _check_rows(len(i), relevance)
        sizes = np.full(len(i), i.shape[1])
    else:
        sizes = _sizes(offsets, i.size, relevance)
    query, i, d = np.repeat(np.arange(len(sizes)), sizes), i.ravel().astype(np.intp), d.ravel()
    there = i != -1
    query, i, d = query[there], i[there], d[there]
    if ((i < 0) | (i >= relevance.n_database)).any():
        raise InputError(
            f"TieProfile: ids must lie in [0, {relevance.n_database}), or be -1 for none."
        )
    if d.dtype.kind == "f" and np.isnan(d).any():
        raise InputError("TieProfile: distances must not be NaN.")
    return query, i, d


def _sizes(offsets: ArrayLike, n: int, relevance: Relevance) -> NDArray[np.int64]:
    """Hits of each query."""
    o = check_array(offsets, "TieProfile: offsets")
    if o.ndim == 1 and o.dtype.kind in "iu" and len(o):
        _check_rows(len(o) - 1, relevance)
        sizes: NDArray[np.int64] = o[1:].astype(np.int64) - o[:-1].astype(np.int64)
        if o[0] == 0 and o[-1] == n and (sizes >= 0).all():
            return sizes
    raise InputError(f"TieProfile: offsets must ascend from 0 to {n}, in whole numbers.")


def _check_rows(n: int, relevance: Relevance) -> None:
    check_same_length(n, relevance.n_queries, "TieProfile: rows of hits and queries")
