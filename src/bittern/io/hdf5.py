"""Datasets of HDF5 files, checked before they are read, and memory-mapped if stored plainly.

We read text of variable length ourselves, because the HDF5 library hangs on damaged text.  A
dataset of such text holds references of 16 bytes: length, address of a heap, index in it.  A heap
is "GCOL", version 1, its size, then objects: index, count of references, size, each followed by its
bytes, padded to eight; index 0 is the free space at its end.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.files import existing_file, reading, refuse_excess

SIGNATURE = b"\x89HDF\r\n\x1a\n"  # at byte 0, 512, 1024, 2048, …
REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("index", "<u4")])
OBJECT = struct.Struct("<HH4xQ")
DEFLATE = 1  # HDF5's number for the gzip filter


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset of an HDF5 file: what its header says, and where its numbers are."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # object for text of variable length
    offset: int | None  # of the numbers in the file; None if they are chunked or text

    def read(self) -> NDArray[Any]:
        """The array: a read-only memory map if it is stored plainly, otherwise in memory."""
        if self.offset is not None and 0 not in self.shape:
            with reading(self.path, "HDF5 dataset"):
                return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        with _opened(self.path) as file:
            dataset = file[self.name]
            if self.dtype == object:
                references = _read_references(self.path, self.name, dataset)
                return _read_texts(self.path, references, file.userblock_size)
            content: NDArray[Any] = np.asarray(dataset[...])
            return np.char.decode(content, "utf-8") if content.dtype.kind == "S" else content


def is_hdf5(path: Path) -> bool:
    """Whether the file has HDF5's signature where one may be."""
    with path.open("rb") as file:
        for start in (0, 512, 1024, 2048):
            file.seek(start)
            if file.read(len(SIGNATURE)) == SIGNATURE:
                return True
    return False


def stored_datasets(path: Path) -> dict[str, StoredDataset]:
    """The datasets of the file's top level by name; none is read, each header is checked."""
    source = existing_file(path)
    if not is_hdf5(source):
        raise FileError(f"{source}: is not an HDF5 file.")
    with _opened(source) as file:
        return {
            name: _described(source, name, file[name]) for name in file if _is_dataset(file, name)
        }


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = import_extra("h5py", f"{path}: HDF5")
    with reading(path, "HDF5 file"), h5py.File(path, "r") as file:
        yield file


def _is_dataset(file: Any, name: str) -> bool:
    """Whether it is a dataset of this file; links to other files are not followed."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    return file.get(name, getclass=True) is h5py.Dataset


def _described(source: Path, name: str, dataset: Any) -> StoredDataset:
    import h5py

    if dataset.shape is None or dataset.is_virtual or dataset.external:
        raise FileError(f"{source}: the dataset '{name}' is empty or stored in other files.")
    dtype = dataset.dtype
    if dtype.kind == "O":  # 1-D text of variable length; no other objects are read
        is_text = h5py.check_string_dtype(dtype) is not None and len(dataset.shape) == 1
        dtype = np.dtype(object if is_text else "V1")
    promised = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    refuse_excess(source, promised, stored, f"the dataset '{name}'")
    offset = dataset.id.get_offset() if dtype.kind in "iuf" else None
    if offset is not None and offset + promised > source.stat().st_size:
        raise FileError(f"{source}: is truncated: the dataset '{name}' extends past its end.")
    return StoredDataset(source, name, tuple(dataset.shape), dtype, offset)


def _read_references(path: Path, name: str, dataset: Any) -> NDArray[Any]:
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


def _read_texts(path: Path, references: NDArray[Any], base: int) -> NDArray[Any]:
    """The texts that references name; ``base`` is where the file's addresses count from."""
    content = memoryview(np.memmap(path, np.uint8, "r"))  # type: ignore[arg-type]
    used = references[references["length"] > 0]
    heaps: dict[int, dict[int, tuple[int, int]]] = {}
    left = 2 * len(content)  # bytes of all heaps together, so that none is walked twice
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
    """The references of a chunk, stored plainly or with gzip only."""
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
    if filters not in ([], [DEFLATE]) or mask:
        raise FileError(
            f"{path}: the text of '{name}' uses filters that are not supported; "
            "save it without filters, or as text of fixed length."
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
        raise ValueError("a heap of text extends past the file")
    objects = {}
    position, end = start + 16, start + size
    while position + OBJECT.size <= end:
        index, _, length = OBJECT.unpack(content[position : position + OBJECT.size])
        if index == 0:
            break
        position += OBJECT.size
        if position + length > end:
            raise ValueError("a text extends past its heap")
        objects[index] = (position, length)
        position += length + -length % 8
    return objects, size
