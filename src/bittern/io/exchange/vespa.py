"""Vespa: documents to feed, one JSON object a line, with codes as ``tensor<int8>(x[n])``."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bittern.checks import whole_number
from bittern.errors import FileError, InputError
from bittern.io.exchange.items import CODE, PackedItems
from bittern.io.files import atomic_write
from bittern.io.lines import read_objects
from bittern.io.metadata import columns_of, rows_of

NAME = "codes"  # of the namespace and the type of the documents


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """A ``put`` for each item: its id ends the document's, and metadata are fields."""
    if path.suffix.lower() != ".jsonl":
        raise InputError(f"{path}: documents for Vespa are a .jsonl file; choose such a name.")
    start = f"id:{name or NAME}:{name or NAME}::"
    known = rows_of(items.columns, len(items))
    signed = items.packed.view(np.int8)
    with atomic_write(path) as file:
        for i, code, fields in zip(items.numbers.tolist(), signed, known, strict=True):
            put = {"put": f"{start}{i}", "fields": {CODE: {"values": code.tolist()}, **fields}}
            file.write(json.dumps(put, ensure_ascii=False).encode() + b"\n")


def read(path: Path, name: str | None) -> PackedItems:
    """The codes of documents to feed, or of ``vespa visit``; values may be hexadecimal."""
    rows: list[bytes] = []
    ids: list[int | None] = []
    known: list[dict[str, Any]] = []
    for number, document in read_objects(path, "documents of Vespa", [], []):
        where = f"{path}, line {number}"
        title = str(document.get("put") or document.get("id") or "")
        given = document.get("fields")
        if not title.startswith("id:") or not isinstance(given, Mapping):
            raise FileError(f"{where}: is no document of Vespa, with 'put' and 'fields'.")
        fields = dict(given)
        rows.append(_code(where, fields.pop(CODE, None)))
        last = title.rpartition(":")[2]
        ids.append(whole_number(last))
        known.append(fields if ids[-1] is not None else {**fields, "name": last})
    if not rows:
        raise FileError(f"{path}: has no documents.")
    if len({len(row) for row in rows}) > 1:
        raise FileError(f"{path}: codes must have one length.")
    packed = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
    all_ids = None if None in ids else np.array(ids, np.int64)
    return PackedItems(packed, ids=all_ids, columns=columns_of(known, len(rows), str(path)))


def _code(where: str, field: Any) -> bytes:
    """The bytes of a dense tensor of int8."""
    values: Any = field.get("values") if isinstance(field, Mapping) else field
    try:
        if isinstance(values, str):
            return bytes.fromhex(values)
        return struct.pack(f"{len(values)}b", *values)
    except (ValueError, TypeError, struct.error):
        raise FileError(
            f"{where}: the field '{CODE}' must have \"values\", numbers from -128 to 127."
        ) from None
