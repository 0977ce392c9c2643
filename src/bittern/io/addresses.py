"""Addresses of servers: which places are addresses, and how to show one without its password."""

from __future__ import annotations

import os
import re
from typing import Protocol, TypeGuard

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Address(Protocol):
    """A server and the name of a collection there; as text, without the password."""

    @property
    def name(self) -> str:
        """The name of the collection."""

    @property
    def file(self) -> str | None:
        """The file of a server that keeps everything in one; None otherwise."""


def is_address(place: str | os.PathLike[str]) -> TypeGuard[str]:
    """Whether the place is an address of a server, not a path."""
    return isinstance(place, str) and SCHEME.match(place) is not None


def scheme_of(address: str) -> str:
    """What is before ``://``."""
    return address.partition("://")[0]


def without_password(place: str | os.PathLike[str]) -> str:
    """A place as it may be shown.

    >>> without_password("postgresql://me:secret@db.example.org/zoo?collection=pets")
    'postgresql://me@db.example.org/zoo?collection=pets'
    """
    text = os.fspath(place)
    if not is_address(text):
        return text
    hidden = re.sub(r"://([^:@/?]*):.*@", r"://\1@", text, flags=re.DOTALL)
    return re.sub(r"([?&]\w*password=)[^&]*", r"\1…", hidden)
