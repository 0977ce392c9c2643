"""Named arrays out of ``.npz`` and MATLAB files, read whole and checked first."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bittern.data.hdf5 import stored_datasets
from bittern.data.matlab5 import matlab_version, read_matrices
from bittern.data.reading import reading, refuse_excess
from bittern.errors import FileError
from bittern.files import existing_file

__all__ = ["read_mat", "read_npz"]


def read_npz(
    path: Path, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The arrays of these names, their checksums verified; no pickles."""
    source = existing_file(path)
    with reading(source, ".npz file"), zipfile.ZipFile(source) as archive:
        there = {name.removesuffix(".npy") for name in archive.namelist()}
        _refuse_lack(source, needed, there)
        names = [*needed, *(name for name in optional if name in there)]
        return {name: _member(source, archive, name) for name in names}


def read_mat(path: Path, needed: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The numeric matrices of these names in a MATLAB file, version 5 or 7.3."""
    source = existing_file(path)
    is_73 = matlab_version(source) == 7
    found = _matlab_73(source, needed) if is_73 else read_matrices(source, needed)
    _refuse_lack(source, needed, set(found))
    for name in needed:
        kind, shape = found[name].dtype, found[name].shape
        if kind.kind not in "fiub" or len(shape) != 2:
            raise FileError(f"{source}: {name} must be a matrix of numbers, got {kind} {shape}.")
    return {name: found[name] for name in needed}


def _refuse_lack(source: Path, needed: Sequence[str], there: set[str]) -> None:
    lack = [name for name in needed if name not in there]
    if lack:
        raise FileError(f"{source}: lacks {', '.join(lack)}; it has {sorted(there)[:12]}.")


def _member(source: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    refuse_excess(source, info.file_size, info.compress_size, name)
    with archive.open(info) as file:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read_header(file)
        content = file.read()
    if dtype.hasobject:
        raise FileError(f"{source}: {name} holds Python objects, which are not read.")
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise FileError(f"{source}: {name} has {len(content)} bytes for {dtype} of shape {shape}.")
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _matlab_73(source: Path, needed: Sequence[str]) -> dict[str, NDArray[Any]]:
    """HDF5 has MATLAB's columns as rows."""
    stored = stored_datasets(source)
    return {name: stored[name].read().T for name in needed if name in stored}
