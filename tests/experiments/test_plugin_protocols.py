"""Plug-ins and ready-made codes in protocols, as a user types the commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_protocols import command, protocol, write_arrays
from processes import one_after_another

import bittern as bt
from bittern.experiments import Protocol, Record, measure, run, verify, write_splits

ROOT = Path(__file__).parents[2]
TEXT = """
title = "Three classes"
n_bits = [4, 8]
runs = 2
metrics = ["ap", "precision@5"]
dataset.name = "arrays"
split = { name = "improved", sizes = { train = 60, queries = 20 } }

[[method]]
name = "lsh"
"""
READY = """
[[method]]
name = "codes"
label = "ours"
parameters = { files = "codes/{run}-{n_bits}.npz" }
"""


def encoded(data, n_bits):
    """The codes of a system that knows nothing of Bittern."""
    direction = np.random.default_rng(5).standard_normal((12, n_bits))
    mean = data["train"].mean(axis=0)
    return {side: (data[side] - mean) @ direction > 0 for side in ("queries", "database")}


def write_ready(folder, form=lambda bits: bits, **more):
    """Codes of every run and length, from the files that `bittern data split` writes."""
    (folder / "codes").mkdir()
    for place in (folder / "splits").iterdir():
        data = np.load(place)
        for n_bits in (4, 8):
            sides = {side: form(bits) for side, bits in encoded(data, n_bits).items()}
            extra = {name: data[name] for name in more.get("positions", ())}
            np.savez(folder / "codes" / f"{place.stem}-{n_bits}.npz", **sides, **extra)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with data, a protocol, the rows of its splits, and codes of them."""
    folder = tmp_path_factory.mktemp("home")
    write_arrays(folder / "data")
    (folder / "mine.toml").write_text(TEXT + READY)
    write_splits(Protocol.load(folder / "mine.toml"), folder / "splits", root=folder / "data")
    write_ready(folder, positions=("query_positions", "database_positions"))
    return folder


@pytest.fixture(scope="module")
def records(home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "run_tasks", one_after_another)
        return run(home / "mine.toml", home / "results" / "mine", root=home / "data", jobs=1)


def test_ready_made_codes_stand_in_the_table_with_their_own_values(home, records):
    assert records.failures == {}
    data = np.load(home / "splits" / "1.npz")
    labels = np.load(home / "data" / "labels.npy")
    codes = {side: bt.Codes.from_bits(bits) for side, bits in encoded(data, 8).items()}
    truth = bt.Relevance.from_classes(
        labels[data["query_positions"]], labels[data["database_positions"]]
    )
    expected = bt.evaluate(codes["queries"], codes["database"], truth, ["ap"])["ap"]
    (record,) = (one for one in records.of("ours", 8) if one.run == 1)
    assert record.values["ap"].mean == expected.mean
    assert record.examples == () and records.of("ours", 8)[0].examples
    assert list(record.parameters["sha256"]) == ["codes/1-8.npz"]
    table = bt.report.to_text(records)
    assert "ours" in table and "lsh" in table


def test_a_record_of_ready_made_codes_can_be_verified_from_anywhere(home, records, monkeypatch):
    monkeypatch.chdir("/")
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    found = verify(home / "results" / "mine", root=home / "data", wanted=("method=ours",))
    assert found.is_same
    text = (home / "results" / "mine" / "protocol.toml").read_text()
    assert text == 'base = "../.."\n' + TEXT + READY
    again = Protocol.load(home / "results" / "mine" / "protocol.toml")
    assert Path(again.base) == home.resolve()
    assert "base" not in again.to_dict()


def test_resuming_notices_that_a_file_has_changed(home, records, tmp_path):
    folder = tmp_path / "home"
    shutil.copytree(home, folder)
    options = {"root": folder / "data", "jobs": 1}
    assert len(run(folder / "mine.toml", folder / "results" / "mine", **options)) == 8
    np.savez(folder / "codes" / "0-4.npz", queries=np.zeros((20, 4), bool))
    with pytest.raises(bt.FileError, match=r"0-4\.npz: has changed since the record of ours, 4"):
        run(folder / "mine.toml", folder / "results" / "mine", **options)


FORMS = {
    "packed": lambda bits: np.packbits(bits, axis=1),
    "bytes of 0 and 1": lambda bits: bits.astype(np.uint8),
}


@pytest.mark.parametrize("form", FORMS)
def test_packed_codes_are_read_too(home, records, tmp_path, form):
    shutil.copytree(home / "splits", tmp_path / "splits")
    write_ready(tmp_path, FORMS[form])
    assert measured(home, tmp_path, TEXT + READY) == values(records)


def test_signed_codes_and_files_of_codes_are_read_too(home, records, tmp_path):
    shutil.copytree(home / "splits", tmp_path / "splits")
    write_ready(tmp_path, lambda bits: np.where(bits, 1.0, -1.0))
    signed = READY.replace('npz" }', 'npz", signed = true }')
    assert measured(home, tmp_path, TEXT + signed) == values(records)
    for place in (home / "codes").iterdir():
        for side, array in np.load(place).items():
            if side in ("queries", "database"):
                bt.Codes.from_bits(array).save(tmp_path / f"{side}-{place.name}")
    files = (f'{side} = "{side}-{{run}}-{{n_bits}}.npz"' for side in ("queries", "database"))
    apart = READY.split("parameters")[0] + f"parameters = {{ {', '.join(files)} }}\n"
    assert measured(home, tmp_path, TEXT + apart) == values(records)


def measured(home, folder, text):
    """Values of run 0 at 8 bits."""
    from bittern.experiments.cells import cells_of
    from bittern.experiments.measure import CellMeasurer

    (folder / "mine.toml").write_text(text)
    found = Protocol.load(folder / "mine.toml")
    (cell,) = (c for c in cells_of(found) if (c.method.label, c.n_bits, c.run) == ("ours", 8, 0))
    (folder / "again" / "cells").mkdir(parents=True, exist_ok=True)
    CellMeasurer(found, folder / "again", home / "data").measure(cell)
    return Record.load(cell.place(folder / "again")).values


def values(records):
    return next(one for one in records.of("ours", 8) if one.run == 0).values


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"queries": np.zeros((19, 8), bool)}, r"queries has 19 codes, but run 0 has 20 items"),
        ({"database": np.zeros((7, 8), bool)}, r"database has 7 codes"),
        ({"queries": np.zeros((20, 6), bool)}, r"holds codes of 6 bits, not 8"),
        ({"query_positions": np.arange(20)}, r"query_positions are not those of run 0"),
        ({"queries": None}, r"has no codes; their array must be called queries"),
    ],
)
def test_codes_of_other_items_are_refused(home, tmp_path, arrays, says):
    shutil.copytree(home / "codes", tmp_path / "codes")
    changed = dict(np.load(home / "codes" / "0-8.npz")) | arrays
    kept = {name: array for name, array in changed.items() if array is not None}
    np.savez(tmp_path / "codes" / "0-8.npz", **kept)
    with pytest.raises(bt.FileError, match=rf"0-8\.npz: {says}"):
        measured(home, tmp_path, TEXT + READY)
    (tmp_path / "codes" / "0-8.npz").unlink()
    with pytest.raises(bt.FileError, match=r"0-8\.npz: no such file"):
        measured(home, tmp_path, TEXT + READY)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({}, "either files"),
        ({"files": "a-{run}-{n_bits}", "queries": "b"}, "either files"),
        ({"queries": "b-{run}-{n_bits}"}, "either files"),
        ({"files": "a-{run}"}, r"each path needs \{n_bits\}"),
        ({"files": "a-{n_bits}"}, r"each path needs \{run\}; with split.repeated = true"),
        ({"files": "a-{run}-{n_bits}-{seed}"}, r"got \{seed\}"),
        ({"files": "a-{run"}, "a brace without its pair"),
        ({"file": "a"}, "no key is called 'file'; did you mean 'files'"),
        ({"files": 3}, "files must be a string"),
    ],
)
def test_paths_that_make_no_sense_are_refused(parameters, says):
    method = {"name": "codes", "label": "ours", "parameters": parameters}
    with pytest.raises(bt.InputError, match=f"method ours: .*{says}"):
        protocol(TEXT, method=[method])


def test_the_command_writes_the_rows_of_a_split(home, monkeypatch, capsys, tmp_path):
    words = ("data", "split", "mine.toml", tmp_path, "--run", "1", "--root", "data")
    code, said, _ = command(monkeypatch, capsys, home, *words)
    assert code == 0 and said.strip() == str(tmp_path / "1.npz")
    data, vectors = np.load(tmp_path / "1.npz"), np.load(home / "data" / "vectors.npy")
    labels = np.load(home / "data" / "labels.npy")
    assert set(data) == {
        *("train", "queries", "database", "train_labels"),
        *("train_positions", "query_positions", "database_positions"),
    }
    assert (data["train_labels"] == labels[data["train_positions"]]).all()
    assert np.allclose(data["queries"], vectors[data["query_positions"]])
    wrong = ("data", "split", "mine.toml", tmp_path, "--run", "2", "--root", "data")
    code, _, error = command(monkeypatch, capsys, home, *wrong)
    assert code == 2 and "there are 2 runs, counted from 0, got 2" in error


def bittern(folder, path, *words):
    """The command in a process of its own, with a folder of plug-ins."""
    found = os.pathsep.join([str(path), str(ROOT / "src")])
    environment = os.environ | {"PYTHONPATH": found, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "bittern", *map(str, words)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


PLUGGED = """
title = "The plug-in"
n_bits = [8]
runs = 1
metrics = ["ap", "first-distance", "bittern_medians:FIRST_DISTANCE"]
dataset.name = "arrays"
split = { name = "improved", sizes = { train = 60, queries = 20 } }

[[method]]
name = "median"

[[method]]
name = "bittern_medians.hasher:MedianHasher"
label = "by its path"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The example package, installed into a folder; needs no network."""
    source, target = tmp_path_factory.mktemp("plugin") / "source", tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "examples" / "plugin", source)  # building leaves files in it
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *options, "--target", target, source],
        check=True,
        capture_output=True,
    )
    return target


@pytest.mark.slow  # pip and real processes
def test_the_example_package_is_installed_and_measured(home, installed, tmp_path):
    (tmp_path / "mine.toml").write_text(PLUGGED)
    data = ("--root", home / "data")
    done = bittern(tmp_path, installed, "run", "mine.toml", "--out", "out", "--jobs", "1", *data)
    assert done.returncode == 0, done.stderr
    assert "median" in done.stdout and "by its path" in done.stdout
    records = [Record.load(path) for path in (tmp_path / "out" / "cells").iterdir()]
    named, by_path = sorted(records, key=lambda one: one.method == "by its path")
    assert named.versions["hasher median"] == "bittern_medians:MedianHasher (bittern-medians 0.1.0)"
    assert by_path.versions["hasher bittern_medians.hasher:MedianHasher"].startswith(
        "bittern_medians.hasher:MedianHasher"
    )
    assert "metric first-distance" in named.versions
    first = named.values["first-distance"]
    assert first == named.values["bittern_medians:FIRST_DISTANCE"] and first.spread is None
    assert named.profile is not None
    expected = [np.flatnonzero(row)[0] for row in named.profile.relevant]
    assert list(first.per_query) == expected
    done = bittern(tmp_path, installed, "verify", "out", "--only", "method=median", *data)
    assert done.returncode == 0 and "every value is the same" in done.stdout, done.stderr
    with pytest.raises(bt.UnknownNameError, match="no metric is called 'first-distance'"):
        bt.experiments.Records.read(tmp_path / "out")  # here the package is not installed


class Backwards(bt.hashing.PCAH):
    """A method that the test's own process registers."""

    name = "backwards"


@pytest.mark.slow  # real processes
def test_what_is_registered_at_run_time_reaches_other_processes(home, tmp_path, monkeypatch):
    monkeypatch.setattr(bt.hashing.HASHERS, "_entries", dict(bt.hashing.HASHERS._entries))
    monkeypatch.setattr(bt.hashing.HASHERS, "_registered", {})
    bt.hashing.HASHERS.register("backwards", Backwards)
    made = protocol(TEXT, method=[{"name": "backwards"}], runs=1, n_bits=[4])
    (record,) = run(made, tmp_path / "out", root=home / "data", jobs=1)
    assert record.versions["hasher backwards"] == f"{__name__}:Backwards"


def test_what_no_other_process_can_import_is_refused(home, tmp_path, monkeypatch):
    class Local(bt.hashing.PCAH):
        name = "local"

    monkeypatch.setattr(bt.hashing.HASHERS, "_entries", dict(bt.hashing.HASHERS._entries))
    monkeypatch.setattr(bt.hashing.HASHERS, "_registered", {})
    bt.hashing.HASHERS.register("local", Local)
    made = protocol(TEXT, method=[{"name": "local"}], runs=1, n_bits=[4])
    with pytest.raises(bt.InputError, match="must be defined in a module"):
        run(made, tmp_path / "out", root=home / "data", jobs=1)


def test_bad_paths_in_a_protocol_exit_with_one_sentence(home, monkeypatch, capsys, tmp_path):
    for name, says in (
        ("no_such_package.hashers:Mine", "there is no module 'no_such_package'"),
        ("bittern.hashing:Mine", "bittern.hashing has no 'Mine'"),
        ("bittern:Codes", "must be a subclass of Hasher"),
    ):
        (tmp_path / "mine.toml").write_text(TEXT.replace("lsh", name))
        code, _, error = command(monkeypatch, capsys, tmp_path, "run", "mine.toml")
        assert code == 2 and error.startswith("bittern: mine.toml: ") and says in error
        assert len(error.splitlines()) == 1


def test_a_protocol_takes_a_dataset_by_its_path(tmp_path):
    made = protocol(TEXT, dataset={"name": "bittern.data.readers.digits:SPEC"})
    bits = json.dumps(made.to_dict()["dataset"])
    assert "bittern.data.readers.digits:SPEC" in bits
    assert len(bt.load(made.dataset.name)) == 1797
