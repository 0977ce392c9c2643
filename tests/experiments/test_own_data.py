"""Protocols that name the path of one's own data, and records that remember it."""

import sys
import tomllib

import numpy as np
import pytest
from made_protocols import PLAIN, write_arrays

from bittern.errors import FileError, InputError, MissingExtraError
from bittern.experiments import Protocol, Records, run, verify
from bittern.experiments.cells import cells_of
from bittern.experiments.split_files import write_splits

SMALL = PLAIN.replace("runs = 2", "runs = 1").replace("n_bits = [4, 8]", "n_bits = [4]")
NAMED = SMALL.replace('name = "arrays"', 'name = "arrays"\npath = "data/features.npz"')
ONLY = ("method=lsh",)


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
    run(place / "mine.toml", place / "out", wanted=ONLY, jobs=1)
    return place / "out"


def test_the_path_starts_from_the_protocol_and_verify_finds_it(done, place, monkeypatch):
    (record,) = Records.read(done)
    source = record.split["source"]
    assert source["path"] == str(place / "data" / "features.npz") and len(source["sha256"]) == 64
    assert tomllib.loads((done / "protocol.toml").read_text())["base"] == ".."
    monkeypatch.chdir("/")
    assert verify(done, random_state=0).is_same


def test_a_file_that_has_moved_or_changed_is_named(done, place):
    there = place / "data" / "features.npz"
    there.rename(place / "elsewhere.npz")
    with pytest.raises(FileError, match=r"features\.npz: is gone, .* give its place with --root"):
        verify(done)
    with pytest.raises(FileError, match=r"features\.npz: no such file .* dataset\.path names it"):
        run(place / "mine.toml", place / "new")
    assert verify(done, root=place / "elsewhere.npz").is_same
    arrays = dict(np.load(place / "elsewhere.npz"))
    arrays["vectors"][7, 3] += 1  # not one of the rows that the fingerprint looks at
    np.savez(there, **arrays)
    for call in (verify, lambda folder: run(place / "mine.toml", folder)):
        with pytest.raises(FileError, match=r"features\.npz: has changed since the records"):
            call(done)


def test_a_moved_experiment_finds_its_data_by_the_absolute_path(done, tmp_path):
    moved = tmp_path / "deep" / "down" / "out"
    moved.parent.mkdir(parents=True)
    done.rename(moved)
    assert verify(moved).is_same


def test_data_given_by_root_is_remembered_too(place):
    (place / "plain.toml").write_text(SMALL)
    folder = place / "out"
    run(place / "plain.toml", folder, root=place / "arrays", wanted=ONLY, jobs=1)
    (record,) = Records.read(folder)
    assert record.split["source"] == {"path": str(place / "arrays")}  # a folder has no checksum
    assert verify(folder).is_same  # without root


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
