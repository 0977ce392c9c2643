"""Arrays of CSV and TSV files: a table of numbers, or named columns under a header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file, reading
from bittern.io.text import as_strings

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?(nan|inf)\s*", re.I)
EXACT = 1 << 53  # whole numbers below this are exact in float64


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a file by the names in its first line; without names, one 2-D array.

    That array has the name of the file.  Fields are separated by commas, tabs (``.tsv``) or
    semicolons.  Columns are numbers if every cell is one, with NaN for empty cells; else text.
    """
    source = existing_file(path)
    with reading(source, "CSV file"):  # csv limits the length of a cell
        return _columns(source)


def _columns(source: Path) -> dict[str, NDArray[Any]]:
    lines = _text(source).splitlines()
    if not any(line.strip() for line in lines):
        raise FileError(f"{source}: has no rows.")
    separator = _separator(source, lines[0])
    first = next(csv.reader(lines[:1], delimiter=separator))
    names = first if _is_header(first) else None
    body = lines if names is None else lines[1:]
    table = _numbers(body, separator)
    if table is None or (names is not None and table.shape[1] != len(names)):
        return _mixed(source, body, separator, names)
    if names is None:
        return {source.stem: table}
    columns = zip(_different(source, names), table.T, strict=True)
    return {name: _whole(np.ascontiguousarray(column)) for name, column in columns}


def _text(source: Path) -> str:
    try:
        return source.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{source}: CSV must be UTF-8 ({error.reason}).") from None


def _separator(source: Path, line: str) -> str:
    if source.suffix.lower() == ".tsv":
        return "\t"
    return ";" if ";" in line and "," not in line else ","


def _is_header(cells: list[str]) -> bool:
    """Whether a first line names columns: some cell is no number, or they count 0, 1, 2, ….

    pandas writes such a count, after an empty cell for its index.
    """
    rest = cells[1:] if cells[:1] == [""] else cells
    counted = len(rest) > 2 and rest == [str(i) for i in range(len(rest))]
    return counted or not all(NUMBER.fullmatch(cell) for cell in cells if cell.strip())


def _numbers(lines: list[str], separator: str) -> NDArray[Any] | None:
    """All cells as one table; None if one is no number, or lines differ in length."""
    if not lines:
        return None
    try:
        text = io.StringIO("\n".join(lines))
        table = np.loadtxt(text, delimiter=separator, ndmin=2, comments=None)
    except ValueError:
        return None
    return _whole(table)


def _whole(numbers: NDArray[Any]) -> NDArray[Any]:
    """Integers if all numbers are whole."""
    is_whole = (np.abs(numbers) < EXACT) & (numbers == np.trunc(numbers))  # false for NaN
    return numbers.astype(np.int64) if is_whole.all() else numbers


def _mixed(
    source: Path, lines: list[str], separator: str, names: list[str] | None
) -> dict[str, NDArray[Any]]:
    """Columns of numbers and of text."""
    if names is None:
        names = [str(i) for i in range(len(next(csv.reader(lines[:1], delimiter=separator))))]
    rows: list[list[str]] = []
    for cells in csv.reader(lines, delimiter=separator):
        if cells and len(cells) != len(names):
            number = len(rows) + 1
            raise FileError(
                f"{source}: row {number} has {len(cells)} cells, but the first line {len(names)}."
            )
        rows += [cells] if cells else []
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    different = _different(source, names)
    pairs = zip(different, columns, strict=True)
    return {name: _column(cells, source) for name, cells in pairs}


def _column(cells: Sequence[str], path: Path) -> NDArray[Any]:
    """Numbers if every cell is one, with NaN for empty cells; else text."""
    found = cells_to_numbers(cells)
    return as_strings([cell.strip() for cell in cells], path) if found is None else found


def cells_to_numbers(cells: Sequence[str]) -> NDArray[Any] | None:
    """Numbers, with NaN for empty cells; None if a cell is something else."""
    if not all(not cell.strip() or NUMBER.fullmatch(cell) for cell in cells):
        return None
    return _whole(np.array([float(cell) if cell.strip() else np.nan for cell in cells]))


def _different(source: Path, names: list[str]) -> list[str]:
    stripped = [name.strip() for name in names]
    if len(set(stripped)) < len(stripped):
        repeated = next(name for name in stripped if stripped.count(name) > 1)
        raise FileError(f"{source}: has two columns called {repeated!r}.")
    return stripped
