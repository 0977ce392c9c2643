"""Files of codes: ``.npz`` and ``.npy``, in memory or mapped."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write, check_path, existing_file
from bittern.io.npz import StoredArray, sealed_archive, stored_arrays, to_native, write_aligned

FIELD = re.compile(r"words_of_([1-9][0-9]{0,17})_bits")


@dataclass(frozen=True, slots=True)
class StoredCodes:
    """The 2-D array of a file of codes, and the code length if the file states it."""

    array: NDArray[Any]
    n_bits: int | None


def write(
    path: str | os.PathLike[str],
    words: NDArray[np.uint64],
    n_bits: int,
    about: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write words and code length; the ending of ``path`` chooses the format.

    An ``.npz`` also holds the arrays ``about`` the codes, such as labels; an ``.npy`` cannot.
    """
    suffix = check_suffix(path)
    little = words.astype("<u8", copy=False)
    with atomic_write(path) as file:
        if suffix == ".npy":
            np.save(file, little if n_bits % 64 == 0 else _named(little, n_bits))
            return
        with sealed_archive(file) as archive:
            write_aligned(archive, file, "words", little)
            write_aligned(archive, file, "n_bits", np.asarray(n_bits, np.int64))
            for name, array in (about or {}).items():
                write_aligned(archive, file, name, array)


def check_suffix(path: str | os.PathLike[str]) -> str:
    """The ending of a file of codes, ``.npz`` or ``.npy``."""
    suffix = check_path(path).suffix
    if suffix not in (".npz", ".npy"):
        raise InputError(f"{path}: codes are saved as .npz or .npy, got {suffix or 'no ending'!r}.")
    return suffix


def read(path: str | os.PathLike[str], *, mmap: bool = False) -> StoredCodes:
    """The array and, if the file states it, the code length."""
    source = existing_file(path)
    stored = stored_arrays(source)
    is_npz = any(array.member is not None for array in stored.values()) or len(stored) != 1
    wanted = _of_npz(source, stored) if is_npz else next(iter(stored.values()))
    if mmap and wanted.offset is None:
        raise FileError(f"{source}: compressed codes cannot be mapped; load without mmap.")
    array = wanted.map("c") if mmap else wanted.load()
    if is_npz:
        return StoredCodes(_two_dimensional(array, source), _stated_length(source, stored))
    return _of_npy(source, array)


def _named(words: NDArray[np.uint64], n_bits: int) -> NDArray[Any]:
    """The same memory as records whose one field is named after the code length."""
    record = np.dtype([(f"words_of_{n_bits}_bits", "<u8", (words.shape[1],))])
    return np.ascontiguousarray(words).view(record)[:, 0]


def _of_npy(source: Path, array: NDArray[Any]) -> StoredCodes:
    """Codes from a plain array, or from records whose one field is named after the length."""
    if array.dtype.names is None:
        return StoredCodes(_two_dimensional(array, source), None)
    match = FIELD.fullmatch(array.dtype.names[0]) if len(array.dtype.names) == 1 else None
    if match is None:
        raise FileError(f"{source}: holds records {array.dtype}, not codes.")
    words = _two_dimensional(array[array.dtype.names[0]], source)
    return StoredCodes(words, int(match[1]))


def _of_npz(source: Path, stored: dict[str, StoredArray]) -> StoredArray:
    if not {"words", "n_bits"} <= set(stored):
        raise FileError(
            f"{source}: a file of codes has the arrays 'words' and 'n_bits', got {sorted(stored)}."
        )
    words = stored["words"]
    if words.dtype.kind != "u" or words.dtype.itemsize != 8:
        raise FileError(f"{source}: words must be 64-bit unsigned integers, got {words.dtype}.")
    return words


def _stated_length(source: Path, stored: dict[str, StoredArray]) -> int:
    n_bits = stored["n_bits"].load()
    if n_bits.shape != () or n_bits.dtype.kind not in "iu":
        raise FileError(f"{source}: n_bits must be one whole number.")
    return int(n_bits)


def _two_dimensional(array: NDArray[Any], source: Path) -> NDArray[Any]:
    if array.ndim != 2:
        raise FileError(f"{source}: codes must be a 2-D array (n, width), got shape {array.shape}.")
    return to_native(np.asarray(np.ascontiguousarray(array)))  # plain, even if mapped
