"""Files of one object per line: CSV with a header, or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bittern.errors import FileError
from bittern.io.files import existing_file

Objects = Iterator[tuple[int, Mapping[str, Any]]]  # number of the line, and what it says


def read_objects(path: Path, what: str, needed: Sequence[str], columns: Collection[str]) -> Objects:
    """The lines of a ``.csv``, ``.jsonl`` or ``.ndjson`` file; errors name file and line.

    ``what`` says what the file is, for errors.  A CSV file must have one of the columns ``needed``,
    and those in ``columns`` only once.
    """
    source = existing_file(path)
    suffix = source.suffix.lower()
    if suffix not in (".csv", ".jsonl", ".ndjson"):
        raise FileError(f"{source}: {what} must end in .csv, .jsonl, .ndjson.")
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{source}: must be UTF-8 ({error}).") from error
    return _csv(source, text, needed, columns) if suffix == ".csv" else _json(source, text)


def _csv(source: Path, text: str, needed: Sequence[str], columns: Collection[str]) -> Objects:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            if header is None:
                header = _header(source, cells, needed, columns)
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


def _header(
    source: Path, cells: list[str], needed: Sequence[str], columns: Collection[str]
) -> list[str]:
    header = [cell.strip() for cell in cells]
    if not set(needed) & set(header):
        raise FileError(
            f"{source}: the first line must name the columns, comma-separated, one of them "
            f"{' or '.join(needed)}; got {header[:6]}."
        )
    repeated = [name for name in columns if header.count(name) > 1]
    if repeated:
        raise FileError(f"{source}: the column {repeated[0]} is repeated.")
    return header


def _json(source: Path, text: str) -> Objects:
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
