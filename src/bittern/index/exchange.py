"""Codes to and from other engines: FAISS binary index files, and octets."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bittern.checks import check_type
from bittern.codes import Codes
from bittern.errors import FileError, InputError, MissingExtraError
from bittern.index.base import Index
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.npz import stored_arrays

__all__ = ["read_faiss", "read_octets", "write_faiss", "write_octets"]


def write_faiss(path: str | os.PathLike[str], codes: Codes | Index) -> None:
    """Write a file that ``faiss.read_index_binary`` reads as an ``IndexBinaryFlat``.

    Octets are in FAISS's own order: bit j of a code is bit ``j % 8`` of octet ``j // 8``.  FAISS
    counts in octets, so codes whose length is no multiple of 8 are filled up with zeros, which
    changes no distance; pass ``n_bits`` to :func:`read_faiss` to have them back.  FAISS knows items
    by their position: the ids of an index are not in the file.
    """
    faiss, codes = _faiss(), _codes_of(codes)
    octets = codes.to_packed(bitorder="little")
    flat = faiss.IndexBinaryFlat(8 * octets.shape[1])
    flat.add(octets)
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
    octets = faiss.vector_to_array(index.xb).reshape(index.ntotal, index.code_size)
    try:
        return Codes.from_packed(octets, n_bits, bitorder="little")
    except InputError as error:
        raise FileError(f"{source}: {error}") from None


def write_octets(path: str | os.PathLike[str], codes: Codes | Index) -> None:
    """Write a ``.npy`` of octets as ``np.packbits`` lays them, which everything reads."""
    with atomic_write(path) as file:
        np.save(file, _codes_of(codes).to_packed(), allow_pickle=False)


def read_octets(path: str | os.PathLike[str], *, n_bits: int | None = None) -> Codes:
    """The codes of a ``.npy`` of octets as ``np.packbits`` lays them."""
    source = existing_file(path)
    with reading(source, ".npy file"):
        (array,) = stored_arrays(source).values()
        octets = array.load()
    try:
        return Codes.from_packed(octets, n_bits)
    except InputError as error:
        raise FileError(f"{source}: not a file of octets: {error}") from None


def _codes_of(codes: Codes | Index) -> Codes:
    if isinstance(codes, Index):
        return codes.codes
    check_type(codes, Codes, "exchange: codes")
    return codes


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("FAISS files: need FAISS; pip install 'bittern[io]'.") from None
    return faiss
