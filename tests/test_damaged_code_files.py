"""Files of codes that are cut, changed, or of another kind: always our error, never another."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from processes import run_python

from bittern import Codes, FileError, InputError

ENDINGS = ["npz", "npy"]

# What is said of damage: by the parser, or by us before it is asked.
DAMAGE = r"not a readable|the file holds|the array|claims|two arrays|a file of codes has"


def random_codes(n, n_bits):
    return Codes.from_bits(np.random.default_rng(0).random((n, n_bits)) < 0.5)


def header(shape, descr="<u8"):
    """A ``.npy`` header that promises an array."""
    file = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


@pytest.fixture(params=ENDINGS)
def ending(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["read", "mapped"])
def mmap(request):
    return request.param


@pytest.mark.parametrize("n_bits", [64, 70])
def test_a_file_cut_anywhere_is_a_file_error(tmp_path, ending, mmap, n_bits):
    path = tmp_path / f"c.{ending}"
    random_codes(2, n_bits).save(path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(
            FileError,
            match=DAMAGE,
        ):
            Codes.load(path, mmap=mmap)


def test_a_file_with_one_byte_changed_loads_or_is_an_input_error(tmp_path, ending, mmap):
    # A changed word of a .npy cannot be noticed; but nothing may escape that is not ours.
    path = tmp_path / f"c.{ending}"
    random_codes(2, 70).save(path)
    whole = path.read_bytes()
    refused, escaped = 0, []
    for place in range(len(whole)):
        for byte in {whole[place] ^ 1, whole[place] ^ 255, ord("(")}:
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            try:
                Codes.load(path, mmap=mmap)
            except InputError:
                refused += 1
            except Exception as error:
                escaped.append(f"byte {place} = {byte}: {error!r}")
    assert refused
    assert not escaped, "\n".join(escaped[:9])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"\n" * 1000,
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x00\x10\x00",
        pickle.dumps([1, 2]),
        header((10**12, 1)),
        header((10**30, 1)),
        header((-1, 1)) + bytes(64),
        header((2**62, 4)) + bytes(64),
    ],
    ids=repr,
)
def test_what_is_not_a_file_of_codes_is_a_file_error(tmp_path, mmap, content):
    (tmp_path / "c.npy").write_bytes(content)
    with pytest.raises(FileError, match=r"c\.npy: (not a readable|an array of|the array)"):
        Codes.load(tmp_path / "c.npy", mmap=mmap)


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, np.uint64), np.zeros((2, 2, 2), np.uint64), np.uint64(3)],
    ids=["1-D", "3-D", "0-D"],
)
def test_an_array_that_is_not_2d_is_a_file_error(tmp_path, mmap, array):
    np.save(tmp_path / "c.npy", array)
    np.savez(tmp_path / "c.npz", words=array, n_bits=64)
    for name in ("c.npy", "c.npz"):
        with pytest.raises(FileError, match=r"codes must be a 2-D array \(n, width\), got shape"):
            Codes.load(tmp_path / name, mmap=mmap)


def test_an_archive_of_other_arrays_is_a_file_error(tmp_path, mmap):
    np.savez(tmp_path / "c.npz", bits=np.zeros((2, 2)), labels=np.zeros(2))
    with pytest.raises(FileError, match=r"'words' and 'n_bits', got \['bits', 'labels'\]"):
        Codes.load(tmp_path / "c.npz", mmap=mmap)


WORDS = np.zeros((2, 1), np.uint64)


@pytest.mark.parametrize(
    "n_bits",
    [np.array([5]), np.array([5, 6]), 12.7, -3, 0, 5000, 65, np.nan],
    ids=repr,
)
def test_an_archive_with_an_impossible_length_is_a_file_error(tmp_path, mmap, n_bits):
    np.savez(tmp_path / "c.npz", words=WORDS, n_bits=n_bits)
    with pytest.raises(FileError, match=r"c\.npz: "):
        Codes.load(tmp_path / "c.npz", mmap=mmap)


@pytest.mark.parametrize("words", [np.zeros((2, 3)), np.full((2, 1), 1 << 63, np.uint64)])
def test_an_archive_whose_words_do_not_fit_its_length_is_a_file_error(tmp_path, mmap, words):
    np.savez(tmp_path / "c.npz", words=words, n_bits=7)
    with pytest.raises(FileError, match=r"c\.npz: "):
        Codes.load(tmp_path / "c.npz", mmap=mmap)


@pytest.mark.parametrize(
    "dtype",
    [
        [("a", "<u8")],
        [("words_of_70_bits", "<u8", (2,)), ("b", "<u8")],
        [("words_of_70_bits", "<u8")],
        [("words_of_70_bits", "<u8", (1,))],
        [("words_of_0_bits", "<u8", (1,))],
        [("words_of_9999_bits", "<u8", (157,))],
    ],
    ids=repr,
)
def test_records_that_are_not_codes_are_a_file_error(tmp_path, mmap, dtype):
    np.save(tmp_path / "c.npy", np.zeros(3, dtype))
    with pytest.raises(FileError, match=r"c\.npy: "):
        Codes.load(tmp_path / "c.npy", mmap=mmap)


class Bomb:
    """Unpickling this would show."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


@pytest.mark.parametrize("name", ["c.npy", "c.npz", "n.npz"])
def test_pickled_arrays_are_refused_and_never_run(tmp_path, mmap, name):
    bomb = np.empty((1, 1), object)
    bomb[0, 0] = Bomb()
    np.save(tmp_path / "c.npy", bomb, allow_pickle=True)
    np.savez(tmp_path / "c.npz", words=bomb, n_bits=64)
    np.savez(tmp_path / "n.npz", words=WORDS, n_bits=bomb)
    # In a process of its own: an array of pointers mapped from a file may end it.
    script = f"""
        from bittern import Codes, FileError
        try:
            Codes.load({str(tmp_path / name)!r}, mmap={mmap})
        except FileError as error:
            assert "{name}: " in str(error)
            print("refused")
    """
    assert run_python(script) == "refused"


def test_a_damaged_compressed_archive_is_a_file_error(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", words=np.arange(999, dtype="u8")[:, None], n_bits=64)
    whole = (tmp_path / "c.npz").read_bytes()
    middle = whole.index(b"words.npy") + 300
    (tmp_path / "c.npz").write_bytes(whole[:middle] + bytes(40) + whole[middle + 40 :])
    with pytest.raises(
        FileError,
        match=DAMAGE,
    ):
        Codes.load(tmp_path / "c.npz")


def test_a_zip_of_other_things_is_a_file_error(tmp_path, mmap):
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("words", "hello")
        archive.writestr("n_bits", "12")
    with pytest.raises(FileError, match=r"c\.npz: "):
        Codes.load(tmp_path / "c.npz", mmap=mmap)
