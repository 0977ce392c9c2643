"""Index: what all indexes share, and what each kind must implement."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count, check_ids, check_type
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index import index_file
from bittern.index.hits import FAR, NONE, Hits
from bittern.index.items import IndexedItems, Where
from bittern.kernels import small
from bittern.parallel import available_threads

Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Nearest = tuple[NDArray[np.int64], NDArray[np.int32]]  # rows, distances
Within = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]  # offsets, rows, distances


class Index(ABC):
    """Codes with their ids, and a way to find those near a query.

    Items keep the order in which they were added, and tied hits are in that order.  Ids are
    distinct whole numbers from 0; by default they continue from the largest so far.

    Each kind of index is a class in its own file.  It implements :meth:`_nearest` and
    :meth:`_within` with *rows* of ``self._items.words``.  Removed items keep their rows, which
    ``allowed`` leaves out, until the base drops them and calls :meth:`_forget`.  Tables that a kind
    builds from the rows may be out of date; it updates them before it answers.
    """

    kind: ClassVar[str]
    is_exact: ClassVar[bool] = False  # whether it finds all that a comparison with every code finds

    def __init__(self, codes: Codes | None = None, *, ids: ArrayLike | None = None) -> None:
        self._items = IndexedItems()
        if codes is not None:
            self.add(codes, ids)
        elif ids is not None:
            raise InputError(f"{self._title}: ids need codes, got ids alone.")

    def add(self, codes: Codes, ids: ArrayLike | None = None) -> None:
        """Add codes at the end; fails and adds none if an id exists already."""
        check_type(codes, Codes, f"{self._title}: codes")
        self._check_length(codes, "codes")
        self._items.append(codes, ids, self._title)

    def remove(self, ids: ArrayLike) -> None:
        """Remove the items with these ids; fails and removes none if an id is unknown."""
        if self._items.remove(ids, self._title):
            self._forget()

    def search(
        self,
        queries: Codes,
        k: int,
        *,
        where: Where | None = None,
        n_threads: int | None = None,
    ) -> Hits:
        """The k nearest items of each query, or all of them if there are fewer.

        ``where`` restricts the search to some items: a boolean mask over the items in their order,
        or ids.  Unknown ids match nothing.
        """
        if type(k) is not int or k < 1:  # the full check takes longer than a search of few codes
            k = check_count(k, f"{self._title}: k")
        self._check_queries(queries)
        _check_threads(n_threads)
        allowed, n_allowed = self._items.allowed(where, self._title)
        k = min(k, n_allowed)
        if k == 0 or len(queries) == 0:
            shape = len(queries), k
            return Hits(np.full(shape, NONE, np.int64), np.full(shape, FAR, np.int32))
        words = _writeable(queries)
        if self._is_small(words):
            rows, distances = small.find_nearest(words, self._items.words, allowed, k)
        else:
            rows, distances = self._nearest(words, k, allowed, n_threads)
        return Hits.of_index(self._ids_of(rows), distances)

    def within(
        self,
        queries: Codes,
        radius: int,
        *,
        where: Where | None = None,
        n_threads: int | None = None,
    ) -> Hits:
        """All items at most ``radius`` from each query; ``where`` as in :meth:`search`."""
        if type(radius) is not int or radius < 0:
            radius = check_count(radius, f"{self._title}: radius", least=0)
        self._check_queries(queries)
        _check_threads(n_threads)
        allowed, n_allowed = self._items.allowed(where, self._title)
        if n_allowed == 0 or len(queries) == 0:
            none = np.empty(0, np.int64), np.empty(0, np.int32)
            return Hits(*none, np.zeros(len(queries) + 1, np.int64))
        words, radius = _writeable(queries), min(radius, self.n_bits)
        if self._is_small(words):
            offsets, rows, distances = small.find_within(words, self._items.words, allowed, radius)
        else:
            offsets, rows, distances = self._within(words, radius, allowed, n_threads)
        return Hits.of_index(self._ids_of(rows), distances, offsets)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file; an interrupted write leaves the old file untouched."""
        if self._items.compact():
            self._forget()
        index_file.write(path, self.kind, self._settings(), self._items, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> Self:
        """Read what :meth:`save` wrote; ``Index.load`` reads an index of any kind.

        With ``mmap`` the arrays stay on disk until they are used, and checksums are not verified.
        """
        from bittern.index import INDEXES

        stored = index_file.read(path, mmap=mmap)
        kind = INDEXES.get(stored.kind)
        if kind is None or not issubclass(kind, cls):
            raise FileError(
                f"{path}: holds an index of kind '{stored.kind}', which {cls.__name__} cannot read."
            )
        with index_file.restoring(path):
            index = kind(**stored.settings)
            index._items = stored.items
            index._restore(stored.arrays)
        return index

    def positions_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The position of each id in :attr:`ids`; -1 for an unknown one."""
        rows = self._items.rows_of(check_ids(ids, f"{type(self).__name__}: ids"))
        alive = self._items.alive
        return rows if alive is None else np.where(rows < 0, -1, (np.cumsum(alive) - 1)[rows])

    @property
    def n_bits(self) -> int:
        """Length of the codes; 0 before the first codes are added."""
        return self._items.n_bits

    @property
    def codes(self) -> Codes:
        """The codes, in the order of adding."""
        if self.n_bits == 0:
            raise InputError(f"{self._title}: has no codes yet; add() some.")
        return Codes(self._items.living(self._items.words), self.n_bits)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids, in the order of adding."""
        return self._items.living(self._items.ids)

    def __len__(self) -> int:
        return self._items.n_alive

    def __repr__(self) -> str:
        return f"<{self._title} of {len(self):,} codes of {self.n_bits} bits>"

    @abstractmethod
    def _nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        """Rows ``(n_queries, k)`` and their distances, by distance, then row.

        There is at least one query, k is at least 1, and at least k rows are allowed.  ``allowed``
        is a mask over all rows, or None if all are allowed.  Places without a hit have row -1 and
        distance FAR.
        """

    @abstractmethod
    def _within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        """Offsets, and flat rows and distances, each query's by distance, then row."""

    @abstractmethod
    def _forget(self) -> None:
        """Drop what was built from the rows, because they have moved."""

    def _settings(self) -> dict[str, Any]:
        """The keyword arguments that make an empty index like this one; saved in its file."""
        return {}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Built arrays to save in the file; called when no row is marked as removed."""
        return {}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take what :meth:`_arrays` gave; a ValueError if it does not fit the rows."""
        if arrays:
            raise ValueError(f"{self._title} has no use for {sorted(arrays)}")

    def _is_small(self, queries: Words) -> bool:
        """Whether NumPy answers these queries before the kernels would be loaded."""
        if small.is_over() or not self.is_exact:
            return False
        return small.is_small_scan(queries, self._items.parts[0], small.SCANS)

    def _check_queries(self, queries: Codes) -> None:
        if type(queries) is not Codes or queries.n_bits != self._items.n_bits:
            check_type(queries, Codes, f"{self._title}: queries")
            self._check_length(queries, "queries")

    def _check_length(self, codes: Codes, name: str) -> None:
        if self.n_bits not in (0, codes.n_bits):
            raise InputError(
                f"{self._title}: {name} must have the {self.n_bits} bits of the codes in the "
                f"index, got {codes.n_bits}."
            )

    def _ids_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        ids = self._items.ids_at(rows)
        if not self.is_exact:
            ids[rows == NONE] = NONE
        return ids

    @property
    def _title(self) -> str:
        return type(self).__name__


def _writeable(codes: Codes) -> Words:
    """The words, copied if they are read-only: kernels would be compiled again for such arrays."""
    return codes.words if codes.words.flags.writeable else codes.words.copy()


def _check_threads(n_threads: int | None) -> None:
    if n_threads is not None and (type(n_threads) is not int or n_threads < 1):
        available_threads(n_threads)
