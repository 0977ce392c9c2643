"""The interface of every collection, wherever it is stored."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern import notebook
from bittern.checks import check_array, check_count, check_same_length
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.hits import Hits
from bittern.io.files import check_version
from bittern.io.metadata import Columns, Metadata, columns_of
from bittern.store.recipe import Recipe

TITLE = "Collection"  # starts every error message
FORMAT, VERSION = "bittern collection", 1
LARGEST = np.iinfo(np.int64).max
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Stored items: ids, codes and metadata.

    A key that an item lacks, or whose value was None or NaN, is not in its dictionary.
    """

    ids: Ids
    codes: Codes
    metadata: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.ids)


class Collection(ABC):
    """Codes with ids and metadata, and the hasher and the feature that made the codes.

    Ids are distinct whole numbers from 0; by default they continue from the largest id ever used.
    Items and queries may be :class:`~bittern.Codes`, vectors (2-D, of numbers) if there is a
    hasher, or images or texts if there is also a feature.

    Hits are those of an index over all items: exact, nearest first, ties in the order of adding; an
    item that :meth:`upsert` replaced counts as newly added.  ``where`` is an SQL condition on the
    metadata and ``id``, such as ``label = 'cat' AND year > 1990``; an item that lacks a key does
    not meet a condition on it.

    One thread may write; any number may search between writes.
    """

    n_bits: int
    read_only: bool
    draft: str | None  # a description while it is being filled, None once it is finished
    folder: Path | None  # where relative paths in the metadata start; None on a server
    _is_open = True

    def add(self, things: Any, ids: ArrayLike | None = None, metadata: Metadata = None) -> Ids:
        """Add items and return their ids; fails if an id exists already.

        ``metadata`` is a list of one dictionary per item, or a dictionary of columns.
        """
        codes, columns = self._check_items(things, metadata)
        given = None if ids is None else _distinct(ids, len(codes))
        with self._writing():
            new = self._next_ids(len(codes)) if given is None else given
            if given is not None:
                self._check_new(given)
            if len(new):
                self._add(codes, new, columns)
        return new

    def upsert(self, things: Any, ids: ArrayLike, metadata: Metadata = None) -> Ids:
        """Add items, replacing those with the same ids."""
        codes, columns = self._check_items(things, metadata)
        new = _distinct(ids, len(codes))
        if len(new):
            with self._writing():
                self._replace(codes, new, columns)
        return new

    def delete(self, ids: ArrayLike | None = None, *, where: str | None = None) -> int:
        """Delete items by ids or by a condition, and return how many.

        If an id is unknown, nothing is deleted.
        """
        self._check_writable()
        if (ids is None) == (where is None):
            raise InputError(f"{TITLE}: delete() takes either ids or where.")
        where, named = _condition(where), np.unique(_whole_numbers([] if ids is None else ids))
        with self._writing():
            found = named if where is None else self._matching(where)
            if where is None:
                self._check_known(found)
            if len(found):
                self._delete(found)
        return len(found)

    def set_metadata(self, ids: ArrayLike, metadata: Metadata) -> None:
        """Replace all metadata of items; their codes and their order stay."""
        self._check_writable()
        changed = _distinct(ids, np.size(ids))
        columns = columns_of(metadata, len(changed), TITLE)
        with self._writing():
            self._check_known(changed)
            if len(changed):
                self._set_metadata(changed, columns)

    def finish(self) -> None:
        """Mark the collection as finished, if it is a draft."""
        self._check_writable()
        if self.draft is not None:
            with self._writing():
                self._write_head({**self._head(), "draft": None})
            self.draft = None

    @property
    def origin(self) -> dict[str, Any] | None:
        """The folder of images that :func:`~bittern.store.syncing.sync` compares it with."""
        self._check_open()
        return self._head().get("origin")

    def set_origin(self, origin: dict[str, Any] | None) -> None:
        """Remember that folder, as plain values."""
        self._check_writable()
        with self._writing():
            self._write_head({**self._head(), "origin": origin})

    def search(self, queries: Any, k: int, *, where: str | None = None) -> Hits:
        """The k nearest items of each query that meet the condition; fewer if there are fewer."""
        k = check_count(k, f"{TITLE}: k")
        return self._search(self._queries(queries), k, _condition(where)).with_items(self)

    def within(self, queries: Any, radius: int, *, where: str | None = None) -> Hits:
        """All items within ``radius`` of each query that meet the condition."""
        radius = check_count(radius, f"{TITLE}: radius", least=0)
        within = min(radius, self.n_bits)
        return self._within(self._queries(queries), within, _condition(where)).with_items(self)

    def get(self, ids: ArrayLike) -> Items:
        """The items with these ids, in this order; fails if an id is unknown."""
        self._check_open()
        wanted = _whole_numbers(ids)
        self._check_known(wanted)
        return self._get(wanted)

    def shown(self, ids: ArrayLike) -> list[notebook.ShownItem]:
        """The items with these ids as people see them: names, and small images of their files."""
        from bittern.store.shown_items import shown_items

        items = self.get(ids)
        return shown_items(items.ids, items.metadata, self.folder)

    def count(self, where: str | None = None) -> int:
        """Number of items, or of those that meet the condition."""
        self._check_open()
        return self._count(_condition(where))

    @property
    def ids(self) -> Ids:
        """The ids of all items."""
        self._check_open()
        return self._matching(None)

    @property
    def codes(self) -> Codes:
        """The codes of all items, in the order of :attr:`ids`."""
        self._check_open()
        return self._all_codes()

    def column(self, name: str) -> list[Any]:
        """One key of the metadata of all items, in the order of :attr:`ids`; None if missing."""
        self._check_open()
        return self._column(name)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all items to a Parquet file, completely or not at all.

        Its columns are ``id``, ``word_0``, ``word_1``, … (bit j of a code is bit ``j % 64`` of word
        ``j // 64``) and those of the metadata; its rows have the order of adding.
        """
        self._check_open()
        self._export(path)

    def info(self) -> dict[str, Any]:
        """Place, numbers of items and bits, hasher, features, metadata, folder of the images."""
        origin = self.origin
        return {
            "place": self.place,
            "n_items": len(self),
            "n_bits": self.n_bits,
            **self._details(),
            **({} if origin is None else {"images": origin["folder"]}),
        }

    def close(self) -> None:
        """Release the file or the server; it may be closed twice."""
        if self._is_open:
            self._is_open = False
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        size = f"{len(self):,} codes of {self.n_bits} bits" if self._is_open else "closed"
        return f"<{TITLE} {self.place}: {size}>"

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is stored: a path or an address."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The hasher and the feature that make the codes."""

    def _all_codes(self) -> Codes:
        return self._get(self.ids).codes

    def _column(self, name: str) -> list[Any]:
        return [known.get(name) for known in self._get(self.ids).metadata]

    def _writing(self) -> AbstractContextManager[None]:
        """Around a write and the checks before it, where others may write at the same time."""
        return nullcontext()

    @abstractmethod
    def _next_ids(self, n: int) -> Ids:
        """The next n ids after the largest ever used."""

    @abstractmethod
    def _which_exist(self, ids: Ids) -> NDArray[np.bool_]:
        """For each id, whether an item has it."""

    @abstractmethod
    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        """Add items whose ids are new and distinct; at least one."""

    @abstractmethod
    def _replace(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        """Add items whose ids are distinct, after deleting those that have them."""

    @abstractmethod
    def _delete(self, ids: Ids) -> None:
        """Delete existing items by distinct ids; at least one."""

    @abstractmethod
    def _set_metadata(self, ids: Ids, columns: Columns) -> None:
        """Replace the metadata of existing items by distinct ids; at least one."""

    @abstractmethod
    def _write_head(self, head: dict[str, Any]) -> None:
        """Replace the description."""

    @abstractmethod
    def _matching(self, where: str | None) -> Ids:
        """The ids of the items that meet a condition."""

    @abstractmethod
    def _search(self, queries: Codes, k: int, where: str | None) -> Hits: ...

    @abstractmethod
    def _within(self, queries: Codes, radius: int, where: str | None) -> Hits: ...

    @abstractmethod
    def _get(self, ids: Ids) -> Items:
        """Items that exist."""

    @abstractmethod
    def _count(self, where: str | None) -> int: ...

    @abstractmethod
    def _export(self, path: str | os.PathLike[str]) -> None: ...

    @abstractmethod
    def _entry(self, name: str) -> bytes:
        """What is stored with the collection under that name."""

    @abstractmethod
    def _details(self) -> dict[str, Any]: ...

    @abstractmethod
    def _close(self) -> None: ...

    def _head(self) -> dict[str, Any]:
        """The description, checked: it may be of something else, or of a later version."""
        head: dict[str, Any] = json.loads(self._entry("head"))
        if head.get("format") != FORMAT:
            raise FileError(f"{self.place}: is a database, but not a collection.")
        check_version(self.place, head.get("version"), VERSION)
        return head

    def _check_items(self, things: Any, metadata: Metadata) -> tuple[Codes, Columns]:
        self._check_writable()
        codes = self._codes_of(things, f"{TITLE}: items")
        return codes, columns_of(metadata, len(codes), TITLE)

    def _queries(self, queries: Any) -> Codes:
        self._check_open()
        return self._codes_of(queries, f"{TITLE}: queries")

    def _codes_of(self, things: Any, name: str) -> Codes:
        """Codes as given, or the recipe's codes of vectors, images or texts."""
        codes = things if isinstance(things, Codes) else self.recipe.encode(things, name)
        if codes.n_bits != self.n_bits:
            raise InputError(
                f"{name} must have the {self.n_bits} bits of the collection, got {codes.n_bits}."
            )
        return codes

    def _check_new(self, ids: Ids) -> None:
        there = self._which_exist(ids)
        if there.any():
            raise InputError(
                f"{TITLE}: the id {ids[there][0]} exists already; upsert() replaces items."
            )

    def _check_known(self, ids: Ids) -> None:
        there = self._which_exist(ids)
        if not there.all():
            raise InputError(f"{TITLE}: no item has the id {ids[~there][0]}.")

    def _check_open(self) -> None:
        if not self._is_open:
            raise InputError(f"{TITLE}: {self.place} was closed; open() it again.")

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise InputError(
                f"{TITLE}: {self.place} was opened for reading; open() it without read_only."
            )


def new_head(n_bits: int, recipe: Recipe, draft: str | None) -> dict[str, Any]:
    """The description that is stored with a collection."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_bits": n_bits,
        "recipe": recipe.names(),
        "draft": draft,
    }


def _distinct(ids: ArrayLike, n: int) -> Ids:
    """Ids for n new items."""
    new = _whole_numbers(ids)
    check_same_length(len(new), n, f"{TITLE}: the numbers of ids and of items")
    if new.min(initial=0) < 0:
        raise InputError(f"{TITLE}: ids must be at least 0, got {new[new < 0][0]}.")
    _, first = np.unique(new, return_index=True)
    if len(first) < n:
        again = np.ones(n, np.bool_)
        again[first] = False
        raise InputError(f"{TITLE}: ids must be distinct, {new[again][0]} is repeated.")
    return new


def _whole_numbers(ids: Any) -> Ids:
    if isinstance(ids, Iterable) and not isinstance(ids, np.ndarray | list | tuple):
        ids = list(ids)
    i = check_array(ids, f"{TITLE}: ids")
    if i.ndim != 1 or (i.dtype.kind not in "iu" and i.size):
        raise InputError(
            f"{TITLE}: ids must be a list of whole numbers, got {i.dtype} of shape {i.shape}; "
            "put other names into the metadata."
        )
    if i.dtype.kind == "u" and i.max(initial=0) > LARGEST:
        raise InputError(f"{TITLE}: ids must be at most {LARGEST}, got {i.max()}.")
    return i.astype(np.int64)


def _condition(where: str | None) -> str | None:
    if where is not None and (not isinstance(where, str) or not where.strip()):
        raise InputError(
            f"{TITLE}: where must be a condition like \"label = 'cat'\", got {where!r}."
        )
    return where
