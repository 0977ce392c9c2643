"""The collection on a Milvus server, which stores the items and searches them."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.hits import FAR, NONE, Hits
from bittern.io.files import existing_file
from bittern.io.metadata import Columns, rows_of
from bittern.io.milvus import MilvusAddress, connect, create_items, milvus_errors
from bittern.store.base import TITLE, Ids, Items, new_head
from bittern.store.conditions import to_milvus
from bittern.store.milvus import create_recipe, is_incomplete, put_entry
from bittern.store.recipe import Recipe
from bittern.store.served import ITEMS_PER_CALL, ServedCollection, item_blocks, new_entries

MAX_HITS = 16_384  # that Milvus returns for one query
HITS_PER_CALL = 1 << 17
PackedCodes = NDArray[np.uint8]
HitRows = NDArray[np.int64]  # (n, 3): distance, position, id; sorted in this order
Positions = tuple[int, int]  # after the first, up to the second
ALL_POSITIONS: Positions = (-1, np.iinfo(np.int64).max)


class MilvusCollection(ServedCollection):
    """A collection in Milvus, which stores and searches binary vectors by Hamming distance.

    Returns the same hits as a collection in a file, ties included: Milvus breaks ties arbitrarily,
    so a tie that k cuts is fetched whole and sorted by the order of adding.  ``where`` is the part
    of SQL described in :mod:`bittern.store.conditions`.  Metadata are dynamic fields; the format,
    the next id, and hasher and feature are text in a second collection, ``NAME_recipe``.

    Milvus has no transactions: a write that fails or is killed may be stored in part; upserting the
    same items again repairs it.  Several clients may write if they give the ids.
    """

    library = "pymilvus"
    _address: MilvusAddress

    def __init__(self, client: Any, address: MilvusAddress, *, read_only: bool) -> None:
        self._client, self._address, self.read_only = client, address, read_only
        self._last_position = 0
        self._read_description()

    @classmethod
    def parse(cls, place: str) -> MilvusAddress:
        """The address, checked."""
        return MilvusAddress.parse(place)

    @classmethod
    def create(
        cls, place: str, n_bits: int, recipe: Recipe, draft: str | None = None
    ) -> MilvusCollection:
        """Make a new collection and open it."""
        address = cls.parse(place)
        entries = new_entries(new_head(n_bits, recipe, draft), recipe)
        client = connect(address)
        try:
            with milvus_errors(address):
                if is_incomplete(client, address.recipe_name):
                    client.drop_collection(address.name)
                    client.drop_collection(address.recipe_name)
                if client.has_collection(address.name):
                    raise FileError(f"{address}: exists already; open() it, or drop it.")
                create_recipe(client, address.recipe_name)
                create_items(client, address.name, n_bits)
                for name, blob in entries.items():  # the head comes last and completes it
                    put_entry(client, address.recipe_name, name, blob)
            return cls(client, address, read_only=False)
        except BaseException:
            client.close()
            raise

    @classmethod
    def open(cls, place: str, *, read_only: bool) -> MilvusCollection:
        """Open an existing collection."""
        address = cls.parse(place)
        if address.file is not None:
            existing_file(address.file)
        client = connect(address)
        try:
            with milvus_errors(address):
                names = address.name, address.recipe_name
                if not all(client.has_collection(name) for name in names):
                    raise FileError(f"{address}: there is no such collection.")
                for name in names:
                    client.load_collection(name)
            return cls(client, address, read_only=read_only)
        except BaseException:
            client.close()
            raise

    @classmethod
    def exists(cls, place: str) -> bool:
        """Whether a collection or a draft exists; False after an interrupted creation."""
        address = cls.parse(place)
        if address.file is not None and not Path(address.file).exists():
            return False
        client = connect(address)
        try:
            with milvus_errors(address):
                is_there = bool(client.has_collection(address.name))
                return is_there and not is_incomplete(client, address.recipe_name)
        finally:
            client.close()

    def _which_exist(self, ids: Ids) -> NDArray[np.bool_]:
        known = [self._query(some, ["id"]) for some in _blocks(ids)]
        return np.isin(ids, [row["id"] for rows in known for row in rows])

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._write("insert", codes, ids, columns)

    def _replace(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._write("upsert", codes, ids, columns)

    def _write(self, how: str, codes: Codes, ids: Ids, columns: Columns) -> None:
        positions = self._positions(len(ids))
        packed, metadata = codes.to_packed("little"), rows_of(columns, len(ids))
        rows = [
            {"id": i, "position": p, "code": code.tobytes(), **row}
            for i, p, code, row in zip(ids.tolist(), positions, packed, metadata, strict=True)
        ]
        next_id = int(ids.max()) + 1
        with milvus_errors(self._address):
            # The counter first: an id of a failed write is never given again.
            if next_id > int(self._entry("next_id")):
                self._put_entry("next_id", str(next_id).encode())
            for block in item_blocks(len(rows)):
                getattr(self._client, how)(self._address.name, rows[block])

    def _positions(self, n: int) -> list[int]:
        """Increasing numbers, also across clients: nanoseconds."""
        first = max(self._last_position + 1, time.time_ns())
        self._last_position = first + n - 1
        return list(range(first, first + n))

    def _delete(self, ids: Ids) -> None:
        with milvus_errors(self._address):
            for some in _blocks(ids):
                self._client.delete(self._address.name, ids=some)

    def _set_metadata(self, ids: Ids, columns: Columns) -> None:
        new = dict(zip(ids.tolist(), rows_of(columns, len(ids)), strict=True))
        for some in _blocks(ids):
            rows = self._query(some, ["position", "code"])
            changed = [
                {"id": i, "position": row["position"], "code": row["code"][0], **new[i]}
                for row in rows
                for i in [row["id"]]
            ]
            with milvus_errors(self._address):
                self._client.upsert(self._address.name, changed)

    def _put_entry(self, name: str, content: bytes) -> None:
        with milvus_errors(self._address):
            put_entry(self._client, self._address.recipe_name, name, content)

    def _matching(self, where: str | None) -> Ids:
        rows = self._query_all(["id"], _expression(where))
        return np.array([row["id"] for row in rows], np.int64)

    def _search(self, queries: Codes, k: int, where: str | None) -> Hits:
        expression = _expression(where)
        k = min(k, self._count(where))
        ids = np.full((len(queries), k), NONE, np.int64)
        distances = np.full((len(queries), k), FAR, np.int32)
        packed, limit = queries.to_packed("little"), min(MAX_HITS, 2 * k + 16)
        if k:
            for block in row_blocks(len(queries), limit, HITS_PER_CALL):
                answers = self._search_milvus(packed[block], limit, expression)
                for q, found in zip(range(block.start, block.stop), answers, strict=True):
                    nearest = self._with_whole_ties(packed[q], found, k, limit, expression)
                    ids[q, : len(nearest)] = nearest[:, 2]
                    distances[q, : len(nearest)] = nearest[:, 0]
        return Hits(ids, distances)

    def _within(self, queries: Codes, radius: int, where: str | None) -> Hits:
        expression = _expression(where)
        none = [np.empty((0, 3), np.int64)]
        packed = queries.to_packed("little")
        parts = [self._between(code, 0, radius, expression) for code in packed]
        found = np.concatenate(none + parts)
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return Hits(found[:, 2].copy(), found[:, 0].astype(np.int32), offsets)

    def _with_whole_ties(
        self, code: PackedCodes, found: HitRows, k: int, limit: int, expression: str
    ) -> HitRows:
        """The k nearest with ties in our order, from the ``limit`` hits that Milvus returned."""
        if len(found) < limit:  # these are all items
            return found[:k]
        distance = int(found[-1, 0])  # only this last tie can be incomplete
        found = found[found[:, 0] < distance]
        while len(found) < k and distance <= self.n_bits:
            tie = self._between(code, distance, distance, expression)
            found, distance = np.concatenate([found, tie]), distance + 1
        return found[:k]

    def _between(
        self,
        code: PackedCodes,
        low: int,
        high: int,
        expression: str,
        positions: Positions = ALL_POSITIONS,
    ) -> HitRows:
        """All items at these distances; fetched in parts if Milvus cannot return all at once."""
        bounds = {"radius": high + 1, "range_filter": low}  # Milvus: low <= distance < radius
        condition = _at_positions(expression, positions)
        found = self._search_milvus(code[None], MAX_HITS, condition, bounds)[0]
        if len(found) < MAX_HITS:
            return found
        if low < high:
            middle = (low + high) // 2
            parts = [
                (low, middle, expression, positions),
                (middle + 1, high, expression, positions),
            ]
        else:
            middle = int(found[len(found) // 2 - 1, 1])
            halves = (positions[0], middle), (middle, positions[1])
            parts = [(low, high, expression, half) for half in halves]
        return np.concatenate([self._between(code, *part) for part in parts])

    def _search_milvus(
        self, codes: PackedCodes, limit: int, expression: str, bounds: dict[str, int] | None = None
    ) -> list[HitRows]:
        """Milvus's hits for each query, sorted by distance, then position."""
        with milvus_errors(self._address):
            answers = self._client.search(
                self._address.name,
                [code.tobytes() for code in codes],
                filter=expression,
                limit=limit,
                output_fields=["position"],
                search_params={"metric_type": "HAMMING", "params": bounds or {}},
                anns_field="code",
            )
        return [_sorted(answer) for answer in answers]

    def _get(self, ids: Ids) -> Items:
        rows = {row["id"]: row for some in _blocks(np.unique(ids)) for row in self._query(some)}
        gone = [i for i in ids.tolist() if i not in rows]  # deleted meanwhile
        if gone:
            raise InputError(f"{TITLE}: no item has the id {gone[0]}.")
        taken = [rows[i] for i in ids.tolist()]
        width = -(-self.n_bits // 8)
        packed = np.frombuffer(b"".join(row["code"][0] for row in taken), np.uint8)
        codes = Codes.from_packed(packed.reshape(-1, width), self.n_bits, bitorder="little")
        return Items(ids, codes, [_metadata(row) for row in taken])

    def _count(self, where: str | None) -> int:
        with milvus_errors(self._address):
            (row,) = self._client.query(
                self._address.name, filter=_expression(where), output_fields=["count(*)"]
            )
        return int(row["count(*)"])

    def _in_order(self) -> Ids:
        placed = sorted((row["position"], row["id"]) for row in self._query_all(["position"], ""))
        return np.array([i for _, i in placed], np.int64)

    def _details(self) -> dict[str, Any]:
        return {**self._names, "metadata": None, "n_bytes": None}

    def _close(self) -> None:
        self._client.close()

    def _query(self, ids: list[int], fields: list[str] | None = None) -> list[dict[str, Any]]:
        with milvus_errors(self._address):
            fields = ["*"] if fields is None else fields
            return list(self._client.query(self._address.name, ids=ids, output_fields=fields))

    def _query_all(self, fields: list[str], expression: str) -> list[dict[str, Any]]:
        """Some fields of all items that meet a condition."""
        with milvus_errors(self._address):
            rows: list[dict[str, Any]] = []
            pages = self._client.query_iterator(
                self._address.name,
                filter=expression,
                output_fields=fields,
                batch_size=ITEMS_PER_CALL,
            )
            while page := pages.next():
                rows.extend(page)
            pages.close()
        return rows

    def _parts(self, name: str) -> list[dict[str, Any]]:
        with milvus_errors(self._address):
            rows: list[dict[str, Any]] = self._client.query(
                self._address.recipe_name,
                filter=f'name == "{name}"',
                output_fields=["part", "text"],
            )
        return rows

    def _entry(self, name: str) -> bytes:
        """The bytes that :func:`put_entry` stored under that name."""
        if not (rows := self._parts(name)):
            raise FileError(f"{self.place}: not a complete collection ('{name}' is missing).")
        parts = sorted((row["part"], row["text"]) for row in rows)
        return base64.b64decode("".join(text for _, text in parts))


def _sorted(answer: Any) -> HitRows:
    rows = [(h["distance"], h["entity"]["position"], h["id"]) for h in answer]
    found = np.array(rows, dtype=object).reshape(-1, 3).astype(np.int64)
    return found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in row if key not in ("id", "position", "code")}


def _expression(where: str | None) -> str:
    return "" if where is None else to_milvus(where)


def _at_positions(expression: str, positions: Positions) -> str:
    """The condition for items at these positions; Milvus Lite cannot nest two bounds."""
    if positions == ALL_POSITIONS:
        return expression
    bounds = f"position > {positions[0]} and position <= {positions[1]}"
    return f"({expression}) and {bounds}" if expression else bounds


def _blocks(ids: Ids) -> list[list[int]]:
    return [ids[block].tolist() for block in item_blocks(len(ids))]
