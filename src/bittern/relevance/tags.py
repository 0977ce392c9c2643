"""Ground truth by tags: relevant if a tag is shared; graded by the number of shared tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_array, row_blocks
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.io.sparse import check_indices
from bittern.kernels import small
from bittern.relevance.base import Relevance

FREE_MASKS = 1 << 28  # bytes of bit masks, however few tags are set
MASK_PER_ENTRY = 1 << 12  # beyond these; columns that nothing has could fill the memory


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class TagRelevance(Relevance):
    """Relevant if a tag is shared; if ``graded``, the gain is the number of shared tags.

    Tags are bit masks.  The database is grouped by distinct masks, so that shared tags are counted
    once for each distinct set of tags instead of once for each item.
    """

    query_masks: NDArray[np.uint64]  # (n_queries, n_mask_words)
    masks: NDArray[np.uint64]  # (n_mask_words, n_sets), the distinct sets of tags
    sets: NDArray[np.intp]  # (n_database,) the set of each item
    graded: bool
    order: NDArray[np.intp]  # (n_database,), grouped by set

    @classmethod
    def build(cls, query_tags: Any, database_tags: Any, graded: bool) -> TagRelevance:
        """Pack the tags into masks and find the distinct sets of the database."""
        query_masks, q_width = _masks(query_tags, "query_tags")
        database_masks, d_width = _masks(database_tags, "database_tags")
        if q_width != d_width:
            raise InputError(
                "Relevance: query_tags and database_tags must have one column for each tag, "
                f"got {q_width} and {d_width} columns."
            )
        masks, sets = _distinct(database_masks)
        most = min(_most_tags(query_masks), _most_tags(masks)) if graded else 1
        return cls(
            n_queries=len(query_masks),
            n_database=len(database_masks),
            gains=np.arange(max(most, 1) + 1),
            query_masks=query_masks,
            masks=np.ascontiguousarray(masks.T),
            sets=sets,
            graded=bool(graded),
            order=np.argsort(sets, kind="stable"),
        )

    def query_order(self) -> NDArray[np.intp]:
        """An order of the queries that puts those with the same relevant items side by side."""
        return np.lexsort(self.query_masks.T)

    def levels_of(self, queries: NDArray[Any], items: NDArray[Any]) -> NDArray[np.intp]:
        """Level of each pair (query, item)."""
        common = self.query_masks[queries] & self.masks.T[self.sets[items]]
        shared = np.bitwise_count(common).sum(axis=-1, dtype=np.intp)
        return shared if self.graded else np.minimum(shared, 1)

    def block(self, queries: slice) -> NDArray[np.intp]:
        """Levels of some queries for the whole database."""
        return self._set_levels(queries)[:, self.sets].astype(np.intp)

    def relevant_to(self, query: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Items relevant to a query, and their levels."""
        levels = self._set_levels(slice(query, query + 1))[0][self.sets]
        items = np.flatnonzero(levels)
        return items, levels[items].astype(np.intp)

    def _set_levels(self, queries: slice) -> NDArray[np.uint16]:
        """Levels of some queries for each distinct set of tags."""
        query_masks = self.query_masks[queries]
        seconds = len(query_masks) * self.masks.size * small.WORD
        if small.is_small(seconds, small.COUNTING):
            return small.shared_tags(query_masks, self.masks, self.graded)
        from bittern.kernels.count import portable

        levels = np.empty((len(query_masks), self.masks.shape[1]), np.uint16)
        portable.shared_tags(query_masks, self.masks, self.graded, levels)
        return levels

    def _all_totals(self) -> NDArray[np.int64]:
        sizes = np.bincount(self.sets, minlength=self.masks.shape[1])
        totals = np.zeros((self.n_queries, self.n_levels), np.int64)
        for rows in row_blocks(self.n_queries, 8 * self.masks.shape[1]):
            levels = self._set_levels(rows)
            for level in range(self.n_levels):
                totals[rows, level] = (levels == level) @ sizes
        return totals

    def _take(self, queries: NDArray[np.intp]) -> TagRelevance:
        return replace(self, query_masks=self.query_masks[queries])

    def _shard(self, start: int, stop: int) -> TagRelevance:
        present, sets = np.unique(self.sets[start:stop], return_inverse=True)
        order = np.argsort(sets, kind="stable")
        return replace(
            self, masks=np.ascontiguousarray(self.masks[:, present]), sets=sets, order=order
        )


def _masks(tags: Any, name: str) -> tuple[NDArray[np.uint64], int]:
    """Bit masks of multi-hot rows, and the number of tags."""
    if hasattr(tags, "tocsr"):
        if len(tags.shape) != 2 or tags.shape[1] == 0:
            raise InputError(f"Relevance: {name} must be 2-D (n, n_tags), got shape {tags.shape}.")
        check_indices(tags, f"Relevance: {name}")
        return _sparse_masks(tags.tocsr(), name), tags.shape[1]
    t = check_array(tags, f"Relevance: {name}")
    if t.ndim != 2 or t.shape[1] == 0:
        hint = "; for class labels use Relevance.from_classes()" if t.ndim == 1 else ""
        raise InputError(f"Relevance: {name} must be 2-D (n, n_tags), got shape {t.shape}{hint}.")
    n_words = -(-t.shape[1] // 64)
    masks = np.zeros((len(t), n_words), np.uint64)
    for w in range(n_words):
        try:
            masks[:, w] = Codes.from_bits(t[:, 64 * w : 64 * w + 64]).words[:, 0]
        except InputError:
            raise InputError(f"Relevance: {name} must be booleans or 0/1.") from None
    return masks, t.shape[1]


def _sparse_masks(tags: Any, name: str) -> NDArray[np.uint64]:
    if not np.isin(tags.data, (0, 1)).all():
        raise InputError(f"Relevance: {name} must be booleans or 0/1.")
    rows = np.repeat(np.arange(tags.shape[0]), np.diff(tags.indptr))[tags.data != 0]
    columns = tags.indices[tags.data != 0].astype(np.uint64)
    n_words = -(-tags.shape[1] // 64)
    if 8 * tags.shape[0] * n_words > FREE_MASKS + MASK_PER_ENTRY * tags.nnz:
        raise InputError(
            f"Relevance: {name} of {tags.shape[0]:,} by {tags.shape[1]:,} have {tags.nnz:,} "
            "entries; leave out tags that nothing has."
        )
    masks = np.zeros((tags.shape[0], n_words), np.uint64)
    np.bitwise_or.at(masks, (rows, columns // 64), np.uint64(1) << columns % np.uint64(64))
    return masks


def _distinct(masks: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """The distinct rows, and for each row its position among them."""
    order = np.lexsort(masks.T)
    ordered = masks[order]
    new = np.ones(len(masks), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    sets = np.empty(len(masks), np.intp)
    sets[order] = np.cumsum(new) - 1
    return ordered[new], sets


def _most_tags(masks: NDArray[np.uint64]) -> int:
    return int(np.bitwise_count(masks).sum(axis=1, dtype=np.int64).max(initial=0))
