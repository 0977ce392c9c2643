import gzip
import struct

import numpy as np
import pytest
from numeric_damage import flips, survivors, truncations

from bittern.data.readers.mnist import read_idx
from bittern.errors import FileError


def idx(shape, content, code=0x08):
    """Two zero bytes, the type's code, the number of dimensions, the dimensions, the numbers."""
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}i", *shape) + content


@pytest.fixture(params=[lambda b: b, gzip.compress], ids=["plain", "gz"])
def pack(request):
    return request.param


def test_the_bytes_are_those_of_the_format(tmp_path, pack):
    path = tmp_path / "a"
    path.write_bytes(pack(bytes.fromhex("00000802 00000002 00000003 010203040506")))
    array = read_idx(path)
    np.testing.assert_array_equal(array, [[1, 2, 3], [4, 5, 6]])
    assert array.dtype == np.uint8


@pytest.mark.parametrize(
    ("code", "kind", "values"),
    [
        (0x08, "B", [0, 255]),
        (0x09, "b", [-1, 5]),
        (0x0B, "h", [-300, 300]),
        (0x0C, "i", [-70000, 70000]),
        (0x0D, "f", [0.5, -2.0]),
        (0x0E, "d", [0.1, 1e300]),
    ],
)
def test_every_type_is_big_endian(tmp_path, pack, code, kind, values):
    (tmp_path / "a").write_bytes(pack(idx((2,), struct.pack(f">2{kind}", *values), code)))
    assert read_idx(tmp_path / "a").tolist() == values


def test_plain_files_are_mapped(tmp_path):
    (tmp_path / "a").write_bytes(idx((2, 2), b"abcd"))
    assert isinstance(read_idx(tmp_path / "a"), np.memmap)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an idx file, it starts with nothing"),
        (b"\0\0\x08", "not an idx file"),
        (b"\x01\0\x08\x01" + bytes(4), "not an idx file, it starts with 01 00 08 01"),
        (b"\0\0\x07\x01" + bytes(4), "not an idx file"),
        (b"\0\0\x08\0", "not an idx file"),
        (b"\0\0\x08\x03" + bytes(8), "is truncated inside its header"),
        (idx((2, 3), b"12345"), r"shape \(2, 3\) has 6 bytes, but the file holds fewer"),
        (idx((2, 3), b"1234567"), r"shape \(2, 3\) has 6 bytes, but the file holds more"),
        (idx((2**31 - 1,) * 8, b"x"), "claims|holds fewer"),
        (idx((-1, 3), b""), "claims|holds fewer"),
    ],
)
def test_what_is_no_idx_file_is_refused_by_name(tmp_path, pack, content, says):
    (tmp_path / "a").write_bytes(pack(content))
    with pytest.raises(FileError, match=says) as caught:
        read_idx(tmp_path / "a")
    assert str(caught.value).startswith(str(tmp_path / "a"))


def test_damaged_files_are_refused_by_name(tmp_path, pack):
    path = tmp_path / "a"
    path.write_bytes(pack(idx((3, 2, 2), b"abcdefghijkl")))
    load = lambda: np.array(read_idx(path))  # noqa: E731
    assert not survivors(path, truncations(path.read_bytes()), load)
    survivors(path, flips(path.read_bytes(), 300), load)
