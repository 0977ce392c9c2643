"""Matrices that ``scipy.sparse.save_npz`` wrote, checked before SciPy sees them.

SciPy believes indices: with damaged ones its compiled loops read and write outside their arrays.
This is the package's only reader of such files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError, InputError
from bittern.io.files import existing_file, reading
from bittern.io.npz import require_names, stored_arrays, to_native

PARTS = {  # the arrays of each format, besides data and shape
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
NAMES = ("format", "shape", "data")
FREE_ROWS = 1 << 22  # rows that a matrix may have, however few its entries are
ROWS_PER_ENTRY = 64  # beyond these; a list of rows is made that long, and could fill the memory
MOST_PAIRS = 1 << 62  # rows times columns, so that a pair has a number of 64 bits


def holds_sparse(names: Any) -> bool:
    """Whether these names of arrays are those of a sparse matrix."""
    return {"format", "shape"} <= set(names)


def read_sparse(path: str | os.PathLike[str]) -> Any:
    """A 2-D matrix as ``scipy.sparse.csr_array``, its indices checked and its entries summed."""
    source = existing_file(path)
    stored = stored_arrays(source)
    require_names(source, NAMES, stored)
    with reading(source, "sparse matrix"):
        form = _format(source, stored["format"].load())
        wanted = ("coords",) if form == "coo" and "coords" in stored else PARTS[form]
        require_names(source, wanted, stored)
        parts = {name: to_native(stored[name].load()) for name in (*wanted, "data")}
        if parts["data"].dtype == np.float16:  # which SciPy can hold, but not compute with
            parts["data"] = parts["data"].astype(np.float32)
        shape = _shape(source, stored["shape"].load(), parts["data"])
        return _MAKERS[form](source, parts, shape)


def check_indices(matrix: Any, name: str) -> None:
    """Raise InputError if a matrix of SciPy has indices outside of it, before it is converted."""
    check = getattr(matrix, "check_format", None)
    try:
        if check is not None:
            check(full_check=True)
        elif matrix.format == "coo" and matrix.nnz:
            for side, indices in zip(matrix.shape, matrix.coords, strict=True):
                if indices.min() < 0 or indices.max() >= side:
                    raise ValueError(f"an index is outside of {side}")
    except ValueError as error:
        raise InputError(f"{name}: the sparse matrix is damaged ({error}).") from None


def _format(source: Path, said: NDArray[Any]) -> str:
    value = said.item() if said.shape == () else None
    form = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    if not isinstance(form, str) or form not in PARTS:
        raise FileError(
            f"{source}: not a readable sparse matrix (its format must be one of "
            f"{', '.join(PARTS)}, got {form!r})."
        )
    return form


def _shape(source: Path, shape: NDArray[Any], data: NDArray[Any]) -> tuple[int, int]:
    """Rows and columns; not more than the entries make likely."""
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise FileError(f"{source}: a sparse matrix must have two sides, got {shape.tolist()}.")
    if data.dtype.kind not in "biuf":
        raise FileError(f"{source}: a sparse matrix must hold real numbers, got {data.dtype}.")
    rows, columns = int(shape[0]), int(shape[1])
    if rows > FREE_ROWS + ROWS_PER_ENTRY * data.size or rows * columns > MOST_PAIRS:
        raise FileError(
            f"{source}: a sparse matrix of {rows:,} by {columns:,} with {data.size:,} entries is "
            "damaged or nearly empty; leave out rows without entries."
        )
    return rows, columns


def _positions(
    source: Path, values: NDArray[Any], name: str, most: int, size: int | None = None
) -> NDArray[np.int64]:
    """A 1-D array of whole numbers from 0 to ``most`` (excluded), of a given length."""
    is_right = values.ndim == 1 and values.dtype.kind in "iu" and size in (None, len(values))
    if not is_right or (values < 0).any() or (values >= max(most, 0)).any():
        raise FileError(
            f"{source}: not a readable sparse matrix ('{name}' must be whole numbers below {most:,}"
            f"{'' if size is None else f', {size:,} of them'}; got {values.dtype} of shape "
            f"{values.shape})."
        )
    return values.astype(np.int64)


def _compressed(source: Path, parts: dict[str, Any], shape: tuple[int, int], by: int) -> Any:
    """The arrays of a CSR (``by`` 0) or CSC (1) matrix."""
    data = parts["data"]
    if data.ndim != 1:
        raise FileError(f"{source}: not a readable sparse matrix (its data are {data.ndim}-D).")
    indices = _positions(source, parts["indices"], "indices", shape[1 - by], len(data))
    bounds = _positions(source, parts["indptr"], "indptr", len(data) + 1, shape[by] + 1)
    if bounds[0] != 0 or bounds[-1] != len(data) or (np.diff(bounds) < 0).any():
        raise FileError(
            f"{source}: not a readable sparse matrix ('indptr' must ascend to its end)."
        )
    return data, indices, bounds


def _csr(source: Path, parts: dict[str, Any], shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return _summed(csr_array(_compressed(source, parts, shape, 0), shape=shape))


def _csc(source: Path, parts: dict[str, Any], shape: tuple[int, int]) -> Any:
    from scipy.sparse import csc_array

    return _summed(csc_array(_compressed(source, parts, shape, 1), shape=shape))


def _coo(source: Path, parts: dict[str, Any], shape: tuple[int, int]) -> Any:
    from scipy.sparse import coo_array

    data = parts["data"]
    if data.ndim != 1:
        raise FileError(f"{source}: not a readable sparse matrix (its data are {data.ndim}-D).")
    pair = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
    if len(pair) != 2:
        raise FileError(f"{source}: a sparse matrix must have two sides, got {len(pair)}.")
    rows, columns = (
        _positions(source, np.asarray(one), name, side, len(data))
        for one, name, side in zip(pair, ("row", "col"), shape, strict=True)
    )
    return _summed(coo_array((data, (rows, columns)), shape=shape))


def _bsr(source: Path, parts: dict[str, Any], shape: tuple[int, int]) -> Any:
    from scipy.sparse import bsr_array

    data = parts["data"]
    if (
        data.ndim != 3
        or 0 in data.shape[1:]
        or any(n % b for n, b in zip(shape, data.shape[1:], strict=True))
    ):
        raise FileError(
            f"{source}: not a readable sparse matrix (blocks of {data.shape[1:]} do not fill "
            f"{shape[0]:,} by {shape[1]:,})."
        )
    height, width = data.shape[1:]
    blocks = dict(parts, data=np.empty(len(data), np.uint8))  # only their number matters here
    _, indices, bounds = _compressed(source, blocks, (shape[0] // height, shape[1] // width), 0)
    return _summed(bsr_array((data, indices, bounds), shape=shape))


def _dia(source: Path, parts: dict[str, Any], shape: tuple[int, int]) -> Any:
    from scipy.sparse import dia_array

    data, offsets = parts["data"], parts["offsets"]
    is_right = offsets.ndim == 1 and offsets.dtype.kind in "iu" and data.ndim == 2
    if not is_right or len(data) != len(offsets) or len(np.unique(offsets)) != len(offsets):
        raise FileError(f"{source}: not a readable sparse matrix (its diagonals do not fit).")
    if ((offsets <= -max(shape[0], 1)) | (offsets >= max(shape[1], 1))).any():
        raise FileError(f"{source}: not a readable sparse matrix (a diagonal is outside).")
    return _summed(dia_array((data, offsets.astype(np.int64)), shape=shape))


def _summed(matrix: Any) -> Any:
    made = matrix.tocsr()
    made.sum_duplicates()
    return made


_MAKERS = {"csr": _csr, "csc": _csc, "bsr": _bsr, "coo": _coo, "dia": _dia}
