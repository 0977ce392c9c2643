"""Bytes of codes in ``.npy`` files, as sentence-transformers and Cohere write binary embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.code_layouts import LAYOUTS
from bittern.io.exchange.items import PackedItems
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import stored_arrays

OFFSET = 128  # of the layout binary


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """Rows of uint8."""
    _save(path, items.packed)


def write_signed(path: Path, items: PackedItems, name: str | None) -> None:
    """Rows of int8, each byte minus 128."""
    _save(path, (items.packed.astype(np.int16) - OFFSET).astype(np.int8))


def read(path: Path, name: str | None) -> PackedItems:
    """Rows of uint8 alone: other numbers would hardly be packed codes."""
    rows = _load(path)
    if rows.dtype != np.uint8:
        raise FileError(f"{path}: not a file of packed codes: they are uint8, got {rows.dtype}.")
    return PackedItems(rows)


def read_unsigned(path: Path, name: str | None) -> PackedItems:
    """Rows of whole numbers from 0 to 255, of any type."""
    return PackedItems(LAYOUTS["ubinary"](_load(path), str(path)))


def read_signed(path: Path, name: str | None) -> PackedItems:
    """Rows of whole numbers from -128 to 127, of any type."""
    return PackedItems(LAYOUTS["binary"](_load(path), str(path)))


def _save(path: Path, array: NDArray[Any]) -> None:
    with atomic_write(path) as file:
        np.save(file, array, allow_pickle=False)


def _load(path: Path) -> NDArray[Any]:
    source = existing_file(path)
    with reading(source, ".npy file"):
        (array,) = stored_arrays(source).values()
        rows = array.load()
    if rows.ndim != 2:
        raise FileError(f"{source}: not a file of packed codes: they are 2-D, got {rows.shape}.")
    return rows
