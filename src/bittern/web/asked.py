"""What requests may say, checked: the models behind the API and its documentation."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bittern.checks import LARGEST_ID
from bittern.codes import Codes
from bittern.web.refusal import Refusal

MOST_K, MOST_QUERIES, MOST_ITEMS = 10_000, 256, 10_000
KINDS = ("vectors", "codes", "image", "id", "text", "like")

Id = Annotated[int, Field(ge=0, le=LARGEST_ID)]
# Lists end at their first mistake: millions of them would fill the memory.
Code = str | Annotated[list[int], Field(fail_fast=True)]  # hexadecimal of packed bytes, or bits
Vector = Annotated[list[float], Field(fail_fast=True)]
Base64 = Annotated[str, Field(description="The bytes of an image file, in base64.")]


class Search(BaseModel):
    """A search: one kind of query, and what to return."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"id": 7, "k": 10},
                {"codes": ["0f3a99c4d2e17b60"], "radius": 6},
                {"vectors": [[0.12, -1.5, 0.3]], "k": 5, "where": "label = 'cat'"},
                {"text": "a boat at sunset", "k": 20},
                {"like": [3, 8], "unlike": [12], "k": 20},
            ]
        },
    )

    vectors: list[Vector] | None = Field(
        None,
        max_length=MOST_QUERIES,
        description="Vectors, as the hasher was fitted on; one search each.",
    )
    codes: list[Code] | None = Field(
        None,
        max_length=MOST_QUERIES,
        description="Codes, one search each: hexadecimal digits of their bytes as np.packbits "
        "lays them out, or lists of bits.",
    )
    image: Base64 | None = None
    id: Id | None = Field(None, description="Search for what is like this item.")
    text: str | None = Field(None, max_length=10_000)
    like: list[Id | Base64] | None = Field(
        None, max_length=100, description="Examples for: ids, or images in base64."
    )
    unlike: list[Id | Base64] | None = Field(
        None, max_length=100, description="Examples against, beside 'like'."
    )
    k: int | None = Field(None, ge=1, le=MOST_K, description="Number of hits; by default 10.")
    radius: int | None = Field(None, ge=0, description="All items within this distance instead.")
    where: str | None = Field(
        None, max_length=10_000, description="A condition on metadata, such as label = 'cat'."
    )
    to: str | None = Field(None, description="'image' or 'text', in a collection of both.")
    rerank: int | None = Field(
        None,
        ge=1,
        le=MOST_K,
        description="Take so many nearest items, and rank them by their stored vectors.",
    )
    metadata: bool = Field(True, description="Whether hits have their metadata.")
    histogram: bool = Field(False, description="Also count all items by distance.")

    @model_validator(mode="after")
    def _check(self) -> Search:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(KINDS)}; got {', '.join(given) or 'none'}")
        if self.k is not None and self.radius is not None:
            raise ValueError("give k or radius, not both")
        if self.unlike and self.like is None:
            raise ValueError("'unlike' needs 'like'")
        if self.like is not None and (not self.like or self.radius is not None or self.rerank):
            raise ValueError("'like' needs at least one example, and k, not radius or rerank")
        rows = self.vectors if self.vectors is not None else self.codes
        if rows is not None and not rows:
            raise ValueError("a search needs at least one query")
        return self


class Add(BaseModel):
    """Items to add: codes, vectors or images, with their metadata."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"codes": ["0f3a99c4d2e17b60"], "metadata": [{"label": "cat"}]},
                {"vectors": [[0.12, -1.5, 0.3]], "ids": [17], "replace": True},
            ]
        },
    )

    codes: list[Code] | None = Field(None, max_length=MOST_ITEMS)
    vectors: list[Vector] | None = Field(None, max_length=MOST_ITEMS)
    images: list[Base64] | None = Field(None, max_length=MOST_ITEMS)
    ids: list[Id] | None = Field(
        None, max_length=MOST_ITEMS, description="By default they continue from the largest."
    )
    metadata: list[dict[str, Any]] | None = Field(
        None, max_length=MOST_ITEMS, description="One object for each item."
    )
    replace: bool = Field(False, description="Whether items with these ids are replaced.")

    @model_validator(mode="after")
    def _check(self) -> Add:
        given = [x for x in (self.codes, self.vectors, self.images) if x is not None]
        if len(given) != 1:
            raise ValueError("give one of codes, vectors, images")
        if not given[0]:
            raise ValueError("one request adds at least one item")
        if self.replace and self.ids is None:
            raise ValueError("'replace' needs ids")
        return self


class Delete(BaseModel):
    """Items to delete: by ids, or by a condition."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"ids": [3, 4]}, {"where": "label = 'test'"}]},
    )

    ids: list[Id] | None = Field(None, max_length=100_000)
    where: str | None = Field(None, max_length=10_000)

    @model_validator(mode="after")
    def _check(self) -> Delete:
        if (self.ids is None) == (self.where is None):
            raise ValueError("give ids or where")
        return self


def codes_from(given: list[Code], n_bits: int) -> Codes:
    """The codes that a request has as hexadecimal digits or as bits."""
    n_bytes = -(-n_bits // 8)
    packed = np.zeros((len(given), n_bytes), np.uint8)
    for row, code in enumerate(given):
        packed[row] = _packed(code, n_bits, n_bytes, row)
    return Codes.from_packed(packed, n_bits)


def hex_of(codes: Codes) -> list[str]:
    """Codes as hexadecimal digits, as requests have them."""
    return [row.tobytes().hex() for row in codes.to_packed()]


def image_bytes(text: str) -> bytes:
    """What base64 says; a browser's ``data:`` address is fine too."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(400, "An image must be the bytes of a file in base64.") from None


def _packed(code: Code, n_bits: int, n_bytes: int, row: int) -> Any:
    if isinstance(code, str):
        try:
            packed = bytes.fromhex(code)
        except ValueError:
            packed = b""
        if len(packed) != n_bytes or len(code) != 2 * n_bytes:
            raise Refusal(
                422,
                f"Code {row} must be {2 * n_bytes} hexadecimal digits for the {n_bits} bits of "
                f"this collection, got {code[:40]!r}.",
            )
        spare = 8 * n_bytes - n_bits
        if spare and packed[-1] & ((1 << spare) - 1):
            raise Refusal(422, f"Code {row} has bits set beyond the {n_bits} of this collection.")
        return np.frombuffer(packed, np.uint8)
    if len(code) != n_bits or not set(code) <= {0, 1}:
        raise Refusal(
            422, f"Code {row} must have the {n_bits} bits of this collection, each 0 or 1."
        )
    return np.packbits(np.array(code, np.uint8))
