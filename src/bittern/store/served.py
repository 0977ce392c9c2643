"""What collections on servers share: the address, the recipe and the export."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bittern.checks import row_blocks
from bittern.errors import InputError
from bittern.io.addresses import Address, scheme_of, without_password
from bittern.io.files import temporary_folder
from bittern.store.base import LARGEST, TITLE, Collection, Ids
from bittern.store.paths import real_folder
from bittern.store.recipe import Recipe

ITEMS_PER_CALL = 4_096


class ServedCollection(Collection):
    """A collection on a server.

    A subclass stores entries by name (the description, the next id, the parts of the recipe) and
    the items.  ``read_only`` does not write, but sees what others write.
    """

    library: ClassVar[str]  # the module that talks to the server
    _address: Address

    def _read_description(self) -> None:
        """Set what the description says; the last step of opening."""
        self.folder = None if self._address.file is None else real_folder(self._address.file)
        head = self._head()
        self.n_bits, self._names = int(head["n_bits"]), dict(head["recipe"])
        self.draft = head.get("draft")

    @classmethod
    @abstractmethod
    def parse(cls, place: str) -> Address:
        """The address, checked."""

    @classmethod
    @abstractmethod
    def create(
        cls, place: str, n_bits: int, recipe: Recipe, draft: str | None = None
    ) -> Collection:
        """Make a new collection and open it."""

    @classmethod
    @abstractmethod
    def open(cls, place: str, *, read_only: bool) -> Collection:
        """Open an existing collection."""

    @classmethod
    @abstractmethod
    def exists(cls, place: str) -> bool:
        """Whether a collection or a draft exists."""

    @property
    def place(self) -> str:
        """The address, without the password."""
        return str(self._address)

    @cached_property
    def recipe(self) -> Recipe:
        """The hasher and the features, fetched on first use."""
        wanted = [name for name, kind in self._names.items() if kind is not None]
        blobs = {name: self._entry(name) for name in wanted}
        return Recipe.from_blobs(blobs, self.n_bits, self.place)

    def _next_ids(self, n: int) -> Ids:
        first = int(self._entry("next_id"))
        if first > LARGEST - n:
            raise InputError(f"{TITLE}: no ids are left after {first - 1}; give the ids.")
        return np.arange(first, first + n)

    def _write_head(self, head: dict[str, Any]) -> None:
        self._put_entry("head", json.dumps(head).encode())

    def _export(self, path: str | os.PathLike[str]) -> None:
        """Copy the items to a collection in a file, and export that."""
        from bittern.store.embedded import EmbeddedCollection

        ids = self._in_order()
        with temporary_folder() as folder:
            file = folder / "export.bittern"
            with EmbeddedCollection.create(file, self.n_bits, Recipe()) as copy:
                for block in item_blocks(len(ids)):
                    items = self._get(ids[block])
                    copy.add(items.codes, items.ids, items.metadata)
                copy.export(path)

    @abstractmethod
    def _in_order(self) -> Ids:
        """The ids of all items in the order of adding."""

    @abstractmethod
    def _put_entry(self, name: str, content: bytes) -> None:
        """Store bytes under a name."""


def server_of(place: str) -> type[ServedCollection]:
    """The class of collections at an address."""
    scheme = scheme_of(place)
    if scheme == "milvus":
        from bittern.store.milvus_collection import MilvusCollection

        return MilvusCollection
    if scheme in ("postgresql", "postgres"):
        from bittern.store.postgres_collection import PostgresCollection

        return PostgresCollection
    raise InputError(
        f"{TITLE}: an address begins with postgresql:// or milvus://, got "
        f"'{without_password(place)}'."
    )


def new_entries(head: dict[str, Any], recipe: Recipe) -> dict[str, bytes]:
    """What is stored with a new collection, by name; the description comes last."""
    return {**recipe.to_blobs(), "next_id": b"0", "head": json.dumps(head).encode()}


def item_blocks(n: int) -> list[slice]:
    """The places of n items, in blocks that go over the wire at once."""
    return row_blocks(n, 1, ITEMS_PER_CALL)
