"""Codes to and from other engines: FAISS binary index files, and bytes in ``.npy`` files."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_type
from bittern.codes import BitOrder, Codes, check_bitorder
from bittern.errors import FileError, InputError
from bittern.extras import import_extra
from bittern.index.base import Index
from bittern.index.flat_index import FlatIndex
from bittern.index.items import IndexedItems
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import stored_arrays


def write_faiss(
    path: str | os.PathLike[str],
    codes: Codes | Index,
    *,
    ids: ArrayLike | None = None,
    bitorder: BitOrder = "big",
) -> None:
    """Write a file that ``faiss.read_index_binary`` reads, and that finds what our indexes find.

    FAISS compares bytes, so queries must have the same order of bits as the file: search it with
    ``codes.to_packed(bitorder)``.  FAISS counts in bytes; a length that is not a multiple of 8 is
    padded with zeros, which changes no distance.  ``ids`` default to those of an index, or to
    positions; the file is an ``IndexBinaryFlat`` if they are 0, 1, 2, …, else an
    ``IndexBinaryIDMap``.
    """
    faiss, chosen = _faiss(), _codes_of(codes)
    packed, ids = chosen.to_packed(bitorder), _ids_of(codes, ids)
    index = faiss.IndexBinaryFlat(8 * packed.shape[1])
    if are_positions(ids):
        index.add(packed)
    else:
        index = faiss.IndexBinaryIDMap(index)
        index.add_with_ids(packed, ids)
    with atomic_write(path) as file:
        file.write(faiss.serialize_index_binary(index).tobytes())


def read_faiss(
    path: str | os.PathLike[str], *, n_bits: int | None = None, bitorder: BitOrder = "big"
) -> Codes:
    """The codes of a FAISS file: an ``IndexBinaryFlat``, or an ``IndexBinaryIDMap`` over one.

    Pass the order of bits that the file was written with, and ``n_bits`` if codes are padded.
    Warns if the file has ids other than positions; :func:`read_faiss_index` keeps them.
    """
    codes, ids = _read_faiss(path, n_bits, bitorder)
    if ids is not None:
        warnings.warn(
            f"{path}: has ids, which read_faiss() drops; read_faiss_index() keeps them.",
            stacklevel=2,
        )
    return codes


def read_faiss_index(
    path: str | os.PathLike[str], *, n_bits: int | None = None, bitorder: BitOrder = "big"
) -> FlatIndex:
    """The codes and ids of a FAISS file that :func:`read_faiss` reads, as an index of ours."""
    codes, ids = _read_faiss(path, n_bits, bitorder)
    index = FlatIndex()
    try:
        index.add(codes, ids)
    except InputError as error:  # FAISS allows ids that are negative, or not distinct
        raise FileError(f"{path}: {error}") from None
    return index


def write_bytes(
    path: str | os.PathLike[str], codes: Codes | Index, *, bitorder: BitOrder = "big"
) -> None:
    """Write codes to a ``.npy`` file of uint8 rows in the layout of ``np.packbits``.

    The rows of an index are those of its ``ids``, which are not in the file.
    """
    packed = _codes_of(codes).to_packed(bitorder)
    with atomic_write(path) as file:
        np.save(file, packed, allow_pickle=False)


def read_bytes(
    path: str | os.PathLike[str], *, n_bits: int | None = None, bitorder: BitOrder = "big"
) -> Codes:
    """The codes of a ``.npy`` file of uint8 rows in the layout of ``np.packbits``."""
    source = existing_file(path)
    with reading(source, ".npy file"):
        (array,) = stored_arrays(source).values()
        packed = array.load()
    return _unpacked(source, packed, n_bits, bitorder, "not a file of packed codes: ")


def are_positions(ids: NDArray[np.int64]) -> bool:
    """Whether ids are 0, 1, 2, …, so that nothing is lost without them."""
    return bool(np.array_equal(ids, np.arange(len(ids))))


write_octets, read_octets = write_bytes, read_bytes  # the old names keep working


def _read_faiss(
    path: str | os.PathLike[str], n_bits: int | None, bitorder: BitOrder
) -> tuple[Codes, NDArray[np.int64] | None]:
    """The codes of a file, and their ids if they are not positions."""
    faiss, source = _faiss(), existing_file(path)
    with reading(source, "binary index of FAISS"):
        index = faiss.deserialize_index_binary(np.fromfile(source, np.uint8))
    ids, flat = None, index
    if isinstance(index, faiss.IndexBinaryIDMap):
        ids, flat = faiss.vector_to_array(index.id_map), faiss.downcast_IndexBinary(index.index)
    if not isinstance(flat, faiss.IndexBinaryFlat):
        raise FileError(
            f"{source}: holds a {type(flat).__name__}; only IndexBinaryFlat keeps plain codes."
        )
    packed = faiss.vector_to_array(flat.xb).reshape(flat.ntotal, flat.code_size)
    if ids is not None and are_positions(ids):
        ids = None
    return _unpacked(source, packed, n_bits, bitorder), ids


def _unpacked(
    source: Path, packed: NDArray[Any], n_bits: int | None, bitorder: BitOrder, trouble: str = ""
) -> Codes:
    check_bitorder(bitorder)  # not the file's fault
    try:
        return Codes.from_packed(packed, n_bits, bitorder)
    except InputError as error:
        raise FileError(f"{source}: {trouble}{error}") from None


def _codes_of(codes: Codes | Index) -> Codes:
    if isinstance(codes, Index):
        return codes.codes
    check_type(codes, Codes, "exchange: codes")
    return codes


def _ids_of(codes: Codes | Index, ids: ArrayLike | None) -> NDArray[np.int64]:
    """The ids to write, as many as codes and distinct."""
    if ids is None:
        return codes.ids if isinstance(codes, Index) else np.arange(len(codes))
    items = IndexedItems()
    items.append(_codes_of(codes), ids, "write_faiss")
    return items.ids


def _faiss() -> Any:
    return import_extra("faiss", "FAISS files")
