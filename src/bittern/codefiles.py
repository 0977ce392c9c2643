"""Files of codes: ``.npz`` and ``.npy``, mapped into memory where asked."""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.errors import FileError, InputError
from bittern.files import atomic_write, existing_file

__all__ = ["StoredCodes", "read", "write"]

FIELD = re.compile(r"words_of_([1-9][0-9]*)_bits")
LOCAL_HEADER = 30  # octets of a zip member's header before its name


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
            np.savez(file, words=little, n_bits=np.int64(n_bits))
        else:
            np.save(file, little if n_bits % 64 == 0 else _named(little, n_bits))


def read(path: str | os.PathLike[str], *, mmap: bool = False) -> StoredCodes:
    """The array and, where the file states it, the code length."""
    source = existing_file(path)
    try:
        if zipfile.is_zipfile(source):
            return _read_npz(source, mmap)
        return _read_npy(source, mmap)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{source}: not a readable file of codes ({error}).") from error


def _named(words: NDArray[np.uint64], n_bits: int) -> NDArray[Any]:
    """The same memory as records whose one field tells the code length."""
    record = np.dtype([(f"words_of_{n_bits}_bits", "<u8", (words.shape[1],))])
    return np.ascontiguousarray(words).view(record)[:, 0]


def _read_npy(source: Path, mmap: bool) -> StoredCodes:
    array = np.load(source, mmap_mode="c" if mmap else None, allow_pickle=False)
    if array.dtype.names is None:
        return StoredCodes(_two_dimensional(array, source), None)
    match = FIELD.fullmatch(array.dtype.names[0]) if len(array.dtype.names) == 1 else None
    if match is None:
        raise FileError(f"{source}: holds records {array.dtype}, not codes.")
    return StoredCodes(_native(array[array.dtype.names[0]]), int(match[1]))


def _read_npz(source: Path, mmap: bool) -> StoredCodes:
    with np.load(source, allow_pickle=False) as archive:
        if not {"words", "n_bits"} <= set(archive.files):
            raise FileError(
                f"{source}: a file of codes has the arrays 'words' and 'n_bits', "
                f"got {sorted(archive.files)}."
            )
        n_bits = int(archive["n_bits"])
        words = _map_member(source, "words.npy") if mmap else archive["words"]
    return StoredCodes(_two_dimensional(words, source), n_bits)


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
