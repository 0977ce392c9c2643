"""Models as files of arrays and JSON: nothing in them is run when they are read."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError, InputError
from bittern.hashing.base import Hasher
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import stored_arrays

__all__ = ["decode_values", "encode_values", "load", "save"]

FORMAT, VERSION = "bittern hasher", 1
HEAD = "model"  # the array that holds the JSON, as octets
PLAIN = (bool, int, float, str, type(None))


def save(hasher: Hasher, path: str | os.PathLike[str]) -> None:
    """Write a fitted hasher."""
    arrays: dict[str, NDArray[Any]] = {}
    head = {"format": FORMAT, "version": VERSION, "model": _describe(hasher, "", arrays)}
    octets = np.frombuffer(json.dumps(head).encode(), np.uint8)
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **{HEAD: octets}, **arrays)


def load(path: str | os.PathLike[str]) -> Hasher:
    """Read a hasher that :meth:`Hasher.save` wrote; what is in the file is checked, never run."""
    source = existing_file(path)
    with reading(source, "model"):
        stored = stored_arrays(source)
        if HEAD not in stored:
            raise FileError(f"{source}: not a model that save() wrote.")
        head = json.loads(stored[HEAD].load().tobytes())
        arrays = {name: array.load() for name, array in stored.items() if name != HEAD}
        if head.get("format") != FORMAT:
            raise FileError(f"{source}: not a model that save() wrote.")
        if head.get("version") != VERSION:
            raise FileError(
                f"{source}: was written by another version of this package "
                f"(format {head.get('version')}, this one reads {VERSION})."
            )
        return _fitting(_build(head["model"], arrays))


def _fitting(hasher: Hasher) -> Hasher:
    """The hasher, if its arrays fit together."""
    bits = hasher._bits(hasher._blank())
    if bits.shape != (1, hasher.n_bits):
        raise ValueError(f"codes of {bits.shape[1]} bits, {hasher.n_bits} were promised")
    return hasher


def _describe(hasher: Hasher, prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A hasher as JSON; its arrays go beside, under names that begin with ``prefix``."""
    learned = {name: value for name, value in vars(hasher).items() if name.endswith("_")}
    parameters, title = hasher.get_params(deep=False), type(hasher).__name__
    return {
        "hasher": hasher.name,
        "parameters": encode_values(parameters, f"{prefix}parameter.", arrays, title),
        "learned": encode_values(learned, f"{prefix}learned.", arrays, title),
    }


def encode_values(
    values: dict[str, Any], prefix: str, arrays: dict[str, NDArray[Any]], title: str
) -> dict[str, Any]:
    """Parameters, or what was learned, as JSON; arrays go beside, under names with ``prefix``."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, Hasher):
            out[name] = {"model": _describe(value, f"{prefix}{name}.", arrays)}
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
        else:
            raise InputError(
                f"{title}: {name} of type {type(value).__name__} cannot be saved; "
                f"give a number, a string, or a hasher."
            )
    return out


def _build(model: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Hasher:
    from bittern.hashing import HASHERS

    kind = HASHERS[model["hasher"]]
    hasher = kind(**decode_values(model["parameters"], arrays))
    for name, value in decode_values(model["learned"], arrays).items():
        if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
            raise ValueError(f"{name!r} is no name of what a hasher learns")
        setattr(hasher, name, value)
    return hasher


def decode_values(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """What :func:`encode_values` was given."""
    out: dict[str, Any] = {}
    for name, entry in values.items():
        ((kind, value),) = entry.items()
        if kind == "model":
            out[name] = _build(value, arrays)
        elif kind == "array":
            out[name] = arrays[value]
        elif kind == "arrays":
            out[name] = {str(key): arrays[place] for key, place in value.items()}
        elif kind == "strings":
            out[name] = np.array([str(v) for v in value], dtype=object)
        else:
            out[name] = tuple(value) if kind == "values" else value
    return out
