"""The errors that this package raises on purpose.

BitternError
├── InputError          an array or argument breaks a stated rule   (also a ValueError)
│   ├── PositionError   a row that does not exist                   (also an IndexError)
│   ├── KindError       an argument of the wrong kind               (also a TypeError)
│   └── FileError       a file is missing, damaged or of another kind
├── NotFittedError      encode() before fit()                       (also a RuntimeError)
├── UnknownNameError    no metric, hasher or dataset of that name   (also a KeyError)
└── MissingExtraError   an optional library is not installed        (also an ImportError)
"""

from __future__ import annotations

LONGEST = 1000  # characters of a message; a file or an argument may put anything into it
LAST = 200  # of these, which often say what to do
QUOTED = 200  # characters of an argument


class BitternError(Exception):
    """Base class of all errors that this package raises on purpose."""

    def __str__(self) -> str:
        """The message on one line, without its middle if it is too long to read."""
        said = str(self.args[0]) if len(self.args) == 1 else Exception.__str__(self)
        return shortened(said)


class InputError(BitternError, ValueError):
    """An array or an argument breaks a stated rule."""


class PositionError(InputError, IndexError):
    """A row that does not exist."""


class KindError(InputError, TypeError):
    """An argument of the wrong kind."""


class FileError(InputError):
    """A file is missing, damaged or of another kind."""


class NotFittedError(BitternError, RuntimeError):
    """A method that needs ``fit`` was called before it."""


class UnknownNameError(BitternError, KeyError):
    """A table has no entry of that name."""

    def __str__(self) -> str:
        """The message itself; ``KeyError`` would put it in quotes."""
        return BitternError.__str__(self)


class MissingExtraError(BitternError, ImportError):
    """An optional library is not installed."""


def printable(text: str, kept: str = "") -> str:
    r"""A text on one line, with escapes in place of what would command a terminal.

    Names of files, and in files, may contain line breaks, and codes that erase or forge lines.
    Those in ``kept`` stay.

    >>> printable("a" + chr(10) + "b")
    'a\\nb'
    """
    if text.isprintable():
        return text
    from unicodedata import category

    return "".join(
        c if c.isprintable() or c in kept or category(c) == "Zs" else ascii(c)[1:-1] for c in text
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """A printable text of at most so many characters; what is left out of its middle is counted."""
    text = printable(text)
    if len(text) <= longest:
        return text
    last = min(LAST, longest // 2)
    first = longest - last
    return f"{text[:first]} […{len(text) - first - last:,} characters…] {text[-last:]}"


def shown(value: object) -> str:
    """An argument as an error quotes it, in few characters; of an array, its shape."""
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    try:
        return shortened(repr(value), QUOTED)
    except Exception:  # of a whole number of thousands of digits, or whatever a class does
        return f"a {type(value).__name__} that cannot be shown"
