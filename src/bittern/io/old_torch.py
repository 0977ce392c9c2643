"""Tensors of a PyTorch file in the format before version 1.6, read without PyTorch.

Such a file is five pickles (a magic number, the version of the format, facts about the machine, the
tensors by name, the keys of their storages) and then, for each key, the number of values and the
values.  Python's unpickler runs, but finds only the four names that such files use, each replaced
by a stand-in that stores what it is given.

Reference: ``torch/serialization.py`` of PyTorch, functions ``_legacy_save`` and ``_legacy_load``.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file, reading

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
DTYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of the file by name, as arrays of float32 and int64."""
    with reading(existing_file(path), "PyTorch file of tensors"):
        stream = io.BytesIO(path.read_bytes())
        if _unpickled(stream, path) != MAGIC or _unpickled(stream, path) != VERSION:
            raise FileError(f"{path}: is not a PyTorch file in the format before version 1.6.")
        if _unpickled(stream, path)["little_endian"] is not True:
            raise FileError(f"{path}: was written with another order of bytes.")
        tensors, keys = _unpickled(stream, path), _unpickled(stream, path)
        storages = dict(_read_storage(stream, tensors, key) for key in keys)
        return {name: _array(one, storages[one.storage.key]) for name, one in tensors.items()}


class _Tensors(dict[str, Any]):
    """Tensors by name; their metadata, the state of this dict, is not needed."""

    def __setstate__(self, state: Any) -> None:
        """Ignore the state."""


class _Storage(NamedTuple):
    """What a pickle says of a storage: its type, key and number of values."""

    dtype: np.dtype[Any]
    key: str
    n_values: int


class _Tensor(NamedTuple):
    """What a pickle says of a tensor: a view of a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in values


def _tensor(storage: Any, offset: int, shape: Any, strides: Any, *_: Any) -> _Tensor:
    return _Tensor(storage, offset, shape, strides)


class _Unpickler(pickle._Unpickler):
    """Python's unpickler, limited to the names that files of tensors use.

    The one in C allocates as large a memo as a file asks for.
    """

    path: Path
    stand_ins: dict[tuple[str, str], Any] = {  # noqa: RUF012
        ("collections", "OrderedDict"): _Tensors,
        ("torch._utils", "_rebuild_tensor_v2"): _tensor,
        **{("torch", name): dtype for name, dtype in DTYPES.items()},
    }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name."""
        if (module, name) not in self.stand_ins:
            raise FileError(
                f"{self.path}: asks for '{module}.{name}'; a file of tensors must not run code, so "
                "it was not read."
            )
        return self.stand_ins[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        """A storage, by what the pickle says of it."""
        _, dtype, key, _, n_values, _ = pid
        return _Storage(dtype, key, n_values)


def _unpickled(stream: io.BytesIO, path: Path) -> Any:
    unpickler = _Unpickler(stream)
    unpickler.path = path
    return unpickler.load()


def _read_storage(
    stream: io.BytesIO, tensors: dict[str, _Tensor], key: str
) -> tuple[str, NDArray[Any]]:
    """The values of the next storage."""
    stored = next(one.storage for one in tensors.values() if one.storage.key == key)
    (n_values,) = struct.unpack("<q", stream.read(8))
    if n_values != stored.n_values:
        raise ValueError(f"a storage should have {stored.n_values} values, and has {n_values}")
    content = stream.read(n_values * stored.dtype.itemsize)
    return key, np.frombuffer(content, stored.dtype, n_values)


def _array(tensor: _Tensor, storage: NDArray[Any]) -> NDArray[Any]:
    """A copy of the tensor's values."""
    offset, shape, strides = tensor.offset, tensor.shape, tensor.strides
    steps = [(side - 1) * stride for side, stride in zip(shape, strides, strict=True)]
    if min((offset, *steps), default=0) < 0 or offset + sum(steps) >= len(storage):
        raise ValueError(f"a tensor of shape {shape} exceeds its storage")
    size = storage.itemsize
    view = np.lib.stride_tricks.as_strided(
        storage[offset:], shape, [size * stride for stride in strides]
    )
    assert view.size == math.prod(shape)
    return np.array(view, order="C")
