"""Everything this package raises on purpose.

BitternError
├── InputError          an array or argument breaks a stated rule   (also a ValueError)
│   ├── PositionError   a row that is not there                     (also an IndexError)
│   └── FileError       a file is missing, damaged or of another kind
├── NotFittedError      encode() before fit()                       (also a RuntimeError)
├── UnknownNameError    no metric, hasher or dataset of that name   (also a KeyError)
└── MissingExtraError   an optional library is not installed        (also an ImportError)
"""

from __future__ import annotations

__all__ = [
    "BitternError",
    "FileError",
    "InputError",
    "MissingExtraError",
    "NotFittedError",
    "PositionError",
    "UnknownNameError",
]


class BitternError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(BitternError, ValueError):
    """An array or an argument breaks a stated rule."""


class PositionError(InputError, IndexError):
    """A row was asked for that does not exist."""


class FileError(InputError):
    """A file is missing, damaged, or not what it should be."""


class NotFittedError(BitternError, RuntimeError):
    """Something was used before ``fit``."""


class UnknownNameError(BitternError, KeyError):
    """A table has no entry of that name."""

    def __str__(self) -> str:
        """The plain sentence; ``KeyError`` would show it quoted."""
        return str(self.args[0])


class MissingExtraError(BitternError, ImportError):
    """An optional library is needed and not installed."""
