"""Manifests: a CSV or JSONL file that names images, their labels, tags and texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bittern.errors import FileError
from bittern.io.lines import read_objects

COLUMNS = ("path", "label", "tags", "text")


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """An image of a manifest; ``label`` is None in all rows or in none."""

    line: int
    path: str  # relative to the folder, with '/'
    label: str | None
    tags: frozenset[str]
    text: str = ""  # empty if the image has none


def read_manifest(path: Path, root: Path) -> list[ManifestRow]:
    """The rows of a manifest, in its order; errors name the line."""
    parser = _RowParser(path, root)
    given = read_objects(path, "a manifest", ("path",), COLUMNS)
    rows = [parser.row(line, cells) for line, cells in given]
    if not rows:
        raise FileError(f"{path}: has no rows.")
    _refuse_missing_labels(path, rows)
    return rows


class _RowParser:
    """Checks each line and turns it into a :class:`ManifestRow`; each path may occur once."""

    def __init__(self, source: Path, root: Path) -> None:
        self.source = source
        self.root = root
        self.lines: dict[str, int] = {}

    def row(self, line: int, given: Mapping[str, Any]) -> ManifestRow:
        path = self._path(line, given.get("path"))
        label, tags = self._label(line, given), self._tags(line, given.get("tags"))
        return ManifestRow(line, path, label, tags, self._text(line, given.get("text")))

    def _path(self, line: int, given: Any) -> str:
        if not isinstance(given, str) or not given.strip():
            raise self.refusal(line, "a row must have a path")
        path = path_inside(self.root, given.strip())
        if path is None:
            raise self.refusal(line, f"{given!r} is outside {self.root}")
        if not _is_file(self.root / path):
            raise self.refusal(line, f"there is no file {given!r} in {self.root}")
        if path in self.lines:
            raise self.refusal(line, f"{path!r} is repeated, first in line {self.lines[path]}")
        self.lines[path] = line
        return path

    def _label(self, line: int, given: Mapping[str, Any]) -> str | None:
        if "label" not in given:
            return None
        label = given["label"]
        if isinstance(label, int) and not isinstance(label, bool):
            label = str(label)
        if not isinstance(label, str) or not label.strip():
            raise self.refusal(line, f"the label must be a word or a whole number, got {label!r}")
        return label.strip()

    def _tags(self, line: int, given: Any) -> frozenset[str]:
        if isinstance(given, str) and given.strip().startswith("["):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                raise self.refusal(line, "tags start like a JSON list but are not one") from None
        words = given.split(";") if isinstance(given, str) else given
        if words is None:
            return frozenset()
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise self.refusal(line, "tags must be words separated by ';' or a JSON list of words")
        return frozenset(word.strip() for word in words) - {""}

    def _text(self, line: int, given: Any) -> str:
        if given is not None and not isinstance(given, str):
            raise self.refusal(line, f"the text must be a string, got {given!r}")
        return (given or "").strip()

    def refusal(self, line: int, what: str) -> FileError:
        return FileError(f"{self.source}, line {line}: {what}.")


def _refuse_missing_labels(source: Path, rows: list[ManifestRow]) -> None:
    lacking = [row for row in rows if row.label is None]
    if lacking and len(lacking) < len(rows):
        raise FileError(
            f"{source}, line {lacking[0].line}: has no label, but {len(rows) - len(lacking)} "
            "rows have one."
        )


def path_inside(root: Path, given: str) -> str | None:
    """``given`` relative to ``root``, with ``/`` and without ``..``; None if it is outside."""
    path = Path(given)
    if "\\" in given and not _is_file(root / path):
        path = Path(given.replace("\\", "/"))  # written on Windows
    if path.is_absolute():
        if not path.is_relative_to(root.absolute()):
            return None
        path = path.relative_to(root.absolute())
    parts: list[str] = []
    for part in path.parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    return "/".join(parts)


def _is_file(path: Path) -> bool:
    """Whether the file exists; False also for an impossible name (too long, NUL, bad Unicode)."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
