"""Plain values as TOML, which Python reads but does not write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["to_toml"]


def to_toml(table: Mapping[str, Any]) -> str:
    """A TOML document: plain keys first, then tables, then lists of tables."""
    plain = {k: v for k, v in table.items() if not _is_table(v) and not _is_tables(v)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if _is_table(value):
            lines += ["", f"[{key}]", *_lines(value)]
    for key, value in table.items():
        if _is_tables(value):
            for one in value:
                lines += ["", f"[[{key}]]", *_lines(one)]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # texts, numbers and booleans are written alike


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_table, value))
