"""Changes to the table of a protocol, written as on the command line: ``dataset.name=nuswide``."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from bittern.errors import InputError
from bittern.io.toml import parse_change
from bittern.registry import Registry


def apply_changes(table: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """A copy of a protocol's table with some values replaced or added.

    A change is ``KEY=VALUE``.  Dots lead into tables (``split.sizes.queries=100``), and
    ``method.LABEL`` into the method of that label.  The value is TOML; text needs no quotes.  The
    changes are added to ``differs``, so that reports show them.
    """
    changed = copy.deepcopy(dict(table))
    for change in changes:
        key, value = parse_change(change, "runs=1 or dataset.name=nuswide")
        _put(changed, key, value)
    if changes and isinstance(changed.get("differs", ""), str):
        differs = f"{changed.get('differs', '')} Changed by --set: {', '.join(changes)}."
        changed["differs"] = differs.strip()
    return changed


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    inner, rest, where = table, key, ""
    if key.startswith("method."):
        inner, rest, where = _method(table, key)
    *outer, last = rest.split(".")
    if not all((*outer, last)):
        raise InputError(f"--set {key}: a part of the key is empty.")
    for part in outer:
        where += part
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {key}: {where} is not a table, it is {inner!r}.")
        where += "."
    inner[last] = value


def _method(table: dict[str, Any], key: str) -> tuple[dict[str, Any], str, str]:
    """The method that a key names, the rest of the key, and what comes before the rest."""
    listed = table.get("method", [])
    methods = {
        str(one.get("label", one.get("name"))): one
        for one in (listed if isinstance(listed, list) else [listed])
        if isinstance(one, dict)
    }
    for label in sorted(methods, key=len, reverse=True):  # a label may contain dots
        start = f"method.{label}."
        if key.startswith(start):
            return methods[label], key.removeprefix(start), start
    named = key.split(".")[1]
    if named in methods:
        raise InputError(f"--set {key}: name a value of the method, such as {key}.name.")
    raise InputError(f"--set {key}: {Registry('method', methods).refusal(named)}")
