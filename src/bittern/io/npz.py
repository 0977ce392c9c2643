"""Arrays of .npy and .npz files: mapped where they lie plain, and checked before they are read."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file, reading, refuse_excess

__all__ = ["StoredArray", "stored_arrays"]

MOST_HEADER = 1 << 16  # bytes
LOCAL_HEADER = 30  # bytes of a zip member's header before its name


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array in a file: what its header says, and where it lies."""

    path: Path
    name: str  # its name in an .npz, the file's stem in an .npy
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int | None  # of the numbers in the file; None where they are compressed
    member: str | None = None

    def read(self) -> NDArray[Any]:
        """The array: a read-only memory map where the numbers lie plain, else in memory."""
        return self.load() if self.offset is None else self.map()

    def load(self) -> NDArray[Any]:
        """The array in memory; the checksum of a zip file's member is verified."""
        if self.member is None:
            with reading(self.path, ".npy file"), self.path.open("rb") as stream:
                return npy.read_array(stream, allow_pickle=False)
        with _member(self.path, self.member) as stream:
            return npy.read_array(stream, allow_pickle=False)

    def map(self, mode: Literal["r", "c"] = "r") -> NDArray[Any]:
        """The array as a memory map, read-only or copied where it is written to."""
        if self.offset is None:
            raise FileError(f"{self.path}: '{self.name}' is compressed and cannot be mapped.")
        order = cast(Any, "F" if self.fortran else "C")
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype, order)
        with reading(self.path, "array"):
            return np.memmap(self.path, self.dtype, mode, self.offset, self.shape, order)


def stored_arrays(path: Path) -> dict[str, StoredArray]:
    """The arrays of an ``.npy`` or ``.npz`` file by name; none is read, each header is checked."""
    source = existing_file(path)
    if zipfile.is_zipfile(source):
        with reading(source, ".npz file"), zipfile.ZipFile(source) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        arrays = [_in_zip(source, info) for info in infos]
    else:
        with reading(source, ".npy file"), source.open("rb") as file:
            arrays = [_in_file(source, file)]
    if len({array.name for array in arrays}) < len(arrays):
        raise FileError(f"{source}: has two arrays of one name.")
    return {array.name: array for array in arrays}


def _in_file(source: Path, file: IO[bytes]) -> StoredArray:
    shape, fortran, dtype, start = _header(source, source.stem, file)
    promised, left = _n_bytes(shape, dtype), source.stat().st_size - start
    if promised != left:
        raise FileError(
            f"{source}: an array of shape {shape} has {promised} bytes, the file holds {left}."
        )
    return StoredArray(source, source.stem, shape, dtype, fortran, start)


def _in_zip(source: Path, info: zipfile.ZipInfo) -> StoredArray:
    name = info.filename.removesuffix(".npy")
    with _member(source, info.filename) as stream:
        shape, fortran, dtype, start = _header(source, name, stream)
    promised = _n_bytes(shape, dtype)
    if promised != info.file_size - start:
        raise FileError(
            f"{source}: the array '{name}' of shape {shape} has {promised} bytes, "
            f"the file holds {info.file_size - start}."
        )
    refuse_excess(source, promised, info.compress_size, f"the array '{name}'")
    plain = info.compress_type == zipfile.ZIP_STORED
    offset = _data_offset(source, info) + start if plain else None
    return StoredArray(source, name, shape, dtype, fortran, offset, info.filename)


def _header(source: Path, name: str, stream: IO[bytes]) -> tuple[Any, bool, np.dtype[Any], int]:
    """Shape, order, dtype and length of a header; it is read within bounds, whatever it says."""
    head = io.BytesIO(stream.read(MOST_HEADER))
    version = npy.read_magic(head)
    if version == (1, 0):
        shape, fortran, dtype = npy.read_array_header_1_0(head)
    else:
        shape, fortran, dtype = npy.read_array_header_2_0(head)
    if dtype.hasobject:
        raise FileError(
            f"{source}: the array '{name}' holds pickled objects, which could run code; "
            "save it as numbers or text."
        )
    if any(type(n) is not int or n < 0 for n in shape):
        raise FileError(f"{source}: the array '{name}' has the impossible shape {shape}.")
    return shape, fortran, dtype, head.tell()


def _n_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * dtype.itemsize


@contextmanager
def _member(source: Path, name: str) -> Iterator[IO[bytes]]:
    with (
        reading(source, ".npz file"),
        zipfile.ZipFile(source) as archive,
        archive.open(name) as stream,
    ):
        yield stream


def _data_offset(source: Path, info: zipfile.ZipInfo) -> int:
    """Where a member's bytes start, after its local header, whose lengths may differ."""
    with reading(source, ".npz file"), source.open("rb") as file:
        file.seek(info.header_offset + 26)
        name_length, extra_length = np.frombuffer(file.read(4), "<u2").tolist()
    return int(info.header_offset + LOCAL_HEADER + name_length + extra_length)
