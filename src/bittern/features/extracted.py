"""The ``.npz`` file of extracted features: rows, paths, labels, and the skipped images."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.checks import Float32Array
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import StoredArray, require_names, sealed_archive, stored_arrays
from bittern.registry import Registry

FORMAT, VERSION = "bittern features", 1
OTHERS = ("paths", "skipped", "skipped_reasons", "fitted_on", "about")
RESERVED = frozenset((*OTHERS, "labels", "class_names"))  # names that no feature may have


class NoImageError(FileError):
    """All images were skipped."""

    def __init__(self, root: Path, skipped: Mapping[str, str]) -> None:
        super().__init__(f"{root}: no image could be read; {next(iter(skipped.values()))}")
        self.skipped = skipped  # path: reason


@dataclass(frozen=True, slots=True, eq=False)
class Extracted:
    """Rows of several features for the same images; row ``i`` of each describes ``paths[i]``."""

    paths: tuple[str, ...]  # relative, with "/", sorted
    features: Mapping[str, Float32Array]  # (n, dim) each
    labels: NDArray[np.int64] | None  # -1 where an image has no class
    class_names: tuple[str, ...]
    skipped: Mapping[str, str]  # path: reason
    fitted_on: tuple[str, ...]  # images that extract() fitted features on
    parameters: Mapping[str, Mapping[str, str]]  # of each feature, as strings

    def __post_init__(self) -> None:
        n = len(self.paths)
        for name, rows in self.features.items():
            if rows.ndim != 2 or rows.dtype != np.float32 or len(rows) != n:
                raise InputError(
                    f"Extracted: {name} must be float32 of shape ({n}, dim), "
                    f"got {rows.dtype} of shape {rows.shape}."
                )
        if self.labels is not None and self.labels.shape != (n,):
            raise InputError(f"Extracted: labels must be {n} numbers, got {self.labels.shape}.")

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, name: str) -> Float32Array:
        return self.features[name]


def load_features(path: str | os.PathLike[str]) -> Extracted:
    """Read a file that :func:`~bittern.features.extract` wrote, all of it into memory."""
    source = existing_file(path)
    with reading(source, "file of features"):
        stored = stored_arrays(source)
        about = _about(source, stored)
        arrays = {name: array.load() for name, array in stored.items()}
    try:
        return _from_arrays(arrays, about["features"])
    except InputError as error:
        raise FileError(f"{source}: is damaged; {error}") from error


def write_features(
    path: Path,
    others: Mapping[str, Any],
    features: Mapping[str, Iterable[Float32Array]],
    parameters: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the file whole or not at all; the rows of a feature come in blocks."""
    about = json.dumps({"format": FORMAT, "version": VERSION, "features": parameters})
    n = len(others["paths"])
    with atomic_write(path) as file, sealed_archive(file) as archive:
        for name, value in {**others, "about": about}.items():
            array = np.asarray(value, None if np.size(value) else np.str_)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)
        for name, blocks in features.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for content in _npy_content(blocks, n):
                    member.write(content)


def _npy_content(blocks: Iterable[Float32Array], n: int) -> Iterator[bytes]:
    """The bytes of an ``.npy`` file with ``n`` rows in total."""
    width: int | None = None
    for rows in blocks:
        if width is None:
            width = rows.shape[1]
            head = io.BytesIO()
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, width)}
            npy.write_array_header_1_0(head, header)
            yield head.getvalue()
        yield rows.astype("<f4", copy=False).tobytes()


def _about(source: Path, stored: Mapping[str, StoredArray]) -> dict[str, Any]:
    if "about" not in stored:
        raise FileError(f"{source}: is not a file of features that extract() wrote.")
    about = json.loads(str(stored["about"].load()))
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise FileError(
            f"{source}: this version of the package does not read its format "
            f"({about.get('format')}, {about.get('version')})."
        )
    require_names(source, sorted({*OTHERS, *about["features"]}), stored)
    return about


def _from_arrays(
    arrays: Mapping[str, NDArray[Any]], parameters: Mapping[str, Mapping[str, str]]
) -> Extracted:
    names = ("paths", "class_names", "skipped", "skipped_reasons", "fitted_on")
    given = {name: arrays[name] for name in names if name in arrays}
    for name, values in given.items():
        if values.ndim != 1 or (values.dtype.kind != "U" and len(values)):
            raise InputError(f"{name} must be a list of texts, got {values.dtype} {values.shape}.")
    texts = {name: tuple(given[name].tolist()) if name in given else () for name in names}
    return Extracted(
        paths=texts["paths"],
        features=Registry("feature here", {name: arrays[name] for name in parameters}),
        labels=arrays.get("labels"),
        class_names=texts["class_names"],
        skipped=dict(zip(texts["skipped"], texts["skipped_reasons"], strict=False)),
        fitted_on=texts["fitted_on"],
        parameters=parameters,
    )
