"""An array in a file, with what is known before it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

KINDS = {**dict.fromkeys("biuf", "numbers"), **dict.fromkeys("USOT", "text")}


@dataclass(frozen=True, slots=True)
class NamedArray:
    """An array in a file, and how to read it."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # for display
    kind: str  # "numbers", "text" or "other"
    is_discrete: bool  # whole numbers, booleans or text
    read: Callable[[], NDArray[Any]]
    parts: tuple[str, ...] = ()  # the columns that were joined

    def __str__(self) -> str:
        return f"{self.dtype} ({', '.join(map(str, self.shape))})"


def named(name: str, shape: tuple[int, ...], dtype: Any, read: Callable[[], Any]) -> NamedArray:
    """An entry for an array of NumPy's type ``dtype``."""
    shown = "text" if KINDS.get(dtype.kind) == "text" else str(dtype)
    kind = "other" if dtype.names else KINDS.get(dtype.kind, "other")
    return NamedArray(name, shape, shown, kind, kind != "other" and dtype.kind != "f", read)
