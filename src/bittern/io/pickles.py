"""Pickles of CIFAR-10 read as data: nothing in them is imported, called or executed.

Python's unpickler runs, but finds only the few names that such files use (an array, its dtype,
encoded text), each replaced by a stand-in that stores what it is given.  We also limit what the
standard library does not: which instructions run and how many; the keys of dicts (hashing nested
tuples may take forever, or overflow the stack); and which objects may get a state.  This needs the
unpickler written in Python, ``pickle._Unpickler``; the one in C has no such hooks, and allocates as
large a memo as a file asks for.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import reading

MOST_BYTES = 1 << 26  # a batch of the published files has 31 million
MOST_STEPS = 1_000_000  # and at most 90,152 instructions, written by Python 2 or 3

_NUMBER = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")


def read_pickle(data: bytes, name: str) -> dict[str, Any]:
    """The dict that a pickle of the CIFAR-10 kind holds, its keys as text, its arrays as arrays.

    Values are numbers, text, bytes, lists, tuples and arrays of numbers.  Text that Python 2 wrote
    is decoded as Latin-1.  Errors call the file ``name``.
    """
    if len(data) > MOST_BYTES:
        raise FileError(
            f"{name}: the pickle must have at most {MOST_BYTES} bytes, got {len(data)}."
        )
    with reading(name, "pickle"):
        result = _DataUnpickler(data, name).load()
    if not isinstance(result, _TextDict):
        raise FileError(f"{name}: the pickle must hold a dict, got {type(result).__name__}.")
    return {key: _settled(value, name) for key, value in result.items()}


class _DataUnpickler(pickle._Unpickler):
    """Python's unpickler, limited to the instructions and names that data files use."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(io.BytesIO(data), encoding="latin1")
        self.name = name
        self.dispatch = _Instructions(name)  # type: ignore[misc]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise FileError(
                f"{self.name}: the pickle asks for '{module}.{name}'; "
                "a data file must not run code, so it was not read."
            )
        return _STAND_INS[module, name]


class _Instructions(dict[int, Callable[[Any], None]]):
    """The allowed instructions by code; counts those that run, and fails on any other."""

    def __init__(self, name: str) -> None:
        super().__init__(_HANDLERS)
        self.name, self.steps = name, 0

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise FileError(f"{self.name}: the pickle has more than {MOST_STEPS} instructions.")
        return super().__getitem__(code)

    def __missing__(self, code: int) -> Callable[[Any], None]:
        asked = _OPCODES.get(code, f"instruction {code}")
        raise FileError(f"{self.name}: the pickle asks for {asked}, which no data file needs.")


class _TextDict(dict[str, Any]):
    """A dict with text keys only; any other key raises an error before it is hashed."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) not in (str, bytes):
            raise ValueError("expected a dict whose keys are text")
        super().__setitem__(_text(key), value)


class _Dtype:
    """A dtype of plain numbers, in two steps as NumPy writes it: code, then byte order."""

    def __init__(self, code: Any, align: Any = 0, copy: Any = 1) -> None:
        if not (isinstance(code, str | bytes) and _NUMBER.fullmatch(_text(code))):
            raise ValueError(f"dtype {code!r} is not one of plain numbers")
        self.dtype = np.dtype(_text(code))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        if order not in tuple("<>|=") or any(field is not None for field in state[2:5]):
            raise ValueError("the dtype is not one of plain numbers")
        self.dtype = self.dtype if order == "|" else self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class _Array:
    """An array, in two steps as NumPy writes it: an empty one, then shape, dtype and bytes."""

    def __init__(self, kind: Any, shape: Any, code: Any) -> None:
        self.array: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, _Dtype):
            raise ValueError("the array's dtype is missing")
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(content, bytes) or set(map(type, shape)) - {int} or min(shape) < 0:
            raise ValueError("the array's shape or content has the wrong type")
        if math.prod(shape) * kind.dtype.itemsize != len(content):
            raise ValueError(f"an array of shape {shape} cannot have {len(content)} bytes")
        flat = np.frombuffer(content, kind.dtype)
        self.array = flat.reshape(shape, order="F" if fortran else "C")


def _encode(text: str, encoding: str) -> bytes:
    """Bytes, as protocol 2 of Python 3 writes them."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"text encoded as {encoding!r}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): None,  # named, never called
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


def _push_dict(unpickler: Any) -> None:
    unpickler.append(_TextDict())


def _push_filled_dict(unpickler: Any) -> None:
    items, filled = unpickler.pop_mark(), _TextDict()
    for key, value in zip(items[::2], items[1::2], strict=True):
        filled[key] = value
    unpickler.append(filled)


def _build(unpickler: Any) -> None:
    """Set the state of arrays and dtypes only; on other objects it would set attributes."""
    if type(unpickler.stack[-2]) not in (_Array, _Dtype):
        raise ValueError("only arrays and dtypes have a state")
    pickle._Unpickler.load_build(unpickler)  # type: ignore[attr-defined]


# fmt: off
_ALLOWED = (
    "PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE",
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINBYTES", "SHORT_BINBYTES",
    "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "EMPTY_LIST", "LIST", "APPEND",
    "APPENDS", "SETITEM", "SETITEMS",
    "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET",
    "GLOBAL", "STACK_GLOBAL", "REDUCE",
)
# fmt: on
_OPCODES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}
_HANDLERS: dict[int, Callable[[Any], None]] = {
    **{code: pickle._Unpickler.dispatch[code] for code, n in _OPCODES.items() if n in _ALLOWED},
    pickle.EMPTY_DICT[0]: _push_dict,
    pickle.DICT[0]: _push_filled_dict,
    pickle.BUILD[0]: _build,
}


def _text(value: str | bytes) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


def _settled(value: Any, name: str) -> Any:
    """An array in place of its stand-in."""
    if not isinstance(value, _Array):
        return value
    if value.array is None:
        raise FileError(f"{name}: an array in the pickle has no content.")
    return value.array
