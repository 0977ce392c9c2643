"""How codes of other programs are laid out in arrays: recognised if it is safe, or as said.

bits      booleans, or 0 and 1, one column per bit
signed    one number per bit, which is set if the number is above 0: ±1, or outputs of tanh
packed    bytes of ``np.packbits``
words     64-bit words, bit j in word j // 64
ubinary   packed bytes of sentence-transformers (``precision="ubinary"``)
binary    the same bytes minus 128, as int8 (``precision="binary"``)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.registry import Registry


def laid_out(
    array: NDArray[Any], layout: str | None, where: str, *, n_bits: int | None = None
) -> NDArray[Any]:
    """The codes as booleans (bits), uint8 (packed bytes) or uint64 (words).

    Without a ``layout``, it is recognised by type and values: 0 and 1 are bits, ±1 are signed,
    other uint8 are packed bytes, other uint64 are words.  Bytes and words may also be 0 and 1
    alone; then ``n_bits``, if it is not the number of columns, says that they are packed.
    ``where`` begins errors.
    """
    if layout is not None:
        return LAYOUTS[layout](array, where)
    kind = array.dtype
    is_packed = kind in (np.uint8, np.uint64) and n_bits not in (None, array.shape[1])
    if kind == np.bool_ or (not is_packed and _has_only(array, (0, 1))):
        return _bits(array, where)
    if kind in (np.uint8, np.uint64):
        return array
    if _has_only(array, (-1, 1)) and (array > 0).any() and (array < 0).any():
        return array > 0
    raise FileError(f"{where}: {_unclear(array)}")


def _bits(array: NDArray[Any], where: str) -> NDArray[Any]:
    if array.dtype != np.bool_ and not _has_only(array, (0, 1)):
        raise FileError(f"{where}: bits must be booleans or 0/1, got {_content(array)}.")
    return array.astype(np.bool_, copy=False)


def _signed(array: NDArray[Any], where: str) -> NDArray[Any]:
    """Unsigned numbers are errors, or packed bytes would pass as bits."""
    if array.dtype.kind not in "if" or np.isnan(array).any():
        got = "NaN" if array.dtype.kind == "f" else array.dtype
        raise FileError(
            f"{where}: signed codes are numbers of both signs, like ±1, got {got}; do without "
            "--signed."
        )
    return array > 0


def _packed(array: NDArray[Any], where: str) -> NDArray[Any]:
    return _bytes(array, where, "packed bytes", 0)


def _binary(array: NDArray[Any], where: str) -> NDArray[Any]:
    return _bytes(array, where, "binary embeddings", -128)


def _words(array: NDArray[Any], where: str) -> NDArray[Any]:
    if array.dtype != np.uint64:
        raise FileError(f"{where}: words must be uint64, got {array.dtype}.")
    return array


def _bytes(array: NDArray[Any], where: str, what: str, least: int) -> NDArray[np.uint8]:
    """Whole numbers of any type from ``least`` to ``least + 255``, as bytes from 0 to 255."""
    rule = f"{what} must be whole numbers from {least} to {least + 255}"
    if array.dtype.kind not in "iuf":
        raise FileError(f"{where}: {rule}, got {array.dtype}.")
    inside = (array >= least) & (array <= least + 255) & (array == np.trunc(array))
    if not inside.all():
        raise FileError(f"{where}: {rule}, got {_content(array)}.")
    return (array.astype(np.int16) - least).astype(np.uint8)


LAYOUTS: Registry[Callable[[NDArray[Any], str], NDArray[Any]]] = Registry(
    "layout of codes",
    {
        "bits": _bits,
        "signed": _signed,
        "packed": _packed,
        "words": _words,
        "ubinary": _packed,
        "binary": _binary,
    },
)


def _has_only(array: NDArray[Any], values: tuple[int, int]) -> bool:
    if array.dtype.kind not in "iuf":
        return False
    return bool(((array == values[0]) | (array == values[1])).all())


def _unclear(array: NDArray[Any]) -> str:
    """Why numbers cannot be read as codes, and which option says how."""
    rule = "codes must be bits (booleans or 0/1), ±1, packed uint8 bytes or uint64 words"
    got = f"{rule}, got {_content(array)}"
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            return f"{got}."
        return f"{got}; if the sign is the bit, as for outputs of tanh, pass --signed."
    if array.dtype == np.int8:
        return (
            f"{got}; pass --code-layout binary for packed bytes of sentence-transformers, or "
            "--signed if the sign is the bit."
        )
    if array.dtype.kind not in "iu":
        return f"{got}."
    least, most = int(array.min()), int(array.max())
    if least >= 0 and most <= 255:
        return f"{got}; pass --code-layout packed if they are bytes."
    if least < 0:
        return f"{got}; if the sign is the bit, pass --signed."
    return f"{got}."


def _content(array: NDArray[Any]) -> str:
    """Type and range of the numbers."""
    if array.dtype.kind not in "iuf" or not array.size:
        return f"other values of {array.dtype}"
    if array.dtype.kind == "f" and np.isnan(array).any():
        return f"NaN among {array.dtype}"
    return f"{array.dtype} from {array.min():g} to {array.max():g}"
