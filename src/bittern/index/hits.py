"""Hits: the ids and distances that a search found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_type
from bittern.errors import InputError, PositionError
from bittern.profile import TieProfile
from bittern.relevance import Relevance

NONE = -1  # the id of an empty place
FAR = np.iinfo(np.int32).max  # the distance there; infinity for real distances


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Ids and distances of the items found for each query, nearest first.

    Ties are in the order in which the items were added.  A search for the k nearest gives
    ``(n_queries, k)`` arrays; if it found fewer, the last places have id -1 and the largest
    distance.  A search within a radius gives flat arrays, and the hits of query q are
    ``offsets[q] … offsets[q + 1] - 1``.

    Distances are int32 from codes, and real after :func:`bittern.index.rerank`.

    >>> import bittern as bt
    >>> database = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
    >>> hits = bt.FlatIndex(database).search(bt.Codes.from_bits([[0, 0, 0]]), k=2)
    >>> hits
    <2 hits of 1 query>
    >>> hits.to_lists()
    [[(0, 1), (1, 2)]]
    """

    ids: NDArray[np.int64]
    distances: NDArray[Any]
    offsets: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in ("ids", "distances"):
            check_type(getattr(self, name), np.ndarray, f"Hits: {name}")
        i, d, o = self.ids, self.distances, self.offsets
        if i.dtype != np.int64 or d.dtype.kind not in "if":
            raise InputError(
                "Hits: ids must be int64 and distances whole or real numbers, "
                f"got {i.dtype} and {d.dtype}."
            )
        if i.shape != d.shape or i.ndim != (2 if o is None else 1):
            raise InputError(
                "Hits: ids and distances must be of one shape, (n_queries, k) or flat with "
                f"offsets, got {i.shape} and {d.shape}."
            )
        if o is not None and not _divides(o, len(i)):
            raise InputError(f"Hits: offsets must be int64 that ascend from 0 to {len(i)}.")

    @classmethod
    def of_index(
        cls,
        ids: NDArray[np.int64],
        distances: NDArray[Any],
        offsets: NDArray[np.int64] | None = None,
    ) -> Hits:
        """What an index found, without the checks: they take longer than a search of few codes."""
        hits = object.__new__(cls)
        _set_ids(hits, ids)
        _set_distances(hits, distances)
        _set_offsets(hits, offsets)
        return hits

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.ids) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Ids and distances of one query, without empty places."""
        if not -len(self) <= query < len(self):
            raise PositionError(f"Hits: no query {query} among {len(self)}.")
        q = query % len(self)
        if self.offsets is not None:
            place: Any = slice(self.offsets[q], self.offsets[q + 1])
            return self.ids[place], self.distances[place]
        found = self.ids[q] != NONE
        return self.ids[q, found], self.distances[q, found]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of hits of each query."""
        if self.offsets is not None:
            return np.diff(self.offsets)
        return (self.ids != NONE).sum(axis=1, dtype=np.int64)

    def to_lists(self) -> list[list[tuple[int, Any]]]:
        """The hits of each query as pairs of id and distance."""
        pairs = (self[q] for q in range(len(self)))
        return [list(zip(i.tolist(), d.tolist(), strict=True)) for i, d in pairs]

    def profile(self, relevance: Relevance) -> TieProfile:
        """The tie profile of this ranking; ids must be positions in the relevance's database."""
        return TieProfile.from_hits(self.ids, self.distances, relevance, offsets=self.offsets)

    def __repr__(self) -> str:
        n = len(self)
        return f"<{self.sizes.sum():,} hits of {n:,} {'query' if n == 1 else 'queries'}>"


# Fields of a frozen record are set through their slots.
_set_ids, _set_distances, _set_offsets = (
    getattr(Hits, name).__set__ for name in ("ids", "distances", "offsets")
)


def _divides(offsets: Any, n: int) -> bool:
    """Whether offsets divide n hits into one part per query."""
    o = offsets
    good = isinstance(o, np.ndarray) and o.dtype == np.int64 and o.ndim == 1 and len(o) > 0
    return bool(good and o[0] == 0 and o[-1] == n and (o[1:] >= o[:-1]).all())
