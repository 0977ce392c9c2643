"""Shard: a range of items of a sharded database, in files that are checked before they are used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.io.code_files import write as write_codes
from bittern.io.files import atomic_write, checksum
from bittern.io.npz import stored_array

PARTS = ("codes", "labels", "tags", "vectors", "ids")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a shard: its length and SHA-256."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shard:
    """Items ``start … stop - 1`` of a sharded database; arrays are mapped when they are asked for.

    It is small and holds paths only, so it can be sent to another process or machine that sees the
    same folder.
    """

    folder: Path
    name: str
    start: int
    n: int
    files: dict[str, StoredFile]

    @property
    def stop(self) -> int:
        """The position after its last item."""
        return self.start + self.n

    def path(self, part: str) -> Path:
        """The file of one of its parts."""
        return self.folder / f"{self.name}.{part}.npy"

    @property
    def codes(self) -> Codes:
        """The codes of its items."""
        return Codes.load(self._checked("codes"), mmap=True)

    @property
    def tags(self) -> NDArray[np.bool_]:
        """Multi-hot tags of its items, ``(n, n_tags)``."""
        return Codes.load(self._checked("tags"), mmap=True).to_bits()

    @property
    def labels(self) -> NDArray[Any]:
        """The class of each item."""
        return stored_array(self._checked("labels"), "").read()

    @property
    def vectors(self) -> NDArray[Any]:
        """The vectors of its items, ``(n, dim)``."""
        return stored_array(self._checked("vectors"), "").read()

    @property
    def ids(self) -> NDArray[np.int64]:
        """The id of each item, ascending; positions in the whole database if none are stored."""
        if "ids" not in self.files:
            return np.arange(self.start, self.stop)
        return stored_array(self._checked("ids"), "").read()

    def verify(self) -> list[str]:
        """What is wrong with its files, one sentence each."""
        return [problem for part in self.files if (problem := self._problem(part)) is not None]

    def _checked(self, part: str) -> Path:
        """The file of a part, read once by this process to compare its checksum."""
        if part not in self.files:
            raise InputError(
                f"{self.folder}: shard {self.name} has no {part}; it has {', '.join(self.files)}."
            )
        if (problem := self._problem(part)) is not None:
            raise FileError(problem)
        return self.path(part)

    def _problem(self, part: str) -> str | None:
        path, stored = self.path(part), self.files[part]
        try:
            status = path.stat()
        except OSError as error:
            return f"{path}: shard {self.name} cannot be read ({error.strerror})."
        if status.st_size != stored.bytes:
            return (
                f"{path}: shard {self.name} should have {stored.bytes:,} bytes of {part}, "
                f"but the file has {status.st_size:,}."
            )
        try:
            found = _checksum(path, status.st_size, status.st_mtime_ns)
        except OSError as error:
            return f"{path}: shard {self.name} cannot be read ({error.strerror})."
        if found != stored.sha256:
            return f"{path}: the {part} of shard {self.name} are damaged (their checksum differs)."
        return None


@lru_cache(maxsize=1 << 16)
def _checksum(path: Path, size: int, changed: int) -> str:
    return checksum(path)


def write_part(path: Path, part: str, values: Any) -> StoredFile:
    """Write one file of a shard, whole or not at all."""
    if part in ("codes", "tags"):
        write_codes(path, values.words, values.n_bits)
    else:
        with atomic_write(path) as file:
            np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
    return StoredFile(path.stat().st_size, checksum(path))
