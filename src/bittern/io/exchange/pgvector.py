"""pgvector: codes as ``bit(n)``, in CSV or in the binary format of PostgreSQL's COPY.

Both files have the columns ``id bigint``, ``code bit(n)`` and the metadata.  CSV has a header:
``COPY items FROM 'codes.csv' WITH (FORMAT csv, HEADER)``.  The binary format, which
``COPY items FROM 'codes.bin' WITH (FORMAT binary)`` reads, has no names and types; they are in the
extension of its header, which PostgreSQL skips.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import whole_number
from bittern.errors import FileError, InputError
from bittern.io.csv_columns import cells_to_numbers
from bittern.io.exchange.items import CODE, ID, PackedItems
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.lines import read_objects
from bittern.io.metadata import Column, column_name, columns_of

SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
WITH_OIDS = 1 << 16  # a flag of old versions
MISSING = struct.pack(">i", -1)
TITLE = "bittern"  # of our part of the header's extension
BITS = b"01"


def write_csv(path: Path, items: PackedItems, name: str | None) -> None:
    """CSV with a header; text is quoted, and a missing value is an empty cell."""
    if path.suffix.lower() != ".csv":
        raise InputError(f"{path}: codes for pgvector are a .csv file; choose such a name.")
    bits = np.unpackbits(items.packed, axis=1, count=items.n_bits)
    text = (bits + BITS[0]).astype(np.uint8)
    columns = [[_cell(value) for value in one.values.tolist()] for one in items.columns.values()]
    with atomic_write(path) as file:
        file.write(",".join([ID, CODE, *items.columns]).encode() + b"\n")
        for i, code, *cells in zip(items.numbers.tolist(), text, *columns, strict=True):
            file.write(f"{i},{code.tobytes().decode()}".encode())
            file.write("".join(f",{cell}" for cell in cells).encode() + b"\n")


def read_csv(path: Path, name: str | None) -> PackedItems:
    """CSV with the columns ``code`` and, if you like, ``id`` and others; or one code a line."""
    source = existing_file(path)
    with reading(source, "file of codes"), source.open("rb") as file:
        first = file.readline().strip()
        has_header = bool(first.strip(BITS))
        cells: dict[str, list[str]] = {CODE: [], ID: []}
        if not has_header:
            cells[CODE] = (first + b"\n" + file.read()).decode().split()
    if has_header:
        for _, row in read_objects(source, "codes of pgvector", [CODE], [ID, CODE]):
            for key, cell in row.items():
                cells.setdefault(key, []).append(cell)
    codes, ids = cells.pop(CODE), cells.pop(ID)
    packed, n_bits = _from_text(source, codes)
    columns = columns_of({column_name(k): _typed(v) for k, v in cells.items()}, len(codes), "CSV")
    with reading(source, "file of codes"):
        numbers = np.array(ids, np.int64) if ids else None
    return PackedItems(packed, n_bits, ids=numbers, columns=columns)


def write_copy(path: Path, items: PackedItems, name: str | None) -> None:
    """The binary format of COPY."""
    kinds = {ID: "bigint", CODE: f"bit({items.n_bits})"}
    kinds |= {key: SQL[column.kind] for key, column in items.columns.items()}
    head = json.dumps({TITLE: kinds}).encode()
    layout = [("n", ">i2"), ("i", ">i4"), ("id", ">i8"), ("c", ">i4"), ("bits", ">i4")]
    fixed = np.zeros(len(items), [*layout, ("code", np.uint8, (items.n_bytes,))])
    fixed["n"], fixed["i"], fixed["c"] = 2 + len(items.columns), 8, 4 + items.n_bytes
    fixed["id"], fixed["bits"], fixed["code"] = items.numbers, items.n_bits, items.packed
    fields = [_fields(column) for column in items.columns.values()]
    with atomic_write(path) as file:
        file.write(SIGNATURE + struct.pack(">ii", 0, len(head)) + head)
        if not fields:
            file.write(fixed.tobytes())
        else:
            for row, *others in zip(fixed, *fields, strict=True):
                file.write(row.tobytes() + b"".join(others))
        file.write(struct.pack(">h", -1))


def read_copy(path: Path, name: str | None) -> PackedItems:
    """The binary format of COPY: ours, or of ``COPY (SELECT id, code FROM …) TO …``."""
    source = existing_file(path)
    content = source.read_bytes()
    if not content.startswith(SIGNATURE):
        raise FileError(f"{source}: is no binary file of PostgreSQL's COPY.")
    with reading(source, "binary file of PostgreSQL's COPY"):
        flags, length = struct.unpack_from(">ii", content, len(SIGNATURE))
        if flags & WITH_OIDS:
            raise FileError(f"{source}: has OIDs, which only old versions of PostgreSQL write.")
        start = len(SIGNATURE) + 8
        names = _names(content[start : start + length])
        rows = list(_tuples(content, start + length))
        if rows and len(names) != len(rows[0]):
            raise FileError(
                f"{source}: has {len(rows[0])} columns without names; copy id and code alone."
            )
        fields = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        ids = [int.from_bytes(one, "big", signed=True) for one in fields.pop(ID, ())]
        packed, n_bits = _from_fields(source, names[CODE], fields.pop(CODE, ()))
        given = {key: [_value(v, names[key]) for v in some] for key, some in fields.items()}
        columns = columns_of(given, len(rows), "COPY")
        return PackedItems(packed, n_bits, ids=np.array(ids, np.int64), columns=columns)


SQL = {  # of each kind of metadata; JSON travels as text
    "BOOLEAN": "boolean",
    "BIGINT": "bigint",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "VARCHAR[]": "json",
    "JSON": "json",
}
_TO_BYTES: dict[str, Callable[[Any], bytes]] = {
    "boolean": lambda value: struct.pack(">?", value),
    "bigint": lambda value: struct.pack(">q", value),
    "double precision": lambda value: struct.pack(">d", value),
}
_FROM_BYTES: dict[str, Callable[[bytes], Any]] = {
    "boolean": lambda field: field != b"\0",
    "bigint": lambda field: int.from_bytes(field, "big", signed=True),
    "double precision": lambda field: struct.unpack(">d", field)[0],
    "text": bytes.decode,
    "json": json.loads,
}


def _cell(value: Any) -> str:
    """A value in CSV as PostgreSQL reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


def _typed(cells: list[str]) -> Any:
    """Booleans, numbers or text; an empty cell is missing."""
    if set(cells) <= {"true", "false", ""}:
        return [{"true": True, "false": False}.get(cell) for cell in cells]
    found = cells_to_numbers(cells)
    return [cell or None for cell in cells] if found is None else found


def _from_text(source: Path, codes: list[str]) -> tuple[NDArray[np.uint8], int | None]:
    """Bytes from codes of zeros and ones."""
    lengths = {len(code) for code in codes}
    if len(lengths) > 1 or 0 in lengths:
        raise FileError(f"{source}: codes must have one length, got {sorted(lengths)[:3]}.")
    if not codes:
        raise FileError(f"{source}: has no codes.")
    bits = np.frombuffer("".join(codes).encode(), np.uint8).reshape(len(codes), -1) - BITS[0]
    if bits.max(initial=0) > 1:
        row = int((bits > 1).any(axis=1).argmax())
        raise FileError(f"{source}: codes have only 0 and 1, got {codes[row][:40]!r}.")
    return np.packbits(bits, axis=1), bits.shape[1]


def _fields(column: Column) -> list[bytes]:
    """Each value with its length in front."""
    to_bytes = _TO_BYTES.get(SQL[column.kind], str.encode)
    values = (None if v is None else to_bytes(v) for v in column.values.tolist())
    return [MISSING if v is None else struct.pack(">i", len(v)) + v for v in values]


def _value(field: bytes | None, kind: str) -> Any:
    return None if field is None else _FROM_BYTES[kind](field)


def _names(extension: bytes) -> dict[str, str]:
    """Names and types of the columns; without our extension, id and code."""
    try:
        known = json.loads(extension)[TITLE]
    except (ValueError, KeyError, TypeError):
        return {ID: "bigint", CODE: "bit"}
    return {str(key): str(kind) for key, kind in known.items()}


def _tuples(content: bytes, at: int) -> Iterator[list[bytes | None]]:
    """The fields of each row, None for a missing one."""
    while (n := struct.unpack_from(">h", content, at)[0]) != -1:
        at += 2
        fields: list[bytes | None] = []
        for _ in range(n):
            (size,) = struct.unpack_from(">i", content, at)
            at += 4
            if at + max(size, 0) > len(content):
                raise ValueError("it is cut off")
            fields.append(None if size < 0 else content[at : at + size])
            at += max(size, 0)
        yield fields


def _from_fields(
    source: Path, kind: str, codes: tuple[bytes | None, ...]
) -> tuple[NDArray[np.uint8], int | None]:
    """Bytes from fields of ``bit(n)``: the length as four bytes, then the bits."""
    if None in codes:
        raise FileError(f"{source}: a code is missing.")
    lengths = {struct.unpack_from(">i", code or b"")[0] for code in codes}
    if len(lengths) > 1:
        raise FileError(f"{source}: codes must have one length, got {sorted(lengths)[:3]}.")
    stated = kind.removeprefix("bit(").removesuffix(")")
    n_bits = lengths.pop() if lengths else whole_number(stated) or 0
    joined = b"".join((code or b"")[4:] for code in codes)
    return np.frombuffer(joined, np.uint8).reshape(len(codes), -(-n_bits // 8)), n_bits
