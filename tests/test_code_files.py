import errno
import os

import numpy as np
import pytest
from processes import run_python

from bittern import Codes, FileError, InputError

ENDINGS = ["npz", "npy"]
LENGTHS = [1, 7, 8, 63, 64, 65, 128, 200, 4096]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def random_codes(n, n_bits, random_state=0):
    return Codes.from_bits(np.random.default_rng(random_state).random((n, n_bits)) < 0.5)


@pytest.fixture(params=ENDINGS)
def ending(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["read", "mapped"])
def mmap(request):
    return request.param


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_codes_survive_the_round_trip(tmp_path, ending, mmap, n_bits):
    codes = random_codes(6, n_bits)
    codes.save(tmp_path / f"c.{ending}")
    assert Codes.load(tmp_path / f"c.{ending}", mmap=mmap) == codes
    assert Codes.load(str(tmp_path / f"c.{ending}"), mmap=mmap, n_bits=n_bits) == codes
    assert names_in(tmp_path) == [f"c.{ending}"]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("n_bits", [5, 64, 70])
def test_none_and_one_code_survive_the_round_trip(tmp_path, ending, mmap, n, n_bits):
    codes = random_codes(n, n_bits)
    codes.save(tmp_path / f"c.{ending}")
    loaded = Codes.load(tmp_path / f"c.{ending}", mmap=mmap)
    assert loaded == codes
    assert len(loaded) == n


def test_saving_replaces_what_was_there(tmp_path, ending):
    path = tmp_path / f"c.{ending}"
    random_codes(50, 200).save(path)
    random_codes(3, 12).save(path)
    assert Codes.load(path) == random_codes(3, 12)


def test_part_of_a_collection_is_saved_alone(tmp_path, ending):
    codes = random_codes(9, 70)
    codes[2:5].save(tmp_path / f"c.{ending}")
    assert Codes.load(tmp_path / f"c.{ending}") == codes[2:5]


def test_writing_to_mapped_words_never_reaches_the_file(tmp_path, ending):
    path = tmp_path / f"c.{ending}"
    codes = random_codes(5, 64)
    codes.save(path)
    loaded = Codes.load(path, mmap=True)
    loaded.words[:] = 0  # copy on write
    assert Codes.load(path) == codes


def test_mapped_words_are_aligned(tmp_path, ending):
    # Compiled code is slower on words that are not, and is compiled anew for them.
    path = tmp_path / f"c.{ending}"
    random_codes(5, 64).save(path)
    assert Codes.load(path, mmap=True).words.flags.aligned


def test_numpy_alone_can_read_what_we_save(tmp_path):
    codes = random_codes(5, 128)
    codes.save(tmp_path / "c.npz")
    codes.save(tmp_path / "c.npy")
    with np.load(tmp_path / "c.npz") as archive:
        np.testing.assert_array_equal(archive["words"], codes.words)
        assert archive["n_bits"] == 128
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), codes.words)


def test_a_plain_file_of_words(tmp_path, mmap):
    codes = random_codes(5, 128)
    np.save(tmp_path / "c.npy", codes.words)
    assert Codes.load(tmp_path / "c.npy", mmap=mmap) == codes


def test_a_plain_file_of_words_whose_length_is_told(tmp_path, mmap):
    codes = random_codes(5, 100)
    np.save(tmp_path / "c.npy", codes.words)
    assert Codes.load(tmp_path / "c.npy", n_bits=100, mmap=mmap) == codes


@pytest.mark.parametrize("layout", [">u8", "F"])
def test_a_plain_file_of_words_in_another_layout(tmp_path, mmap, layout):
    codes = random_codes(5, 128)
    words = np.asfortranarray(codes.words) if layout == "F" else codes.words.astype(layout)
    np.save(tmp_path / "c.npy", words)
    np.savez(tmp_path / "c.npz", words=words, n_bits=128)
    for name in ("c.npy", "c.npz"):
        assert Codes.load(tmp_path / name, mmap=mmap) == codes


def test_a_plain_file_of_packed_bytes(tmp_path, mmap):
    codes = random_codes(5, 48)
    np.save(tmp_path / "c.npy", codes.to_packed())
    assert Codes.load(tmp_path / "c.npy", mmap=mmap) == codes


@pytest.mark.parametrize("n_bits", [2, 7, 44, 100])
def test_a_plain_file_of_packed_bytes_with_a_given_length(tmp_path, mmap, n_bits):
    codes = random_codes(5, n_bits)
    np.save(tmp_path / "c.npy", codes.to_packed())
    assert Codes.load(tmp_path / "c.npy", n_bits=n_bits, mmap=mmap) == codes


def test_a_plain_file_of_packed_bytes_with_one_bit_each(tmp_path):
    codes = Codes.from_bits([[1], [0]])
    np.save(tmp_path / "c.npy", codes.to_packed())  # [[0x80], [0]]
    assert Codes.load(tmp_path / "c.npy", n_bits=1) == codes


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_a_plain_file_of_bits(tmp_path, mmap, dtype):
    codes = random_codes(5, 44)
    np.save(tmp_path / "c.npy", codes.to_bits().astype(dtype))
    assert Codes.load(tmp_path / "c.npy", mmap=mmap) == codes


def test_a_plain_file_of_bits_as_bytes_with_a_given_length(tmp_path, mmap):
    codes = random_codes(5, 44)
    np.save(tmp_path / "c.npy", codes.to_bits().astype(np.uint8))
    assert Codes.load(tmp_path / "c.npy", n_bits=44, mmap=mmap) == codes


def test_a_length_that_contradicts_the_file_is_refused(tmp_path, ending):
    random_codes(5, 70).save(tmp_path / f"c.{ending}")
    with pytest.raises(InputError, match=r"holds codes of 70 bits, not n_bits=71"):
        Codes.load(tmp_path / f"c.{ending}", n_bits=71)


@pytest.mark.parametrize("dtype", [bool, np.int64])
def test_a_length_that_contradicts_a_file_of_bits_is_refused(tmp_path, dtype):
    np.save(tmp_path / "c.npy", np.ones((2, 8), dtype))
    with pytest.raises(InputError, match="8"):
        Codes.load(tmp_path / "c.npy", n_bits=5)


def test_the_content_and_not_the_name_tells_the_format(tmp_path, ending, mmap):
    codes = random_codes(5, 70)
    codes.save(tmp_path / f"c.{ending}")
    (tmp_path / f"c.{ending}").rename(tmp_path / "codes")
    assert Codes.load(tmp_path / "codes", mmap=mmap) == codes


@pytest.mark.parametrize("name", ["c.txt", "c", "c.npz.bak", "c.NPZ"])
def test_an_unknown_ending_is_refused_and_nothing_written(tmp_path, name):
    with pytest.raises(InputError, match=r"codes are saved as \.npz or \.npy, got "):
        random_codes(2, 8).save(tmp_path / name)
    assert names_in(tmp_path) == []


def test_a_missing_file_and_a_folder_are_file_errors(tmp_path, mmap):
    with pytest.raises(FileError, match=r"none\.npz: no such file"):
        Codes.load(tmp_path / "none.npz", mmap=mmap)
    with pytest.raises(FileError, match="is a folder"):
        Codes.load(tmp_path, mmap=mmap)


def test_saving_into_a_missing_folder_is_a_file_error(tmp_path, ending):
    with pytest.raises(FileError, match="cannot be written"):
        random_codes(2, 8).save(tmp_path / "none" / f"c.{ending}")


def test_a_compressed_archive_is_read_but_not_mapped(tmp_path):
    codes = random_codes(5, 70)
    np.savez_compressed(tmp_path / "c.npz", words=codes.words, n_bits=70)
    assert Codes.load(tmp_path / "c.npz") == codes
    with pytest.raises(FileError, match=r"cannot be mapped; load without mmap"):
        Codes.load(tmp_path / "c.npz", mmap=True)


def test_other_arrays_in_the_archive_do_not_matter(tmp_path, mmap):
    codes = random_codes(5, 70)
    np.savez(tmp_path / "c.npz", labels=np.arange(5), words=codes.words, n_bits=70)
    assert Codes.load(tmp_path / "c.npz", mmap=mmap) == codes


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()], ids=repr
)
def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, ending, error):
    old, path = random_codes(5, 70), tmp_path / f"c.{ending}"
    old.save(path)

    def fail(file, *arrays, **named_arrays):
        file.write(b"half")
        raise error

    monkeypatch.setattr(np.lib.format, "write_array", fail)  # what both formats are written by
    monkeypatch.setattr(np, "save", fail)
    expected = FileError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        random_codes(9, 70).save(path)
    assert names_in(tmp_path) == [path.name]
    assert Codes.load(path) == old


@pytest.mark.slow  # nine processes, 80 MB each
def test_ten_million_codes_save_and_load_without_doubling_memory(tmp_path):
    """80 MB of codes; the peak is that of a process, so each step has one of its own."""
    script = """
        import resource, sys
        import numpy as np
        from bittern import Codes

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        step, path, n_bits, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), 10_000_000
        before = peak()
        if step == "save":
            Codes(np.arange(n, dtype=np.uint64)[:, None], n_bits).save(path)
        else:
            codes = Codes.load(path, mmap=step == "map")
            assert len(codes) == n
            assert codes.words[-1, 0] == n - 1
        print((peak() - before) / (8 * n))
    """
    for ending, n_bits in (("npz", 64), ("npy", 64), ("npy", 60)):
        path = tmp_path / f"c.{ending}"
        for step in ("save", "load", "map"):
            # Mapped words are read, to see that the padding is zero, only if there is padding.
            most = 0.3 if step == "map" and n_bits == 64 else 1.5
            grown = float(run_python(script, step, path, n_bits))
            assert grown < most, f"{step} .{ending} of {n_bits} bits: {grown} times the codes"
        path.unlink()
