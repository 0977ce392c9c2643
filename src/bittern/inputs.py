"""Read vectors, codes, labels, tags and gains from files that other programs wrote."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_labels, row_blocks
from bittern.codes import MAX_BITS, BitOrder, Codes, check_bitorder
from bittern.errors import FileError, InputError
from bittern.io.arrays import (
    CLASS_NAMES,
    IDS,
    LABELS,
    TAG_NAMES,
    VECTORS,
    ArrayFile,
    ArrayTable,
    open_table,
)
from bittern.io.code_layouts import laid_out
from bittern.io.files import existing_file, reading
from bittern.io.kinds import (
    ARRAYS,
    IS_CSV,
    IS_MATLAB,
    IS_NPZ,
    IS_TEXT,
    IS_UNKNOWN,
    describe,
)
from bittern.io.npz import stored_array, to_native
from bittern.io.sparse import holds_sparse, read_sparse
from bittern.io.text import as_strings

CODES = ("words", "codes", "bits", "packed", "bytes", "octets")
TAGS = ("tags",)
GAINS = ("gains", "relevance")
NOT_OF_ROWS = {
    *CODES,
    "n_bits",
    *CLASS_NAMES,
    *TAG_NAMES,
    "skipped",
    "skipped_reasons",
    "fitted_on",
}
INTEGER = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """What a file of vectors or codes says about each of its ``n`` rows, in arrays beside them."""

    table: ArrayTable
    n: int
    used: tuple[str, ...] = ()  # the columns that are the vectors

    @property
    def labels(self) -> NDArray[Any] | None:
        """The class of each row."""
        return self._first(LABELS, 1)

    @property
    def tags(self) -> NDArray[Any] | None:
        """Multi-hot tags of each row."""
        return self._first(TAGS, 2)

    @property
    def ids(self) -> NDArray[Any] | None:
        """Numbers or names of the rows."""
        return self._first(IDS, 1)

    @property
    def class_names(self) -> list[str]:
        """The names of classes 0, 1, …; empty if the file has none."""
        found = (self.table[name] for name in CLASS_NAMES if name in self.table)
        return next(([str(n) for n in f.read().tolist()] for f in found if f.kind == "text"), [])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Every array with one number or text per row, by name."""
        return {
            name: _without_objects(stored.read())
            for name, stored in self.table.items()
            if stored.shape == (self.n,)
            and stored.kind != "other"
            and name not in NOT_OF_ROWS
            and name not in self.used
        }

    def to_keep(self) -> dict[str, NDArray[Any]]:
        """The arrays that also describe the codes of these rows."""
        kept = self.columns()
        if self.tags is not None:
            kept["tags"] = self.tags
        if self.class_names:
            kept["class_names"] = np.array(self.class_names)
        return kept

    def _first(self, names: tuple[str, ...], n_axes: int) -> NDArray[Any] | None:
        for stored in (self.table[name] for name in names if name in self.table):
            if stored.shape[:1] == (self.n,) and len(stored.shape) == n_axes:
                return _without_objects(stored.read())
        return None


@dataclass(frozen=True, slots=True, eq=False)
class VectorFile:
    """The vectors of a file, read on demand: slices give finite rows.

    They stay on disk if the file is an ``.npy``, or an uncompressed ``.npz`` or HDF5 file.
    """

    path: Path
    vectors: Any  # (n, dim) numbers, usually mapped; or a sparse matrix
    rows: RowTable

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and the shape of each."""
        return tuple(self.vectors.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Rows in memory or mapped; an error names the first that has NaN or infinity."""
        part = self.vectors[rows]
        for block in row_blocks(part.shape[0], 8 * max(1, self.shape[1])):
            finite = _are_finite(part[block])
            if not finite.all():
                row = np.arange(len(self))[rows][block][finite.argmin()]
                raise FileError(f"{self.path}: row {row} has NaN or infinity.")
        return part


def read_vectors(path: str | os.PathLike[str], *, key: str | None = None) -> VectorFile:
    """Vectors from a file of arrays of any kind, or a ``scipy.sparse`` ``.npz``.

    ``key`` names the array, and may be a pattern of columns like ``"x*"``.  By default it is the
    one with a usual name, such as ``vectors`` or ``embeddings``, or the only 2-D one.
    """
    table = open_table(existing_file(path))
    if {"words", "n_bits"} <= set(table):
        raise FileError(f"{path}: holds codes, not vectors.")
    if "model" in table and key is None:
        raise FileError(f"{path}: is a fitted model, not a file of vectors.")
    used: tuple[str, ...] = ()
    if key is None and holds_sparse(table):
        vectors = read_sparse(path)
    else:
        chosen = table.vectors(key, "--key ")
        vectors, used = chosen.read(), chosen.parts
    if vectors.dtype.kind not in "biuf":
        raise FileError(f"{path}: vectors must be numbers, and none may be missing.")
    if 0 in vectors.shape:
        raise FileError(f"{path}: has no vectors; their array has shape {vectors.shape}.")
    return VectorFile(Path(path), vectors, RowTable(table, vectors.shape[0], used))


def holds_codes(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one that :meth:`Codes.save` writes."""
    names = ArrayFile(path).names
    if names == [""]:
        stored = stored_array(path, "")
        return bool(stored.dtype.names) or (stored.dtype == np.uint64 and len(stored.shape) == 2)
    return {"words", "n_bits"} <= set(names)


def holds_bits(path: str | os.PathLike[str]) -> bool:
    """Whether a NumPy file has codes as booleans: its only array, or ``codes`` or ``bits``.

    Arrays beside vectors are about the vectors.
    """
    names = ArrayFile(path).names
    if any(name in VECTORS for name in names):
        return False
    found = [stored_array(path, name) for name in names if name in ("", "codes", "bits")]
    return any(stored.dtype == np.bool_ and len(stored.shape) == 2 for stored in found)


def read_codes(
    path: str | os.PathLike[str],
    *,
    n_bits: int | None = None,
    signed: bool = False,
    layout: str | None = None,
    bitorder: BitOrder = "big",
    array: str | None = None,
) -> Codes:
    """Codes from a file of arrays of any kind, laid out as other programs do.

    Booleans and arrays of 0 and 1 are bits, ±1 are signed bits, other uint8 arrays are packed
    bytes, uint64 are words (bit j in word j // 64); give ``n_bits`` if bytes or words are padded.
    ``layout`` says which it is, by a name in ``bittern.io.code_layouts``; ``signed`` is the layout
    of that name.  ``bitorder`` is that of packed bytes, as in ``np.packbits``.  In an ``.npz`` the
    codes are the array ``words``, ``codes``, ``bits``, ``packed`` or ``bytes``, or the only array;
    or ``array``.  In CSV and Parquet they may be the columns b0, b1, ….
    """
    check_bitorder(bitorder)
    layout = "signed" if signed else layout
    file = ArrayFile(path)
    stated = _stated_length(file) if "n_bits" in file.names else None
    if array is None and {"words", "n_bits"} <= set(file.names) and file.kind == IS_NPZ:
        return Codes.load(path, n_bits=n_bits)
    given = _load(file, CODES, "codes", array)
    if given.dtype.names:
        del given  # Codes.load reads it again, with the length in its field's name
        return Codes.load(path, n_bits=n_bits)
    if given.ndim != 2 or not 1 <= given.shape[1] <= MAX_BITS:
        raise FileError(
            f"{path}: codes are a 2-D array (n, width) of 1 to {MAX_BITS} columns, "
            f"got shape {given.shape}."
        )
    n_bits = stated if n_bits is None else n_bits
    return _packed(laid_out(given, layout, str(path), n_bits=n_bits), n_bits, bitorder, path)


def has_array(path: str | os.PathLike[str], kind: str) -> bool:
    """Whether ``path`` is a file of several arrays with one called ``kind``: labels or tags."""
    known = {"labels": LABELS, "tags": TAGS}[kind]
    return any(name in known for name in ArrayFile(path).names)


def read_labels(path: str | os.PathLike[str], *, array: str | None = None) -> NDArray[Any]:
    """One class label per row: the array ``labels`` (or ``array``), or text with one per line."""
    source = existing_file(path, pipe=True)
    kind = describe(source) if source.is_file() else IS_TEXT  # a pipe cannot be opened again
    if kind not in ARRAYS or (kind == IS_CSV and not _has_columns(source)):
        if kind not in (IS_CSV, IS_TEXT, IS_UNKNOWN, "empty"):
            raise FileError(f"{path}: is {kind}; labels are an array, or text with one per line.")
        with reading(path, "file"):
            return _text_labels(source.read_bytes(), path)
    found = _load(ArrayFile(path), LABELS, "labels", array)
    is_column = found.ndim == 2 and 1 in found.shape and kind in (IS_MATLAB, IS_CSV)
    return found.ravel() if is_column else found


def read_classes(
    path: str | os.PathLike[str], tags: str, *, array: str | None = None
) -> NDArray[Any]:
    """Labels that are whole numbers or text; ``tags`` is the option for multi-hot rows."""
    labels = read_labels(path, array=array)
    if labels.ndim == 2:
        raise FileError(
            f"{path}: labels must be 1-D, got shape {labels.shape}; multi-hot rows go to {tags}."
        )
    return check_labels(labels, f"{path}: labels")


def read_tags(path: str | os.PathLike[str], *, array: str | None = None) -> Any:
    """Multi-hot tags: a file of arrays (``tags`` or ``array``) or a ``scipy.sparse`` ``.npz``."""
    tags = _matrix(path, TAGS, "tags", array)
    if len(tags.shape) != 2:
        raise FileError(
            f"{path}: tags must be 2-D (n, n_tags), got shape {tags.shape}; one class per row is "
            "for labels."
        )
    values = tags.data if hasattr(tags, "tocsr") else tags
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        raise FileError(f"{path}: tags must be booleans or 0/1.")
    return tags


def read_gains(path: str | os.PathLike[str]) -> Any:
    """A matrix of gains, queries by database: a file of arrays or a ``scipy.sparse`` ``.npz``."""
    return _matrix(path, GAINS, "gains")


def _are_finite(rows: Any) -> NDArray[np.bool_]:
    """Which rows of an array or a CSR matrix have neither NaN nor infinity."""
    if hasattr(rows, "tocsr"):
        wrong = np.flatnonzero(~np.isfinite(rows.data))
        finite = np.ones(rows.shape[0], np.bool_)
        finite[np.searchsorted(rows.indptr, wrong, side="right") - 1] = False
        return finite
    return np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))


def _without_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Text as strings, where missing text is empty; numbers as they are, missing ones NaN."""
    if values.dtype != object:
        return to_native(values)
    listed = values.tolist()
    if all(isinstance(v, int | float | None) for v in listed):
        return np.array([np.nan if v is None else v for v in listed], np.float64)
    return np.array(["" if v is None else str(v) for v in listed])


def _stated_length(file: ArrayFile) -> int:
    n_bits = file.load("n_bits")
    if file.kind == IS_MATLAB and n_bits.shape == (1, 1) and n_bits[0, 0] == int(n_bits[0, 0]):
        return int(n_bits[0, 0])  # MATLAB has only matrices, usually of doubles
    if n_bits.shape or n_bits.dtype.kind not in "iu":
        got = f"{n_bits.dtype} of shape {n_bits.shape}"
        raise FileError(f"{file.path}: n_bits must be one whole number, got {got}.")
    return int(n_bits)


def _packed(
    array: NDArray[Any], n_bits: int | None, bitorder: BitOrder, path: str | os.PathLike[str]
) -> Codes:
    """Codes from booleans, one column per bit; from bytes; or from words."""
    try:
        if array.dtype == np.uint8:
            return Codes.from_packed(array, n_bits, bitorder)
        if array.dtype == np.uint64:
            length = 64 * array.shape[1] if n_bits is None else n_bits
            return Codes(np.ascontiguousarray(array), length)
    except InputError as error:
        raise FileError(f"{path}: {str(error).removeprefix('Codes: ')}") from None
    if n_bits not in (None, array.shape[1]):
        raise FileError(f"{path}: holds codes of {array.shape[1]} bits, not {n_bits}.")
    return Codes.from_bits(array)


def _matrix(
    path: str | os.PathLike[str], known: tuple[str, ...], what: str, array: str | None = None
) -> Any:
    """A dense or a sparse matrix."""
    file = ArrayFile(path)
    return read_sparse(path) if holds_sparse(file.names) else _load(file, known, what, array)


def _load(
    file: ArrayFile, known: tuple[str, ...], what: str, exact: str | None = None
) -> NDArray[Any]:
    """The only array, or one of a known name; or the one of the name ``exact``.

    Except for labels, also the columns x0, x1, …, or the only matrix.
    """
    names, wanted = file.names, known if exact is None else (exact,)
    if len(names) == 1 and exact is None:
        return file.load(names[0])
    if found := next((name for name in wanted if name in names), None):
        return file.load(found)
    table = file.table if exact is None and known is not LABELS else None
    if table is not None and (matrix := table.numbered_columns() or table.only_matrix()):
        return matrix.read()
    raise FileError(
        f"{file.path}: has no {what}; their array must be called {', '.join(wanted)}, "
        f"and the file has {', '.join(sorted(names)) or 'no arrays'}."
    )


def _has_columns(source: Path) -> bool:
    """Whether the first line of a CSV file has several cells, or names a column of labels."""
    with source.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline().strip()
    return any(mark in first for mark in ",;\t") or first in LABELS


def _text_labels(text: bytes, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Integers if every label is one, otherwise strings; only the last lines may be blank."""
    try:
        lines = [line.strip() for line in text.decode("utf-8-sig").rstrip().split("\n")]
    except UnicodeDecodeError:
        raise FileError(
            f"{path}: labels must be a file of arrays, or UTF-8 text with one label per line."
        ) from None
    if lines == [""]:
        raise FileError(f"{path}: has no labels.")
    if "" in lines:
        raise FileError(
            f"{path}: line {lines.index('') + 1} is blank; every line must have a label."
        )
    labels = as_strings(lines, path)
    if not all(map(INTEGER.fullmatch, lines)):  # NumPy would read 1_10 and 11_0 as one number
        return labels
    try:
        return labels.astype(np.int64)
    except OverflowError:
        return labels
