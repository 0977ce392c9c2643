"""What an address asks: an item, an image, a text, a code, or items for and against."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any

import numpy as np
from fastapi import Query
from numpy.typing import NDArray

from bittern.checks import whole_number
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.web.asked import Id, codes_from, hex_of
from bittern.web.explorer.contents import Contents
from bittern.web.images import Limits, read_own_image, thumbnail
from bittern.web.refusal import Refusal
from bittern.web.searching import image_query, only, text_code

KEPT = 64  # uploaded images that the server remembers
SIDE = 320  # pixels of the small copy of an uploaded image
MOST_EXAMPLES = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """The query in an address; one of the first five, and conditions."""

    item: int | None = None
    image: str | None = None  # the name of an uploaded image
    code: str | None = None
    text: str | None = None
    like: tuple[int, ...] = ()
    unlike: tuple[int, ...] = ()
    where: str | None = None
    to: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        return self.item is None and not (self.image or self.code or self.text or self.like)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A query as a code, and what is shown of it; the vector where it is known."""

    code: Codes
    about: dict[str, Any]
    vector: NDArray[Any] | None = None  # (1, dim)
    item: int | None = None


def asked(
    item: Id | None = None,
    image: Annotated[str | None, Query(max_length=64)] = None,
    code: Annotated[str | None, Query(max_length=4096)] = None,
    text: Annotated[str | None, Query(max_length=10_000)] = None,
    like: Annotated[str, Query(max_length=2000)] = "",
    unlike: Annotated[str, Query(max_length=2000)] = "",
    where: Annotated[str | None, Query(max_length=10_000)] = None,
    to: str | None = None,
) -> Asked:
    """The query of a request."""
    return Asked(item, image, code, text, _ids(like), _ids(unlike), where or None, to or None)


class Uploads:
    """The last images that were uploaded, by the hash of their content: code, vector, small copy.

    A link to one of them works as long as the server remembers it; then the code in the link, which
    finds the same items, takes its place.
    """

    def __init__(self, contents: Contents, limits: Limits) -> None:
        self._contents, self._limits = contents, limits
        self._kept: OrderedDict[str, tuple[Question, bytes]] = OrderedDict()
        self._lock = Lock()

    def add(self, content: bytes) -> dict[str, Any]:
        """Encode an image and remember it; its name and its code."""
        found = image_query(self._contents.source, [content], self._limits)
        name = hashlib.blake2b(content, digest_size=12).hexdigest()
        small, _ = thumbnail(content, 0, SIDE)
        (code,) = hex_of(found.codes)
        about = {"kind": "image", "title": "your image", "image": name, "code": code}
        with self._lock:
            self._kept[name] = (Question(found.codes, about, found.vectors), small)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return {"image": name, "code": code}

    def get(self, name: str) -> tuple[Question, bytes] | None:
        """An image that is still remembered."""
        with self._lock:
            return self._kept.get(name)


def question_of(contents: Contents, query: Asked, uploads: Uploads) -> Question:
    """The query as a code; InputError if there is none."""
    if query.item is not None:
        (shown,) = contents.tiles([query.item])
        return Question(contents.code_of(query.item), {"kind": "item", **shown}, None, query.item)
    if query.text is not None:
        code = text_code(contents.source, query.text)
        about = {"kind": "text", "title": query.text, "code": hex_of(code)[0]}
        return Question(code, about)
    remembered = None if query.image is None else uploads.get(query.image)
    if remembered is not None:
        return remembered[0]
    if query.code is not None:
        code = codes_from([query.code], contents.source.n_bits)
        kind = "an image, of which the server has only the code" if query.image else "a code"
        return Question(code, {"kind": "code", "title": kind, "code": query.code})
    if query.image is not None:
        raise Refusal(404, "The server no longer has this image; drop it again.")
    raise InputError("explore: choose an item, an image or a text to search for.")


def vector_of(contents: Contents, question: Question) -> NDArray[Any] | None:
    """The vector of a query: its own, the stored one of its item, or that of the item's image."""
    if question.vector is not None or question.item is None:
        return question.vector
    stored = contents.source.vectors_of(np.array([question.item], np.int64))
    if stored is not None and stored[1][0]:
        return stored[0]
    return image_vector(contents, question.item)


def image_vector(contents: Contents, item: int) -> NDArray[Any] | None:
    """The vector of an item's image, computed again; None without a readable image."""
    features = contents.source.recipe.features
    if features is None or features.takes != "images":
        return None
    known = contents.collection.get([item]).metadata[0]
    if known.get("modality") == "text":
        return None
    try:
        content = read_own_image(contents.source, item, known)
        return np.asarray(features.transform([content]))
    except BitternError:
        return None


def condition_of(contents: Contents, query: Asked) -> str | None:
    """The condition on the items to find."""
    return only(contents.source, query.to, query.where)


def _ids(listed: str) -> tuple[int, ...]:
    """Ids separated by commas."""
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if len(parts) > MOST_EXAMPLES:
        raise InputError(f"explore: at most {MOST_EXAMPLES} examples, got {len(parts)}.")
    ids = [number for part in parts if (number := whole_number(part)) is not None]
    if len(ids) < len(parts):
        raise InputError(f"explore: ids must be whole numbers with commas, got {listed[:80]!r}.")
    return tuple(ids)
