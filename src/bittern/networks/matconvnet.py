"""Read the networks that MatConvNet publishes: MATLAB 5 files with layers and a mean image."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array
from bittern.errors import FileError
from bittern.io import matlab
from bittern.io.files import existing_file, reading

CELL, STRUCT, CHAR = 1, 2, 4
TEXTS = {4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}  # others are Latin-1
WANTED = ("layers", "meta", "net", "normalization")
OLD_NAMES = {"normalize": "lrn"}

NONE: Float32Array = np.zeros(0, np.float32)


@dataclass(frozen=True, eq=False)
class MatConvNetLayer:
    """One layer with its parameters; its kind is MatConvNet's name for it."""

    name: str
    kind: str  # conv, relu, lrn, pool, softmax
    numbers: dict[str, tuple[float, ...]]  # stride, pad, pool, param
    filters: Float32Array  # (height, width, n_in / groups, n_out); empty without weights
    biases: Float32Array  # (n_out,)


@dataclass(frozen=True, eq=False)
class MatConvNetModel:
    """The layers in order, without dropout, and the average training image."""

    layers: tuple[MatConvNetLayer, ...]
    average: Float32Array | None  # (height, width, 3), or (1, 1, 3) for one colour


def read_matconvnet(path: str | os.PathLike[str]) -> MatConvNetModel:
    """The network in a file like imagenet-vgg-f.mat.

    The file is checked, and none of it is run.  Both layouts are read: the weights of a layer in
    one cell ``weights``, or as ``filters`` and ``biases``; the average image in ``normalization``
    or in ``meta.normalization``.  All of it may be inside a variable ``net``.
    """
    source = existing_file(path)
    if matlab.matlab_version(source) != 5:
        raise FileError(f"{source}: is not a MATLAB 5 file, as MatConvNet's networks are.")
    with reading(source, "MatConvNet network"):
        content = _variables(source)
        content = _dict(content.get("net")) or content
        layers = content.get("layers")
        if not isinstance(layers, list) or not all(isinstance(one, dict) for one in layers):
            raise FileError(f"{source}: has no list 'layers', as MatConvNet's networks do.")
        found = tuple(_layer(source, one) for one in layers)
        return MatConvNetModel(
            tuple(layer for layer in found if layer.kind != "dropout"), _average(source, content)
        )


def _layer(source: Path, content: dict[str, Any]) -> MatConvNetLayer:
    name, kind = (str(content.get(key, "")) for key in ("name", "type"))
    numbers = {
        key: tuple(float(v) for v in np.ravel(value))
        for key in ("stride", "pad", "pool", "param")
        if isinstance(value := content.get(key), np.ndarray)
    }
    weights = content.get("weights", [content.get("filters"), content.get("biases")])
    if kind != "conv":
        return MatConvNetLayer(name, OLD_NAMES.get(kind, kind), numbers, NONE, NONE)
    if not isinstance(weights, list) or len(weights) != 2:
        raise FileError(f"{source}: '{name}' must have filters and biases.")
    filters, biases = (_floats(source, name, value) for value in weights)
    filters = filters.reshape(filters.shape + (1,) * (4 - filters.ndim))  # MATLAB drops ones
    return MatConvNetLayer(name, kind, numbers, filters, np.ravel(biases))


def _average(source: Path, content: dict[str, Any]) -> Float32Array | None:
    about = _dict(_dict(content.get("meta")).get("normalization"))
    about = about or _dict(content.get("normalization"))
    value = about.get("averageImage")
    if value is None or np.size(value) < 3:
        return None
    average = _floats(source, "averageImage", value)
    if average.size == 3:
        average = average.reshape(1, 1, 3)
    if average.ndim != 3 or average.shape[2] != 3:
        raise FileError(f"{source}: averageImage must have three colours, got {average.shape}.")
    return average


def _floats(source: Path, name: str, value: Any) -> Float32Array:
    if not isinstance(value, np.ndarray) or not np.isfinite(value).all():
        raise FileError(f"{source}: the values of '{name}' must be finite numbers.")
    return value.astype(np.float32)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _variables(source: Path) -> dict[str, Any]:
    """The wanted variables; cells become lists and structures become dictionaries."""
    content = memoryview(np.memmap(source, np.uint8, "r"))  # type: ignore[arg-type]
    order = "<" if bytes(content[126:128]) == b"IM" else ">"
    found = matlab.variables_in(source, content, order, WANTED)
    return {name: _value(matrix, order) for name, matrix in found}


def _value(matrix: memoryview, order: str) -> Any:
    """The content of a matrix; None for kinds that no network uses, such as objects."""
    if not len(matrix):
        return np.zeros((0, 0))
    flags = matlab.element_at(matrix, 0, order)
    dims = matlab.element_at(matrix, flags.end, order)
    position = matlab.element_at(matrix, dims.end, order).end  # after the name
    flag = int(np.frombuffer(flags.content, f"{order}u4")[0])
    shape = np.frombuffer(dims.content, f"{order}i4").tolist()
    if min(shape) < 0:
        raise ValueError(f"a shape of {shape}")
    kind = flag & 0xFF
    if kind == CELL:
        return _values(matrix, position, order, math.prod(shape))
    if kind == STRUCT and math.prod(shape) == 1:
        return _structure(matrix, position, order)
    if kind == CHAR:
        return _text(matlab.element_at(matrix, position, order), order)
    if kind in matlab.CLASSES and not flag & matlab.COMPLEX:
        return _numbers(matlab.element_at(matrix, position, order), shape, kind, order)
    return None


def _values(matrix: memoryview, position: int, order: str, count: int) -> list[Any]:
    """``count`` matrices, one after the other."""
    values = []
    for _ in range(count):
        element = matlab.element_at(matrix, position, order)
        if element.kind != matlab.MATRIX:
            raise ValueError(f"an element of type {element.kind} where a matrix should be")
        values.append(_value(element.content, order))
        position = element.end
    return values


def _structure(matrix: memoryview, position: int, order: str) -> dict[str, Any]:
    """The fields of a structure, stored as name length, names of that length, and values."""
    longest = matlab.element_at(matrix, position, order)
    names = matlab.element_at(matrix, longest.end, order)
    length = int(np.frombuffer(longest.content, f"{order}i4")[0])
    if length < 1:
        raise ValueError(f"names of {length} letters")
    text = bytes(names.content)
    fields = [text[i : i + length].split(b"\0")[0] for i in range(0, len(text), length)]
    values = _values(matrix, names.end, order, len(fields))
    return {field.decode("latin1"): value for field, value in zip(fields, values, strict=True)}


def _text(element: Any, order: str) -> str:
    encoding = TEXTS.get(element.kind, "latin1")
    if encoding in ("utf-16", "utf-32"):
        encoding += "-le" if order == "<" else "-be"
    return bytes(element.content).decode(encoding)


def _numbers(element: Any, shape: list[int], kind: int, order: str) -> NDArray[Any]:
    if element.kind not in matlab.STORED:
        raise ValueError(f"numbers stored as type {element.kind}")
    stored = np.dtype(order + matlab.STORED[element.kind])
    if math.prod(shape) * stored.itemsize != len(element.content):
        raise ValueError(f"an array of shape {shape} in {len(element.content)} bytes")
    numbers = np.frombuffer(element.content, stored).reshape(shape, order="F")
    return numbers.astype(matlab.CLASSES[kind], copy=False)
