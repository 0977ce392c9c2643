"""What a record must look like, checked once when it is read; later code need not doubt it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Check = Callable[[Any, str], None]  # a value, and where it stands; raises ValueError
GRIDS = ("precision", "recall", "f1")  # of hash tables, K by L
MOST = 1 << 53  # whole numbers that survive the trip through a double


def check_plain(plain: Any) -> None:
    """Raise ValueError unless a record, as JSON has it, has fields of the right kind and length."""
    _fields(plain, "the record", RECORD)
    n = len(plain["query_positions"])
    labels = plain["query_labels"]
    if labels is not None and len(labels) != n:
        raise ValueError(f"query_labels must be one for each of {n} queries, got {len(labels)}")
    tasks = plain.get("tasks", {})
    for name, found in {"": plain, **tasks}.items():
        where = f"task {name!r}: " if name else ""
        _fields(found, where or "the record", RESULT)
        _check_result(found, n, where)


def _check_result(found: Mapping[str, Any], n: int, where: str) -> None:
    """Lengths that must agree within the results of a task."""
    for name, value in found["values"].items():
        per_query = value["per_query"]
        if per_query is not None and len(per_query) != n:
            raise ValueError(f"{where}{name} must have a value for each of {n} queries")
    for name, curve in found["curves"].items():
        lengths = {len(side) for side in curve.values() if side is not None}
        if len(lengths) != 1:
            raise ValueError(f"{where}the sides of the curve {name} differ in length")
    if len(found["n_relevant"]) not in (0, n):
        raise ValueError(f"{where}n_relevant must be one for each of {n} queries")
    for example in found["examples"]:
        if len({len(example[side]) for side in ("items", "distances", "relevant")}) != 1:
            raise ValueError(f"{where}an example must say of each item how far and how relevant")


def _fields(found: Any, where: str, wanted: Mapping[str, Check]) -> None:
    _table(found, where)
    for name, check in wanted.items():
        if name not in found and name not in OPTIONAL:
            raise ValueError(f"{where} lacks {name!r}")
        if name in found:
            check(found[name], name)


def _refuse(value: Any, where: str, wanted: str) -> None:
    raise ValueError(f"{where} must be {wanted}, got {repr(value)[:40]}")


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        _refuse(value, where, "text")


def _whole(value: Any, where: str) -> None:
    if type(value) is not int or not -MOST <= value <= MOST:
        _refuse(value, where, "a whole number")


def _count(value: Any, where: str) -> None:
    _whole(value, where)
    if value < 0:
        _refuse(value, where, "0 or more")


def _number(value: Any, where: str) -> None:
    """A finite number; null stands for NaN."""
    is_number = value is None or type(value) in (int, float)
    if not is_number or (value is not None and not abs(value) <= np.finfo(np.float64).max):
        _refuse(value, where, "a number")


def _label(value: Any, where: str) -> None:
    if not isinstance(value, str):
        _whole(value, where)


def _truth(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        _refuse(value, where, "true or false")


def _table(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        _refuse(value, where, "a table")


def _list(of: Check) -> Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, list):
            _refuse(value, where, "a list")
        for one in value:
            of(one, where)

    return check


def _by_name(of: Check) -> Check:
    def check(value: Any, where: str) -> None:
        _table(value, where)
        for name, one in value.items():
            of(one, f"{where}.{name}")

    return check


def _maybe(of: Check) -> Check:
    return lambda value, where: None if value is None else of(value, where)


def _with(fields: Mapping[str, Check]) -> Check:
    return lambda value, where: _fields(value, where, fields)


def _pair(value: Any, where: str) -> None:
    _list(_number)(value, where)
    if len(value) != 2:
        _refuse(value, where, "two numbers")


def _surface(value: Any, where: str) -> None:
    """Grids of K by L numbers."""
    _fields(value, where, SURFACE)
    shape = len(value["bits_per_table"]), len(value["n_tables"])
    for name in GRIDS:
        if np.shape(value[name]) != shape:
            raise ValueError(f"{where}.{name} must be {shape[0]} by {shape[1]} numbers")


def _any(value: Any, where: str) -> None:
    """Anything; the paradigm decides."""


_numbers, _counts = _list(_number), _list(_count)
OPTIONAL = {"training_curves", "tasks", "sizes", "leaks", "leak_check", "overlaps", "notes", "data"}
OPTIONAL |= {"class_names", "name", "balanced_by", "source"}
SURFACE: dict[str, Check] = {"bits_per_table": _counts, "n_tables": _counts}
SURFACE |= dict.fromkeys(GRIDS, _list(_list(_number)))
VALUE: dict[str, Check] = {
    "mean": _number,
    "undefined": _count,
    "spread": _maybe(_pair),
    "per_query": _maybe(_numbers),
}
CURVE: dict[str, Check] = {"recall": _numbers, "precision": _numbers, "radius": _maybe(_numbers)}
EXAMPLE: dict[str, Check] = {
    "query": _count,
    "items": _counts,
    "distances": _numbers,
    "relevant": _list(_truth),
}
SPLIT: dict[str, Check] = {
    "name": _text,
    "sizes": _by_name(_count),
    "leaks": _maybe(_count),
    "leak_check": _text,
    "overlaps": _text,
    "balanced_by": _text,
    "notes": _list(_text),
    "class_names": _list(_text),
    "data": _text,
    "source": _maybe(_by_name(_text)),
}
RESULT: dict[str, Check] = {
    "values": _by_name(_with(VALUE)),
    "profile": _maybe(_table),
    "curves": _by_name(_with(CURVE)),
    "n_relevant": _counts,
    "examples": _list(_with(EXAMPLE)),
}
RECORD: dict[str, Check] = {
    "method": _text,
    "n_bits": _maybe(_count),
    "run": _count,
    "fingerprint": _text,
    "parameters": _table,
    "surface": _maybe(_surface),
    "query_positions": _counts,
    "query_labels": _maybe(_list(_label)),
    "tuning": _list(_with({"parameters": _table, "score": _number})),
    "training_curves": _by_name(_numbers),
    "tasks": _by_name(_table),
    "seconds": _by_name(_number),
    "peak_memory": _count,
    "split": _with(SPLIT),
    "versions": _by_name(_text),
    "protocol": _table,
}
