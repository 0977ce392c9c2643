"""sqlite-vec: a table of ``bit[n]`` in an SQLite file, and an ordinary table of metadata.

The codes are in the virtual table NAME (``id``, ``code``), metadata in ``NAME_about`` with the same
ids, and the length of the codes in ``NAME_bits``, because the length of sqlite-vec's vectors is a
multiple of 8.  apsw opens the file: Python's own sqlite3 can often not load extensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bittern.errors import FileError, InputError
from bittern.extras import import_extra
from bittern.io.exchange.items import PackedItems
from bittern.io.files import atomic_create, existing_file, reading, reason_of
from bittern.io.metadata import IN_JSON, Columns, columns_of

NAME = "codes"
TABLE = re.compile(r"vec0\s*\(.*?\bcode\s+bit\s*\[", re.IGNORECASE | re.DOTALL)


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """A new database with one table of codes."""
    title = name or NAME
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", title):
        raise InputError(f"sqlite-vec: a name has letters, digits and _ alone, got {title!r}.")
    with atomic_create(path) as file, _opened(file) as database:
        database.execute("BEGIN")
        n = 8 * items.n_bytes
        database.execute(
            f"CREATE VIRTUAL TABLE {title} USING vec0(id integer primary key, code bit[{n}])"
        )
        rows = zip(items.numbers.tolist(), map(bytes, items.packed), strict=True)
        database.executemany(f"INSERT INTO {title}(id, code) VALUES (?, vec_bit(?))", rows)
        database.execute(f"CREATE TABLE {title}_bits AS SELECT {items.n_bits} AS n_bits")
        if items.columns:
            _write_columns(database, title, items)
        database.execute("COMMIT")


def read(path: Path, name: str | None) -> PackedItems:
    """The codes of a table, or of the only one that has a column ``code`` of bits."""
    source = existing_file(path)
    with reading(source, "database of sqlite-vec"), _opened(source) as database:
        title = _table(source, database, name)
        tables = {one for (one,) in database.execute("SELECT name FROM sqlite_master")}
        rows = list(database.execute(f'SELECT id, code FROM "{title}" ORDER BY id'))
        packed = np.frombuffer(b"".join(code for _, code in rows), np.uint8)
        ids = np.array([i for i, _ in rows], np.int64)
        n_bits = None
        if f"{title}_bits" in tables:
            ((n_bits,),) = database.execute(f'SELECT n_bits FROM "{title}_bits"')
        about = f"{title}_about"
        columns = _read_columns(database, about, ids) if about in tables else {}
    width = len(rows[0][1]) if rows else -(-(n_bits or 0) // 8)
    return PackedItems(packed.reshape(len(rows), width), n_bits, ids=ids, columns=columns)


def _write_columns(database: Any, title: str, items: PackedItems) -> None:
    kinds = "".join(f', "{name}" {one.kind}' for name, one in items.columns.items())
    database.execute(f"CREATE TABLE {title}_about (id integer primary key{kinds})")
    marks = ", ".join("?" * (1 + len(items.columns)))
    values = [items.numbers.tolist(), *(one.values.tolist() for one in items.columns.values())]
    database.executemany(f"INSERT INTO {title}_about VALUES ({marks})", zip(*values, strict=True))


def _read_columns(database: Any, about: str, ids: Any) -> Columns:
    """Metadata of all ids; the declared types of the columns say which are JSON or booleans."""
    declared = {row[1]: row[2] for row in database.execute(f'PRAGMA table_info("{about}")')}
    rows = {row[0]: row[1:] for row in database.execute(f'SELECT * FROM "{about}"')}
    names = list(declared)[1:]
    nothing = (None,) * len(names)
    columns = zip(*(rows.get(i, nothing) for i in ids.tolist()), strict=True)
    given = {
        name: [_value(value, declared[name]) for value in values]
        for name, values in zip(names, columns, strict=True)
    }
    return columns_of(given, len(ids), "metadata")


def _value(stored: Any, kind: str) -> Any:
    if stored is None:
        return None
    if kind == "BOOLEAN":
        return bool(stored)
    return json.loads(stored) if kind in IN_JSON else stored


def _table(source: Path, database: Any, name: str | None) -> str:
    made = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    found = [title for title, sql in made if TABLE.search(sql or "")]
    chosen = [title for title in found if name in (None, title)]
    if len(chosen) != 1:
        called = "" if name is None else f" called {name!r}"
        raise FileError(
            f"{source}: must have one table{called} of sqlite-vec with a column 'code' of bits; "
            f"there are {', '.join(found) or 'none'}."
        )
    return str(chosen[0])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A connection that knows sqlite-vec."""
    apsw, vec = import_extra("apsw", "sqlite-vec"), import_extra("sqlite_vec", "sqlite-vec")
    try:
        database = apsw.Connection(str(path))
        try:
            database.enable_load_extension(True)
            database.load_extension(vec.loadable_path())
            yield database
        finally:
            database.close(True)
    except apsw.Error as error:
        raise FileError(f"{path}: SQLite reports an error ({reason_of(error)}).") from error
