"""Bits of 64-bit words: counting them, finding the lowest, and fetching words into the cache early.

An *intrinsic* is a function whose LLVM code we write ourselves, because Numba would not choose the
instruction we want.  Its ``generate`` runs when Numba compiles the caller: ``builder.ctpop(x)``
counts nothing, it appends "count the bits of x" to the code that will run later.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a 64-bit word, in one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Position of the lowest set bit of a 64-bit word that is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Start loading entry ``position`` of a flat array into the cache.

    The processor does not wait for it, and ignores a position beyond the end.
    """
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(values.data, [arguments[1]]), byte)
        parameters = [byte, word, word, word]
        fetch = declare(builder, "llvm.prefetch.p0i8", ir.VoidType(), parameters)
        to_read, keep_near, is_data = 0, 3, 1
        flags = (ir.Constant(word, flag) for flag in (to_read, keep_near, is_data))
        builder.call(fetch, [pointer, *flags])
        return context.get_dummy_value()

    return signature, generate


def declare(builder: Any, name: str, result: Any, parameters: list[Any]) -> Any:
    """One of LLVM's own functions, declared once in the module being compiled."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, parameters), name)


@njit(inline="always")
def distance_between(queries, q, words, row):
    """Hamming distance of two codes, each a row of its array."""
    distance = 0
    for w in range(queries.shape[1]):
        distance += int(popcount(queries[q, w] ^ words[row, w]))
    return distance


@njit(inline="always")
def distance_to_row(queries, q, words, late, row):
    """Hamming distance of a query from a row of ``words``, or of ``late``, which follow them."""
    n = words.shape[0]
    if row < n:
        return distance_between(queries, q, words, row)
    return distance_between(queries, q, late, row - n)
