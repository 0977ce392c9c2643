"""Images of every kind as ``(h, w, 3)`` uint8: decoded by Pillow, upright, opaque, in RGB."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["decode_image", "halve_depth", "image_pixels", "read_image"]


def read_image(path: Path) -> NDArray[np.uint8]:
    """The image in a file; a file that holds none is refused by name."""
    try:
        return decode_image(path, str(path))
    except FileError:
        existing_file(path)  # says it better if there is none, or a folder
        raise


def decode_image(source: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """A image in a file or in memory as ``(h, w, 3)`` uint8; ``name`` is for errors.

    Turned upright as EXIF says; of an animation the first frame; alpha laid over white; grey of
    16 bits divided by 257.  (Colour of 16 bits comes from Pillow as the upper octets.)  A image
    of more than ``PIL.Image.MAX_IMAGE_PIXELS`` pixels is refused before it is decoded.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(source) as image:
            _refuse_bomb(image.width * image.height)
            ImageOps.exif_transpose(image, in_place=True)
            return _opaque(image, image.format)
    except Exception as error:  # Pillow's decoders raise a dozen kinds on damaged files
        raise FileError(f"{name}: {_reason(error)}.") from error


def image_pixels(image: Image, name: str) -> NDArray[np.uint8]:
    """The same of a Pillow image, which stays as it is."""
    from PIL import ImageOps

    try:
        _refuse_bomb(image.width * image.height)
        return _opaque(ImageOps.exif_transpose(image), image.format)
    except Exception as error:  # it may have been opened and not yet decoded
        raise FileError(f"{name}: {_reason(error)}.") from error


def halve_depth(pixels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """The nearest of 256 values to each of 65,536: 0 stays 0, and 65535 is 255."""
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)


class _BombError(Exception):
    """More pixels than are allowed."""


def _refuse_bomb(n_pixels: int) -> None:
    """Refuse what Pillow only warns of: up to twice its limit."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and n_pixels > limit:
        raise _BombError


def _opaque(image: Image, file_format: str | None) -> NDArray[np.uint8]:
    """An image of any mode in RGB, over white where it is transparent."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and file_format in ("PNG", "PPM")):
        return _from_16_bits(image)
    if image.mode in ("I", "F"):
        raise ValueError(
            "its pixels are numbers of 32 bits without a known range; save it with 8 or 16 bits"
        )
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, "white")
        image = Image.alpha_composite(white, seen)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


def _from_16_bits(image: Image) -> NDArray[np.uint8]:
    """Grey of 16 bits, which Pillow's own conversion would clip at 255."""
    deep: NDArray[Any] = np.asarray(image)
    grey = halve_depth(deep.astype(np.uint16))
    if "transparency" in image.info:
        grey[deep == image.info["transparency"]] = 255
    return np.repeat(grey[:, :, None], 3, axis=2)


def _reason(error: Exception) -> str:
    """Why a image could not be read, without Pillow's repetition of its name."""
    from PIL import Image, UnidentifiedImageError

    bomb = _BombError, Image.DecompressionBombError, Image.DecompressionBombWarning
    if isinstance(error, bomb):
        return (
            f"has more than {Image.MAX_IMAGE_PIXELS:,} pixels, as files made to fill the memory "
            "have; if it is meant so, raise PIL.Image.MAX_IMAGE_PIXELS"
        )
    if isinstance(error, UnidentifiedImageError):
        return "not a readable image (it is empty, damaged, or of a format unknown to Pillow)"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return f"not a readable image ({str(error).rstrip('.') or type(error).__name__})"
