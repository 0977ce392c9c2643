"""LanceDB: a table of codes, which it searches by Hamming distance."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bittern.errors import FileError, InputError
from bittern.extras import import_extra
from bittern.io.exchange.arrow import from_table, to_table
from bittern.io.exchange.items import PackedItems
from bittern.io.files import atomic_create, reading, reason_of

ENDING = ".lance"


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """A table of lists of uint8; ``FOLDER/NAME.lance`` is the table NAME of the database FOLDER."""
    table = to_table(items, as_lists=True)
    _check_ending(path)
    with atomic_create(path) as made:
        database, title = _database(made)
        try:
            database.create_table(title, table)
        except (RuntimeError, ValueError, OSError) as error:
            raise FileError(f"{path}: cannot be written ({reason_of(error)}).") from error


def read(path: Path, name: str | None) -> PackedItems:
    """The table of that path."""
    _check_ending(path)
    database, title = _database(path)
    if not path.is_dir():
        raise FileError(f"{path}: no such table.")
    with reading(path, "table of LanceDB"):
        table = database.open_table(title).to_arrow()
    return from_table(path, table)


def _database(path: Path) -> tuple[Any, str]:
    """The database in the folder of the path, and the name of the table."""
    os.environ.setdefault("LANCE_LOG", "error")  # or it warns of every table that is new
    lancedb = import_extra("lancedb", "LanceDB")
    return lancedb.connect(path.parent), path.stem


def _check_ending(path: Path) -> None:
    if path.suffix != ENDING:
        raise InputError(
            f"{path}: a table of LanceDB is FOLDER/NAME{ENDING}; the folder is the database."
        )
