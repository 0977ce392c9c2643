import builtins
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_damage import flips, survivors, truncations

from bittern.data.readers.arrays import ARRAYS, EMBEDDINGS
from bittern.errors import BitternError, FileError, InputError, MissingExtraError

X = np.arange(20, dtype=np.float32).reshape(5, 4)
Y = np.array([3, 3, 1, 0, 1])
WORDS = np.array(["dog", "dog", "cat", "ant", "cat"])


def to_npz(path, **arrays):
    np.savez(path, **arrays)


def to_packed_npz(path, **arrays):
    np.savez_compressed(path, **arrays)


def to_hdf5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = [str(v) for v in array] if array.dtype.kind == "U" else array


def to_parquet(path, **arrays):
    columns = {name: list(a) if a.ndim == 2 else a for name, a in arrays.items()}
    pq.write_table(pa.table(columns), path)


WRITERS = {
    "npz": (to_npz, "a.npz"),
    "packed npz": (to_packed_npz, "a.npz"),
    "hdf5": (to_hdf5, "a.h5"),
    "parquet": (to_parquet, "a.parquet"),
}


@pytest.fixture(params=WRITERS.values(), ids=WRITERS)
def write(request, tmp_path):
    """Writes arrays to a file of some kind, and gives its path."""
    writer, name = request.param

    def write(**arrays):
        writer(tmp_path / name, **arrays)
        return tmp_path / name

    return write


def test_vectors_alone_are_enough(write):
    dataset = ARRAYS.load(write(anything=X))
    np.testing.assert_array_equal(dataset["vectors"], X)
    assert dataset["vectors"].dtype == np.float32
    assert dataset.labels is None and dataset.tags is None and dataset.ids is None
    assert "'anything' float" in dataset.notes[0]


@pytest.mark.parametrize("spec", [ARRAYS, EMBEDDINGS])
@pytest.mark.parametrize(("values", "names"), [(Y, "0 1 3"), (WORDS, "ant cat dog")])
@pytest.mark.parametrize("key", ["labels", "y", "whatever"])
def test_labels_of_any_kind_become_class_numbers(write, spec, values, names, key):
    dataset = spec.load(write(data=X, **{key: values}))
    assert dataset.name == spec.name
    assert list(dataset.labels) == [2, 2, 1, 0, 1]
    assert dataset.class_names == tuple(names.split())


def test_everything_can_be_named(write):
    dataset = ARRAYS.load(
        write(a=X, b=-X, c=Y, d=WORDS, e=np.arange(5) + 100, f=X > 10),
        vectors="b",
        labels="d",
        ids="e",
        tags="f",
        tag_names=["w", "x", "y", "z"],
    )
    np.testing.assert_array_equal(dataset["vectors"], -X)
    assert list(dataset.ids) == ["100", "101", "102", "103", "104"]
    assert dataset.class_names == ("ant", "cat", "dog")
    np.testing.assert_array_equal(dataset.tags, X > 10)
    assert dataset.tag_names == ("w", "x", "y", "z")


def test_two_names_of_vectors_make_two_modalities(write):
    dataset = ARRAYS.load(write(image=X, text=X[:, :2], y=Y), vectors=["text", "image"])
    assert list(dataset.modalities) == ["text", "image"]
    assert dataset.vectors.shape == (5, 2)


def test_modalities_have_the_same_rows(tmp_path):
    np.savez(tmp_path / "a.npz", image=X, text=X[:2])
    with pytest.raises(FileError, match=r"a\.npz: vectors differ in length; the file has 'image'"):
        ARRAYS.load(tmp_path, vectors=["text", "image"])


def test_usual_names_settle_what_shapes_leave_open(write):
    dataset = ARRAYS.load(write(X=X, other=X, labels=Y, more=Y, id=np.arange(5)))
    np.testing.assert_array_equal(dataset["vectors"], X)
    assert list(dataset.labels) == [2, 2, 1, 0, 1]
    assert list(dataset.ids) == list("01234")


def test_none_leaves_labels_out(write):
    assert ARRAYS.load(write(x=X, labels=Y), labels=None).labels is None


def test_minus_one_is_no_class(write):
    dataset = ARRAYS.load(write(x=X, y=np.array([7, -1, 7, 9, -1])))
    assert list(dataset.labels) == [0, -1, 0, 1, -1] and dataset.class_names == ("7", "9")


def test_class_names_keep_the_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", feat=X, label=Y, names=np.array(["a", "b", "c", "d", "e", "f"]))
    dataset = ARRAYS.load(tmp_path)
    assert list(dataset.labels) == [3, 3, 1, 0, 1]
    assert dataset.class_names == ("a", "b", "c", "d", "e", "f")
    given = ARRAYS.load(tmp_path, class_names=["p", "q", "r", "s"])
    assert list(given.labels) == [3, 3, 1, 0, 1] and given.class_names[3] == "s"


def test_one_array_of_a_npy_file_is_mapped(tmp_path):
    np.save(tmp_path / "vectors.npy", X)
    for place in (tmp_path, tmp_path / "vectors.npy"):
        dataset = ARRAYS.load(place)
        assert isinstance(dataset["vectors"], np.memmap)
        np.testing.assert_array_equal(dataset["vectors"], X)


def test_a_folder_of_npy_files_is_read_as_one(tmp_path):
    np.save(tmp_path / "embeddings.npy", np.asfortranarray(X))
    np.save(tmp_path / "labels.npy", WORDS)
    dataset = EMBEDDINGS.load(tmp_path)
    np.testing.assert_array_equal(dataset["vectors"], X)
    assert dataset.class_names == ("ant", "cat", "dog")


@pytest.mark.parametrize("writer", [to_npz, to_hdf5])
def test_plain_numbers_stay_on_disk(tmp_path, writer):
    path = tmp_path / ("a.npz" if writer is to_npz else "a.hdf5")
    writer(path, labels=Y, vectors=X)
    rows = ARRAYS.load(path)["vectors"]
    assert isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, X)


def test_columns_of_parquet_are_chosen_by_pattern(tmp_path):
    table = pa.table({"x0": X[:, 0], "x1": X[:, 1], "kind": WORDS, "x2": X[:, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = ARRAYS.load(tmp_path, vectors="x*")
    np.testing.assert_array_equal(dataset["vectors"], X[:, :3])
    assert dataset.class_names == ("ant", "cat", "dog")
    np.testing.assert_array_equal(ARRAYS.load(tmp_path)["vectors"], X[:, :3])  # by their numbers
    with pytest.raises(FileError, match=r"'k\*' must match 1-D numbers .* but matches kind"):
        ARRAYS.load(tmp_path, vectors="k*")
    pq.write_table(pa.table({"u": X[:, 0], "v": X[:, 1]}), tmp_path / "a.parquet")
    with pytest.raises(FileError, match=r"no array is 2-D numbers; .* vectors='x\*'"):
        ARRAYS.load(tmp_path)


def test_parquet_lists_of_every_kind_and_gaps_in_labels(tmp_path):
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
    large = pa.array(X.tolist(), pa.large_list(pa.float64()))
    labels = pa.array(["b", None, "a", None, "b"])
    category = pa.array(list("xyxyx")).dictionary_encode()
    table = pa.table({"vectors": fixed, "large": large, "labels": labels, "category": category})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    dataset = ARRAYS.load(tmp_path)
    np.testing.assert_array_equal(dataset["vectors"], X)
    assert list(dataset.labels) == [1, -1, 0, -1, 1]
    again = ARRAYS.load(tmp_path, vectors="large", labels="category")
    np.testing.assert_array_equal(again["vectors"], X)
    assert again.class_names == ("x", "y")


def test_rows_of_several_lengths_are_refused(tmp_path):
    for rows in ([[1.0, 2.0], [3.0]], [[1.0], [2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0], None]):
        pq.write_table(pa.table({"v": rows}), tmp_path / "a.parquet")
        with pytest.raises(FileError, match="rows of 'v' must have one length and no missing"):
            ARRAYS.load(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "options", "says"),
    [
        ({"a": X, "b": X}, {}, "several arrays may be the vectors; choose one, like vectors='a'"),
        ({"a": Y}, {}, "no array is 2-D numbers"),
        ({"a": X, "b": Y, "c": Y}, {}, "the labels; choose one, like labels='b', or labels=None"),
        (
            {"a": X, "y": Y, "labels": Y},
            {},
            "labels may be labels or y; choose one: labels='labels'",
        ),
        ({"a": X}, {"vectors": "b"}, "no array is called 'b'"),
        ({"vectors": X}, {"vectors": "vectro"}, "did you mean 'vectors'"),
        ({"a": X}, {"labels": "y"}, "no array is called 'y'"),
        ({"a": X, "b": Y}, {"vectors": "b"}, "vectors must be numbers in at least 2 dimensions"),
        ({"a": X, "id": np.zeros(5, int)}, {}, "ids must be distinct, but those in 'id' are not"),
        ({"a": X, "id": np.arange(5) / 2}, {}, "ids must be text or whole numbers, 'id' is"),
        ({"a": X, "tags": 2 * (X > 3)}, {}, "tags must be 0 or 1"),
        ({"a": X, "tags": X > 3}, {"tag_names": ["p"]}, "has 4 tags, but there are 1 names"),
        ({"a": X, "y": Y}, {"class_names": ["p", "q"]}, "must be 0 to 1, for 2 names of classes"),
        ({"a": X, "y": Y / 2}, {}, "'y' must be whole numbers or strings"),
        ({"a": X[:0]}, {}, "has no rows|no array is 2-D numbers"),
    ],
)
def test_every_ambiguity_is_a_sentence_about_the_file(write, arrays, options, says):
    path = write(**arrays)
    with pytest.raises(InputError, match=says) as caught:
        ARRAYS.load(path, **options)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"a": X, "labels": Y[:4]}, r"labels must have shape \(5,\), .*; 'labels' is int64 \(4\)"),
        ({"a": X, "tags": X[:2] > 3}, r"tags must have shape \(5, n_tags\)"),
        ({"a": X, "tags": Y}, r"tags must have shape \(5, n_tags\)"),
        ({"vectors": X.astype(complex)}, r"no array is 2-D numbers.*'vectors' complex128 \(5, 4\)"),
        ({"vectors": np.zeros((2, 2), [("x", "f4")])}, "no array is 2-D numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays, says):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileError, match=says):
        ARRAYS.load(tmp_path)


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=np.array([[print]], object))
    with pytest.raises(FileError, match="holds pickled objects, which could run code"):
        ARRAYS.load(tmp_path)


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"expected one file of arrays .* found none"):
        ARRAYS.load(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        ARRAYS.load(tmp_path / "a.npz")
    (tmp_path / "a.txt").write_text("1,2")
    with pytest.raises(FileError, match=r"a\.txt: is text; give arrays as \.npy, \.npz, \.pt"):
        ARRAYS.load(tmp_path / "a.txt")
    np.savez(tmp_path / "a.npz", a=X)
    np.save(tmp_path / "b.npy", X)
    with pytest.raises(FileError, match=r"found a\.npz, b\.npy; give the path of the file"):
        ARRAYS.load(tmp_path)
    with pytest.raises(InputError, match="must name at least one array"):
        ARRAYS.load(tmp_path / "a.npz", vectors=[])


@pytest.mark.parametrize(("ending", "library"), [("h5", "h5py"), ("parquet", "pyarrow")])
def test_a_missing_library_says_what_to_install(tmp_path, monkeypatch, ending, library):
    path = tmp_path / f"a.{ending}"
    (to_hdf5 if ending == "h5" else to_parquet)(path, a=X)
    real_import = builtins.__import__

    def without(name, *more):
        if name.partition(".")[0] == library:
            raise ImportError(name)
        return real_import(name, *more)

    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'bittern\[io\]'"):
        ARRAYS.load(path)


def test_headers_that_promise_too_much_are_refused(tmp_path):
    from numpy.lib import format as npy

    for shape in [(1 << 40, 64), (1 << 62, 1 << 62), (6, 4), (-1, 4)]:
        with (tmp_path / "a.npy").open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
            file.write(X.tobytes())
        with pytest.raises(FileError, match=r"a\.npy: .*(has \d+ bytes|impossible shape)"):
            ARRAYS.load(tmp_path)


def test_hdf5_data_in_other_files_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(80))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        outside = [(str(tmp_path / "secret"), 0, 80)]
        file.create_dataset("a", (5, 4), np.float32, external=outside)
    with pytest.raises(FileError, match="'a' is empty or stored in other files"):
        ARRAYS.load(tmp_path / "a.h5")


TEXTS = np.array(["", "été", "a", "x" * 5000, "日本"] * 40)


@pytest.mark.parametrize(
    "options",
    [{}, {"chunks": (7,)}, {"compression": "gzip"}, {"dtype": "S5000"}],
    ids=["plain", "chunked", "gzip", "fixed"],
)
@pytest.mark.parametrize("userblock", [0, 512])
def test_text_of_hdf5_is_read_as_h5py_reads_it(tmp_path, options, userblock):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=userblock) as file:
        file["vectors"] = np.zeros((200, 2))
        texts = [text.encode() for text in TEXTS] if "dtype" in options else TEXTS.tolist()
        file.create_dataset("labels", data=texts, **options)
    dataset = ARRAYS.load(tmp_path)
    with h5py.File(tmp_path / "a.h5") as file:
        theirs = file["labels"].asstr("utf-8")[:].tolist()
    assert [dataset.class_names[y] for y in dataset.labels] == theirs == TEXTS.tolist()


def test_text_through_other_filters_is_refused_with_a_way_out(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["vectors"] = X
        file.create_dataset("labels", data=WORDS.tolist(), shuffle=True, compression="gzip")
    with pytest.raises(FileError, match="filters that are not supported; save it"):
        ARRAYS.load(tmp_path)


def test_rows_of_several_lengths_in_hdf5_are_no_labels(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["vectors"] = X
        ragged = file.create_dataset("labels", (5,), h5py.vlen_dtype(np.int32))
        ragged[0] = [1, 2, 3]
    with pytest.raises(FileError, match="labels must be numbers or text, 'labels' is"):
        ARRAYS.load(tmp_path)


def test_ids_may_be_bytes(tmp_path):
    ids = [word.encode() for word in ("é", "b", "c", "d", "e")]
    np.savez(tmp_path / "a.npz", x=X, ids=np.array(ids))
    assert list(ARRAYS.load(tmp_path).ids) == ["é", "b", "c", "d", "e"]


@pytest.mark.parametrize("ending", ["npy", "npz", "packed npz", "hdf5", "parquet"])
def test_damaged_files_are_refused_by_name(tmp_path, ending):
    if ending == "npy":
        path = tmp_path / "a.npy"
        np.save(path, X)
    else:
        writer, name = WRITERS[ending]
        path = tmp_path / name
        writer(path, vectors=X, labels=WORDS)

    def load():
        dataset = ARRAYS.load(path)
        return np.array(dataset["vectors"])

    content = path.read_bytes()
    assert len(survivors(path, [content], load)) == 1
    assert not survivors(path, truncations(content, 120), load)
    survivors(path, flips(content, 200), load)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8),
    st.integers(1, 5),
    st.sampled_from(["f2", "f4", "f8", "i1", "u2", "?", ">f4"]),
    st.data(),
)
def test_any_numbers_and_labels_survive(tmp_path_factory, n, dim, dtype, data):
    folder = tmp_path_factory.mktemp("a")
    rows = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n * dim, max_size=n * dim)))
    rows = rows.reshape(n, dim).astype(dtype)
    words = data.draw(st.lists(st.text("abcé ", min_size=1, max_size=4), min_size=n, max_size=n))
    np.savez(folder / "a.npz", vectors=rows, labels=np.array(words))
    dataset = ARRAYS.load(folder)
    np.testing.assert_array_equal(dataset["vectors"], rows)
    assert [dataset.class_names[y] for y in dataset.labels] == np.array(words).tolist()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["npy", "npz", "h5", "parquet"]))
def test_any_bytes_end_in_our_error(tmp_path_factory, content, ending):
    path = tmp_path_factory.mktemp("a") / f"a.{ending}"
    path.write_bytes(content)
    with pytest.raises(BitternError) as caught:
        ARRAYS.load(path)
    assert str(path) in str(caught.value)
