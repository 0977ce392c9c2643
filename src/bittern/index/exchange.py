"""Codes and indexes to and from FAISS binary index files, and bytes in ``.npy`` files.

:meth:`bittern.Codes.to` and :meth:`bittern.Codes.from_` write and read these and other targets.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_new_ids, check_type
from bittern.codes import BitOrder, Codes, unpacked
from bittern.errors import FileError, InputError
from bittern.index.base import Index
from bittern.index.flat_index import FlatIndex
from bittern.io import exchange


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
    _codes_of(codes).to("faiss", path, ids=_ids_of(codes, ids), bitorder=bitorder)


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
    _codes_of(codes).to("npy", path, bitorder=bitorder)


def read_bytes(
    path: str | os.PathLike[str], *, n_bits: int | None = None, bitorder: BitOrder = "big"
) -> Codes:
    """The codes of a ``.npy`` file of uint8 rows in the layout of ``np.packbits``."""
    return Codes.from_("npy", path, n_bits=n_bits, bitorder=bitorder)


write_octets, read_octets = write_bytes, read_bytes  # the old names keep working


def _read_faiss(
    path: str | os.PathLike[str], n_bits: int | None, bitorder: BitOrder
) -> tuple[Codes, NDArray[np.int64] | None]:
    """The codes of a file, and their ids if they are not positions."""
    found = exchange.read("faiss", path, n_bits=n_bits, bitorder=bitorder)
    return unpacked(path, found.packed, found.n_bits, bitorder), found.ids


def _codes_of(codes: Codes | Index) -> Codes:
    if isinstance(codes, Index):
        return codes.codes
    check_type(codes, Codes, "exchange: codes")
    return codes


def _ids_of(codes: Codes | Index, ids: ArrayLike | None) -> NDArray[np.int64] | None:
    """The ids to write, as many as codes and distinct."""
    if ids is None:
        return codes.ids if isinstance(codes, Index) else None
    return check_new_ids(ids, len(codes), "write_faiss")
