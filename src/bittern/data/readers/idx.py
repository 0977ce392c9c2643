"""Arrays in the idx format of MNIST, plain (mapped into memory) or compressed by gzip.

Two zero bytes, a type code, the number of dimensions, each dimension as a big-endian int32, then
the numbers, big-endian.
"""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.io.finding import reading, refuse_excess

__all__ = ["read_idx"]

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class _Header(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # byte of the first number

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an idx file, in the shape that its header states."""
    source = existing_file(path)
    with source.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            return _unpacked(source)
        file.seek(0)
        header = _header(source, file)
    _refuse_length(source, header, source.stat().st_size - header.start)
    if header.n_bytes == 0:
        return np.empty(header.shape, header.dtype)
    return np.memmap(source, header.dtype, "r", header.start, header.shape)


def _unpacked(source: Path) -> NDArray[Any]:
    with reading(source, "gzip file"), gzip.open(source) as stream:
        header = _header(source, stream)
        refuse_excess(source, header.n_bytes, source.stat().st_size, "its header")
        content = stream.read(header.n_bytes + 1)
        _refuse_length(source, header, len(content))
    return np.frombuffer(content, header.dtype).reshape(header.shape)


def _header(source: Path, stream: IO[bytes] | gzip.GzipFile) -> _Header:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES or not 1 <= magic[3] <= 8:
        raise FileError(f"{source}: is no idx file, it starts with {magic.hex(' ') or 'nothing'}.")
    sizes = stream.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise FileError(f"{source}: is truncated within its header.")
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    return _Header(np.dtype(TYPES[magic[2]]), shape, 4 + len(sizes))


def _refuse_length(source: Path, header: _Header, length: int) -> None:
    if length != header.n_bytes:
        held = "fewer" if length < header.n_bytes else "more"
        raise FileError(
            f"{source}: an array of shape {header.shape} has {header.n_bytes} bytes, "
            f"the file holds {held}."
        )
