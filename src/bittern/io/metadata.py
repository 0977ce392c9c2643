"""Metadata of items as columns, each of one SQL type."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_list, check_same_length
from bittern.errors import FileError, InputError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED = {"id", "position", "code"}
IN_JSON = ("VARCHAR[]", "JSON")  # types whose values travel as JSON text
LARGEST = np.iinfo(np.int64).max
DEEPEST = 100  # lists and dictionaries inside each other; parsers of JSON have their limits
MOST_KEYS = 1000  # of a collection: DuckDB takes minutes to add thousands of columns
Metadata = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one SQL type; missing ones are masked.

    BOOLEAN, BIGINT and DOUBLE are arrays of numbers, VARCHAR is strings, VARCHAR[] (lists of
    strings) and JSON (everything else) are JSON text.
    """

    kind: str
    values: np.ma.MaskedArray[Any, Any]

    def as_json(self) -> Column:
        """The same values in a column of any type."""
        if self.kind in IN_JSON:
            return Column("JSON", self.values)
        filled = [None if v is None else json.dumps(v) for v in self.values.tolist()]
        return Column("JSON", _masked_text(filled))


Columns = dict[str, Column]


def columns_of(metadata: Metadata, n: int, owner: str) -> Columns:
    """Columns of n items, from a dictionary of columns or a list of one dictionary per item."""
    if metadata is None:
        return {}
    given = metadata if isinstance(metadata, Mapping) else _columns_from_rows(metadata, n, owner)
    _check_names(given, owner)
    columns = {}
    for name, values in given.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise InputError(
                f"{owner}: metadata '{name}' must be a list of one value per item, "
                f"got {type(values).__name__}."
            )
        check_same_length(len(values), n, f"{owner}: the numbers of items and of '{name}'")
        column = _column(values, f"{owner}: metadata '{name}'")
        if column is not None:
            columns[name] = column
    return columns


def rows_of(columns: Columns, n: int) -> list[dict[str, Any]]:
    """A dictionary for each of n items, without missing values."""
    rows: list[dict[str, Any]] = [{} for _ in range(n)]
    for name, column in columns.items():
        for row, value in zip(rows, column.values.tolist(), strict=True):
            if value is not None:
                row[name] = value_of(value, column.kind)
    return rows


def value_of(stored: Any, kind: str) -> Any:
    """The original value of a stored one."""
    if kind not in IN_JSON or not isinstance(stored, str):
        return stored
    try:
        return json.loads(stored)
    except (ValueError, RecursionError) as error:  # nested too deeply, or too many digits
        raise FileError(f"metadata: a stored value cannot be read ({error}).") from None


def column_name(name: str) -> str:
    """A name that metadata may have, for a column of a file."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{plain}" if plain[:1].isdigit() or plain.lower() in RESERVED else plain


def _columns_from_rows(
    rows: Sequence[Mapping[str, Any]], n: int, owner: str
) -> dict[str, list[Any]]:
    """Columns from rows."""
    listed = check_list(rows, f"{owner}: metadata")
    check_same_length(len(listed), n, f"{owner}: the numbers of items and of metadata")
    for i, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise InputError(
                f"{owner}: metadata must be one dictionary per item, item {i} has "
                f"{type(row).__name__}."
            )
    names = dict.fromkeys(name for row in listed for name in row)
    check_number_of_keys(len(names), owner)
    return {name: [row.get(name) for row in listed] for name in names}


def check_number_of_keys(n: int, owner: str) -> None:
    """Refuse more keys of metadata than a collection may have."""
    if n > MOST_KEYS:
        raise InputError(
            f"{owner}: metadata may have {MOST_KEYS:,} different keys, these items would make it "
            f"{n:,}; put what belongs together into a list or a dictionary."
        )


def _check_names(names: Mapping[str, Any], owner: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name) or name.lower() in RESERVED:
            raise InputError(
                f"{owner}: keys of metadata must be of letters, digits and _, and not be one of "
                f"{', '.join(sorted(RESERVED))}; got {name!r}."
            )
        if seen.setdefault(name.lower(), name) != name:
            raise InputError(
                f"{owner}: keys of metadata must differ by more than case, "
                f"got '{seen[name.lower()]}' and '{name}'."
            )


def _column(values: Any, name: str) -> Column | None:
    """A column of the type that fits all values; None if all are missing."""
    if isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values) and values.ndim == 1:
        column = _from_array(values, name)
    else:
        column = None
    if column is None:
        column = _from_list([_plain(v) for v in list(values)], name)
    return None if np.ma.getmaskarray(column.values).all() else column


def _from_array(values: NDArray[Any], name: str) -> Column | None:
    """The fast path for arrays of numbers and strings; None for other arrays."""
    kind = values.dtype.kind
    if kind == "U":
        return Column("VARCHAR", _masked_text(_encodable(values.tolist(), name)))
    if kind == "u" and values.max(initial=0) > LARGEST:
        raise InputError(f"{name} must be at most {LARGEST}, got {values.max()}.")
    if kind == "f":
        reals = values.astype(np.float64)
        return Column("DOUBLE", np.ma.masked_array(reals, np.isnan(reals)))
    if kind in "iub":
        target: Any = np.bool_ if kind == "b" else np.int64
        whole = np.ma.masked_array(values.astype(target), np.zeros(len(values), np.bool_))
        return Column("BOOLEAN" if kind == "b" else "BIGINT", whole)
    return None


def _from_list(values: list[Any], name: str) -> Column:
    kinds = {type(v) for v in values if v is not None}
    if kinds == {bool}:
        return Column("BOOLEAN", _masked(values, np.bool_))
    if kinds == {int} and all(abs(v) <= LARGEST for v in values if v is not None):
        return Column("BIGINT", _masked(values, np.int64))
    if kinds and kinds <= {int, float}:
        return Column("DOUBLE", _reals(values, name))
    if kinds == {str}:
        return Column("VARCHAR", _masked_text(_encodable(values, name)))
    is_words = kinds <= {list} and all(type(w) is str for v in values for w in v or ())
    return Column("VARCHAR[]" if is_words else "JSON", _masked_text(_as_json(values, name)))


def _plain(value: Any) -> Any:
    """NumPy values, tuples and paths as plain Python values; NaN as None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    if hasattr(value, "__fspath__"):
        value = str(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _masked(values: list[Any], dtype: Any) -> np.ma.MaskedArray[Any, Any]:
    filled = np.array([0 if v is None else v for v in values], dtype)
    return np.ma.masked_array(filled, [v is None for v in values])


def _reals(values: list[Any], name: str) -> np.ma.MaskedArray[Any, Any]:
    try:
        return _masked(values, np.float64)
    except OverflowError:
        raise InputError(f"{name} must be at most {sys.float_info.max:g}.") from None


def _masked_text(values: list[str | None]) -> np.ma.MaskedArray[Any, Any]:
    filled = np.empty(len(values), object)
    filled[:] = ["" if v is None else v for v in values]
    return np.ma.masked_array(filled, [v is None for v in values])


def _as_json(values: list[Any], name: str) -> list[str | None]:
    try:
        text = [
            v if v is None else json.dumps(v, allow_nan=False, ensure_ascii=False) for v in values
        ]
    except RecursionError:
        raise _too_deep(name) from None
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} must be numbers, strings, booleans, or lists or dictionaries of them "
            f"({error})."
        ) from None
    if any(_depth(value) > DEEPEST for value in values):
        raise _too_deep(name)
    return _encodable(text, name)


def _depth(value: Any) -> int:
    """How many lists and dictionaries are inside each other, at the deepest place."""
    depth, holders = 0, [value]
    while holders := [one for one in holders if isinstance(one, dict | list | tuple)]:
        depth += 1
        inner = (one.values() if isinstance(one, dict) else one for one in holders)
        holders = [value for values in inner for value in values]
    return depth


def _too_deep(name: str) -> InputError:
    return InputError(f"{name} must be nested at most {DEEPEST} deep.")


def _encodable(values: list[Any], name: str) -> list[str | None]:
    for i, value in enumerate(values):
        try:
            if value is not None:
                value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} must be text, but item {i} has {value!r}.") from None
    return values
