"""Plain values as TOML, which Python reads but does not write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["to_toml"]


def to_toml(table: Mapping[str, Any]) -> str:
    """A TOML document: plain keys first, then tables, then lists of tables."""
    plain = {k: v for k, v in table.items() if not _is_table(v) and not _is_tables(v)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if _is_table(value):
            lines += ["", f"[{_key(key)}]", *_lines(value)]
    for key, value in table.items():
        if _is_tables(value):
            for one in value:
                lines += ["", f"[[{_key(key)}]]", *_lines(one)]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    is_bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if is_bare else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    # Texts, numbers and booleans are written as in JSON, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_table, value))
