"""Text of any length out of HDF5 files, which the HDF5 library reads without end where damaged.

A dataset of such text holds references of 16 bytes: length, address of a heap, index in it.  A heap
is "GCOL", version 1, its size, then objects: index, count of references, size, each followed by
its bytes, padded to eight; index 0 is the free space at its end.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.finding import refuse_excess

__all__ = ["read_references", "read_texts"]

REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("index", "<u4")])
OBJECT = struct.Struct("<HH4xQ")
DEFLATE = 1  # HDF5's number of gzip among filters


def read_references(path: Path, name: str, dataset: Any) -> NDArray[Any]:
    """The references of a 1-D dataset of text, from the file itself."""
    content = np.memmap(path, np.uint8, "r")
    (n,) = dataset.shape
    start = dataset.id.get_offset()
    if start is not None:
        return np.frombuffer(content, REFERENCE, n, start)
    references = np.zeros(n, REFERENCE)
    for i in range(dataset.id.get_num_chunks()):
        chunk = dataset.id.get_chunk_info(i)
        packed = content[chunk.byte_offset : chunk.byte_offset + chunk.size].tobytes()
        here = references[chunk.chunk_offset[0] :][: dataset.chunks[0]]
        here[:] = _unfiltered(path, name, dataset, packed, chunk.filter_mask)[: len(here)]
    return references


def read_texts(path: Path, references: NDArray[Any], base: int) -> NDArray[Any]:
    """The texts that references name; ``base`` is where the file's addresses count from."""
    content = memoryview(np.memmap(path, np.uint8, "r"))  # type: ignore[arg-type]
    used = references[references["length"] > 0]
    heaps: dict[int, dict[int, tuple[int, int]]] = {}
    left = 2 * len(content)  # of all heaps together: none is walked twice
    for address in np.unique(used["heap"]).tolist():
        heaps[address], size = _heap(content, base + address)
        left -= size
        if left < 0:
            raise ValueError("its heaps of text overlap")
    texts = np.full(len(references), "", dtype=object)
    for i in np.flatnonzero(references["length"]).tolist():
        length, address, index = references[i].item()
        start, size = heaps[address].get(index, (0, 0))
        if length > size:
            raise ValueError("a text is missing, or longer than its place")
        texts[i] = bytes(content[start : start + length]).decode("utf-8")
    return texts


def _unfiltered(path: Path, name: str, dataset: Any, packed: bytes, mask: int) -> NDArray[Any]:
    """The references of a chunk, stored plain or by gzip alone."""
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
    if filters not in ([], [DEFLATE]) or mask:
        raise FileError(
            f"{path}: the text of '{name}' is stored through filters that are not read; "
            "save it plain, or as text of a fixed length."
        )
    if filters:
        promised = dataset.chunks[0] * REFERENCE.itemsize
        refuse_excess(path, promised, len(packed), f"the dataset '{name}'")
        packed = zlib.decompressobj().decompress(packed, promised)
    return np.frombuffer(packed, REFERENCE, dataset.chunks[0])


def _heap(content: memoryview, start: int) -> tuple[dict[int, tuple[int, int]], int]:
    """Place and size of each object of a heap, by index; and the heap's own size."""
    head = bytes(content[start : start + 16])
    if head[:5] != b"GCOL\x01":
        raise ValueError("a heap of text is missing")
    size = int.from_bytes(head[8:16], "little")
    if size < 16 or start + size > len(content):
        raise ValueError("a heap of text goes beyond the file")
    objects = {}
    position, end = start + 16, start + size
    while position + OBJECT.size <= end:
        index, _, length = OBJECT.unpack(content[position : position + OBJECT.size])
        if index == 0:
            break
        position += OBJECT.size
        if position + length > end:
            raise ValueError("a text goes beyond its heap")
        objects[index] = (position, length)
        position += length + -length % 8
    return objects, size
