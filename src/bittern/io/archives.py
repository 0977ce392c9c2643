"""Read members of .tar.gz and .zip files, or unpack them into a folder.

The caller names the wanted members and the largest size of each; other members are skipped.  A
member outside the archive's folder is an error, links and devices are never followed, and the whole
stream is limited, so that a small file cannot unpack to a huge one.  ``tarfile``'s
``filter="data"`` does not limit sizes or cover ``zip``, so members are checked here, and
``extractall`` is never called.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bittern.errors import FileError
from bittern.io.files import atomic_write, existing_file, is_zip, reading

SLACK = 1 << 24  # bytes allowed for other members, and for the archive's own headers


def read_members(
    path: str | os.PathLike[str], wanted: Mapping[str, int]
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each wanted member that exists, in the archive's order."""
    for name, stream in _members(existing_file(path), wanted):
        with reading(path, "archive"):
            content = stream.read(wanted[name] + 1)
        _refuse_length(path, name, len(content), wanted)
        yield name, content


def unpack(
    path: str | os.PathLike[str], wanted: Mapping[str, int], folder: str | os.PathLike[str]
) -> list[Path]:
    """Write the wanted members below ``folder``, each whole or not at all; none may be missing."""
    written = {}
    for name, stream in _members(existing_file(path), wanted):
        target = Path(folder) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as file:
            with reading(path, "archive"):
                shutil.copyfileobj(_Bounded(stream, wanted[name] + 1, path), file, 1 << 20)
            _refuse_length(path, name, file.tell(), wanted)
        written[name] = target
    if missing := [name for name in wanted if name not in written]:
        raise FileError(f"{path}: has no {', '.join(missing)}.")
    return list(written.values())


def _members(path: Path, wanted: Mapping[str, int]) -> Iterator[tuple[str, IO[bytes]]]:
    """Each wanted member, open; a repeated one is an error."""
    seen: set[str] = set()
    walk = _zip_members if is_zip(path) else _tar_members
    for name, stream in walk(path, wanted):
        if name in seen:
            raise FileError(f"{path}: has {name} twice.")
        seen.add(name)
        yield name, stream


def _tar_members(path: Path, wanted: Mapping[str, int]) -> Iterator[tuple[str, IO[bytes]]]:
    most = 2 * sum(wanted.values()) + SLACK
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        raw: Any = gzip.GzipFile(fileobj=file) if packed else file
        bounded = _Bounded(raw, most, path)
        with (
            reading(path, ".tar.gz archive"),
            tarfile.open(fileobj=bounded, mode="r|") as archive,
        ):
            for member in archive:
                name = _safe_name(path, member.name)
                if name in wanted and not member.isdir():
                    is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
                    _refuse_kind(path, name, is_plain and not member.issparse())
                    _refuse_length(path, name, member.size, wanted)
                    stream = archive.extractfile(member)
                    assert stream is not None  # it is a plain file
                    yield name, stream
            while bounded.read(1 << 16):  # to the end, where gzip's checksum is
                pass


def _zip_members(path: Path, wanted: Mapping[str, int]) -> Iterator[tuple[str, IO[bytes]]]:
    with reading(path, ".zip archive"), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = _safe_name(path, member.filename)
            if name in wanted and not member.is_dir():
                mode = member.external_attr >> 16
                _refuse_kind(path, name, stat.S_IFMT(mode) in (0, stat.S_IFREG))
                _refuse_length(path, name, member.file_size, wanted)
                with archive.open(member) as stream:
                    yield name, stream


class _Bounded(io.RawIOBase):
    """A stream that fails after ``most`` bytes."""

    def __init__(self, stream: IO[bytes], most: int, path: object) -> None:
        self._stream, self._left, self._path = stream, most, path

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise FileError(f"{self._path}: unpacks to more bytes than expected.")
        return content

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _safe_name(path: Path, name: str) -> str:
    """``name`` without a leading './', if it stays below the archive's folder."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts and name.strip("./\\") == "":
        return name
    if parts[0].startswith("/") or ".." in parts or ":" in parts[0] or "\0" in name:
        raise FileError(f"{path}: the member {name!r} would leave the archive's folder.")
    return "/".join(parts)


def _refuse_kind(path: Path, name: str, is_plain: bool) -> None:
    if not is_plain:
        raise FileError(f"{path}: {name} must be a plain file, not a link or a device.")


def _refuse_length(
    path: str | os.PathLike[str], name: str, length: int, wanted: Mapping[str, int]
) -> None:
    if length > wanted[name]:
        raise FileError(
            f"{path}: {name} may have at most {wanted[name]} bytes, got at least {length}."
        )
