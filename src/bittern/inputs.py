"""Codes, labels, tags and gains from files made anywhere."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import MAX_BITS, Codes
from bittern.errors import FileError, InputError
from bittern.io.files import existing_file

__all__ = ["has_array", "read_codes", "read_gains", "read_labels", "read_tags"]

CODES = ("words", "codes", "bits", "packed", "octets")
LABELS = ("labels", "label", "classes", "y")
TAGS = ("tags",)
GAINS = ("gains", "relevance")
ZIP, NPY = (b"PK\x03\x04", b"PK\x05\x06"), b"\x93NUMPY"  # how files of arrays begin
INTEGER = re.compile(r"[+-]?[0-9]+")


def read_codes(
    path: str | os.PathLike[str], *, n_bits: int | None = None, signed: bool = False
) -> Codes:
    """Codes of a ``.npy`` or ``.npz`` file: bits, octets as ``np.packbits`` lays them, or words.

    Booleans and arrays of 0 and 1 are bits, other uint8 arrays are octets, uint64 are words (bit j
    in word j // 64); ``n_bits`` is needed where octets or words are padded.  With ``signed``, bits
    are what is above 0, for codes of ±1.  In an ``.npz`` the codes are the array ``words``,
    ``codes``, ``bits``, ``packed`` or ``octets``.
    """
    names = _names(path)
    name = _find(names, CODES, path, "codes")
    stated = _stated_length(path) if "n_bits" in names else None
    if name == "words" and stated is not None:
        return Codes.load(path, n_bits=n_bits)
    array = _array(path, name)
    if array.dtype.names:
        del array  # Codes.load reads it again, with the length in its field's name
        return Codes.load(path, n_bits=n_bits)
    if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_BITS:
        raise FileError(
            f"{path}: codes are a 2-D array (n, width) of 1 to {MAX_BITS} columns, "
            f"got shape {array.shape}."
        )
    n_bits = stated if n_bits is None else n_bits
    if signed:
        return _from_bits(_above_zero(array, path), n_bits, path)
    if array.dtype in (np.uint8, np.uint64) and (
        n_bits not in (None, array.shape[1]) or array.max(initial=0) > 1
    ):
        return _from_packed(array, n_bits)
    return _from_bits(array, n_bits, path)


def has_array(path: str | os.PathLike[str], kind: str) -> bool:
    """Whether an ``.npz`` file brings its own ``labels`` or ``tags``."""
    known = {"labels": LABELS, "tags": TAGS}[kind]
    return any(name in known for name in _names(path))


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """One class label a row: ``.npy``, ``.npz`` (array ``labels``) or text, a label a line."""
    with _reading(path) as source, source.open("rb") as file:
        text = None if file.peek(len(NPY)).startswith((*ZIP, NPY)) else file.read()
    if text is not None:  # read at once: a pipe cannot be opened again
        return _text_labels(text, path)
    return _array(path, _find(_names(path), LABELS, path, "labels"))


def read_tags(path: str | os.PathLike[str]) -> Any:
    """Multi-hot tags: ``.npy``, ``.npz`` (array ``tags``) or a ``scipy.sparse`` ``.npz``."""
    return _matrix(path, TAGS, "tags")


def read_gains(path: str | os.PathLike[str]) -> Any:
    """A matrix of gains, queries by database: ``.npy``, ``.npz`` or a ``scipy.sparse`` ``.npz``."""
    return _matrix(path, GAINS, "gains")


def _stated_length(path: str | os.PathLike[str]) -> int:
    n_bits = _array(path, "n_bits")
    if n_bits.shape or n_bits.dtype.kind not in "iu":
        raise FileError(
            f"{path}: n_bits must be one whole number, got {n_bits.dtype} of shape {n_bits.shape}."
        )
    return int(n_bits)


def _from_packed(array: NDArray[Any], n_bits: int | None) -> Codes:
    """Codes of octets or words."""
    if array.dtype == np.uint8:
        return Codes.from_packed(array, n_bits)
    return Codes(np.ascontiguousarray(array), 64 * array.shape[1] if n_bits is None else n_bits)


def _from_bits(array: NDArray[Any], n_bits: int | None, path: str | os.PathLike[str]) -> Codes:
    """Codes of booleans or 0/1, one column a bit."""
    if n_bits not in (None, array.shape[1]):
        raise FileError(f"{path}: holds codes of {array.shape[1]} bits, {n_bits} were asked for.")
    try:
        return Codes.from_bits(array)
    except InputError:
        raise FileError(
            f"{path}: codes must be bits (booleans or 0/1), uint8 octets or uint64 words, got "
            f"other values of {array.dtype}; for codes of ±1 say signed (--signed)."
        ) from None


def _above_zero(array: NDArray[Any], path: str | os.PathLike[str]) -> NDArray[np.bool_]:
    """The bits of codes of ±1; what has no sign is refused, or octets would become bits."""
    if array.dtype.kind not in "if" or np.isnan(array).any():
        raise FileError(
            f"{path}: signed (--signed) is for numbers of both signs, like ±1, got "
            f"{'NaN' if array.dtype.kind == 'f' else array.dtype}."
        )
    return array > 0


def _matrix(path: str | os.PathLike[str], known: tuple[str, ...], what: str) -> Any:
    """A dense or sparse matrix."""
    names = _names(path)
    if {"format", "shape"} <= set(names):
        return _sparse(path)
    return _array(path, _find(names, known, path, what))


def _names(path: str | os.PathLike[str]) -> list[str]:
    """Names of a file's arrays; that of a ``.npy`` has the name ''."""
    with _reading(path) as source:
        if not _start(source).startswith(ZIP):
            return [""]
        with zipfile.ZipFile(source) as archive:
            members = archive.namelist()
    return [name.removesuffix(".npy") for name in members if name.endswith(".npy")]


def _array(path: str | os.PathLike[str], name: str) -> NDArray[Any]:
    """One array of a file, in this machine's byte order."""
    with _reading(path) as source:
        if not _start(source).startswith((*ZIP, NPY)):
            raise ValueError("it begins like neither")
        loaded = np.load(source, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            with loaded:
                loaded = loaded[name]
    return loaded.astype(loaded.dtype.newbyteorder("="), copy=False)


def _start(source: Path) -> bytes:
    with source.open("rb") as file:
        return file.read(len(NPY))


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An existing file; whatever NumPy, SciPy or zipfile raise over its octets names it."""
    source = existing_file(path)
    try:
        yield source
    except MemoryError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        if "allow_pickle" in why:
            why = "it holds Python objects; save plain numbers or strings"
        raise FileError(f"{source}: not a readable .npy or .npz file ({why}).") from error


def _find(names: list[str], known: tuple[str, ...], path: str | os.PathLike[str], what: str) -> str:
    """The array that holds what is wanted: the only one, or one of a known name."""
    if len(names) == 1:
        return names[0]
    for name in known:
        if name in names:
            return name
    raise FileError(
        f"{path}: has no {what}; they are looked for under {', '.join(known)}, "
        f"and the file has {', '.join(sorted(names)) or 'no arrays'}."
    )


def _text_labels(text: bytes, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Integers if every label is one, else strings; blank lines are allowed at the end alone."""
    try:
        lines = [line.strip() for line in text.decode("utf-8-sig").rstrip().split("\n")]
    except UnicodeDecodeError:
        raise FileError(f"{path}: labels are .npy, .npz or UTF-8 text, a label a line.") from None
    if lines == [""]:
        raise FileError(f"{path}: has no labels.")
    if "" in lines:
        raise FileError(
            f"{path}: line {lines.index('') + 1} is blank, a label a line was expected."
        )
    labels = np.array(lines)
    if not all(map(INTEGER.fullmatch, lines)):  # NumPy would also read 1_10 and 11_0, as one
        return labels
    try:
        return labels.astype(np.int64)
    except OverflowError:
        return labels


def _sparse(path: str | os.PathLike[str]) -> Any:
    """A matrix that ``scipy.sparse.save_npz`` wrote, with its indices checked."""
    import scipy.sparse

    with _reading(path) as source:
        matrix = scipy.sparse.load_npz(source)
        if hasattr(matrix, "check_format"):  # on loading, SciPy trusts compressed formats
            matrix.check_format(full_check=True)
        if matrix.ndim != 2:
            raise ValueError(f"a sparse array of shape {matrix.shape} is no matrix")
    return matrix
