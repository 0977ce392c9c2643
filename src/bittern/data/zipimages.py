"""Images inside a zip file, read where they are."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.decoding import decode_image
from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.io.finding import reading

__all__ = ["ZipImages", "list_images"]

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, lengths of name and extra field
_LARGEST = 1 << 28  # octets of one image file
_ENCRYPTED = 1


class ZipImages(Sequence[Any]):
    """Images in a zip file, each read when asked for: ``images[3]`` is ``(h, w, 3)`` uint8.

    Nothing is extracted, and no file stays open: the places of the members are remembered, so that
    threads and forked or spawned processes may read at once.  ``names`` are the members.
    """

    def __init__(
        self, path: str | os.PathLike[str], members: Sequence[zipfile.ZipInfo] | None = None
    ) -> None:
        self.path = existing_file(path).absolute()
        chosen = list_images(self.path) if members is None else members
        self.names = np.array([member.filename for member in chosen], dtype=object)
        self._members = np.empty(len(chosen), dtype=object)
        self._members[:] = [_checked(self.path, member) for member in chosen]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: Any) -> Any:
        chosen = self._members[rows]
        if isinstance(chosen, zipfile.ZipInfo):
            return self._read(chosen)
        return [self._read(member) for member in chosen]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self._read(member) for member in self._members)

    def _read(self, member: zipfile.ZipInfo) -> NDArray[np.uint8]:
        name = f"{self.path}: {member.filename}"
        try:
            content = _content(self.path, member)
        except (OSError, struct.error, zlib.error) as error:
            raise FileError(f"{name}: cannot be read out of the zip file ({error}).") from error
        if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
            raise FileError(f"{name}: is damaged; its checksum does not hold.")
        return decode_image(io.BytesIO(content), name)


def list_images(path: Path) -> list[zipfile.ZipInfo]:
    """The JPEG and PNG members of a zip file, in its order; hidden ones are passed over."""
    with reading(path, "zip file"), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    return [member for member in members if _is_image(member.filename)]


def _is_image(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not hidden and path.suffix.lower() in (".jpg", ".jpeg", ".png")


def _checked(path: Path, member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if member.flag_bits & _ENCRYPTED or member.compress_type not in kinds:
        raise FileError(f"{path}: {member.filename} is encrypted or not stored or deflated.")
    if max(member.file_size, member.compress_size) > _LARGEST:
        raise FileError(f"{path}: {member.filename} says it has {member.file_size:,} bytes.")
    return member


def _content(path: Path, member: zipfile.ZipInfo) -> bytes:
    with path.open("rb") as file:
        file.seek(member.header_offset)
        signature, n_name, n_extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        if signature != b"PK\3\4":
            raise OSError("no member starts where the directory says")
        file.seek(n_name + n_extra, os.SEEK_CUR)
        content = file.read(member.compress_size)
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, member.file_size + 1)
    return content
