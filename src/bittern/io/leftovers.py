"""Temporary files that say whose they are, so that those of a killed process are removed later."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from socket import gethostname

MARK = re.compile(r"\.bittern-([0-9a-f]{8})-([0-9]+)\.")  # machine and process, in a file's name
AGE = 60  # seconds without a change, before something counts as left over
_looked: set[tuple[int, Path]] = set()  # processes and folders


def own_mark() -> str:
    """A part of the names of this process's temporary files."""
    return f".bittern-{_machine()}-{os.getpid()}."


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders whose process is gone; looks once in each folder.

    Those of other machines, which may share the folder, stay.
    """
    key = (os.getpid(), folder)
    if key in _looked or sys.platform == "win32":  # there, a process cannot be asked for safely
        return
    _looked.add(key)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = MARK.search(entry.name)
            if match and match[1] == _machine() and not _is_alive(int(match[2])):
                _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        if time.time() - entry.stat(follow_symlinks=False).st_mtime < AGE:
            return
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


@cache
def _machine() -> str:
    """A hash of the machine's name, and of whose processes we see: a container may share a name."""
    seen: str | Path = ""
    with suppress(OSError):
        seen = Path("/proc/self/ns/pid").readlink()
    return f"{zlib.crc32(f'{gethostname()} {seen}'.encode(errors='surrogateescape')):08x}"
