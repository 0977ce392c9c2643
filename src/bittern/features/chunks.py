"""Describe images chunk by chunk in several processes, and keep the chunks until all are done.

Each image is decoded once for all features.  A chunk's rows go to a file whose name is a hash of
the features, everything that they learned or were given, and the path, size and time of each image.
So a finished chunk is never computed twice, and other features or changed images give another name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import BitternError, FileError, InputError
from bittern.features.base import Feature, to_image
from bittern.io.cache import fingerprint_of
from bittern.io.files import make_folder
from bittern.io.models import learned_attributes
from bittern.io.npz import load_arrays, stored_arrays, write_arrays
from bittern.parallel import ProcessEndedError, run_tasks

T = TypeVar("T")
Tally = tuple[int, int]  # images described, images skipped
OWN = re.compile(r"\.?[0-9a-f]{32}\.npz(\..*\.tmp)?")  # with .tmp: left by a killed process


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some images, and the file that their rows go to."""

    root: Path
    paths: tuple[str, ...]
    target: Path


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A finished chunk: rows of the images that could be described, reasons for the others."""

    paths: tuple[str, ...]
    rows: Mapping[str, Float32Array]  # (len(paths), dim) each; empty if there are no paths
    skipped: Mapping[str, str]  # path: reason

    def __len__(self) -> int:
        return len(self.paths) + len(self.skipped)

    def save(self, target: Path) -> None:
        """Write it whole or not at all."""
        texts = {"paths": self.paths, "skipped": self.skipped, "reasons": self.skipped.values()}
        arrays = {name: np.array(list(lines), np.str_) for name, lines in texts.items()}
        rows = {f"rows.{name}": rows for name, rows in self.rows.items()}
        write_arrays(target, arrays | rows)

    @classmethod
    def load(cls, target: Path) -> Part:
        """Read it; FileError if it is missing or damaged."""
        arrays = load_arrays(target)
        try:
            paths, skipped, reasons = (
                arrays.pop(name).tolist() for name in ("paths", "skipped", "reasons")
            )
        except KeyError as error:
            raise FileError(f"{target}: lacks {error}.") from None
        rows = {name.removeprefix("rows."): array for name, array in arrays.items()}
        return cls(tuple(paths), rows, dict(zip(skipped, reasons, strict=True)))


def parts_folder(output: Path) -> Path:
    """The folder of the parts of an output."""
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
        """The folder that belongs to an output, created if it is missing."""
        return cls(make_folder(parts_folder(output)))

    def chunks(
        self, root: Path, paths: Sequence[str], key: Sequence[str], size: int
    ) -> list[Chunk]:
        """The images in chunks of ``size``; ``key`` identifies the features."""
        cut = [tuple(paths[start : start + size]) for start in range(0, len(paths), size)]
        return [Chunk(root, some, self.place([*key, *_states(root, some)])) for some in cut]

    def place(self, content: Sequence[Any]) -> Path:
        """The file for the result of ``content``."""
        return self.folder / f"{fingerprint_of(content, 32)}.npz"

    def remove(self) -> None:
        """Remove the parts; other files in the folder stay."""
        for path in self.folder.iterdir():
            if OWN.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if it is empty."""
        with suppress(OSError):
            self.folder.rmdir()


def feature_key(feature: Feature) -> str:
    """A hash of a feature: its class, its parameters, and what it has learned."""
    from joblib import hash as hash_of  # type: ignore[import-untyped]

    kind = f"{type(feature).__module__}.{type(feature).__qualname__}"
    return str(hash_of((kind, feature.get_params(), learned_attributes(feature))))


@dataclass(frozen=True, slots=True)
class Worker:
    """Describes chunks with the same features, and stores the results."""

    features: tuple[Feature, ...]
    skips: bool  # whether to skip images that cannot be described; otherwise the first is an error

    def __call__(self, chunk: Chunk) -> Tally:
        """Describe a chunk and store its part; return how many images it described and skipped."""
        paths: list[str] = []
        rows: list[list[Float32Array]] = []
        skipped: dict[str, str] = {}
        for path in chunk.paths:
            try:
                rows.append(self._describe(os.fspath(chunk.root / path)))
                paths.append(path)
            except InputError as error:
                if not self.skips:
                    raise
                skipped[path] = str(error)
        columns = zip(*rows, strict=True)
        stacked = {f.name: np.stack(c) for f, c in zip(self.features, columns, strict=False)}
        Part(tuple(paths), stacked, skipped).save(chunk.target)
        return len(paths), len(skipped)

    def _describe(self, path: str) -> list[Float32Array]:
        """A row of each feature."""
        image = to_image(path, path)
        try:
            return [feature.transform([image])[0] for feature in self.features]
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def describe_chunks(
    chunks: Sequence[T], worker: Callable[[T], Tally], n_jobs: int, report: Callable[[Tally], None]
) -> None:
    """Describe every chunk; ``report`` is called after each, when its part is on disk.

    One job works in this process.  More jobs are separate processes, with one thread each; after an
    error or Ctrl-C they finish their current chunks.
    """
    n_jobs = min(n_jobs, len(chunks))
    if n_jobs <= 1:
        for chunk in chunks:
            report(worker(chunk))
        return
    from PIL import Image

    prepare = partial(_prepared, worker, Image.MAX_IMAGE_PIXELS)
    with closing(
        run_tasks(prepare, chunks, n_jobs, owner="extract", finish_begun=True)
    ) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, ProcessEndedError):
                raise BitternError(f"extract: {outcome.error}")
            if outcome.error is not None:
                raise outcome.error
            assert outcome.result is not None  # there was no error
            report(outcome.result)


def allow_pixels(most: int | None) -> None:
    """Let Pillow in this process read images of up to ``most`` pixels; None changes nothing."""
    from PIL import Image

    if most is not None:
        Image.MAX_IMAGE_PIXELS = check_count(most, "most_pixels")


def _states(root: Path, paths: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of each image; missing ones fail later, when they are read."""
    for path in paths:
        try:
            found = (root / path).stat()
            yield str(root / path), found.st_size, found.st_mtime_ns
        except OSError:
            yield str(root / path), -1, -1


def _prepared(worker: Callable[[T], Tally], most_pixels: int | None) -> Callable[[T], Tally]:
    """The worker in a separate process, with the same limit of pixels."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = most_pixels
    return worker
