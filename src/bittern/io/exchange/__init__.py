"""Codes to and from other programs: one file for each family, and a table of them all.

A target says in which order its bytes have their bits.  Where the program itself knows single bits
(it prints them, or packs them), that order is fixed; otherwise it is only a convention, and
``bitorder`` may choose the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bittern.checks import check_choice, check_new_ids
from bittern.errors import FileError, InputError, shown
from bittern.io.exchange import (
    arrow,
    embeddings,
    faiss_files,
    huggingface,
    lancedb,
    milvus,
    pgvector,
    sqlite_vec,
    usearch,
    vespa,
)
from bittern.io.exchange.items import Order, PackedItems, are_positions
from bittern.io.files import check_path
from bittern.io.metadata import Metadata, columns_of
from bittern.registry import Registry

__all__ = ["TARGETS", "Order", "PackedItems", "Target", "are_positions", "read", "write"]


class Target(NamedTuple):
    """A program or a format that codes go to and come from."""

    title: str
    write: Callable[[Any, PackedItems, str | None], None]
    read: Callable[[Any, str | None], PackedItems]
    bitorder: Order = "big"
    is_fixed: bool = False  # whether that order is the program's own
    has_ids: bool = True
    has_metadata: bool = True
    has_name: bool = False  # whether a name can be chosen: of a table, or a type of documents
    is_shared: bool = False  # whether the place may hold other things, to which codes are added


TARGETS: Registry[Target] = Registry(
    "target",
    {
        "faiss": Target(
            "FAISS binary index", faiss_files.write, faiss_files.read, has_metadata=False
        ),
        "pgvector": Target(
            "pgvector bit(n) as CSV", pgvector.write_csv, pgvector.read_csv, is_fixed=True
        ),
        "pgvector-copy": Target(
            "pgvector bit(n) for binary COPY",
            pgvector.write_copy,
            pgvector.read_copy,
            is_fixed=True,
        ),
        "sqlite-vec": Target(
            "SQLite file with a table bit[n] of sqlite-vec",
            sqlite_vec.write,
            sqlite_vec.read,
            bitorder="little",
            is_fixed=True,
            has_name=True,
        ),
        "usearch": Target("usearch index of b1", usearch.write, usearch.read, has_metadata=False),
        "lancedb": Target("LanceDB table", lancedb.write, lancedb.read),
        "milvus": Target(
            "Milvus collection of binary vectors",
            milvus.write,
            milvus.read,
            bitorder="little",
            has_name=True,
            is_shared=True,
        ),
        "vespa": Target(
            "Vespa documents with int8 tensors",
            vespa.write,
            vespa.read,
            is_fixed=True,
            has_name=True,
        ),
        "parquet": Target("Parquet file", arrow.write_parquet, arrow.read_parquet),
        "arrow": Target("Arrow file", arrow.write_arrow, arrow.read_arrow),
        "huggingface": Target(
            "folder of Hugging Face datasets", huggingface.write, huggingface.read
        ),
        "ubinary": Target(
            "uint8 embeddings of sentence-transformers and Cohere (.npy)",
            embeddings.write,
            embeddings.read_unsigned,
            is_fixed=True,
            has_ids=False,
            has_metadata=False,
        ),
        "binary": Target(
            "int8 embeddings of sentence-transformers and Cohere (.npy)",
            embeddings.write_signed,
            embeddings.read_signed,
            is_fixed=True,
            has_ids=False,
            has_metadata=False,
        ),
        "npy": Target(
            "bytes of np.packbits (.npy)",
            embeddings.write,
            embeddings.read,
            has_ids=False,
            has_metadata=False,
        ),
    },
)


def order_of(kind: str, bitorder: Order | None) -> Order:
    """The order of bits for a target; fails if another one is asked for than it has."""
    target = TARGETS[kind]
    if bitorder is not None:
        check_choice(bitorder, "Codes: bitorder", ("big", "little"))
    if target.is_fixed and bitorder not in (None, target.bitorder):
        raise InputError(f"{kind}: has the order of bits {target.bitorder!r}, not {bitorder!r}.")
    return bitorder or target.bitorder


def write(
    kind: str,
    path: str | os.PathLike[str],
    items: PackedItems,
    *,
    ids: Any = None,
    metadata: Metadata = None,
    name: str | None = None,
) -> None:
    """Write codes, with ids and metadata; fails if the target cannot hold what is given."""
    target = TARGETS[kind]
    numbers = None if ids is None else check_new_ids(ids, len(items), kind)
    columns = columns_of(metadata, len(items), kind)
    if numbers is not None and not target.has_ids and not are_positions(numbers):
        raise InputError(f"{kind}: has no place for ids; leave them out.")
    if columns and not target.has_metadata:
        raise InputError(f"{kind}: has no place for metadata; leave them out.")
    _check_name(kind, name)
    target.write(_place(path), replace(items, ids=numbers, columns=columns), name)


def read(
    kind: str,
    path: str | os.PathLike[str],
    *,
    n_bits: int | None = None,
    bitorder: Order | None = None,
    name: str | None = None,
) -> PackedItems:
    """What a file or a database holds; ``n_bits`` and ``bitorder`` if it does not say them."""
    target = TARGETS[kind]
    asked = order_of(kind, bitorder)
    _check_name(kind, name)
    found = target.read(_place(path), name)
    if found.n_bits is not None and n_bits not in (None, found.n_bits):
        raise FileError(f"{path}: holds codes of {found.n_bits} bits, not n_bits={n_bits}.")
    if found.bitorder is not None and bitorder not in (None, found.bitorder):
        raise FileError(f"{path}: has the order of bits {found.bitorder!r}, not {bitorder!r}.")
    return replace(
        found,
        packed=np.ascontiguousarray(found.packed),
        n_bits=found.n_bits or n_bits or 8 * found.n_bytes,
        bitorder=found.bitorder or asked,
    )


def _check_name(kind: str, name: str | None) -> None:
    if name is not None and not TARGETS[kind].has_name:
        raise InputError(f"{kind}: has nothing that a name could be for; leave it out.")
    if not isinstance(name, str | None) or not (name or "").isprintable():
        raise InputError(f"{kind}: a name must be printable text, got {shown(name)}.")


def _place(path: str | os.PathLike[str]) -> str | Path:
    """A path; the address of a server stays text."""
    return path if isinstance(path, str) and "://" in path else check_path(path)
