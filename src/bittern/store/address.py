"""Where a served collection is: ``milvus://`` addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from bittern.errors import InputError

__all__ = ["Address"]

DEFAULT_NAME, DEFAULT_PORT = "items", 19530


@dataclass(frozen=True, slots=True)
class Address:
    """A server or a file of Milvus Lite, and the name of a collection there.

    >>> Address.parse("milvus://db.example.org/pets")
    Address(uri='http://db.example.org:19530', name='pets', token='', file=None)
    >>> Address.parse("milvus:///data/zoo.db?collection=pets")
    Address(uri='/data/zoo.db', name='pets', token='', file='/data/zoo.db')
    """

    uri: str
    name: str
    token: str  # user and password, if they were in the address
    file: str | None  # of Milvus Lite

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``milvus://[user:password@]host[:port]/NAME`` or ``milvus:///FILE.db?collection=NAME``."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port or DEFAULT_PORT
        except ValueError:
            raise _refusal(text) from None
        asked = parse_qs(parts.query)
        if host:
            name = unquote(parts.path.strip("/"))
            token = (
                f"{unquote(parts.username)}:{unquote(parts.password or '')}"
                if parts.username
                else ""
            )
            found = cls(f"http://{host}:{port}", name, token, None)
            is_good = not asked
        else:
            file = unquote(parts.path)
            found = cls(file, asked.pop("collection", [DEFAULT_NAME])[0], "", file)
            is_good = file.endswith(".db") and not asked
        if not is_good or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,199}", found.name):
            raise _refusal(text)
        return found


def _refusal(text: str) -> InputError:
    shown = re.sub(r"//[^/@]*@", "//…@", text)  # a password is not for the screen
    return InputError(
        "Collection: an address is milvus://host:port/NAME or milvus:///FILE.db?collection=NAME, "
        f"the name of letters, digits and _; got '{shown}'."
    )
