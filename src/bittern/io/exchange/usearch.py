"""usearch: an index of bits (``b1``) by Hamming distance.

The library believes the sizes in a file, and a damaged one ends the process or fills the memory.
So files are read here: a matrix of codes (its two sides, then the bytes), a head of 64 bytes, and
the graph.  The graph has five numbers of 64 bits, the level of each node, and the nodes: a key of
64 bits, a level of 16, and lists of neighbours, one for each level.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.exchange.items import PackedItems
from bittern.io.files import atomic_write, existing_file, reading

SIDES = struct.Struct("<II")
HEAD = struct.Struct("<7s3H4B3QB22x")  # mark, version, kinds, present, deleted, dimensions, multi
GRAPH = struct.Struct("<5Q")  # nodes, neighbours, neighbours at the bottom, top level, first node
IS_BITS = (1, 14, 15)  # kinds of values (b1), keys (u64) and slots (u32)
REMOVED = np.uint64((1 << 64) - 1)  # the key of a node that was removed


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """An index of usearch, whose keys are the ids."""
    usearch = _library()
    index = usearch.Index(ndim=items.n_bits, metric="hamming", dtype="b1")
    if len(items):
        index.add(items.numbers.astype(np.uint64), items.packed)
    with atomic_write(path) as file:
        file.write(index.save())


def read(path: Path, name: str | None) -> PackedItems:
    """The codes of an index, by ascending id: usearch keeps no order."""
    source = existing_file(path)
    with reading(source, "index of usearch"):
        content = source.read_bytes()
        rows, width = SIDES.unpack_from(content)
        at = SIDES.size + rows * width
        mark, *_, values, keys, slots, present, deleted, n_bits, _ = HEAD.unpack_from(content, at)
        if mark != b"usearch" or (values, keys, slots) != IS_BITS:
            raise FileError(f"{source}: is no usearch index of bits (dtype b1).")
        if width != -(-n_bits // 8) or rows != present + deleted:
            raise ValueError("its sizes do not agree")
        ids = _keys(content, at + HEAD.size, rows)
        packed = np.frombuffer(content, np.uint8, rows * width, SIDES.size).reshape(rows, width)
        is_there = ids != REMOVED
        order = np.flatnonzero(is_there)[np.argsort(ids[is_there], kind="stable")]
        ids = ids[order]
        if len(ids) != present or (ids[1:] == ids[:-1]).any() or (ids >> np.uint64(63)).any():
            raise ValueError("its keys must be distinct whole numbers")
    return PackedItems(packed[order], int(n_bits), ids=ids.astype(np.int64))


def _keys(content: bytes, at: int, rows: int) -> NDArray[np.uint64]:
    """The keys of the nodes, in the order of the codes; the file must end after the last."""
    n, neighbours, at_bottom, *_ = GRAPH.unpack_from(content, at)
    at += GRAPH.size
    if n != rows or max(neighbours, at_bottom) > len(content):
        raise ValueError("its graph has other nodes than codes")
    levels = np.frombuffer(content, "<i2", rows, at).astype(np.int64)
    sizes = 14 + 4 * at_bottom + levels * (4 + 4 * neighbours)
    ends = at + 2 * rows + np.cumsum(sizes)
    if (levels < 0).any() or (int(ends[-1]) if rows else at) != len(content):
        raise ValueError("it has another length than its graph")
    places = (ends - sizes)[:, None] + np.arange(8)
    return np.frombuffer(content, np.uint8)[places].view("<u8")[:, 0].astype(np.uint64)


def _library() -> Any:
    return import_extra("usearch.index", "usearch")
