"""Manifests: a CSV or JSONL file that names images, their labels and their tags."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bittern.errors import FileError
from bittern.io.files import existing_file

COLUMNS = ("path", "label", "tags")


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """An image of a manifest; ``label`` is None in all rows or in none."""

    line: int
    path: str  # relative to the folder, with '/'
    label: str | None
    tags: frozenset[str]


def read_manifest(path: Path, root: Path) -> list[ManifestRow]:
    """The rows of a manifest, in its order; errors name the line."""
    source = existing_file(path)
    formats = {".csv": _csv_rows, ".jsonl": _json_rows, ".ndjson": _json_rows}
    if source.suffix.lower() not in formats:
        raise FileError(f"{source}: a manifest must end in {', '.join(formats)}.")
    parser = _RowParser(source, root)
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{source}: must be UTF-8 ({error}).") from error
    rows = [parser.row(line, given) for line, given in formats[source.suffix.lower()](source, text)]
    if not rows:
        raise FileError(f"{source}: has no rows.")
    _refuse_missing_labels(source, rows)
    return rows


class _RowParser:
    """Checks each line and turns it into a :class:`ManifestRow`; each path may occur once."""

    def __init__(self, source: Path, root: Path) -> None:
        self.source = source
        self.root = root
        self.lines: dict[str, int] = {}

    def row(self, line: int, given: Mapping[str, Any]) -> ManifestRow:
        path = self._path(line, given.get("path"))
        return ManifestRow(
            line, path, self._label(line, given), self._tags(line, given.get("tags"))
        )

    def _path(self, line: int, given: Any) -> str:
        if not isinstance(given, str) or not given.strip():
            raise self.refusal(line, "a row must have a path")
        path = _inside(self.root, given.strip())
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

    def refusal(self, line: int, what: str) -> FileError:
        return FileError(f"{self.source}, line {line}: {what}.")


def _csv_rows(source: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            if header is None:
                header = _header(source, cells)
            elif cells:
                if len(cells) > len(header):
                    raise FileError(
                        f"{source}, line {reader.line_num}: has {len(cells)} cells under "
                        f"{len(header)} columns; put quotes around a comma."
                    )
                padded = [*cells, *[""] * (len(header) - len(cells))]
                yield reader.line_num, dict(zip(header, padded, strict=True))
    except csv.Error as error:
        raise FileError(f"{source}, line {reader.line_num}: not CSV ({error}).") from error


def _header(source: Path, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    if "path" not in header:
        raise FileError(
            f"{source}: the first line must name the columns, comma-separated, one of them path; "
            f"got {header[:6]}."
        )
    repeated = [name for name in COLUMNS if header.count(name) > 1]
    if repeated:
        raise FileError(f"{source}: the column {repeated[0]} is repeated.")
    return header


def _json_rows(source: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise FileError(f"{source}, line {number}: must be one JSON object.")
        yield number, given


def _refuse_missing_labels(source: Path, rows: list[ManifestRow]) -> None:
    lacking = [row for row in rows if row.label is None]
    if lacking and len(lacking) < len(rows):
        raise FileError(
            f"{source}, line {lacking[0].line}: has no label, but {len(rows) - len(lacking)} "
            "rows have one."
        )


def _inside(root: Path, given: str) -> str | None:
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
