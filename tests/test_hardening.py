"""What files, kills and odd inputs may not do: crash, hang, fool, or lose anything."""

import csv
import errno
import gzip
import io
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from PIL import Image
from processes import in_child, seconds

import bittern as bt
from bittern import inputs
from bittern.data.images import open_image, read_image
from bittern.data.readers.sift1m import read_vectors as read_fvecs
from bittern.data.steps import make_steps
from bittern.errors import LONGEST, BitternError, InputError, KindError, UnknownNameError
from bittern.experiments import Record
from bittern.io import leftovers
from bittern.io.archives import read_members
from bittern.io.exchange import TARGETS
from bittern.io.exchange import read as read_items
from bittern.io.files import temporary_folder
from bittern.io.kinds import describe
from bittern.io.npz import load_arrays, stored_arrays, write_arrays
from bittern.io.sparse import read_sparse
from bittern.io.toml import parse_change
from bittern.io.trec import read_qrels, read_run
from bittern.parallel import available_threads

X = np.random.default_rng(0).standard_normal((60, 5))
DIGITS = "9" * 5000  # more than Python makes a number of
CODES = bt.Codes.from_bits(np.random.default_rng(1).random((20, 64)) < 0.5)


# Messages.


@pytest.mark.parametrize("kind", [BitternError, InputError, KindError, UnknownNameError])
def test_a_long_message_loses_its_middle(kind):
    said = str(kind("begin " + "x" * 100_000 + " end."))
    assert len(said) < LONGEST + 50
    assert said.startswith("begin x") and said.endswith("x end.") and "characters…" in said
    assert str(kind("short.")) == "short."


def test_a_name_that_is_too_long_for_the_system_is_not_repeated_in_full(run):
    code, _, said = run("report", "x" * 100_000)
    assert code == 2 and len(said) < LONGEST + 50 and "too long" in said


EVIL = "x\x1b[31m\x1b]0;title\x07\u202e\n2  0  forged"


def test_names_cannot_steer_the_terminal_or_forge_a_line(tmp_path, run, monkeypatch):
    code, _, said = run("report", EVIL)
    assert code == 2 and said.startswith(
        r"bittern: x\x1b[31m\x1b]0;title\x07\u202e\n2  0  forged: "
    )
    names = np.array([EVIL, "café"] * 10)
    write_arrays(tmp_path / "c.npz", {"words": CODES.words, "n_bits": 64, "paths": names})
    place = tmp_path / "c.bittern"
    assert run("index", "create", place, "--from", tmp_path / "c.npz")[0] == 0
    _, table, _ = run("search", place, "--row", 0, "-k", 3, "--columns", "path")
    assert len(table.splitlines()) == 4 and r"x\x1b[31m\x1b]0;title\x07\u202e" in table
    assert not set(table) & set("\x1b\x07\u202e")
    for encoding in ("utf-8", "ascii"):  # data for programs are whole on every terminal
        monkeypatch.setenv("PYTHONIOENCODING", encoding)
        words = (sys.executable, "-m", "bittern", "search", place, "--row", "0", "--format", "json")
        done = subprocess.run(words, capture_output=True, encoding=encoding, check=True)
        assert {hit["path"] for hit in json.loads(done.stdout)} == {EVIL, "café"}


def test_csv_keeps_every_character_of_a_name(tmp_path, run):
    for name in ("a.png", "a\x1b[31m.png"):
        Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(tmp_path / name)
    code, out, _ = run("duplicates", tmp_path, "--format", "csv")
    assert code == 0
    names = {row["name"] for row in csv.DictReader(io.StringIO(out))}
    assert names == {"a.png", "a\x1b[31m.png"}


# Odd rows.

ODD = {
    "text": ("abc", "got a str"),
    "numbers as text": (np.full((2, 5), "1"), "got text"),
    "lists of text": ([["1", "2", "3", "4", "5"]], "got text"),
    "np.matrix": (X.view(np.matrix), "np.asarray"),
    "a dict": ({"a": 1}, "got a dict"),
    "records": (np.zeros(3, [("a", "f4"), ("b", "f4")]), "fields a, b"),
    "NaN": (np.where(np.arange(60)[:, None] == 3, np.nan, X), "row 3 has NaN or infinity"),
    "one axis": (X[0], r"got shape \(5,\)"),
    "complex": (X + 1j, "Complex data not supported"),
    "dates": (np.zeros((2, 5), "M8[s]"), "got dates"),
    "nothing": (None, "got NoneType"),
    "a number": (3, "got int"),
    "objects": (np.array([[1, 2, 3, 4, {}]], object), "got a dict"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_rows_get_one_sentence(name):
    rows, says = ODD[name]
    fitted = bt.hashing.LSH(8).fit(X)
    quantiser = bt.quantise.QUANTISERS["int8"]().fit(X)
    for call in (bt.hashing.ITQ(4).fit, fitted.encode, quantiser.encode, quantiser.fit):
        with pytest.raises(InputError, match=says) as error:
            call(rows)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 250


@pytest.mark.parametrize("name", ["itq", "itq-cca", "isohash", "bre", "ksh", "sdh", "fasthash"])
def test_more_bits_than_rows_can_teach_are_refused_at_once(name):
    hasher = bt.hashing.HASHERS[name](n_bits=4096)
    with pytest.raises(InputError, match="4,096 bits are more than 60 training rows can teach"):
        hasher.fit(X, np.arange(60) % 3)


def test_the_cost_of_very_long_codes_is_said():
    hasher = bt.hashing.ITQ(n_bits=2048)
    with pytest.warns(UserWarning, match="2,048 bits takes some 32,768 times as long as 64"):
        hasher._check_cost(1000)


# Checksums.


def rewritten(path, change):
    """The zip file again, with its members changed and its comment kept."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
        comment = archive.comment
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = comment
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda members: members.pop("b.npy"),
        lambda members: members.update({"c.npy": members.pop("b.npy")}),
        lambda members: members.update({"b.npy": npy(np.arange(4))}),
        lambda members: members.update({"more.npy": npy(np.arange(4))}),
    ],
    ids=["gone", "renamed", "replaced", "added"],
)
def test_a_sealed_file_notices_what_became_of_its_members(tmp_path, change):
    path = tmp_path / "a.npz"
    write_arrays(path, {"a": np.arange(3), "b": np.arange(3)})
    assert list(stored_arrays(path)) == ["a", "b"]
    rewritten(path, change)
    with pytest.raises(bt.FileError, match="its checksum differs"):
        stored_arrays(path)


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (lambda file: file.replace(b"bittern sha256", b"bittern sja256"), "checksum differs"),
        (lambda file: file.replace(b"O\x00bittern", b"\x00\x00bittern"), "more follows"),
        (lambda file: file[:-1], "end is missing"),
        (lambda file: file + b"x", "more follows"),
    ],
    ids=["its name", "its length", "cut", "longer"],
)
def test_a_damaged_seal_is_no_missing_seal(tmp_path, damaged, says):
    path = tmp_path / "a.npz"
    write_arrays(path, {"a": np.arange(3)})
    before = path.read_bytes()
    path.write_bytes(damaged(before))
    assert path.read_bytes() != before
    with pytest.raises(bt.FileError, match=says):
        stored_arrays(path)


def test_a_file_without_a_seal_is_read(tmp_path):
    np.savez(tmp_path / "old.npz", words=CODES.words, n_bits=np.int64(64))
    assert bt.Codes.load(tmp_path / "old.npz") == CODES


def test_every_changed_bit_of_codes_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "c.npz"
    CODES.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 300).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert bt.Codes.load(path) == CODES
        except bt.FileError:
            continue


def test_text_that_is_no_text_is_refused(tmp_path):
    points = np.array([0x110000, 65], "<u4")
    content = npy(np.array(["ab"])).replace(np.array(["ab"]).tobytes(), points.tobytes())
    (tmp_path / "labels.npy").write_bytes(content)
    with pytest.raises(bt.FileError, match="holds text that is damaged"):
        inputs.read_labels(tmp_path / "labels.npy")


# Sparse matrices.


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_come_back(tmp_path, form):
    gains = np.random.default_rng(2).integers(0, 3, (6, 8)) * (
        np.eye(6, 8, 1, int) + np.eye(6, 8, dtype=int)
    )
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.coo_array(gains).asformat(form))
    np.testing.assert_array_equal(read_sparse(tmp_path / "a.npz").toarray(), gains)


BROKEN = {
    "indptr that falls": {"indptr": [0, 3, 1, 3]},
    "indptr past the end": {"indptr": [0, 1, 2, 9]},
    "indices below 0": {"indices": [0, -1, 2]},
    "indices too large": {"indices": [0, 1, 1 << 40]},
    "too few indices": {"indices": [0]},
    "a shape of one side": {"shape": [3]},
    "a negative shape": {"shape": [3, -3]},
    "an absurd shape": {"shape": [1 << 60, 3], "format": np.array("csc")},
    "no format": {"format": np.array(7)},
    "an unknown format": {"format": np.array("xyz")},
    "text as data": {"data": np.array(["a", "b", "c"])},
    "2-D data": {"data": [[1, 2, 3]]},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_sparse_matrix_is_refused_before_scipy_sees_it(tmp_path, name):
    parts = {"format": np.array("csr"), "shape": [3, 3], "data": [1, 2, 3]}
    parts |= {"indices": [0, 1, 2], "indptr": [0, 1, 2, 3]}
    np.savez(tmp_path / "good.npz", **parts)
    assert inputs.read_gains(tmp_path / "good.npz").sum() == 6
    np.savez(tmp_path / "a.npz", **parts | BROKEN[name])
    with pytest.raises(bt.FileError, match=r"a\.npz: "):
        inputs.read_gains(tmp_path / "a.npz")


# What is no ordinary file, and names that forge lines.


def odd_places(folder):
    """A pipe that nobody writes to, a device without an end, a socket, and a link to itself."""
    os.mkfifo(folder / "pipe.npz")
    (folder / "device.npz").symlink_to("/dev/zero")
    (folder / "loop.npz").symlink_to("loop.npz")
    (folder / "unreadable.npz").touch(mode=0)
    with socket.socket(socket.AF_UNIX) as opened:
        os.chdir(folder)  # a socket's name must be short
        opened.bind("socket.npz")


READERS = {
    "codes": bt.Codes.load,
    "index": bt.FlatIndex.load,
    "model": bt.hashing.load,
    "profile": bt.TieProfile.load,
    "vectors": inputs.read_vectors,
    "gains": inputs.read_gains,
    "image": read_image,
    "image's head": open_image,
    "kind": describe,
    "protocol": bt.experiments.Protocol.load,
    "archive": lambda path: list(read_members(path, {"a": 1})),
    "features": bt.features.load_features,
    "record": Record.load,
    "collection": bt.store.open,
    "faiss": lambda path: read_items("faiss", path, n_bits=8),
    "usearch": lambda path: read_items("usearch", path, n_bits=8),
}


@pytest.mark.parametrize("kind", READERS)
def test_pipes_devices_sockets_and_loops_are_refused_at_once(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    odd_places(tmp_path)
    for name, says in (
        ("pipe", "is a pipe, a socket or a device"),
        ("device", "is a pipe, a socket or a device"),
        ("socket", "is a pipe, a socket or a device"),
        ("loop", "cannot be used"),
    ):
        with pytest.raises(bt.FileError, match=rf"{name}\.npz: {says}"):
            READERS[kind](tmp_path / f"{name}.npz")


@pytest.mark.parametrize("read", [inputs.read_labels, read_run, read_qrels])
def test_readers_that_take_pipes_take_no_device(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    odd_places(tmp_path)
    with pytest.raises(bt.FileError, match="is a pipe, a socket or a device"):
        read(tmp_path / "device.npz")


def test_a_file_that_nobody_may_read_gets_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for others than root
    (tmp_path / "a.fvecs").write_bytes(bytes(8))
    with pytest.raises(bt.FileError, match=r"a\.fvecs: cannot be read \(Permission denied\)"):
        read_fvecs(tmp_path / "a.fvecs")


def test_a_run_of_one_endless_line_is_refused(tmp_path):
    with gzip.open(tmp_path / "run.gz", "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(b"a" * (1 << 20))
    with pytest.raises(bt.FileError, match="a line is longer than 16,777,216 bytes"):
        read_run(tmp_path / "run.gz")


def test_names_cannot_forge_lines_or_command_the_terminal(tmp_path, run):
    name = "a\n\x1b[2Kbittern: all is well\u202e.npz"
    with pytest.raises(bt.FileError) as caught:
        bt.Codes.load(tmp_path / name)
    assert str(caught.value).endswith(r"a\n\x1b[2Kbittern: all is well\u202e.npz: no such file.")
    code, _, said = run("report", tmp_path / name)
    assert (code, said.count("\n")) == (2, 1) and "\x1b" not in said
    assert str(bt.FileError("1\u202f000 é – ok.")) == "1\u202f000 é – ok."


def test_data_in_json_cannot_command_the_terminal_and_stay_as_they_are(tmp_path, run):
    label = "\x9b2Jcat\x1b]0;title\x07\u202e–"
    with bt.store.create(tmp_path / "a.bittern", n_bits=64) as made:
        made.add(CODES[:2], metadata={"label": [label] * 2})
    code, out, _ = run("search", tmp_path / "a.bittern", "--row", 0, "--format", "json")
    assert code == 0 and out.rstrip("\n").isprintable()
    assert {hit["label"] for hit in json.loads(out)} == {label}


def test_postscript_is_not_run(tmp_path, monkeypatch):
    path = tmp_path / "image.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(
        bt.FileError, match=r"image\.png: .*PostScript, a program, which is not run"
    ):
        read_image(path)


# Files that promise more than they hold.

TENSORS = {
    "one number repeated": (
        lambda t: t.zeros(1).expand(10**6, 10**6),
        "claims 4000000000000 bytes",
    ),
    "a nearly empty matrix": (
        lambda t: t.sparse_coo_tensor([[0], [0]], t.ones(1), (10**6, 10**6)),
        "claims 4000000000000 bytes",
    ),
    "numbers that NumPy lacks": (
        lambda t: t.rand(4, 4).to(t.float8_e4m3fn),
        "is of a kind that NumPy lacks",
    ),
    "no numbers": (lambda t: t.empty(4, 4, device="meta"), "is of a kind that NumPy lacks"),
    "quantised": (
        lambda t: t.quantize_per_tensor(t.rand(4, 4), 0.1, 0, t.quint8),
        "is of a kind that NumPy lacks",
    ),
}


@pytest.mark.filterwarnings("ignore")  # PyTorch's, about the kinds it will no longer have
@pytest.mark.parametrize("name", TENSORS)
def test_odd_tensors_get_one_sentence(tmp_path, name):
    torch = pytest.importorskip("torch")
    make, says = TENSORS[name]
    torch.save(make(torch), tmp_path / "a.pt")
    with pytest.raises(bt.FileError, match=says):
        inputs.read_vectors(tmp_path / "a.pt")


def test_conjugated_and_negated_tensors_are_read(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"vectors": torch._neg_view(torch.ones(3, 2))}, tmp_path / "a.pt")
    np.testing.assert_array_equal(inputs.read_vectors(tmp_path / "a.pt")[:], -np.ones((3, 2)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n" + "x" * 200_000 + ",1\n", "not a readable CSV file .field larger"),
        ("x" * 200_000 + ",b\n1,2\n", "not a readable CSV file .field larger"),
        ("x0,x1,t\n" + "1,2,a\n" * 9_000 + "1,2," + "y" * 99_000, "a text of 99,000 characters"),
    ],
)
def test_cells_that_are_too_long_get_one_sentence(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(bt.FileError, match=says):
        inputs.read_vectors(tmp_path / "a.csv")


def test_one_long_label_takes_no_memory_for_the_others(tmp_path):
    (tmp_path / "a.txt").write_text("cat\n" * 90_000 + "y" * 9_000)  # 3 GB as an array
    with pytest.raises(bt.FileError, match="a text of 9,000 characters among"):
        inputs.read_labels(tmp_path / "a.txt")


def test_a_file_of_many_arrays_is_opened_once(tmp_path, monkeypatch):
    write_arrays(tmp_path / "a.npz", {f"a{i}": np.arange(i) for i in range(200)})
    opened = []
    monkeypatch.setattr(
        zipfile.ZipFile, "_RealGetContents", counted(zipfile.ZipFile._RealGetContents, opened)
    )
    found = load_arrays(tmp_path / "a.npz")
    assert [len(found[f"a{i}"]) for i in range(200)] == list(range(200))
    assert 0 < len(opened) < 5  # each reads the whole directory


def counted(method, calls):
    """The method, which is also noted in a list whenever it is called."""

    def noting(*arguments):
        calls.append(arguments)
        return method(*arguments)

    return noting


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


# Interrupts.


STARTING = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "bittern.cli":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
from bittern.__main__ import main
sys.meta_path.insert(0, Interrupt())
main()
"""


def test_ctrl_c_while_it_starts_prints_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", STARTING],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=seconds(60),
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_just_after_the_imports_ends_the_command(monkeypatch, capsys):
    import bittern.cli
    from bittern.__main__ import main

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # which main replaces
    monkeypatch.setattr(bittern.cli, "main", lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(SystemExit, match="130"):
            main()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert capsys.readouterr() == ("", "")


DROPPED = """
import os, signal, sys, time
import bittern.cli
from bittern.__main__ import main

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

def work():
    Callback()
    print("dropped", flush=True)
    time.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)
bittern.cli.main = work
main()
"""


def test_ctrl_c_in_a_callback_is_not_lost_and_prints_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", DROPPED],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=seconds(60),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "dropped\n", "")


HALF_MADE = """
import os, signal
import bittern.cli
from bittern.__main__ import main

class Handle:
    def __init__(self, interrupted):
        if interrupted:
            os.kill(os.getpid(), signal.SIGINT)
        self.number = 1

    def __del__(self):
        del self.number

def work():
    Handle(False)
    Handle(True)

signal.signal(signal.SIGINT, signal.default_int_handler)
bittern.cli.main = work
main()
"""


def test_what_ctrl_c_left_half_made_prints_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", HALF_MADE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=seconds(60),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def chained(stopped, *errors):
    """The last of these errors, each raised where the one before was caught."""
    caught = stopped
    for error in errors:
        error.__context__, caught = caught, error
    return caught


def test_ctrl_c_that_a_library_made_another_error_of_is_no_error(monkeypatch, run):
    import bittern.cli.app  # noqa: F401

    def stopped(_):
        raise chained(KeyboardInterrupt(), ValueError("bad value"), ImportError("cannot load"))

    monkeypatch.setattr(sys.modules["bittern.cli.app"], "_program", stopped)
    assert run("index") == (130, "", "bittern: stopped.\n")


def test_what_went_wrong_after_ctrl_c_is_said(monkeypatch, run):
    import bittern.cli.app  # noqa: F401

    def stopped(_):
        raise chained(KeyboardInterrupt(), bt.FileError("a.npz: the disk is full."))

    monkeypatch.setattr(sys.modules["bittern.cli.app"], "_program", stopped)
    assert run("index") == (2, "", "bittern: a.npz: the disk is full.\n")


def test_ctrl_c_while_a_class_is_made_is_no_error(monkeypatch, run):
    import bittern.cli.app  # noqa: F401

    def stopped(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:  # what Python makes of it in __set_name__
            raise RuntimeError("Error calling __set_name__ on 'cached_property'") from error

    monkeypatch.setattr(sys.modules["bittern.cli.app"], "_program", stopped)
    assert run("index") == (130, "", "bittern: stopped.\n")


def test_processes_take_no_module_from_the_current_folder(tmp_path):
    # A stranger's folder may hold a duckdb.py beside the data.
    for module in ("duckdb", "multiprocessing", "pickle", "numpy"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('taken from the current folder')")
    CODES.save(tmp_path / "c.npz")
    bt.hashing.LSH(8).fit(X).save(tmp_path / "m.npz")
    bt.scale.Shards.create(tmp_path / "s", vectors=X.astype(np.float32), shard_size=40)
    with bt.store.create(tmp_path / "a.bittern", 64) as collection:
        collection.add(CODES)
    (tmp_path / "copy.bittern").write_bytes((tmp_path / "a.bittern").read_bytes())
    script = "from bittern.__main__ import main; main()"  # as the command that pip installs
    for words in (
        ("index", "add", "copy.bittern", "--from", "c.npz"),
        ("shards", "encode", "s", "m.npz", "--processes", "1"),
    ):
        done = subprocess.run(
            [sys.executable, "-P", "-c", script, *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 0, done.stderr


WORKER = """
import os, sys, time
from bittern.parallel import run_tasks

def prepare():
    return work

def work(task):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    list(run_tasks(prepare, [1], 1, owner="test"))
"""


def test_a_worker_dies_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WORKER)
    parent = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=seconds(60))
    end = time.monotonic() + seconds(10)
    while leftovers._is_alive(worker) and time.monotonic() < end:
        time.sleep(0.01)
    assert not leftovers._is_alive(worker)


# Names and numbers.


@pytest.mark.parametrize("name", [["itq"], {"a": 1}, None, 3])
def test_what_is_no_name_is_an_unknown_name(name):
    for table in (bt.hashing.HASHERS, bt.quantise.QUANTISERS, TARGETS):
        with pytest.raises(UnknownNameError, match=r"no (hasher|quantiser|target) is called"):
            table[name]


@pytest.mark.parametrize("line", ["runs = 1" + "0" * 400, "random_state = 9223372036854775808"])
def test_a_huge_number_in_a_protocol_gets_a_sentence(tmp_path, line):
    (tmp_path / "p.toml").write_text(
        f'title = "T"\n{line}\nn_bits = [8]\n[dataset]\nname = "digits"\n'
    )
    with pytest.raises(InputError, match=r"at most 64 bits|not a readable"):
        bt.experiments.Protocol.load(tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"runs = {DIGITS}", "4300 digits"),
        ("runs = " + "[" * 100_000, "nested too deeply"),
        ("a." * 100_000 + "a = 1", "line 2 has more than 2,000 dots"),  # tomllib took 20 GB
    ],
    ids=["digits", "nested", "dotted"],
)
def test_toml_that_its_parser_cannot_take_gets_a_sentence(tmp_path, line, says):
    (tmp_path / "p.toml").write_text(f'title = "T"\n{line}\n')
    with pytest.raises(bt.FileError, match=says):
        bt.experiments.Protocol.load(tmp_path / "p.toml")


@pytest.mark.parametrize(
    "call",
    [
        lambda path: bt.metrics.parse(f"ap@{DIGITS}"),
        lambda path: make_steps([f"pca{DIGITS}"]),
        lambda path: make_steps(["pca²"]),
        lambda path: parse_change("x=" + "[" * 100_000, "x=1"),
    ],
    ids=["metric", "step", "superscript", "--set"],
)
def test_numbers_that_are_none_get_a_sentence(call, tmp_path):
    with pytest.raises(BitternError, match=r"got '|no step is called|not TOML"):
        call(tmp_path)


@pytest.mark.parametrize("said", ["²", DIGITS, "-1", "two"])
def test_threads_that_are_no_number_get_a_sentence(monkeypatch, said):
    monkeypatch.setenv("BITTERN_THREADS", said)
    with pytest.raises(InputError, match="BITTERN_THREADS must be a whole number at least 1"):
        available_threads()


@pytest.mark.parametrize("name", [DIGITS, "9" * 25, "²", "cat"])
def test_an_id_that_is_no_number_is_a_name(tmp_path, name):
    document = {"put": f"id:photos:photo::{name}", "fields": {"code": "0102030405060708"}}
    (tmp_path / "d.jsonl").write_text(json.dumps(document) + "\n")
    found = read_items("vespa", tmp_path / "d.jsonl")
    assert found.ids is None and found.columns["name"].values.tolist() == [name]


def test_a_damaged_matrix_in_memory_is_refused():
    tags = scipy.sparse.csr_array(np.eye(3))
    tags.indices[1] = 1000
    for make in (
        lambda: bt.Relevance.from_tags(tags, tags),
        lambda: bt.Relevance.from_matrix(tags),
    ):
        with pytest.raises(InputError, match="the sparse matrix is damaged"):
            make()


LONG_CALL = """
import hashlib
from bittern.parallel import QUICK, interruptible

print("begun", flush=True)
interruptible(lambda: hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1), QUICK + 1)
"""


def test_ctrl_c_does_not_wait_for_a_long_compiled_call():
    child = subprocess.Popen(
        [sys.executable, "-c", LONG_CALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    child.stdout.readline()
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    try:
        assert b"KeyboardInterrupt" in child.communicate(timeout=seconds(2))[1]
    finally:
        child.kill()


@pytest.mark.parametrize("name", ["itq", "itq-cca", "isohash"])
def test_rotations_of_thousands_of_bits_are_such_calls(name, monkeypatch):
    sides = []

    def noted(work, side):
        sides.append(side)
        return work()

    monkeypatch.setattr("bittern.hashing.itq.interruptible", noted)
    monkeypatch.setattr("bittern.hashing.isohash.interruptible", noted)
    X = np.random.default_rng(0).standard_normal((50, 8))
    bt.hashing.HASHERS[name](8).fit(X, np.arange(50) % 3)
    assert len(sides) > 2 and max(sides) == 8
