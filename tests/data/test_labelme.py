import h5py
import numpy as np
import pytest
import scipy.io
from numeric_damage import flips, survivors, truncations

from bittern.data.readers import labelme
from bittern.errors import FileError

GIST = np.random.default_rng(0).random((6, 512))


def matlab_5(path, compress=False, **variables):
    scipy.io.savemat(path, variables, do_compression=compress)
    return path


def matlab_73(path, **variables):
    """HDF5 after 512 bytes of MATLAB's header; columns lie as rows."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            data = np.atleast_2d(value).T
            file.create_dataset(name, data=data).attrs["MATLAB_class"] = np.bytes_("double")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\x00\x02IM"
    with path.open("r+b") as file:
        file.write(header)
    return path


WRITERS = {
    "5": matlab_5,
    "5 compressed": lambda path, **v: matlab_5(path, True, **v),
    "7.3": matlab_73,
}


@pytest.fixture(params=WRITERS.values(), ids=WRITERS)
def write(request):
    return request.param


@pytest.mark.parametrize("turn", [lambda g: g, np.transpose], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_read_from_rows_or_columns(tmp_path, write, turn, dtype):
    write(tmp_path / "LabelMe_gist.mat", gist=turn(GIST.astype(dtype)))
    dataset = labelme.load(tmp_path)
    assert dataset["gist"].dtype == np.float32 and dataset["gist"].flags.c_contiguous
    np.testing.assert_array_equal(dataset["gist"], GIST.astype(np.float32))
    assert dataset.labels is None and not dataset.official
    assert dataset.notes == ("checked: 6 finite rows of 512", "not the published 22,019 rows")


def test_a_square_matrix_has_rows_as_matlab_has_them(tmp_path, write):
    square = np.arange(512.0 * 512).reshape(512, 512)
    path = write(tmp_path / "LabelMe_gist.mat", gist=square)
    np.testing.assert_array_equal(labelme.load(path)["gist"], square)


def test_the_publishers_sets_count_from_one(tmp_path, write):
    write(
        tmp_path / "LabelMe_gist.mat",
        gist=GIST,
        ndxtrain=np.array([[1.0, 2, 4, 6]]),
        ndxtest=np.array([[5.0, 3]]),
        DistLM=np.zeros((6, 6)),
    )
    official = labelme.load(tmp_path).official
    assert list(official["train"]) == [0, 1, 3, 5]
    assert list(official["test"]) == [4, 2]


def test_the_mapped_numbers_are_found_behind_matlabs_header(tmp_path):
    # 512 bytes of header come before HDF5; a wrong offset would give other numbers.
    path = matlab_73(tmp_path / "LabelMe_gist.mat", gist=GIST, other=np.ones((9, 9)))
    np.testing.assert_array_equal(labelme.load(path)["gist"], GIST.astype(np.float32))


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"other": GIST}, "has no variable 'gist'"),
        (
            {"gist": GIST[:, :511]},
            r"'gist' must be n × 512 numbers, or transposed, got .*\(6, 511\)",
        ),
        ({"gist": np.where(GIST > 0.5, np.nan, GIST)}, "all of finite numbers"),
        ({"gist": GIST * 1e300}, "all of finite numbers"),
        ({"gist": GIST, "ndxtest": np.array([[0.0, 1]])}, "'ndxtest' must be whole numbers from 1"),
        (
            {"gist": GIST, "ndxtrain": np.array([[7.0]])},
            "'ndxtrain' must be whole numbers from 1 to 6",
        ),
        ({"gist": GIST, "ndxtrain": np.array([[1.5]])}, "'ndxtrain' must be whole numbers"),
        ({"gist": GIST, "ndxtrain": np.array([[2.0, 2]])}, "'ndxtrain' repeats a row"),
    ],
)
def test_wrong_variables_are_refused_by_name(tmp_path, write, variables, says):
    path = write(tmp_path / "LabelMe_gist.mat", **variables)
    with pytest.raises(FileError, match=says) as caught:
        labelme.load(tmp_path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "gist", [{"a": 1.0}, np.array([[1.0, "x"]], object), "text", np.ones((2, 3, 4))]
)
def test_what_is_no_matrix_of_numbers_is_refused(tmp_path, gist):
    matlab_5(tmp_path / "LabelMe_gist.mat", gist=gist)
    with pytest.raises(FileError, match="'gist' must be"):
        labelme.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"junk", bytes(128), bytes(5000), b"\x01\0\0\0" * 200])
def test_other_files_are_refused_by_name(tmp_path, content):
    (tmp_path / "LabelMe_gist.mat").write_bytes(content)
    with pytest.raises(FileError, match="is neither a MATLAB 5 nor a MATLAB 7"):
        labelme.load(tmp_path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(FileError, match=r"LabelMe_gist\.mat: no such file; labelme needs"):
        labelme.load(tmp_path)


def test_damaged_files_are_refused_by_name(tmp_path, write):
    path = write(tmp_path / "LabelMe_gist.mat", gist=GIST[:1], ndxtest=np.array([[1.0]]))
    content = path.read_bytes()
    load = lambda: labelme.load(tmp_path)  # noqa: E731
    assert len(survivors(path, [content], load)) == 1
    survivors(path, truncations(content, 100), load)
    survivors(path, flips(content, 250), load)
