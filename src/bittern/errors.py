"""The errors that this package raises on purpose.

BitternError
├── InputError          an array or argument breaks a stated rule   (also a ValueError)
│   ├── PositionError   a row that does not exist                   (also an IndexError)
│   └── FileError       a file is missing, damaged or of another kind
├── NotFittedError      encode() before fit()                       (also a RuntimeError)
├── UnknownNameError    no metric, hasher or dataset of that name   (also a KeyError)
└── MissingExtraError   an optional library is not installed        (also an ImportError)
"""

from __future__ import annotations


class BitternError(Exception):
    """Base class of all errors that this package raises on purpose."""


class InputError(BitternError, ValueError):
    """An array or an argument breaks a stated rule."""


class PositionError(InputError, IndexError):
    """A row that does not exist."""


class FileError(InputError):
    """A file is missing, damaged or of another kind."""


class NotFittedError(BitternError, RuntimeError):
    """A method that needs ``fit`` was called before it."""


class UnknownNameError(BitternError, KeyError):
    """A table has no entry of that name."""

    def __str__(self) -> str:
        """The message itself; ``KeyError`` would put it in quotes."""
        return str(self.args[0])


class MissingExtraError(BitternError, ImportError):
    """An optional library is not installed."""
