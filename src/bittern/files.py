"""Files written whole or not at all, and read with errors that name them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bittern.errors import FileError

__all__ = ["atomic_write", "existing_file"]


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that takes its place only if the block succeeds.

    After an error, a full disk or Ctrl-C, ``path`` is what it was before and nothing is left over.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({error.strerror}).") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({error.strerror or error}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """``path`` if a file is there; else an error that says so."""
    found = Path(path)
    if found.is_dir():
        raise FileError(f"{found}: is a folder, a file was expected.")
    if not found.exists():
        raise FileError(f"{found}: no such file.")
    return found


def _umask() -> int:
    """The process's file mode mask; POSIX lets one read it only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
