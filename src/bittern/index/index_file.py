"""The file of an index: one uncompressed ``.npz`` whose arrays can be mapped into memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import FileError
from bittern.index.items import IndexedItems
from bittern.io.files import atomic_write, check_version, existing_file, reading
from bittern.io.npz import StoredArray, sealed_archive, stored_arrays, to_native, write_aligned

FORMAT, VERSION = "bittern index", 1
HEAD = "index"  # the array that holds the JSON, as bytes
BUILT = "built."  # prefix of arrays that the index built from its items


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """The contents of a file."""

    kind: str
    settings: dict[str, Any]
    items: IndexedItems
    arrays: dict[str, NDArray[Any]]


def write(
    path: str | os.PathLike[str],
    kind: str,
    settings: dict[str, Any],
    items: IndexedItems,
    built: dict[str, NDArray[Any]],
) -> None:
    """Write items, none of them removed, and the arrays built from them."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "n_bits": items.n_bits,
        "next_id": items.next_id,
        "ids_ascend": items.are_ascending,
        "settings": settings,
    }
    arrays: dict[str, NDArray[Any]] = {HEAD: np.frombuffer(json.dumps(head).encode(), np.uint8)}
    arrays |= {"words": items.words, "ids": items.ids}
    arrays |= {BUILT + name: array for name, array in built.items()}
    with atomic_write(path) as file, sealed_archive(file) as archive:
        for name, array in arrays.items():
            write_aligned(archive, file, name, array)


def read(path: str | os.PathLike[str], *, mmap: bool) -> StoredIndex:
    """Read what :func:`write` wrote; items are checked here, built arrays by the index itself."""
    source = existing_file(path)
    with reading(source, "index"):
        stored = stored_arrays(source)
        if not {HEAD, "words", "ids"} <= set(stored):
            raise FileError(f"{source}: is not a saved index.")
        head = json.loads(stored[HEAD].load().tobytes())
        if head.get("format") != FORMAT:
            raise FileError(f"{source}: is not a saved index.")
        check_version(source, head.get("version"), VERSION)
        arrays = {name: _read(array, mmap) for name, array in stored.items() if name != HEAD}
        with restoring(source):
            items = _items(head, arrays.pop("words"), arrays.pop("ids"), mmap)
        built = {name.removeprefix(BUILT): array for name, array in arrays.items()}
        return StoredIndex(str(head["kind"]), dict(head["settings"]), items, built)


@contextmanager
def restoring(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a ValueError about bad stored values into an error that names the file."""
    with reading(path, "index"):
        try:
            yield
        except ValueError as error:
            raise FileError(f"{path}: not a readable index ({error}).") from error


def _items(
    head: dict[str, Any], words: NDArray[Any], ids: NDArray[Any], mmap: bool
) -> IndexedItems:
    """The items; if mapped, ids are not read to see that they ascend, as the file says."""
    items = IndexedItems()
    if head["n_bits"]:
        is_known = mmap and head.get("ids_ascend") is True
        items.adopt(Codes(words, head["n_bits"]), ids, "the file", is_known=is_known)
    items.next_id = max(items.next_id, int(head["next_id"]))
    return items


def _read(array: StoredArray, mmap: bool) -> NDArray[Any]:
    """An array in this machine's byte order; if mapped, a plain array over the same memory.

    It is mapped copy-on-write only so that it counts as writeable: kernels are compiled for such
    arrays, and none of them writes to it.
    """
    values = array.map("c") if mmap and array.offset is not None else array.load()
    return to_native(np.asarray(np.ascontiguousarray(values)))
