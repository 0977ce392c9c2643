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

import re

LONGEST = 1000  # characters of a message; a file or an argument may put anything into it
LAST = 200  # of these, which often say what to do
QUOTED = 200  # characters of an argument
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # would steer a terminal, or are no text


class BitternError(Exception):
    """Base class of all errors that this package raises on purpose."""

    def __str__(self) -> str:
        """The message, without its middle if it is too long to read."""
        return shortened(str(self.args[0]) if len(self.args) == 1 else Exception.__str__(self))


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


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text in one line of at most so many characters; what its middle loses is counted."""
    lines = text.splitlines()
    if lines != [text]:
        text = " ".join(line.strip() for line in lines if line.strip())
    text = CONTROL.sub(_escaped, text)
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


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]
