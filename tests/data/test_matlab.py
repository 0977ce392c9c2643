"""MATLAB 5 files: written by SciPy, and octet by octet in the other byte order."""

import struct
import zlib

import numpy as np
import pytest
from format_true import flips, truncations, write
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.io import savemat

from bittern.data.matlab import read_matlab5
from bittern.errors import BitternError, FileError

dtypes = st.sampled_from([np.float64, np.float32, np.int8, np.uint8, np.int16, np.uint32, np.int64])


@settings(max_examples=50, deadline=None)
@given(
    dtypes.flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(min_dims=2, max_dims=3))),
    st.booleans(),
    st.sampled_from(["a", "abcd", "abcde", "name_of_31_letters_abcdefghijklm"]),
)
def test_what_scipy_writes_comes_back(tmp_path_factory, matrix, compressed, name):
    path = tmp_path_factory.mktemp("mat") / "a.mat"
    others = {"text": "words", "cell": np.array([1, "a"], object), "z": np.ones((2, 2)) * 1j}
    savemat(path, {**others, name: matrix, "last": np.eye(3)}, do_compression=compressed)
    found = read_matlab5(path, [name, "last", "absent"])
    assert list(found) == [name, "last"]
    assert found[name].dtype == matrix.dtype
    np.testing.assert_array_equal(found[name], matrix)
    np.testing.assert_array_equal(found["last"], np.eye(3))


def element(kind, content):
    return struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)


def big_endian(compressed=False, flags=6, shape=(2, 3), content=bytes(range(6)), name=b"ab"):
    """A file of one matrix of doubles stored as octets, with its name packed into a tag."""
    body = (
        element(6, struct.pack(">II", flags, 0))
        + element(5, struct.pack(f">{len(shape)}i", *shape))
        + struct.pack(">HH", len(name), 1) + name.ljust(4, b"\0")
        + element(2, content)
    )  # fmt: skip
    variable = element(14, body)
    if compressed:
        packed = zlib.compress(variable)
        variable = struct.pack(">II", 15, len(packed)) + packed
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI" + variable


@pytest.mark.parametrize("compressed", [False, True])
def test_the_other_byte_order(tmp_path, compressed):
    path = write(tmp_path / "a.mat", big_endian(compressed))
    matrix = read_matlab5(path, ["ab"])["ab"]
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [[0, 2, 4], [1, 3, 5]]  # MATLAB stores columns


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a MATLAB 5 file"),
        (bytes(200), "is not a MATLAB 5 file"),
        (big_endian()[:-1], "is cut short"),
        (big_endian(flags=6 | 0x0800), "ab must be a full matrix of real numbers"),
        (big_endian(flags=5), "ab must be a full matrix of real numbers"),
        (big_endian(shape=(2, 4)), r"ab has 6 bytes for uint8 of shape \(2, 4\)"),
        (big_endian(shape=(2, -3)), "impossible shape"),
        (big_endian(shape=(6,)), "impossible shape"),
        (big_endian() + big_endian()[128:], "has the variable ab twice"),
        (big_endian() + struct.pack(">II", 99, 0), "unknown kind 99"),
        (big_endian(True) + b"\0", "not a readable MATLAB 5 file"),
    ],
)
def test_odd_files_are_refused_by_name(tmp_path, content, says):
    path = write(tmp_path / "a.mat", content)
    with pytest.raises(FileError, match=rf"a\.mat: .*{says}"):
        read_matlab5(path, ["ab"])


def test_a_bomb_is_refused_before_it_grows(tmp_path):
    body = big_endian(shape=(10_000, 10_000), content=b"")[136:]
    huge = struct.pack(">II", 14, 1 << 31) + body
    packed = zlib.compress(huge)
    content = big_endian()[:128] + struct.pack(">II", 15, len(packed)) + packed
    with pytest.raises(FileError, match="promises 2147483648 bytes"):
        read_matlab5(write(tmp_path / "a.mat", content), ["ab"])


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_ends_in_our_error_or_in_a_matrix(tmp_path, compressed):
    content = big_endian(compressed)
    refused = 0
    head, rest = content[:124], content[124:]
    for damaged in [*truncations(content), *(head + flipped for flipped in flips(rest, 300))]:
        path = write(tmp_path / "a.mat", damaged)
        try:
            read_matlab5(path, ["ab"])
        except BitternError:
            refused += 1
    assert refused > 200
