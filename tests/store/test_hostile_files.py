"""Files of collections that somebody made with DuckDB to do harm, valid in its eyes."""

import subprocess
import sys

import duckdb
import numpy as np
import pytest

import bittern as bt
from bittern.errors import FileError
from bittern.store import soundness

CODES = bt.Codes.from_bits(np.eye(8, 12, dtype=bool))


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    place = tmp_path_factory.mktemp("made") / "a.bittern"
    with bt.store.create(place, n_bits=12) as made:
        made.add(CODES, metadata={"n": list(range(8)), "j": [{"a": 1}] * 8})
    return place.read_bytes()


@pytest.fixture
def path(content, tmp_path):
    place = tmp_path / "a.bittern"
    place.write_bytes(content)
    return place


def changed(path, *statements):
    """The file after statements of SQL, closed as DuckDB closes it."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


RUNS = {
    "functions": "CREATE MACRO bit_xor(x) AS (SELECT count(*) FROM range(1000000000000))",
    "functions in place of the catalogue": (
        "CREATE MACRO duckdb_tables() AS TABLE SELECT 'codes' AS table_name"
    ),
    "views": "CREATE VIEW more AS SELECT * FROM codes",
    "schemas": "CREATE SCHEMA other",
    "types": "CREATE TYPE size AS ENUM ('small', 'large')",
    "computed columns": "CREATE TABLE big (a INTEGER, b VARCHAR AS (repeat('x', 1 << 30)))",
    "rules": "CREATE TABLE one (a INTEGER CHECK (a < 1))",
    "indexes or triggers": "CREATE INDEX found ON codes (id)",
}


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("what", RUNS)
def test_what_a_file_could_run_is_refused_before_it_runs(path, what, read_only):
    changed(path, RUNS[what])
    with pytest.raises(FileError, match=f"it has {what.partition(' in ')[0]} of its own"):
        bt.store.open(path, read_only=read_only)


def test_the_trial_of_a_copy_reads_no_other_file(path, tmp_path):
    # Without its check, the trial calls hash(), which the file has made its own.
    secret = tmp_path / "secret"
    secret.write_text("secret")
    changed(path, f"CREATE MACRO hash(x) AS (SELECT error(content) FROM read_text('{secret}'))")
    unchecked = soundness.TRIAL.replace(repr(soundness.FOREIGN), "'SELECT 1 WHERE false'")
    assert unchecked != soundness.TRIAL
    done = subprocess.run(
        [sys.executable, "-c", unchecked, str(path)], capture_output=True, text=True
    )
    assert done.returncode == soundness.REFUSED and "Cannot access file" in done.stdout


WRONG = {
    "ids that are text": (
        "ALTER TABLE codes ALTER id TYPE VARCHAR",
        "its codes are not those of 12",
    ),
    "signed words": ("ALTER TABLE codes ALTER word_0 TYPE BIGINT", "its codes are not those of 12"),
    "more words": ("ALTER TABLE codes ADD word_1 UBIGINT", "its codes are not those of 12 bits"),
    "no ids of metadata": ("ALTER TABLE metadata DROP id", "its metadata have no ids"),
    "dates": ("ALTER TABLE metadata ADD d DATE", "its metadata have 'd' of type DATE"),
    "a name of SQL": ('ALTER TABLE metadata ADD "a"";--" BIGINT', "its metadata have"),
    "values that are text": ("ALTER TABLE bittern ALTER value TYPE VARCHAR", "not a collection"),
    "a missing id": ("UPDATE codes SET id = NULL WHERE id = 3", "differ in items"),
    "a missing word": ("UPDATE codes SET word_0 = NULL WHERE id = 3", "differ in items"),
    "missing metadata": ("DELETE FROM metadata WHERE id = 3", "differ in items"),
    "metadata twice": ("INSERT INTO metadata SELECT * FROM metadata", "differ in items"),
    "a last position": ("UPDATE codes SET position = 9223372036854775807", "counts are wrong"),
    "ids given before": (
        "UPDATE bittern SET value = '2' WHERE name = 'next_id'",
        "counts are wrong",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_tables_that_we_never_make_are_refused(path, what):
    statement, says = WRONG[what]
    changed(path, statement)
    with pytest.raises(FileError, match=says):
        bt.store.open(path, read_only=True)


@pytest.mark.parametrize("json", ["repeat('[', 5000) || repeat(']', 5000)", "repeat('9', 5000)"])
def test_json_that_python_cannot_take_gets_one_sentence(path, json):
    changed(path, f"UPDATE metadata SET j = ({json})::JSON")
    with bt.store.open(path, read_only=True) as found:
        for call in (lambda: found.get([1]), lambda: found.column("j")):
            with pytest.raises(FileError, match="a stored value cannot be read"):
                call()


def test_a_missing_recipe_is_refused(path):
    changed(path, "INSERT INTO bittern VALUES ('hasher', NULL)")
    with (
        bt.store.open(path, read_only=True) as found,
        pytest.raises(FileError, match="its recipe is missing"),
    ):
        found.search(np.eye(3), 1)


def test_a_log_without_its_collection_is_no_trap(path, tmp_path):
    log = tmp_path / "b.bittern.wal"
    log.write_bytes(b"of a collection that was deleted after a crash")
    with pytest.raises(FileError, match=r"b\.bittern\.wal: is the log of a collection that is no"):
        bt.store.create(tmp_path / "b.bittern", n_bits=12)
    assert not (tmp_path / "b.bittern").exists()
    log.unlink()
    bt.store.create(tmp_path / "b.bittern", n_bits=12).close()
