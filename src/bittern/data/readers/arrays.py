"""Your own arrays: vectors with labels, tags and ids, in .npy, .npz, .parquet or HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_labels
from bittern.data.caption_files import captions_of_rows, present_texts
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.rows import Rows, Texts
from bittern.errors import FileError, InputError
from bittern.io.arrays import (
    CLASS_NAMES,
    IDS,
    LABELS,
    OTHERS,
    TAG_NAMES,
    TAGS,
    TEXTS,
    ArrayTable,
    open_table,
)
from bittern.io.named_array import NamedArray

FIND = "find"  # look for the usual names
CHOOSE = "vectors="  # how to choose among several


def _load(
    name: str,
    folder: Path,
    *,
    vectors: str | Sequence[str] = FIND,
    labels: str | None = FIND,
    tags: str | None = FIND,
    ids: str | None = FIND,
    texts: str | None = FIND,
    class_names: Sequence[str] | None = None,
    tag_names: Sequence[str] | None = None,
) -> Dataset:
    """Read vectors with their labels, tags and ids from a file or a folder of ``.npy`` files.

    ``vectors``, ``labels``, ``tags``, ``ids`` and ``texts`` name arrays (in a folder: files,
    without their suffix; in Parquet: columns, where ``"x*"`` means all columns of such names).
    Several names of vectors make several modalities.  By default each is found under a usual name,
    or else by shape: the only array of two dimensions, and the only array of whole numbers or text
    with one entry per row.  ``None`` skips it.  Labels may be text; -1 and missing labels mean no
    class.

    Texts become the modality ``text``; ``texts`` may also name a file of captions (see
    :mod:`bittern.data.caption_files`).  An item lacks a modality if its text is blank or missing,
    or, if there are several modalities, if its vector is all NaN.
    """
    table = open_table(folder)
    modalities = _modalities(table, vectors)
    n = len(next(iter(modalities.values())))
    if n == 0:
        raise FileError(f"{table.path}: has no rows.")
    id_array = _optional(table, ids, IDS, n, "ids")
    label_array = _optional(table, labels, LABELS, n, "labels") or _only_labels(table, labels, n)
    tag_array = _optional(table, tags, TAGS, n, "tags")
    known = class_names or _names(table, CLASS_NAMES)
    numbers, named = _classes(table, label_array, known)
    distinct_ids = _distinct(table, id_array)
    found_texts = _texts(table, texts, n, distinct_ids)
    return Dataset(
        name=name,
        **_with_texts(modalities, found_texts),
        ids=distinct_ids,
        labels=numbers,
        class_names=named,
        **_tags(table, tag_array, tag_names or _names(table, TAG_NAMES)),
        notes=(f"read from {table.path}: {table.listed()}",),
    )


def _modalities(table: ArrayTable, vectors: str | Sequence[str]) -> dict[str, NDArray[Any]]:
    if vectors == FIND:
        return {"vectors": table.vectors(None, CHOOSE).read()}
    if isinstance(vectors, str):
        return {"vectors": table.vectors(vectors, CHOOSE).read()}
    if not vectors:
        raise InputError("arrays: vectors must name at least one array, got none.")
    modalities = {name: table.vectors(name, CHOOSE).read() for name in vectors}
    if len({len(rows) for rows in modalities.values()}) > 1:
        raise FileError(f"{table.path}: vectors differ in length; the file has {table.listed()}.")
    return modalities


def _optional(
    table: ArrayTable, asked: str | None, usual: tuple[str, ...], n: int, what: str
) -> NamedArray | None:
    """The array asked for, or the one with a usual name; it must have one entry per row."""
    if asked is None:
        return None
    names = [name for name in usual if name in table] if asked == FIND else [asked]
    if len(names) > 1:
        raise FileError(
            f"{table.path}: {what} may be {' or '.join(names)}; choose one: {what}={names[0]!r}."
        )
    if not names:
        return None
    stored = table[names[0]]
    if stored.kind == "other":
        raise FileError(
            f"{table.path}: {what} must be numbers or text, '{stored.name}' is {stored}."
        )
    n_axes = 2 if what == "tags" else 1
    if len(stored.shape) != n_axes or stored.shape[0] != n:
        form = f"({n}, n_tags)" if what == "tags" else f"({n},)"
        raise FileError(
            f"{table.path}: {what} must have shape {form}, one entry for each of {n} rows; "
            f"'{stored.name}' is {stored}."
        )
    return stored


def _texts(
    table: ArrayTable, asked: str | None, n: int, ids: NDArray[np.str_] | None
) -> Sequence[str] | None:
    """The texts of an array or of a file of captions; None if there are none."""
    if (
        asked is not None
        and asked not in table
        and Path(asked).suffix in (".txt", ".csv", ".jsonl")
    ):
        return captions_of_rows(asked, table.path, n, ids)
    usual = tuple(name for name, stored in table.items() if name in TEXTS and stored.kind == "text")
    stored = _optional(table, asked, usual, n, "texts")
    if stored is None:
        return None
    values = stored.read().tolist()
    if stored.kind != "text" or not all(isinstance(text, str | None) for text in values):
        raise FileError(f"{table.path}: texts must be strings, '{stored.name}' is {stored}.")
    return [text or "" for text in values]


def _with_texts(vectors: dict[str, NDArray[Any]], texts: Sequence[str] | None) -> dict[str, Any]:
    """``modalities`` and ``present`` of the dataset."""
    modalities: dict[str, Rows] = {}
    present: dict[str, NDArray[np.bool_]] = {}
    for name, rows in vectors.items():
        lacking = _all_nan(rows) if len(vectors) > 1 or texts is not None else np.zeros(0, bool)
        modalities[name] = np.where(lacking[:, None], 0, rows) if lacking.any() else rows
        if lacking.any():
            present[name] = ~lacking
    if texts is not None:
        if "text" in vectors:
            raise InputError("arrays: vectors are called 'text' already; pass texts=None.")
        modalities["text"] = Texts(texts)
        present |= present_texts(texts)
    return {"modalities": modalities, "present": present}


def _all_nan(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows hold nothing but NaN."""
    if rows.ndim != 2 or rows.dtype.kind != "f":
        return np.zeros(len(rows), np.bool_)
    first = np.isnan(rows[:, 0])
    first[first] = np.isnan(rows[first]).all(axis=1)
    return first


def _only_labels(table: ArrayTable, asked: str | None, n: int) -> NamedArray | None:
    """The only array without a usual name that can be labels."""
    if asked != FIND:
        return None
    candidates = [
        stored
        for name, stored in table.items()
        if stored.shape == (n,) and stored.is_discrete and name not in OTHERS
    ]
    if len(candidates) > 1:
        raise FileError(
            f"{table.path}: several arrays may be the labels; choose one, like "
            f"labels={candidates[0].name!r}, or labels=None for none; the file has "
            f"{table.listed()}."
        )
    return candidates[0] if candidates else None


def _classes(
    table: ArrayTable, stored: NamedArray | None, names: Sequence[str] | None
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Class numbers and names: as given if there are names, otherwise in sorted order."""
    if stored is None:
        return None, ()
    values, has_class = _label_values(table, stored)
    if names is not None and values.dtype.kind in "biu":
        numbers = np.where(has_class, values.astype(np.int64), -1)
        if numbers.min() < -1 or numbers.max() >= len(names):
            raise FileError(
                f"{table.path}: labels in '{stored.name}' must be 0 to {len(names) - 1}, for "
                f"{len(names)} names of classes; got {numbers.min()} to {numbers.max()}."
            )
        return numbers, tuple(map(str, names))
    found, inverse = np.unique(values[has_class], return_inverse=True)
    numbers = np.full(len(values), -1, np.int64)
    numbers[has_class] = inverse
    return numbers, tuple(map(str, found.tolist()))


def _label_values(table: ArrayTable, stored: NamedArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Labels as whole numbers or text, and a mask of the items that have one."""
    values = stored.read()
    has_class = np.ones(len(values), bool)
    if values.dtype == object:
        has_class = np.array([value is not None for value in values.tolist()], bool)
        kept = check_labels(values[has_class], f"{table.path}: '{stored.name}'")
        values = np.zeros(len(values), kept.dtype)
        values[has_class] = kept
    else:
        values = check_labels(values, f"{table.path}: '{stored.name}'")
    if values.dtype.kind == "i":
        has_class &= values != -1
    return values, has_class


def _tags(
    table: ArrayTable, stored: NamedArray | None, names: Sequence[str] | None
) -> Mapping[str, Any]:
    if stored is None:
        return {}
    values = stored.read()
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        raise FileError(f"{table.path}: tags must be 0 or 1, '{stored.name}' has other values.")
    n_tags = values.shape[1]
    if names is not None and len(names) != n_tags:
        raise FileError(
            f"{table.path}: '{stored.name}' has {n_tags} tags, but there are {len(names)} names."
        )
    return {
        "tags": values.astype(bool),
        "tag_names": tuple(map(str, range(n_tags) if names is None else names)),
    }


def _names(table: ArrayTable, usual: tuple[str, ...]) -> list[str] | None:
    """Names of classes or tags stored in the file."""
    found = [
        stored
        for name, stored in table.items()
        if name in usual and len(stored.shape) == 1 and stored.kind == "text"
    ]
    return [str(name) for name in found[0].read().tolist()] if found else None


def _distinct(table: ArrayTable, stored: NamedArray | None) -> NDArray[np.str_] | None:
    if stored is None:
        return None
    if not stored.is_discrete:
        raise FileError(
            f"{table.path}: ids must be text or whole numbers, '{stored.name}' is {stored}."
        )
    ids = check_labels(stored.read(), f"{table.path}: '{stored.name}'").astype(str)
    if len(np.unique(ids)) < len(ids):
        raise FileError(
            f"{table.path}: ids must be distinct, but those in '{stored.name}' are not."
        )
    return ids


def _spec(name: str, title: str) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        title=title,
        load=partial(_load, name),
        layout=(
            "a .npy, .npz, .parquet or HDF5 (.h5, .hdf5) file of vectors, with labels, tags or ids "
            "if you have them; or a folder with one such file, or with .npy files"
        ),
        citation="",
        licence="yours",
    )


ARRAYS = _spec("arrays", "Your own arrays")
EMBEDDINGS = _spec("embeddings", "Your own embeddings")
