"""What every index promises."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_array, check_count, check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index import files
from bittern.index.hits import FAR, NONE, Hits
from bittern.index.rows import Rows

__all__ = ["Index", "Mask", "Nearest", "Within", "Words"]

Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Nearest = tuple[NDArray[np.int64], NDArray[np.int32]]  # rows, distances
Within = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]  # offsets, rows, distances
Where = ArrayLike | Iterable[int]


class Index(ABC):
    """Codes with their ids, and a way to find those near a query.

    Items keep the order in which they were added, and ties in an answer are in that order.  Ids
    are distinct whole numbers from 0; those not given count on from the largest so far.

    A kind of index is a class in a file of its own.  It answers in :meth:`_nearest` and
    :meth:`_within` by *rows* of ``self._rows.words``; rows of removed items stay in place, and
    ``allowed`` tells them apart, until the base takes them out and calls :meth:`_forget`.  What it
    builds beside the rows may lag behind them: it brings it up to date when it is asked.
    """

    kind: ClassVar[str]

    def __init__(self, codes: Codes | None = None, *, ids: ArrayLike | None = None) -> None:
        self._rows = Rows()
        if codes is not None:
            self.add(codes, ids)
        elif ids is not None:
            raise InputError(f"{self._title}: ids come with codes, got ids alone.")

    def add(self, codes: Codes, ids: ArrayLike | None = None) -> None:
        """Add codes at the end; an id that is there already is refused, and then none is added."""
        check_type(codes, Codes, f"{self._title}: codes")
        self._check_length(codes, "codes")
        self._rows.append(codes, ids, self._title)

    def remove(self, ids: ArrayLike) -> None:
        """Take the items of these ids out; an unknown id is refused, and then none is taken."""
        if self._rows.remove(ids, self._title):
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

        ``where`` says which items count: a boolean mask over the items in their order, or ids, of
        which those that are not here match nothing.
        """
        k = check_count(k, f"{self._title}: k")
        self._check_queries(queries)
        allowed, n_allowed = self._allowed(where)
        k = min(k, n_allowed)
        if k == 0 or len(queries) == 0:
            shape = len(queries), k
            return Hits(np.full(shape, NONE, np.int64), np.full(shape, FAR, np.int32))
        rows, distances = self._nearest(_writeable(queries), k, allowed, n_threads)
        return Hits(self._ids_of(rows), distances)

    def within(
        self,
        queries: Codes,
        radius: int,
        *,
        where: Where | None = None,
        n_threads: int | None = None,
    ) -> Hits:
        """All items at most ``radius`` from each query; ``where`` as in :meth:`search`."""
        radius = check_count(radius, f"{self._title}: radius", least=0)
        self._check_queries(queries)
        allowed, n_allowed = self._allowed(where)
        if n_allowed == 0 or len(queries) == 0:
            none = np.empty(0, np.int64), np.empty(0, np.int32)
            return Hits(*none, np.zeros(len(queries) + 1, np.int64))
        offsets, rows, distances = self._within(
            _writeable(queries), min(radius, self.n_bits), allowed, n_threads
        )
        return Hits(self._ids_of(rows), distances, offsets)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, whole or not at all."""
        if self._rows.compact():
            self._forget()
        files.write(path, self.kind, self._settings(), self._rows, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> Self:
        """Read what :meth:`save` wrote; ``Index.load`` reads an index of any kind.

        With ``mmap`` the arrays stay on disk until they are read, and the file's checksums are not
        verified.
        """
        from bittern.index import INDEXES

        stored = files.read(path, mmap=mmap)
        kind = INDEXES.get(stored.kind)
        if kind is None or not issubclass(kind, cls):
            raise files.of_other_kind(path, stored.kind, cls.__name__)
        with files.restoring(path):
            index = kind(**stored.settings)
            index._rows = stored.rows
            index._restore(stored.arrays)
        return index

    @property
    def n_bits(self) -> int:
        """Length of the codes; 0 while none have been given."""
        return self._rows.n_bits

    @property
    def codes(self) -> Codes:
        """The codes, in the order of adding."""
        if self.n_bits == 0:
            raise InputError(f"{self._title}: has no codes yet; add() some.")
        return Codes(self._rows.living(self._rows.words), self.n_bits)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids, in the order of adding."""
        return self._rows.living(self._rows.ids)

    def __len__(self) -> int:
        return self._rows.n_alive

    def __repr__(self) -> str:
        return f"<{self._title} of {len(self):,} codes of {self.n_bits} bits>"

    @abstractmethod
    def _nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        """Rows ``(n_queries, k)`` and their distances, by distance, then row.

        Both counts are at least 1, and at least k rows are allowed.  ``allowed`` is a mask over
        all rows, None where all may be found.  Places without a hit have row -1, distance FAR.
        """

    @abstractmethod
    def _within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        """Offsets, rows and distances, flat, each query's by distance, then row."""

    @abstractmethod
    def _forget(self) -> None:
        """Rows have moved: drop what was built from them."""

    def _settings(self) -> dict[str, Any]:
        """The keyword arguments that make an empty index like this one, for its file."""
        return {}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What was built and is worth keeping in a file; no row is removed when this is called."""
        return {}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take what :meth:`_arrays` gave; a ValueError where it does not fit the rows."""
        if arrays:
            raise ValueError(f"it has {sorted(arrays)}, which {self._title} knows nothing of")

    def _allowed(self, where: Where | None) -> tuple[Mask | None, int]:
        """Which rows may be found, None if all may, and how many."""
        if where is None:
            return self._rows.alive, len(self)
        if isinstance(where, set | frozenset | range):
            where = np.fromiter(where, np.int64, len(where))
        w = check_array(where, f"{self._title}: where")
        if w.ndim != 1 or (w.dtype.kind not in "biu" and w.size):
            raise InputError(
                f"{self._title}: where must be a boolean mask or ids, 1-D, "
                f"got {w.dtype} of shape {w.shape}."
            )
        mask = self._rows.masked(w, self._title) if w.dtype == bool else self._rows.having(w)
        return mask, int(np.count_nonzero(mask))

    def _check_queries(self, queries: Codes) -> None:
        check_type(queries, Codes, f"{self._title}: queries")
        self._check_length(queries, "queries")

    def _check_length(self, codes: Codes, name: str) -> None:
        if self.n_bits not in (0, codes.n_bits):
            raise InputError(
                f"{self._title}: {name} must have the {self.n_bits} bits of the codes that are "
                f"there, got {codes.n_bits}."
            )

    def _ids_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        ids = self._rows.ids[rows]
        ids[rows == NONE] = NONE
        return ids

    @property
    def _title(self) -> str:
        return type(self).__name__


def _writeable(codes: Codes) -> Words:
    """The words, copied if they are read-only: kernels would be compiled anew for them."""
    return np.require(codes.words, requirements="W")
