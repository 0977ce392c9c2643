"""Full disks, folders that cannot be written to, clocks, and what killed processes left."""

import errno
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from processes import in_child

import bittern as bt
from bittern.io import leftovers
from bittern.io.files import temporary_folder
from bittern.io.trec import read_qrels

X = np.random.default_rng(0).standard_normal((60, 5))
CODES = bt.Codes.from_bits(np.random.default_rng(1).random((20, 64)) < 0.5)


# Left-overs of killed processes.


def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "_looked", set())
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    mark = f".bittern-{leftovers._machine()}-{int(dead.stdout)}."
    old, young = tmp_path / f".a.npz{mark}x.tmp", tmp_path / f".b.npz{mark}y.tmp"
    ours = tmp_path / f".c.npz{leftovers.own_mark()}z.tmp"
    elsewhere = tmp_path / ".d.npz.bittern-00000000-1.q.tmp"
    for path in (old, young, ours, elsewhere):
        path.touch()
    long_ago = time.time() - 2 * leftovers.AGE
    for path in (old, ours, elsewhere):
        os.utime(path, (long_ago, long_ago))
    CODES.save(tmp_path / "codes.npz")
    assert not old.exists()
    assert young.exists() and ours.exists() and elsewhere.exists()


def test_temporary_folders_say_whose_they_are_and_those_of_a_killed_process_go(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(leftovers, "_looked", set())
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    left = tmp_path / f"trial.bittern-{leftovers._machine()}-{int(dead.stdout)}.x"
    left.mkdir()
    (left / "codes.npy").touch()
    long_ago = time.time() - 2 * leftovers.AGE
    os.utime(left, (long_ago, long_ago))
    with temporary_folder("serve") as ours:
        assert leftovers.own_mark() in ours.name and ours.parent == tmp_path
        assert not left.exists()
    assert not any(tmp_path.iterdir())


def test_temporary_folders_are_made_in_one_place():
    sources = Path(bt.__file__).parent.rglob("*.py")
    made = [
        p.name
        for p in sources
        if re.search(r"^[^>]*(mkdtemp|TemporaryDirectory)\(", p.read_text(), re.M)
    ]
    assert made == ["files.py"]


def test_a_long_name_leaves_room_for_the_name_of_its_temporary_file(tmp_path):
    path = tmp_path / ("ü" * 120 + ".npz")
    CODES.save(path)
    assert bt.Codes.load(path) == CODES


# Disks that are full, folders that cannot be written to, two writers, clocks, other versions.


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "codes.npz"
    CODES.save(path)
    large = bt.Codes.from_bits(np.zeros((5000, 64), bool))

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        with pytest.raises(bt.FileError, match=r"cannot be written \(File too large"):
            large.save(path)
        with pytest.raises(bt.FileError, match="cannot be written"):
            bt.scale.Shards.create(tmp_path / "shards", large, shard_size=4000)

    assert in_child(work) == 0
    assert bt.Codes.load(path) == CODES
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["codes.npz"]


def test_a_collection_that_a_full_disk_prevents_leaves_the_old_one(tmp_path, run):
    CODES.save(tmp_path / "c.npz")
    CODES.to("faiss", tmp_path / "c.faiss")
    old, new = tmp_path / "old.bittern", tmp_path / "new.bittern"
    assert run("index", "create", old, "--from", tmp_path / "c.npz")[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        source = ("--from", "faiss", "--output")
        for words in (
            ("import", tmp_path / "c.faiss", *source, old, "--force"),
            ("import", tmp_path / "c.faiss", *source, new),
            ("index", "create", new, "--from", tmp_path / "c.npz"),
        ):
            code, _, said = run(*words)
            assert code == 2 and "cannot be written" in said and ".bittern-" not in said, said

    assert in_child(work) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert run("import", tmp_path / "c.faiss", "--from", "faiss", "-o", old, "--force")[0] == 0
    assert ["n_items", "20"] in [line.split() for line in run("index", "info", old)[1].splitlines()]


def test_the_log_of_a_collection_that_is_gone_is_not_taken_for_that_of_a_new_one(tmp_path):
    log = tmp_path / "a.bittern.wal"
    log.write_bytes(b"what a killed process had written")
    with pytest.raises(
        bt.FileError, match=r"a\.bittern\.wal: is the log of a collection that is no"
    ):
        bt.store.create(tmp_path / "a.bittern", 8)
    assert list(tmp_path.iterdir()) == [log]


def test_an_output_takes_the_place_of_no_collection_and_no_input(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("bits.npy", CODES.to_bits())
    np.savez("v.npz", vectors=X)
    Image.new("RGB", (8, 8)).save("a.png")
    assert run("index", "create", "c.bittern", "--from", "bits.npy")[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for words, says in (
        ("index export bits.npy -o bits.npy", "bits.npy: would be overwritten"),
        ("index create n.bittern --from v.npz --bits 4 --skipped v.npz", "v.npz: would be over"),
        ("index add c.bittern --from bits.npy --skipped bits.npy", "bits.npy: would be over"),
        ("index sync c.bittern --skipped c.bittern", "c.bittern: is a collection, which is not"),
        ("search c.bittern --image a.png --montage a.png", "a.png: would be overwritten"),
        ("duplicates c.bittern --radius 1 --page c.bittern", "c.bittern: is a collection"),
        ("compare a b --markdown c.bittern", "c.bittern: is a collection"),
    ):
        code, _, said = run(*words.split())
        assert code == 2 and says in said, said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_current_folder_that_is_gone_is_named(tmp_path):
    def work():
        gone = tmp_path / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        words = (sys.executable, "-m", "bittern", "report", "x", "--csv", "x.csv")
        done = subprocess.run(
            words, capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )
        assert done.stderr == b"bittern: the current folder: No such file or directory.\n", done
        assert done.returncode == 2

    assert in_child(work) == 0


def test_a_read_only_folder_gets_one_sentence(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    CODES.save(folder / "codes.npz")
    bt.scale.Shards.create(tmp_path / "shards", CODES, shard_size=10)  # imports what it needs
    for parent in (tmp_path, *tmp_path.parents):
        if not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(0o755)
    folder.chmod(0o555)

    def work():
        if os.geteuid() == 0:  # root may write anywhere
            os.setgid(65534)
            os.setuid(65534)
        assert bt.Codes.load(folder / "codes.npz") == CODES
        with pytest.raises(bt.FileError, match=r"cannot be written \(Permission denied\)"):
            CODES.save(folder / "codes.npz")
        with pytest.raises(bt.FileError, match=r"cannot be (created|written)"):
            bt.scale.Shards.create(folder / "shards", CODES, shard_size=10)

    assert in_child(work) == 0
    folder.chmod(0o755)
    assert bt.Codes.load(folder / "codes.npz") == CODES


def test_an_open_pipe_is_read_where_once_is_enough():
    read, write = os.pipe()
    os.write(write, b"q 0 d 1\n")
    os.close(write)
    assert read_qrels(f"/dev/fd/{read}").query_ids.tolist() == ["q"]
    os.close(read)


def test_a_table_of_lancedb_that_fails_leaves_no_half(tmp_path, monkeypatch):
    lancedb = pytest.importorskip("bittern.io.exchange.lancedb")

    class Full:
        def __init__(self, path):
            self.path = path

        def create_table(self, title, table):
            (self.path / "data").mkdir(parents=True)
            raise RuntimeError("No space left on device")

    monkeypatch.setattr(lancedb, "_database", lambda path: (Full(path), path.stem))
    with pytest.raises(bt.FileError, match=r"c\.lance: cannot be written \(No space left"):
        CODES.to("lancedb", tmp_path / "c.lance")
    assert not any(tmp_path.iterdir())


def test_a_file_of_milvus_that_fails_leaves_no_half(tmp_path, monkeypatch):
    from bittern.io.exchange import milvus

    def full(address):
        Path(address.file).touch()
        raise bt.FileError("no space left")

    monkeypatch.setattr(milvus, "connect", full)
    with pytest.raises(bt.FileError, match="no space left"):
        CODES.to("milvus", tmp_path / "c.db")
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="locks the file itself there")
def test_a_disk_without_locks_is_said_in_a_sentence(tmp_path, monkeypatch):
    import fcntl

    bt.store.create(tmp_path / "c.bittern", n_bits=8).close()

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    for read_only in (True, False):
        with pytest.raises(bt.FileError, match=r"c\.bittern: cannot be locked \(No locks"):
            bt.store.open(tmp_path / "c.bittern", read_only=read_only)


def test_interrupted_duplicates_do_not_promise_parts_that_are_removed(tmp_path, monkeypatch):
    from bittern.store import coded_images

    def stopped(*_, **__):
        raise KeyboardInterrupt("stopped; finished images are kept in a folder")

    monkeypatch.setattr(coded_images, "extract", stopped)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(KeyboardInterrupt) as stop:
        bt.duplicates(tmp_path)
    assert not str(stop.value)


def test_files_from_the_future_are_no_left_overs(tmp_path, monkeypatch):
    # A clock that jumps back makes every file look newer than now.
    monkeypatch.setattr(leftovers, "_looked", set())
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    path = tmp_path / f".a{'.bittern-' + leftovers._machine() + '-' + str(int(dead.stdout))}.x.tmp"
    path.touch()
    ahead = time.time() + 1e6
    os.utime(path, (ahead, ahead))
    CODES.save(tmp_path / "codes.npz")
    assert path.exists()
    assert bt.Codes.load(tmp_path / "codes.npz") == CODES
