"""Arrow tables of codes: Parquet and Arrow files, and tables for LanceDB and Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.exchange.items import CODE, ID, NOTE, PackedItems, read_note
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.metadata import IN_JSON, Column, column_name, columns_of

N_BITS, BITORDER = b"n_bits", b"bitorder"  # keys of the table's metadata
JSON_TEXT = {"json": "true"}  # of a column whose text is JSON


def write_parquet(path: Path, items: PackedItems, name: str | None) -> None:
    """A Parquet file."""
    parquet = import_extra("pyarrow.parquet", "Parquet files")
    table = to_table(items)
    with atomic_write(path) as file:
        parquet.write_table(table, file)


def read_parquet(path: Path, name: str | None) -> PackedItems:
    """What :func:`write_parquet` wrote, or a file with such columns."""
    parquet, source = import_extra("pyarrow.parquet", "Parquet files"), existing_file(path)
    with reading(source, "Parquet file"), parquet.ParquetFile(source) as file:
        table = file.read()
    return from_table(source, table)


def write_arrow(path: Path, items: PackedItems, name: str | None) -> None:
    """An Arrow file (also called Feather, version 2)."""
    arrow = import_extra("pyarrow", "Arrow files")
    table = to_table(items)
    with atomic_write(path) as file, arrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def read_arrow(path: Path, name: str | None) -> PackedItems:
    """What :func:`write_arrow` wrote, or a file or stream with such columns."""
    arrow, source = import_extra("pyarrow", "Arrow files"), existing_file(path)
    with reading(source, "Arrow file"), source.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        opened = arrow.ipc.open_file(file) if is_file else arrow.ipc.open_stream(file)
        table = opened.read_all()
        table.validate(full=True)
    return from_table(source, table)


def to_table(items: PackedItems, *, as_lists: bool = False) -> Any:
    """A table of ``id``, ``code`` and the metadata; codes are fixed-size binary, or lists of uint8.

    The length of the codes and the order of their bits are in the table's metadata.
    """
    pa = import_extra("pyarrow", "Arrow tables")
    flat = np.ascontiguousarray(items.packed)
    if as_lists:
        codes = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), items.n_bytes)
    else:
        kind = pa.binary(items.n_bytes)
        codes = pa.FixedSizeBinaryArray.from_buffers(kind, len(flat), [None, pa.py_buffer(flat)])
    fields = [pa.field(ID, pa.int64(), False), pa.field(CODE, codes.type, False)]
    arrays = [pa.array(items.numbers), codes]
    for name, column in items.columns.items():
        arrays.append(_to_array(pa, column))
        about = JSON_TEXT if column.kind in IN_JSON else None
        fields.append(pa.field(name, arrays[-1].type, metadata=about))
    said = {N_BITS: str(items.n_bits), BITORDER: str(items.bitorder)}
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=said))


def from_table(source: Path | str, table: Any, note: str | None = None) -> PackedItems:
    """The codes, ids and metadata of a table; ``note`` says length and order if it does not."""
    with reading(source, "table of codes"):  # names and values are checked when they are used
        return _from_table(source, table, note)


def _from_table(source: Path | str, table: Any, note: str | None) -> PackedItems:
    name = _code_column(source, table.schema)
    packed = _packed(source, table.column(name))
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    said = f"n_bits={about.get('n_bits')} bitorder={about.get('bitorder')}"
    n_bits, bitorder = read_note(said if NOTE.search(said) else note)
    ids, others = None, [one for one in table.column_names if one != name]
    if ID in others and table.schema.field(ID).type in _integers():
        ids = table.column(ID).to_numpy().astype(np.int64)
        others.remove(ID)
    given = {column_name(one): _values(table, one) for one in others}
    columns = columns_of(given, len(packed), "metadata")
    return PackedItems(packed, n_bits, bitorder, ids, columns)


def _integers() -> list[Any]:
    import pyarrow as pa

    return [pa.int64(), pa.int32(), pa.uint32(), pa.int16(), pa.uint16(), pa.int8(), pa.uint8()]


def _code_column(source: Path | str, schema: Any) -> str:
    """The column ``code``, or the only one whose type codes can have."""
    possible = [name for name in schema.names if _is_bytes(schema.field(name).type)]
    if CODE in possible:
        return CODE
    if len(possible) != 1:
        raise FileError(
            f"{source}: codes must be a column '{CODE}' of fixed-size binary or of lists of uint8; "
            f"the columns are {', '.join(schema.names) or 'none'}."
        )
    return str(possible[0])


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    return bool(types.is_fixed_size_binary(kind) or (is_list and types.is_uint8(kind.value_type)))


def _packed(source: Path | str, column: Any) -> NDArray[np.uint8]:
    """Rows of bytes, from fixed-size binary or from lists of one length."""
    from pyarrow import types

    chunk = column.combine_chunks()
    n = len(chunk)
    if chunk.null_count:
        raise FileError(f"{source}: {chunk.null_count} codes are missing.")
    if types.is_fixed_size_binary(chunk.type):
        width = chunk.type.byte_width
        whole = np.frombuffer(chunk.buffers()[1] or b"", np.uint8)
        return whole[chunk.offset * width : (chunk.offset + n) * width].reshape(n, width)
    flat = chunk.flatten().to_numpy(zero_copy_only=False)
    if types.is_fixed_size_list(chunk.type):
        return np.asarray(flat, np.uint8).reshape(n, chunk.type.list_size)
    lengths = chunk.value_lengths().to_numpy(zero_copy_only=False)
    if n and (lengths != lengths[0]).any():
        raise FileError(f"{source}: codes must have one length.")
    return np.asarray(flat, np.uint8).reshape(n, int(lengths[0]) if n else 0)


def _to_array(pa: Any, column: Column) -> Any:
    kinds = {"BOOLEAN": pa.bool_(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    kind = kinds.get(column.kind, pa.string())
    return pa.array(column.values.data, type=kind, mask=np.ma.getmaskarray(column.values))


def _values(table: Any, name: str) -> list[Any]:
    """The values of a column as Python's; of other types than metadata have, as text."""
    from pyarrow import types

    column, field = table.column(name), table.schema.field(name)
    values = column.to_pylist()
    if (field.metadata or {}).get(b"json") == b"true":
        return [None if v is None else json.loads(v) for v in values]
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_string)
    if any(is_kind(kind) for is_kind in (*plain, types.is_large_string, types.is_nested)):
        return list(values)
    return [None if v is None else str(v) for v in values]
