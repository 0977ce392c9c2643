"""AVX2 registers: what they hold, how distances are looked up in them, and code that does it.

**Registers.**  AVX2 works on registers of 32 bytes.  We use them as 32 *lanes* of one byte each:
one instruction does the same operation on all lanes, as NumPy does on the entries of an array.

**Distances by look-up.**  A code is cut into *nibbles* of four bits.  A nibble has only 16 values,
so the distances of one nibble of the query from every possible nibble are a table of 16 bytes.
AVX2's byte shuffle looks up 32 entries of such a table in one instruction::

    query's nibble 0101, table    2 1 3 2 1 0 2 1 3 2 4 3 2 1 3 2    entry x: bits of x that differ
    nibbles of 32 items           0000  0101  1010 …
    shuffle(table, nibbles)       2     0     4    …                 distances in these four bits

Sixteen look-ups, summed lane by lane, are the distances of 32 items in a 64-bit word.

**Tiles.**  A *tile* is 128 items, four registers of lanes.  The database is stored tile by tile,
and in a tile nibble by nibble, so that every load reads neighbouring bytes::

    tile 0   nibble 0   items 0–31 | 32–63 | 64–95 | 96–127     one register each
             nibble 1   items 0–31 | 32–63 | 64–95 | 96–127
             …

A table that was loaded for a query serves the whole tile.  There are 16 registers: the sums of
three queries over a tile take twelve, their tables three, the items' nibbles one.

The functions below emit LLVM code (see :mod:`bittern.kernels.bits`): they run when a kernel is
compiled, and their arguments stand for values that the kernel will have when it runs.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import config

from bittern.kernels.bits import declare

LANES = 32  # bytes in a register
VECTORS = 4  # registers per tile
TILE = LANES * VECTORS

BYTE, INT32, INT64 = (ir.IntType(size) for size in (8, 32, 64))
VECTOR = ir.VectorType(BYTE, LANES)
COUNTS = ir.VectorType(INT32, LANES)  # LLVM splits it into four AVX2 registers

#: ``NIBBLE_DISTANCES[q, x]``: the distance of nibble q from nibble x.  The 16 entries stand there
#: twice, because each half of a register looks up in its own half of the table.
NIBBLE_DISTANCES = np.tile(
    np.bitwise_count(np.arange(16)[:, None] ^ np.arange(16)).astype(np.uint8), (1, LANES // 16)
)

Sums = list[list[Any]]  # [query][register], one distance per lane


def has_avx2() -> bool:
    """Whether the code that Numba compiles on this machine may use AVX2."""
    chosen = config.CPU_NAME is not None or config.CPU_FEATURES is not None
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return not chosen and is_x86 and processor_has("avx2")


def counts_bits_of_registers() -> bool:
    """Whether this processor counts the bits of every word of a register in one instruction."""
    return has_avx2() and processor_has("avx512vpopcntdq")


@cache
def processor_has(feature: str) -> bool:
    """Whether this processor has what LLVM calls ``feature``."""
    return bool(llvmlite.binding.get_host_cpu_features().get(feature, False))


def add_distances(builder: Any, sums: Sums, v: int, tables: list[Any], nibbles: Any) -> None:
    """Look up 32 nibbles in the table of each query, and add to register v of its sums.

    A sum that would exceed 255 stays at 255 instead of wrapping around to 0.
    """
    shuffle = declare(builder, "llvm.x86.avx2.pshuf.b", VECTOR, [VECTOR, VECTOR])
    add = declare(builder, f"llvm.uadd.sat.v{LANES}i8", VECTOR, [VECTOR, VECTOR])
    for of_query, table in zip(sums, tables, strict=True):
        of_query[v] = builder.call(add, [of_query[v], builder.call(shuffle, [table, nibbles])])


def loop(
    builder: Any, bounds: tuple[Any, Any], step: int, sums: Sums, body: Callable[[Any, Sums], None]
) -> Sums:
    """Emit ``for i in range(*bounds, step): body(i, sums)``, never empty; return the last sums.

    LLVM assigns a variable only once.  A value that changes from turn to turn is a *phi*: one value
    on the first turn, another on each later turn.
    """
    before = builder.block
    turn, after = builder.append_basic_block("turn"), builder.append_basic_block("after")
    builder.branch(turn)
    builder.position_at_end(turn)
    i = builder.phi(INT64)
    i.add_incoming(bounds[0], before)
    phis = [[builder.phi(value.type) for value in row] for row in sums]
    _add_incoming(phis, sums, before)
    now = [list(row) for row in phis]
    body(i, now)
    following = builder.add(i, ir.Constant(INT64, step))
    i.add_incoming(following, builder.block)
    _add_incoming(phis, now, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, bounds[1]), turn, after)
    builder.position_at_end(after)
    return now


def when(builder: Any, condition: Any, sums: Sums, body: Callable[[], Sums]) -> Sums:
    """Emit ``if condition: sums = body()``; return the sums after it."""
    before = builder.block
    inside, after = builder.append_basic_block("inside"), builder.append_basic_block("after")
    builder.cbranch(condition, inside, after)
    builder.position_at_end(inside)
    new = body()
    last = builder.block
    builder.branch(after)
    builder.position_at_end(after)
    phis = [[builder.phi(VECTOR) for _ in row] for row in sums]
    _add_incoming(phis, sums, before)
    _add_incoming(phis, new, last)
    return phis


def _add_incoming(phis: Sums, sums: Sums, block: Any) -> None:
    for row, values in zip(phis, sums, strict=True):
        for phi, value in zip(row, values, strict=True):
            phi.add_incoming(value, block)


def pointers(
    context: Any, builder: Any, signature: Any, arguments: Any, which: tuple[int, ...]
) -> list[Any]:
    """Pointers to the first bytes of some of the arguments, which are arrays."""
    arrays = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in which)
    return [builder.bitcast(array.data, BYTE.as_pointer()) for array in arrays]


def at(builder: Any, pointer: Any, offset: int) -> Any:
    """The pointer ``offset`` bytes further on."""
    return builder.gep(pointer, [ir.Constant(INT64, offset)])


def past(builder: Any, pointer: Any, count: Any, size: int) -> Any:
    """The pointer past ``count`` entries of ``size`` bytes; the count is known at run time."""
    return builder.gep(pointer, [builder.mul(count, ir.Constant(INT64, size))])


def load(builder: Any, pointer: Any, kind: Any = VECTOR) -> Any:
    """The value at a pointer, aligned or not."""
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.align = 1
    return value


def store(builder: Any, value: Any, pointer: Any) -> None:
    """Write a value to a pointer, aligned or not."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 1


def constant(value: int) -> Any:
    """A register with the same byte in every lane."""
    return ir.Constant(VECTOR, [value] * LANES)


def broadcast(builder: Any, value: Any, kind: Any = VECTOR) -> Any:
    """A register with one value, known only at run time, in every lane."""
    nothing = ir.Constant(kind, [0] * kind.count)
    one = builder.insert_element(nothing, value, ir.Constant(INT32, 0))
    first = ir.Constant(ir.VectorType(INT32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, nothing, first)
