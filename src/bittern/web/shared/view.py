"""View: the items at one moment, which are those of a generation and the changes after it.

A view never changes, so any number of threads may search it.  A later one shares the generation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.index.flat_index import FlatIndex
from bittern.index.hits import FAR, NONE, Hits
from bittern.web.found import Found, Ids, nearest, with_ties
from bittern.web.shared.generation import Generation
from bittern.web.shared.tail import Change
from bittern.web.source import count_distances

Mask = NDArray[np.bool_]
FEW = 64  # ids that are looked up one by one among the late items


class Allowed(NamedTuple):
    """Which items of the generation, and which late ones, may be found."""

    first: Mask | None  # None: all
    late: Mask


@dataclass(frozen=True, eq=False)
class View:
    """Items of a generation, of which some are removed, and late items, which came after them."""

    generation: Generation
    n_bits: int
    committed: int  # bytes of the tail that it knows
    alive: Mask | None  # of the generation; None: all
    late_ids: Ids
    late_words: NDArray[np.uint64]
    late_alive: Mask
    late_metadata: list[bytes] = field(repr=False)  # shared with later views, which append to it

    @classmethod
    def of(cls, generation: Generation, n_bits: int) -> View:
        """The items of a generation as it was made."""
        words = np.empty((0, -(-n_bits // 64)), np.uint64)
        none = np.empty(0, np.int64), words, np.empty(0, np.bool_)
        return cls(generation, n_bits, 0, None, *none, [])

    def after(self, changes: Iterable[Change], committed: int) -> View:
        """The view after more changes; to be called once for a view."""
        alive, late_alive = self.alive, self.late_alive.copy()
        ids, words, metadata = [self.late_ids], [self.late_words], self.late_metadata
        for change in changes:
            late_ids = np.concatenate(ids)
            if len(change.removed):
                rows = self._first_rows(change.removed)
                if (rows >= 0).any():
                    alive = np.ones(self.n_first, np.bool_) if alive is None else alive.copy()
                    alive[rows[rows >= 0]] = False
                late_alive[np.isin(late_ids, change.removed)] = False
            ids, words = [late_ids, change.added], [*words, change.words]
            late_alive = np.concatenate([late_alive, np.ones(len(change.added), np.bool_)])
            metadata.extend(change.metadata)
        later = np.concatenate(ids), np.concatenate(words), late_alive
        return View(self.generation, self.n_bits, committed, alive, *later, metadata)

    @property
    def n_first(self) -> int:
        """Items of the generation, removed ones too."""
        return len(self.generation.ids)

    @cached_property
    def count(self) -> int:
        """Number of items."""
        first = self.n_first if self.alive is None else int(np.count_nonzero(self.alive))
        return first + int(np.count_nonzero(self.late_alive))

    @cached_property
    def n_changes(self) -> int:
        """Removed and late items."""
        removed = 0 if self.alive is None else self.n_first - int(np.count_nonzero(self.alive))
        return removed + len(self.late_ids)

    def rows_of(self, ids: Ids) -> Ids:
        """The row of each id, where late items follow those of the generation; -1 if unknown."""
        rows = self._first_rows(ids)
        if self.alive is not None:
            rows = np.where((rows >= 0) & ~self.alive[rows], -1, rows)
        missing = np.flatnonzero(rows < 0)
        if len(missing) and len(self.late_ids):
            rows[missing] = self._late_rows(ids[missing])
        return rows

    def ids_at(self, rows: Ids) -> Ids:
        """The ids of rows."""
        if self.generation.index is None:
            return self.late_ids[rows]
        ids = self.generation.ids[np.minimum(rows, self.n_first - 1)]
        is_late = rows >= self.n_first
        ids[is_late] = self.late_ids[rows[is_late] - self.n_first]
        return ids

    def rows(self) -> Ids:
        """The rows of all items, in the order of adding."""
        first = np.arange(self.n_first) if self.alive is None else np.flatnonzero(self.alive)
        return np.concatenate([first, self.n_first + np.flatnonzero(self.late_alive)])

    def codes(self, rows: Ids) -> Codes:
        """The codes of rows."""
        if self.generation.index is None:
            return Codes(np.ascontiguousarray(self.late_words[rows]), self.n_bits)
        words = self.generation.words[np.minimum(rows, self.n_first - 1)]
        is_late = rows >= self.n_first
        words[is_late] = self.late_words[rows[is_late] - self.n_first]
        return Codes(np.ascontiguousarray(words), self.n_bits)

    def metadata(self, rows: Ids) -> list[bytes]:
        """The metadata of rows, as JSON text."""
        is_late = rows >= self.n_first
        first = iter(self.generation.metadata(rows[~is_late]))
        late = (self.late_metadata[row] for row in (rows[is_late] - self.n_first).tolist())
        return [next(late) if one else next(first) for one in is_late.tolist()]

    def allowed(self, ids: Ids) -> Allowed:
        """The items with these ids, where unknown ones are ignored."""
        first = np.zeros(self.n_first, np.bool_)
        rows = self.rows_of(ids)
        first[rows[(rows >= 0) & (rows < self.n_first)]] = True
        late = np.zeros(len(self.late_ids), np.bool_)
        late[rows[rows >= self.n_first] - self.n_first] = True
        return Allowed(first, late)

    def search(self, queries: Codes, k: int, allowed: Allowed | None) -> list[Found]:
        """The k nearest of each query, with ties."""
        return nearest(
            lambda some, n: self._nearest(some, n, allowed),
            lambda some, radius: self._within(some, radius, allowed),
            queries,
            k,
        )

    def within(self, queries: Codes, radius: int, allowed: Allowed | None) -> list[Found]:
        """All within a radius of each query, with ties."""
        hits = self._within(queries, radius, allowed)
        return [with_ties(*hits[q]) for q in range(len(queries))]

    def histogram(self, query: Codes, allowed: Allowed | None) -> NDArray[np.int64]:
        """How many items are at each distance from one query."""
        masks = allowed or Allowed(self.alive, self.late_alive)
        counts = count_distances(query, self.late_words[masks.late])
        if self.generation.index is not None:
            words = self.generation.words
            counts = counts + count_distances(
                query, words if masks.first is None else words[masks.first]
            )
        return counts

    def _nearest(self, queries: Codes, k: int, allowed: Allowed | None) -> Hits:
        masks = allowed or Allowed(self.alive, self.late_alive)
        parts = []
        if self.generation.index is not None:
            parts.append(self.generation.index.search(queries, k, where=masks.first))
        if masks.late.any():
            late = self._late_index.search(queries, k, where=masks.late)
            parts.append(Hits.of_index(_ids_or_none(late.ids, self.late_ids), late.distances))
        return _merged_nearest(parts, len(queries), k)

    def _within(self, queries: Codes, radius: int, allowed: Allowed | None) -> Hits:
        masks = allowed or Allowed(self.alive, self.late_alive)
        parts = []
        if self.generation.index is not None:
            parts.append(self.generation.index.within(queries, radius, where=masks.first))
        if masks.late.any():
            late = self._late_index.within(queries, radius, where=masks.late)
            ids = _ids_or_none(late.ids, self.late_ids)
            parts.append(Hits.of_index(ids, late.distances, late.offsets))
        return _merged_within(parts, len(queries))

    @cached_property
    def _late_index(self) -> FlatIndex:
        """Of the late items, removed ones too; its ids are their places."""
        return FlatIndex(Codes(self.late_words, self.n_bits))

    def _first_rows(self, ids: Ids) -> Ids:
        if self.generation.index is None:
            return np.full(len(ids), -1, np.int64)
        return self.generation.index.positions_of(ids)

    def _late_rows(self, ids: Ids) -> Ids:
        """Rows of late items by id, -1 if unknown; at most one of those with an id is alive."""
        places = np.flatnonzero(self.late_alive)
        known = self.late_ids[places]
        if len(known) == 0:
            return np.full(len(ids), -1, np.int64)
        if len(ids) <= FEW:
            found = [np.flatnonzero(known == one) for one in ids.tolist()]
            return np.array(
                [self.n_first + places[one[0]] if len(one) else -1 for one in found], np.int64
            )
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
        return np.where(known[order[at]] == ids, self.n_first + places[order[at]], -1)


def _ids_or_none(places: Ids, ids: Ids) -> Ids:
    return np.where(places == NONE, NONE, ids[places])


def _merged_nearest(parts: list[Hits], n_queries: int, k: int) -> Hits:
    """The k nearest of all parts; of equal ones, those of earlier parts come first."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Hits(np.full((n_queries, 0), NONE, np.int64), np.full((n_queries, 0), FAR, np.int32))
    ids = np.concatenate([part.ids for part in parts], axis=1)
    distances = np.concatenate([part.distances for part in parts], axis=1)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Hits.of_index(
        np.take_along_axis(ids, order, axis=1), np.take_along_axis(distances, order, axis=1)
    )


def _merged_within(parts: list[Hits], n_queries: int) -> Hits:
    """The hits of all parts by query and distance; of equal ones, those of earlier parts first."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.sum([part.sizes for part in parts], axis=0, dtype=np.int64, initial=0)
    offsets = np.concatenate([[0], np.cumsum(np.broadcast_to(sizes, n_queries))])
    if not parts:
        return Hits.of_index(np.empty(0, np.int64), np.empty(0, np.int32), offsets)
    query = np.concatenate([np.repeat(np.arange(n_queries), part.sizes) for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    distances = np.concatenate([part.distances for part in parts])
    order = np.lexsort((distances, query))
    return Hits.of_index(ids[order], distances[order], offsets)
