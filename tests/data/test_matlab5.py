import struct
import zlib

import numpy as np
import pytest
import scipy.io
from numeric_damage import flips, survivors, truncations

from bittern.errors import FileError
from bittern.io.matlab import matlab_version, read_matrices

HEADER = b"MATLAB 5.0 MAT-file, written by hand".ljust(116) + bytes(8)


def element(kind, content, order="<"):
    return struct.pack(f"{order}II", kind, len(content)) + content + bytes(-len(content) % 8)


def short(kind, content, order="<"):
    """An element of at most 4 bytes, its length and type in one number."""
    return struct.pack(f"{order}I", len(content) << 16 | kind) + content.ljust(4, b"\0")


def matrix(name, shape, kind, content, array_class=6, order="<"):
    """Flags, dimensions, name and real part, as the MAT-file format has them."""
    parts = element(6, struct.pack(f"{order}II", array_class, 0), order)
    parts += element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    parts += short(1, name, order) if len(name) <= 4 else element(1, name, order)
    parts += element(kind, content, order)
    return element(14, parts, order)


def file_of(*elements, order="<"):
    version = b"\x00\x01IM" if order == "<" else b"\x01\x00MI"
    return HEADER + version + b"".join(elements)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_matrix_written_by_hand_has_its_columns_first(tmp_path, order):
    numbers = struct.pack(f"{order}6d", 1, 2, 3, 4, 5, 6)
    content = file_of(matrix(b"gist", (2, 3), 9, numbers, order=order), order=order)
    (tmp_path / "a.mat").write_bytes(content)
    assert matlab_version(tmp_path / "a.mat") == 5
    found = read_matrices(tmp_path / "a.mat", ["gist", "absent"])
    assert list(found) == ["gist"]
    np.testing.assert_array_equal(found["gist"], [[1, 3, 5], [2, 4, 6]])


def test_doubles_may_be_stored_as_bytes(tmp_path):
    # MATLAB stores whole numbers in the smallest type; the class says what they are.
    (tmp_path / "a.mat").write_bytes(file_of(matrix(b"a", (1, 2), 2, bytes([7, 200]))))
    found = read_matrices(tmp_path / "a.mat", ["a"])["a"]
    assert found.dtype == np.float64 and found.tolist() == [[7, 200]]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_what_scipy_writes_is_read_as_scipy_reads_it(tmp_path, compress, dtype):
    path = tmp_path / "a.mat"
    variables = {
        "cells": np.array([[1, "a"]], object),
        "wanted": np.arange(35).reshape(5, 7).astype(dtype),
        "one": np.array([[3]], dtype),
        "text": "hello",
        "a_rather_long_name": np.ones((1, 3), dtype),
        "struct": {"x": np.zeros(4)},
    }
    scipy.io.savemat(path, variables, do_compression=compress)
    names = ["wanted", "one", "a_rather_long_name"]
    ours, theirs = read_matrices(path, names), scipy.io.loadmat(path)
    assert set(ours) == set(names)
    for name in names:
        assert ours[name].dtype == theirs[name].dtype
        np.testing.assert_array_equal(ours[name], theirs[name])


GOOD = matrix(b"a", (1, 1), 9, struct.pack("<d", 1))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a MATLAB 5 file"),
        (HEADER + b"\x00\x02IM", "is not a MATLAB 5 file"),
        (file_of(GOOD, GOOD), "has the variable 'a' twice"),
        (file_of(element(9, bytes(8))), "an element of type 9 where a variable should be"),
        (file_of(GOOD[:-1]), "truncated"),
        (file_of(matrix(b"a", (2, 1), 9, bytes(8))), "cannot have 8 bytes"),
        (file_of(matrix(b"a", (2**30, 2**30), 9, bytes(8))), "cannot have 8 bytes"),
        (file_of(matrix(b"a", (-1, -1), 9, bytes(8))), "not stored as numbers"),
        (file_of(matrix(b"a", (1, 1), 250, bytes(8))), "not stored as numbers"),
        (file_of(matrix(b"a", (1, 1), 9, bytes(8), 1)), "must be a matrix of real numbers"),
        (file_of(matrix(b"a", (1, 1), 9, bytes(8), 0x806)), "must be a matrix of real numbers"),
        (file_of(matrix(b"a", (1, 1, 1), 9, bytes(8))), "must be a matrix of real numbers"),
        (file_of(element(15, b"junk")), "not a readable MATLAB 5 file"),
        (file_of(element(15, zlib.compress(GOOD)[:-5])), "not a readable MATLAB 5 file"),
        (file_of(struct.pack("<II", 14, 2**32 - 1)), "truncated"),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path, content, says):
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(FileError, match=says) as caught:
        read_matrices(tmp_path / "a.mat", ["a"])
    assert str(caught.value).startswith(str(tmp_path / "a.mat"))


def test_a_compressed_variable_cannot_promise_gigabytes(tmp_path):
    inner = struct.pack("<II", 14, 2**32 - 8) + GOOD[8:]
    packed = zlib.compress(inner)
    (tmp_path / "a.mat").write_bytes(file_of(struct.pack("<II", 15, len(packed)) + packed))
    with pytest.raises(FileError, match=r"claims 4294967288 bytes, but \d+ stored bytes cannot"):
        read_matrices(tmp_path / "a.mat", ["a"])


@pytest.mark.parametrize("compress", [False, True])
def test_damaged_files_are_refused_by_name(tmp_path, compress):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"b": np.eye(3), "a": np.eye(4)}, do_compression=compress)
    load = lambda: read_matrices(path, ["a"])  # noqa: E731
    content = path.read_bytes()
    for found in survivors(path, truncations(content), load):
        assert not found or (found["a"] == np.eye(4)).all()
    survivors(path, flips(content, 300), load)
