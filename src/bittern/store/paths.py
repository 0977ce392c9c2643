"""Paths of image files in the metadata: relative to the collection, so that both can move."""

from __future__ import annotations

import os
from pathlib import Path

STATE = "file_state"  # of an image in its metadata: size, time of change in ns, hash of the file


def real_folder(file: str | os.PathLike[str]) -> Path:
    """The folder of a file, without links; the file need not exist."""
    return Path(os.path.realpath(file)).parent


def stored_path(target: Path, folder: Path | None) -> str:
    """A path as it is stored: relative to the collection's folder if both are on one drive.

    ``target`` must be absolute, and its folder without links; otherwise ``..`` may lead elsewhere.
    """
    if folder is None or not _on_one_drive(target, folder):
        return target.as_posix()
    return Path(os.path.relpath(target, folder)).as_posix()


def located(stored: str, folder: Path | None) -> Path:
    """The file of a stored path, which may be absolute."""
    return Path(os.path.normpath(Path(folder or "", stored)))


def name_inside(file: Path, root: Path) -> str | None:
    """The path relative to ``root``, with ``/``; None if it is outside."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else None


def _on_one_drive(target: Path, folder: Path) -> bool:
    """Whether two paths are on one file system; if either does not exist, by its parents."""
    if target.drive != folder.drive:
        return False
    return _device(target) == _device(folder)


def _device(path: Path) -> int:
    for there in (path, *path.parents):
        try:
            return there.stat().st_dev
        except OSError:
            continue
    return -1
