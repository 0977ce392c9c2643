"""The collection in a file: DuckDB stores the items, an index in memory searches them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.codes import MAX_BITS, Codes
from bittern.errors import FileError, InputError
from bittern.index.base import Index
from bittern.index.hits import Hits
from bittern.index.multi_index import MultiIndex
from bittern.io.files import existing_file, reading
from bittern.io.leftovers import own_mark, remove_leftovers
from bittern.io.metadata import (
    IN_JSON,
    NAME,
    Column,
    Columns,
    check_number_of_keys,
    value_of,
)
from bittern.store.base import TITLE, Collection, Ids, Items, new_head
from bittern.store.duckfile import DuckFile, duckdb_library, first_line, is_interrupt, quoted
from bittern.store.file_conditions import check_condition
from bittern.store.paths import real_folder
from bittern.store.recipe import PARTS, Recipe

ENTRIES = {"name": "VARCHAR", "value": "BLOB"}  # columns of the table of the format
KINDS = ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR", *IN_JSON)  # of metadata
LAST = 1 << 62  # position of an item; it is counted up, never down
FEW = 1000  # ids that a statement lists itself: DuckDB keeps some memory of every join


class EmbeddedCollection(Collection):
    """A collection in one DuckDB file, searched by a :class:`~bittern.MultiIndex` in memory.

    A completed write survives a crash; an interrupted write leaves nothing.  One
    process may write at a time; a reader has a snapshot of the moment it opened the file.

    The file has three tables: ``codes`` (position, id, word_0, …), ``metadata`` (id and a column
    for each key), and ``bittern`` (the format, the length of the codes, the next id, and hasher and
    feature as files of arrays and JSON).
    """

    def __init__(self, file: DuckFile, *, read_only: bool) -> None:
        self._file, self.read_only = file, read_only
        self.folder = real_folder(file.path)
        head = self._head()
        self.n_bits, self._names = int(head["n_bits"]), dict(head["recipe"])
        self.draft = head.get("draft")
        self._index: Index | None = None
        self._next_id = int(self._entry("next_id"))
        self._next_position = 0
        self._kinds: dict[str, str] = {}  # SQL types of the columns of metadata
        self._current_index()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        n_bits: int,
        recipe: Recipe,
        draft: str | None = None,
    ) -> Collection:
        """Make a new file and open it."""
        target = Path(path)
        if target.exists():
            raise FileError(f"{target}: exists already; open() it, or delete it first.")
        log = Path(f"{target}.wal")
        if log.exists():  # DuckDB would apply it to the new file
            raise FileError(
                f"{log}: is the log of a collection that is no longer there; bring that back, or "
                "delete the log first."
            )
        if not target.absolute().parent.is_dir():
            raise FileError(f"{target}: cannot be written (there is no such folder).")
        head = json.dumps(new_head(n_bits, recipe, draft)).encode()
        entries = {"head": head, "next_id": b"0", **recipe.to_blobs()}
        # An incomplete file must not look like a collection.
        remove_leftovers(target.absolute().parent)
        unnamed = target.with_name(f".{target.name}{own_mark()}tmp")
        try:
            _make_file(unnamed, target, n_bits, entries)
            unnamed.rename(target)
        finally:
            unnamed.unlink(missing_ok=True)
            unnamed.with_name(f"{unnamed.name}.wal").unlink(missing_ok=True)
        return cls.open(target, read_only=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool) -> Collection:
        """Open an existing file and build the index."""
        existing_file(path)
        file = DuckFile.snapshot(path) if read_only else DuckFile.for_writing(path)
        try:
            with reading(path, "collection"):
                return cls(file, read_only=read_only)
        except BaseException:
            with suppress(FileError):
                file.close()
            raise

    @classmethod
    def exists(cls, path: str | os.PathLike[str]) -> bool:
        """Whether something is at the path."""
        return Path(path).exists()

    def condition_reader(self, seconds: float) -> Callable[[str], Ids]:
        """A function that gives the ids of items that meet a condition, and waits for no write.

        It fails if that takes longer than so many seconds.
        """
        reader = copy(self)
        reader._file = self._file.beside()

        def matching(where: str) -> Ids:
            reader._kinds = self._kinds  # only for its messages
            with reader._file.stopped_after(seconds) as is_stopped:
                try:
                    return reader._matching(where)
                except KeyboardInterrupt:
                    if not is_stopped():
                        raise
                    raise InputError(
                        f"{TITLE}: where {where!r} takes more than {seconds:g} s; make it simpler."
                    ) from None

        return matching

    def fingerprint(self) -> str:
        """A text that differs whenever the items, their order, metadata or description differ."""
        tables = ("codes", "metadata", "bittern")
        sums = [
            self._file.rows(f"SELECT count(*), bit_xor(hash(t)) FROM {table} t")[0]
            for table in tables
        ]
        return f"{duckdb_library().__version__} {sums}"

    def metadata_json(self, ids: Ids | None = None) -> list[str]:
        """The metadata of all items in their order, or of some in the order of ids, as JSON text.

        As in :meth:`get`, missing values are left out, and so are numbers that JSON lacks.
        """
        pairs = ", ".join(_json_pair(name, kind) for name, kind in self._kinds.items())
        text = f"'{{' || concat_ws(',', {pairs}) || '}}'" if pairs else "'{}'"
        if ids is None:
            sql = f"SELECT {text} AS t FROM codes JOIN metadata USING (id) ORDER BY position"
            return self._file.arrays(sql)["t"].tolist()
        sql = f"SELECT id, {text} AS t FROM metadata WHERE {_among(ids)}"
        found = self._file.arrays(sql, wanted={"id": ids})
        known = dict(zip(found["id"].tolist(), found["t"].tolist(), strict=True))
        return [known[i] for i in ids.tolist()]

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self._file.path)

    @cached_property
    def recipe(self) -> Recipe:
        """The hasher and the features, read on first use."""
        return Recipe.from_blobs(self.recipe_files(), self.n_bits, self.place)

    def recipe_files(self) -> dict[str, bytes]:
        """The hasher and the features as files, by name."""
        rows = self._file.rows("SELECT name, value FROM bittern")
        return {name: value for name, value in rows if name in PARTS}

    def _next_ids(self, n: int) -> Ids:
        if self._next_id > np.iinfo(np.int64).max - n:
            raise InputError(f"{TITLE}: no ids are left after {self._next_id - 1}; give the ids.")
        return np.arange(self._next_id, self._next_id + n)

    def _which_exist(self, ids: Ids) -> NDArray[np.bool_]:
        return self._current_index().positions_of(ids) >= 0

    def _add(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._write(codes, ids, columns, np.empty(0, np.int64))

    def _replace(self, codes: Codes, ids: Ids, columns: Columns) -> None:
        self._write(codes, ids, columns, ids[self._which_exist(ids)])

    def _delete(self, ids: Ids) -> None:
        with self._updating_index() as index:
            with self._file.transaction(wanted={"id": ids}) as connection:
                _delete(connection, ids, "codes", "metadata")
            index.remove(ids)

    def _write(self, codes: Codes, ids: Ids, columns: Columns, old: Ids) -> None:
        """Delete old items and add new ones in one transaction, then in the index."""
        columns, changes = self._match_columns(columns)
        tables = {
            "wanted": {"id": old},
            "new_codes": {"id": ids, "position": self._next_position + np.arange(len(ids))}
            | {f"word_{j}": np.ascontiguousarray(w) for j, w in enumerate(codes.words.T)},
            "new_metadata": {"id": ids} | {name: c.values for name, c in columns.items()},
        }
        next_id = max(self._next_id, int(ids.max()) + 1)
        with self._updating_index() as index:
            with self._file.transaction(**tables) as connection:
                for change in changes:
                    connection.execute(change)
                if len(old):
                    _delete(connection, old, "codes", "metadata")
                connection.execute("INSERT INTO codes BY NAME SELECT * FROM new_codes")
                connection.execute(_insertion(columns))
                _put_entry(connection, "next_id", str(next_id).encode())
            self._kinds |= {name: column.kind for name, column in columns.items()}
            self._next_id, self._next_position = next_id, self._next_position + len(ids)
            if len(old):
                index.remove(old)
            index.add(codes, ids)

    @contextmanager
    def _updating_index(self) -> Iterator[Index]:
        """The index; after an error it is built again from the file on next use."""
        index, self._index = self._current_index(), None
        yield index
        self._index = index

    def _match_columns(self, columns: Columns) -> tuple[Columns, list[str]]:
        """The columns in the types of the table, and the statements that change the table first."""
        changes = []
        known = {name.lower(): name for name in self._kinds}
        matched = {}
        for given, column in columns.items():
            name = known.get(given.lower(), given)
            there = self._kinds.get(name)
            if there is None:
                changes.append(f"ALTER TABLE metadata ADD COLUMN {_name(name)} {column.kind}")
            elif there == "JSON":
                column = column.as_json()
            elif (there, column.kind) == ("BIGINT", "DOUBLE"):
                changes.append(f"ALTER TABLE metadata ALTER COLUMN {_name(name)} TYPE DOUBLE")
            elif (there, column.kind) == ("DOUBLE", "BIGINT"):
                column = Column("DOUBLE", np.ma.asarray(column.values, np.float64))
            elif there != column.kind:
                raise InputError(
                    f"{TITLE}: metadata '{name}' is of type {there} in this collection, "
                    f"got {column.kind}; give values of that type, or choose another name."
                )
            matched[name] = column
        check_number_of_keys(len(matched.keys() | self._kinds.keys()), TITLE)
        return matched, changes

    def _set_metadata(self, ids: Ids, columns: Columns) -> None:
        columns, changes = self._match_columns(columns)
        tables = {
            "wanted": {"id": ids},
            "new_metadata": {"id": ids} | {name: c.values for name, c in columns.items()},
        }
        with self._file.transaction(**tables) as connection:
            for change in changes:
                connection.execute(change)
            _delete(connection, ids, "metadata")
            connection.execute(_insertion(columns))
        self._kinds |= {name: column.kind for name, column in columns.items()}

    def _write_head(self, head: dict[str, Any]) -> None:
        with self._file.transaction() as connection:
            _put_entry(connection, "head", json.dumps(head).encode())

    def _matching(self, where: str | None) -> Ids:
        if where is None:
            return self._current_index().ids
        with self._checked_condition(where):
            found = self._file.arrays(f"SELECT id FROM metadata WHERE ({where}\n)")
            return found["id"]

    @contextmanager
    def _checked_condition(self, where: str) -> Iterator[None]:
        """Check that it is a condition; turn DuckDB's complaints about it into one sentence."""
        duckdb = duckdb_library()
        try:
            check_condition(where, self._file)
            yield
        except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
            known = ", ".join(["id", *self._kinds])
            raise InputError(
                f"{TITLE}: where {where!r} cannot be evaluated ({first_line(error)}); "
                f"items have {known}."
            ) from None

    def _search(self, queries: Codes, k: int, where: str | None) -> Hits:
        return self._current_index().search(queries, k, where=self._allowed(where))

    def _within(self, queries: Codes, radius: int, where: str | None) -> Hits:
        return self._current_index().within(queries, radius, where=self._allowed(where))

    def _allowed(self, where: str | None) -> Ids | None:
        return None if where is None else self._matching(where)

    def _get(self, ids: Ids) -> Items:
        codes = self._file.arrays(f"SELECT * FROM codes WHERE {_among(ids)}", wanted={"id": ids})
        rows = np.argsort(codes["id"])[np.searchsorted(np.sort(codes["id"]), ids)]
        known = self._metadata_of(np.unique(ids))
        return Items(ids, self._codes(codes)[rows], [dict(known[i]) for i in ids.tolist()])

    def _all_codes(self) -> Codes:
        if len(self._current_index()):
            return self._current_index().codes
        return Codes(np.empty((0, _n_words(self.n_bits)), np.uint64), self.n_bits)

    def _column(self, name: str) -> list[Any]:
        self._current_index()
        if name not in self._kinds:
            return [None] * self._count(None)
        rows = self._file.rows(
            f"SELECT metadata.{_name(name)} FROM codes JOIN metadata USING (id) "
            "ORDER BY codes.position"
        )
        return [None if value is None else value_of(value, self._kinds[name]) for (value,) in rows]

    def _metadata_of(self, ids: Ids) -> dict[int, dict[str, Any]]:
        """The metadata of items by id."""
        names = ", ".join(["id", *map(_name, self._kinds)])
        listed = ", ".join(map(str, ids.tolist()))
        rows = (
            self._file.rows(f"SELECT {names} FROM metadata WHERE id IN ({listed})")
            if listed
            else []
        )
        return {
            row[0]: {
                name: value_of(value, kind)
                for (name, kind), value in zip(self._kinds.items(), row[1:], strict=True)
                if value is not None
            }
            for row in rows
        }

    def _count(self, where: str | None) -> int:
        if where is None:
            return len(self._current_index())
        with self._checked_condition(where):
            return int(self._file.rows(f"SELECT count(*) FROM metadata WHERE ({where}\n)")[0][0])

    def _export(self, path: str | os.PathLike[str]) -> None:
        words = ", ".join(f"codes.word_{j}" for j in range(_n_words(self.n_bits)))
        names = "".join(f", metadata.{_name(name)}" for name in self._kinds)
        select = f"SELECT codes.id, {words}{names} FROM codes JOIN metadata USING (id)"
        self._file.write_parquet(f"{select} ORDER BY codes.position", Path(path))

    def _details(self) -> dict[str, Any]:
        size = self._file.path.stat().st_size if self._file.path.exists() else 0
        return {**self._names, "metadata": dict(self._kinds), "n_bytes": size}

    def _close(self) -> None:
        self._index = None
        self._file.close()

    def _current_index(self) -> Index:
        """The index, built from the file if it is out of date."""
        if self._index is None:
            columns = self._file.arrays("SELECT * FROM codes ORDER BY position")
            self._refuse_gaps(columns)
            self._next_position = int(columns["position"].max(initial=-1)) + 1
            self._next_id = int(self._entry("next_id"))
            if self._next_position > LAST or self._next_id <= columns["id"].max(initial=-1):
                raise FileError(f"{self.place}: not a readable collection (its counts are wrong).")
            self._kinds = self._read_kinds()
            index = MultiIndex()
            if len(columns["id"]):
                self._fill(index, columns)
            self._index = index
        return self._index

    def _refuse_gaps(self, columns: dict[str, Any]) -> None:
        """Raise an error unless every item has a position, a code and one row of metadata."""
        ids = columns["id"]
        others = self._file.arrays("SELECT id FROM metadata")["id"]
        gaps = any(map(np.ma.is_masked, (*columns.values(), others)))
        same = np.array_equal(ids, others) or np.array_equal(np.sort(ids), np.sort(others))
        if gaps or not same:
            raise FileError(
                f"{self.place}: not a readable collection (its codes and metadata differ in items)."
            )

    def _fill(self, index: Index, columns: dict[str, Any]) -> None:
        try:
            index.add(self._codes(columns), columns["id"])
        except InputError as error:  # DuckDB can store values that we never write
            raise FileError(f"{self.place}: not a readable collection: {error}") from error

    def _codes(self, columns: dict[str, Any]) -> Codes:
        words = [columns[f"word_{j}"] for j in range(_n_words(self.n_bits))]
        return Codes(np.ascontiguousarray(np.stack(words, axis=1)), self.n_bits)

    def _read_kinds(self) -> dict[str, str]:
        rows = self._file.rows("SELECT name, type FROM pragma_table_info('metadata')")
        return {name: kind for name, kind in rows if name != "id"}

    def _head(self) -> dict[str, Any]:
        """The description, checked: the file may be something else, or of a later version."""
        tables: dict[str, dict[str, str]] = {}
        rows = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
        for table, column, kind in self._file.rows(rows):
            tables.setdefault(table, {})[column] = kind
        if tables.get("bittern") != ENTRIES or not {"codes", "metadata"} <= set(tables):
            raise FileError(f"{self._file.path}: is a DuckDB file, but not a collection.")
        head = super()._head()
        _check_columns(tables["codes"], tables["metadata"], head["n_bits"])
        return head

    def _entry(self, name: str) -> bytes:
        rows = self._file.rows("SELECT value FROM bittern WHERE name = ?", [name])
        if len(rows) != 1:
            raise FileError(f"{self._file.path}: not a readable collection ('{name}' is missing).")
        value: bytes = rows[0][0]
        return value


def _check_columns(codes: dict[str, str], metadata: dict[str, str], n_bits: Any) -> None:
    """Raise ValueError unless the tables have the columns that we make, of the types we give."""
    words = _n_words(check_count(n_bits, "n_bits", most=MAX_BITS))
    wanted = {"position": "BIGINT", "id": "BIGINT"}
    if codes != wanted | {f"word_{j}": "UBIGINT" for j in range(words)}:
        raise ValueError(f"its codes are not those of {n_bits} bits")
    if metadata.get("id") != "BIGINT":
        raise ValueError("its metadata have no ids")
    for name, kind in metadata.items():
        if not NAME.fullmatch(name) or kind not in KINDS:
            raise ValueError(f"its metadata have {name!r} of type {kind}")


def _make_file(file: Path, named: Path, n_bits: int, entries: dict[str, bytes]) -> None:
    """Make a DuckDB file with empty tables, which errors call by another name."""
    duckdb = duckdb_library()
    words = ", ".join(f"word_{j} UBIGINT" for j in range(_n_words(n_bits)))
    try:
        with duckdb.connect(str(file)) as connection:
            connection.execute(f"CREATE TABLE codes (position BIGINT, id BIGINT, {words})")
            connection.execute("CREATE TABLE metadata (id BIGINT)")
            connection.execute("CREATE TABLE bittern (name VARCHAR, value BLOB)")
            for name, value in entries.items():
                connection.execute("INSERT INTO bittern VALUES (?, ?)", [name, value])
            connection.execute("CHECKPOINT")  # closing it would be silent about a full disk
    except (RuntimeError, duckdb.Error) as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        reason = first_line(error).replace(str(file), str(named))
        raise FileError(f"{named}: cannot be written ({reason}).") from error


def _insertion(columns: Columns) -> str:
    """The statement that adds ``new_metadata`` and parses its JSON text."""
    names = ["id", *map(_name, columns)]
    values = [
        f"{_name(name)}::JSON::{column.kind}" if column.kind in IN_JSON else _name(name)
        for name, column in columns.items()
    ]
    listed = ", ".join(["id", *values])
    return f"INSERT INTO metadata ({', '.join(names)}) SELECT {listed} FROM new_metadata"


def _put_entry(connection: Any, name: str, value: bytes) -> None:
    connection.execute("UPDATE bittern SET value = ? WHERE name = ?", [value, name])


def _among(ids: Ids) -> str:
    """The condition that an item has one of these ids, which are in the table ``wanted`` too."""
    listed = ", ".join(map(str, ids.tolist())) if len(ids) <= FEW else "SELECT id FROM wanted"
    return f"id IN ({listed or 'NULL'})"


def _delete(connection: Any, ids: Ids, *tables: str) -> None:
    for table in tables:
        connection.execute(f"DELETE FROM {table} WHERE {_among(ids)}")


def _json_pair(name: str, kind: str) -> str:
    """The SQL expression of ``"name":value``, or NULL if there is no value."""
    there = f"isfinite({_name(name)})" if kind == "DOUBLE" else f"{_name(name)} IS NOT NULL"
    key = quoted(f'"{name}":')  # names are letters, digits and _
    return f"CASE WHEN {there} THEN {key} || to_json({_name(name)})::VARCHAR END"


def _name(name: str) -> str:
    return quoted(name, '"')


def _n_words(n_bits: int) -> int:
    return -(-n_bits // 64)
