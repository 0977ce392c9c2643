"""LabelMe-22K: 22,019 GIST descriptors of 512 dimensions, without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.dataset import Dataset, DatasetSpec, RemoteFile
from bittern.errors import FileError
from bittern.io.files import find_file
from bittern.io.hdf5 import stored_datasets
from bittern.io.matlab import matlab_version, read_matrices

DIM, PUBLISHED = 512, 22_019
NAMES = ("LabelMe_gist.mat", "LabelMe_GIST.mat", "labelme_gist.mat")
SETS = {"train": "ndxtrain", "test": "ndxtest"}  # the file counts positions from 1
WANTED = ("gist", *SETS.values())  # DistLM, seg and others are large and we do not need them


def load(folder: Path) -> Dataset:
    """Read the descriptors as float32, and the publisher's train and test sets if present.

    Reads MATLAB 5 and 7.3 files, with descriptors in rows or in columns (the side of 512).
    """
    source = _find(folder)
    variables = _variables(source)
    rows = _rows(variables["gist"], source)
    official = {
        name: _positions(variables[key], len(rows), key, source)
        for name, key in SETS.items()
        if key in variables
    }
    notes = [f"checked: {len(rows):,} finite rows of {DIM}"]
    if len(rows) != PUBLISHED:
        notes.append(f"not the published {PUBLISHED:,} rows")
    return Dataset(
        name="labelme",
        modalities={"gist": rows},
        official=official,
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=tuple(notes),
    )


def _find(folder: Path, *_: object) -> Path:
    source = folder if folder.is_file() else find_file(folder, NAMES, ("", "data"))
    if source is None:
        raise FileError(f"{folder / NAMES[0]}: no such file; labelme needs {SPEC.layout}.")
    return source


def _variables(source: Path) -> dict[str, NDArray[Any]]:
    """The wanted variables that the file has, in MATLAB's orientation."""
    version = matlab_version(source)
    if version is None:
        raise FileError(f"{source}: is neither a MATLAB 5 nor a MATLAB 7.3 file.")
    variables = read_matrices(source, WANTED) if version == 5 else _matlab_73(source)
    if "gist" not in variables:
        raise FileError(f"{source}: has no variable 'gist'.")
    return variables


def _matlab_73(source: Path) -> dict[str, NDArray[Any]]:
    """HDF5 stores MATLAB's columns as rows, so everything is transposed."""
    stored = {name: found for name, found in stored_datasets(source).items() if name in WANTED}
    for name, found in stored.items():
        if found.dtype.kind not in "iuf" or len(found.shape) != 2:
            raise FileError(f"{source}: '{name}' must be a matrix of real numbers.")
    return {name: found.read().T for name, found in stored.items()}


def _rows(gist: NDArray[Any], source: Path) -> NDArray[np.float32]:
    if gist.ndim != 2 or DIM not in gist.shape or gist.dtype.kind not in "iuf":
        raise FileError(
            f"{source}: 'gist' must be n × {DIM} numbers, or transposed, "
            f"got {gist.dtype} of shape {gist.shape}."
        )
    rows = gist if gist.shape[1] == DIM else gist.T
    with np.errstate(over="ignore"):  # too large for float32: an error below
        rows = np.ascontiguousarray(rows, dtype=np.float32)
    if len(rows) == 0 or not np.isfinite(rows).all():
        raise FileError(f"{source}: 'gist' must have rows, all of finite numbers.")
    return rows


def _positions(numbers: NDArray[Any], n: int, key: str, source: Path) -> NDArray[np.intp]:
    """Positions counted from 0; the file counts from 1."""
    flat = numbers.ravel()
    if not (np.isfinite(flat).all() and ((flat >= 1) & (flat <= n) & (flat % 1 == 0)).all()):
        raise FileError(f"{source}: '{key}' must be whole numbers from 1 to {n}.")
    positions = flat.astype(np.intp) - 1
    if len(np.unique(positions)) < len(positions):
        raise FileError(f"{source}: '{key}' repeats a row.")
    return positions


SPEC = DatasetSpec(
    name="labelme",
    title="LabelMe-22K: 22,019 images as GIST descriptors of 512 dimensions",
    load=load,
    layout="LabelMe_gist.mat (MATLAB 5 or 7.3) with the variable 'gist'",
    citation="Torralba-Fergus-Weiss-2008",
    licence="none stated with the file; the images are LabelMe's",
    folder="labelme",
    sources=(
        RemoteFile(
            "http://www.cs.toronto.edu/~norouzi/research/mlh/data/LabelMe_gist.mat",
            "LabelMe_gist.mat",
        ),
    ),
    steps=("centre",),
    find=_find,
)
