"""The collection on a server: Milvus keeps the items and searches them."""

from __future__ import annotations

import base64
import json
import os
import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.hits import FAR, NONE, Hits
from bittern.io.files import existing_file
from bittern.store.address import Address
from bittern.store.base import TITLE, Collection, Ids, Items
from bittern.store.conditions import to_milvus
from bittern.store.metadata import Columns, rows_of
from bittern.store.milvus import (
    are_remains,
    connect,
    make_items,
    make_recipe,
    put_entry,
    recipe_name,
    shown,
    speaking,
)
from bittern.store.recipe import Recipe

__all__ = ["ServedCollection"]

FORMAT, VERSION = "bittern collection", 1
MOST = 16_384  # hits that Milvus gives to one query
ANSWERS = 1 << 17  # hits that are asked for at once
ITEMS = 4_096  # items that go over the wire at once
Octets = NDArray[np.uint8]
Found = NDArray[np.int64]  # (n, 3): distance, position, id; in this order
Span = tuple[int, int]  # positions after the one, up to the other
EVER: Span = (-1, np.iinfo(np.int64).max)


class ServedCollection(Collection):
    """A collection in Milvus, as binary vectors under Hamming distance, and searched by it.

    Hits are those of the collection in a file, ties included: Milvus breaks them arbitrarily, so a
    tie that k cuts is asked for whole and put in the order of adding.  ``where`` is the part of SQL
    that :mod:`bittern.store.conditions` tells.  Metadata are dynamic fields; the format, the next
    id, and hasher and feature are text in a second collection, ``NAME_recipe``.

    Milvus has no transactions: of a write that fails or is killed a part may be there; upserting
    the same items again mends it.  Several clients may write if they give the ids.  ``read_only``
    refuses to write, and sees what others write.
    """

    def __init__(self, client: Any, address: Address, *, read_only: bool) -> None:
        self._client, self._address, self.read_only = client, address, read_only
        self._last_position = 0
        head = self._head()
        self.n_bits, self._names = int(head["n_bits"]), dict(head["recipe"])
        self.draft = head.get("draft")

    @classmethod
    def create(
        cls, place: str, n_bits: int, recipe: Recipe, draft: str | None = None
    ) -> Collection:
        """Make a collection, which must not be there yet, and open it."""
        address = Address.parse(place)
        head = {
            "format": FORMAT,
            "version": VERSION,
            "n_bits": n_bits,
            "recipe": recipe.names(),
            "draft": draft,
        }
        entries = {**recipe.to_blobs(), "next_id": b"0", "head": json.dumps(head).encode()}
        client = connect(address)
        try:
            with speaking(address):
                if are_remains(client, recipe_name(address)):
                    client.drop_collection(address.name)
                    client.drop_collection(recipe_name(address))
                if client.has_collection(address.name):
                    raise FileError(f"{shown(address)}: is there already; open() it, or drop it.")
                make_recipe(client, recipe_name(address))
                make_items(client, address.name, n_bits)
                for name, blob in entries.items():  # the head last: with it the collection is whole
                    put_entry(client, recipe_name(address), name, blob)
            return cls(client, address, read_only=False)
        except BaseException:
            client.close()
            raise

    @classmethod
    def open(cls, place: str, *, read_only: bool) -> Collection:
        """Open a collection that is there."""
        address = Address.parse(place)
        if address.file is not None:
            existing_file(address.file)
        client = connect(address)
        try:
            with speaking(address):
                names = address.name, recipe_name(address)
                if not all(client.has_collection(name) for name in names):
                    raise FileError(f"{shown(address)}: there is no such collection.")
                for name in names:
                    client.load_collection(name)
            return cls(client, address, read_only=read_only)
        except BaseException:
            client.close()
            raise

    @classmethod
    def exists(cls, place: str) -> bool:
        """Whether a collection is there, a draft too; not what is left of a killed creation."""
        address = Address.parse(place)
        if address.file is not None and not Path(address.file).exists():
            return False
        client = connect(address)
        try:
            with speaking(address):
                is_there = bool(client.has_collection(address.name))
                return is_there and not are_remains(client, recipe_name(address))
        finally:
            client.close()

    @property
    def place(self) -> str:
        """The address, without user and password."""
        return shown(self._address)

    @cached_property
    def recipe(self) -> Recipe:
        """The hasher and the feature, fetched when they are first needed."""
        wanted = [name for name, kind in self._names.items() if kind is not None]
        blobs = {name: self._entry(name) for name in wanted}
        return Recipe.from_blobs(blobs, self.n_bits, self.place)

    def _counted_on(self, n: int) -> Ids:
        first = int(self._entry("next_id"))
        if first > np.iinfo(np.int64).max - n:
            raise InputError(f"{TITLE}: ids cannot count on from {first - 1}; give them.")
        return np.arange(first, first + n)

    def _which_exist(self, ids: Ids) -> NDArray[np.bool_]:
        known = [self._query(some, ["id"]) for some in _blocks(ids)]
        return np.isin(ids, [row["id"] for rows in known for row in rows])

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._write("insert", codes, ids, columns)

    def _replace(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._write("upsert", codes, ids, columns)

    def _write(self, how: str, codes: Codes, ids: Ids, columns: Columns) -> None:
        positions = self._positions(len(ids))
        octets, known = codes.to_packed("little"), rows_of(columns, len(ids))
        rows = [
            {"id": i, "position": p, "code": o.tobytes(), **row}
            for i, p, o, row in zip(ids.tolist(), positions, octets, known, strict=True)
        ]
        next_id = int(ids.max()) + 1
        with speaking(self._address):
            # First the counter: an id of a write that failed is never given again.
            if next_id > int(self._entry("next_id")):
                put_entry(
                    self._client, recipe_name(self._address), "next_id", str(next_id).encode()
                )
            for begin in range(0, len(rows), ITEMS):
                getattr(self._client, how)(self._address.name, rows[begin : begin + ITEMS])

    def _positions(self, n: int) -> list[int]:
        """Numbers that grow, for other clients too: nanoseconds."""
        first = max(self._last_position + 1, time.time_ns())
        self._last_position = first + n - 1
        return list(range(first, first + n))

    def _delete(self, ids: Ids) -> None:
        with speaking(self._address):
            for some in _blocks(ids):
                self._client.delete(self._address.name, ids=some)

    def _finish(self) -> None:
        head = json.dumps({**self._head(), "draft": None}).encode()
        with speaking(self._address):
            put_entry(self._client, recipe_name(self._address), "head", head)

    def _matching(self, where: str | None) -> Ids:
        rows = self._every(["id"], _expression(where))
        return np.array([row["id"] for row in rows], np.int64)

    def _search(self, queries: Codes, k: int, where: str | None) -> Hits:
        expression = _expression(where)
        k = min(k, self._count(where))
        ids = np.full((len(queries), k), NONE, np.int64)
        distances = np.full((len(queries), k), FAR, np.int32)
        octets, limit = queries.to_packed("little"), min(MOST, 2 * k + 16)
        if k:
            for block in row_blocks(len(queries), limit, ANSWERS):
                answers = self._ask(octets[block], limit, expression)
                for q, found in zip(range(block.start, block.stop), answers, strict=True):
                    nearest = self._completed(octets[q], found, k, limit, expression)
                    ids[q, : len(nearest)] = nearest[:, 2]
                    distances[q, : len(nearest)] = nearest[:, 0]
        return Hits(ids, distances)

    def _within(self, queries: Codes, radius: int, where: str | None) -> Hits:
        expression = _expression(where)
        octets = queries.to_packed("little")
        none = [np.empty((0, 3), np.int64)]
        parts = [self._between(o, 0, radius, expression) for o in octets]
        found = np.concatenate(none + parts)
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return Hits(found[:, 2].copy(), found[:, 0].astype(np.int32), offsets)

    def _completed(
        self, octets: Octets, found: Found, k: int, limit: int, expression: str
    ) -> Found:
        """The k nearest, from the ``limit`` that Milvus took for them."""
        if len(found) < limit:  # everything there is
            return found[:k]
        distance = int(found[-1, 0])  # of this tie there may be more, of nearer ones not
        found = found[found[:, 0] < distance]
        while len(found) < k and distance <= self.n_bits:
            tie = self._between(octets, distance, distance, expression)
            found, distance = np.concatenate([found, tie]), distance + 1
        return found[:k]

    def _between(
        self, octets: Octets, low: int, high: int, expression: str, span: Span = EVER
    ) -> Found:
        """All items at these distances; more than Milvus gives at once are asked for in parts."""
        bounds = {"radius": high + 1, "range_filter": low}  # Milvus: low <= distance < radius
        found = self._ask(octets[None], MOST, _during(expression, span), bounds)[0]
        if len(found) < MOST:
            return found
        if low < high:
            middle = (low + high) // 2
            parts = [(low, middle, expression, span), (middle + 1, high, expression, span)]
        else:
            place = int(found[len(found) // 2 - 1, 1])
            halves = (span[0], place), (place, span[1])
            parts = [(low, high, expression, half) for half in halves]
        return np.concatenate([self._between(octets, *part) for part in parts])

    def _ask(
        self, octets: Octets, limit: int, expression: str, bounds: dict[str, int] | None = None
    ) -> list[Found]:
        """What Milvus finds for each query, by distance, then position."""
        with speaking(self._address):
            answers = self._client.search(
                self._address.name,
                [o.tobytes() for o in octets],
                filter=expression,
                limit=limit,
                output_fields=["position"],
                search_params={"metric_type": "HAMMING", "params": bounds or {}},
                anns_field="code",
            )
        return [_sorted(answer) for answer in answers]

    def _get(self, ids: Ids) -> Items:
        rows = {row["id"]: row for some in _blocks(np.unique(ids)) for row in self._query(some)}
        gone = [i for i in ids.tolist() if i not in rows]  # while we asked
        if gone:
            raise InputError(f"{TITLE}: no item has the id {gone[0]}.")
        taken = [rows[i] for i in ids.tolist()]
        width = -(-self.n_bits // 8)
        octets = np.frombuffer(b"".join(row["code"][0] for row in taken), np.uint8)
        codes = Codes.from_packed(octets.reshape(-1, width), self.n_bits, bitorder="little")
        return Items(ids, codes, [_metadata(row) for row in taken])

    def _count(self, where: str | None) -> int:
        with speaking(self._address):
            (row,) = self._client.query(
                self._address.name, filter=_expression(where), output_fields=["count(*)"]
            )
        return int(row["count(*)"])

    def _export(self, path: str | os.PathLike[str]) -> None:
        """By way of a collection in a file."""
        from bittern.store.embedded import EmbeddedCollection

        placed = sorted((row["position"], row["id"]) for row in self._every(["position"], ""))
        ids = np.array([i for _, i in placed], np.int64)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "export.bittern")
            with EmbeddedCollection.create(file, self.n_bits, Recipe()) as copy:
                for begin in range(0, len(ids), ITEMS):
                    items = self._get(ids[begin : begin + ITEMS])
                    copy.add(items.codes, items.ids, items.metadata)
                copy.export(path)

    def _about(self) -> dict[str, Any]:
        return {**self._names, "metadata": None, "n_bytes": None}

    def _close(self) -> None:
        self._client.close()

    def _query(self, ids: list[int], fields: list[str] | None = None) -> list[dict[str, Any]]:
        with speaking(self._address):
            fields = ["*"] if fields is None else fields
            return list(self._client.query(self._address.name, ids=ids, output_fields=fields))

    def _every(self, fields: list[str], expression: str) -> list[dict[str, Any]]:
        """Some fields of all items that meet a condition."""
        with speaking(self._address):
            rows: list[dict[str, Any]] = []
            pages = self._client.query_iterator(
                self._address.name, filter=expression, output_fields=fields, batch_size=ITEMS
            )
            while page := pages.next():
                rows.extend(page)
            pages.close()
        return rows

    def _head(self) -> dict[str, Any]:
        head: dict[str, Any] = json.loads(self._entry("head"))
        if head.get("format") != FORMAT or head.get("version") != VERSION:
            raise FileError(
                f"{self.place}: was written by another version of this package "
                f"(format {head.get('version')}, this one reads {VERSION})."
            )
        return head

    def _entry(self, name: str) -> bytes:
        """What :func:`put_entry` put under that name."""
        with speaking(self._address):
            rows = self._client.query(
                recipe_name(self._address),
                filter=f'name == "{name}"',
                output_fields=["part", "text"],
            )
        if not rows:
            raise FileError(f"{self.place}: not a whole collection ('{name}' is missing).")
        parts = sorted((row["part"], row["text"]) for row in rows)
        return base64.b64decode("".join(text for _, text in parts))


def _sorted(answer: Any) -> Found:
    rows = [(h["distance"], h["entity"]["position"], h["id"]) for h in answer]
    found = np.array(rows, dtype=object).reshape(-1, 3).astype(np.int64)
    return found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in row if key not in ("id", "position", "code")}


def _expression(where: str | None) -> str:
    return "" if where is None else to_milvus(where)


def _during(expression: str, span: Span) -> str:
    """The condition for items of these positions; bounds inside bounds are too much for Lite."""
    if span == EVER:
        return expression
    bounds = f"position > {span[0]} and position <= {span[1]}"
    return f"({expression}) and {bounds}" if expression else bounds


def _blocks(ids: Ids) -> list[list[int]]:
    return [ids[begin : begin + ITEMS].tolist() for begin in range(0, len(ids), ITEMS)]
