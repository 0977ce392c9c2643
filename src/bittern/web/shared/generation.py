"""A generation: the files of a collection at one moment, mapped by every process."""

from __future__ import annotations

import json
import mmap
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import whole_number
from bittern.codes import Codes
from bittern.index.base import Index
from bittern.index.multi_index import MultiIndex
from bittern.io.files import atomic_write, write_text
from bittern.web.found import Ids

FORMAT = 1  # of these files; others are made again


class SharedNumbers:
    """Whole numbers in a file that several processes map; one of them writes each number."""

    def __init__(self, path: Path, n: int) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * n)
        self._numbers = np.frombuffer(self._map, np.int64)

    @classmethod
    def create(cls, path: Path, n: int) -> SharedNumbers:
        """Make the file, with zeros."""
        path.write_bytes(bytes(8 * n))
        return cls(path, n)

    def __getitem__(self, i: int) -> int:
        return int(self._numbers[i])

    def __setitem__(self, i: int, value: int) -> None:
        self._numbers[i] = value  # 8 aligned bytes, which no reader sees half written


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """The mapped files: the index, and the metadata of its items as JSON text."""

    number: int
    folder: Path
    index: Index | None  # None if there are no items
    ids: Ids
    words: NDArray[np.uint64]
    blob: memoryview
    offsets: NDArray[np.int64]  # where the metadata of each item begin, and where the last end
    committed: SharedNumbers  # one number: the bytes of the tail that are valid

    @classmethod
    def open(cls, root: Path, number: int) -> Generation:
        """Map the files of one generation."""
        folder = folder_of(root, number)
        offsets = np.load(folder / "offsets.npy", mmap_mode="r")
        index = Index.load(folder / "index.npz", mmap=True) if len(offsets) > 1 else None
        none = np.empty(0, np.int64), np.empty((0, 1), np.uint64)
        ids, words = none if index is None else (index.ids, index.codes.words)
        committed = SharedNumbers(folder / "committed", 1)
        blob = _mapped(folder / "metadata.bin")
        return cls(number, folder, index, ids, words, blob, offsets, committed)

    @property
    def tail(self) -> Path:
        """The file of later changes."""
        return self.folder / "tail.bin"

    def metadata(self, rows: Ids) -> list[bytes]:
        """The metadata of some items."""
        starts, ends = self.offsets[rows].tolist(), self.offsets[rows + 1].tolist()
        return [bytes(self.blob[a:b]) for a, b in zip(starts, ends, strict=True)]

    def write_stamp(self, fingerprint: str) -> None:
        """Say that the files are those of the collection with this fingerprint."""
        if self.tail.exists():
            with self.tail.open("rb") as file:
                os.fsync(file.fileno())
        stamp = {"format": FORMAT, "fingerprint": fingerprint, "committed": self.committed[0]}
        write_text(self.folder / "stamp.json", json.dumps(stamp))

    def remove_stamp(self) -> None:
        """Say nothing about whose files these are, because the collection is about to change."""
        (self.folder / "stamp.json").unlink(missing_ok=True)


def write(root: Path, number: int, codes: Codes, ids: Ids, texts: bytes, ends: Ids) -> None:
    """Make a generation from items, and their metadata as one text with the end of each."""
    folder = folder_of(root, number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    if len(ids):
        MultiIndex(codes, ids=ids).save(folder / "index.npz")
    with atomic_write(folder / "metadata.bin") as file:
        file.write(texts)
    with atomic_write(folder / "offsets.npy") as file:
        np.save(file, np.concatenate([np.zeros(1, np.int64), ends]))
    SharedNumbers.create(folder / "committed", 1)


def joined(texts: Sequence[str]) -> tuple[bytes, Ids]:
    """Texts one after another as UTF-8, and where each ends."""
    encoded = [text.encode() for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return b"".join(encoded), np.cumsum(lengths)


def folder_of(root: Path, number: int) -> Path:
    """The folder of a generation."""
    return root / f"generation-{number}"


def newest(root: Path) -> tuple[int, dict[str, Any] | None]:
    """The largest number of a generation, 0 if there is none, and its stamp if it has one."""
    names = [path.name.rpartition("-")[2] for path in root.glob("generation-*")]
    number = max((whole_number(name) or 0 for name in names), default=0)
    try:
        stamp = json.loads((folder_of(root, number) / "stamp.json").read_text())
    except (OSError, ValueError):
        return number, None
    return number, stamp if isinstance(stamp, dict) and stamp.get("format") == FORMAT else None


def remove_others(root: Path, number: int) -> None:
    """Remove all generations but one; processes that have them mapped keep what they need."""
    for path in root.glob("generation-*"):
        if path != folder_of(root, number):
            shutil.rmtree(path, ignore_errors=True)


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # which cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
