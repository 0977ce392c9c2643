"""Columns of Parquet files: numbers, text, or rows of numbers of the same length."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.files import reading, refuse_excess
from bittern.io.named_array import NamedArray

MOST_ROWS = 1 << 24  # that a few bytes may stand for, by repetition


def parquet_columns(path: Path) -> dict[str, NamedArray]:
    """The columns of a file by name."""
    parquet = import_extra("pyarrow.parquet", f"{path}: a Parquet file")
    with reading(path, "Parquet file"), parquet.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        if n_rows < 0 or file.metadata.num_row_groups < 0:
            raise FileError(f"{path}: has the impossible number of {n_rows} rows.")
        if n_rows > MOST_ROWS:
            refuse_excess(path, n_rows, path.stat().st_size, "the number of rows")
        fields = {name: schema.field(name).type for name in schema.names}
        return {name: _entry(path, name, kind, n_rows) for name, kind in fields.items()}


def _entry(path: Path, name: str, kind: Any, n_rows: int) -> NamedArray:
    """A column: numbers, text, or rows of numbers of the same length."""
    from pyarrow import types

    if types.is_fixed_size_binary(kind):
        shape = n_rows, kind.byte_width
        return NamedArray(name, shape, "uint8", "numbers", True, partial(_bytes, path, name))
    is_rows = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    inner = kind.value_type if is_rows else kind
    is_number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    is_text = types.is_string(inner) or types.is_large_string(inner) or types.is_dictionary(inner)
    if is_rows and is_number:
        read = partial(_rows, path, name)
        width = kind.list_size if types.is_fixed_size_list(kind) else read().shape[1]
        return NamedArray(
            name, (n_rows, width), str(inner), "numbers", types.is_integer(inner), read
        )
    known = "numbers" if is_number else "text" if is_text and not is_rows else "other"
    is_discrete = known == "text" or (is_number and not types.is_floating(inner))
    return NamedArray(
        name,
        (n_rows,),
        "text" if known == "text" else str(kind),
        known,
        is_discrete,
        partial(_column, path, name),
    )


def _chunk(path: Path, name: str) -> Any:
    import pyarrow.parquet as parquet

    with reading(path, "Parquet file"), parquet.ParquetFile(path) as file:
        column = file.read([name]).column(0)
        column.validate(full=True)
        if len(column) != file.metadata.num_rows:
            raise FileError(
                f"{path}: '{name}' has {len(column)} rows, "
                f"but the file's header says {file.metadata.num_rows}."
            )
        return column.combine_chunks()


def _rows(path: Path, name: str) -> NDArray[Any]:
    """Lists of the same length as a 2-D array."""
    rows = _chunk(path, name)
    with reading(path, "Parquet file"):
        flat = rows.flatten()
        if rows.null_count or flat.null_count or (len(rows) and len(flat) % len(rows)):
            raise FileError(
                f"{path}: the rows of '{name}' must have one length and no missing values."
            )
        width = len(flat) // len(rows) if len(rows) else 0
        lengths = rows.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != width).any():
            raise FileError(
                f"{path}: the rows of '{name}' must have one length and no missing values."
            )
        numbers: NDArray[Any] = flat.to_numpy(zero_copy_only=False)
        return numbers.reshape(len(rows), width)


def _bytes(path: Path, name: str) -> NDArray[np.uint8]:
    """Values of one number of bytes as a 2-D array."""
    values = _chunk(path, name)
    if values.null_count:
        raise FileError(f"{path}: '{name}' must have no missing values.")
    width = values.type.byte_width
    first = values.offset * width
    flat = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    return flat[first : first + len(values) * width].reshape(len(values), width)


def _column(path: Path, name: str) -> NDArray[Any]:
    """Numbers or text; with missing values, an array of objects and None."""
    column = _chunk(path, name)
    with reading(path, "Parquet file"):
        if column.null_count:
            return np.array(column.to_pylist(), dtype=object)
        return np.asarray(column.to_numpy(zero_copy_only=False))
