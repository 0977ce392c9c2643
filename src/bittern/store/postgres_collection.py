"""The collection in PostgreSQL with pgvector, which stores the items and searches them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.hits import Hits
from bittern.io.metadata import Columns, rows_of
from bittern.store.base import TITLE, Ids, Items, new_head
from bittern.store.conditions import to_postgres
from bittern.store.postgres import (
    PostgresAddress,
    connect,
    create_tables,
    has_tables,
    no_such_collection,
    postgres_errors,
    psycopg,
    vector_schema,
)
from bittern.store.recipe import Recipe
from bittern.store.served import ServedCollection, item_blocks, new_entries

if TYPE_CHECKING:
    from psycopg import Connection

HITS_PER_CALL = 1 << 17
LONGEST_WHOLE = 20  # characters of a whole number; jsonb writes 1e300 as a one and 300 zeros
# The distance is cast, so that no approximate index can answer; PostgreSQL 17 would ask one.
DISTANCE = "(items.code OPERATOR({schema}.<~>) queries.code)::int"
NEAREST = f"""
WITH queries AS MATERIALIZED (
    SELECT place, code::bit({{n_bits}}) AS code
    FROM unnest(%s::text[]) WITH ORDINALITY AS given(code, place)
)
SELECT queries.place, near.id, near.distance FROM queries CROSS JOIN LATERAL (
    SELECT id, position, {DISTANCE} AS distance FROM {{items}} AS items
    WHERE {{where}} ORDER BY distance, position LIMIT %s
) AS near ORDER BY queries.place, near.distance, near.position
"""


class PostgresCollection(ServedCollection):
    """A collection in PostgreSQL; pgvector compares the codes by Hamming distance.

    Returns the same hits as a collection in a file, ties included: the server compares every code,
    and sorts by distance, then by the order of adding.  ``where`` is the part of SQL described in
    :mod:`bittern.store.conditions`, with every LIKE.

    The table ``NAME`` has ``id``, ``position`` (the order of adding), ``code`` (a ``bit(n)``) and
    ``metadata`` (a ``jsonb``); ``NAME_recipe`` has the format, the next id, and hasher and
    features, by name.  A write is a transaction: it is stored whole or not at all, and writers of a
    collection wait for each other.
    """

    library = "psycopg"
    _address: PostgresAddress

    def __init__(
        self, connection: Connection, address: PostgresAddress, *, read_only: bool
    ) -> None:
        self._connection, self._address, self.read_only = connection, address, read_only
        self._lock = threading.RLock()  # a transaction belongs to one thread
        sql = psycopg().sql
        self._names_in_sql = {
            "items": sql.Identifier(address.name),
            "recipe": sql.Identifier(address.recipe_name),
        }
        self._read_description()
        self._names_in_sql["n_bits"] = sql.Literal(self.n_bits)
        with self._session():
            schema = vector_schema(connection, address, enable=False)
        self._names_in_sql["schema"] = sql.Identifier(schema)

    @classmethod
    def parse(cls, place: str) -> PostgresAddress:
        """The address, checked."""
        return PostgresAddress.parse(place)

    @classmethod
    def create(
        cls, place: str, n_bits: int, recipe: Recipe, draft: str | None = None
    ) -> PostgresCollection:
        """Make a new collection and open it."""
        address = cls.parse(place)
        entries = new_entries(new_head(n_bits, recipe, draft), recipe)
        with _closing_on_error(address) as connection:
            create_tables(connection, address, n_bits, entries)
            return cls(connection, address, read_only=False)

    @classmethod
    def open(cls, place: str, *, read_only: bool) -> PostgresCollection:
        """Open an existing collection."""
        address = cls.parse(place)
        with _closing_on_error(address) as connection:
            if not all(has_tables(connection, address)):
                raise no_such_collection(address)
            return cls(connection, address, read_only=read_only)

    @classmethod
    def exists(cls, place: str) -> bool:
        """Whether a collection or a draft exists."""
        address = cls.parse(place)
        with _closing_on_error(address) as connection, connection:
            return all(has_tables(connection, address))

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """The connection, for this thread alone."""
        with self._lock, postgres_errors(self._address, self._connection):
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; other writers of this collection wait until it ends."""
        lock = self._sql("SELECT 1 FROM {recipe} WHERE name = 'next_id' FOR UPDATE")
        with self._session() as connection, connection.transaction():
            connection.execute(lock)
            yield

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """A transaction in which all reads see the items of one moment."""
        with self._session() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    def _sql(self, text: str, where: str = "TRUE") -> Any:
        """A statement with its names filled in."""
        sql = psycopg().sql
        condition = sql.SQL(where).format(**self._names_in_sql)
        return sql.SQL(text).format(**self._names_in_sql, where=condition)

    def _rows(self, text: str, values: Sequence[Any] = (), where: str = "TRUE") -> list[Any]:
        with self._session() as connection:
            return connection.execute(self._sql(text, where), values).fetchall()

    def _which_exist(self, ids: Ids) -> NDArray[np.bool_]:
        rows = self._rows("SELECT id FROM {items} WHERE id = ANY(%s)", [ids.tolist()])
        return np.isin(ids, [i for (i,) in rows])

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        next_id = int(ids.max()) + 1
        metadata = [_json(row) for row in rows_of(columns, len(ids))]
        copy_in = self._sql("COPY {items} (id, code, metadata) FROM STDIN")
        with self._session() as connection, connection.cursor() as cursor:
            with cursor.copy(copy_in) as copy:
                for block in item_blocks(len(ids)):
                    bits = _bit_texts(codes[block])
                    for row in zip(ids[block].tolist(), bits, metadata[block], strict=True):
                        copy.write_row(row)
            if next_id > int(self._entry("next_id")):
                self._put_entry("next_id", str(next_id).encode())

    def _replace(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._delete(ids)
        self._add(codes, ids, columns)

    def _delete(self, ids: Ids) -> None:
        with self._session() as connection:
            connection.execute(self._sql("DELETE FROM {items} WHERE id = ANY(%s)"), [ids.tolist()])

    def _set_metadata(self, ids: Ids, columns: Columns) -> None:
        statement = self._sql(
            "UPDATE {items} SET metadata = new.metadata::jsonb "
            "FROM unnest(%s::bigint[], %s::text[]) AS new(id, metadata) WHERE {items}.id = new.id"
        )
        metadata = [_json(row) for row in rows_of(columns, len(ids))]
        with self._session() as connection:
            connection.execute(statement, [ids.tolist(), metadata])

    def _put_entry(self, name: str, content: bytes) -> None:
        statement = self._sql(
            "INSERT INTO {recipe} VALUES (%s, %b) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        with self._session() as connection:
            connection.execute(statement, [name, content])

    def _entry(self, name: str) -> bytes:
        rows = self._rows("SELECT value FROM {recipe} WHERE name = %s", [name])
        if not rows:
            raise FileError(f"{self.place}: not a complete collection ('{name}' is missing).")
        return bytes(rows[0][0])

    def _matching(self, where: str | None) -> Ids:
        text, values = _condition(where)
        rows = self._rows("SELECT id FROM {items} WHERE {where} ORDER BY position", values, text)
        return np.array([i for (i,) in rows], np.int64)

    def _in_order(self) -> Ids:
        return self._matching(None)

    def _count(self, where: str | None) -> int:
        text, values = _condition(where)
        ((n,),) = self._rows("SELECT count(*) FROM {items} WHERE {where}", values, text)
        return int(n)

    def _search(self, queries: Codes, k: int, where: str | None) -> Hits:
        text, values = _condition(where)
        found = self._nearest(queries, text, values, k)
        # In one snapshot, every query finds as many items.
        n = len(found) // len(queries) if len(queries) else min(k, self._count(where))
        ids, distances = (found[:, j].reshape(len(queries), n) for j in (1, 2))
        return Hits(ids.copy(), distances.astype(np.int32))

    def _within(self, queries: Codes, radius: int, where: str | None) -> Hits:
        text, values = _condition(where)
        found = self._nearest(queries, f"({text}) AND {DISTANCE} <= %s", [*values, radius], None)
        sizes = np.bincount(found[:, 0] - 1, minlength=len(queries))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Hits(found[:, 1].copy(), found[:, 2].astype(np.int32), offsets)

    def _nearest(
        self, queries: Codes, where: str, values: list[Any], k: int | None
    ) -> NDArray[np.int64]:
        """Rows of query (from 1), id and distance, sorted; all that meet the condition if not k."""
        blocks = row_blocks(len(queries), k or HITS_PER_CALL >> 6, HITS_PER_CALL)
        parts = [np.empty((0, 3), np.int64)]
        with self._snapshot() if len(blocks) > 1 else self._session():
            for block in blocks:
                given = [_bit_texts(queries[block]), *values, k]
                rows = np.array(self._rows(NEAREST, given, where), np.int64).reshape(-1, 3)
                rows[:, 0] += block.start
                parts.append(rows)
        return np.concatenate(parts)

    def _get(self, ids: Ids) -> Items:
        text = "SELECT id, code::text, metadata::text FROM {items} WHERE id = ANY(%s)"
        wanted = np.unique(ids)
        known = {
            i: (code, metadata)
            for block in item_blocks(len(wanted))
            for i, code, metadata in self._rows(text, [wanted[block].tolist()])
        }
        gone = [i for i in ids.tolist() if i not in known]  # deleted meanwhile
        if gone:
            raise InputError(f"{TITLE}: no item has the id {gone[0]}.")
        taken = [known[i] for i in ids.tolist()]
        codes = _codes([code for code, _ in taken], self.n_bits)
        return Items(ids, codes, [json.loads(one, parse_int=_number) for _, one in taken])

    def _export(self, path: str | os.PathLike[str]) -> None:
        with self._snapshot():
            super()._export(path)

    def _details(self) -> dict[str, Any]:
        kinds = self._rows(
            "SELECT key, string_agg(DISTINCT jsonb_typeof(value), ' or ') "
            "FROM {items}, jsonb_each(metadata) GROUP BY key ORDER BY key"
        )
        names = [f'"{name}"' for name in (self._address.name, self._address.recipe_name)]
        ((size,),) = self._rows(
            "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name",
            [names],
        )
        return {**self._names, "metadata": dict(kinds), "n_bytes": int(size)}

    def _close(self) -> None:
        self._connection.close()


@contextmanager
def _closing_on_error(address: PostgresAddress) -> Iterator[Connection]:
    """A connection, which is closed if the block fails."""
    connection = connect(address)
    try:
        with postgres_errors(address, connection):
            yield connection
    except BaseException:
        connection.close()
        raise


def _condition(where: str | None) -> tuple[str, list[Any]]:
    return ("TRUE", []) if where is None else to_postgres(where)


def _bit_texts(codes: Codes) -> list[str]:
    """Codes as PostgreSQL writes a ``bit(n)``: the first bit comes first."""
    characters = codes.to_bits().astype(np.uint8) + ord("0")
    return [row.tobytes().decode() for row in characters]


def _codes(texts: list[str], n_bits: int) -> Codes:
    characters = np.frombuffer("".join(texts).encode(), np.uint8)
    return Codes.from_bits(characters.reshape(-1, n_bits) == ord("1"))


def _json(metadata: dict[str, Any]) -> str:
    try:
        return json.dumps(metadata, allow_nan=False)
    except ValueError:
        raise InputError(
            f"{TITLE}: metadata in PostgreSQL must be finite numbers, got {metadata}."
        ) from None


def _number(text: str) -> int | float:
    return int(text) if len(text) <= LONGEST_WHOLE else float(text)
