"""The arrays of a file or folder by name, each read on demand."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io import npz
from bittern.io.csv_columns import read_columns
from bittern.io.files import existing_file
from bittern.io.hdf5 import stored_datasets
from bittern.io.kinds import (
    IS_CSV,
    IS_HDF5,
    IS_MATLAB,
    IS_NPY,
    IS_NPZ,
    IS_PARQUET,
    IS_TORCH,
    array_kind,
)
from bittern.io.matlab import read_mat, stored_matrices
from bittern.io.named_array import NamedArray, named
from bittern.io.parquet import parquet_columns
from bittern.io.torch_files import read_tensors
from bittern.registry import Registry

MOST_LISTED = 12
COLUMNAR = (".parquet", ".csv", ".tsv")
# Usual names of arrays, in the order in which they are looked for.
VECTORS = ("vectors", "embeddings", "embedding", "features", "feat", "X", "x", "data")
LABELS = ("labels", "label", "y", "classes", "class", "targets", "target")
TAGS = ("tags", "tag")
IDS = ("ids", "id")
TEXTS = ("texts", "text", "captions", "caption")
CLASS_NAMES = ("class_names", "label_names", "names")
TAG_NAMES = ("tag_names", "words")
NUMBERED = re.compile(r"(.*?)([0-9]{1,18})")  # x0, x1, … are the columns of one array
_parsed: ContextVar[dict[Path, dict[str, NDArray[Any]]] | None] = ContextVar("parsed", default=None)
OTHERS = {*LABELS, *TAGS, *IDS, *TEXTS, *CLASS_NAMES, *TAG_NAMES}


class ArrayTable(Registry[NamedArray]):
    """The arrays of one file or folder."""

    def __init__(self, path: Path, entries: Mapping[str, NamedArray]) -> None:
        super().__init__("array", entries)
        self.path = path

    def __getitem__(self, name: str) -> NamedArray:
        try:
            return self._entries[name]
        except KeyError:
            near = difflib.get_close_matches(name, self._entries, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ";"
            raise FileError(
                f"{self.path}: no array is called {name!r}{hint} the file has {self.listed()}."
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def listed(self) -> str:
        """Names, types and shapes, for messages."""
        shown = [f"'{name}' {stored}" for name, stored in self._entries.items()]
        more = f" and {len(shown) - MOST_LISTED} more" if len(shown) > MOST_LISTED else ""
        return (", ".join(shown[:MOST_LISTED]) or "nothing") + more

    def hint(self, option: str) -> str:
        """A hint for vectors that are spread over columns; may be empty."""
        columns = [name for name, s in self.items() if s.kind == "numbers" and len(s.shape) == 1]
        several = len(columns) > 1 and self.path.suffix.lower() in COLUMNAR
        return f"; for one number per column pass a pattern like {option}'x*'" if several else ""

    def vectors(self, name: str | None, option: str) -> NamedArray:
        """The array called ``name``, or all columns that match a pattern like ``"x*"``.

        Without a name, it is the array with a usual name, or else the only one that can be vectors.
        ``option`` begins the advice to choose one, as in ``"vectors="``.
        """
        if name is None:
            return self._likely_vectors(option)
        found = self.columns(name) if "*" in name else self[name]
        if found.kind != "numbers" or len(found.shape) < 2:
            raise FileError(
                f"{self.path}: vectors must be numbers in at least 2 dimensions, "
                f"'{name}' is {found}; the file has {self.listed()}."
            )
        return found

    def _likely_vectors(self, option: str) -> NamedArray:
        candidates = {
            name: stored
            for name, stored in self.items()
            if stored.kind == "numbers" and len(stored.shape) >= 2
        }
        usual = [name for name in VECTORS if name in candidates]
        likely = usual or [name for name in candidates if name not in OTHERS] or list(candidates)
        if len(likely) == 1:
            return candidates[likely[0]]
        if not likely and (joined := self.numbered_columns()):
            return joined
        rule = "several arrays may be the vectors" if likely else "no array is 2-D numbers"
        hint = f"; choose one, like {option}{likely[0]!r}" if likely else self.hint(option)
        raise FileError(f"{self.path}: {rule}{hint}; the file has {self.listed()}.")

    def columns(self, pattern: str) -> NamedArray:
        """All 1-D arrays of numbers whose names match, side by side as one 2-D array."""
        chosen = [stored for name, stored in self.items() if fnmatchcase(name, pattern)]
        lengths = {stored.shape for stored in chosen}
        numeric = all(stored.kind == "numbers" and len(stored.shape) == 1 for stored in chosen)
        if not chosen or not numeric or len(lengths) != 1:
            raise FileError(
                f"{self.path}: '{pattern}' must match 1-D numbers of the same length, "
                f"but matches {', '.join(s.name for s in chosen) or 'nothing'}; "
                f"the file has {self.listed()}."
            )
        return _joined(pattern, chosen)

    def numbered_columns(self) -> NamedArray | None:
        """The columns x0, x1, … as one 2-D array in the order of their numbers.

        None unless just one name is numbered so, all are numbers, and none is missing.
        """
        if self.path.suffix.lower() not in COLUMNAR:
            return None
        families: dict[str, dict[int, NamedArray]] = {}
        for name, stored in self.items():
            if (match := NUMBERED.fullmatch(name)) and len(stored.shape) == 1:
                families.setdefault(match[1], {})[int(match[2])] = stored
        found = {name: columns for name, columns in families.items() if len(columns) > 1}
        if len(found) != 1:
            return None
        ((name, columns),) = found.items()
        chosen = [columns[i] for i in sorted(columns)]
        is_whole = max(columns) - min(columns) + 1 == len(columns)
        is_numeric = all(stored.kind == "numbers" for stored in chosen)
        return _joined(f"{name}*", chosen) if is_whole and is_numeric else None

    def only_matrix(self) -> NamedArray | None:
        """The array of numbers with several rows and columns, if there is just one."""
        numeric = [s for s in self.values() if s.kind == "numbers" and len(s.shape) == 2]
        found = [s for s in numeric if min(s.shape) > 1]
        return found[0] if len(found) == 1 else None


def _joined(name: str, columns: list[NamedArray]) -> NamedArray:
    """1-D arrays of the same length as the columns of one."""
    return NamedArray(
        name,
        (*columns[0].shape, len(columns)),
        columns[0].dtype,
        "numbers",
        False,
        lambda: np.column_stack([stored.read() for stored in columns]),
        tuple(stored.name for stored in columns),
    )


def open_table(path: Path) -> ArrayTable:
    """The arrays of a file, or of the one file or the ``.npy`` files in a folder."""
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in IN_FOLDERS and p.is_file())
        if len(found) > 1 and all(p.suffix == ".npy" for p in found):
            return ArrayTable(path, {p.stem: _numpy(p)[p.stem] for p in found})
        if len(found) != 1:
            listed = ", ".join(p.name for p in found) or "none"
            raise FileError(
                f"{path}: expected one file of arrays ({', '.join(IN_FOLDERS)}), found {listed}; "
                "give the path of the file."
            )
        path = found[0]
    source = existing_file(path)
    return ArrayTable(source, OPENERS[array_kind(source)](source))


class ArrayFile:
    """The arrays of one file by name, each loaded into memory; the array of an ``.npy`` is ''.

    Only the array that is asked for is read and checked, if the format allows it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = existing_file(path)
        self.kind = array_kind(self.path)
        self.table = None if self.kind in NUMPY else open_table(self.path)
        self.names = npz.array_names(self.path) if self.table is None else list(self.table)

    def load(self, name: str) -> NDArray[Any]:
        """An array in this machine's byte order."""
        if self.table is None:
            return npz.to_native(npz.stored_array(self.path, name).load())
        return npz.to_native(np.asarray(self.table[name].read()))


def _numpy(path: Path) -> dict[str, NamedArray]:
    return {
        name: named(name, array.shape, array.dtype, array.read)
        for name, array in npz.stored_arrays(path).items()
    }


def _hdf5(path: Path) -> dict[str, NamedArray]:
    return {
        name: named(name, found.shape, found.dtype, found.read)
        for name, found in stored_datasets(path).items()
    }


def _matlab(path: Path) -> dict[str, NamedArray]:
    return {
        name: named(name, shape, dtype, lambda name=name: read_mat(path, [name])[name])  # type: ignore[misc]
        for name, (shape, dtype) in stored_matrices(path).items()
    }


@contextmanager
def parsing_once() -> Iterator[None]:
    """Keep the arrays of files that can only be read as a whole, instead of reading them again."""
    token = _parsed.set({})
    try:
        yield
    finally:
        _parsed.reset(token)


def _in_memory(
    read: Callable[[Path], dict[str, NDArray[Any]]], path: Path
) -> dict[str, NamedArray]:
    """The arrays of a format that can only be read as a whole."""
    kept = _parsed.get()
    arrays = read(path) if kept is None or path not in kept else kept[path]
    if kept is not None and path.is_file():  # a pipe has other content every time
        kept[path] = arrays
    return {
        name: named(name, array.shape, array.dtype, partial(_itself, array))
        for name, array in arrays.items()
    }


def _itself(array: NDArray[Any]) -> NDArray[Any]:
    return array


def modules_to_read(*paths: Path | None) -> dict[str, tuple[str, ...]]:
    """The optional modules that reading each file needs, by its ending."""
    torch, hdf5 = ("torch",), ("h5py",)
    modules = {".parquet": ("pyarrow",), ".h5": hdf5, ".hdf5": hdf5, ".pt": torch, ".pth": torch}
    return {str(path): modules.get(path.suffix.lower(), ()) for path in paths if path is not None}


NUMPY = (IS_NPY, IS_NPZ)
IN_FOLDERS = (".npy", ".npz", ".parquet", ".h5", ".hdf5")  # CSV files there are about the arrays
OPENERS: dict[str, Callable[[Path], dict[str, NamedArray]]] = {
    IS_NPY: _numpy,
    IS_NPZ: _numpy,
    IS_PARQUET: parquet_columns,
    IS_HDF5: _hdf5,
    IS_MATLAB: _matlab,
    IS_TORCH: partial(_in_memory, read_tensors),
    IS_CSV: partial(_in_memory, read_columns),
}
