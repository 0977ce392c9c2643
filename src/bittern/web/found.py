"""What a search found: items by distance, and how many tie at each distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.index.hits import Hits

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The hits of one query, nearest first; ties are in the order of adding.

    ``ties`` has a pair of distance and count for each distance of a hit: how many items of the
    collection that meet the condition are at that distance.  ``is_cut`` says that k ended in the
    middle of a tie, so that which of these items are hits is arbitrary.  Ranked by vectors, it says
    so of the items that were compared, and ``n_left_out`` how many of these have no vector.
    """

    ids: Ids
    values: NDArray[Any]  # whole distances; real ones or similarities if they were ranked by those
    kind: str = "distance"  # or "similarity": larger is better
    ties: tuple[tuple[int, int], ...] = ()
    is_cut: bool = False
    n_left_out: int = 0

    def __len__(self) -> int:
        return len(self.ids)


def with_ties(ids: Ids, distances: NDArray[Any]) -> Found:
    """Hits that are all items at their distances, as those within a radius are."""
    apart, counts = np.unique(distances, return_counts=True)
    ties = tuple(zip(apart.tolist(), counts.tolist(), strict=True))
    return Found(ids, distances, ties=ties)


def nearest(
    search: Callable[[Codes, int], Hits],
    within: Callable[[Codes, int], Hits],
    queries: Codes,
    k: int,
) -> list[Found]:
    """The k nearest of each query, from functions that find these and all within a radius.

    One more is searched for: if it is as far as the last one, the tie is cut, and its members are
    counted.
    """
    hits = search(queries, k + 1)
    return [_counted(within, queries[q : q + 1], *hits[q], k) for q in range(len(queries))]


def _counted(
    within: Callable[[Codes, int], Hits], query: Codes, ids: Ids, distances: NDArray[Any], k: int
) -> Found:
    found = with_ties(ids[:k], distances[:k])
    if len(ids) <= k or distances[k] != distances[k - 1]:
        return found
    last = int(distances[k - 1])
    n_there = int((within(query, last)[0][1] == last).sum())
    return replace(found, ties=(*found.ties[:-1], (last, n_there)), is_cut=True)
