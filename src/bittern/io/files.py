"""Find files, write them whole or not at all, and read them with errors that name them."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bittern.errors import BitternError, FileError, InputError, shown
from bittern.io.leftovers import own_mark, remove_leftovers

MOST_NAME = 40  # characters of a file's name that the name of its temporary file repeats
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
MOST_RATIO = 1100  # deflate shrinks by a factor of at most 1032


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that replaces it only if the block succeeds.

    After an error, a full disk or Ctrl-C, ``path`` is unchanged and no temporary file remains; that
    of a killed process is removed by the next one that writes to the folder.
    Links are followed; folders and devices are errors.
    """
    target = Path(os.path.realpath(check_path(path)))
    if target.exists() and not target.is_file():
        raise FileError(f"{path}: cannot be written: it exists and is not an ordinary file.")
    remove_leftovers(target.parent)
    temporary = target.with_name(f"{_marked(target)}{secrets.token_hex(4)}.tmp")
    try:
        handle = os.open(temporary, NEW, 0o666)  # whom the umask allows may read it
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({error.strerror}).") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({_why(error)}).") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_create(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """A free name beside ``path``, for a file or a folder that becomes ``path`` at the end.

    Fails if ``path`` exists, unless it is a file to ``replace``: a database or a folder may hold
    more than would replace it.  After an error, nothing remains, and an old file is as it was.
    """
    target = check_path(path)
    if not (replace and target.is_file()) and (target.exists() or target.is_symlink()):
        raise FileError(f"{path}: exists already; choose another name, or remove it first.")
    remove_leftovers(target.parent)
    try:
        room = Path(tempfile.mkdtemp(dir=target.parent, prefix=_marked(target)))
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({error.strerror}).") from error
    try:
        made = room / target.name
        yield made
        if made.is_dir():
            made.chmod(_usual_mode(room))
        made.replace(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({_why(error)}).") from error
    except FileError as error:  # which names the file that nobody asked for
        said = str(error).replace(os.path.realpath(made), str(target)).replace(str(made), str(path))
        raise FileError(said) from error
    finally:
        shutil.rmtree(room, ignore_errors=True)


@contextmanager
def temporary_folder(prefix: str = "") -> Iterator[Path]:
    """A folder among the system's temporary files; that of a killed process is removed later."""
    place = Path(tempfile.gettempdir())
    remove_leftovers(place)
    try:
        made = Path(tempfile.mkdtemp(dir=place, prefix=f"{prefix}{own_mark()}"))
    except OSError as error:
        raise FileError(f"{place}: cannot be written ({error.strerror}).") from error
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with atomic_write(path) as file:
        file.write(text.encode())


def make_folder(path: Path) -> Path:
    """The folder, created with its parents if it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be created ({error.strerror}).") from error
    return path


def existing_file(path: str | os.PathLike[str], *, pipe: bool = False) -> Path:
    """``path`` if an ordinary file is there; otherwise an error that says what is there.

    A device may never end, and a pipe with a name may wait for ever.  With ``pipe``, for those who
    read once and in order, an open pipe such as ``/dev/stdin`` is a file too.
    """
    found = check_path(path)
    if found.is_dir():
        raise FileError(f"{found}: is a folder, not a file.")
    if not found.exists():
        raise FileError(f"{found}: no such file.")
    is_open_pipe = found.is_fifo() and found.is_absolute() and found.parts[1] in ("dev", "proc")
    if not (found.is_file() or (pipe and is_open_pipe)):
        raise FileError(
            f"{found}: is a pipe, a socket or a device; save its content in an ordinary file first."
        )
    if not os.access(found, os.R_OK):
        raise FileError(f"{found}: cannot be read (Permission denied).")
    return found


def check_path(path: Any) -> Path:
    """``path`` as one that the system can look at; a file need not be there."""
    try:
        found = Path(path)
        found.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except TypeError:
        raise InputError(f"a path must be text or a Path, got {shown(path)}.") from None
    except ValueError:
        raise FileError(f"{path}: cannot be the name of a file (it has a NUL).") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be used ({error.strerror}).") from None
    return found


def find_file(folder: Path, names: Sequence[str], where: Sequence[str] = ("",)) -> Path | None:
    """The first of ``names`` that is a file in ``folder`` or in its subfolders ``where``."""
    places = (folder / place / name for name in names for place in where)
    return next((path for path in places if path.is_file()), None)


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with existing_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn any error that a parser raises on a damaged file into a FileError that names the file.

    Put it around the parser's own calls and nothing else: libraries may raise anything on a damaged
    file, and our own bugs should not look like damage.
    """
    try:
        yield
    except BitternError:
        raise
    except (Exception, MemoryError) as error:
        raise FileError(f"{path}: not a readable {kind} ({reason_of(error)}).") from error


def reason_of(error: BaseException) -> str:
    """The first line of what an error says; its type if it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def is_zip(path: Path) -> bool:
    """Whether a file is a zip file, sound or damaged."""
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:  # it says why when it is opened
        return True


def check_version(path: str | os.PathLike[str], found: object, version: int) -> None:
    """Refuse a file whose format has another version than this package reads."""
    if found == version:
        return
    if isinstance(found, int) and found > version:
        raise FileError(
            f"{path}: was written by a newer version of this package (format {found}, this one "
            f"reads {version}); upgrade with 'pip install --upgrade bittern'."
        )
    raise FileError(
        f"{path}: has no format that this package knows ({found!r}, this one reads {version}); "
        "make the file again."
    )


def refuse_excess(path: str | os.PathLike[str], promised: int, stored: int, what: str) -> None:
    """Raise an error if a header claims more bytes than the stored ones can unpack to."""
    if promised > MOST_RATIO * (stored + 64):
        raise FileError(
            f"{path}: {what} claims {promised} bytes, but {stored} stored bytes cannot hold them."
        )


def _why(error: OSError) -> str:
    """The system's reason; NumPy gives none if it cannot write all of an array."""
    if error.strerror is None and str(error).endswith(" written"):
        return "not all of it; the disk may be full"
    return error.strerror or str(error)


def _marked(target: Path) -> str:
    """The beginning of the name of a temporary file, which must not become too long."""
    return f".{target.name[:MOST_NAME]}{own_mark()}"


def _usual_mode(room: Path) -> int:
    """The mode of a new folder; the umask itself can only be read by setting it for all threads."""
    (room / ".new").mkdir()
    return stat.S_IMODE((room / ".new").stat().st_mode)
