"""Source: what the application asks of a collection, in this process or shared with others."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.io.metadata import Metadata
from bittern.kernels import small
from bittern.store.base import Collection
from bittern.store.paths import located
from bittern.store.recipe import Recipe
from bittern.web.found import Found, Ids, nearest, with_ties
from bittern.web.refusal import Refusal


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Items: ids, codes, and the metadata of each as JSON text."""

    ids: Ids
    codes: Codes
    metadata: list[bytes]

    def __len__(self) -> int:
        return len(self.ids)

    def known(self, row: int) -> dict[str, Any]:
        """The metadata of one item."""
        return json.loads(self.metadata[row])


class Source(ABC):
    """A collection as the application sees it; any number of threads may ask at the same time."""

    place: str
    n_bits: int
    read_only: bool
    folder: Path | None  # where relative paths in the metadata start
    roots: tuple[Path, ...]  # folders, without links, whose images may be shown
    uploads: Path | None  # the folder for images that are added; None if they are not kept
    is_quick = False  # whether a plain search is too short to be worth a thread

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The hasher and the features that make codes."""

    @property
    def is_crossmodal(self) -> bool:
        """Whether it holds images and texts in one code space."""
        return self.recipe.is_crossmodal

    def now(self) -> Source:
        """What one request asks: a state that does not change, where there is such a thing."""
        return self

    @abstractmethod
    def known(self, ids: Ids) -> list[bytes]:
        """The metadata of items as JSON text; ``{}`` of those that were deleted meanwhile."""

    @abstractmethod
    def search(self, queries: Codes, k: int, where: str | None = None) -> list[Found]:
        """The k nearest items of each query that meet the condition."""

    @abstractmethod
    def within(self, queries: Codes, radius: int, where: str | None = None) -> list[Found]:
        """All items within the radius of each query that meet the condition."""

    @abstractmethod
    def histogram(self, query: Codes, where: str | None = None) -> NDArray[np.int64]:
        """How many items are at each distance from one query, ``(n_bits + 1,)``."""

    @abstractmethod
    def get(self, ids: Ids) -> Rows:
        """Items by ids, in this order; a Refusal (404) if one is unknown."""

    @abstractmethod
    def page(self, start: int, size: int, where: str | None = None) -> tuple[Rows, int]:
        """Items in the order of adding, from the ``start``-th on, and how many there are in all."""

    @abstractmethod
    def count(self) -> int:
        """Number of items."""

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """What :meth:`~bittern.store.Collection.info` says."""

    @abstractmethod
    def add(self, codes: Codes, ids: Ids | None, metadata: Metadata, *, replace: bool) -> Ids:
        """Add items, or ``replace`` those with the same ids; durable when it returns."""

    @abstractmethod
    def delete(self, ids: Ids | None, where: str | None) -> int:
        """Delete items, and return how many; durable when it returns."""

    def vectors_of(self, ids: Ids) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """Stored vectors of items, and which of them have one; None if none are stored."""
        return None


class CollectionSource(Source):
    """A collection that this process has open; what it answers is the collection's own answer."""

    def __init__(self, collection: Collection, *, vectors: NDArray[Any] | None = None) -> None:
        self.collection = collection
        self.place, self.n_bits = collection.place, collection.n_bits
        self.read_only, self.folder = collection.read_only, collection.folder
        self.uploads = uploads_of(collection)
        self.roots = image_roots(collection)
        self._vectors = vectors

    @cached_property
    def recipe(self) -> Recipe:
        """The hasher and the features that make codes."""
        return self.collection.recipe

    @cached_property
    def is_crossmodal(self) -> bool:
        """Whether it holds images and texts; where items say what they are, without the recipe."""
        known = self.collection.info().get("metadata")
        return (not known or "modality" in known) and self.recipe.is_crossmodal

    def search(self, queries: Codes, k: int, where: str | None = None) -> list[Found]:
        """The k nearest items of each query that meet the condition."""
        return nearest(
            lambda some, n: self.collection.search(some, n, where=where),
            lambda some, radius: self.collection.within(some, radius, where=where),
            queries,
            k,
        )

    def within(self, queries: Codes, radius: int, where: str | None = None) -> list[Found]:
        """All items within the radius of each query that meet the condition."""
        hits = self.collection.within(queries, radius, where=where)
        return [with_ties(*hits[q]) for q in range(len(queries))]

    def histogram(self, query: Codes, where: str | None = None) -> NDArray[np.int64]:
        """How many items are at each distance from one query, ``(n_bits + 1,)``."""
        _, distances = self.collection.within(query, self.n_bits, where=where)[0]
        return np.bincount(distances, minlength=self.n_bits + 1)

    def known(self, ids: Ids) -> list[bytes]:
        """The metadata of items as JSON text; ``{}`` of those that were deleted meanwhile."""
        there = self.collection._which_exist(ids) if len(ids) else np.empty(0, np.bool_)
        metadata = iter(self.collection.get(ids[there]).metadata)
        return [as_json(next(metadata)) if exists else b"{}" for exists in there.tolist()]

    def get(self, ids: Ids) -> Rows:
        """Items by ids, in this order; a Refusal (404) if one is unknown."""
        self._check_known(ids)
        items = self.collection.get(ids)
        return Rows(items.ids, items.codes, [as_json(known) for known in items.metadata])

    def page(self, start: int, size: int, where: str | None = None) -> tuple[Rows, int]:
        """Items in the order of adding, from the ``start``-th on, and how many there are in all."""
        every = self.collection.ids
        if where is not None:
            allowed = self.collection._matching(where)
            every = every[np.isin(every, allowed)]
        return self.get(every[start : start + size]), len(every)

    def count(self) -> int:
        """Number of items."""
        return len(self.collection)

    def info(self) -> dict[str, Any]:
        """What the collection says about itself."""
        return self.collection.info()

    def add(self, codes: Codes, ids: Ids | None, metadata: Metadata, *, replace: bool) -> Ids:
        """Add items, or ``replace`` those with the same ids."""
        if replace and ids is not None:
            return self.collection.upsert(codes, ids, metadata)
        if ids is not None:
            there = self.collection._which_exist(ids)
            if there.any():
                raise id_exists(int(ids[there][0]))
        return self.collection.add(codes, ids, metadata)

    def delete(self, ids: Ids | None, where: str | None) -> int:
        """Delete items, and return how many."""
        if ids is not None:
            self._check_known(ids)
        return self.collection.delete(ids, where=where)

    def vectors_of(self, ids: Ids) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """Stored vectors of items, and which of them have one; None if none are stored."""
        return None if self._vectors is None else rows_at(self._vectors, ids)

    def _check_known(self, ids: Ids) -> None:
        if len(ids):
            there = self.collection._which_exist(ids)
            if not there.all():
                raise no_item(int(ids[~there][0]))


def image_roots(collection: Collection) -> tuple[Path, ...]:
    """The folders, without links, that hold the collection's own images.

    These are the folder it was made from, or, if it was not made from one, its own folder; and the
    folder of images that were added by requests.
    """
    origin, home, uploads = collection.origin, collection.folder, uploads_of(collection)
    roots = [home] if origin is None else [located(origin["folder"], home)]
    return tuple(path.resolve() for path in (*roots, uploads) if path is not None)


def uploads_of(collection: Collection) -> Path | None:
    """Where images are kept that requests add: beside the collection's file."""
    if collection.folder is None:
        return None
    return collection.folder / f"{Path(collection.place).name}.images"


def rows_at(vectors: NDArray[Any], ids: Ids) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The vectors whose row is the id, and for each id whether there is one."""
    there = ids < len(vectors)
    return np.asarray(vectors[np.where(there, ids, 0)], np.float32), there


def as_json(known: dict[str, Any]) -> bytes:
    """Metadata as JSON text; numbers that JSON lacks become null."""
    try:
        return json.dumps(known, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        finite = {key: _finite(value) for key, value in known.items()}
        return json.dumps(finite, ensure_ascii=False, default=str).encode()


def no_item(id_: int) -> Refusal:
    """The refusal of an unknown id."""
    return Refusal(404, f"No item has the id {id_}.")


def id_exists(id_: int) -> Refusal:
    """The refusal of an id that is taken."""
    return Refusal(409, f'The id {id_} exists already; "replace": true replaces the item.')


def count_distances(query: Codes, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many codes are at each distance from one query."""
    if len(words) == 0:
        return np.zeros(query.n_bits + 1, np.int64)
    (row,) = small.distance_rows(query.words, words)
    return np.bincount(row, minlength=query.n_bits + 1)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
