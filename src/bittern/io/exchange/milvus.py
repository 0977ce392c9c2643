"""Milvus: a collection of binary vectors, on a server or in a file of Milvus Lite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from bittern.errors import FileError
from bittern.io.exchange.items import CODE, ID, PackedItems, read_note
from bittern.io.files import existing_file
from bittern.io.metadata import columns_of, rows_of
from bittern.io.milvus import MilvusAddress, connect, create_items, milvus_errors

POSITION = "position"  # the field that keeps the order of the items
PER_CALL = 4096
NAME = "codes"


def write(path: str | os.PathLike[str], items: PackedItems, name: str | None) -> None:
    """A new collection; an error removes it again, and its file if that is new."""
    address = _address(path, name)
    is_new = address.file is not None and not Path(address.file).exists()
    try:
        _write(address, items)
    except BaseException:
        if is_new:
            Path(address.file or "").unlink(missing_ok=True)
        raise


def _write(address: MilvusAddress, items: PackedItems) -> None:
    with _connected(address) as client:
        if client.has_collection(address.name):
            raise FileError(f"{address}: exists already; choose another name, or drop it first.")
        try:
            create_items(client, address.name, 8 * items.n_bytes, items.note)
            for start in range(0, len(items), PER_CALL):
                client.insert(address.name, _rows(items, slice(start, start + PER_CALL)))
        except BaseException:
            client.drop_collection(address.name)
            raise


def read(path: str | os.PathLike[str], name: str | None) -> PackedItems:
    """The collection of that address, in the order of adding; or of ids, if it keeps no order."""
    address = _address(path, name)
    if address.file is not None:
        existing_file(address.file)
    with _connected(address) as client:
        if not client.has_collection(address.name):
            raise FileError(f"{address}: there is no such collection.")
        about = client.describe_collection(address.name)
        dims = {one["name"]: one.get("params", {}).get("dim") for one in about["fields"]}
        if not dims.get(CODE):
            raise FileError(f"{address}: has no field '{CODE}' of binary vectors.")
        client.load_collection(address.name)
        pages = client.query_iterator(
            address.name, filter="", output_fields=["*"], batch_size=PER_CALL
        )
        rows: list[dict[str, Any]] = []
        while page := pages.next():
            rows.extend(page)
        pages.close()
    rows.sort(key=lambda row: (row.get(POSITION, 0), row[ID]))
    packed = np.frombuffer(b"".join(row[CODE][0] for row in rows), np.uint8)
    ids = np.array([row[ID] for row in rows], np.int64)
    known = [{k: v for k, v in row.items() if k not in (ID, CODE, POSITION)} for row in rows]
    return PackedItems(
        packed.reshape(len(rows), int(dims[CODE]) // 8),
        *read_note(about.get("description")),
        ids,
        columns_of(known, len(rows), "metadata"),
    )


def _rows(items: PackedItems, some: slice) -> list[dict[str, Any]]:
    """Items as Milvus takes them."""
    codes, ids = items.packed[some], items.numbers[some].tolist()
    columns = {
        name: type(column)(column.kind, column.values[some])
        for name, column in items.columns.items()
    }
    return [
        {ID: i, POSITION: some.start + row, CODE: code.tobytes(), **known}
        for row, (i, code, known) in enumerate(
            zip(ids, codes, rows_of(columns, len(ids)), strict=True)
        )
    ]


def _address(path: str | os.PathLike[str], name: str | None) -> MilvusAddress:
    """An address of Milvus as it is; a path is that of a file of Milvus Lite."""
    text = os.fspath(path)
    if text.startswith("milvus://"):
        return MilvusAddress.parse(text)
    return MilvusAddress.parse(
        f"milvus://{quote(str(Path(text).resolve()))}?collection={name or NAME}"
    )


@contextmanager
def _connected(address: MilvusAddress) -> Iterator[Any]:
    client = connect(address)
    try:
        with milvus_errors(address):
            yield client
    finally:
        client.close()
