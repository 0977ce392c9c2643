"""Datasets of HDF5 files: mapped where they lie plain, and checked before they are read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError, MissingExtraError
from bittern.io.files import existing_file
from bittern.io.finding import reading, refuse_excess
from bittern.io.hdf5_text import read_references, read_texts

__all__ = ["StoredDataset", "is_hdf5", "stored_datasets"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"  # at byte 0, 512, 1024, 2048, …


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset of an HDF5 file: what its header says, and where it lies."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # object for text of any length
    offset: int | None  # of the numbers in the file; None where they are chunked or text

    def read(self) -> NDArray[Any]:
        """The array: a read-only memory map where the numbers lie plain, else in memory."""
        if self.offset is not None and 0 not in self.shape:
            with reading(self.path, "HDF5 dataset"):
                return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        with _opened(self.path) as file:
            dataset = file[self.name]
            if self.dtype == object:
                references = read_references(self.path, self.name, dataset)
                return read_texts(self.path, references, file.userblock_size)
            content: NDArray[Any] = np.asarray(dataset[...])
            return np.char.decode(content, "utf-8") if content.dtype.kind == "S" else content


def is_hdf5(path: Path) -> bool:
    """Whether the file bears HDF5's signature where one may be."""
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
        raise FileError(f"{source}: is no HDF5 file.")
    with _opened(source) as file:
        return {
            name: _described(source, name, file[name]) for name in file if _is_dataset(file, name)
        }


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: HDF5 files need h5py; pip install 'bittern[io]'."
        ) from error
    with reading(path, "HDF5 file"), h5py.File(path, "r") as file:
        yield file


def _is_dataset(file: Any, name: str) -> bool:
    """Whether it is a dataset of this very file: links to other files are not followed."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    return file.get(name, getclass=True) is h5py.Dataset


def _described(source: Path, name: str, dataset: Any) -> StoredDataset:
    import h5py

    if dataset.shape is None or dataset.is_virtual or dataset.external:
        raise FileError(f"{source}: the dataset '{name}' is empty or lies in other files.")
    dtype = dataset.dtype
    if dtype.kind == "O":  # text of any length in one dimension is read, nothing else of this kind
        is_text = h5py.check_string_dtype(dtype) is not None and len(dataset.shape) == 1
        dtype = np.dtype(object if is_text else "V1")
    promised = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    refuse_excess(source, promised, stored, f"the dataset '{name}'")
    offset = dataset.id.get_offset() if dtype.kind in "iuf" else None
    if offset is not None and offset + promised > source.stat().st_size:
        raise FileError(f"{source}: is truncated, the dataset '{name}' goes beyond its end.")
    return StoredDataset(source, name, tuple(dataset.shape), dtype, offset)
