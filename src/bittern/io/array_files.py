"""Named arrays out of ``.npz`` and MATLAB files, read whole and checked first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.io.hdf5 import stored_datasets
from bittern.io.matlab import matlab_version, read_matrices
from bittern.io.npz import stored_arrays

__all__ = ["read_mat", "read_npz"]


def read_npz(
    path: Path, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The arrays of these names, their checksums verified; no pickles."""
    stored = stored_arrays(path)
    _refuse_lack(path, needed, set(stored))
    names = [*needed, *(name for name in optional if name in stored)]
    arrays = {name: stored[name].load() for name in names}
    return {n: a.astype(a.dtype.newbyteorder("="), copy=False) for n, a in arrays.items()}


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


def _matlab_73(source: Path, needed: Sequence[str]) -> dict[str, NDArray[Any]]:
    """HDF5 has MATLAB's columns as rows."""
    stored = stored_datasets(source)
    return {name: stored[name].read().T for name in needed if name in stored}
