"""Pictures from anywhere as ``(h, w, 3)`` uint8: files, bytes, Pillow images, arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.rows import decode_image, read_image
from bittern.errors import InputError

__all__ = ["Picture", "iter_pictures", "to_picture"]

Picture = NDArray[np.uint8]  # (h, w, 3), RGB, upright


def iter_pictures(X: Any, title: str) -> Iterator[Picture]:
    """The pictures one after the other; one alone, or none at all, is refused."""
    if isinstance(X, str | bytes | os.PathLike) or not isinstance(X, Sequence | np.ndarray):
        if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
            raise InputError(f"{title}: X must be a sequence of pictures, got {type(X).__name__}.")
        if isinstance(X, str | bytes):
            raise InputError(f"{title}: X must be a sequence of pictures; one alone goes in [ ].")
    if len(X) == 0:
        raise InputError(f"{title}: X must hold at least one picture.")
    for i in range(len(X)):
        yield to_picture(X[i], f"{title}: picture {i}")


def to_picture(source: Any, title: str) -> Picture:
    """One picture: a path, the bytes of a file, a Pillow image, or an array of pixels.

    Arrays are ``(h, w)`` or ``(h, w, c)`` with 1, 3 or 4 channels, of octets, 16-bit numbers or
    booleans.
    """
    import io

    if isinstance(source, str | os.PathLike):
        return read_image(Path(source))
    if isinstance(source, bytes):
        return decode_image(io.BytesIO(source), title)
    if isinstance(source, np.ndarray):
        return _from_array(source, title)
    if hasattr(source, "convert"):
        return np.asarray(source.convert("RGB"))
    raise InputError(
        f"{title} must be a path, bytes, a Pillow image or an array, got {type(source).__name__}."
    )


def _from_array(pixels: NDArray[Any], title: str) -> Picture:
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    good = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if not good or 0 in pixels.shape:
        raise InputError(
            f"{title} must be of shape (h, w) or (h, w, 1, 3 or 4), got {pixels.shape}."
        )
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * 255
    elif pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        raise InputError(f"{title} must be octets (uint8), got {pixels.dtype}.")
    if pixels.ndim == 2:
        return np.repeat(pixels[:, :, None], 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])
