"""A cache of arrays on disk, each in a file named after a hash of its inputs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import make_folder
from bittern.io.locks import locked
from bittern.io.npz import StoredArray, stored_arrays, write_arrays

ARRAY = "array"  # its name in the file


def fingerprint_of(value: Any, digits: int = 12) -> str:
    """Hash of plain values, as hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def cache_root() -> Path:
    """The folder for files that can be recreated: ``BITTERN_CACHE``, or the user's cache."""
    if given := os.environ.get("BITTERN_CACHE"):
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("bittern"))


@dataclass(frozen=True, slots=True, eq=False)
class CachedArray:
    """An array that can be computed; ``depends_on`` holds all its inputs."""

    kind: str  # a folder of the cache
    name: str
    depends_on: Any  # plain values
    make: Callable[[], NDArray[Any]]

    @property
    def fingerprint(self) -> str:
        """Short hash of the inputs."""
        return fingerprint_of([self.kind, self.name, self.depends_on])


@dataclass(frozen=True, slots=True)
class ArrayCache:
    """A folder of arrays, each written whole.

    If several processes want the same array, one computes it and the others wait.  An array that
    the cache of a neighbouring experiment already has is linked; a folder with the file ``marker``
    is an experiment.
    """

    folder: Path
    marker: str = "protocol.toml"

    def get(self, wanted: CachedArray) -> StoredArray:
        """The array, computed now if it is missing."""
        return self.get_all([wanted])[0]

    def get_all(self, wanted: Sequence[CachedArray]) -> list[StoredArray]:
        """The arrays, in order; waits at the end for those that other processes compute."""
        for wait in (False, True):
            for one in wanted:
                self._ensure(one, wait)
        return [_read(self._place(one)) for one in wanted]

    def _place(self, wanted: CachedArray) -> Path:
        name = wanted.name.replace(":", "-")  # Windows allows none in the name of a file
        return self.folder / wanted.kind / f"{name}-{wanted.fingerprint}.npz"

    def _ensure(self, wanted: CachedArray, wait: bool) -> None:
        place = self._place(wanted)
        if place.exists():
            return
        make_folder(place.parent)
        with locked(place.with_suffix(".lock"), wait=wait) as is_ours:
            if is_ours and not place.exists() and not self._link(place):
                write_arrays(place, {ARRAY: wanted.make()})

    def _link(self, place: Path) -> bool:
        """Link a valid file of that name from a neighbouring cache; return whether there is one."""
        experiment = self.folder.parent
        for marker in experiment.parent.glob(f"*/{self.marker}"):
            other = marker.parent / place.relative_to(experiment)
            with suppress(FileError, OSError):  # missing, damaged, or on another disk
                _read(other).load()
                os.link(other, place)
                return True
        return False


def _read(place: Path) -> StoredArray:
    try:
        return stored_arrays(place)[ARRAY]
    except (FileError, KeyError) as error:
        raise FileError(f"{error} Delete {place} to compute it again.") from error
