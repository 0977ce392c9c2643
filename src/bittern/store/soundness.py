"""Whether a DuckDB file can be written to, tried first on a copy in a process of its own.

DuckDB checks the blocks that it reads.  But a damaged file that is opened for writing can end the
whole process, and with it whatever else that was doing.  So a file that is not as we left it (it
was copied, changed or damaged, or its last writer was killed) is first copied, and a process that
may die opens the copy, reads every value and writes it back.  How we left a file is noted in the
user's cache, so that ordinary opening costs nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bittern.errors import FileError
from bittern.io.cache import cache_root, fingerprint_of
from bittern.io.files import temporary_folder

FOLDER = "collections"  # in the cache
PATIENCE = 600  # seconds for a copy, before it counts as damaged; gigabytes take a few
REFUSED = 3  # exit code of a process that reports an error of DuckDB
# What a collection never has, and DuckDB would run: a file's own functions hide those of DuckDB
# that we call, so these queries name what they call in full.
FOREIGN = """
    SELECT 'functions' FROM system.main.duckdb_functions() WHERE NOT internal
    UNION ALL SELECT 'views' FROM system.main.duckdb_views() WHERE NOT internal
    UNION ALL SELECT 'schemas' FROM system.main.duckdb_schemas() WHERE NOT internal
    UNION ALL SELECT 'types' FROM system.main.duckdb_types() WHERE NOT internal
    UNION ALL SELECT 'rules' FROM system.main.duckdb_constraints()
    UNION ALL SELECT 'indexes or triggers' FROM system.main.duckdb_dependencies()
    UNION ALL SELECT 'computed columns' FROM system.main.duckdb_columns()
        WHERE NOT internal AND column_default IS NOT NULL
    LIMIT 1
"""
SAID = "it has {} of its own, which no collection has"
TRIAL = f"""
import sys
import duckdb
try:
    settings = {{"threads": 1, "enable_external_access": "false"}}
    connection = duckdb.connect(sys.argv[1], config=settings)
    for (kind,) in connection.execute({FOREIGN!r}).fetchall():
        raise ValueError({SAID!r}.format(kind))
    for schema, table in connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables()"
    ).fetchall():
        name = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
        connection.execute(f"SELECT bit_xor(hash(t)) FROM {{name}} t").fetchall()
    connection.execute("FORCE CHECKPOINT")
    connection.close()
except Exception as error:
    sys.stdout.write(str(error))
    sys.exit(3)
"""


def refuse_foreign(connection: Any) -> None:
    """Raise ValueError if a file has anything that DuckDB would run, before it is used."""
    for (kind,) in connection.execute(FOREIGN).fetchall():
        raise ValueError(SAID.format(kind))


def note(path: Path) -> None:
    """Remember how a file is now that we closed it."""
    with suppress(OSError):
        place = _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(_state(path)), encoding="utf-8")


def check_sound(
    path: Path,
    copy: Callable[[Path, Path], None],
    refusal: Callable[[Path, Exception], FileError],
) -> None:
    """Raise FileError if a file cannot be written to.

    ``copy`` copies it with its log; ``refusal`` puts an error of DuckDB into our words.
    """
    if _is_as_left(path):
        return
    with temporary_folder("trial") as folder:
        made = folder / "trial.duckdb"
        copy(path, made)
        said = _try(path, made)
        if said is not None:
            raise refusal(path, RuntimeError(said.replace(str(made), str(path))))


def _try(path: Path, made: Path) -> str | None:
    """What DuckDB complains of in the copy; None if of nothing."""
    command = [sys.executable, "-P", "-c", TRIAL, str(made)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, env=environment
        )
    except subprocess.TimeoutExpired:
        raise FileError(f"{path}: is damaged; DuckDB does not come to an end with it.") from None
    if done.returncode == REFUSED:
        return done.stdout
    if done.returncode:
        raise FileError(
            f"{path}: is damaged, and opening it would end this process; take a copy of it, or "
            "create the collection again."
        )
    return None


def _is_as_left(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return json.loads(_place(path).read_text(encoding="utf-8")) == _state(path)
    return False


def _state(path: Path) -> list[int | bool]:
    """What changes when anything writes to a file."""
    status = path.stat()
    has_log = Path(f"{path}.wal").exists()
    return [status.st_ino, status.st_size, status.st_mtime_ns, has_log]


def _place(path: Path) -> Path:
    return cache_root() / FOLDER / f"{fingerprint_of(os.path.realpath(path), 24)}.json"
