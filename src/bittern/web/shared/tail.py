"""The tail: what was removed and added since a generation was made, one record per write."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bittern.web.found import Ids

HEAD = struct.Struct("<4q")  # ids removed, items added, words of a code, bytes of metadata


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Ids that were removed, then items that were added, with their metadata as JSON text."""

    removed: Ids
    added: Ids
    words: NDArray[np.uint64]  # (n_added, n_words)
    metadata: list[bytes]


def to_bytes(change: Change) -> bytes:
    """One record."""
    lengths = np.array([len(text) for text in change.metadata], np.int64)
    blob = b"".join(change.metadata)
    head = HEAD.pack(len(change.removed), len(change.added), change.words.shape[1], len(blob))
    arrays = (change.removed, change.added, change.words, lengths)
    return head + b"".join(np.ascontiguousarray(array).tobytes() for array in arrays) + blob


def parse(records: bytes) -> Iterator[Change]:
    """The changes in whole records."""
    at = 0
    while at < len(records):
        n_removed, n_added, n_words, n_text = HEAD.unpack_from(records, at)
        at += HEAD.size
        sizes = n_removed, n_added, n_added * n_words, n_added
        parts = []
        for size in sizes:
            parts.append(np.frombuffer(records, np.int64, size, at))
            at += 8 * size
        ends = np.cumsum(parts[3]) + at
        starts = ends - parts[3]
        metadata = [records[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        at += n_text
        yield Change(
            parts[0], parts[1], parts[2].view(np.uint64).reshape(n_added, n_words), metadata
        )


def read_between(path: Path, start: int, stop: int) -> bytes:
    """The bytes of a file from ``start`` to ``stop``."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(stop - start)


def append(path: Path, start: int, record: bytes) -> int:
    """Write a record at ``start``, over what a failed write may have left; where it ends."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.lseek(handle, start, os.SEEK_SET)
        view = memoryview(record)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)
    return start + len(record)


def reserve(path: Path, start: int, n_items: int, n_words: int, n_text: int) -> None:
    """Make sure that a record of so many items and so much text can be written at ``start``."""
    append(path, start, bytes(HEAD.size + n_items * 8 * (3 + n_words) + n_text))
