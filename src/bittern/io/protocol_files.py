"""The files of protocols: those of the package by name, and what one takes over from another."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bittern.errors import InputError, UnknownNameError
from bittern.io.files import existing_file, reading
from bittern.io.toml import parse_toml
from bittern.registry import Registry

TEXTS = ("title", "reproduces", "differs", "takes")  # they change no number
EXTENDS, BASE, METHOD = "extends", "base", "method"
#: Tables that name something; if another thing is named, its options are other ones too.
NAMED = {"dataset": "name", "split": "name", "truth": "kind"}


@cache
def shipped() -> Registry[Path]:
    """The protocols that come with the package, by name: the papers' tables and figures."""
    folder = Path(str(files("bittern") / "protocols"))
    found = {path.stem: path for path in folder.glob("*.toml")}
    return Registry("protocol", {name: found[name] for name in sorted(found)})


def find_protocol(name: str) -> Path:
    """The file of a protocol given by its name or its path."""
    path, known = Path(name), shipped()
    if path.suffix == ".toml" or path.exists():
        return path
    if name not in known:
        raise UnknownNameError(f"{known.refusal(name)} Your own file must end in .toml.")
    return known[name]


def shipped_table(name: str) -> dict[str, Any]:
    """The complete table of a protocol of the package; not checked."""
    return copy.deepcopy(_shipped_table(name))


@cache
def origin_of(name: str) -> str:
    """The protocol of the package that this one extends, or that the extended one extends."""
    above = _shipped_file(name).get(EXTENDS)
    return name if above is None else origin_of(above)


def read_protocol_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table of a protocol's file, as it is written there."""
    source = existing_file(path)
    with reading(source, "TOML file"):
        return parse_toml(source.read_text(encoding="utf-8"))


def extended(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The table, with everything that it takes over from the protocol that it ``extends``.

    ``extends`` is the name of a protocol of the package, or the path of a ``.toml`` file that
    starts from ``folder``.  Tables are merged key by key, and any other value replaces the old one.
    A dataset, split or ground truth that states its name or kind replaces the old table as a whole.
    ``[method.LABEL]`` changes the method of that label; ``[[method]]`` replaces all methods.  Texts
    are not taken over.
    """
    return _extended(table, folder, ())


@cache
def _shipped_file(name: str) -> dict[str, Any]:
    return read_protocol_file(shipped()[name])


@cache
def _shipped_table(name: str) -> dict[str, Any]:
    return extended(_shipped_file(name), Path())


def _extended(table: Mapping[str, Any], folder: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    if EXTENDS not in table:
        return dict(table)
    old = _old_table(table[EXTENDS], folder, below)
    merged = {key: value for key, value in old.items() if key not in TEXTS}
    for key, value in table.items():
        if key == METHOD and isinstance(value, dict):
            merged[key] = _changed_methods(old.get(key), value)
        elif isinstance(value, dict) and NAMED.get(key) in value:
            merged[key] = value
        elif key != EXTENDS:
            merged[key] = _merged(old.get(key), value)
    return merged


def _old_table(name: Any, folder: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    """The complete table of the protocol that is extended."""
    if not isinstance(name, str):
        raise InputError(f"extends: must be the name of a protocol or a file, got {name!r}.")
    if name in shipped():
        return shipped_table(name)
    path = (folder / find_protocol(name)).resolve()
    if path in below:
        raise InputError(f"extends: {path} extends itself.")
    table = _extended(read_protocol_file(path), path.parent, (*below, path))
    if isinstance(table.get(BASE), str):
        table[BASE] = str((path.parent / table[BASE]).resolve())
    return table


def _merged(old: Any, new: Any) -> Any:
    """Tables merged key by key; any other new value replaces the old one."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return old | {key: _merged(old.get(key), value) for key, value in new.items()}


def _changed_methods(methods: Any, changes: Mapping[str, Any]) -> list[Any]:
    """The methods, with values of those that ``changes`` names by label replaced."""
    listed = methods if isinstance(methods, list) else []
    known = Registry("method", dict.fromkeys(map(_label, listed)))
    for label, change in changes.items():
        if label not in known:
            raise InputError(f"method.{label}: {known.refusal(label)}")
        if not isinstance(change, dict):
            raise InputError(f"method.{label} must be a table, got {change!r}.")
    return [_merged(one, changes.get(_label(one), one)) for one in listed]


def _label(method: Any) -> str:
    named = method if isinstance(method, dict) else {}
    return str(named.get("label", named.get("name", "")))
