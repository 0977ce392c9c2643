"""Files that others wrote: found by name, and refused by name where they are damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bittern.io.files import reading, refuse_excess

__all__ = ["find_file", "reading", "refuse_excess"]


def find_file(folder: Path, names: Sequence[str], where: Sequence[str] = ("",)) -> Path | None:
    """The first of ``names`` that is a file in ``folder`` or in one of its folders ``where``."""
    places = (folder / place / name for name in names for place in where)
    return next((path for path in places if path.is_file()), None)
