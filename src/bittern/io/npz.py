"""Arrays of .npy and .npz files, checked before they are read, and mapped if uncompressed.

``np.load`` believes a header's shape and reads what it promises; here each header is first compared
with the bytes in the file.  This is the package's only reader of these formats.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import atomic_write, existing_file, is_zip, reading, refuse_excess
from bittern.io.kinds import NPY, describe

MOST_HEADER = 1 << 16  # bytes
LOCAL_HEADER = 30  # bytes of a zip member's header before its name
ZIP64_EXTRA = 20  # bytes that a size beyond 32 bits takes after the name
PADDING = b"\x35\xd9"  # id of the extra field that aligns the numbers
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # by version
READERS[3, 0] = npy.read_array_header_2_0  # the same, but names of fields may be any text
END_MARK, END_RECORD = b"PK\x05\x06", 22  # what the end of a zip file begins with; its bytes
SEAL = b"bittern sha256 "  # begins the comment of a sealed file
ALIGNMENT = 64  # bytes, a line of the cache: mapped words must not straddle two


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array in a file: what its header says, and where its numbers are."""

    path: Path
    name: str  # its name in an .npz, the file's stem in an .npy
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int | None  # of the numbers in the file; None if they are compressed
    member: str | None = None

    def read(self) -> NDArray[Any]:
        """The array: a read-only memory map if it is uncompressed, otherwise in memory."""
        return self.load() if self.offset is None else self.map()

    def load(self) -> NDArray[Any]:
        """The array in memory; the checksum of a zip file's member is verified."""
        if self.member is None:
            with reading(self.path, ".npy file"), self.path.open("rb") as stream:
                return self._sound(npy.read_array(stream, allow_pickle=False))
        with _archive(self.path) as archive:
            return self.load_from(archive)

    def load_from(self, archive: zipfile.ZipFile) -> NDArray[Any]:
        """The array in memory, from its archive, which is open."""
        with reading(self.path, ".npz file"), archive.open(self.member or "") as stream:
            return self._sound(npy.read_array(stream, allow_pickle=False))

    def map(self, mode: Literal["r", "c"] = "r") -> NDArray[Any]:
        """The array as a memory map, read-only ("r") or copied when written to ("c")."""
        if self.offset is None:
            raise FileError(f"{self.path}: '{self.name}' is compressed and cannot be mapped.")
        order = cast(Any, "F" if self.fortran else "C")
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype, order)
        with reading(self.path, "array"):
            mapped = np.memmap(self.path, self.dtype, mode, self.offset, self.shape, order)
        return self._sound(mapped)

    def _sound(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array, if its text is text: Python fails on other code points much later."""
        if not _is_text(array):
            raise FileError(f"{self.path}: the array '{self.name}' holds text that is damaged.")
        return array


def stored_arrays(path: str | os.PathLike[str]) -> dict[str, StoredArray]:
    """The arrays of an ``.npy`` or ``.npz`` file by name; none is read, each header is checked."""
    source = existing_file(path)
    members = _members(source)
    if members is None:
        arrays = [_in_file(source)]
    else:
        with _archive(source) as archive:
            arrays = [_in_zip(source, archive, member) for member in members]
    if len({array.name for array in arrays}) < len(arrays):
        raise FileError(f"{source}: has two arrays of the same name.")
    return {array.name: array for array in arrays}


def array_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of a file's arrays, without reading them; the array of an ``.npy`` is called ''."""
    members = _members(existing_file(path))
    return [""] if members is None else [_name(member) for member in members]


def stored_array(path: str | os.PathLike[str], name: str) -> StoredArray:
    """One array, by a name from :func:`array_names`; the others are not checked."""
    source = existing_file(path)
    members = _members(source)
    if members is None:
        return _in_file(source)
    found = [member for member in members if _name(member) == name]
    if len(found) != 1:
        raise FileError(f"{source}: has {len(found)} arrays called '{name}'.")
    with _archive(source) as archive:
        return _in_zip(source, archive, found[0])


def load_arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` file in memory, checksums verified; it is opened once for all."""
    stored = stored_arrays(path)
    if any(array.member is None for array in stored.values()):
        return {name: array.load() for name, array in stored.items()}
    with _archive(Path(path)) as archive:
        return {name: array.load_from(archive) for name, array in stored.items()}


def read_arrays(
    path: str | os.PathLike[str], needed: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The arrays of these names in memory, in this machine's byte order, checksums verified."""
    stored = stored_arrays(path)
    require_names(path, needed, stored)
    names = [*needed, *(name for name in optional if name in stored)]
    return {name: to_native(stored[name].load()) for name in names}


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], *, compressed: bool = False
) -> None:
    """Write a sealed ``.npz`` file, whole or not at all; arrays of objects are errors."""
    with atomic_write(path) as file, sealed_archive(file, compressed=compressed) as archive:
        for name, array in arrays.items():
            write_aligned(archive, file, name, np.asanyarray(array))


@contextmanager
def sealed_archive(file: BinaryIO, *, compressed: bool = False) -> Iterator[zipfile.ZipFile]:
    """A zip file to write arrays to; at the end it gets its seal.

    A zip file has a checksum for each member, which :meth:`StoredArray.load` verifies and a memory
    map does not.  The seal is a checksum of these and of the members' names and sizes, in the
    comment of the zip file, where other programs do not mind it.  So a member that is missing,
    renamed or replaced is noticed too, whenever the file is opened.
    """
    how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", how) as archive:
        yield archive
        archive.comment = _seal(archive.infolist())


def require_names(
    path: str | os.PathLike[str], needed: Sequence[str], found: Collection[str]
) -> None:
    """Raise an error if an array is missing."""
    if lack := [name for name in needed if name not in found]:
        raise FileError(f"{path}: lacks {', '.join(lack)}; it has {sorted(found)[:12]}.")


def to_native(array: NDArray[Any]) -> NDArray[Any]:
    """The array in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def write_aligned(archive: zipfile.ZipFile, file: BinaryIO, name: str, array: NDArray[Any]) -> None:
    """Write one array as ``np.savez`` does, its bytes aligned in the file so that it can be mapped.

    ``archive`` is open for writing to ``file``.
    """
    member = zipfile.ZipInfo(f"{name}.npy")
    member.compress_type = archive.compression
    begins = file.tell() + LOCAL_HEADER + len(member.filename) + ZIP64_EXTRA + 4
    padding = -begins % ALIGNMENT
    member.extra = PADDING + padding.to_bytes(2, "little") + bytes(padding)
    with archive.open(member, "w", force_zip64=True) as stream:
        npy.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)


def _members(source: Path) -> list[zipfile.ZipInfo] | None:
    """The arrays of an ``.npz`` file; None for any other file."""
    with reading(source, "file"), source.open("rb") as file:
        start = file.read(len(NPY))
    if start.startswith(NPY) or not is_zip(source):
        return None
    with reading(source, ".npz file"), zipfile.ZipFile(source) as archive:
        members, comment = archive.infolist(), archive.comment
        _check_end(source, comment)
    seal = _seal(members)
    looks_sealed = comment.startswith(SEAL) or len(comment) == len(seal)  # damaged, perhaps
    if looks_sealed and comment != seal:
        raise FileError(
            f"{source}: is damaged (its checksum differs); make it again, or take a copy."
        )
    return [info for info in members if info.filename.endswith(".npy")]


def _check_end(source: Path, comment: bytes) -> None:
    """Raise an error unless the file ends with its comment, which is as long as it promises."""
    with source.open("rb") as file:
        file.seek(-min(source.stat().st_size, END_RECORD + len(comment)), os.SEEK_END)
        end = file.read(END_RECORD)
    if not end.startswith(END_MARK) or int.from_bytes(end[-2:], "little") != len(comment):
        raise ValueError("its end is missing, or more follows it")


def _seal(members: Sequence[zipfile.ZipInfo]) -> bytes:
    """The comment of a sealed zip file."""
    listed = "".join(f"{one.filename} {one.file_size} {one.CRC:08x}\n" for one in members)
    return SEAL + hashlib.sha256(listed.encode()).hexdigest().encode()


def _is_text(array: NDArray[Any]) -> bool:
    """Whether text, in the array or in its fields, has code points that exist."""
    if array.dtype.names is not None:
        return all(_is_text(array[name]) for name in array.dtype.names)
    if array.dtype.kind != "U" or not array.size:
        return True
    points = np.ascontiguousarray(array).view(array.dtype.byteorder.replace("|", "=") + "u4")
    return int(points.max(initial=0)) <= sys.maxunicode


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _in_file(source: Path) -> StoredArray:
    with reading(source, ".npy or .npz file"), source.open("rb") as file:
        shape, fortran, dtype, start = _header(source, source.stem, file)
    promised, left = _n_bytes(shape, dtype), source.stat().st_size - start
    if promised != left:
        raise FileError(
            f"{source}: an array of shape {shape} has {promised} bytes, but the file holds {left}."
        )
    return StoredArray(source, source.stem, shape, dtype, fortran, start)


def _in_zip(source: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> StoredArray:
    name = _name(info)
    with reading(source, ".npz file"), archive.open(info.filename) as stream:
        shape, fortran, dtype, start = _header(source, name, stream)
    promised = _n_bytes(shape, dtype)
    if promised != info.file_size - start:
        raise FileError(
            f"{source}: the array '{name}' of shape {shape} has {promised} bytes, "
            f"but the file holds {info.file_size - start}."
        )
    refuse_excess(source, promised, info.compress_size, f"the array '{name}'")
    plain = info.compress_type == zipfile.ZIP_STORED
    offset = _data_offset(source, info) + start if plain else None
    return StoredArray(source, name, shape, dtype, fortran, offset, info.filename)


def _header(source: Path, name: str, stream: IO[bytes]) -> tuple[Any, bool, np.dtype[Any], int]:
    """Shape, order, dtype and length of a header; reads at most MOST_HEADER bytes."""
    head = io.BytesIO(stream.read(MOST_HEADER))
    if not head.getvalue().startswith(NPY):
        raise FileError(f"{source}: not a readable .npy or .npz file (it is {describe(source)}).")
    try:
        read = READERS[npy.read_magic(head)]
        shape, fortran, dtype = read(head)
    except Exception as error:  # NumPy's parser raises anything, and speaks of its own insides
        raise ValueError("its header is damaged") from error
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
def _archive(source: Path) -> Iterator[zipfile.ZipFile]:
    with reading(source, ".npz file"), zipfile.ZipFile(source) as archive:
        yield archive


def _data_offset(source: Path, info: zipfile.ZipInfo) -> int:
    """Where a member's bytes start, after its local header, whose lengths may differ."""
    with reading(source, ".npz file"), source.open("rb") as file:
        file.seek(info.header_offset + 26)
        name_length, extra_length = np.frombuffer(file.read(4), "<u2").tolist()
    return int(info.header_offset + LOCAL_HEADER + name_length + extra_length)
