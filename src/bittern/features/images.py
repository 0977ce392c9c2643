"""Images from anywhere as ``(h, w, 3)`` uint8: files, bytes, Pillow images, arrays."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.decoding import decode_image, halve_depth, image_pixels, read_image
from bittern.errors import InputError

__all__ = ["ImageArray", "iter_images", "to_image"]

ImageArray = NDArray[np.uint8]  # (h, w, 3), RGB, upright, C-contiguous, read-only


def iter_images(X: Any, title: str) -> Iterator[ImageArray]:
    """The images one after the other; one alone, or none at all, is refused at once."""
    if _is_one(X):
        raise InputError(f"{title}: X must be a sequence of images; one alone goes in [ ].")
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise InputError(f"{title}: X must be a sequence of images, got {type(X).__name__}.")
    if len(X) == 0:
        raise InputError(f"{title}: X must hold at least one image.")
    return (to_image(X[i], f"{title}: image {i}") for i in range(len(X)))


def to_image(source: Any, title: str) -> ImageArray:
    """One image: a path, the bytes of a file, a Pillow image, or an array of pixels.

    Files and Pillow images are read as :func:`~bittern.data.decoding.decode_image` says.  Arrays
    are ``(h, w)`` or ``(h, w, c)`` with 1, 3 or 4 channels, of octets, 16-bit numbers or booleans,
    and mean the same: a fourth channel is alpha, laid over white.  ``title`` is for errors; a file
    is named by its path.
    """
    if isinstance(source, str | os.PathLike):
        image = read_image(Path(source))
    elif isinstance(source, bytes | bytearray | memoryview):
        image = decode_image(io.BytesIO(source), title)
    elif isinstance(source, np.ndarray):
        image = _from_array(source, title)
    elif hasattr(source, "convert"):
        image = image_pixels(source, title)
    else:
        kind = type(source).__name__
        raise InputError(f"{title} must be a path, bytes, a Pillow image or an array, got {kind}.")
    return _read_only(image)


def _is_one(X: Any) -> bool:
    """Whether X is a image rather than many."""
    if isinstance(X, np.ndarray):  # a stack of grey images 3 or 4 wide goes in a list
        return X.ndim == 2 or (X.ndim == 3 and X.shape[2] in (3, 4))
    return isinstance(X, str | bytes | bytearray | memoryview | os.PathLike) or hasattr(
        X, "convert"
    )


def _from_array(pixels: NDArray[Any], title: str) -> NDArray[np.uint8]:
    from PIL import Image

    is_grey = pixels.ndim == 2 or pixels.shape[2:] == (1,)
    is_colour = pixels.ndim == 3 and pixels.shape[2] in (3, 4)
    if not (is_grey or is_colour) or 0 in pixels.shape:
        raise InputError(
            f"{title} must be of shape (h, w) or (h, w, 1, 3 or 4), got {pixels.shape}."
        )
    octets = _octets(pixels, title)
    if is_grey:
        return np.repeat(octets.reshape(*octets.shape[:2], 1), 3, axis=2)
    if octets.shape[2] == 4:
        return image_pixels(Image.fromarray(np.ascontiguousarray(octets)), title)
    return np.ascontiguousarray(octets)


def _octets(pixels: NDArray[Any], title: str) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == bool:
        return np.where(pixels, np.uint8(255), np.uint8(0))
    if pixels.dtype == np.uint16:
        return halve_depth(pixels)
    raise InputError(f"{title} must be of uint8, uint16 or bool, got {pixels.dtype}.")


def _read_only(image: NDArray[np.uint8]) -> ImageArray:
    """A view that cannot be written to: one kind of array for compiled code, and no surprises."""
    view = image.view()
    view.flags.writeable = False
    return view
