"""Persistent collections: codes with ids, metadata and their recipe, in a file or on a server.

>>> import tempfile, bittern as bt
>>> from pathlib import Path
>>> codes = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
>>> folder = tempfile.TemporaryDirectory()
>>> with bt.store.create(Path(folder.name, "pets.bittern"), n_bits=3) as pets:
...     ids = pets.add(codes, metadata={"label": ["cat", "dog", "cat"]})
...     pets.search(codes[1], k=2).to_lists()
...     pets.search(codes[1], k=2, where="label = 'cat'").to_lists()
[[(1, 0), (0, 1)]]
[[(0, 1), (2, 2)]]
>>> folder.cleanup()
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bittern.checks import check_new_ids
from bittern.codes import BitOrder, unpacked
from bittern.errors import FileError, InputError
from bittern.io import exchange
from bittern.io.addresses import is_address
from bittern.io.metadata import rows_of
from bittern.store.base import Collection, Items
from bittern.store.recipe import Recipe

if TYPE_CHECKING:
    from bittern.features.base import Feature
    from bittern.hashing.base import Hasher
    from bittern.hashing.crossmodal.base import CrossModalHasher
    from bittern.store.embedded import EmbeddedCollection
    from bittern.store.served import ServedCollection

__all__ = [
    "Collection",
    "Items",
    "Recipe",
    "create",
    "exists",
    "is_address",
    "open",
    "read_items",
    "search_widget",
]


def create(
    place: str | os.PathLike[str],
    n_bits: int | None = None,
    *,
    hasher: Hasher | CrossModalHasher | None = None,
    features: Feature | None = None,
    texts: Feature | None = None,
    draft: str | None = None,
) -> Collection:
    """Make an empty collection at a path or an address, and open it for writing.

    An address is ``postgresql://user@host:port/database?collection=NAME`` for PostgreSQL with
    pgvector, ``milvus://host:port/NAME`` for a Milvus server, or
    ``milvus:///path/to/file.db?collection=NAME`` for Milvus Lite.

    ``n_bits`` defaults to that of the hasher.  ``hasher`` and ``features`` must be fitted; with
    them, vectors and images can be added and searched for.  With a cross-modal hasher,
    ``features`` is for images and ``texts`` for texts.

    A collection that takes long to fill can start as a ``draft``, described by a text: until
    :meth:`~Collection.finish`, only :func:`open` with ``drafts=True`` opens it.
    """
    recipe = Recipe(hasher, features, texts)
    n_bits = recipe.bits(n_bits)
    return _kind_of(place).create(os.fspath(place), n_bits, recipe, draft)


def open(
    place: str | os.PathLike[str], *, read_only: bool = False, drafts: bool = False
) -> Collection:
    """Open an existing collection for writing or for reading.

    ``read_only`` gives a snapshot of the file at this moment, even while another process writes.
    Fails for a draft unless ``drafts`` is true.
    """
    found = _kind_of(place).open(os.fspath(place), read_only=read_only)
    if found.draft is not None and not drafts:
        found.close()
        raise FileError(
            f"{found.place}: is an unfinished draft; repeat the command that made it to finish it."
        )
    return found


def read_items(
    kind: str,
    path: str | os.PathLike[str],
    *,
    n_bits: int | None = None,
    bitorder: BitOrder | None = None,
    name: str | None = None,
) -> Items:
    """The items that :meth:`bittern.Codes.to` or another program wrote: codes, ids and metadata.

    The parameters are those of :meth:`bittern.Codes.from_`; without ids, these are positions.
    """
    found = exchange.read(kind, path, n_bits=n_bits, bitorder=bitorder, name=name)
    try:
        ids = check_new_ids(found.numbers, len(found), kind)
    except InputError as error:  # other programs allow ids that are negative, or not distinct
        raise FileError(f"{path}: {error}") from None
    codes = unpacked(path, found.packed, found.n_bits, found.bitorder or "big")
    return Items(ids, codes, rows_of(found.columns, len(found)))


def search_widget(collection: Collection, *, k: int = 60) -> Any:
    """A search view for notebooks, which needs the extra ``notebook``.

    It searches by an item's id, by an image, and by text if the collection has texts.  Results come
    in bands of one distance; a click on an item searches for what is near it.
    """
    from bittern.store.widget import make_widget

    return make_widget(collection, k)


def exists(place: str | os.PathLike[str]) -> bool:
    """Whether something is at a path, or a collection at an address."""
    return _kind_of(place).exists(os.fspath(place))


def _kind_of(place: str | os.PathLike[str]) -> type[EmbeddedCollection] | type[ServedCollection]:
    """The class of collections at such a place."""
    if is_address(place):
        from bittern.store.served import server_of

        return server_of(place)
    from bittern.store.embedded import EmbeddedCollection

    return EmbeddedCollection


def __dir__() -> list[str]:
    return sorted(__all__)
