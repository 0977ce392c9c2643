"""Files of collections when processes die, disks fill up, and bytes change."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import duckdb
import numpy as np
import pytest
from places import random_codes

import bittern as bt
from bittern.errors import FileError, InputError

BATCH = 200  # few enough for the index to scan them all, whose tables take long to compile
CODES = random_codes(BATCH, 64)

# Adds batches for ever and says so after each; batch i has i in its metadata.
WRITER = """
    import signal
    import sys
    import bittern as bt
    from places import random_codes

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by jobs in the background
    codes = random_codes(200, 64)
    collection = bt.store.open(sys.argv[1])
    for i in range(100_000):
        path = [f"{i}/{j}" for j in range(200)]
        collection.add(codes, metadata={"batch": [i] * 200, "path": path})
        print(i + 1, flush=True)
"""


@contextlib.contextmanager
def running(script, *arguments):
    """A process that runs the script, and is killed in the end."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    places = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def path(tmp_path):
    bt.store.create(tmp_path / "a.bittern", 64).close()
    return tmp_path / "a.bittern"


def check_whole(collection, at_least=0):
    """Every batch is there whole or not at all, in codes, metadata and index alike."""
    n = len(collection)
    assert n % BATCH == 0 and n >= at_least * BATCH
    for i in range(n // BATCH):
        assert collection.count(f"batch = {i}") == BATCH
    assert collection.count("id >= 0") == n
    if n:
        first = collection.search(CODES[:3], n // BATCH)
        assert (first.distances == 0).all()
        assert first.ids[:, -1].tolist() == [n - BATCH, n - BATCH + 1, n - BATCH + 2]
    return n // BATCH


@pytest.mark.parametrize("delay", [0, 1])
def test_what_was_added_survives_kill_9_and_of_the_rest_nothing_is_left(path, delay):
    with running(WRITER, path) as writer:
        for _ in range(3 + 4 * delay):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        told = writer.stdout.read().split()
        writer.wait()
    done = int(told[-1]) if told else 3 + 4 * delay
    with bt.store.open(path) as collection:
        assert check_whole(collection, at_least=done) in (done, done + 1)
        collection.add(CODES)  # and it goes on


def test_a_reader_has_a_snapshot_while_another_process_writes(path):
    with running(WRITER, path) as writer:
        writer.stdout.readline()
        seen = []
        for _ in range(3):
            with bt.store.open(path, read_only=True) as reader:
                seen.append(check_whole(reader, at_least=1))
                writer.stdout.readline()
                assert len(reader) == seen[-1] * BATCH  # whatever was written since
        assert seen == sorted(seen)
        assert writer.poll() is None  # nobody held it up
        with pytest.raises(FileError, match=rf"another process \(PID {writer.pid}\) has it open"):
            bt.store.open(path)


def test_one_process_does_not_write_twice(path):
    with bt.store.open(path):
        for read_only in (False, True):
            with pytest.raises(FileError, match="is open for writing in this process"):
                bt.store.open(path, read_only=read_only)
    bt.store.open(path).close()


def test_refusals_leave_the_lock_with_the_writer(path):
    # By POSIX a process loses its locks on a file when it closes any handle of it.
    with bt.store.open(path) as collection:
        with pytest.raises(FileError):
            bt.store.open(path)
        collection.info()
        collection.export(path.parent / "x.parquet")
        script = "import sys, bittern as bt; bt.store.open(sys.argv[1])"
        with running(script, path) as other:
            _, said = other.communicate()
        assert "has it open for writing" in said.splitlines()[-1]


def test_ctrl_c_keeps_whole_batches(path):
    with running(WRITER, path) as writer:
        for _ in range(4):
            writer.stdout.readline()
        writer.send_signal(signal.SIGINT)
        told = writer.stdout.read().split()  # communicate() would miss what readline() has read
        said = writer.stderr.read()
    assert said.splitlines()[-1].startswith("KeyboardInterrupt")
    done = int(told[-1]) if told else 4
    with bt.store.open(path) as collection:
        assert check_whole(collection, at_least=done) in (done, done + 1)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
        duckdb.Error("Traceback (most recent call last):\n  …\nKeyboardInterrupt: "),
    ],
)
def test_ctrl_c_inside_duckdb_leaves_the_collection_in_use(path, monkeypatch, error):
    with bt.store.open(path) as collection:
        collection.add(CODES, metadata={"batch": [0] * BATCH})

        def interrupted(*_):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("bittern.store.embedded._insertion", interrupted)
            with pytest.raises(KeyboardInterrupt):
                collection.add(CODES, metadata={"batch": [1] * BATCH, "new": [1] * BATCH})
        assert check_whole(collection) == 1
        assert "new" not in collection.info()["metadata"]
        collection.add(CODES, metadata={"batch": [1] * BATCH})
        assert check_whole(collection) == 2


def test_ctrl_c_while_a_collection_is_made_leaves_nothing(tmp_path, monkeypatch):
    class Interrupted:
        def __getattr__(self, name):
            return getattr(duckdb, name)

        def connect(self, *_):
            raise RuntimeError("Query interrupted")

    monkeypatch.setattr("bittern.store.embedded.duckdb_library", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        bt.store.create(tmp_path / "new.bittern", n_bits=8)
    assert list(tmp_path.glob("*new*")) == []


def test_an_index_that_missed_a_write_is_built_again(path, monkeypatch):
    with bt.store.open(path) as collection:
        collection.add(CODES, metadata={"batch": [0] * BATCH})

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("bittern.index.multi_index.MultiIndex.add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                collection.add(CODES, metadata={"batch": [1] * BATCH})
        assert check_whole(collection) == 2  # it was committed


FILLER = """
    import resource, sys
    import bittern as bt
    from places import random_codes

    codes = random_codes(200, 64)
    collection = bt.store.open(sys.argv[1])
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
    done = 0
    try:
        while True:
            path = [f"{done}/{j}" * 200 for j in range(200)]
            collection.add(codes, metadata={"batch": [done] * 200, "path": path})
            done += 1
    except bt.FileError as error:
        print(error)
    print(done, len(collection), collection.count("id >= 0"), (collection.search(codes[:1], 1).ids))
"""


def check_filled(path, said):
    sentence, counts = said.strip().splitlines()
    assert "cannot be written, and nothing of this write was stored (" in sentence
    done, n, counted = map(int, counts.split()[:3])
    assert done >= 1 and n == counted == done * BATCH
    with bt.store.open(path) as collection:
        assert check_whole(collection) == done


def test_a_file_that_may_not_grow_keeps_what_it_has(path):
    with running(FILLER, path, 1_500_000) as filler:
        told, said = filler.communicate()
    assert filler.returncode == 0, said
    check_filled(path, told)


def test_a_log_that_cannot_be_written_to_the_file_fails_no_write(path):
    script = FILLER.replace("done = 0", "done, file = 0, collection._file; file._longest_log = 1")
    script = script.replace("while True:", "for _ in range(3):")
    script += "    print(file._longest_log > 1)\n"  # it failed, and is not tried at every write
    with running(script, path, path.stat().st_size + 50_000) as filler:
        told, said = filler.communicate()
    assert filler.returncode == 0, said
    assert [*told.split()[:3], told.split()[-1]] == ["3", "600", "600", "True"]
    with bt.store.open(path) as collection:
        assert check_whole(collection) == 3


def test_a_full_disk_keeps_what_it_has(path, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    result = tmp_path / "result.bittern"
    script = tmp_path / "filler.py"
    script.write_text(textwrap.dedent(FILLER))
    steps = (
        f"mount -t tmpfs -o size=3m none '{mount}' && cp '{path}' '{mount}/a.bittern' && "
        f"'{sys.executable}' '{script}' '{mount}/a.bittern' && "
        f"cp '{mount}/a.bittern' '{result}' && "
        f"if [ -e '{mount}/a.bittern.wal' ]; then cp '{mount}/a.bittern.wal' '{result}.wal'; fi"
    )
    own_mounts = ["unshare", "--user", "--map-root-user", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*own_mounts, "mount", "-t", "tmpfs", "none", mount], capture_output=True
        ).returncode
    ):
        pytest.skip("this system does not let us mount a small disk")
    done = subprocess.run(
        [*own_mounts, "sh", "-c", steps],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stdout
    check_filled(result, done.stdout)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a collection with a hasher."""
    path = tmp_path_factory.mktemp("sound") / "a.bittern"
    hasher = bt.hashing.LSH(64).fit(np.eye(16))
    with bt.store.create(path, hasher=hasher) as collection:
        collection.add(CODES, metadata={"batch": [0] * BATCH})
    return path.read_bytes()


def read_all(path, read_only):
    with bt.store.open(path, read_only=read_only) as collection:
        assert check_whole(collection) == 1
        assert collection.get([7]).codes == CODES[7]
        assert collection.recipe.hasher.n_bits == 64


def damages(data):
    rng = np.random.default_rng(0)
    for length in [0, 1, 100, 5000, *rng.integers(0, len(data), 6).tolist()]:
        yield f"cut at {length}", data[:length]
    for place in [0, 9, 12, 4100, 8200, *rng.integers(0, len(data), 15).tolist()]:
        yield f"changed at {place}", data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :]


def test_a_damaged_file_is_refused_in_one_sentence_or_read_rightly(sound, tmp_path):
    path = tmp_path / "a.bittern"
    path.write_bytes(sound)
    read_all(path, read_only=True)
    refused = 0
    for number, (what, data) in enumerate(damages(sound)):
        path.write_bytes(data)
        path.with_name("a.bittern.wal").unlink(missing_ok=True)
        try:
            read_all(path, read_only=bool(number % 2))
        except FileError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error), what
            assert str(error).endswith(".") and "snapshot.duckdb" not in str(error), what
    assert refused > 20


def test_a_log_that_is_cut_or_changed_loses_whole_batches_or_is_refused(path):
    with running(WRITER, path) as writer:
        for _ in range(4):
            writer.stdout.readline()
        writer.kill()
        writer.wait()
    log = path.with_name("a.bittern.wal")
    file, data = path.read_bytes(), log.read_bytes()
    rng = np.random.default_rng(0)
    seen = set()
    for place in rng.integers(1, len(data), 6).tolist():
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            path.write_bytes(file)
            log.write_bytes(damaged)
            try:
                with bt.store.open(path) as collection:
                    seen.add(check_whole(collection))
            except FileError as error:
                seen.add("refused")
                assert str(error).startswith(f"{path}: ")
    assert len(seen) > 1


def test_what_is_no_collection_is_refused(tmp_path):
    text = tmp_path / "text.bittern"
    text.write_text("not a database\n" * 1000)
    with pytest.raises(FileError, match="not a collection, nor any other DuckDB file"):
        bt.store.open(text)
    theirs = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(theirs)) as connection:
        connection.execute("CREATE TABLE codes (id INTEGER)")
    before = theirs.read_bytes()
    for read_only in (False, True):
        with pytest.raises(FileError, match="is a DuckDB file, but not a collection"):
            bt.store.open(theirs, read_only=read_only)
    assert theirs.read_bytes() == before


def changed_entry(path, name, value):
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE bittern SET value = ? WHERE name = ?", [value, name])


def test_a_hasher_of_another_length_is_refused(sound, tmp_path):
    path, model = tmp_path / "a.bittern", tmp_path / "hasher.npz"
    path.write_bytes(sound)
    bt.hashing.LSH(32).fit(np.eye(16)).save(model)
    changed_entry(path, "hasher", model.read_bytes())
    with bt.store.open(path) as collection:
        with pytest.raises(FileError, match="hasher makes codes of 32 bits, but its codes have 64"):
            collection.search(np.eye(16), 1)
        assert len(collection.search(CODES[:1], 1)) == 1  # codes need no hasher


def test_a_damaged_hasher_is_refused(sound, tmp_path):
    path = tmp_path / "a.bittern"
    path.write_bytes(sound)
    changed_entry(path, "hasher", b"junk")
    with (
        bt.store.open(path) as collection,
        pytest.raises(FileError, match=r"its recipe cannot be read: hasher\.npz"),
    ):
        collection.search(np.eye(16), 1)


def test_ids_that_are_there_twice_are_refused(sound, tmp_path):
    path = tmp_path / "a.bittern"
    path.write_bytes(sound)
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE codes SET id = 3 WHERE id = 4")
    with pytest.raises(FileError, match="its codes and metadata differ in items"):
        bt.store.open(path)


def test_a_closed_collection_closes_again(path):
    collection = bt.store.open(path)
    collection.close()
    collection.close()
    with pytest.raises(InputError, match=r"was closed; open\(\) it again"):
        len(collection)
    assert "closed" in repr(collection)
