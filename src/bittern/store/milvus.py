"""Milvus: connections, errors in one sentence, and the tables of a collection."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bittern.errors import BitternError, FileError, MissingExtraError
from bittern.store.address import Address

__all__ = [
    "are_remains",
    "connect",
    "make_items",
    "make_recipe",
    "put_entry",
    "recipe_name",
    "shown",
    "speaking",
]

TEXT = 60_000  # characters of a part of the recipe; Milvus takes 65,535
PARTS = 64  # that go over the wire at once
PATIENCE = 30.0  # seconds to connect


def _milvus() -> Any:
    try:
        import pymilvus
    except ImportError:
        raise MissingExtraError(
            "Collection: needs pymilvus; pip install 'bittern[milvus]'."
        ) from None
    return pymilvus


def connect(address: Address) -> Any:
    """A client of a server that answers."""
    pymilvus = _milvus()
    with speaking(address), warnings.catch_warnings():
        # milvus-lite warns of its own import, when it is first loaded.
        warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)
        return pymilvus.MilvusClient(address.uri, token=address.token, timeout=PATIENCE)


@contextmanager
def speaking(address: Address) -> Iterator[None]:
    """Milvus's errors as one sentence."""
    try:
        yield
    except BitternError:
        raise
    except _milvus().MilvusException as error:
        said = str(error.message).strip().splitlines() or [type(error).__name__]
        raise FileError(
            f"{shown(address)}: Milvus does not answer as it should ({said[0]})."
        ) from error


def make_items(client: Any, name: str, n_bits: int) -> None:
    """The collection of codes; what is known of items are dynamic fields."""
    kinds = _milvus().DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("id", kinds.INT64, is_primary=True)
    schema.add_field("position", kinds.INT64)
    schema.add_field("code", kinds.BINARY_VECTOR, dim=8 * -(-n_bits // 8))
    index = client.prepare_index_params()
    index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")  # the exact one
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


def make_recipe(client: Any, name: str) -> None:
    """The collection of text beside it."""
    kinds = _milvus().DataType
    schema = client.create_schema(auto_id=False)
    schema.add_field("key", kinds.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("name", kinds.VARCHAR, max_length=32)
    schema.add_field("part", kinds.INT64)
    schema.add_field("text", kinds.VARCHAR, max_length=65_535)
    schema.add_field("nothing", kinds.BINARY_VECTOR, dim=8)  # Milvus wants one everywhere
    index = client.prepare_index_params()
    index.add_index("nothing", index_type="BIN_FLAT", metric_type="HAMMING")
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


def are_remains(client: Any, recipe: str) -> bool:
    """Whether a recipe is there without its head, which is put last: its maker was killed."""
    if not client.has_collection(recipe):
        return False
    client.load_collection(recipe)
    return not client.query(recipe, filter='name == "head"', output_fields=["part"])


def put_entry(client: Any, collection: str, name: str, blob: bytes) -> None:
    """Keep bytes under a name, as text in parts."""
    text = base64.b64encode(blob).decode()
    rows = [
        {
            "key": f"{name}/{part}",
            "name": name,
            "part": part,
            "text": text[part * TEXT : (part + 1) * TEXT],
            "nothing": b"\0",
        }
        for part in range(max(1, -(-len(text) // TEXT)))
    ]
    for begin in range(0, len(rows), PARTS):
        client.upsert(collection, rows[begin : begin + PARTS])


def recipe_name(address: Address) -> str:
    """The name of the collection of text."""
    return f"{address.name}_recipe"


def shown(address: Address) -> str:
    """The address, without the password."""
    if address.file is not None:
        return f"milvus://{address.file}?collection={address.name}"
    return f"milvus://{address.uri.removeprefix('http://')}/{address.name}"
