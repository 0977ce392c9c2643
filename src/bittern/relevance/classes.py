"""Ground truth by class: relevant if the labels are equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_labels
from bittern.errors import InputError
from bittern.relevance.base import Relevance
from bittern.relevance.planes import range_kernels, word_planes

__all__ = ["ClassRelevance"]

SPAN = 1 << 16  # integer labels this close together need no sorting
EDGE = 1 << 62  # beyond which their differences could overflow


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ClassRelevance(Relevance):
    """Relevant if of one class.

    The database is grouped by class once, so that what is relevant to a query is a range of the
    grouped order and costs nothing to tell while counting.
    """

    query_classes: NDArray[np.int32]  # (n_queries,), -1 for a class that the database lacks
    database_classes: NDArray[np.int32]  # (n_database,)
    order: NDArray[np.intp]  # (n_database,), grouped by class
    offsets: NDArray[np.int64]  # (n_classes + 1,) where each class begins in that order

    @classmethod
    def build(cls, query_labels: ArrayLike, database_labels: ArrayLike) -> ClassRelevance:
        """Number the classes of the database, and find each query's among them."""
        q = check_labels(query_labels, "Relevance: query_labels")
        d = check_labels(database_labels, "Relevance: database_labels")
        if (q.dtype.kind == "U") != (d.dtype.kind == "U") and len(q) and len(d):
            raise InputError(
                "Relevance: query_labels and database_labels must be both strings or both "
                f"integers, got {q.dtype} and {d.dtype}."
            )
        query_classes, database_classes, n_classes = _number(q, d)
        order, offsets = _grouping(database_classes, n_classes)
        return cls(
            n_queries=len(q),
            n_database=len(d),
            gains=np.array([0, 1]),
            query_classes=query_classes,
            database_classes=database_classes,
            order=order,
            offsets=offsets,
        )

    def query_order(self) -> NDArray[np.intp]:
        """An order of queries that puts those with the same relevant items side by side."""
        return _grouping(self.query_classes + np.int32(1), len(self.offsets))[0]

    def levels_of(self, queries: NDArray[Any], items: NDArray[Any]) -> NDArray[np.intp]:
        """Level of each pair (query, item)."""
        same = self.query_classes[queries] == self.database_classes[items]
        return same.astype(np.intp)

    def block(self, queries: slice) -> NDArray[np.intp]:
        """Levels of some queries for the whole database."""
        same = self.query_classes[queries, None] == self.database_classes
        return same.astype(np.intp)

    def counter(
        self,
        queries: NDArray[np.uint64],
        database: NDArray[np.uint64],
        part: slice,
        counts: NDArray[np.uint32],
    ) -> Callable[[slice], None]:
        """A function that adds one part of the database to the counts of a slice of queries."""
        kernels = range_kernels(database)
        planes = word_planes(database, self.order[part])
        starts, stops = self._ranges(part)

        def count(rows: slice) -> None:
            kernels.count_ranges(queries[rows], planes, starts[rows], stops[rows], counts[rows])

        return count

    def _ranges(self, part: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each query's class begins and ends inside a part; an unknown class is empty."""
        bounds = np.clip(self.offsets, part.start, part.stop) - part.start
        c = self.query_classes
        return np.where(c >= 0, bounds[c], 0), np.where(c >= 0, bounds[c + 1], 0)

    def _all_totals(self) -> NDArray[np.int64]:
        sizes = np.append(np.diff(self.offsets), 0)  # the class -1 has nothing
        relevant = sizes[self.query_classes]
        return np.stack([self.n_database - relevant, relevant], axis=1)

    def _take(self, queries: NDArray[np.intp]) -> ClassRelevance:
        return replace(self, query_classes=self.query_classes[queries])

    def _shard(self, start: int, stop: int) -> ClassRelevance:
        classes = self.database_classes[start:stop]
        order, offsets = _grouping(classes, len(self.offsets) - 1)
        return replace(self, database_classes=classes, order=order, offsets=offsets)


def _number(
    queries: NDArray[Any], database: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Number the database's labels from 0; a query's label that it lacks becomes -1."""
    if database.dtype == queries.dtype == np.int64 and len(database):
        least, most = int(database.min()), int(database.max())
        if most - least < SPAN and least > -EDGE and most < EDGE:  # numbers already, with gaps
            q = np.clip(queries, least - 1, most + 1) - least
            inside = (q >= 0) & (q <= most - least)
            number = (database - least).astype(np.int32)
            return np.where(inside, q, -1).astype(np.int32), number, most - least + 1
    if database.dtype.kind != queries.dtype.kind:  # int64 and uint64 would meet as doubles
        queries, database = queries.astype(str), database.astype(str)
    classes, database = np.unique(database, return_inverse=True)
    q = np.searchsorted(classes, queries)
    known = np.append(classes, classes[:1])[q] == queries if len(classes) else q < 0
    numbers = np.where(known, q, -1).astype(np.int32)
    return numbers, database.astype(np.int32), len(classes)


def _grouping(classes: NDArray[Any], n_classes: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Stable order by class, and where each class begins in it."""
    from bittern.kernels import pairs

    offsets = np.zeros(n_classes + 1, np.int64)
    np.cumsum(np.bincount(classes, minlength=n_classes), out=offsets[1:])
    order = np.empty(len(classes), np.intp)
    pairs.group(classes, offsets, order)
    return order, offsets
