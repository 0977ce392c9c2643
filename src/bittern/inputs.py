"""Read codes, labels, tags and gains from files that other programs wrote."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import MAX_BITS, BitOrder, Codes, check_bitorder
from bittern.errors import FileError, InputError
from bittern.io.files import existing_file, reading
from bittern.io.npz import (
    array_names,
    begins_like_arrays,
    stored_array,
    stored_arrays,
    to_native,
)

CODES = ("words", "codes", "bits", "packed", "bytes", "octets")
LABELS = ("labels", "label", "classes", "y")
TAGS = ("tags",)
GAINS = ("gains", "relevance")
INTEGER = re.compile(r"[+-]?[0-9]+")


def read_codes(
    path: str | os.PathLike[str],
    *,
    n_bits: int | None = None,
    signed: bool = False,
    bitorder: BitOrder = "big",
    array: str | None = None,
) -> Codes:
    """Codes from a ``.npy`` or ``.npz`` file: bits, bytes from ``np.packbits``, or words.

    Booleans and arrays of 0 and 1 are bits, other uint8 arrays are packed bytes, uint64 are words
    (bit j in word j // 64); give ``n_bits`` if bytes or words are padded.  ``bitorder`` is that of
    packed bytes, as in ``np.packbits``.  With ``signed``, for codes of ±1, a bit is set where a
    number is above 0.  In an ``.npz`` the codes are the array ``words``, ``codes``, ``bits``,
    ``packed`` or ``bytes``, or the only array; or ``array``.
    """
    check_bitorder(bitorder)
    names = array_names(path)
    name = _find(names, CODES if array is None else (array,), path, "codes", array)
    stated = _stated_length(path) if "n_bits" in names else None
    if name == "words" and stated is not None:
        return Codes.load(path, n_bits=n_bits)
    given = _array(path, name)
    if given.dtype.names:
        del given  # Codes.load reads it again, with the length in its field's name
        return Codes.load(path, n_bits=n_bits)
    if given.ndim != 2 or not 1 <= given.shape[1] <= MAX_BITS:
        raise FileError(
            f"{path}: codes are a 2-D array (n, width) of 1 to {MAX_BITS} columns, "
            f"got shape {given.shape}."
        )
    n_bits = stated if n_bits is None else n_bits
    if signed:
        return _from_bits(_above_zero(given, path), n_bits, path)
    if given.dtype in (np.uint8, np.uint64) and (
        n_bits not in (None, given.shape[1]) or given.max(initial=0) > 1
    ):
        return _from_packed(given, n_bits, bitorder)
    return _from_bits(given, n_bits, path)


def has_array(path: str | os.PathLike[str], kind: str) -> bool:
    """Whether ``path`` is an ``.npz`` file with the array ``kind``: labels or tags."""
    known = {"labels": LABELS, "tags": TAGS}[kind]
    return any(name in known for name in array_names(path))


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """One class label per row: ``.npy``, ``.npz`` (array ``labels``), or text with one per line."""
    with reading(path, "file"), existing_file(path).open("rb") as file:
        text = None if begins_like_arrays(file.peek(8)) else file.read()
    if text is not None:  # read at once: a pipe cannot be opened again
        return _text_labels(text, path)
    return _array(path, _find(array_names(path), LABELS, path, "labels"))


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


def _from_packed(array: NDArray[Any], n_bits: int | None, bitorder: BitOrder) -> Codes:
    """Codes from packed bytes or words."""
    if array.dtype == np.uint8:
        return Codes.from_packed(array, n_bits, bitorder)
    return Codes(np.ascontiguousarray(array), 64 * array.shape[1] if n_bits is None else n_bits)


def _from_bits(array: NDArray[Any], n_bits: int | None, path: str | os.PathLike[str]) -> Codes:
    """Codes from booleans or 0/1, one column per bit."""
    if n_bits not in (None, array.shape[1]):
        raise FileError(f"{path}: holds codes of {array.shape[1]} bits, not {n_bits}.")
    try:
        return Codes.from_bits(array)
    except InputError:
        raise FileError(
            f"{path}: codes must be bits (booleans or 0/1), packed uint8 bytes or uint64 words, "
            f"got other values of {array.dtype}; for codes of ±1 pass signed=True (--signed)."
        ) from None


def _above_zero(array: NDArray[Any], path: str | os.PathLike[str]) -> NDArray[np.bool_]:
    """The bits of codes of ±1; unsigned numbers are errors, or packed bytes would pass as bits."""
    if array.dtype.kind not in "if" or np.isnan(array).any():
        raise FileError(
            f"{path}: signed (--signed) is for numbers of both signs, like ±1, got "
            f"{'NaN' if array.dtype.kind == 'f' else array.dtype}."
        )
    return array > 0


def _matrix(path: str | os.PathLike[str], known: tuple[str, ...], what: str) -> Any:
    """A dense or a sparse matrix."""
    names = array_names(path)
    if {"format", "shape"} <= set(names):
        return _sparse(path)
    return _array(path, _find(names, known, path, what))


def _array(path: str | os.PathLike[str], name: str) -> NDArray[Any]:
    return to_native(stored_array(path, name).load())


def _find(
    names: list[str],
    known: tuple[str, ...],
    path: str | os.PathLike[str],
    what: str,
    exact: str | None = None,
) -> str:
    """The name of the array to read: the only one, or one of a known name; or ``exact``."""
    if len(names) == 1 and exact is None:
        return names[0]
    for name in known:
        if name in names:
            return name
    raise FileError(
        f"{path}: has no {what}; their array must be called {', '.join(known)}, "
        f"and the file has {', '.join(sorted(names)) or 'no arrays'}."
    )


def _text_labels(text: bytes, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Integers if every label is one, otherwise strings; only the last lines may be blank."""
    try:
        lines = [line.strip() for line in text.decode("utf-8-sig").rstrip().split("\n")]
    except UnicodeDecodeError:
        raise FileError(
            f"{path}: labels must be .npy, .npz or UTF-8 text with one label per line."
        ) from None
    if lines == [""]:
        raise FileError(f"{path}: has no labels.")
    if "" in lines:
        raise FileError(
            f"{path}: line {lines.index('') + 1} is blank; every line must have a label."
        )
    labels = np.array(lines)
    if not all(map(INTEGER.fullmatch, lines)):  # NumPy would read 1_10 and 11_0 as one number
        return labels
    try:
        return labels.astype(np.int64)
    except OverflowError:
        return labels


def _sparse(path: str | os.PathLike[str]) -> Any:
    """A matrix that ``scipy.sparse.save_npz`` wrote, with its indices checked."""
    import scipy.sparse

    stored_arrays(path)  # checks the headers, which SciPy trusts
    with reading(path, "sparse matrix"):
        matrix = scipy.sparse.load_npz(path)
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        if matrix.ndim != 2:
            raise ValueError(f"a sparse array of shape {matrix.shape} is not a matrix")
    return matrix
