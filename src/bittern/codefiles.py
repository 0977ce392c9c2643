"""Files of codes: ``.npz`` and ``.npy``, mapped into memory where asked."""

from __future__ import annotations

import os
import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.errors import FileError, InputError
from bittern.files import atomic_write, existing_file, reading

__all__ = ["StoredCodes", "read", "write"]

FIELD = re.compile(r"words_of_([1-9][0-9]*)_bits")
LOCAL_HEADER = 30  # octets of a zip member's header before its name
ZIP64_EXTRA = 20  # octets that a size beyond 32 bits takes after the name
PADDING = 0xD935  # kind of an extra field that aligns what follows


@dataclass(frozen=True, slots=True)
class StoredCodes:
    """The 2-D array of a code file, and the code length where the file states it."""

    array: NDArray[Any]
    n_bits: int | None


def write(path: str | os.PathLike[str], words: NDArray[np.uint64], n_bits: int) -> None:
    """Write words and code length; the ending of ``path`` chooses the format."""
    suffix = Path(path).suffix
    if suffix not in (".npz", ".npy"):
        raise InputError(f"{path}: codes are saved as .npz or .npy, got {suffix or 'no ending'!r}.")
    little = words.astype("<u8", copy=False)
    with atomic_write(path) as file:
        if suffix == ".npz":
            _write_npz(file, little, n_bits)
        else:
            np.save(file, little if n_bits % 64 == 0 else _named(little, n_bits))


def _write_npz(file: BinaryIO, words: NDArray[np.uint64], n_bits: int) -> None:
    """What ``np.savez`` writes, with the words aligned in the file for being mapped."""
    with zipfile.ZipFile(file, "w") as archive:
        member = zipfile.ZipInfo("words.npy")
        begins = LOCAL_HEADER + len(member.filename) + ZIP64_EXTRA
        member.extra = struct.pack("<HH", PADDING, -(begins + 4) % 64) + bytes(-(begins + 4) % 64)
        with archive.open(member, "w", force_zip64=True) as target:
            npy.write_array(target, words, allow_pickle=False)
        with archive.open("n_bits.npy", "w") as target:
            npy.write_array(target, np.asanyarray(np.int64(n_bits)), allow_pickle=False)


def read(path: str | os.PathLike[str], *, mmap: bool = False) -> StoredCodes:
    """The array and, where the file states it, the code length."""
    source = existing_file(path)
    with reading(source, "file of codes"), source.open("rb") as file:
        if zipfile.is_zipfile(file):
            return _read_npz(file, source, mmap)
        file.seek(0)
        return _read_npy(file, source, mmap)


def _named(words: NDArray[np.uint64], n_bits: int) -> NDArray[Any]:
    """The same memory as records whose one field tells the code length."""
    record = np.dtype([(f"words_of_{n_bits}_bits", "<u8", (words.shape[1],))])
    return np.ascontiguousarray(words).view(record)[:, 0]


def _read_npy(file: BinaryIO, source: Path, mmap: bool) -> StoredCodes:
    array = _map_npy(file, source) if mmap else np.load(file, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise FileError(f"{source}: not a file of codes.")
    if array.dtype.names is None:
        return StoredCodes(_two_dimensional(array, source), None)
    match = FIELD.fullmatch(array.dtype.names[0]) if len(array.dtype.names) == 1 else None
    if match is None:
        raise FileError(f"{source}: holds records {array.dtype}, not codes.")
    words = _two_dimensional(array[array.dtype.names[0]], source)
    return StoredCodes(words, int(match[1]))


def _read_npz(file: BinaryIO, source: Path, mmap: bool) -> StoredCodes:
    with np.load(file, allow_pickle=False) as archive:
        if not {"words", "n_bits"} <= set(archive.files):
            raise FileError(
                f"{source}: a file of codes has the arrays 'words' and 'n_bits', "
                f"got {sorted(archive.files)}."
            )
        n_bits = archive["n_bits"]
        if np.shape(n_bits) != () or n_bits.dtype.kind not in "iu":
            raise FileError(f"{source}: n_bits must be one whole number.")
        words = _map_member(source, "words.npy") if mmap else archive["words"]
    if words.dtype.kind != "u" or words.dtype.itemsize != 8:
        raise FileError(f"{source}: words must be 64-bit unsigned integers, got {words.dtype}.")
    return StoredCodes(_two_dimensional(words, source), int(n_bits))


def _map_member(source: Path, member: str) -> NDArray[Any]:
    """A stored (not compressed) array of a zip file, mapped copy-on-write."""
    with zipfile.ZipFile(source) as archive:
        info = archive.getinfo(member)
    if info.compress_type != zipfile.ZIP_STORED:
        raise FileError(f"{source}: compressed codes cannot be mapped; load without mmap.")
    with source.open("rb") as file:
        file.seek(info.header_offset + 26)
        name_length, extra_length = np.frombuffer(file.read(4), "<u2")
        file.seek(info.header_offset + LOCAL_HEADER + int(name_length) + int(extra_length))
        return _map_npy(file, source)


def _map_npy(file: BinaryIO, source: Path) -> NDArray[Any]:
    """The array whose header starts at the file's position."""
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = header(file)
    if dtype.hasobject:
        raise FileError(f"{source}: holds Python objects, not codes.")
    order = "F" if fortran else "C"
    return np.memmap(source, dtype, "c", file.tell(), shape, cast(Any, order))


def _two_dimensional(array: NDArray[Any], source: Path) -> NDArray[Any]:
    if array.ndim != 2:
        raise FileError(f"{source}: codes are a 2-D array (n, width), got shape {array.shape}.")
    return _native(array)


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Words in this machine's byte order, as a plain array over the same memory."""
    native = array.dtype.newbyteorder("=")
    return np.asarray(np.ascontiguousarray(array)).astype(native, copy=False)
