"""Locks between processes on every system; they end with the block, or with the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bittern.errors import FileError


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Lock a file during the block, and yield whether we hold it: always, if we ``wait``.

    The file may be missing, and may stay behind, unlocked.
    """
    from filelock import FileLock, Timeout

    lock, is_ours = FileLock(path), True
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        is_ours = False
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path}: cannot be locked ({reason}).") from error
    try:
        yield is_ours
    finally:
        if is_ours:
            lock.release()
