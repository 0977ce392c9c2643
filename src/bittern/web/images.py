"""Images in and out: uploads within limits, and no file but the collection's own images."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bittern.data.images import decode_image, open_image
from bittern.errors import FileError
from bittern.store.paths import located
from bittern.web.refusal import Refusal
from bittern.web.source import Source

MEBIBYTE = 1 << 20
MOST_FILE = 1 << 28  # bytes of an image file that is shown
MOST_LARGEST = 10  # images of the largest size in one request
THUMBNAIL = 256  # pixels of the longer side
MOST_THUMBNAIL = 1024
BROWSER_FORMATS = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif"} | {
    "WEBP": "image/webp",
    "BMP": "image/bmp",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest request, and the largest image in it."""

    n_bytes: int = 32 * MEBIBYTE
    pixels: int = 50_000_000


def check_uploads(images: Sequence[bytes], limits: Limits) -> None:
    """Refuse images that are too large, or take too long together: small files may be huge."""
    n_pixels = sum(_checked(content, limits)[1] for content in images)
    if n_pixels > MOST_LARGEST * limits.pixels:
        raise Refusal(
            413,
            f"The images of a request may have {MOST_LARGEST * limits.pixels:,} pixels together.",
        )


def check_upload(content: bytes, limits: Limits) -> str:
    """The format of an uploaded image, whose header says that it is not too large."""
    return _checked(content, limits)[0]


def _checked(content: bytes, limits: Limits) -> tuple[str, int]:
    """The format and the pixels of an uploaded image."""
    from PIL.Image import DecompressionBombError

    try:
        with open_image(io.BytesIO(content)) as image:
            n_pixels, kind = image.width * image.height, image.format or ""
    except DecompressionBombError:  # hundreds of millions
        n_pixels, kind = limits.pixels + 1, ""
    except Exception:  # Pillow raises a dozen kinds on damaged files
        raise Refusal(415, "The upload is not an image that can be read.") from None
    if n_pixels > limits.pixels:
        raise Refusal(413, f"An image may have at most {limits.pixels:,} pixels.")
    return kind, n_pixels


def read_own_image(source: Source, id_: int, known: dict[str, Any]) -> bytes:
    """The bytes of an item's image, which must be inside the collection's folders of images.

    Links are followed first, so that neither ``..`` nor a link leads out of these folders.
    """
    path = known.get("path")
    if path is None:
        raise Refusal(404, f"The item {id_} has no image.")
    real = Path(os.path.realpath(located(str(path), source.folder)))
    if not any(real.is_relative_to(root) for root in source.roots):
        raise Refusal(403, f"The image of item {id_} is outside the collection's folder of images.")
    try:
        return _read_file(real)
    except OSError:
        raise Refusal(404, f"The image of item {id_} is not there any more.") from None


def whole(content: bytes, id_: int) -> tuple[bytes, str]:
    """An image as browsers show it, and its media type: as it is, or else as PNG."""
    kind = _kind_of(content, id_)
    if kind in BROWSER_FORMATS:
        return content, BROWSER_FORMATS[kind]
    return _encoded(_decoded(content, id_), "PNG"), "image/png"


def thumbnail(content: bytes, id_: int, side: int) -> tuple[bytes, str]:
    """A small JPEG of an image, and its media type."""
    _kind_of(content, id_)
    image = _decoded(content, id_)
    image.thumbnail((side, side))
    return _encoded(image, "JPEG"), "image/jpeg"


def _read_file(path: Path) -> bytes:
    """The content of a regular file; a pipe or a device would never end."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_FILE:
            raise OSError("not a file of an image")
        return file.read()


def _kind_of(content: bytes, id_: int) -> str:
    """The format that the content has, whatever its name says."""
    try:
        with open_image(io.BytesIO(content)) as image:
            return image.format or ""
    except Exception:  # Pillow raises a dozen kinds on damaged files
        raise _unreadable(id_) from None


def _decoded(content: bytes, id_: int) -> Any:
    from PIL import Image

    try:
        return Image.fromarray(decode_image(io.BytesIO(content), f"item {id_}"))
    except FileError:
        raise _unreadable(id_) from None


def _encoded(image: Any, kind: str) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **({"quality": 85} if kind == "JPEG" else {}))
    return out.getvalue()


def _unreadable(id_: int) -> Refusal:
    return Refusal(415, f"The image of item {id_} cannot be read.")
