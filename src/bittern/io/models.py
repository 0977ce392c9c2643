"""Fitted estimators as files of arrays and JSON; reading one never runs code from the file.

An estimator is stored as its name in a table of classes, its parameters, and its learned
attributes, whose names end in ``_``.  Arrays go beside the JSON, in one ``.npz`` file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError, InputError, UnknownNameError
from bittern.io.files import check_version, existing_file, reading
from bittern.io.npz import load_arrays, stored_arrays, write_arrays
from bittern.registry import Registry

PLAIN = (bool, int, float, str, type(None))
KINDS = "biufSU"  # of arrays: numbers and text
WIDTHS = ("n_features_in_", "image_dim_", "text_dim_")  # learned numbers that decide about memory
WIDEST = 1 << 24
MOST_BITS = 1 << 20  # of a code or a layer; methods have narrower bounds of their own
DEEPEST = 16  # models inside models


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """How estimators of one kind are stored.

    ``kind`` ("hasher") is the key of an estimator's name in the JSON, and the word that errors use.
    With a ``title`` and a ``version``, the estimator is wrapped in a JSON object that states them.
    """

    kind: str
    tables: tuple[Mapping[str, type[Any]], ...]  # of the classes that a file may name
    head: str  # the array that holds the JSON, as bytes
    title: str | None = None
    version: int = 1

    def save(self, model: Any, path: str | os.PathLike[str]) -> None:
        """Write a fitted estimator."""
        write_arrays(path, self._arrays(model))

    def load(self, path: str | os.PathLike[str]) -> Any:
        """Read what :meth:`save` wrote; the file is checked, and none of it is run."""
        source = existing_file(path)
        with reading(source, self._noun):
            if self.head not in stored_arrays(source):
                raise FileError(f"{source}: is not a saved {self._noun}.")
            arrays = load_arrays(source)
            head = json.loads(arrays.pop(self.head).tobytes())
            if not isinstance(head, dict):
                raise FileError(f"{source}: is not a saved {self._noun}.")
            if odd := [name for name, array in arrays.items() if array.dtype.kind not in KINDS]:
                raise ValueError(f"the array {odd[0]!r} holds neither numbers nor text")
            return self._decoded(self._unwrapped(head, source), arrays)

    @property
    def _noun(self) -> str:
        return self.kind if self.title is None else "model"

    def _arrays(self, model: Any) -> dict[str, NDArray[Any]]:
        """All arrays of the file."""
        arrays: dict[str, NDArray[Any]] = {}
        head = self._encoded(model, "", arrays)
        if self.title is not None:
            head = {"format": self.title, "version": self.version, "model": head}
        return {self.head: np.frombuffer(json.dumps(head).encode(), np.uint8)} | arrays

    def _unwrapped(self, head: dict[str, Any], source: Path) -> dict[str, Any]:
        if self.title is None:
            return head
        if head.get("format") != self.title:
            raise FileError(f"{source}: is not a saved {self._noun}.")
        check_version(source, head.get("version"), self.version)
        return head["model"]

    def _encoded(self, model: Any, prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """An estimator as JSON; its arrays go beside, under names that begin with ``prefix``."""
        parameters, learned = model.get_params(deep=False), learned_attributes(model)
        owner = type(model).__name__
        return {
            self.kind: self._name_of(model),
            "parameters": self._encode_values(parameters, f"{prefix}parameter.", arrays, owner),
            "learned": self._encode_values(learned, f"{prefix}learned.", arrays, owner),
        }

    def _encode_values(
        self, values: Mapping[str, Any], prefix: str, arrays: dict[str, NDArray[Any]], owner: str
    ) -> dict[str, Any]:
        """Parameters or learned attributes as JSON."""
        out: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, np.generic):
                value = value.item()
            if isinstance(value, os.PathLike):
                value = os.fspath(value)
            if self._is_model(value):
                out[name] = {"model": self._encoded(value, f"{prefix}{name}.", arrays)}
            elif isinstance(value, np.ndarray) and value.dtype == object:  # names of columns
                out[name] = {"strings": [str(v) for v in value]}
            elif isinstance(value, np.ndarray):
                arrays[f"{prefix}{name}"] = value
                out[name] = {"array": f"{prefix}{name}"}
            elif isinstance(value, dict) and all(isinstance(v, np.ndarray) for v in value.values()):
                names = {key: f"{prefix}{name}.{key}" for key in value}
                arrays.update({names[key]: array for key, array in value.items()})
                out[name] = {"arrays": names}
            elif isinstance(value, PLAIN):
                out[name] = {"value": value}
            elif isinstance(value, list | tuple) and all(isinstance(v, PLAIN) for v in value):
                out[name] = {"values": list(value)}
            elif isinstance(value, set | frozenset) and all(isinstance(v, str) for v in value):
                out[name] = {"values": sorted(value)}
            else:
                raise InputError(
                    f"{owner}: {name} of type {type(value).__name__} cannot be saved; "
                    f"give a number, a string, or a {self.kind}."
                )
        return out

    def _is_model(self, value: Any) -> bool:
        name = getattr(value, "name", None)
        known = isinstance(name, str) and self._class_of(name) is not None
        return known and hasattr(value, "get_params")

    def _class_of(self, name: Any) -> type[Any] | None:
        """The class of a name; None if there is no such name."""
        return next((table[name] for table in self.tables if name in table), None)

    def _name_of(self, model: Any) -> str:
        """The name of a model's class, by which it can be loaded again."""
        owner, name = type(model), getattr(model, "name", None)
        if not isinstance(name, str):
            raise InputError(
                f"{owner.__name__}: cannot be saved without a name; register the class under one."
            )
        if self._class_of(name) not in (None, owner):
            raise InputError(
                f"{owner.__name__}: cannot be saved as {name!r}, which is the name of another "
                "class; give the class a name of its own, and register it."
            )
        return name

    def _decoded(
        self, model: dict[str, Any], arrays: dict[str, NDArray[Any]], depth: int = 0
    ) -> Any:
        name = model[self.kind]
        kind = self._class_of(name) if isinstance(name, str) else None
        if kind is None:
            raise UnknownNameError(self._refusal(name))
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} models inside each other")
        made = kind(**_bounded(self._decode_values(model["parameters"], arrays, depth)))
        for name, value in _bounded(self._decode_values(model["learned"], arrays, depth)).items():
            if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name!r} is not a learned attribute of a {self.kind}")
            setattr(made, name, value)
        return made

    def _refusal(self, name: object) -> str:
        known = Registry(self.kind, {one: None for table in self.tables for one in table})
        return f"{known.refusal(name)} If it is of a plug-in, install or register that first."

    def _decode_values(
        self, values: Mapping[str, Any], arrays: dict[str, NDArray[Any]], depth: int
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, entry in values.items():
            ((kind, value),) = entry.items()
            if kind == "model":
                out[name] = self._decoded(value, arrays, depth + 1)
            elif kind == "array":
                out[name] = arrays[value]
            elif kind == "arrays":
                out[name] = {str(key): arrays[place] for key, place in value.items()}
            elif kind == "strings":
                out[name] = np.array([str(v) for v in value], dtype=object)
            else:
                out[name] = tuple(value) if kind == "values" else value
        return out


def _bounded(values: dict[str, Any]) -> dict[str, Any]:
    """The values, if none of those that decide about memory and time is absurd."""
    for name, value in values.items():
        most = MOST_BITS if name == "n_bits" else WIDEST if name in WIDTHS else None
        if most is not None and not (type(value) is int and 0 < value <= most):
            raise ValueError(f"{name} must be a whole number from 1 to {most:,}, got {value!r}")
    return values


def learned_attributes(estimator: Any) -> dict[str, Any]:
    """The learned attributes of an estimator, which end in ``_``."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }
