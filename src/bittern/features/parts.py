"""Parts of an extraction: chunks of images, each stored under a name made from its content.

A chunk's name is a hash of the features, all that they learned or were given, and the path, size
and time of each image.  So a finished chunk is found again and never made twice, and a chunk of
other features or of changed images has another name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bittern.checks import Float32Array
from bittern.errors import FileError
from bittern.features.base import Feature
from bittern.io.files import atomic_write
from bittern.io.npz import stored_arrays

__all__ = ["Chunk", "Part", "Parts", "feature_key", "learned", "parts_folder", "stored_rows"]

OWN = re.compile(r"\.?[0-9a-f]{32}\.npz(\..*\.tmp)?")  # the second: left by a killed process


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some images, and the file that their rows go to."""

    root: Path
    paths: tuple[str, ...]
    target: Path


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A finished chunk: rows for the images that could be described, reasons for the others."""

    paths: tuple[str, ...]
    rows: Mapping[str, Float32Array]  # (len(paths), dim) each; nothing if there are no paths
    skipped: Mapping[str, str]  # path: reason

    def __len__(self) -> int:
        return len(self.paths) + len(self.skipped)

    def save(self, target: Path) -> None:
        """Write it whole or not at all."""
        reasons = np.array(list(self.skipped.values()), np.str_)
        arrays = {f"rows.{name}": rows for name, rows in self.rows.items()}
        texts = {"paths": list(self.paths), "skipped": list(self.skipped)}
        with atomic_write(target) as file:
            kept = {name: np.array(listed, np.str_) for name, listed in texts.items()}
            np.savez(file, allow_pickle=False, reasons=reasons, **kept, **arrays)

    @classmethod
    def load(cls, target: Path) -> Part:
        """Read it; FileError if it is missing or damaged."""
        arrays = {name: stored.load() for name, stored in stored_arrays(target).items()}
        try:
            paths, skipped, reasons = (
                arrays.pop(name).tolist() for name in ("paths", "skipped", "reasons")
            )
        except KeyError as error:
            raise FileError(f"{target}: lacks {error}.") from None
        rows = {name.removeprefix("rows."): array for name, array in arrays.items()}
        return cls(tuple(paths), rows, dict(zip(skipped, reasons, strict=True)))


def parts_folder(output: Path) -> Path:
    """Where the parts of an output are."""
    return output.with_name(f"{output.name}.parts")


def stored_rows(target: Path, name: str) -> Float32Array | None:
    """The rows of one feature in a finished chunk; None if all its images were skipped."""
    stored = stored_arrays(target).get(f"rows.{name}")
    return None if stored is None else stored.load()


@dataclass(frozen=True, slots=True)
class Parts:
    """The folder of parts beside an output."""

    folder: Path

    @classmethod
    def beside(cls, output: Path) -> Parts:
        """The folder that belongs to an output; made if it is not there."""
        folder = parts_folder(output)
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise FileError(f"{folder}: cannot be made ({error.strerror}).") from error
        return cls(folder)

    def chunks(
        self, root: Path, paths: Sequence[str], key: Sequence[str], size: int
    ) -> list[Chunk]:
        """The images in chunks of ``size``; ``key`` says what is made of them."""
        cut = [tuple(paths[start : start + size]) for start in range(0, len(paths), size)]
        return [Chunk(root, some, self.place([*key, *_states(root, some)])) for some in cut]

    def place(self, content: Sequence[Any]) -> Path:
        """The file for what is made from ``content``."""
        text = json.dumps(content).encode()
        return self.folder / f"{hashlib.sha256(text).hexdigest()[:32]}.npz"

    def remove(self) -> None:
        """Remove the parts; what else is in the folder stays."""
        for path in self.folder.iterdir():
            if OWN.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if nothing is in it."""
        with suppress(OSError):
            self.folder.rmdir()


def feature_key(feature: Feature) -> str:
    """A hash of a feature: its class, its parameters, and what it has learned."""
    from joblib import hash as hash_of  # type: ignore[import-untyped]

    kind = f"{type(feature).__module__}.{type(feature).__qualname__}"
    return str(hash_of((kind, feature.get_params(), learned(feature))))


def learned(feature: Feature) -> dict[str, Any]:
    """What fitting left in a feature: its attributes that end in ``_``."""
    return {name: value for name, value in vars(feature).items() if name.endswith("_")}


def _states(root: Path, paths: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of each image; what is missing shows when it is read."""
    for path in paths:
        try:
            found = (root / path).stat()
            yield str(root / path), found.st_size, found.st_mtime_ns
        except OSError:
            yield str(root / path), -1, -1
