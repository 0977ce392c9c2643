"""Damaged files are refused before they are used, and what is no file before it is read."""

import gzip
import io
import json
import os
import socket
import zipfile

import numpy as np
import pytest
import scipy.sparse

import bittern as bt
from bittern import inputs
from bittern.data.images import open_image, read_image
from bittern.data.readers.sift1m import read_vectors as read_fvecs
from bittern.experiments import Record
from bittern.io.archives import read_members
from bittern.io.exchange import read as read_items
from bittern.io.kinds import describe
from bittern.io.npz import load_arrays, stored_arrays, write_arrays
from bittern.io.sparse import read_sparse
from bittern.io.trec import read_qrels, read_run

CODES = bt.Codes.from_bits(np.random.default_rng(1).random((20, 64)) < 0.5)


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
