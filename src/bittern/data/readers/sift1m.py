"""SIFT1M: a million SIFT descriptors, with a learning set, queries and their true neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.dataset import Dataset
from bittern.data.readers.vectors import read_vectors
from bittern.data.spec import DatasetSpec, Source
from bittern.data.stacked import StackedRows
from bittern.errors import FileError
from bittern.io.hdf5 import StoredDataset, stored_datasets

__all__ = ["SPEC", "GroundTruth", "ground_truth", "load"]

DIM = 128
PUBLISHED = {"database": 1_000_000, "train": 100_000, "query": 10_000}
PLACES = ("", "sift", "siftsmall")


@dataclass(frozen=True, slots=True, eq=False)
class GroundTruth:
    """The nearest database items of each query, nearest first, as positions in the database.

    The database comes first in the dataset, so these are positions in the dataset as well.
    """

    neighbours: NDArray[np.int32]  # (n_queries, k)
    distances: NDArray[Any] | None = None  # (n_queries, k), Euclidean; in the HDF5 file only


def load(folder: Path) -> Dataset:
    """The descriptors in one order: database (base), then train (learn), then queries.

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
            f"{source}: neighbours of {len(near)} queries, there are {len(parts['query'])}."
        )
    if near.min(initial=0) < 0 or near.max(initial=0) >= len(parts["database"]):
        raise FileError(
            f"{source}: neighbours must be among the {len(parts['database'])} of the database."
        )
    if truth.distances is not None and truth.distances.shape != near.shape:
        raise FileError(
            f"{source}: distances of shape {truth.distances.shape}, neighbours {near.shape}."
        )
    return truth


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
        endings = (".fvecs", ".bvecs")
        sources = {
            "database": source,
            "train": _sibling(source, "learn", endings),
            "query": _sibling(source, "query", endings),
        }
        parts = {name: read_vectors(path) for name, path in sources.items()}
    for name, rows in parts.items():
        if rows.shape[1] != DIM:
            raise FileError(f"{sources[name]}: SIFT has {DIM} dimensions, got {rows.shape[1]}.")
    return parts


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
        raise FileError(f"{folder}: holds several sets ({listed}); give the folder of one of them.")
    return found[0]


def _sibling(base: Path, what: str, endings: tuple[str, ...]) -> Path:
    stem = base.stem.removesuffix("base") + what
    for ending in endings:
        if (path := base.with_name(stem + ending)).is_file():
            return path
    raise FileError(f"{base.with_name(stem + endings[0])}: no such file; sift1m has it.")


def _numbers(stored: dict[str, StoredDataset], name: str, source: Path) -> NDArray[Any]:
    if name not in stored:
        raise FileError(f"{source}: has no dataset '{name}', it has {', '.join(stored) or 'none'}.")
    found = stored[name]
    if len(found.shape) != 2 or found.dtype.kind not in "iuf":
        raise FileError(
            f"{source}: '{name}' must be numbers in 2 dimensions, "
            f"got {found.dtype} of shape {found.shape}."
        )
    return found.read()


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
    sources=(
        Source(
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
