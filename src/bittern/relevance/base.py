"""Relevance, the interface of every kind of ground truth; and the simplest kind, by class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count, check_labels, check_positions, chosen_queries
from bittern.errors import InputError
from bittern.kernels import small

if TYPE_CHECKING:
    import scipy.sparse

MEMORY = 1 << 28  # bytes that building ground truth from vectors may use
MANY = 1 << 15  # items that compiled code groups sooner than NumPy
SPAN = 1 << 16  # integer labels this close together need no sorting
EDGE = 1 << 62  # beyond this, their differences could overflow
Classes = NDArray[np.int16] | NDArray[np.int32]  # numbers of classes, from 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Relevance(ABC):
    """Which of ``n_database`` items are relevant to which of ``n_queries`` queries, and how much.

    A gain is a whole number; 0 means not relevant.  ``gains`` holds the distinct gains, ascending
    from 0, and a *level* is a position in that array.  No kind of ground truth stores a whole
    queries × database matrix.

    ``excluded[q]``, if given, is the database item that *is* query q (or -1).  It is neither
    retrieved nor counted.  :meth:`excluding` sets it.
    """

    n_queries: int
    n_database: int
    gains: NDArray[np.int64]  # (n_levels,)
    excluded: NDArray[np.int64] | None = None  # (n_queries,)

    @staticmethod
    def from_classes(query_labels: ArrayLike, database_labels: ArrayLike) -> Relevance:
        """Relevant if in the same class; labels are integers or strings, one per row."""
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
        """Relevant if within ``radius``; :func:`ball_radius` estimates a good radius.

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
        """Relevant if among the ``k`` nearest; ties go to the first in the database."""
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
        """Graded balls: an item has the gain of the smallest ball that contains it.

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
        """Number of distinct gains, including 0."""
        return len(self.gains)

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """How many items are relevant to each query."""
        return self.totals()[:, 1:].sum(axis=1)

    def totals(self) -> NDArray[np.int64]:
        """Number of items per query and level, ``(n_queries, n_levels)``, without excluded ones."""
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
        chosen = chosen_queries(queries, self.n_queries, "Relevance")
        excluded = None if self.excluded is None else self.excluded[chosen]
        return replace(self._take(chosen), n_queries=len(chosen), excluded=excluded)

    def shard(self, start: int, stop: int) -> Self:
        """The ground truth for database items ``start`` … ``stop - 1`` only."""
        start = check_count(start, "Relevance: start", 0, self.n_database)
        stop = check_count(stop, "Relevance: stop", start, self.n_database)
        excluded = self.excluded
        if excluded is not None:
            inside = (excluded >= start) & (excluded < stop)
            excluded = np.where(inside, excluded - start, -1)
        return replace(self._shard(start, stop), n_database=stop - start, excluded=excluded)

    def query_order(self) -> NDArray[np.intp]:
        """An order of the queries that puts those with the same relevant items side by side."""
        return np.arange(self.n_queries)

    def __repr__(self) -> str:
        kind = type(self).__name__
        levels = "" if self.n_levels == 2 else f", gains {self.gains.tolist()}"
        return f"<{kind}: {self.n_queries:,} queries by {self.n_database:,} items{levels}>"

    @abstractmethod
    def levels_of(self, queries: NDArray[Any], items: NDArray[Any]) -> NDArray[np.intp]:
        """Level of each pair (query, item); both arrays have the same shape."""

    @abstractmethod
    def block(self, queries: slice) -> NDArray[np.intp]:
        """Levels of some queries for the whole database; only for blocks of few queries."""

    @abstractmethod
    def relevant_to(self, query: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Items relevant to a query, each once, and their levels, which are at least 1."""

    @abstractmethod
    def _all_totals(self) -> NDArray[np.int64]:
        """Number of items per query and level, with excluded ones."""

    @abstractmethod
    def _take(self, queries: NDArray[np.intp]) -> Self: ...

    @abstractmethod
    def _shard(self, start: int, stop: int) -> Self: ...


class Groups:
    """Rows and their classes, grouped by class once it is asked for; several may share it."""

    def __init__(self, classes: Classes, n_classes: int) -> None:
        self.classes, self.n_classes = classes, n_classes

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each class begins in ``order``, and where the last one ends."""
        offsets = np.zeros(self.n_classes + 1, np.int64)
        np.cumsum(np.bincount(self.classes, minlength=self.n_classes), out=offsets[1:])
        return offsets

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows by class; those of a class ascend."""
        classes = self.classes
        if len(classes) >= MANY and small.is_over():
            from bittern.kernels.grouping import group_rows

            order = np.empty(len(classes), np.intp)
            group_rows(classes, self.offsets[:-1].copy(), order)
            return order
        order = np.argsort(classes.astype(np.uint16), kind="stable")  # 16 bits: a radix sort
        if self.n_classes > 1 << 16:
            order = order[np.argsort((classes >> 16).astype(np.uint16)[order], kind="stable")]
        return order


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ClassRelevance(Relevance):
    """Relevant if in the same class.

    The database is grouped by class once, when someone asks.  The items relevant to a query are
    then one range of that order, so counting never looks at labels.
    """

    query_classes: NDArray[np.int32]  # (n_queries,), -1 if the database lacks the class
    groups: Groups  # of the database

    @property
    def database_classes(self) -> Classes:
        """The class of each item."""
        return self.groups.classes

    @property
    def order(self) -> NDArray[np.intp]:
        """The items grouped by class."""
        return self.groups.order

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each class begins in ``order``, and its end."""
        return self.groups.offsets

    @classmethod
    def build(cls, query_labels: ArrayLike, database_labels: ArrayLike) -> ClassRelevance:
        """Number the classes of the database, and find the class of each query among them."""
        q = check_labels(query_labels, "Relevance: query_labels")
        d = check_labels(database_labels, "Relevance: database_labels")
        if (q.dtype.kind == "U") != (d.dtype.kind == "U") and len(q) and len(d):
            raise InputError(
                "Relevance: query_labels and database_labels must both be strings or both "
                f"integers, got {q.dtype} and {d.dtype}."
            )
        query_classes, database_classes, n_classes = _number(q, d)
        return cls(
            n_queries=len(q),
            n_database=len(d),
            gains=np.array([0, 1]),
            query_classes=query_classes,
            groups=Groups(database_classes, n_classes),
        )

    def query_order(self) -> NDArray[np.intp]:
        """An order of the queries that puts those with the same relevant items side by side."""
        return Groups(self.query_classes + np.int32(1), self.groups.n_classes + 1).order

    def levels_of(self, queries: NDArray[Any], items: NDArray[Any]) -> NDArray[np.intp]:
        """Level of each pair (query, item)."""
        same = self.query_classes[queries] == self.database_classes[items]
        return same.astype(np.intp)

    def block(self, queries: slice) -> NDArray[np.intp]:
        """Levels of some queries for the whole database."""
        same = self.query_classes[queries, None] == self.database_classes
        return same.astype(np.intp)

    def relevant_to(self, query: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Items relevant to a query, and their levels."""
        c = self.query_classes[query]
        items = self.order[self.offsets[c] : self.offsets[c + 1]] if c >= 0 else self.order[:0]
        return items, np.ones(len(items), np.intp)

    def _all_totals(self) -> NDArray[np.int64]:
        sizes = np.append(np.diff(self.offsets), 0)  # class -1 is empty
        relevant = sizes[self.query_classes]
        return np.stack([self.n_database - relevant, relevant], axis=1)

    def _take(self, queries: NDArray[np.intp]) -> ClassRelevance:
        return replace(self, query_classes=self.query_classes[queries])

    def _shard(self, start: int, stop: int) -> ClassRelevance:
        return replace(
            self, groups=Groups(self.database_classes[start:stop], self.groups.n_classes)
        )


def _number(
    queries: NDArray[Any], database: NDArray[Any]
) -> tuple[NDArray[np.int32], Classes, int]:
    """Number the labels of the database from 0; a query label not among them becomes -1."""
    if database.dtype == queries.dtype == np.int64 and len(database):
        least, most = int(database.min()), int(database.max())
        if most - least < SPAN and least > -EDGE and most < EDGE:  # use labels as numbers
            q = np.clip(queries, least - 1, most + 1) - least
            inside = (q >= 0) & (q <= most - least)
            from_zero = database if least == 0 else database - least
            q = np.where(inside, q, -1)
            n_classes = most - least + 1
            return q.astype(np.int32), _narrow(from_zero, n_classes), n_classes
    if database.dtype.kind != queries.dtype.kind:  # NumPy would compare int64 and uint64 as doubles
        queries, database = queries.astype(str), database.astype(str)
    classes, places = np.unique(database, return_inverse=True)
    q = np.searchsorted(classes, queries)
    known = np.append(classes, classes[:1])[q] == queries if len(classes) else q < 0
    numbers = np.where(known, q, -1).astype(np.int32)
    return numbers, _narrow(places, len(classes)), len(classes)


def _narrow(classes: NDArray[Any], n_classes: int) -> Classes:
    """The same with 16 bits if they suffice: these are written, and read again, much sooner."""
    return classes.astype(np.int16) if n_classes <= 1 << 15 else classes.astype(np.int32)
