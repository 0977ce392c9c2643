"""Codes to and from other engines: FAISS binary index files, and bytes in ``.npy`` files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bittern.checks import check_type, import_extra
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.base import Index
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import stored_arrays


def write_faiss(path: str | os.PathLike[str], codes: Codes | Index) -> None:
    """Write a file that ``faiss.read_index_binary`` reads as an ``IndexBinaryFlat``.

    Bits are in FAISS's own order: bit j of a code is bit ``j % 8`` of byte ``j // 8``.  FAISS
    counts in bytes, so codes whose length is not a multiple of 8 are padded with zeros, which
    changes no distance; pass ``n_bits`` to :func:`read_faiss` to drop them again.  FAISS
    identifies items by position: the ids of an index are not in the file.
    """
    faiss, codes = _faiss(), _codes_of(codes)
    packed = codes.to_packed(bitorder="little")
    flat = faiss.IndexBinaryFlat(8 * packed.shape[1])
    flat.add(packed)
    with atomic_write(path) as file:
        file.write(faiss.serialize_index_binary(flat).tobytes())


def read_faiss(path: str | os.PathLike[str], *, n_bits: int | None = None) -> Codes:
    """The codes of an ``IndexBinaryFlat`` that FAISS or :func:`write_faiss` wrote."""
    faiss, source = _faiss(), existing_file(path)
    with reading(source, "binary index of FAISS"):
        index = faiss.deserialize_index_binary(np.fromfile(source, np.uint8))
    if not isinstance(index, faiss.IndexBinaryFlat):
        raise FileError(
            f"{source}: holds a {type(index).__name__}; only IndexBinaryFlat keeps plain codes."
        )
    packed = faiss.vector_to_array(index.xb).reshape(index.ntotal, index.code_size)
    try:
        return Codes.from_packed(packed, n_bits, bitorder="little")
    except InputError as error:
        raise FileError(f"{source}: {error}") from None


def write_bytes(path: str | os.PathLike[str], codes: Codes | Index) -> None:
    """Write codes to a ``.npy`` file of uint8 rows in the layout of ``np.packbits``."""
    with atomic_write(path) as file:
        np.save(file, _codes_of(codes).to_packed(), allow_pickle=False)


def read_bytes(path: str | os.PathLike[str], *, n_bits: int | None = None) -> Codes:
    """The codes of a ``.npy`` file of uint8 rows in the layout of ``np.packbits``."""
    source = existing_file(path)
    with reading(source, ".npy file"):
        (array,) = stored_arrays(source).values()
        packed = array.load()
    try:
        return Codes.from_packed(packed, n_bits)
    except InputError as error:
        raise FileError(f"{source}: not a file of packed codes: {error}") from None


write_octets, read_octets = write_bytes, read_bytes  # the old names keep working


def _codes_of(codes: Codes | Index) -> Codes:
    if isinstance(codes, Index):
        return codes.codes
    check_type(codes, Codes, "exchange: codes")
    return codes


def _faiss() -> Any:
    return import_extra("faiss", "FAISS", "io", "FAISS files")
