"""Pieces of LLVM code that vector kernels are put together from."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

LANES = 32  # bytes in a vector

BYTE, SHORT, WORD, LONG = (ir.IntType(size) for size in (8, 16, 32, 64))
VECTOR = ir.VectorType(BYTE, LANES)
COUNTS = ir.VectorType(WORD, LANES)


def data(
    context: Any, builder: Any, signature: Any, arguments: Any, which: tuple[int, ...]
) -> list[Any]:
    """Pointers to the first bytes of array arguments."""
    arrays = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in which)
    return [builder.bitcast(array.data, BYTE.as_pointer()) for array in arrays]


def function(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """An LLVM intrinsic, declared once in a module."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def spread(builder: Any, value: Any) -> Any:
    """A vector of one byte that is known only at run time."""
    one = builder.insert_element(splat(0), value, ir.Constant(WORD, 0))
    return builder.shuffle_vector(one, splat(0), ir.Constant(COUNTS, [0] * LANES))


def splat(value: int) -> Any:
    """A vector of one byte."""
    return ir.Constant(VECTOR, [value] * LANES)


def at(builder: Any, pointer: Any, offset: int) -> Any:
    """The pointer so many bytes on."""
    return builder.gep(pointer, [ir.Constant(LONG, offset)])


def past(builder: Any, pointer: Any, count: Any, size: int) -> Any:
    """The pointer past ``count`` things of ``size`` bytes."""
    return builder.gep(pointer, [builder.mul(count, ir.Constant(LONG, size))])


def load(builder: Any, pointer: Any, kind: Any = VECTOR) -> Any:
    """What lies at a pointer, aligned or not."""
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.align = 1
    return value


def store(builder: Any, value: Any, pointer: Any) -> None:
    """Put a value at a pointer, aligned or not."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 1
