"""Indexes on disk: one uncompressed ``.npz``, laid so that its arrays can be mapped."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import FileError
from bittern.index.rows import Rows
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import StoredArray, stored_arrays

__all__ = ["StoredIndex", "of_other_kind", "read", "restoring", "write"]

FORMAT, VERSION = "bittern index", 1
HEAD = "index"  # the array that holds the JSON, as octets
BUILT = "built."  # before the names of what was built from the rows
ALIGNMENT = 64  # bytes; mapped words must not straddle
FIXED_HEADER, ZIP64_EXTRA = 30, 20  # bytes of a member's header beside its name


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """What a file of an index holds."""

    kind: str
    settings: dict[str, Any]
    rows: Rows
    arrays: dict[str, NDArray[Any]]


def write(
    path: str | os.PathLike[str],
    kind: str,
    settings: dict[str, Any],
    rows: Rows,
    built: dict[str, NDArray[Any]],
) -> None:
    """Write rows, none of them removed, and what was built from them."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "n_bits": rows.n_bits,
        "next_id": rows.next_id,
        "settings": settings,
    }
    arrays: dict[str, NDArray[Any]] = {HEAD: np.frombuffer(json.dumps(head).encode(), np.uint8)}
    arrays |= {"words": rows.words, "ids": rows.ids}
    arrays |= {BUILT + name: array for name, array in built.items()}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            _write_aligned(archive, file, f"{name}.npy", array)


def read(path: str | os.PathLike[str], *, mmap: bool) -> StoredIndex:
    """Read what :func:`write` wrote; rows are checked, what was built is for its owner to check."""
    source = existing_file(path)
    with reading(source, "index"):
        stored = stored_arrays(source)
        if not {HEAD, "words", "ids"} <= set(stored):
            raise FileError(f"{source}: not an index that save() wrote.")
        head = json.loads(stored[HEAD].load().tobytes())
        if head.get("format") != FORMAT:
            raise FileError(f"{source}: not an index that save() wrote.")
        if head.get("version") != VERSION:
            raise FileError(
                f"{source}: was written by another version of this package "
                f"(format {head.get('version')}, this one reads {VERSION})."
            )
        arrays = {name: _read(array, mmap) for name, array in stored.items() if name != HEAD}
        with restoring(source):
            rows = _rows(head, arrays.pop("words"), arrays.pop("ids"))
        built = {name.removeprefix(BUILT): array for name, array in arrays.items()}
        return StoredIndex(str(head["kind"]), dict(head["settings"]), rows, built)


@contextmanager
def restoring(path: str | os.PathLike[str]) -> Iterator[None]:
    """What was stored does not fit together: one sentence that names the file."""
    with reading(path, "index"):
        try:
            yield
        except ValueError as error:
            raise FileError(f"{path}: not a readable index ({error}).") from error


def of_other_kind(path: str | os.PathLike[str], kind: str, wanted: str) -> FileError:
    """The error for a file of another kind of index."""
    return FileError(f"{path}: holds an index of kind '{kind}', which {wanted} cannot read.")


def _rows(head: dict[str, Any], words: NDArray[Any], ids: NDArray[Any]) -> Rows:
    rows = Rows()
    if head["n_bits"]:
        rows.adopt(Codes(words, head["n_bits"]), ids, "the file")
    rows.next_id = max(rows.next_id, int(head["next_id"]))
    return rows


def _read(array: StoredArray, mmap: bool) -> NDArray[Any]:
    """An array in this machine's byte order, as a plain array over the same memory if mapped.

    Mapped pages are copied if written to, which none is: kernels are compiled for such arrays.
    """
    values = array.map("c") if mmap and array.offset is not None else array.load()
    return np.asarray(np.ascontiguousarray(values)).astype(
        values.dtype.newbyteorder("="), copy=False
    )


def _write_aligned(
    archive: zipfile.ZipFile, file: BinaryIO, name: str, array: NDArray[Any]
) -> None:
    """Write one member whose bytes begin at a multiple of ALIGNMENT, by an extra field before."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    begin = file.tell() + FIXED_HEADER + len(name) + ZIP64_EXTRA + 4
    padding = -begin % ALIGNMENT
    info.extra = b"\x00\x00" + padding.to_bytes(2, "little") + bytes(padding)
    with archive.open(info, "w", force_zip64=True) as stream:
        npy.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
