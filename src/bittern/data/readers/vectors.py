"""Vectors as the TEXMEX corpus stores them: .fvecs, .bvecs and .ivecs files, mapped into memory.

Each row is its dimension, a little-endian int32, followed by so many float32 (.fvecs), uint8
(.bvecs) or int32 (.ivecs), also little-endian.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.registry import Registry

__all__ = ["KINDS", "read_vectors"]

KINDS: Registry[str] = Registry(
    "ending of vector files", {".fvecs": "<f4", ".bvecs": "u1", ".ivecs": "<i4"}
)
BLOCK = 1 << 16  # rows whose dimensions are compared at a time


def read_vectors(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The ``(n, dim)`` rows of a file as a read-only memory map; no row is copied."""
    source = existing_file(path)
    if source.suffix not in KINDS:
        raise FileError(f"{source}: {KINDS.refusal(source.suffix)}")
    kind = np.dtype(KINDS[source.suffix])
    size = source.stat().st_size
    dim = _dimension(source)
    row = np.dtype([("dim", "<i4"), ("row", kind, (dim,))])
    if size % row.itemsize:
        raise FileError(
            f"{source}: is truncated or of another kind: rows of {dim} numbers have "
            f"{row.itemsize} bytes, and {size} bytes are no whole number of rows."
        )
    records = np.memmap(source, row, "r")
    for start in range(0, len(records), BLOCK):
        wrong = records["dim"][start : start + BLOCK] != dim
        if wrong.any():
            raise FileError(
                f"{source}: row 0 has dimension {dim}, row {start + int(wrong.argmax())} another."
            )
    return records["row"]


def _dimension(source: Path) -> int:
    with source.open("rb") as file:
        head = file.read(4)
    if len(head) < 4:
        raise FileError(f"{source}: has no vectors, the file has {len(head)} bytes.")
    dim = int(np.frombuffer(head, "<i4")[0])
    if not 1 <= dim <= source.stat().st_size:
        raise FileError(f"{source}: a vector cannot have dimension {dim}.")
    return dim
