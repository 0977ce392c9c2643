"""Matrices of real numbers from MATLAB files, with every length checked.

Version 7.3 is HDF5.  Version 5 (``save -v6``, ``-v7``) is read here, because SciPy's reader trusts
the type codes of a file, and a damaged file can crash the process.  Such a file is a header of 128
bytes, then elements: type and length, each 4 bytes, then the content; a matrix is an element of
elements: flags, dimensions, name, real part.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file, reading, refuse_excess
from bittern.io.hdf5 import stored_datasets
from bittern.io.kinds import MATLAB_VERSIONS
from bittern.io.npz import require_names

HEADER = 128  # bytes: text, version, byte order
INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
CLASSES = {
    6: "f8",
    7: "f4",
    8: "i1",
    9: "u1",
    10: "i2",
    11: "u2",
    12: "i4",
    13: "u4",
    14: "i8",
    15: "u8",
}
COMPLEX = 0x0800
PREFIX = 512  # bytes of a compressed variable unpacked to see its name


class Element(NamedTuple):
    """A typed part of a file."""

    kind: int
    content: memoryview
    end: int  # where the next one starts


def matlab_version(path: Path) -> int | None:
    """The version in the file's header: 5, or 7 for 7.3 (HDF5); None for any other file."""
    with existing_file(path).open("rb") as file:
        head = file.read(HEADER)
    return MATLAB_VERSIONS.get(head[-4:]) if len(head) == HEADER else None


def read_mat(path: Path, needed: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The numeric matrices of these names in a MATLAB file, version 5 or 7.3."""
    source = existing_file(path)
    is_73 = matlab_version(source) == 7
    found = _matlab_73(source, needed) if is_73 else read_matrices(source, needed)
    require_names(source, needed, found)
    for name in needed:
        kind, shape = found[name].dtype, found[name].shape
        if kind.kind not in "fiub" or len(shape) != 2:
            raise FileError(f"{source}: {name} must be a matrix of numbers, got {kind} {shape}.")
    return {name: found[name] for name in needed}


def read_matrices(path: Path, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """The wanted variables that the file has; others are skipped unread."""
    content, order = _content(path)
    found: dict[str, NDArray[Any]] = {}
    with reading(path, "MATLAB 5 file"):
        for name, matrix in variables_in(path, content, order, wanted):
            if name in found:
                raise FileError(f"{path}: has the variable '{name}' twice.")
            found[name] = _numbers(path, name, matrix, order)
    return found


def stored_matrices(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of each matrix of real numbers; the numbers themselves are not read."""
    if matlab_version(path) == 7:
        found = stored_datasets(path)
        return {name: (found[name].shape[::-1], found[name].dtype) for name in found}
    content, order = _content(path)
    with reading(path, "MATLAB 5 file"):
        heads = [_head(matrix, order) for _, matrix in variables_in(path, content, order, None)]
    return {name: about for name, about in heads if about is not None}


def variables_in(
    path: Path, content: memoryview, order: str, wanted: Collection[str] | None
) -> Iterator[tuple[str, memoryview]]:
    """Name and content of each wanted matrix; None gives all of them, perhaps cut short."""
    position = HEADER
    while position < len(content):
        element = element_at(content, position, order)
        matrix = element.content
        position = element.end
        if element.kind == COMPRESSED:
            position = min(position, _unpadded_end(element))
            prefix = _unpacked(path, matrix, order, PREFIX)
            if wanted is not None and _name(prefix, order) not in wanted:
                continue
            matrix = prefix if wanted is None else _unpacked(path, matrix, order)
        elif element.kind != MATRIX:
            raise ValueError(f"an element of type {element.kind} where a variable should be")
        name = _name(matrix, order)
        if name if wanted is None else name in wanted:
            yield name, matrix


def element_at(content: memoryview, position: int, order: str) -> Element:
    """The element that starts at a position; short ones have their content inside the tag."""
    tag = np.frombuffer(content[position : position + 8], f"{order}u4")
    first, length = int(tag[0]), int(tag[1])
    start = position + 8
    if first >> 16:
        first, length, start = first & 0xFFFF, first >> 16, position + 4
        end = position + 8
        if length > 4:
            raise ValueError("a short element of more than 4 bytes")
    else:
        end = start + length + -length % 8
    if start + length > len(content):
        raise ValueError("it is truncated")
    return Element(first, content[start : start + length], end)


def _matlab_73(source: Path, needed: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Transpose a matrix, because HDF5 stores MATLAB's columns as rows."""
    stored = stored_datasets(source)
    return {name: stored[name].read().T for name in needed if name in stored}


def _content(path: Path) -> tuple[memoryview, str]:
    """The bytes of a MATLAB 5 file, and their order."""
    if matlab_version(path) != 5:
        raise FileError(f"{path}: is not a MATLAB 5 file.")
    content = memoryview(np.memmap(path, np.uint8, "r"))  # type: ignore[arg-type]
    return content, "<" if bytes(content[126:128]) == b"IM" else ">"


def _unpadded_end(element: Element) -> int:
    """Compressed variables follow each other without padding."""
    return element.end - -len(element.content) % 8


def _unpacked(path: Path, packed: memoryview, order: str, most: int | None = None) -> memoryview:
    """The matrix inside a compressed variable, or its first bytes."""
    machine = zlib.decompressobj()
    head = machine.decompress(packed, 8)
    kind, length = np.frombuffer(head, f"{order}u4").tolist()
    if kind != MATRIX:
        raise ValueError(f"a compressed element of type {kind}")
    if most is not None:
        return memoryview(machine.decompress(machine.unconsumed_tail, most))
    refuse_excess(path, length, len(packed), "a compressed variable")
    content = machine.decompress(machine.unconsumed_tail, length + 1)
    if len(content) != length:
        raise ValueError("a compressed variable does not have the length it claims")
    machine.decompress(machine.unconsumed_tail, 1)  # to the end, where the checksum is
    if not machine.eof:
        raise ValueError("a compressed variable has no end")
    return memoryview(content)


def _name(matrix: memoryview, order: str) -> str:
    """The name of a variable; '' if it has none."""
    flags = element_at(matrix, 0, order)
    dims = element_at(matrix, flags.end, order)
    if (flags.kind, len(flags.content)) != (UINT32, 8) or dims.kind != INT32:
        return ""  # MATLAB's objects have neither
    name = element_at(matrix, dims.end, order)
    return bytes(name.content).decode("latin1") if name.kind == INT8 else ""


def _head(
    matrix: memoryview, order: str
) -> tuple[str, tuple[tuple[int, ...], np.dtype[Any]] | None]:
    """Name, shape and type of a matrix; None if it is not one of real numbers."""
    flags = element_at(matrix, 0, order)
    dims = element_at(matrix, flags.end, order)
    flag = int(np.frombuffer(flags.content, f"{order}u4")[0])
    shape = tuple(np.frombuffer(dims.content, f"{order}i4").tolist())
    if flag & 0xFF not in CLASSES or flag & COMPLEX or len(shape) != 2:
        return _name(matrix, order), None
    return _name(matrix, order), (shape, np.dtype(CLASSES[flag & 0xFF]))


def _numbers(path: Path, name: str, matrix: memoryview, order: str) -> NDArray[Any]:
    flags = element_at(matrix, 0, order)
    dims = element_at(matrix, flags.end, order)
    real = element_at(matrix, element_at(matrix, dims.end, order).end, order)
    flag = int(np.frombuffer(flags.content, f"{order}u4")[0])
    shape = np.frombuffer(dims.content, f"{order}i4").tolist()
    if flag & 0xFF not in CLASSES or flag & COMPLEX or len(shape) != 2:
        raise FileError(f"{path}: '{name}' must be a matrix of real numbers.")
    if real.kind not in STORED or min(shape) < 0:
        raise ValueError(f"'{name}' is not stored as numbers")
    stored = np.dtype(order + STORED[real.kind])
    if math.prod(shape) * stored.itemsize != len(real.content):
        raise ValueError(f"'{name}' of shape {shape} cannot have {len(real.content)} bytes")
    numbers = np.frombuffer(real.content, stored).reshape(shape, order="F")
    return numbers.astype(CLASSES[flag & 0xFF], copy=False)
