"""Captions: the texts of images or rows, from one file or from a file beside each image.

A file of captions is ``.csv`` or ``.jsonl``, with a column ``caption`` or ``text`` and a column
``file``, ``path``, ``image`` or ``id`` that says which item a caption belongs to.  Several captions
of an item become the lines of one text.  A caption without a file is an item of its own that has
no image; an item without a caption has no text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.manifest import path_inside
from bittern.errors import FileError, InputError
from bittern.io.files import existing_file, reading
from bittern.io.lines import read_objects

KEYS = ("file", "path", "image", "id")
TEXTS = ("caption", "text")
SUFFIX = re.compile(r"\.\w+")  # ".txt": a file beside each image


@dataclass(frozen=True, slots=True)
class Captions:
    """One text per item, and texts that belong to no item, by an id for each."""

    texts: tuple[str, ...]  # empty where an item has none
    others: Mapping[str, str]
    note: str
    unmatched: tuple[tuple[str, str], ...] = ()  # what a caption names that is not there, reason


def captions_of_images(
    source: str | os.PathLike[str], root: Path, paths: Sequence[str], *, is_partial: bool = False
) -> Captions:
    """The captions of the images ``root / paths[i]``.

    ``source`` is a file of captions, looked up in ``root`` if it is not in the current folder; or a
    suffix such as ``".txt"`` of files of the images' names.  A caption of an image that is not
    there is an error; if ``is_partial``, only if that holds for all of them.
    """
    if is_suffix(source):
        return _beside(os.fspath(source), root, paths)
    table = _found(source, root)
    texts: dict[str, str] = dict.fromkeys(paths, "")
    others: dict[str, str] = {}
    unmatched: list[tuple[str, str]] = []
    for line, key, text in _read(table):
        if key is None:
            others[f"{table.name}:{line}"] = text
            continue
        path = path_inside(root, key)
        if path in texts:
            texts[path] = _joined(texts[path], text)
        elif is_partial:
            unmatched.append((key, f"{table}, line {line}: there is no image {key!r} in {root}."))
        else:
            raise FileError(f"{table}, line {line}: there is no image {key!r} in {root}.")
    if unmatched and not any(texts.values()):
        raise FileError(f"{table}: none of its captions is of an image in {root}.")
    note = _note(table.name, texts.values(), len(others))
    return Captions(tuple(texts.values()), others, note, tuple(unmatched))


def is_suffix(source: str | os.PathLike[str]) -> bool:
    """Whether captions are in a file beside each image, with this suffix."""
    return SUFFIX.fullmatch(os.fspath(source)) is not None


def captions_of_rows(
    source: str | os.PathLike[str], root: Path, n: int, ids: NDArray[np.str_] | None
) -> tuple[str, ...]:
    """The captions of ``n`` rows: one per line of a ``.txt`` file, or by the rows' ids.

    A file of captions without a column of ids has one caption per row, in the same order.
    """
    table = _found(source, root)
    if table.suffix.lower() == ".txt":
        return _one_per_row(table, _text_of(table).splitlines(), n)
    found = list(_read(table))
    if all(key is None for _, key, _ in found):
        return _one_per_row(table, [text for _, _, text in found], n)
    if ids is None:
        raise InputError(f"{table}: names its rows by id, but the data has no ids.")
    texts: dict[str | None, str] = dict.fromkeys(ids.tolist(), "")
    for line, key, text in found:
        if key not in texts:
            raise FileError(f"{table}, line {line}: no row has the id {key!r}.")
        texts[key] = _joined(texts[key], text)
    return tuple(texts.values())


def present_texts(texts: Sequence[str], modality: str = "text") -> dict[str, NDArray[np.bool_]]:
    """``Dataset.present`` of texts, where a blank one means that the item has none."""
    there = np.array([bool(text.strip()) for text in texts], np.bool_)
    return {} if there.all() else {modality: there}


def _found(source: str | os.PathLike[str], root: Path) -> Path:
    folder = root if root.is_dir() else root.parent
    given = Path(source)
    return given if given.exists() or not (folder / given).exists() else folder / given


def _read(table: Path) -> list[tuple[int, str | None, str]]:
    """Line, key (None if it is blank) and text of each caption."""
    rows = []
    for line, given in read_objects(table, "captions", TEXTS, (*KEYS, *TEXTS)):
        key, text = _first(given, KEYS), _first(given, TEXTS)
        if isinstance(key, int) and not isinstance(key, bool):
            key = str(key)
        if not isinstance(text, str | None) or not isinstance(key, str | None):
            raise FileError(
                f"{table}, line {line}: a caption and its file must be strings, got {given!r:.60}."
            )
        if text is None and not any(name in given for name in TEXTS):
            raise FileError(f"{table}, line {line}: must have a caption.")
        rows.append((line, (key or "").strip() or None, _sound(table, line, text)))
    if not rows:
        raise FileError(f"{table}: has no captions.")
    return rows


def _first(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value under the first of these names that the line has."""
    return next((given[name] for name in names if name in given), None)


def _sound(table: Path, line: int, text: str | None) -> str:
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise FileError(f"{table}, line {line}: the caption is not valid Unicode.") from None
    return (text or "").strip()


def _beside(suffix: str, root: Path, paths: Sequence[str]) -> Captions:
    files = [(root / path).with_suffix(suffix) for path in paths]
    texts = tuple(_text_of(file).strip() if file.is_file() else "" for file in files)
    if not any(texts):
        raise FileError(f"{root}: no image has a caption in a file beside it, like {files[0]}.")
    return Captions(texts, {}, _note(f"the {suffix} files", texts, 0))


def _text_of(file: Path) -> str:
    source = existing_file(file)
    with reading(source, "text"):
        return source.read_bytes().decode("utf-8-sig")


def _one_per_row(table: Path, texts: Sequence[str], n: int) -> tuple[str, ...]:
    if len(texts) != n:
        raise FileError(f"{table}: must have one caption for each of {n} rows, got {len(texts)}.")
    return tuple(text.strip() for text in texts)


def _joined(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second


def _note(source: str, texts: Sequence[str] | Any, n_others: int) -> str:
    n_with = sum(bool(text) for text in texts)
    captions = "caption" if n_others == 1 else "captions"
    alone = f", and {n_others:,} {captions} without an image" if n_others else ""
    images = "image has" if n_with == 1 else "images have"
    return f"text is from {source}: {n_with:,} {images} one{alone}."
