"""Arrays from files of every kind, codes of every layout, and what is said of other files."""

import builtins
import pickle
import sys
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import torch

from bittern import Codes, FileError, MissingExtraError
from bittern.inputs import read_codes, read_gains, read_labels, read_tags, read_vectors
from bittern.io.code_layouts import LAYOUTS
from bittern.io.csv_columns import read_columns

RNG = np.random.default_rng(5)
X = RNG.standard_normal((9, 16)).astype(np.float32)
BITS = X > 0
CODES = Codes.from_bits(BITS)
LABELS = np.arange(9) % 4
TAGS = (LABELS[:, None] == np.arange(4)).astype(np.int64)


def write(path, **arrays):
    """Write named arrays in the format of the ending."""
    match path.suffix:
        case ".npz":
            np.savez(path, **arrays)
        case ".pt":
            torch.save({name: torch.tensor(array) for name, array in arrays.items()}, path)
        case ".mat":
            scipy.io.savemat(path, arrays, do_compression=True)
        case ".h5":
            with h5py.File(path, "w") as file:
                for name, array in arrays.items():
                    file[name] = array
        case ".parquet":
            columns = {n: a.tolist() if a.ndim > 1 else a for n, a in arrays.items()}
            pq.write_table(pa.table(columns), path)
        case ".csv" | ".tsv":
            mark = "," if path.suffix == ".csv" else "\t"
            columns = {}
            for name, array in arrays.items():
                wide = array.ndim > 1
                columns |= {f"{name[0]}{i}": c for i, c in enumerate(array.T)} if wide else {}
                columns |= {} if wide else {name: array}
            lines = [
                mark.join(columns),
                *(mark.join(map(str, r)) for r in zip(*columns.values(), strict=True)),
            ]
            path.write_text("\n".join(lines) + "\n")
    return path


ENDINGS = [".npz", ".pt", ".mat", ".h5", ".parquet", ".csv", ".tsv"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_vectors_codes_and_labels_of_every_kind_of_file(tmp_path, ending):
    vectors = write(tmp_path / f"x{ending}", vectors=X, labels=LABELS)
    np.testing.assert_array_equal(np.asarray(read_vectors(vectors)[:], np.float32), X)
    assert read_labels(vectors).tolist() == LABELS.tolist()
    for array in (BITS.astype(np.int64), np.where(BITS, 1, -1), np.where(BITS, 1.0, -1.0)):
        assert read_codes(write(tmp_path / f"c{ending}", bits=array, labels=LABELS)) == CODES
    tanh = write(tmp_path / f"t{ending}", codes=np.tanh(X))
    assert read_codes(tanh, signed=True) == CODES
    with pytest.raises(FileError, match="outputs of tanh, pass --signed"):
        read_codes(tanh)


@pytest.mark.parametrize("ending", [".npz", ".pt", ".mat", ".h5", ".parquet", ".csv"])
def test_tags_and_gains_of_every_kind_of_file(tmp_path, ending):
    assert (
        np.asarray(read_tags(write(tmp_path / f"t{ending}", tags=TAGS))).tolist() == TAGS.tolist()
    )
    gains = read_gains(write(tmp_path / f"g{ending}", gains=TAGS))
    assert np.asarray(gains).tolist() == TAGS.tolist()


def test_columns_that_are_the_vectors_are_not_kept_beside_them(tmp_path):
    file = read_vectors(write(tmp_path / "x.csv", x=X, price=np.arange(9), label=LABELS))
    assert set(file.rows.columns()) == {"price", "label"}


def test_a_tensor_alone_old_files_and_half_precision(tmp_path):
    path = tmp_path / "x.pt"
    for old in (False, True):
        torch.save(torch.tensor(X), path, _use_new_zipfile_serialization=not old)
        np.testing.assert_array_equal(read_vectors(path)[:], X)
    torch.save([torch.tensor(X).bfloat16()], path)
    found = read_vectors(path)[:]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, X, rtol=2**-7)


def test_a_file_of_pytorch_runs_no_code(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": np.ones(3)}, path)  # weights_only refuses arrays of NumPy
    with pytest.raises(FileError, match=r"x\.pt: is a PyTorch file with more than tensors, which"):
        read_codes(path)
    torch.save({"epoch": 3}, path)
    with pytest.raises(FileError, match="is a PyTorch file without tensors"):
        read_codes(path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"version", b"versiom"))
    with pytest.raises(FileError, match=r"x\.pt: is a damaged PyTorch file\.$"):
        read_codes(path)


def test_matlab_7_3_stores_columns_as_rows(tmp_path):
    path = tmp_path / "x.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["B"] = np.where(BITS, 1.0, -1.0).T
        file["labels"] = LABELS[None].astype(float)
        file["n_bits"] = np.array([[16.0]])
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    assert read_codes(path) == CODES
    assert read_labels(path).tolist() == LABELS.tolist()


def test_a_file_without_labels_says_what_it_has(tmp_path):
    path = write(tmp_path / "x.csv", x=X, price=np.arange(9))
    with pytest.raises(FileError, match="has no labels; their array must be called labels, label"):
        read_labels(path)
    (tmp_path / "l.csv").write_bytes("café\n".encode("latin-1"))
    with pytest.raises(FileError, match="UTF-8 text with one label per line"):
        read_labels(tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1,2\n3,4\n", {"t": [[1, 2], [3, 4]]}),
        ("1.5,2\n3,-4e1\n", {"t": [[1.5, 2], [3, -40]]}),
        ("1;2\n3;4\n", {"t": [[1, 2], [3, 4]]}),
        ("a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("0,1,2\n7,8,9\n", {"0": [7], "1": [8], "2": [9]}),  # pandas without names
        (",0,1,2\n0,7,8,9\n", {"": [0], "0": [7], "1": [8], "2": [9]}),  # and with its index
        ("0,1\n1,0\n", {"t": [[0, 1], [1, 0]]}),
        ('a,b\n"x, y",1\n', {"a": ["x, y"], "b": [1]}),
        ("\ufeffa\r\n1\r\n", {"a": [1]}),
    ],
)
def test_csv(tmp_path, text, columns):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert {name: array.tolist() for name, array in read_columns(path).items()} == columns


def test_csv_that_is_none(tmp_path):
    path = tmp_path / "t.csv"
    for content, says in [
        (b"1,2,3\n1,2\n", "row 2 has 2 cells, but the first line 3"),
        (b"a,a\n1,2\n", "has two columns called 'a'"),
        ("é,b\n1,2\n".encode("latin-1"), "CSV must be UTF-8"),
        (b" \n", "has no rows"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=f"t.csv: {says}"):
            read_codes(path)


def test_labels_in_csv_with_and_without_a_header(tmp_path):
    path = tmp_path / "l.csv"
    for text, labels in [("cat\ndog\n", ["cat", "dog"]), ("label\n3\n1\n", [3, 1])]:
        path.write_text(text)
        assert read_labels(path).tolist() == labels


# Layouts


def test_layouts_of_sentence_transformers(tmp_path):
    # As sentence_transformers.quantization does: packbits, and for "binary" minus 128 as int8.
    path = tmp_path / "c.npy"
    ubinary = np.packbits(BITS, axis=1)
    np.save(path, ubinary)
    assert read_codes(path, layout="ubinary") == read_codes(path) == CODES
    binary = (ubinary.astype(np.int16) - 128).astype(np.int8)
    np.save(path, binary)
    assert read_codes(path, layout="binary") == CODES
    with pytest.raises(FileError, match="pass --code-layout binary for packed bytes of sentence-"):
        read_codes(path)


def test_a_layout_that_is_said_is_not_guessed(tmp_path):
    path = tmp_path / "c.npy"
    np.save(path, np.array([[0, 1], [1, 1]], np.uint8))
    assert read_codes(path).n_bits == 2
    assert read_codes(path, layout="packed").n_bits == 16
    np.save(path, np.array([[200.0, 1.0]]))
    assert read_codes(path, layout="packed") == Codes.from_packed(np.array([[200, 1]], np.uint8))


@pytest.mark.parametrize(
    ("array", "layout", "says"),
    [
        (X, "bits", "bits must be booleans or 0/1, got float32 from -"),
        (X, "packed", "packed bytes must be whole numbers from 0 to 255, got float32"),
        (np.full((2, 2), 130), "binary", "whole numbers from -128 to 127, got int64 from 130"),
        (BITS, "packed", "got bool"),
        (X, "words", "words must be uint64, got float32"),
        (np.full((2, 2), 7), None, "got int64 from 7 to 7; pass --code-layout packed"),
        (np.array([[-1, 0, 1]]), None, "if the sign is the bit, pass --signed"),
    ],
)
def test_numbers_that_do_not_fit_a_layout(tmp_path, array, layout, says):
    np.save(tmp_path / "c.npy", array)
    with pytest.raises(FileError, match=f"c.npy: .*{says}"):
        read_codes(tmp_path / "c.npy", layout=layout)


def test_the_command_offers_every_layout():
    from bittern.cli.app import CodeLayout

    assert list(CodeLayout) == list(LAYOUTS)


# Other files


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return path.read_bytes()


@pytest.mark.parametrize("read", [read_codes, read_vectors, read_tags, read_labels])
@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "a PNG image"),
        (b"\xff\xd8\xff\xe0" + bytes(99), "a JPEG image"),
        (b"RIFF\x10\x00\x00\x00WEBP" + bytes(99), "a WebP image"),
        (b"<!DOCTYPE html>\n<html></html>", "an HTML page"),
        (b'{"a": 1}', "JSON"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        (pickle.dumps({"a": 1}), "a pickle, which could run code"),
        (b"\x1f\x8b\x08" + bytes(99), "a gzip archive"),
        (b"PK\x03\x04" + bytes(99), "a damaged .npz or zip file"),
        (b"\x40\x00\x00\x00\x00\x00\x00\x00" + b'{"a":{"dtype":' + bytes(9), "a safetensors file"),
    ],
)
def test_what_is_no_file_of_arrays_is_called_by_its_kind(tmp_path, read, start, what):
    path = tmp_path / "x.npy"
    path.write_bytes(start)
    with pytest.raises(FileError) as error:
        read(path)
    said = str(error.value)
    assert said.startswith(f"{path}: is {what}") and said.count("\n") == 0
    assert "magic" not in said


def test_archives_and_empty_files(tmp_path):
    path = tmp_path / "x.npz"
    zipped(path, readme="x")
    with pytest.raises(FileError, match=r"x\.npz: is a zip archive of other files; give arrays as"):
        read_codes(path)
    zipped(path, **{"xl__workbook.xml": ""})
    with pytest.raises(FileError, match="is an Excel workbook"):
        read_vectors(path)
    path.write_bytes(b"")
    with pytest.raises(FileError, match=r"x\.npz: is empty"):
        read_vectors(path)
    for start in (b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'descr': garbage", b"\x93NUMPY\x09\x00"):
        path.write_bytes(start)
        with pytest.raises(FileError, match=r"x\.npz: not a readable .* \(its header is damaged\)"):
            read_codes(path)


@pytest.mark.parametrize(
    ("ending", "library", "extra"), [(".pt", "torch", "deep"), (".parquet", "pyarrow", "io")]
)
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, ending, library, extra):
    path = write(tmp_path / f"x{ending}", codes=BITS)
    real = builtins.__import__

    def without(name, *more):
        if name.partition(".")[0] == library:
            raise ImportError(name)
        return real(name, *more)

    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        MissingExtraError, match=rf"x\{ending}: .* pip install 'bittern\[{extra}\]'"
    ):
        read_codes(path)


def test_more_rows_than_a_parquet_file_can_stand_for_are_refused(tmp_path):
    n = (1 << 24) + 1
    alike = pa.table({"x": np.zeros(n, np.int32)})
    together = {"row_group_size": n, "data_page_size": 4 * n, "max_rows_per_page": n}
    pq.write_table(alike, tmp_path / "a.parquet", write_batch_size=n, **together)
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    with pytest.raises(FileError, match="the number of rows claims 16777217 bytes, but"):
        read_vectors(tmp_path / "a.parquet")
