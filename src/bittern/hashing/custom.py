"""The base class of your own hash functions: a constructor, ``learn`` and ``bits``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from bittern.errors import InputError
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.targets import Targets


class CustomHasher(Hasher):
    """A hash function of your own; a subclass writes three methods.

    1. A constructor takes ``n_bits``, ``random_state`` and the hyper-parameters, all with
       defaults, and stores them unchanged in attributes of the same names.
    2. :meth:`learn` returns what it learned from training rows.
    3. :meth:`bits` computes the bits of rows from that.

    Set ``needs_y = True`` on the class if it learns from ``y``.  Checks of the rows, ``fit``,
    ``encode``, ``transform``, ``save`` and encoding in blocks come from the base class.
    """

    @abstractmethod
    def learn(self, X: Rows, targets: Targets | None) -> Mapping[str, Any]:
        """What was learned, by name; the names end in ``_`` and become attributes.

        ``X`` is ``(n, dim)`` finite floats.  ``targets`` says which rows belong together; it is
        None unless the class needs ``y``.  Values are arrays, numbers, strings or other hashers,
        so that :meth:`save` can write them.
        """

    @abstractmethod
    def bits(self, X: Rows) -> Bits:
        """The bits of rows, ``(n, n_bits)`` booleans; a row's bits depend on that row alone."""

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        self._keep(**check_learned(self.learn(X, targets), self._title))

    def _bits(self, X: Rows) -> Bits:
        return check_bits(self.bits(X), (len(X), self.n_stored_bits), self._title)


def check_learned(learned: Any, title: str) -> Mapping[str, Any]:
    """What ``learn`` returned, if it has names that can be kept."""
    if not isinstance(learned, Mapping):
        kind = type(learned).__name__
        raise InputError(f"{title}: learn() must return a dict of what it learned, got {kind}.")
    for name in learned:
        if (
            not isinstance(name, str)
            or not name.isidentifier()
            or name[0] == "_"
            or name[-1] != "_"
        ):
            raise InputError(
                f"{title}: what is learned has names like 'mean_', which end in _, got {name!r}."
            )
    return learned


def check_bits(bits: Any, shape: tuple[int, int], title: str) -> Bits:
    """What ``bits`` returned, if it is booleans of this shape."""
    found = np.asarray(bits)
    if found.dtype != np.bool_ or found.shape != shape:
        raise InputError(
            f"{title}: bits() must return booleans of shape {shape}, "
            f"got {found.dtype} of shape {found.shape}."
        )
    return found
