"""Images as ``(h, w, 3)`` uint8 arrays, decoded by Pillow from files and zip members."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file, reading

if TYPE_CHECKING:
    from PIL.Image import Image

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, lengths of name and extra field
_LARGEST = 1 << 28  # bytes of one image file
_ENCRYPTED = 1


def read_image(path: Path) -> NDArray[np.uint8]:
    """The image in a file."""
    try:
        return decode_image(path, str(path))
    except FileError:
        existing_file(path)  # has a better message for a missing file or a folder
        raise


def decode_image(source: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """An image in a file or in memory as ``(h, w, 3)`` uint8; errors start with ``name``.

    Applies the EXIF orientation, takes the first frame of an animation, puts transparent pixels on
    white, and divides 16-bit grey by 257 (Pillow reduces 16-bit colour to its upper bytes).  An
    image of more than ``PIL.Image.MAX_IMAGE_PIXELS`` pixels is an error before it is decoded.
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
    """The same for a Pillow image, which is not changed."""
    from PIL import ImageOps

    try:
        _refuse_bomb(image.width * image.height)
        return _opaque(ImageOps.exif_transpose(image), image.format)
    except Exception as error:  # it may have been opened and not yet decoded
        raise FileError(f"{name}: {_reason(error)}.") from error


def halve_depth(pixels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """16-bit pixels rounded to 8 bits: 0 stays 0, and 65535 becomes 255."""
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)


class _Images(Sequence[Any], ABC):
    """Images that are read on demand, one for each entry of ``_keys``."""

    _keys: NDArray[Any]

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, rows: Any) -> Any:
        chosen = self._keys[rows]
        if isinstance(chosen, np.ndarray):
            return [self._read(key) for key in chosen]
        return self._read(chosen)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return map(self._read, self._keys)

    @abstractmethod
    def _read(self, key: Any) -> NDArray[np.uint8]: ...


class ImageFiles(_Images):
    """Images in files, read on demand: ``images[3]`` is an ``(h, w, 3)`` uint8 array.

    ``read`` turns a path into an array; by default :func:`read_image`.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        read: Callable[[Path], NDArray[np.uint8]] | None = None,
    ) -> None:
        self.paths = self._keys = np.array([str(path) for path in paths], dtype=object)
        self._read_path = read or read_image

    def _read(self, key: str) -> NDArray[np.uint8]:
        return self._read_path(Path(key))


class ZipImages(_Images):
    """Images in a zip file, read on demand: ``images[3]`` is an ``(h, w, 3)`` uint8 array.

    Extracts nothing and keeps no file open, only the offsets of the members, so that threads and
    processes can read at the same time.  ``names`` are the members.
    """

    def __init__(
        self, path: str | os.PathLike[str], members: Sequence[zipfile.ZipInfo] | None = None
    ) -> None:
        self.path = existing_file(path).absolute()
        chosen = list_images(self.path) if members is None else members
        self.names = np.array([member.filename for member in chosen], dtype=object)
        self._keys = np.array([_checked(self.path, member) for member in chosen], dtype=object)

    def _read(self, key: zipfile.ZipInfo) -> NDArray[np.uint8]:
        name = f"{self.path}: {key.filename}"
        try:
            content = _content(self.path, key)
        except (OSError, struct.error, zlib.error) as error:
            raise FileError(f"{name}: cannot be read from the zip file ({error}).") from error
        if len(content) != key.file_size or zlib.crc32(content) != key.CRC:
            raise FileError(f"{name}: is damaged; its checksum is wrong.")
        return decode_image(io.BytesIO(content), name)


def list_images(path: Path) -> list[zipfile.ZipInfo]:
    """The JPEG and PNG members of a zip file, in its order, without hidden ones."""
    with reading(path, "zip file"), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    return [member for member in members if _is_image(member.filename)]


class _BombError(Exception):
    """An image has more pixels than allowed."""


def _refuse_bomb(n_pixels: int) -> None:
    """Raise an error beyond the limit; up to twice the limit, Pillow only warns."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and n_pixels > limit:
        raise _BombError


def _opaque(image: Image, file_format: str | None) -> NDArray[np.uint8]:
    """An image of any mode as RGB, with transparent pixels on white."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and file_format in ("PNG", "PPM")):
        return _from_16_bits(image)
    if image.mode in ("I", "F"):
        raise ValueError(
            "its pixels are 32-bit numbers of unknown range; save it with 8 or 16 bits"
        )
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, "white")
        image = Image.alpha_composite(white, seen)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


def _from_16_bits(image: Image) -> NDArray[np.uint8]:
    """16-bit grey, which Pillow's own conversion would clip at 255."""
    deep: NDArray[Any] = np.asarray(image)
    grey = halve_depth(deep.astype(np.uint16))
    if "transparency" in image.info:
        grey[deep == image.info["transparency"]] = 255
    return np.repeat(grey[:, :, None], 3, axis=2)


def _reason(error: Exception) -> str:
    """Why an image could not be read, without the name that Pillow repeats."""
    from PIL import Image, UnidentifiedImageError

    bomb = _BombError, Image.DecompressionBombError, Image.DecompressionBombWarning
    if isinstance(error, bomb):
        return (
            f"has more than {Image.MAX_IMAGE_PIXELS:,} pixels and might fill the memory; "
            "if you trust it, raise PIL.Image.MAX_IMAGE_PIXELS"
        )
    if isinstance(error, UnidentifiedImageError):
        return "not a readable image (it is empty, damaged, or in a format unknown to Pillow)"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return f"not a readable image ({str(error).rstrip('.') or type(error).__name__})"


def _is_image(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not hidden and path.suffix.lower() in (".jpg", ".jpeg", ".png")


def _checked(path: Path, member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if member.flag_bits & _ENCRYPTED or member.compress_type not in kinds:
        raise FileError(f"{path}: {member.filename} is encrypted or not stored or deflated.")
    if max(member.file_size, member.compress_size) > _LARGEST:
        raise FileError(
            f"{path}: {member.filename} has {member.file_size:,} bytes, too many for an image."
        )
    return member


def _content(path: Path, member: zipfile.ZipInfo) -> bytes:
    with path.open("rb") as file:
        file.seek(member.header_offset)
        signature, n_name, n_extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        if signature != b"PK\3\4":
            raise OSError("no member starts where the zip directory points")
        file.seek(n_name + n_extra, os.SEEK_CUR)
        content = file.read(member.compress_size)
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, member.file_size + 1)
    return content
