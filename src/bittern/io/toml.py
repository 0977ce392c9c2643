"""Read TOML tables into frozen records, where wrong keys are errors; write plain values."""

from __future__ import annotations

import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import tomli_w

from bittern.errors import InputError
from bittern.registry import Registry

T = TypeVar("T")
MOST_DOTS = 2_000  # in a line; tomllib takes memory by the square of the parts of a dotted key
SPECIAL = ("[", "{", '"', "'")  # a value that begins so is meant as TOML
# How errors name types.
NAMES: dict[Any, str] = {
    str: "a string in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    tuple: "a list",
}


def read_table(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    """A record of ``kind`` from a table of its fields; errors begin with ``where``.

    Unknown, missing and mistyped keys are errors.
    """
    known: dict[str, Field[Any]] = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    check_keys(table, known, where)
    for name, one in known.items():
        if name not in table and one.default is MISSING and one.default_factory is MISSING:
            raise InputError(f"{where}: {name} is missing; the keys are {', '.join(known)}.")
    hints = get_type_hints(kind)
    return kind(
        **{key: _value(value, hints[key], f"{where}: {key}") for key, value in table.items()}
    )


def parse_toml(text: str) -> dict[str, Any]:
    """The table that a text in TOML holds; a ValueError says what is wrong with it."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number} has more than {MOST_DOTS:,} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def to_toml(table: Mapping[str, Any]) -> str:
    """Plain values as a TOML document."""
    return tomli_w.dumps(table)


def parse_change(change: str, example: str) -> tuple[str, Any]:
    """Key and value of ``KEY=VALUE``, an option ``--set``; the value is TOML, or else a string."""
    key, equals, text = (part.strip() for part in change.partition("="))
    if not equals or not key:
        raise InputError(f"--set takes KEY=VALUE, such as {example}; got {change!r}.")
    try:
        found = parse_toml(f"value = {text}")
    except ValueError as error:
        if not text or text.startswith(SPECIAL):
            raise InputError(f"--set {change}: the value is not TOML ({error}).") from None
        return key, text
    return key, found["value"] if len(found) == 1 else text


def check_keys(table: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
    """Raise an error for an unknown key that suggests the nearest known one."""
    for key in table:
        if key not in known:
            raise InputError(f"{where}: {Registry('key', known).refusal(key)}")


def _value(value: Any, kind: Any, where: str) -> Any:
    """The value in the field's type: lists become tuples, and ints floats where needed."""
    wanted = [part for part in _alternatives(kind) if part is not type(None)]
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise InputError(f"{where} must be a number of at most 64 bits.")
    for one in wanted:
        origin = get_origin(one) or one
        if origin is tuple and isinstance(value, (list, tuple)):
            inner = get_args(one)[0]
            return tuple(_value(item, inner, f"{where}[{i}]") for i, item in enumerate(value))
        if origin in (dict, Mapping) and isinstance(value, dict):
            return value
        if one is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if one is Any or (isinstance(origin, type) and type(value) is origin):
            return value
    said = " or ".join(NAMES.get(get_origin(one) or one, "a table") for one in wanted)
    raise InputError(f"{where} must be {said}, got {value!r}.")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) in (Union, types.UnionType):
        return get_args(kind)
    return (kind,)
