"""Pickles of CIFAR-10 read as data: nothing in them is imported, called or executed.

Python's own unpickler is a machine that imports and calls what a file tells it to.  Here
``pickletools`` lists the instructions, which runs none of them, and they are followed on plain
values only.  The few functions that CIFAR-10's files name (an array, its dtype, encoded text) are
entries of a table below; every other name and every other instruction is refused.
"""

from __future__ import annotations

import math
import pickletools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.finding import reading

__all__ = ["read_pickle"]

MOST_BYTES = 1 << 26  # a batch of the published files has 31 million
MOST_STEPS = 1_000_000  # and at most 90,152 instructions, written by Python 2 or 3
MOST_ITEMS = 1000  # of a dict

_NUMBER = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")


def read_pickle(data: bytes, name: str) -> dict[str, Any]:
    """The dict that a pickle of the CIFAR-10 kind holds, its keys as text, its arrays as arrays.

    Values are numbers, text, bytes, lists, tuples and arrays of numbers.  Text that Python 2 wrote
    is decoded as Latin-1.  ``name`` is what errors call the file.
    """
    if len(data) > MOST_BYTES:
        raise FileError(f"{name}: a pickle of at most {MOST_BYTES} bytes is read, got {len(data)}.")
    with reading(name, "pickle"):
        result = _Machine(name).run(data)
    if type(result) is not dict:
        raise FileError(f"{name}: the pickle must hold a dict, got {type(result).__name__}.")
    return {key: _settled(value, name) for key, value in result.items()}


class _Name:
    """A function that the file names; only the table says what it does."""

    def __init__(self, call: Callable[..., Any] | None) -> None:
        self.call = call


class _Dtype:
    """A dtype of plain numbers, in two steps as NumPy writes it: code, then byte order."""

    def __init__(self, code: Any, align: Any = 0, copy: Any = 1) -> None:
        if not (isinstance(code, str | bytes) and _NUMBER.fullmatch(_text(code))):
            raise ValueError(f"dtype {code!r} is not one of plain numbers")
        self.dtype = np.dtype(_text(code))

    def build(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        if order not in tuple("<>|=") or any(field is not None for field in state[2:5]):
            raise ValueError("the dtype is not one of plain numbers")
        self.dtype = self.dtype if order == "|" else self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class _Array:
    """An array, in two steps as NumPy writes it: an empty one, then shape, dtype and bytes."""

    def __init__(self, kind: Any, shape: Any, code: Any) -> None:
        self.array: NDArray[Any] | None = None

    def build(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, _Dtype):
            raise ValueError("the array's dtype is missing")
        octets = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(octets, bytes) or set(map(type, shape)) - {int} or min(shape) < 0:
            raise ValueError("the array's shape or content is of another kind")
        if math.prod(shape) * kind.dtype.itemsize != len(octets):
            raise ValueError(f"an array of shape {shape} cannot have {len(octets)} bytes")
        flat = np.frombuffer(octets, kind.dtype)
        self.array = flat.reshape(shape, order="F" if fortran else "C")


def _encode(text: str, encoding: str) -> bytes:
    """Bytes, as protocol 2 of Python 3 writes them."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"text encoded as {encoding!r}")
    return text.encode("latin1")


_NAMES = {
    **{f"numpy.{core}.multiarray _reconstruct": _Name(_Array) for core in ("core", "_core")},
    "numpy ndarray": _Name(None),
    "numpy dtype": _Name(_Dtype),
    "_codecs encode": _Name(_encode),
}


class _Machine:
    """A stack, its marks and a memo; each instruction moves plain values between them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        """What the pickle leaves on the stack."""
        for step, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if step >= MOST_STEPS:
                raise FileError(f"{self.name}: a pickle of more than {MOST_STEPS} instructions.")
            if opcode.name in _CONSTANTS:
                self.stack.append(argument)
            elif opcode.name == "STOP":
                return self.stack.pop()
            elif opcode.name in _INSTRUCTIONS:
                _INSTRUCTIONS[opcode.name](self, argument)
            else:
                raise FileError(
                    f"{self.name}: the pickle asks for {opcode.name}, which no data file needs."
                )
        raise ValueError("it has no end")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self) -> None:
        self.marks.append(len(self.stack))

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def last(self, count: int) -> tuple[Any, ...]:
        if len(self.stack) < count:
            raise ValueError("its stack is empty")
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        return items

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("items are added to what is no list")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict:
            raise ValueError("items are set in what is no dict")
        keys, values = items[::2], items[1::2]
        if len(keys) + len(target) > MOST_ITEMS or set(map(type, keys)) - {str, bytes}:
            raise ValueError(f"a dict has at most {MOST_ITEMS} items, whose keys are text")
        target.update(zip(map(_text, keys), values, strict=True))

    def new_dict(self, items: list[Any]) -> None:
        self.push({})
        self.update(items)

    def named(self, name: str) -> None:
        if name not in _NAMES:
            raise FileError(
                f"{self.name}: the pickle asks for {name.replace(' ', '.')!r}; "
                "a data file may not run code, so it is refused."
            )
        self.push(_NAMES[name])

    def stack_named(self) -> None:
        self.named(" ".join(self.last(2)))

    def call(self) -> None:
        function, arguments = self.last(2)
        if type(function) is not _Name or function.call is None or type(arguments) is not tuple:
            raise ValueError("something is called that is no function")
        self.push(function.call(*arguments))

    def build(self) -> None:
        (state,) = self.last(1)
        target = self.stack[-1]
        if type(target) not in (_Array, _Dtype) or type(state) is not tuple:
            raise ValueError("a state is given to what has none")
        target.build(state)

    def remember(self, key: int | None = None) -> None:
        self.memo[len(self.memo) if key is None else key] = self.stack[-1]


_CONSTANTS = {
    "BININT",
    "BININT1",
    "BININT2",
    "INT",
    "LONG",
    "LONG1",
    "STRING",
    "BINSTRING",
    "SHORT_BINSTRING",
    "UNICODE",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINBYTES",
    "SHORT_BINBYTES",
}

_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda m, a: None,
    "FRAME": lambda m, a: None,
    "MARK": lambda m, a: m.mark(),
    "NONE": lambda m, a: m.push(None),
    "NEWTRUE": lambda m, a: m.push(True),
    "NEWFALSE": lambda m, a: m.push(False),
    "EMPTY_TUPLE": lambda m, a: m.push(()),
    "TUPLE1": lambda m, a: m.push(m.last(1)),
    "TUPLE2": lambda m, a: m.push(m.last(2)),
    "TUPLE3": lambda m, a: m.push(m.last(3)),
    "TUPLE": lambda m, a: m.push(tuple(m.since_mark())),
    "EMPTY_LIST": lambda m, a: m.push([]),
    "LIST": lambda m, a: m.push(m.since_mark()),
    "APPEND": lambda m, a: m.extend(list(m.last(1))),
    "APPENDS": lambda m, a: m.extend(m.since_mark()),
    "EMPTY_DICT": lambda m, a: m.push({}),
    "DICT": lambda m, a: m.new_dict(m.since_mark()),
    "SETITEM": lambda m, a: m.update(list(m.last(2))),
    "SETITEMS": lambda m, a: m.update(m.since_mark()),
    "PUT": lambda m, a: m.remember(a),
    "BINPUT": lambda m, a: m.remember(a),
    "LONG_BINPUT": lambda m, a: m.remember(a),
    "MEMOIZE": lambda m, a: m.remember(),
    "GET": lambda m, a: m.push(m.memo[a]),
    "BINGET": lambda m, a: m.push(m.memo[a]),
    "LONG_BINGET": lambda m, a: m.push(m.memo[a]),
    "GLOBAL": lambda m, a: m.named(a),
    "STACK_GLOBAL": lambda m, a: m.stack_named(),
    "REDUCE": lambda m, a: m.call(),
    "BUILD": lambda m, a: m.build(),
}


def _text(value: str | bytes) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


def _settled(value: Any, name: str) -> Any:
    """An array for what stands for one."""
    if not isinstance(value, _Array):
        return value
    if value.array is None:
        raise FileError(f"{name}: an array of the pickle has no content.")
    return value.array
