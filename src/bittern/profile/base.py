"""TieProfile: for each query, the number of items at each distance and relevance level."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_type, chosen_queries
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.io.files import check_path, existing_file, reading
from bittern.io.npz import load_arrays, write_arrays
from bittern.io.trec import Qrels, Run, read_qrels, read_run
from bittern.parallel import Progress
from bittern.profile.counting import count_codes
from bittern.profile.database_order import SearchedCodes
from bittern.profile.rankings import count_distances, count_hits, count_run
from bittern.profile.shards import merge, same
from bittern.relevance.base import Relevance

SAVED = ("counts", "gains", "unretrieved", "distances", "query_ids")  # arrays of a file
MOST_ITEMS = 1 << 40  # in one count; sums of larger ones could exceed 64 bits
TREC = "trec_"  # prefix of the arrays in trec_eval's order


@dataclass(frozen=True, eq=False, kw_only=True)
class TieProfile:
    """For each query, the number of items at each distance with each gain: ``counts[q, d, v]``.

    Items at one distance are tied, and an expectation over their orders depends only on these
    counts.  So metrics read this and never a sorted list.  Columns run from nearest to farthest; an
    empty column changes nothing.

    ``distances`` is None if column d *is* the distance d (Hamming codes, small integers).
    Otherwise ``distances[q, d]`` is the distance of column d for query q, ascending, with NaN after
    the last column in use.  ``unretrieved[q, v]`` counts relevant items that are not in the ranking
    (cut at k, or not in a run): recall, AP and NDCG divide by these too.
    """

    counts: NDArray[np.unsignedinteger[Any]]  # (n_queries, n_columns, n_levels)
    gains: NDArray[np.int64]  # (n_levels,), ascending from 0
    unretrieved: NDArray[np.int64]  # (n_queries, n_levels)
    distances: NDArray[np.float64] | None = None  # (n_queries, n_columns)
    query_ids: NDArray[np.str_] | None = None  # (n_queries,)
    trec: TieProfile | None = None  # the same ranking with ties broken as trec_eval does
    searched: SearchedCodes | None = None  # what was counted; not saved, lost when shards are added
    is_compact: bool = False  # whether runs of columns without relevant items were merged

    def __post_init__(self) -> None:
        for name in ("counts", "gains", "unretrieved"):
            check_type(getattr(self, name), np.ndarray, f"TieProfile: {name}")
        c = self.counts
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
        q = len(c)
        u, d, ids = self.unretrieved, self.distances, self.query_ids
        if u.shape != (q, len(self.gains)) or not np.can_cast(u.dtype, np.int64) or (u < 0).any():
            raise InputError(
                "TieProfile: unretrieved must be whole numbers (n_queries, n_levels), "
                "none of them negative."
            )
        largest = max(c.max(initial=0), u.max(initial=0))
        if int(largest) > MOST_ITEMS:
            raise InputError(f"TieProfile: a count of {largest:,} is more than there can be.")
        if d is not None and (
            not isinstance(d, np.ndarray) or d.shape != c.shape[:2] or d.dtype != np.float64
        ):
            raise InputError("TieProfile: distances must be doubles (n_queries, n_columns).")
        if ids is not None and (
            not isinstance(ids, np.ndarray) or ids.shape != (q,) or ids.dtype.kind != "U"
        ):
            raise InputError("TieProfile: query_ids must be strings, one per query.")

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
        counts = count_codes(queries, database, relevance, n_threads, progress)
        searched = SearchedCodes(queries, database, relevance)
        return cls._complete(counts, relevance, searched=searched)

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike | Iterable[ArrayLike],
        relevance: Relevance,
        *,
        compact: bool = False,
        progress: Progress | None = None,
    ) -> TieProfile:
        """Rank by given distances, smaller is nearer; equal distances are ties.

        ``distances`` is ``(n_queries, n_database)``, or an iterable of such blocks for successive
        queries.  For scores, pass their negatives.  Whole numbers from 0 to 65,535 are radii:
        their columns are the distances themselves.

        A real-valued profile has a column for every distinct distance.  ``compact`` merges runs of
        columns without relevant items.  Every rank metric stays the same, and memory is
        proportional to the number of relevant items, but shards cannot be added and radii are lost.
        """
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
        """Profile the hits of a search: ids and distances ``(n_queries, k)``, id -1 for no hit.

        With ``offsets`` both are flat, and the hits of query q are ``offsets[q] … offsets[q + 1]``,
        as a radius search returns them.  Relevant items that were not hit count as unretrieved.
        """
        counts, columns = count_hits(ids, distances, relevance, offsets)
        missing = relevance.totals() - counts.sum(axis=1, dtype=np.int64)
        missing[:, 0] = 0
        return cls(counts=counts, gains=relevance.gains, unretrieved=missing, distances=columns)

    @classmethod
    def from_trec(cls, run: str | os.PathLike[str], qrels: str | os.PathLike[str]) -> TieProfile:
        """Profile a TREC run against TREC relevance judgements, plain or gzipped files.

        Every query of either file is counted: a query without judgements has nothing relevant, a
        query without results has retrieved nothing.  Judgements below 0 mean not relevant.
        """
        return cls.from_run(read_run(run), read_qrels(qrels))

    @classmethod
    def from_run(cls, run: Run, qrels: Qrels) -> TieProfile:
        """Like :meth:`from_trec`, from a run and judgements in memory."""
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
        source = existing_file(path)
        arrays: dict[str, Any] = load_arrays(source)
        fields = {n: a for n, a in arrays.items() if not n.startswith(TREC)}
        trec = {n.removeprefix(TREC): a for n, a in arrays.items() if n.startswith(TREC)}
        if "is_compact" not in fields or "counts" not in fields:
            raise FileError(f"{source}: not a tie profile; it has the arrays {sorted(arrays)}.")
        with reading(source, "tie profile"):
            fields["is_compact"] = bool(fields["is_compact"].item())
        try:
            return cls(**fields, trec=cls(**trec) if trec else None)
        except (TypeError, InputError) as error:
            raise FileError(f"{path}: not a readable tie profile ({error}).") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one ``.npz`` of plain arrays, whole or not at all."""
        if check_path(path).suffix != ".npz":
            raise InputError(f"{path}: save a profile as .npz.")
        arrays: dict[str, Any] = {"is_compact": np.bool_(self.is_compact)}
        for prefix, part in (("", self), (TREC, self.trec)):
            for name in SAVED:
                value = getattr(part, name, None)
                if value is not None:
                    arrays[prefix + name] = value
        write_arrays(path, arrays, compressed=True)

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
        chosen = chosen_queries(queries, self.n_queries, "TieProfile")
        return replace(
            self,
            counts=self.counts[chosen],
            unretrieved=self.unretrieved[chosen],
            distances=None if self.distances is None else self.distances[chosen],
            query_ids=None if self.query_ids is None else self.query_ids[chosen],
            trec=None if self.trec is None else self.trec.take(chosen),
            searched=None if self.searched is None else self.searched.take(chosen),
        )

    def in_database_order(self) -> Iterator[TieProfile]:
        """The same rankings with tied items in the order of the database, as a stable sort gives.

        Yields compact profiles of successive blocks of queries.  Counts alone do not know this
        order, so the profile must come from :meth:`from_codes`; a saved one has lost the codes.
        """
        if self.searched is None:
            raise InputError(
                "metrics: ':database-order' needs the codes, not only their counts; it works on "
                "profiles made by TieProfile.from_codes() that were not saved or added."
            )
        for rows in self.searched.blocks(int(self.relevant.sum(axis=1).max(initial=0))):
            total, relevant = self.total[rows], self.relevant[rows]
            yield replace(
                self,
                counts=self.searched.ranked_counts(rows, total, relevant),
                unretrieved=self.unretrieved[rows],
                query_ids=None if self.query_ids is None else self.query_ids[rows],
                searched=None,
                is_compact=True,
            )

    def __add__(self, other: TieProfile) -> TieProfile:
        """Add the profiles of two shards of a database; the sum is exactly that of the whole."""
        if not isinstance(other, TieProfile):
            return NotImplemented
        return merge(self, other)

    def __radd__(self, other: object) -> TieProfile:
        """``sum(profiles)`` begins with 0."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Equal if the counts at each distance are equal; empty columns do not matter."""
        if not isinstance(other, TieProfile):
            return NotImplemented
        return same(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "distances" if self.distances is None else "distinct distances at most"
        return (
            f"<TieProfile: {self.n_queries:,} queries, {self.counts.shape[1]:,} {kind}, "
            f"gains {self.gains.tolist()}>"
        )

    def _repr_html_(self) -> str:
        from bittern.profile.chart import profile_card

        return profile_card(self)

    @classmethod
    def _complete(cls, counts: NDArray[np.uint32], relevance: Relevance, **more: Any) -> TieProfile:
        """A profile of rankings of the whole database."""
        nothing = np.zeros((relevance.n_queries, relevance.n_levels), np.int64)
        return cls(counts=counts, gains=relevance.gains, unretrieved=nothing, **more)
