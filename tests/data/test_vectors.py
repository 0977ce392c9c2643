import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numeric_damage import flips, survivors, truncations

from bittern.data.readers.sift1m import read_vectors
from bittern.errors import FileError

CODES = {"fvecs": "f", "bvecs": "B", "ivecs": "i"}


def vecs(rows, ending):
    """Each row: its dimension as a little-endian int32, then its numbers."""
    return b"".join(struct.pack(f"<i{len(row)}{CODES[ending]}", len(row), *row) for row in rows)


@pytest.mark.parametrize("ending", CODES)
def test_rows_are_read_as_they_were_written(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(vecs([[1, 2, 3], [4, 5, 255]], ending))
    rows = read_vectors(path)
    np.testing.assert_array_equal(rows, [[1, 2, 3], [4, 5, 255]])
    assert rows.dtype == {"f": np.float32, "B": np.uint8, "i": np.int32}[CODES[ending]]


def test_the_bytes_are_those_of_the_format(tmp_path):
    # Dimension 2, then 1.0 and -2.0 in IEEE single precision.
    (tmp_path / "a.fvecs").write_bytes(bytes.fromhex("02000000 0000803f 000000c0"))
    np.testing.assert_array_equal(read_vectors(tmp_path / "a.fvecs"), [[1.0, -2.0]])


def test_rows_are_mapped_and_cannot_be_changed(tmp_path):
    path = tmp_path / "a.fvecs"
    path.write_bytes(vecs([[1.0] * 4] * 3, "fvecs"))
    rows = read_vectors(path)
    assert isinstance(rows, np.memmap) and rows.strides == (20, 4)
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 5


@given(st.integers(1, 6), st.integers(1, 9), st.sampled_from(list(CODES)))
def test_any_number_of_rows_and_any_dimension(tmp_path_factory, n, dim, ending):
    path = tmp_path_factory.mktemp("v") / f"a.{ending}"
    rows = np.random.default_rng(n).integers(0, 256, (n, dim))
    path.write_bytes(vecs(rows.tolist(), ending))
    np.testing.assert_array_equal(read_vectors(path), rows)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has no vectors, only 0 bytes"),
        (b"\x02\0", "has no vectors, only 2 bytes"),
        (struct.pack("<i", 0), "cannot have dimension 0"),
        (struct.pack("<i", -3), "cannot have dimension -3"),
        (struct.pack("<i", 2**31 - 1), "cannot have dimension 2147483647"),
        (vecs([[1, 2, 3]], "fvecs")[:-1], "is truncated or has another type"),
        (vecs([[1, 2, 3]], "fvecs") + b"\0", "is truncated or has another type"),
        (
            vecs([[1, 2], [3, 4, 5, 6, 7]], "fvecs"),
            "row 1 does not have the dimension of row 0 \\(2\\)",
        ),
        (vecs([[1, 2]] * 70_000 + [[3, 4]], "fvecs")[:-12] + bytes(12), "row 70000 does not have"),
    ],
)
def test_what_is_no_vector_file_is_refused_by_name(tmp_path, content, says):
    (tmp_path / "a.fvecs").write_bytes(content)
    with pytest.raises(FileError, match=says) as caught:
        read_vectors(tmp_path / "a.fvecs")
    assert str(caught.value).startswith(str(tmp_path / "a.fvecs"))


def test_another_ending_is_refused(tmp_path):
    (tmp_path / "a.vecs").write_bytes(b"")
    with pytest.raises(FileError, match=r"a\.vecs: no ending of vector files is called"):
        read_vectors(tmp_path / "a.vecs")


@pytest.mark.parametrize("ending", CODES)
def test_damaged_files_are_refused_by_name(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    content = vecs([[1, 2, 3]] * 4, ending)
    path.write_bytes(content)
    load = lambda: np.array(read_vectors(path))  # noqa: E731
    whole_rows = [len(content) * i // 4 for i in (1, 2, 3)]
    cuts = [cut for cut in truncations(content) if len(cut) not in whole_rows]
    assert not survivors(path, cuts, load)
    survivors(path, flips(content, 200), load)
