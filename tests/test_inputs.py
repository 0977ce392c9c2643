"""Codes, labels, tags and gains from files that other programs wrote."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern import BitternError, Codes, FileError, InputError
from bittern.inputs import has_array, read_codes, read_gains, read_labels, read_tags

BITS = np.random.default_rng(1).random((7, 20)) < 0.5
CODES = Codes.from_bits(BITS)


@pytest.fixture
def saved(tmp_path):
    """Save an array, or several by name, and return the path."""

    def save(array=None, **arrays):
        path = tmp_path / ("file.npz" if arrays else "file.npy")
        if arrays:
            np.savez(path, **arrays)
        else:
            np.save(path, array)
        return path

    return save


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.uint64, np.float32, ">i4"])
def test_zeros_and_ones_of_any_type_are_bits(saved, dtype):
    assert read_codes(saved(BITS.astype(dtype))) == CODES


def test_uint8_beyond_one_are_packed_bytes(saved):
    packed = np.packbits(BITS, axis=1)
    assert read_codes(saved(packed), n_bits=20) == CODES
    assert read_codes(saved(packed)).n_bits == 24
    little = saved(np.packbits(BITS, axis=1, bitorder="little"))
    assert read_codes(little, n_bits=20, bitorder="little") == CODES
    assert Codes.load(little, n_bits=20, bitorder="little") == CODES
    for read in (read_codes, Codes.load):
        with pytest.raises(InputError, match="bitorder must be one of 'big', 'little', got 'b'"):
            read(little, bitorder="b")


@pytest.mark.parametrize("dtype", ["<u8", ">u8"])
def test_uint64_beyond_one_are_words(saved, dtype):
    words = CODES.words.astype(dtype)
    assert read_codes(saved(words), n_bits=20) == CODES
    assert read_codes(saved(words)).n_bits == 64


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
def test_a_length_tells_bytes_and_words_of_zeros_and_ones_from_bits(saved, dtype):
    packed = np.array([[0, 1], [1, 0]], dtype)
    per_column = 8 * packed.itemsize
    assert read_codes(saved(packed)).n_bits == 2
    assert read_codes(saved(packed), n_bits=2) == Codes.from_bits(packed)
    assert read_codes(saved(packed), n_bits=2 * per_column).to_bits().sum() == 2


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
def test_signed_codes(saved, dtype):
    path = saved(np.where(BITS, 1, -1).astype(dtype))
    assert read_codes(path, signed=True) == CODES
    assert read_codes(path, signed=True, n_bits=20) == CODES
    with pytest.raises(FileError, match="20 bits, not 19"):
        read_codes(path, signed=True, n_bits=19)


@pytest.mark.parametrize("name", ["codes", "bits", "packed", "bytes", "octets", "anything"])
def test_an_archive_of_one_array_or_of_a_known_name(saved, name):
    arrays = {name: BITS} if name == "anything" else {name: BITS, "labels": np.arange(7)}
    assert read_codes(saved(**arrays)) == CODES


def test_an_archive_may_state_the_length(saved):
    packed = np.packbits(BITS, axis=1)
    assert read_codes(saved(packed=packed, n_bits=20)) == CODES
    assert read_codes(saved(words=CODES.words, n_bits=20, labels=np.arange(7))) == CODES


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_what_codes_save_is_read_whatever_else_is_said(tmp_path, ending):
    path = tmp_path / f"codes.{ending}"
    CODES.save(path)
    assert read_codes(path) == read_codes(path, signed=True) == read_codes(path, n_bits=20) == CODES
    with pytest.raises(InputError, match="20 bits"):
        read_codes(path, n_bits=21)


def test_codes_of_an_archive_are_not_read_for_their_names(tmp_path):
    # Only the list of names: a damaged array does not matter until it is wanted.
    path = tmp_path / "codes.npz"
    np.savez(path, labels=np.arange(3), bits=np.ones((4, 1000), bool))
    content = bytearray(path.read_bytes())
    start = content.index(b"bits.npy")
    content[start + 500] ^= 1
    path.write_bytes(content)
    assert has_array(path, "labels") and not has_array(path, "tags")
    assert read_labels(path).tolist() == [0, 1, 2]
    with pytest.raises(FileError, match="CRC"):
        read_codes(path)


def test_a_plain_array_brings_no_labels(saved):
    assert not has_array(saved(BITS), "labels")


@pytest.mark.parametrize("name", ["labels", "label", "classes", "y"])
def test_labels_of_an_archive(saved, name):
    path = saved(**{name: np.array(["a", "b"]), "bits": BITS[:2]})
    assert has_array(path, "labels")
    assert read_labels(path).tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (b"3\n-1\n+2\n", [3, -1, 2]),
        (b"3\r\n1\r\n", [3, 1]),
        (b"\xef\xbb\xbf3\n1", [3, 1]),
        (b"3\n1\n\n  \n", [3, 1]),
        (b" 3 \n\t1\n", [3, 1]),
        (b"cat\nhot dog\n", ["cat", "hot dog"]),
        ("crème\nbrûlée\n".encode(), ["crème", "brûlée"]),
        (b"1\ncat\n", ["1", "cat"]),
        (b"1.5\n2\n", ["1.5", "2"]),
        (b"1_10\n11_0\n", ["1_10", "11_0"]),  # int() would read both as 110
        (b"99999999999999999999\n1\n", ["99999999999999999999", "1"]),
        (b"PK\nPKU\n", ["PK", "PKU"]),  # begins as a zip file does
    ],
)
def test_labels_of_a_text(tmp_path, text, labels):
    path = tmp_path / "labels.txt"
    path.write_bytes(text)
    assert read_labels(path).tolist() == labels


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs names for open pipes")
def test_labels_through_a_pipe(tmp_path):
    # As in: bittern evaluate … --query-labels <(cut -f 2 table.tsv)
    read, write = os.pipe()
    os.write(write, b"4\n5\n6\n")
    os.close(write)
    assert read_labels(f"/dev/fd/{read}").tolist() == [4, 5, 6]
    os.close(read)


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr", "dia"])
@pytest.mark.parametrize("read", [read_tags, read_gains])
def test_sparse_matrices_of_every_format(tmp_path, read, make, kind):
    path = tmp_path / "matrix.npz"
    dense = np.array([[0, 1, 0], [1, 1, 0]])
    scipy.sparse.save_npz(path, make(dense).asformat(kind))
    assert read(path).toarray().tolist() == dense.tolist()


@pytest.mark.parametrize(
    ("read", "name"), [(read_tags, "tags"), (read_gains, "gains"), (read_gains, "relevance")]
)
def test_dense_matrices(saved, read, name):
    dense = np.array([[0, 1, 0], [1, 1, 0]])
    assert read(saved(dense)).tolist() == dense.tolist()
    assert read(saved(**{name: dense, "more": dense[0]})).tolist() == dense.tolist()


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_a_sparse_matrix_whose_indices_lie_outside_is_refused(tmp_path, kind):
    # SciPy loads it, and the kernels would read memory that is not theirs.
    path = tmp_path / "matrix.npz"
    matrix = scipy.sparse.csr_array(np.eye(3, dtype=int)).asformat(kind)
    matrix.indices[1] = 1000
    scipy.sparse.save_npz(path, matrix)
    with pytest.raises(FileError, match=r"matrix.npz: .*'indices' must be whole numbers below 3"):
        read_gains(path)


def test_a_sparse_vector_is_no_matrix(tmp_path):
    scipy.sparse.save_npz(tmp_path / "v.npz", scipy.sparse.coo_array(np.array([1, 0, 2])))
    with pytest.raises(FileError, match="must have two sides, got \\[3\\]"):
        read_gains(tmp_path / "v.npz")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.ones(5), r"2-D array \(n, width\) of 1 to 4096 columns, got shape \(5,\)"),
        (np.ones((5, 0)), r"got shape \(5, 0\)"),
        (np.ones((2, 5000)), r"got shape \(2, 5000\)"),
        (np.ones((2, 3, 4)), r"got shape \(2, 3, 4\)"),
        (np.full((2, 3), -1), r"got int64 from -1 to -1; if the sign is the bit, pass --si"),
        (np.full((2, 3), np.nan), r"got NaN among float64\."),
        (np.full((2, 3), 300, np.uint32), r"got uint32 from 300 to 300\."),
        (np.array([["a"]]), r"got other values of <U1"),
        (np.ones((2, 3), complex), r"got other values of complex128"),
    ],
)
def test_arrays_that_are_no_codes(saved, array, says):
    path = saved(array)
    with pytest.raises(FileError, match=says) as error:
        read_codes(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.packbits(BITS, axis=1), "got uint8"),
        (CODES.words, "got uint64"),
        (BITS, "got bool"),
        (np.array([["a"]]), "got <U1"),
        (np.array([[1.0, np.nan]]), "got NaN"),
    ],
)
def test_arrays_that_have_no_sign(saved, array, says):
    with pytest.raises(FileError, match=f"both signs, like ±1, {says}"):
        read_codes(saved(array), signed=True)


@pytest.mark.parametrize("n_bits", [[20, 20], "20", 20.5])
def test_a_stated_length_that_is_none(saved, n_bits):
    with pytest.raises(FileError, match="n_bits must be one whole number"):
        read_codes(saved(words=CODES.words, n_bits=np.array(n_bits)))


def test_an_archive_without_what_is_wanted_says_what_it_has(saved):
    path = saved(features=BITS, ids=np.arange(7))
    with pytest.raises(FileError, match=r"no codes; .* words, codes, .*the file has features, ids"):
        read_codes(path)
    with pytest.raises(FileError, match=r"no labels; .*the file has features, ids"):
        read_labels(path)
    with pytest.raises(FileError, match=r"no tags; .*the file has features, ids"):
        read_tags(path)


def test_an_archive_of_something_else_has_no_arrays(tmp_path):
    path = tmp_path / "codes.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/readme.txt", b"Hello.")
    with pytest.raises(FileError, match="is a zip archive of other files; give arrays as"):
        read_codes(path)


@pytest.mark.parametrize("read", [read_codes, read_labels, read_tags, read_gains])
def test_what_is_not_there_or_a_folder(tmp_path, read):
    with pytest.raises(FileError, match="no such file"):
        read(tmp_path / "none.npy")
    with pytest.raises(FileError, match="is a folder"):
        read(tmp_path)


@pytest.mark.parametrize("read", [read_codes, read_labels, read_tags, read_gains])
def test_pickled_objects_are_never_unpickled(tmp_path, read):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([print, "a"], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match=r"holds pickled objects, .* save it as numbers or text"):
        read(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Good files, to be damaged."""
    folder = tmp_path_factory.mktemp("whole")
    np.save(folder / "plain.npy", BITS)
    np.savez(folder / "stored.npz", bits=BITS, labels=np.arange(7))
    np.savez_compressed(folder / "packed.npz", bits=BITS, labels=np.arange(7))
    scipy.sparse.save_npz(folder / "sparse.npz", scipy.sparse.csr_array(BITS))
    return folder


@settings(max_examples=300, deadline=None)
@pytest.mark.filterwarnings("ignore")  # NumPy comments on odd headers
@given(
    name=st.sampled_from(["plain.npy", "stored.npz", "packed.npz", "sparse.npz"]),
    cut=st.none() | st.floats(0, 1),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6),
)
def test_damage_anywhere_is_told_as_such(whole, name, cut, changes):
    content = bytearray((whole / name).read_bytes())
    for place, value in changes:
        content[int(place * len(content))] = value
    path = whole / "damaged"
    path.write_bytes(content if cut is None else content[: int(cut * len(content))])
    for read in (read_codes, read_labels, read_tags, read_gains):
        try:
            read(path)
        except BitternError as error:
            assert "\n" not in str(error)
        except MemoryError:
            pass  # a header that asks for the moon
