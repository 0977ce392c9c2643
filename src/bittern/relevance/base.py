"""Relevance: what every kind of ground truth can be asked, and how each kind is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count, check_positions
from bittern.errors import InputError, PositionError

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Relevance"]

MEMORY = 1 << 28  # octets that building a sparse ground truth may use at once


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Relevance(ABC):
    """Which of ``n_database`` items are relevant to which of ``n_queries`` queries, and how much.

    A gain is a whole number; 0 means not relevant.  The distinct gains are in ``gains``, ascending
    and beginning with 0, and a *level* is a position in that array.  No kind of ground truth is
    ever held as a queries × database matrix.

    ``excluded[q]``, if given, is the database item that *is* query q (or -1): it is neither
    retrieved nor counted.  :meth:`excluding` sets it.
    """

    n_queries: int
    n_database: int
    gains: NDArray[np.int64]  # (n_levels,)
    excluded: NDArray[np.int64] | None = None  # (n_queries,)

    @staticmethod
    def from_classes(query_labels: ArrayLike, database_labels: ArrayLike) -> Relevance:
        """Relevant if of the same class; labels are integers or strings, one a row."""
        from bittern.relevance.classes import ClassRelevance

        return ClassRelevance.build(query_labels, database_labels)

    @staticmethod
    def from_tags(query_tags: Any, database_tags: Any, graded: bool = False) -> Relevance:
        """Relevant if a tag is shared; if ``graded``, the gain is the number of shared tags.

        Tags are multi-hot rows ``(n, n_tags)`` of booleans or 0/1, dense or ``scipy.sparse``.
        """
        from bittern.relevance.tags import TagRelevance

        return TagRelevance.build(query_tags, database_tags, graded)

    @staticmethod
    def from_ball(
        query_vectors: ArrayLike,
        database_vectors: ArrayLike,
        radius: float,
        *,
        metric: str = "euclidean",
        memory: int = MEMORY,
    ) -> Relevance:
        """Relevant if at most ``radius`` away, as :func:`ball_radius` finds it.

        ``metric`` is ``"euclidean"``, or ``"cosine"`` for 1 - cos.

        Reference: eq. 3.1 of [Moran-2016].
        """
        return Relevance.from_thresholds(
            query_vectors, database_vectors, [radius], [1], metric=metric, memory=memory
        )

    @staticmethod
    def from_neighbours(
        query_vectors: ArrayLike,
        database_vectors: ArrayLike,
        k: int,
        *,
        metric: str = "euclidean",
        memory: int = MEMORY,
    ) -> Relevance:
        """Relevant if among the ``k`` nearest; equal distances are taken by database position."""
        from bittern.relevance.neighbours import nearest

        return nearest(query_vectors, database_vectors, k, metric, memory)

    @staticmethod
    def from_thresholds(
        query_vectors: ArrayLike,
        database_vectors: ArrayLike,
        radii: Sequence[float] | NDArray[Any],
        gains: Sequence[int] | NDArray[Any],
        *,
        metric: str = "euclidean",
        memory: int = MEMORY,
    ) -> Relevance:
        """Graded balls: the gain of an item is that of the smallest ball that holds it.

        ``gains[i]`` belongs to ``radii[i]``; a smaller ball must have a larger gain.
        """
        from bittern.relevance.neighbours import within

        return within(query_vectors, database_vectors, radii, gains, metric, memory)

    @staticmethod
    def from_matrix(
        gains: NDArray[Any] | scipy.sparse.sparray | scipy.sparse.spmatrix,
    ) -> Relevance:
        """Gains as a ``(n_queries, n_database)`` matrix of whole numbers ≥ 0, dense or sparse."""
        from bittern.relevance.sparse import SparseRelevance

        return SparseRelevance.build(gains)

    @property
    def n_levels(self) -> int:
        """Number of distinct gains, 0 included."""
        return len(self.gains)

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """How many items are relevant to each query."""
        return self.totals()[:, 1:].sum(axis=1)

    def totals(self) -> NDArray[np.int64]:
        """Items of each level for each query, ``(n_queries, n_levels)``, without excluded ones."""
        totals = self._all_totals()
        if self.excluded is not None:
            rows = np.flatnonzero(self.excluded >= 0)
            np.subtract.at(totals, (rows, self.levels_of(rows, self.excluded[rows])), 1)
        return totals

    def excluding(self, positions: ArrayLike) -> Self:
        """The same ground truth where query q is database item ``positions[q]``, or none if -1.

        For leave-one-out, where the queries are the database: ``excluding(np.arange(n))``.
        """
        p = check_positions(positions, "Relevance: positions", self.n_database, none=-1)
        if len(p) != self.n_queries:
            raise InputError(
                f"Relevance: positions must name one item for each of {self.n_queries} queries, "
                f"got {len(p)}."
            )
        return replace(self, excluded=p)

    def take(self, queries: Any) -> Self:
        """The ground truth of some queries, chosen by a slice or positions."""
        try:
            chosen = np.atleast_1d(np.arange(self.n_queries)[queries])
        except IndexError as error:
            raise PositionError(
                f"Relevance: no such queries among {self.n_queries}: {error}."
            ) from None
        excluded = None if self.excluded is None else self.excluded[chosen]
        return replace(self._take(chosen), n_queries=len(chosen), excluded=excluded)

    def shard(self, start: int, stop: int) -> Self:
        """The ground truth over database items ``start`` … ``stop - 1`` alone."""
        start = check_count(start, "Relevance: start", 0, self.n_database)
        stop = check_count(stop, "Relevance: stop", start, self.n_database)
        excluded = self.excluded
        if excluded is not None:
            inside = (excluded >= start) & (excluded < stop)
            excluded = np.where(inside, excluded - start, -1)
        return replace(self._shard(start, stop), n_database=stop - start, excluded=excluded)

    def query_order(self) -> NDArray[np.intp]:
        """An order of queries that puts those with the same relevant items side by side."""
        return np.arange(self.n_queries)

    def __repr__(self) -> str:
        kind = type(self).__name__
        levels = "" if self.n_levels == 2 else f", gains {self.gains.tolist()}"
        return f"<{kind}: {self.n_queries:,} queries by {self.n_database:,} items{levels}>"

    @abstractmethod
    def levels_of(self, queries: NDArray[Any], items: NDArray[Any]) -> NDArray[np.intp]:
        """Level of each pair (query, item); both arrays have one shape."""

    @abstractmethod
    def block(self, queries: slice) -> NDArray[np.intp]:
        """Levels of some queries for the whole database; for blocks of few queries only."""

    @abstractmethod
    def counter(
        self,
        queries: NDArray[np.uint64],
        database: NDArray[np.uint64],
        part: slice,
        counts: NDArray[np.uint32],
    ) -> Callable[[slice], None]:
        """A function that adds one part of the database to the counts of a slice of queries.

        ``counts`` is ``(n_queries, n_levels, n_bits + 1)``.  Parts are slices of the database in
        an order of the ground truth's own choosing, and cover it once.
        """

    def finish(
        self,
        queries: NDArray[np.uint64],
        database: NDArray[np.uint64],
        counts: NDArray[np.uint32],
    ) -> None:
        """Correct the counts for what single pairs change: here, the excluded items."""
        if self.excluded is not None:
            from bittern.kernels import pairs

            levels = np.zeros(self.n_queries, np.intp)
            rows = np.flatnonzero(self.excluded >= 0)
            levels[rows] = self.levels_of(rows, self.excluded[rows])
            pairs.remove_listed(queries, database, self.excluded, levels, counts)

    @abstractmethod
    def _all_totals(self) -> NDArray[np.int64]: ...

    @abstractmethod
    def _take(self, queries: NDArray[np.intp]) -> Self: ...

    @abstractmethod
    def _shard(self, start: int, stop: int) -> Self: ...
