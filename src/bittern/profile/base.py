"""TieProfile: how many items of each relevance level lie at each distance, for each query."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_type
from bittern.codes import Codes
from bittern.errors import InputError, PositionError
from bittern.io.trec import Qrels, Run
from bittern.parallel import Progress
from bittern.profile import storage
from bittern.relevance.base import Relevance

__all__ = ["TieProfile"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TieProfile:
    """Per query, how many items of each gain lie at each distance: ``counts[q, d, v]``.

    Items at one distance are tied, and an expectation over their orders depends on these counts
    alone; so metrics read this and never a sorted list.  Columns run from nearest to farthest; an
    empty column changes nothing.

    ``distances`` is None where column d *is* the distance d (Hamming codes, small integers);
    otherwise ``distances[q, d]`` is the distance of column d for query q, ascending, NaN beyond
    the last one in use.  ``unretrieved[q, v]`` counts relevant items that the ranking lacks (cut
    at k, or not in a run): recall, AP and NDCG divide by these too.
    """

    counts: NDArray[np.unsignedinteger[Any]]  # (n_queries, n_columns, n_levels)
    gains: NDArray[np.int64]  # (n_levels,), ascending from 0
    unretrieved: NDArray[np.int64]  # (n_queries, n_levels)
    distances: NDArray[np.float64] | None = None  # (n_queries, n_columns)
    query_ids: NDArray[np.str_] | None = None  # (n_queries,)
    trec: TieProfile | None = None  # the same ranking with ties broken as trec_eval does
    is_compact: bool = False  # runs of columns without relevant items were merged

    def __post_init__(self) -> None:
        for name in ("counts", "gains", "unretrieved"):
            check_type(getattr(self, name), np.ndarray, f"TieProfile: {name}")
        c, q = self.counts, len(self.counts)
        if self.gains.ndim != 1 or self.gains.dtype.kind not in "iu" or len(self.gains) < 2:
            raise InputError(
                f"TieProfile: gains must be at least two whole numbers, got {self.gains.tolist()}."
            )
        if c.ndim != 3 or c.dtype.kind != "u" or c.shape[2] != len(self.gains) or not c.shape[1]:
            raise InputError(
                "TieProfile: counts must be unsigned integers (n_queries, n_columns, n_levels) "
                f"with {len(self.gains)} levels, got {c.dtype} of shape {c.shape}."
            )
        if self.gains[0] != 0 or (np.diff(self.gains) <= 0).any():
            raise InputError(f"TieProfile: gains must ascend from 0, got {self.gains.tolist()}.")
        u, d, ids = self.unretrieved, self.distances, self.query_ids
        if u.shape != (q, len(self.gains)) or u.dtype.kind not in "iu" or (u < 0).any():
            raise InputError(
                "TieProfile: unretrieved must be whole numbers (n_queries, n_levels), "
                "none of them negative."
            )
        if d is not None and (d.shape != c.shape[:2] or d.dtype != np.float64):
            raise InputError("TieProfile: distances must be doubles (n_queries, n_columns).")
        if ids is not None and (ids.shape != (q,) or ids.dtype.kind != "U"):
            raise InputError("TieProfile: query_ids must be strings, one a query.")

    @classmethod
    def from_codes(
        cls,
        queries: Codes,
        database: Codes,
        relevance: Relevance,
        *,
        n_threads: int | None = None,
        progress: Progress | None = None,
    ) -> TieProfile:
        """Compare every query with the whole database; one pass counts distance and relevance."""
        from bittern.profile.codes import count_codes

        counts = count_codes(queries, database, relevance, n_threads, progress)
        return cls._complete(counts, relevance)

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike | Iterable[ArrayLike],
        relevance: Relevance,
        *,
        compact: bool = False,
        progress: Progress | None = None,
    ) -> TieProfile:
        """Rankings by given distances, smaller is nearer; equal distances are ties.

        ``distances`` is ``(n_queries, n_database)``, or an iterable of such blocks for successive
        queries.  Scores are distances with the sign turned.  Whole numbers from 0 to 65,535 are
        radii: their columns are the distances themselves.

        A real-valued profile has a column for every distinct distance.  With ``compact``, runs of
        columns that hold nothing relevant are merged: every rank metric is the same, memory falls
        to the order of the number of relevant items, but shards no longer add up and radii are
        lost.
        """
        from bittern.profile.distances import count_distances

        counts, columns = count_distances(distances, relevance, compact, progress)
        return cls._complete(counts, relevance, distances=columns, is_compact=compact)

    @classmethod
    def from_hits(
        cls,
        ids: ArrayLike,
        distances: ArrayLike,
        relevance: Relevance,
        *,
        offsets: ArrayLike | None = None,
    ) -> TieProfile:
        """Rankings cut by a search: ids and distances ``(n_queries, k)``, id -1 for no hit.

        With ``offsets`` both are flat, and the hits of query q are ``offsets[q] … offsets[q + 1]``,
        as a radius search gives them.  Relevant items that were not hit are counted as unretrieved.
        """
        from bittern.profile.hits import count_hits

        counts, columns = count_hits(ids, distances, relevance, offsets)
        missing = relevance.totals() - counts.sum(axis=1, dtype=np.int64)
        missing[:, 0] = 0
        return cls(counts=counts, gains=relevance.gains, unretrieved=missing, distances=columns)

    @classmethod
    def from_trec(cls, run: str | os.PathLike[str], qrels: str | os.PathLike[str]) -> TieProfile:
        """A TREC run against TREC relevance judgements, plain or gzipped files.

        Every query of either file is there: one without judgements has nothing relevant, one
        without results has retrieved nothing.  Judgements below 0 count as not relevant.
        """
        from bittern.io.trec import read_qrels, read_run

        return cls.from_run(read_run(run), read_qrels(qrels))

    @classmethod
    def from_run(cls, run: Run, qrels: Qrels) -> TieProfile:
        """The same of a run and judgements that are in memory."""
        from bittern.profile.runs import count_run

        counted = count_run(run, qrels)
        common: dict[str, Any] = {
            "gains": counted.gains,
            "unretrieved": counted.unretrieved,
            "query_ids": counted.query_ids,
        }
        in_trec_order = cls(counts=counted.trec_counts, distances=counted.trec_ranks, **common)
        return cls(counts=counted.counts, distances=counted.distances, trec=in_trec_order, **common)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TieProfile:
        """Read what :meth:`save` wrote."""
        fields = storage.read(path)
        trec = fields.pop("trec", None)
        try:
            return cls(**fields, trec=None if trec is None else cls(**trec))
        except (TypeError, InputError) as error:
            raise storage.damaged(path, error) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``.npz``, whole or not at all."""
        storage.write(path, self)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.counts)

    @cached_property
    def total(self) -> NDArray[np.int64]:
        """Items in each column, ``(n_queries, n_columns)``."""
        return self.counts.sum(axis=2, dtype=np.int64)

    @cached_property
    def relevant(self) -> NDArray[np.int64]:
        """Relevant items in each column, ``(n_queries, n_columns)``."""
        return self.counts[:, :, 1:].sum(axis=2, dtype=np.int64)

    @cached_property
    def n_relevant(self) -> NDArray[np.int64]:
        """All relevant items of each query, ``(n_queries,)``, retrieved or not."""
        return self.relevant.sum(axis=1) + self.unretrieved[:, 1:].sum(axis=1)

    @property
    def totals_by_gain(self) -> NDArray[np.int64]:
        """All items of each gain, ``(n_queries, n_levels)``, retrieved or not."""
        return self.counts.sum(axis=1, dtype=np.int64) + self.unretrieved

    def take(self, queries: Any) -> TieProfile:
        """The profile of some queries, chosen by a slice, mask or positions."""
        try:
            chosen = np.atleast_1d(np.arange(self.n_queries)[queries])
        except IndexError as error:
            raise PositionError(
                f"TieProfile: no such queries among {self.n_queries}: {error}."
            ) from None
        return replace(
            self,
            counts=self.counts[chosen],
            unretrieved=self.unretrieved[chosen],
            distances=None if self.distances is None else self.distances[chosen],
            query_ids=None if self.query_ids is None else self.query_ids[chosen],
            trec=None if self.trec is None else self.trec.take(chosen),
        )

    def __add__(self, other: TieProfile) -> TieProfile:
        """The profile over both shards of one database; exactly that of the whole."""
        if not isinstance(other, TieProfile):
            return NotImplemented
        from bittern.profile.shards import merge

        return merge(self, other)

    def __eq__(self, other: object) -> bool:
        """Equal if the same counts stand at the same distances; empty columns do not matter."""
        if not isinstance(other, TieProfile):
            return NotImplemented
        from bittern.profile.shards import same

        return same(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "distances" if self.distances is None else "distinct distances at most"
        return (
            f"<TieProfile: {self.n_queries:,} queries, {self.counts.shape[1]:,} {kind}, "
            f"gains {self.gains.tolist()}>"
        )

    @classmethod
    def _complete(cls, counts: NDArray[np.uint32], relevance: Relevance, **more: Any) -> TieProfile:
        """A profile of rankings that hold the whole database."""
        nothing = np.zeros((relevance.n_queries, relevance.n_levels), np.int64)
        return cls(counts=counts, gains=relevance.gains, unretrieved=nothing, **more)
