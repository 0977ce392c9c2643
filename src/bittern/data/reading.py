"""Files that others wrote: found by name, and refused by name where they are damaged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bittern.errors import FileError
from bittern.files import reading

__all__ = ["find_file", "reading", "refuse_excess"]

MOST_RATIO = 1100  # deflate cannot shrink by more than 1032


def find_file(folder: Path, names: Sequence[str], where: Sequence[str] = ("",)) -> Path | None:
    """The first of ``names`` that is a file in ``folder`` or in one of its folders ``where``."""
    places = (folder / place / name for name in names for place in where)
    return next((path for path in places if path.is_file()), None)


def refuse_excess(path: str | os.PathLike[str], promised: int, stored: int, what: str) -> None:
    """Refuse a header that promises more bytes than so many stored ones can unpack to."""
    if promised > MOST_RATIO * (stored + 64):
        raise FileError(
            f"{path}: {what} promises {promised} bytes, which {stored} stored ones cannot hold."
        )
