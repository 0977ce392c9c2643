"""Codes, labels, tags and gains from files made anywhere."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.files import existing_file

__all__ = ["has_array", "read_codes", "read_gains", "read_labels", "read_tags"]

CODES = ("words", "codes", "bits", "packed", "octets")
LABELS = ("labels", "label", "classes", "y")
TAGS = ("tags",)


def read_codes(
    path: str | os.PathLike[str], *, n_bits: int | None = None, signed: bool = False
) -> Codes:
    """Codes of a ``.npy`` or ``.npz`` file: bits, octets as ``np.packbits`` lays them, or words.

    Booleans and arrays of 0 and 1 are bits, other uint8 arrays are octets, uint64 are words (bit j
    in word j // 64); ``n_bits`` is needed where octets or words are padded.  With ``signed``, bits
    are what is above 0, for codes of ±1.  In an ``.npz`` the codes are the array ``words``,
    ``codes``, ``bits``, ``packed`` or ``octets``.
    """
    arrays = _arrays(path)
    name = _find(arrays, CODES, path, "codes")
    array = arrays[name]
    if "n_bits" in arrays and n_bits is None:
        n_bits = int(arrays["n_bits"])
    if array.dtype.names or (name == "words" and "n_bits" in arrays):
        return Codes.load(path, n_bits=n_bits)
    if array.ndim != 2:
        raise FileError(f"{path}: codes are a 2-D array (n, width), got shape {array.shape}.")
    if signed:
        return Codes.from_bits(array > 0)
    if array.dtype == np.uint64 and array.max(initial=0) > 1:
        return Codes(np.ascontiguousarray(array), n_bits or 64 * array.shape[1])
    if array.dtype == np.uint8 and (
        array.max(initial=0) > 1 or n_bits not in (None, array.shape[1])
    ):
        return Codes.from_packed(array, n_bits)
    if n_bits not in (None, array.shape[1]):
        raise FileError(f"{path}: holds codes of {array.shape[1]} bits, {n_bits} were asked for.")
    try:
        return Codes.from_bits(array)
    except InputError:
        raise FileError(
            f"{path}: bits must be booleans or 0/1; for codes of ±1 say signed (--signed)."
        ) from None


def has_array(path: str | os.PathLike[str], kind: str) -> bool:
    """Whether an ``.npz`` file brings its own ``labels`` or ``tags``."""
    if not zipfile.is_zipfile(existing_file(path)):
        return False
    return any(name in _arrays(path) for name in {"labels": LABELS, "tags": TAGS}[kind])


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """One class label a row: ``.npy``, ``.npz`` (array ``labels``) or text, a label a line."""
    if not _is_numpy(path):
        return _text_labels(existing_file(path))
    arrays = _arrays(path)
    return arrays[_find(arrays, LABELS, path, "labels")]


def read_tags(path: str | os.PathLike[str]) -> Any:
    """Multi-hot tags: ``.npy``, ``.npz`` (array ``tags``) or a ``scipy.sparse`` ``.npz``."""
    arrays = _arrays(path)
    return _sparse(path) if _is_sparse(arrays) else arrays[_find(arrays, TAGS, path, "tags")]


def read_gains(path: str | os.PathLike[str]) -> Any:
    """A matrix of gains, queries by database: ``.npy``, ``.npz`` or a ``scipy.sparse`` ``.npz``."""
    arrays = _arrays(path)
    if _is_sparse(arrays):
        return _sparse(path)
    return arrays[_find(arrays, ("gains", "relevance"), path, "gains")]


def _arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """All arrays of a file by name; that of a ``.npy`` has the name ''."""
    source = existing_file(path)
    try:
        loaded = np.load(source, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{source}: not a readable .npy or .npz file ({error}).") from error


def _find(
    arrays: dict[str, NDArray[Any]],
    names: tuple[str, ...],
    path: str | os.PathLike[str],
    what: str,
) -> str:
    """The array that holds what is wanted: the only one, or one of a known name."""
    if len(arrays) == 1:
        return next(iter(arrays))
    for name in names:
        if name in arrays:
            return name
    raise FileError(
        f"{path}: has no {what}; they are looked for under {', '.join(names)}, "
        f"and the file has {', '.join(sorted(arrays)) or 'nothing'}."
    )


def _is_numpy(path: str | os.PathLike[str]) -> bool:
    with existing_file(path).open("rb") as file:
        start = file.read(6)
    return start.startswith((b"PK", b"\x93NUMPY"))


def _text_labels(source: Path) -> NDArray[Any]:
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise FileError(f"{source}: labels are .npy, .npz or UTF-8 text, a label a line.") from None
    labels = np.array([line.strip() for line in lines])
    if not len(labels):
        raise FileError(f"{source}: has no labels.")
    try:
        return labels.astype(np.int64)
    except ValueError:
        return labels


def _is_sparse(arrays: dict[str, NDArray[Any]]) -> bool:
    return "format" in arrays and "shape" in arrays


def _sparse(path: str | os.PathLike[str]) -> Any:
    import scipy.sparse

    try:
        return scipy.sparse.load_npz(path)
    except (ValueError, KeyError, OSError) as error:
        raise FileError(f"{path}: not a readable sparse matrix ({error}).") from error
