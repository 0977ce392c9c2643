"""Tables of metadata: a CSV or JSON Lines file with a row for each image.

The column ``file``, ``path``, ``filename`` or ``image`` says which image a row is about: its path
relative to the folder, or its name if no other image has that name.  Every other column becomes a
key of the metadata, with one type for all its values: whole numbers, numbers, true and false, or
text.  Numbers that start with a 0, such as 007, are text.  ``tags`` is a list of words, separated
by ``;``.  An empty cell is a missing value.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

from bittern.data.manifest import path_inside
from bittern.errors import FileError
from bittern.io.lines import read_objects

FILE_COLUMNS = ("file", "path", "filename", "image")
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
REAL = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, eq=False)
class MetadataTable:
    """The metadata of some images by path, and where table and images do not match."""

    rows: Mapping[str, Mapping[str, Any]]  # by image; without missing values
    columns: tuple[str, ...]
    unmatched: tuple[tuple[str, str], ...]  # rows without an image: what each names, the reason
    undescribed: tuple[str, ...]  # images without a row


def read_metadata(
    table: str | os.PathLike[str],
    root: Path,
    paths: Sequence[str],
    rename: Callable[[str], str] = str,
) -> MetadataTable:
    """Read a table about the images ``root / paths[i]``; ``rename`` gives the key of a column.

    Fails if two rows are about one image, or a row names several images.
    """
    source = Path(table)
    named = _Names(root, paths)
    lines: dict[str, int] = {}  # of each image
    unmatched: list[tuple[str, str]] = []
    cells: dict[int, Mapping[str, Any]] = {}  # by line
    for line, name, given in _read_rows(source):
        where = f"{source}, line {line}"
        cells[line] = given
        image = named.find(name, where)
        if image is None:
            unmatched.append((name, f"{where}: there is no image {name!r} in {root}."))
        elif lines.setdefault(image, line) != line:
            raise FileError(f"{where}: {image!r} is repeated, first in line {lines[image]}.")
    columns = _typed_columns(cells, _keys(source, cells, rename))
    rows = {
        image: {key: v[line] for key, v in columns.items() if v[line] is not None}
        for image, line in lines.items()
    }
    undescribed = tuple(path for path in paths if path not in lines)
    return MetadataTable(rows, tuple(columns), tuple(unmatched), undescribed)


def _read_rows(source: Path) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Line, image and other cells of each row."""
    needed = (*FILE_COLUMNS, *(name.title() for name in FILE_COLUMNS))
    for line, given in read_objects(source, "metadata", needed, needed):
        key = next((name for name in needed if name in given), None)
        image = None if key is None else given[key]
        if not isinstance(image, str) or not image.strip():
            raise FileError(
                f"{source}, line {line}: a row must name its image, under "
                f"{', '.join(FILE_COLUMNS)}."
            )
        yield line, image.strip(), {name: v for name, v in given.items() if name != key}


class _Names:
    """Finds images by path, or by name if it is unique; accents may be composed or not."""

    def __init__(self, root: Path, paths: Sequence[str]) -> None:
        self._root = root
        self._paths = {normalize("NFC", path): path for path in paths}
        self._exact = set(paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._by_name[normalize("NFC", path.rpartition("/")[2])].append(path)

    def find(self, given: str, where: str) -> str | None:
        path = path_inside(self._root, given)
        if path in self._exact:
            return path
        plain = normalize("NFC", path or given)
        if plain in self._paths:
            return self._paths[plain]
        among = self._by_name.get(plain, [])
        if len(among) > 1:
            raise FileError(
                f"{where}: {len(among)} images are called {given!r}; write the path, such as "
                f"{among[0]!r}."
            )
        return among[0] if among else None


def _keys(
    source: Path, rows: Mapping[int, Mapping[str, Any]], rename: Callable[[str], str]
) -> dict[str, str]:
    """The key of each column that has a name; two columns may not have the same."""
    keys: dict[str, str] = {}
    for name in dict.fromkeys(name for row in rows.values() for name in row if name):
        same = [other for other, key in keys.items() if key.lower() == rename(name).lower()]
        if same:
            raise FileError(
                f"{source}: the columns {same[0]!r} and {name!r} would both be called "
                f"{rename(name)}; rename one."
            )
        keys[name] = rename(name)
    return keys


def _typed_columns(
    rows: Mapping[int, Mapping[str, Any]], keys: Mapping[str, str]
) -> dict[str, dict[int, Any]]:
    """The values of each key by line; types are those of all rows, with and without an image."""
    columns = {}
    for name, key in keys.items():
        values = [_blank(row.get(name)) for row in rows.values()]
        typed = [_words(v) for v in values] if key == "tags" else _typed(values)
        if any(value is not None for value in typed):
            columns[key] = dict(zip(rows, typed, strict=True))
    return columns


def _blank(value: Any) -> Any:
    """Text without spaces around it; None if nothing is left."""
    return value.strip() or None if isinstance(value, str) else value


def _words(value: Any) -> list[str] | None:
    if isinstance(value, str) and not value.startswith("["):
        value = [word.strip() for word in value.split(";")]
    elif isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]
    words = value if isinstance(value, list) else [value]
    return [str(word) for word in words if word not in (None, "")] or None


def _typed(values: list[Any]) -> list[Any]:
    """All values as one type: that of the text in all of them, or of JSON, or text."""
    present = [value for value in values if value is not None]
    if all(isinstance(value, str) for value in present):
        for pattern, convert in ((WHOLE, int), (REAL, float)):
            if all(map(pattern.fullmatch, present)):
                return [None if v is None else convert(v) for v in values]
        if all(value.lower() in TRUTHS for value in present):
            return [None if v is None else TRUTHS[v.lower()] for v in values]
        return values
    kinds = {type(value) for value in present}
    if kinds == {int, float}:
        return [None if v is None else float(v) for v in values]
    if len(kinds) == 1:
        return values
    return [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
