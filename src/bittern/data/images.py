"""Images as ``(h, w, 3)`` uint8 arrays, decoded by Pillow from files and zip members."""

from __future__ import annotations

import io
import os
import struct
import warnings
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
DEFLATE = 1032  # bytes that one compressed byte can stand for, at most
MOST_PIXELS = {"PNG": 8 * DEFLATE, "GIF": 4096}  # of a byte; LZW's longest string has 4096
_HEIC = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}  # ISO 23008-12


def read_image(path: Path) -> NDArray[np.uint8]:
    """The image in a file."""
    return decode_image(path, str(path))


def decode_image(source: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """An image in a file or in memory as ``(h, w, 3)`` uint8; errors start with ``name``.

    Applies the EXIF orientation, takes the first frame of an animation, puts transparent pixels on
    white, and divides 16-bit grey by 257 (Pillow reduces 16-bit colour to its upper bytes).  An
    image of more than ``PIL.Image.MAX_IMAGE_PIXELS`` pixels is an error before it is decoded.  HEIC
    needs the extra ``heic``.
    """
    try:
        with open_image(source) as image:
            _refuse_bomb(image.width * image.height)
            _refuse_short(image, source)
            return _opaque(_upright(image), image.format)
    except FileError:
        raise
    except Exception as error:  # Pillow's decoders raise a dozen kinds on damaged files
        raise FileError(f"{name}: {_reason(error)}.") from error


def open_image(source: Path | BinaryIO) -> Image:
    """A Pillow image whose pixels are not decoded yet; knows HEIC if the extra is installed.

    Pillow's warnings are left out: about EXIF, and about the number of pixels, which we limit.
    PostScript is refused: it is a program, which Pillow would give to Ghostscript.
    """
    from PIL import Image, UnidentifiedImageError

    file = existing_file(source) if isinstance(source, Path) else source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = Image.open(file)
            if image.format == "EPS":
                image.close()
                raise ValueError("it is PostScript, a program, which is not run")
            return image
        except UnidentifiedImageError:
            if not _is_heic(source):
                raise
        try:
            from pillow_heif import register_heif_opener
        except ImportError:
            raise ValueError(
                "it is HEIC, which needs pillow-heif; pip install 'bittern[heic]'"
            ) from None
        register_heif_opener()
        return Image.open(source)


def exif_of(image: Image) -> Any:
    """The EXIF block; what Pillow cannot read of a damaged one is missing, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return image.getexif()
        except Exception:  # Pillow raises a dozen kinds
            return {}


def image_pixels(image: Image, name: str) -> NDArray[np.uint8]:
    """The same for a Pillow image, which is not changed."""
    try:
        _refuse_bomb(image.width * image.height)
        return _opaque(_upright(image), image.format)
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


def _is_heic(source: Path | BinaryIO) -> bool:
    """Whether the file starts like HEIC, whatever its name."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            start = file.read(12)
    else:
        source.seek(0)
        start = source.read(12)
        source.seek(0)
    return start[4:8] == b"ftyp" and start[8:12] in _HEIC


class _BombError(Exception):
    """An image has more pixels than allowed."""


def _refuse_bomb(n_pixels: int) -> None:
    """Raise an error beyond the limit; up to twice the limit, Pillow only warns."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and n_pixels > limit:
        raise _BombError


def _refuse_short(image: Image, source: Path | BinaryIO) -> None:
    """Raise an error if a file is too short for its pixels; Pillow would make them anyway."""
    most = MOST_PIXELS.get(image.format or "")
    if most is None:
        return
    if isinstance(source, Path):
        n_bytes = source.stat().st_size
    else:
        place = source.tell()
        n_bytes = source.seek(0, os.SEEK_END)
        source.seek(place)
    if image.width * image.height > most * n_bytes:
        raise ValueError("is damaged; it is too short for its pixels")


def _upright(image: Image) -> Image:
    """The image turned as its EXIF orientation says.

    ``ImageOps.exif_transpose`` also writes the EXIF block anew, which fails if it is damaged.
    """
    from PIL.Image import Transpose as Turn

    turns = {
        2: Turn.FLIP_LEFT_RIGHT,
        3: Turn.ROTATE_180,
        4: Turn.FLIP_TOP_BOTTOM,
        5: Turn.TRANSPOSE,
        6: Turn.ROTATE_270,
        7: Turn.TRANSVERSE,
        8: Turn.ROTATE_90,
    }
    image.load()  # which turns TIFF itself
    orientation = exif_of(image).get(0x0112)
    turn = turns.get(orientation) if isinstance(orientation, int) else None
    return image if turn is None else image.transpose(turn)


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
