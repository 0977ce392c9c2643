"""Tables of names that suggest the nearest name for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TypeVar

from bittern.errors import UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """A read-only table from names to things of one kind, in the order given.

    >>> colours = Registry("colour", {"red": 1, "green": 2})
    >>> colours["red"]
    1
    >>> colours["gren"]
    Traceback (most recent call last):
    bittern.errors.UnknownNameError: no colour is called 'gren'; did you mean 'green'?

    ``former`` maps old names, which keep working but are not listed, to the present ones.
    """

    def __init__(
        self, kind: str, entries: Mapping[str, T], *, former: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self._former = dict(former or {})

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[self._former.get(name, name)]
        except KeyError:
            raise UnknownNameError(self.refusal(name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<{len(self)} {self.kind}s: {', '.join(self)}>"

    def refusal(self, name: object) -> str:
        """The error for an unknown ``name``: it lists the nearest known names, or all of them."""
        near = difflib.get_close_matches(str(name), self._entries, n=3)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"there are {', '.join(self)}."
        )
        return f"no {self.kind} is called {name!r}; {hint}"
