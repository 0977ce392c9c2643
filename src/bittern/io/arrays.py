"""The arrays of a file or folder by name, each read on demand."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.files import existing_file, reading
from bittern.io.hdf5 import stored_datasets
from bittern.io.npz import stored_arrays
from bittern.registry import Registry

MOST_LISTED = 12
# Usual names of arrays, in the order in which they are looked for.
VECTORS = ("vectors", "embeddings", "embedding", "features", "feat", "X", "x", "data")
LABELS = ("labels", "label", "y", "classes", "class", "targets", "target")
TAGS = ("tags", "tag")
IDS = ("ids", "id")
TEXTS = ("texts", "text", "captions", "caption")
CLASS_NAMES = ("class_names", "label_names", "names")
TAG_NAMES = ("tag_names", "words")
OTHERS = {*LABELS, *TAGS, *IDS, *TEXTS, *CLASS_NAMES, *TAG_NAMES}


@dataclass(frozen=True, slots=True)
class NamedArray:
    """An array in a file, and how to read it."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # for display
    kind: str  # "numbers", "text" or "other"
    is_discrete: bool  # whole numbers, booleans or text
    read: Callable[[], NDArray[Any]]

    def __str__(self) -> str:
        return f"{self.dtype} ({', '.join(map(str, self.shape))})"


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
        several = len(columns) > 1 and self.path.suffix == ".parquet"
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
        shape = (chosen[0].shape[0], len(chosen))
        return NamedArray(
            pattern,
            shape,
            chosen[0].dtype,
            "numbers",
            False,
            lambda: np.column_stack([stored.read() for stored in chosen]),
        )


def open_table(path: Path) -> ArrayTable:
    """The arrays of a file, or of the one file or the ``.npy`` files in a folder."""
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in OPENERS and p.is_file())
        if len(found) > 1 and all(p.suffix == ".npy" for p in found):
            return ArrayTable(path, {p.stem: _numpy(p)[p.stem] for p in found})
        if len(found) != 1:
            listed = ", ".join(p.name for p in found) or "none"
            raise FileError(
                f"{path}: expected one file of arrays ({', '.join(OPENERS)}), found {listed}; "
                "give the path of the file."
            )
        path = found[0]
    source = existing_file(path)
    if source.suffix.lower() not in OPENERS:
        raise FileError(f"{source}: {OPENERS.refusal(source.suffix)}")
    return ArrayTable(source, OPENERS[source.suffix.lower()](source))


def _entry(name: str, shape: tuple[int, ...], dtype: Any, read: Callable[[], Any]) -> NamedArray:
    kinds = {**dict.fromkeys("biuf", "numbers"), **dict.fromkeys("USOT", "text")}
    shown = "text" if kinds.get(dtype.kind) == "text" else str(dtype)
    kind = "other" if dtype.names else kinds.get(dtype.kind, "other")
    return NamedArray(name, shape, shown, kind, kind != "other" and dtype.kind != "f", read)


def _numpy(path: Path) -> dict[str, NamedArray]:
    return {
        name: _entry(name, array.shape, array.dtype, array.read)
        for name, array in stored_arrays(path).items()
    }


def _hdf5(path: Path) -> dict[str, NamedArray]:
    return {
        name: _entry(name, found.shape, found.dtype, found.read)
        for name, found in stored_datasets(path).items()
    }


def _parquet(path: Path) -> dict[str, NamedArray]:
    parquet = import_extra("pyarrow.parquet", f"{path}: Parquet")
    with reading(path, "Parquet file"), parquet.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        if n_rows < 0 or file.metadata.num_row_groups < 0:
            raise FileError(f"{path}: has the impossible number of {n_rows} rows.")
        fields = {name: schema.field(name).type for name in schema.names}
        return {name: _parquet_entry(path, name, kind, n_rows) for name, kind in fields.items()}


def _parquet_entry(path: Path, name: str, kind: Any, n_rows: int) -> NamedArray:
    """A column: numbers, text, or rows of numbers of the same length."""
    from pyarrow import types

    is_rows = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    inner = kind.value_type if is_rows else kind
    is_number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    is_text = types.is_string(inner) or types.is_large_string(inner) or types.is_dictionary(inner)
    if is_rows and is_number:
        read = partial(_parquet_rows, path, name)
        width = kind.list_size if types.is_fixed_size_list(kind) else read().shape[1]
        return NamedArray(
            name, (n_rows, width), str(inner), "numbers", types.is_integer(inner), read
        )
    known = "numbers" if is_number else "text" if is_text and not is_rows else "other"
    is_discrete = known == "text" or (is_number and not types.is_floating(inner))
    return NamedArray(
        name,
        (n_rows,),
        "text" if known == "text" else str(kind),
        known,
        is_discrete,
        partial(_parquet_column, path, name),
    )


def _parquet_chunk(path: Path, name: str) -> Any:
    import pyarrow.parquet as parquet

    with reading(path, "Parquet file"), parquet.ParquetFile(path) as file:
        column = file.read([name]).column(0)
        column.validate(full=True)
        if len(column) != file.metadata.num_rows:
            raise FileError(
                f"{path}: '{name}' has {len(column)} rows, "
                f"but the file's header says {file.metadata.num_rows}."
            )
        return column.combine_chunks()


def _parquet_rows(path: Path, name: str) -> NDArray[Any]:
    """Lists of the same length as a 2-D array."""
    rows = _parquet_chunk(path, name)
    with reading(path, "Parquet file"):
        flat = rows.flatten()
        if rows.null_count or flat.null_count or (len(rows) and len(flat) % len(rows)):
            raise FileError(
                f"{path}: the rows of '{name}' must have one length and no missing values."
            )
        width = len(flat) // len(rows) if len(rows) else 0
        lengths = rows.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != width).any():
            raise FileError(
                f"{path}: the rows of '{name}' must have one length and no missing values."
            )
        numbers: NDArray[Any] = flat.to_numpy(zero_copy_only=False)
        return numbers.reshape(len(rows), width)


def _parquet_column(path: Path, name: str) -> NDArray[Any]:
    """Numbers or text; with missing values, an array of objects and None."""
    column = _parquet_chunk(path, name)
    with reading(path, "Parquet file"):
        if column.null_count:
            return np.array(column.to_pylist(), dtype=object)
        return np.asarray(column.to_numpy(zero_copy_only=False))


def modules_to_read(*paths: Path | None) -> dict[str, tuple[str, ...]]:
    """The optional modules that reading each file needs, by its ending."""
    modules = {".parquet": ("pyarrow",), ".h5": ("h5py",), ".hdf5": ("h5py",)}
    return {str(path): modules.get(path.suffix.lower(), ()) for path in paths if path is not None}


OPENERS: Registry[Callable[[Path], dict[str, NamedArray]]] = Registry(
    "kind of array file",
    {
        ".npy": _numpy,
        ".npz": _numpy,
        ".parquet": _parquet,
        ".h5": _hdf5,
        ".hdf5": _hdf5,
    },
)
