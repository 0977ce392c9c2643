"""Hits: the ids and distances that a search found."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bittern import notebook
from bittern.checks import INDEX_ERRORS, check_count, check_type
from bittern.errors import BitternError, InputError, PositionError, shown
from bittern.profile import TieProfile
from bittern.relevance import Relevance

NONE = -1  # the id of an empty place
FAR = np.iinfo(np.int32).max  # the distance there; infinity for real distances
MOST_QUERIES = 3  # that a notebook shows


class ItemSource(Protocol):
    """Where items can be looked up, such as a dataset or a collection."""

    def shown(self, ids: NDArray[np.int64]) -> list[notebook.ShownItem]:
        """The items as people see them: labels, and small images if there are any."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Ids and distances of the items found for each query, nearest first.

    Ties are in the order in which the items were added.  A search for the k nearest gives
    ``(n_queries, k)`` arrays; if it found fewer, the last places have id -1 and the largest
    distance.  A search within a radius gives flat arrays, and the hits of query q are
    ``offsets[q] … offsets[q + 1] - 1``.

    Distances are int32 from codes, and real after :func:`bittern.index.rerank`.  Notebooks show the
    hits in bands of one distance, with the images of ``items`` if that is known.

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
    items: ItemSource | None = field(default=None, repr=False, kw_only=True)

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
        items: ItemSource | None = None,
    ) -> Hits:
        """What an index found, without the checks: they take longer than a search of few codes."""
        hits = object.__new__(cls)
        _set_ids(hits, ids)
        _set_distances(hits, distances)
        _set_offsets(hits, offsets)
        _set_items(hits, items)
        return hits

    def with_items(self, items: ItemSource) -> Hits:
        """The same hits; notebooks show them with the labels and images of a dataset or collection.

        The ids must be positions in the dataset, or ids of the collection.
        """
        return Hits.of_index(self.ids, self.distances, self.offsets, items)

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.ids) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Ids and distances of one query, without empty places."""
        try:
            q = range(len(self))[operator.index(query)]
        except INDEX_ERRORS:
            raise PositionError(f"Hits: no query {shown(query)} among {len(self)}.") from None
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

    def bands(self, query: int = 0, most_items: int | None = None) -> dict[str, Any]:
        """The hits of a query by distance, as :func:`bittern.notebook.bands_of` gives them.

        Each band lists at most ``most_items`` items, and only those are looked up.
        """
        ids, distances = self[query]
        _, starts, counts = np.unique(distances, return_index=True, return_counts=True)
        most = len(ids)
        if most_items is not None:
            most = check_count(most_items, "Hits: most_items")
        places = [np.arange(s, s + min(n, most)) for s, n in zip(starts, counts, strict=True)]
        chosen = np.concatenate([np.empty(0, np.intp), *places]).astype(np.intp)
        found = notebook.bands_of(self._shown(ids[chosen]), distances[chosen].tolist())
        for band, count in zip(found["bands"], counts.tolist(), strict=True):
            band["count"] = count
        return found

    def _shown(self, ids: NDArray[np.int64]) -> list[notebook.ShownItem]:
        """Items with labels and images; with ids alone if they cannot be looked up any more."""
        if self.items is not None and len(ids):
            try:
                return self.items.shown(ids)
            except BitternError:
                pass
        return [notebook.ShownItem(id, str(id)) for id in ids.tolist()]

    def _repr_html_(self) -> str:
        """The first queries, each with a box for every distance."""
        parts = []
        for query in range(min(len(self), MOST_QUERIES)):
            parts.append(notebook.paragraph(f"Query {query}") if len(self) > 1 else "")
            parts.append(notebook.draw_bands(self.bands(query, notebook.MOST_ITEMS)))
        if (more := len(self) - MOST_QUERIES) > 0:
            parts.append(notebook.paragraph(f"and {more:,} more quer{'y' if more == 1 else 'ies'}"))
        note = "Items in one box are at the same distance; their order among each other is no rank."
        if self.offsets is None and len(self):
            note += " The farthest box may lack items, because only the nearest were asked for."
        return notebook.card(repr(self)[1:-1], *parts, note=note)


# Fields of a frozen record are set through their slots.
_set_ids, _set_distances, _set_offsets, _set_items = (
    getattr(Hits, name).__set__ for name in ("ids", "distances", "offsets", "items")
)


def _divides(offsets: Any, n: int) -> bool:
    """Whether offsets divide n hits into one part per query."""
    o = offsets
    good = isinstance(o, np.ndarray) and o.dtype == np.int64 and o.ndim == 1 and len(o) > 0
    return bool(good and o[0] == 0 and o[-1] == n and (o[1:] >= o[:-1]).all())
