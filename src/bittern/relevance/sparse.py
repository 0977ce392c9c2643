"""Ground truth by lists: for each query, its relevant items and their gains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_array
from bittern.errors import InputError
from bittern.io.sparse import check_indices
from bittern.relevance.base import Relevance

MAX_GAIN = 900  # the sum of 2^900 over any database still fits in a double


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class SparseRelevance(Relevance):
    """Relevant if listed: query q has entries ``offsets[q] … offsets[q + 1] - 1``, ascending."""

    offsets: NDArray[np.int64]  # (n_queries + 1,)
    items: NDArray[np.int64]  # (n_pairs,) database positions
    levels: NDArray[np.uint16]  # (n_pairs,) level of each, at least 1

    @classmethod
    def from_lists(
        cls,
        offsets: NDArray[Any],
        items: NDArray[Any],
        gains: NDArray[Any],
        n_database: int,
    ) -> SparseRelevance:
        """From the lists of a search, ascending for each query; gains of 0 are dropped."""
        known = np.unique(np.append(gains, 0)).astype(np.int64)
        keep = gains > 0
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[keep]
        kept = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(offsets) - 1))))
        return cls(
            n_queries=len(offsets) - 1,
            n_database=n_database,
            gains=known if len(known) > 1 else np.array([0, 1]),
            offsets=kept.astype(np.int64),
            items=items[keep].astype(np.int64),
            levels=np.searchsorted(known, gains[keep]).astype(np.uint16),
        )

    @classmethod
    def build(cls, gains: Any) -> SparseRelevance:
        """From a dense or ``scipy.sparse`` matrix of gains, queries × database."""
        import scipy.sparse

        if not scipy.sparse.issparse(gains):
            gains = check_array(gains, "Relevance: gains")
            if gains.ndim != 2:
                raise InputError(
                    "Relevance: a matrix of gains must be 2-D (n_queries, n_database), "
                    f"got shape {gains.shape}."
                )
            if gains.dtype.kind not in "biuf":
                raise InputError(f"Relevance: gains must be numbers, got dtype {gains.dtype}.")
        elif len(gains.shape) != 2 or gains.dtype.kind not in "biuf":
            raise InputError(
                "Relevance: gains must be real numbers in a 2-D matrix, "
                f"got {gains.dtype} of shape {gains.shape}."
            )
        else:
            check_indices(gains, "Relevance")
        wide = np.float64 if gains.dtype.kind == "f" else np.int64
        matrix = scipy.sparse.csr_array(gains.astype(wide), copy=True)
        matrix.sum_duplicates()
        _check_gains(matrix.data)
        n_database = int(matrix.shape[1])
        return cls.from_lists(matrix.indptr, matrix.indices, matrix.data, n_database)

    def levels_of(self, queries: NDArray[Any], items: NDArray[Any]) -> NDArray[np.intp]:
        """Level of each pair (query, item)."""
        if not len(self.items):
            return np.zeros(np.shape(items), np.intp)
        keys = self._rows() * self.n_database + self.items  # ascending, by construction
        wanted = np.asarray(queries, np.int64) * self.n_database + items
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, self.levels[place], 0).astype(np.intp)

    def block(self, queries: slice) -> NDArray[np.intp]:
        """Levels of some queries for the whole database."""
        start, stop, _ = queries.indices(self.n_queries)
        listed = slice(self.offsets[start], self.offsets[stop])
        levels = np.zeros((stop - start, self.n_database), np.intp)
        rows = np.repeat(np.arange(stop - start), np.diff(self.offsets[start : stop + 1]))
        levels[rows, self.items[listed]] = self.levels[listed]
        return levels

    def relevant_to(self, query: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Items relevant to a query, and their levels."""
        listed = slice(self.offsets[query], self.offsets[query + 1])
        return self.items[listed], self.levels[listed].astype(np.intp)

    def _rows(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_queries, dtype=np.int64), np.diff(self.offsets))

    def _all_totals(self) -> NDArray[np.int64]:
        totals = np.zeros((self.n_queries, self.n_levels), np.int64)
        np.add.at(totals, (self._rows(), self.levels), 1)
        totals[:, 0] = self.n_database - totals.sum(axis=1)
        return totals

    def _take(self, queries: NDArray[np.intp]) -> SparseRelevance:
        sizes = np.diff(self.offsets)[queries]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        chosen = np.repeat(self.offsets[queries], sizes) + inside
        return replace(self, offsets=offsets, items=self.items[chosen], levels=self.levels[chosen])

    def _shard(self, start: int, stop: int) -> SparseRelevance:
        keep = (self.items >= start) & (self.items < stop)
        sizes = np.bincount(self._rows()[keep], minlength=self.n_queries)
        return replace(
            self,
            offsets=np.concatenate(([0], np.cumsum(sizes))),
            items=self.items[keep] - start,
            levels=self.levels[keep],
        )


def _check_gains(gains: NDArray[Any]) -> None:
    if not np.isfinite(gains).all() or (gains < 0).any() or (gains != np.trunc(gains)).any():
        raise InputError(
            "Relevance: gains must be whole numbers, 0 or more; round or bin real-valued gains "
            "to a few levels first."
        )
    if gains.max(initial=0) > MAX_GAIN:
        raise InputError(
            f"Relevance: gains must be at most {MAX_GAIN}, got {int(gains.max())}; "
            "use small whole numbers, one for each level of relevance."
        )
