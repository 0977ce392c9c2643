"""Shelf: arrays that several cells need, made once and kept in the experiment's folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.experiments.protocol import fingerprint_of
from bittern.experiments.records import PROTOCOL
from bittern.io.files import atomic_write
from bittern.io.npz import StoredArray, stored_arrays

__all__ = ["Piece", "Shelf"]

ARRAY = "array"  # what savez is told below


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """An array that can be made: ``depends_on``, plain values, has all that it follows from."""

    kind: str  # a folder of the shelf
    name: str
    depends_on: Any
    make: Callable[[], NDArray[Any]]

    @property
    def fingerprint(self) -> str:
        """Short hash of what it depends on."""
        return fingerprint_of([self.kind, self.name, self.depends_on])


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of arrays, each in a file named after what it depends on, written whole.

    Several processes may want the same at once: one makes it, and the others wait. What another
    experiment beside this one has made already is linked, not made again.
    """

    folder: Path

    def get(self, piece: Piece) -> StoredArray:
        """The array, made now if it is not there."""
        return self.get_all([piece])[0]

    def get_all(self, pieces: Sequence[Piece]) -> list[StoredArray]:
        """The arrays, in order; what another process is making is left to it, and waited for."""
        for wait in (False, True):
            for piece in pieces:
                self._ensure(piece, wait)
        return [self._read(self._place(piece)) for piece in pieces]

    def _place(self, piece: Piece) -> Path:
        return self.folder / piece.kind / f"{piece.name}-{piece.fingerprint}.npz"

    def _ensure(self, piece: Piece, wait: bool) -> None:
        place = self._place(piece)
        if place.exists():
            return
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{place.parent}: cannot be made ({error.strerror}).") from error
        with _locked(place.with_suffix(".lock"), wait) as mine:
            if mine and not place.exists() and not self._link(place):
                array = piece.make()
                with atomic_write(place) as file:
                    np.savez(file, array=array)

    def _link(self, place: Path) -> bool:
        """Whether a sound file of that name was found in another experiment's shelf, and linked."""
        experiment = self.folder.parent
        for protocol in experiment.parent.glob(f"*/{PROTOCOL}"):
            other = protocol.parent / place.relative_to(experiment)
            with suppress(FileError, OSError):  # not there, damaged, on another disk
                self._read(other).load()
                os.link(other, place)
                return True
        return False

    def _read(self, place: Path) -> StoredArray:
        try:
            return stored_arrays(place)[ARRAY]
        except (FileError, KeyError) as error:
            raise FileError(f"{error} Delete {place}, and it is made anew.") from error


@contextmanager
def _locked(path: Path, wait: bool) -> Iterator[bool]:
    """Whether the lock could be had; it ends with the block, or with the process.

    Where the system has no such locks (Windows), two processes make the same, and the last wins.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
