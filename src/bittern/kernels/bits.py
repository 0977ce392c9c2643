"""Bits of words: counting them, finding the lowest, and asking the cache for them early."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from bittern.kernels.emit import BYTE, WORD, function


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits of one 64-bit word, by LLVM's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Place of the lowest set bit of a 64-bit word that is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Bring entry ``place`` of a flat array near; nothing happens if it is beyond the end."""
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(values.data, [arguments[1]]), BYTE.as_pointer())
        kinds = [BYTE.as_pointer(), WORD, WORD, WORD]
        fetch = function(builder, "llvm.prefetch.p0i8", ir.VoidType(), kinds)
        builder.call(fetch, [pointer, *(ir.Constant(WORD, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return signature, generate


@njit(inline="always")
def distance_between(queries, q, words, row):
    """Hamming distance of two codes, each a row of its array."""
    distance = 0
    for w in range(queries.shape[1]):
        distance += int(popcount(queries[q, w] ^ words[row, w]))
    return distance
