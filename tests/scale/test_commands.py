"""``bittern shards``, and ``bittern evaluate --shards``, as a user types them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from processes import seconds

import bittern as bt


@pytest.fixture
def run_cli(run):
    """What a command prints; it must succeed."""

    def call(*words):
        code, printed, complaint = run(*words)
        assert code == 0, complaint
        return printed

    return call


@pytest.fixture
def fail_cli(run):
    """What a command says when it fails, without a traceback."""

    def call(*words, code=2):
        found, printed, complaint = run(*words)
        assert found == code
        assert "Traceback" not in complaint
        return printed + complaint

    return call


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels, vectors = rng.integers(0, 4, 300), rng.standard_normal((300, 8)).astype(np.float32)
    hasher = bt.hashing.ITQ(8, random_state=0).fit(vectors)
    hasher.save("itq.npz")
    np.savez("vectors.npz", vectors=vectors[20:], labels=labels[20:])
    np.savez("query-vectors.npz", vectors=vectors[:20])
    for name, rows in (("queries", slice(0, 20)), ("database", slice(20, 300))):
        codes = hasher.encode(vectors[rows])
        np.savez(f"{name}.npz", words=codes.words, n_bits=8, labels=labels[rows])
    return tmp_path


def test_shards_from_codes_give_the_same_table(files, run_cli):
    made = run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "100")
    assert made == "db: 3 shards of 280 items: codes of 8 bits, labels.\n"
    whole = run_cli("evaluate", "queries.npz", "database.npz", "--format", "csv")
    for more in ((), ("--processes", "2")):
        assert (
            run_cli("evaluate", "queries.npz", "--shards", "db", "--format", "csv", *more) == whole
        )
    assert "280" in run_cli("shards", "info", "db")
    assert run_cli("shards", "verify", "db") == "db: 3 shards are as written.\n"


def test_shards_in_a_folder_that_cannot_be_written_are_evaluated(files, run_cli, monkeypatch):
    run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "100")
    monkeypatch.setattr("bittern.cli.sharded.os.access", lambda _, mode: mode != os.W_OK)
    monkeypatch.setattr("bittern.scale.evaluating.make_folder", lambda _: 1 / 0)
    assert "ap" in run_cli("evaluate", "queries.npz", "--shards", "db", "--metrics", "ap")


def test_a_search_shows_the_hits_of_the_whole_database(files, run_cli):
    run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "100")
    queries, database = bt.Codes.load("queries.npz"), bt.Codes.load("database.npz")
    labels = np.load("database.npz")["labels"]
    hits = bt.FlatIndex(database).search(queries, 3).to_lists()
    expected = [
        {"query": q, "id": i, "distance": d, "label": int(labels[i])}
        for q, listed in enumerate(hits)
        for i, d in listed
    ]
    shown = ("search", "queries.npz", "--shards", "db", "--format", "json")
    assert json.loads(run_cli(*shown, "-k", "3")) == expected
    within = bt.FlatIndex(database).within(queries[4:5], 1).to_lists()[0]
    found = json.loads(run_cli(*shown, "--row", "4", "--radius", "1"))
    assert [(one["id"], one["distance"]) for one in found] == within
    lines = run_cli("search", "queries.npz", "--shards", "db", "--row", "4", "-k", "1").splitlines()
    assert lines[0].split() == ["id", "distance", "label"]
    assert lines[1].split() == [str(hits[4][0][0]), str(hits[4][0][1]), str(labels[hits[4][0][0]])]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shards", "nowhere"), "is not a sharded database"),
        (("--shards", "db", "--text", "x"), "--text is not for --shards"),
        (("--shards", "db", "--row", "20"), "--row must be from 0 to 19"),
        (("--shards", "db", "--columns", "path"), "no item has 'path'"),
        (("--shards", "db", "--radius", "-1"), "radius"),
        (("--row", "1", "--dask", "tcp://x:1"), "are for --shards"),
    ],
)
def test_wrong_searches_say_so(files, run_cli, fail_cli, words, message):
    run_cli("shards", "create", "db", "--from", "database.npz")
    assert message in fail_cli("search", "queries.npz", *words)


def test_every_source_gives_the_same_shards(files, run_cli):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    codes, labels = bt.Codes.load("database.npz"), np.load("database.npz")["labels"]
    codes.save("codes.npy")
    np.save("labels.npy", labels)
    rows = [bytes(row) for row in codes.to_packed()]
    table = {"codes": pyarrow.array(rows, pyarrow.binary(1)), "labels": labels}
    parquet.write_table(pyarrow.table(table), "codes.parquet", row_group_size=100)
    with bt.store.create("items.bittern", 8) as items:
        items.add(codes, metadata={"label": labels.tolist()})
    shown = []
    for source, more in {
        "database.npz": (),
        "codes.npy": ("--labels", "labels.npy"),
        "codes.parquet": (),
        "items.bittern": (),
    }.items():
        folder = f"from-{source}"
        run_cli("shards", "create", folder, "--from", source, "--shard-size", "100", *more)
        assert run_cli("shards", "verify", folder) == f"{folder}: 3 shards are as written.\n"
        shown.append(run_cli("evaluate", "queries.npz", "--shards", folder, "--format", "csv"))
        found = run_cli("search", "queries.npz", "--shards", folder, "-k", "5")
        shown[-1] += found
    assert len(set(shown)) == 1


def test_writing_goes_on_after_a_kill(files, run_cli):
    rng = np.random.default_rng(0)
    np.save("many.npy", rng.integers(0, 2**63, (40_000, 1)).astype(np.uint64))
    words = ("shards", "create", "db", "--from", "many.npy", "--shard-size", "200")
    writer = subprocess.Popen([sys.executable, "-m", "bittern", *words])
    while not list((files / "db").glob("00000?.codes.npy")):
        assert writer.poll() is None
        time.sleep(0.005)
    writer.kill()
    assert writer.wait() != 0
    (files / "db" / ".000001.codes.npy.x.tmp").write_bytes(b"half")  # as a kill may leave it
    assert "200 shards of 40,000 items" in run_cli(*words)
    assert run_cli("shards", "verify", "db") == "db: 200 shards are as written.\n"
    assert not list((files / "db").glob(".*.tmp"))


def test_vectors_are_encoded_shard_by_shard(files, run_cli):
    run_cli("shards", "create", "db", "--from", "vectors.npz", "--vectors", "--shard-size", "64")
    assert "codes of 8 bits" in run_cli("shards", "encode", "db", "itq.npz")
    near = ("--query-vectors", "query-vectors.npz", "--neighbours", "5", "--format", "csv")
    whole = run_cli(
        "evaluate", "queries.npz", "database.npz", *near, "--database-vectors", "vectors.npz"
    )
    assert run_cli("evaluate", "queries.npz", "--shards", "db", *near) == whole


def test_a_flipped_byte_is_found(files, run_cli, fail_cli):
    run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "100")
    path = files / "db" / "000002.labels.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "labels of shard 000002 are damaged" in fail_cli("shards", "verify", "db", code=1)
    assert "shard 000002" in fail_cli("evaluate", "queries.npz", "--shards", "db")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shards", "nowhere"), "is not a sharded database"),
        (("--processes", "2"), "are for --shards"),
        (("database.npz", "--shards", "db"), "takes the place of DATABASE"),
        (("--shards", "db", "--database-labels", "x.npy"), "is not for --shards"),
        (("--shards", "db", "--processes", "2", "--dask", "tcp://x:1"), "not both"),
        (("--shards", "db", "--query-tags", "queries.npz"), "tags"),
    ],
)
def test_wrong_options_say_so(files, run_cli, fail_cli, words, message):
    run_cli("shards", "create", "db", "--from", "database.npz")
    assert message in fail_cli("evaluate", "queries.npz", *words)


def test_near_duplicates_over_shards_are_those_of_one_piece(files, run_cli, fail_cli):
    database = bt.Codes.load("database.npz")
    ids = 7 * np.arange(len(database))
    bt.scale.Shards.create("db", database, ids=ids, shard_size=100)
    expected = []
    for number, rows in enumerate(bt.index.groups_within(database, 1), start=1):
        away = np.bitwise_count(database.words[rows, 0] ^ database.words[rows[0], 0]).tolist()
        order = sorted(range(len(rows)), key=lambda i: (i > 0, away[i], i))
        expected += [(number, i == 0, away[i], str(ids[rows[i]])) for i in order]
    words = ("duplicates", "--shards", "db", "--radius", "1")
    found = json.loads(run_cli(*words, "--format", "json", "--page", "page.html"))
    named = ("group", "keep", "distance", "name")
    assert [tuple(row[key] for key in named) for row in found] == expected
    assert len(expected) > 100 and expected[-1][0] > 5  # not vacuous
    table = run_cli(*words, "--keep", "first").splitlines()
    assert "among 280 items, within 1 bits of codes;" in table[0]
    assert table[1].split() == list(named)
    assert "no image" in (files / "page.html").read_text(encoding="utf-8")
    connected = run_cli(*words, "--link", "connected", "--format", "csv")
    assert connected.count("\n") - 1 == sum(
        map(len, bt.index.groups_within(database, 1, link="connected"))
    )
    for more, message in {
        ("duplicates", "--shards", "db"): "give --radius",
        ("duplicates", "--shards", "db", "--radius", "9"): "between 0 and 8",
        ("duplicates", "--shards", "nowhere", "--radius", "1"): "is not a sharded database",
        (*words, "--keep", "largest"): "--keep is for images",
        (*words, "--against", "db"): "--against is for images",
        ("duplicates", "photos", "--shards", "db", "--radius", "1"): "PLACE is for images",
        ("duplicates",): "give a folder of images",
        ("duplicates", "photos", "--processes", "2"): "or --shards",
    }.items():
        assert message in fail_cli(*more)


@pytest.mark.slow  # it starts two processes
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of groups")
def test_ctrl_c_while_processes_begin_prints_no_traceback_and_leaves_nothing(files, run_cli):
    run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "10")
    command = ["evaluate", "queries.npz", "--shards", "db", "--processes", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "bittern", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        end = time.monotonic() + seconds(60)
        while child.poll() is None and time.monotonic() < end:
            if not children.exists() or len(children.read_text().split()) >= 3:
                break
            time.sleep(0.01)
        time.sleep(0.1)
        os.killpg(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=seconds(60))
    assert child.returncode in (130, -signal.SIGINT) and said == ""  # the second if all was over
    end = time.monotonic() + seconds(5)
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < end:
            os.killpg(child.pid, 0)
