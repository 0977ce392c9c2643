"""Make the files of features of CIFAR-10 from its images, as the reader of the dataset takes them.

GIST is stored in half precision, and each network feature x, which lies in 0 … 6, as the byte
nearest to 255·√(x/6).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count
from bittern.data import Dataset, load
from bittern.data.catalogue import data_root, folder_of
from bittern.data.fetch import Progress, fetch
from bittern.data.readers.cifar10 import CNN_LEVELS, FEATURE_FILES, SPEC, find
from bittern.errors import FileError, InputError
from bittern.extras import require
from bittern.features.base import Feature
from bittern.features.chunks import Parts, Tally, describe_chunks, feature_key
from bittern.features.deep import Deep
from bittern.features.gist import Gist
from bittern.io.files import make_folder
from bittern.io.npz import read_arrays, write_arrays
from bittern.networks.onnx import lite0_modules
from bittern.parallel import available_threads
from bittern.progress import Bar
from bittern.registry import Registry

CHUNK = 250  # images
ROWS = "rows"  # name of the array of a part
Root = str | os.PathLike[str] | None


def prepare_cifar10(
    features: Sequence[str] = tuple(FEATURE_FILES),
    *,
    source: Root = None,
    root: Root = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Compute GIST (``gist``) and network features (``cnn``) of CIFAR-10; returns their files.

    ``source`` is the archive or the folder of CIFAR-10's batches, in either version; without it,
    they are looked for in the data folder ``root`` (default: as for ``bt.load``), and
    downloaded there if they are missing, which ``progress`` follows.  The files go to the data
    folder, where ``bt.load("cifar10", features="gist")`` finds them; one that is there already
    is kept.

    ``jobs`` is the number of processes, by default one for each core; with more than one, a script
    needs ``if __name__ == "__main__":``.  Finished rows are kept beside the file until it is
    complete, so that after Ctrl-C or a crash the same call continues.
    """
    if isinstance(features, str) or not features:
        raise InputError(f"prepare_cifar10: features must be a list of names, got {features!r}.")
    for kind in features:
        KINDS[kind]  # fails for an unknown one
    n_jobs = available_threads() if jobs is None else check_count(jobs, "prepare_cifar10: jobs")
    places = {kind: _place(kind, root) for kind in features}
    waiting = [kind for kind, place in places.items() if not place.exists()]
    _check_extras(waiting)
    if waiting:
        dataset = _images(source, root, progress)
        for kind in waiting:
            _make(kind, dataset, places[kind], n_jobs)
    return list(places.values())


def _gist_rows(rows: Float32Array) -> NDArray[np.float16]:
    return rows.astype(np.float16)


def _cnn_rows(rows: Float32Array) -> NDArray[np.uint8]:
    top = float(CNN_LEVELS[-1])
    return np.rint(255 * np.sqrt(rows.clip(0, top) / top)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Kind:
    """A file of features: how rows are computed, how they are stored, and under which name."""

    make: Callable[[], Feature]
    stored: Callable[[Float32Array], NDArray[Any]]
    name: str
    modules: Callable[[], tuple[str, ...]] = tuple  # optional ones


KINDS: Registry[Kind] = Registry(
    "kind of CIFAR-10 features",
    {
        "gist": Kind(Gist, _gist_rows, "gist"),
        "cnn": Kind(lambda: Deep(n_threads=1), _cnn_rows, "q", lite0_modules),
    },
)


def _place(kind: str, root: Root) -> Path:
    """The file of features that is there, or the one to write."""
    with suppress(FileError):
        return find(folder_of(SPEC, root), (), {"features": kind})
    return data_root(root) / SPEC.folder / FEATURE_FILES[kind]


def _check_extras(kinds: Sequence[str]) -> None:
    """Raise one error for all that is missing, before any work."""
    require({f"prepare_cifar10: {kind}": KINDS[kind].modules() for kind in kinds})


def _images(source: Root, root: Root, progress: Progress | None) -> Dataset:
    """The images, downloaded if they are nowhere."""
    if source is not None:
        return load(SPEC.name, source)
    try:
        find(folder_of(SPEC, root), (), {})
    except FileError:
        fetch(SPEC, root, progress)
    return load(SPEC.name, root)


@dataclass(frozen=True, slots=True)
class _Chunk:
    images: NDArray[np.uint8]
    target: Path


@dataclass(frozen=True, slots=True)
class _Worker:
    """Describes chunks by a feature, and stores the rows."""

    kind: str

    def __call__(self, chunk: _Chunk) -> Tally:
        """Describe a chunk, and write its rows."""
        kind = KINDS[self.kind]
        write_arrays(chunk.target, {ROWS: kind.stored(kind.make().transform(chunk.images))})
        return len(chunk.images), 0


def _make(kind: str, dataset: Dataset, target: Path, n_jobs: int) -> None:
    """Compute the missing parts of a file, and then write it whole."""
    make_folder(target.parent)
    parts, images = Parts.beside(target), dataset["image"]
    key = feature_key(KINDS[kind].make())
    try:
        chunks = [
            _Chunk(some, parts.place([key, hashlib.sha256(some.tobytes()).hexdigest()]))
            for some in _cut(images)
        ]
        _describe(kind, chunks, n_jobs)
        stored = [read_arrays(chunk.target, (ROWS,))[ROWS] for chunk in chunks]
        labels = np.asarray(dataset.labels).astype(np.uint8)
        write_arrays(target, {KINDS[kind].name: np.concatenate(stored), "label": labels})
        parts.remove()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; finished rows are kept in {parts.folder}, and the same call or command "
            "continues from there."
        ) from None
    finally:
        parts.remove_if_empty()


def _cut(images: Any) -> Iterator[NDArray[np.uint8]]:
    for start in range(0, len(images), CHUNK):
        yield np.ascontiguousarray(images[start : start + CHUNK])


def _describe(kind: str, chunks: Sequence[_Chunk], n_jobs: int) -> None:
    waiting = [chunk for chunk in chunks if not chunk.target.exists()]
    total = sum(len(chunk.images) for chunk in chunks)
    done = total - sum(len(chunk.images) for chunk in waiting)
    with Bar(f"{kind} of CIFAR-10") as bar:

        def report(tally: Tally) -> None:
            nonlocal done
            done += tally[0]
            bar(done, total)

        describe_chunks(waiting, _Worker(kind), n_jobs, report)
