"""SIFT1M: a million SIFT descriptors, with a learning set, queries and their true neighbours."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.dataset import Dataset, DatasetSpec, RemoteFile
from bittern.data.rows import StackedRows
from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.io.hdf5 import StoredDataset, stored_datasets
from bittern.registry import Registry

DIM = 128
PUBLISHED = {"database": 1_000_000, "train": 100_000, "query": 10_000}
PLACES = ("", "sift", "siftsmall")
VECTOR_TYPES: Registry[str] = Registry(
    "ending of vector files", {".fvecs": "<f4", ".bvecs": "u1", ".ivecs": "<i4"}
)
BLOCK = 1 << 16  # rows whose dimensions are compared at a time


@dataclass(frozen=True, slots=True, eq=False)
class GroundTruth:
    """The nearest database items of each query, nearest first, as positions in the database.

    The database comes first in the dataset, so these are also positions in the dataset.
    """

    neighbours: NDArray[np.int32]  # (n_queries, k)
    distances: NDArray[Any] | None = None  # (n_queries, k), Euclidean; only in the HDF5 file


def load(folder: Path) -> Dataset:
    """Read the descriptors in the order database (base), train (learn), queries.

    Rows stay in their files until they are read.  The HDF5 file has no learning set.
    """
    parts = _parts(folder)
    official, start = {}, 0
    for name, rows in parts.items():
        official[name] = np.arange(start, start + len(rows))
        start += len(rows)
    sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in parts.items())
    notes = [f"checked: {DIM} dimensions in every row; in this order: {sizes}"]
    if {name: len(rows) for name, rows in parts.items()} != PUBLISHED:
        notes.append("not the published 1,000,000 base, 100,000 learning and 10,000 query rows")
    return Dataset(
        name="sift1m",
        modalities={"sift": StackedRows(list(parts.values()))},
        official=official,
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=tuple(notes),
    )


def ground_truth(folder: Path) -> GroundTruth:
    """The published neighbours of every query, checked against the database and the queries."""
    parts = _parts(folder)
    source = _find(folder)
    if source.suffix == ".hdf5":
        stored = stored_datasets(source)
        truth = GroundTruth(
            _numbers(stored, "neighbors", source).astype(np.int32, copy=False),
            _numbers(stored, "distances", source) if "distances" in stored else None,
        )
    else:
        source = _sibling(source, "groundtruth", (".ivecs",))
        truth = GroundTruth(read_vectors(source))
    near = truth.neighbours
    if len(near) != len(parts["query"]):
        raise FileError(
            f"{source}: has neighbours of {len(near)} queries, but there are {len(parts['query'])}."
        )
    if near.min(initial=0) < 0 or near.max(initial=0) >= len(parts["database"]):
        raise FileError(
            f"{source}: neighbours must be positions in the database of {len(parts['database'])}."
        )
    if truth.distances is not None and truth.distances.shape != near.shape:
        raise FileError(
            f"{source}: distances of shape {truth.distances.shape}, neighbours {near.shape}."
        )
    return truth


def read_vectors(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The ``(n, dim)`` rows of an .fvecs, .bvecs or .ivecs file as a read-only memory map.

    Each row is its dimension, a little-endian int32, followed by that many float32 (.fvecs), uint8
    (.bvecs) or int32 (.ivecs), also little-endian.
    """
    source = existing_file(path)
    if source.suffix not in VECTOR_TYPES:
        raise FileError(f"{source}: {VECTOR_TYPES.refusal(source.suffix)}")
    kind = np.dtype(VECTOR_TYPES[source.suffix])
    size = source.stat().st_size
    dim = _dimension(source)
    row = np.dtype([("dim", "<i4"), ("row", kind, (dim,))])
    if size % row.itemsize:
        raise FileError(
            f"{source}: is truncated or has another type: rows of {dim} numbers have "
            f"{row.itemsize} bytes, and {size} is not a multiple of that."
        )
    records = np.memmap(source, row, "r")
    for start in range(0, len(records), BLOCK):
        wrong = records["dim"][start : start + BLOCK] != dim
        if wrong.any():
            row_number = start + int(wrong.argmax())
            raise FileError(
                f"{source}: row {row_number} does not have the dimension of row 0 ({dim})."
            )
    return records["row"]


def _parts(folder: Path) -> dict[str, NDArray[Any]]:
    """The sets by their official names, in the dataset's order."""
    source = _find(folder)
    if source.suffix == ".hdf5":
        stored = stored_datasets(source)
        parts = {
            "database": _numbers(stored, "train", source),
            "query": _numbers(stored, "test", source),
        }
        sources = dict.fromkeys(parts, source)
    else:
        sources = _vector_files(source)
        parts = {name: read_vectors(path) for name, path in sources.items()}
    for name, rows in parts.items():
        if rows.shape[1] != DIM:
            raise FileError(f"{sources[name]}: SIFT has {DIM} dimensions, got {rows.shape[1]}.")
    return parts


def _vector_files(source: Path) -> dict[str, Path]:
    endings = (".fvecs", ".bvecs")
    return {
        "database": source,
        "train": _sibling(source, "learn", endings),
        "query": _sibling(source, "query", endings),
    }


def _find_all(folder: Path, *_: object) -> object:
    source = _find(folder)
    return source if source.suffix == ".hdf5" else _vector_files(source)


def _find(folder: Path) -> Path:
    """The file of base vectors, or the HDF5 file."""
    if folder.is_file() and folder.suffix == ".hdf5":
        return folder
    found = sorted(
        path
        for place in PLACES
        for pattern in ("sift*_base.[fb]vecs", "sift-128-euclidean.hdf5")
        for path in (folder / place).glob(pattern)
    )
    if not found:
        packed = folder / "sift.tar.gz"
        hint = f"; unpack {packed} there first" if packed.exists() else ""
        raise FileError(f"{folder}: sift1m needs {SPEC.layout}{hint}.")
    if len(found) > 1:
        listed = ", ".join(str(path.relative_to(folder)) for path in found)
        raise FileError(f"{folder}: holds several sets ({listed}); pass the folder of one of them.")
    return found[0]


def _sibling(base: Path, what: str, endings: tuple[str, ...]) -> Path:
    stem = base.stem.removesuffix("base") + what
    for ending in endings:
        if (path := base.with_name(stem + ending)).is_file():
            return path
    raise FileError(f"{base.with_name(stem + endings[0])}: no such file; sift1m needs it.")


def _numbers(stored: dict[str, StoredDataset], name: str, source: Path) -> NDArray[Any]:
    if name not in stored:
        raise FileError(f"{source}: has no dataset '{name}', only {', '.join(stored) or 'none'}.")
    found = stored[name]
    if len(found.shape) != 2 or found.dtype.kind not in "iuf":
        raise FileError(
            f"{source}: '{name}' must be numbers in 2 dimensions, "
            f"got {found.dtype} of shape {found.shape}."
        )
    return found.read()


def _dimension(source: Path) -> int:
    with source.open("rb") as file:
        head = file.read(4)
    if len(head) < 4:
        raise FileError(f"{source}: has no vectors, only {len(head)} bytes.")
    dim = int(np.frombuffer(head, "<i4")[0])
    if not 1 <= dim <= source.stat().st_size:
        raise FileError(f"{source}: a vector cannot have dimension {dim}.")
    return dim


SPEC = DatasetSpec(
    name="sift1m",
    title="SIFT1M: 1,000,000 SIFT descriptors of 128 dimensions",
    load=load,
    layout=(
        "sift_base.fvecs, sift_learn.fvecs, sift_query.fvecs and sift_groundtruth.ivecs "
        "(there or in sift/), or sift-128-euclidean.hdf5 of ann-benchmarks"
    ),
    citation="Jegou-Douze-Schmid-2011",
    licence="none stated with the files; see http://corpus-texmex.irisa.fr",
    folder="sift1m",
    find=_find_all,
    sources=(
        RemoteFile(
            "ftp://ftp.irisa.fr/local/texmex/corpus/sift.tar.gz",
            "sift.tar.gz",
            unpack=(
                ("sift/sift_base.fvecs", 516_000_000),
                ("sift/sift_learn.fvecs", 51_600_000),
                ("sift/sift_query.fvecs", 5_160_000),
                ("sift/sift_groundtruth.ivecs", 4_040_000),
            ),
        ),
    ),
    steps=("centre",),
)
