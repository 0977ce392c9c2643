"""Protocols that name the path of one's own data, and records that remember it."""

import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_protocols import PLAIN, write_arrays
from made_records import record_of
from processes import one_after_another

from bittern.errors import FileError, InputError, MissingExtraError
from bittern.experiments import Protocol, Record, Records, measure, run, verify
from bittern.experiments.cells import cells_of
from bittern.experiments.protocol import shipped
from bittern.experiments.run_data import check_source, source_of
from bittern.experiments.split_files import write_splits

SMALL = PLAIN.replace("runs = 2", "runs = 1").replace("n_bits = [4, 8]", "n_bits = [4]")
NAMED = SMALL.replace('name = "arrays"', 'name = "arrays"\npath = "data/features.npz"')
ONLY = ("method=lsh",)
MEASURED = []


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)


@pytest.fixture
def place(tmp_path):
    """A folder with a protocol, and its data in one file below."""
    arrays = write_arrays(tmp_path / "arrays")
    (tmp_path / "data").mkdir()
    parts = {path.stem: np.load(path) for path in arrays.iterdir()}
    np.savez(tmp_path / "data" / "features.npz", **parts)
    (tmp_path / "mine.toml").write_text(NAMED)
    return tmp_path


@pytest.fixture
def done(place):
    """A finished experiment, measured once for all tests here."""
    if not MEASURED:
        run(place / "mine.toml", place / "out", wanted=ONLY, jobs=1)
        MEASURED.append({p.relative_to(place): p.read_bytes() for p in place.rglob("*.*")
                         if p.is_file()})  # fmt: skip
    for path, content in MEASURED[0].items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    return place / "out"


def source_now(folder, root=None):
    """Where the data of an experiment is found now."""
    records = Records.read(folder)
    return check_source(records.protocol, records.records[0], root)


def test_the_path_starts_from_the_protocol_and_verify_finds_it(done, place, monkeypatch):
    (record,) = Records.read(done)
    source = record.split["source"]
    assert source["path"].endswith("features.npz") and len(source["sha256"]) == 64
    assert Path(source["path"]).is_absolute()
    assert tomllib.loads((done / "protocol.toml").read_text())["base"] == ".."
    monkeypatch.chdir("/")
    assert source_now(done) == (place / "out" / ".." / "data" / "features.npz").resolve()
    assert verify(done, random_state=0).is_same


def test_a_file_that_has_moved_or_changed_is_named(done, place):
    there = place / "data" / "features.npz"
    there.rename(place / "elsewhere.npz")
    forget_the_first_place(done)
    with pytest.raises(FileError, match=r"features\.npz: is gone, .* give its place with --root"):
        verify(done)
    with pytest.raises(FileError, match=r"features\.npz: no such file .* dataset\.path names it"):
        run(place / "mine.toml", place / "new")
    assert source_now(done, place / "elsewhere.npz") == place / "elsewhere.npz"
    arrays = dict(np.load(place / "elsewhere.npz"))
    arrays["vectors"][7, 3] += 1  # not one of the rows that the fingerprint looks at
    np.savez(there, **arrays)
    for call in (verify, lambda folder: run(place / "mine.toml", folder)):
        with pytest.raises(FileError, match=r"features\.npz: has changed since the records"):
            call(done)


def forget_the_first_place(folder):
    """Let the record name a place that does not exist."""
    (cell,) = [c for c in cells_of(Records.read(folder).protocol) if c.place(folder).exists()]
    record = Record.load(cell.place(folder))
    source = record.split["source"] | {"path": "/nowhere/features.npz"}
    replace(record, split=record.split | {"source": source}).save(cell.place(folder))


def test_a_moved_experiment_finds_its_data_by_the_absolute_path(done, tmp_path):
    moved = tmp_path / "deep" / "down" / "out"
    moved.parent.mkdir(parents=True)
    before = Records.read(done).records[0].split["source"]["path"]
    done.rename(moved)
    assert source_now(moved) == Path(before)


def test_data_given_by_root_is_remembered_too(place):
    protocol = Protocol.of(tomllib.loads(SMALL))
    source = source_of(protocol, place / "arrays")
    assert source == {"path": str(place / "arrays")}  # a folder has no checksum
    record = record_of("lsh", 4, 0, {}, split={"source": source})
    assert check_source(protocol, record, None) == place / "arrays"
    assert source_of(Protocol.load(shipped()["demo"]), place) == {}  # not the user's own


def test_a_path_changes_no_fingerprint(place):
    named = Protocol.load(place / "mine.toml")
    plain = Protocol.of(tomllib.loads(SMALL))
    assert named.fingerprint == plain.fingerprint
    assert [c.fingerprint for c in cells_of(named)] == [c.fingerprint for c in cells_of(plain)]
    assert named.to_dict()["dataset"]["path"] == "data/features.npz"


def test_a_path_is_for_own_data_only():
    with pytest.raises(InputError, match=r"dataset\.path: is for your own data, such as 'arrays';"):
        Protocol.of(tomllib.loads(NAMED.replace('"arrays"', '"digits"')))


def test_a_file_that_needs_a_library_is_named_before_it_is_read(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (place / "mine.toml").write_text(NAMED.replace("features.npz", "features.parquet"))
    with pytest.raises(MissingExtraError, match=r"^data/features\.parquet: needs pyarrow; pip"):
        run(place / "mine.toml", place / "out")


def test_splits_are_written_from_the_path(place):
    (path,) = write_splits(Protocol.load(place / "mine.toml"), place / "splits")
    assert np.load(path)["train"].shape == (60, 12)
