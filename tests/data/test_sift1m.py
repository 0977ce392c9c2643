import h5py
import numpy as np
import pytest
from numeric_damage import flips, survivors, truncations
from test_vectors import vecs

from bittern.data.readers import sift1m
from bittern.errors import FileError

RNG = np.random.default_rng(0)
BASE, LEARN, QUERY = (RNG.integers(0, 200, (n, 128)) for n in (7, 4, 3))
TRUTH = np.argsort(((QUERY[:, None] - BASE[None]) ** 2).sum(-1), axis=1, kind="stable")[:, :5]


def write_texmex(folder, prefix="sift"):
    folder.mkdir(parents=True, exist_ok=True)
    for what, rows in {"base": BASE, "learn": LEARN, "query": QUERY}.items():
        (folder / f"{prefix}_{what}.fvecs").write_bytes(vecs(rows.tolist(), "fvecs"))
    (folder / f"{prefix}_groundtruth.ivecs").write_bytes(vecs(TRUTH.tolist(), "ivecs"))
    return folder


def write_hdf5(folder, **options):
    path = folder / "sift-128-euclidean.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train", data=BASE.astype(np.float32), **options)
        file.create_dataset("test", data=QUERY.astype(np.float32), **options)
        file.create_dataset("neighbors", data=TRUTH.astype(np.int32), **options)
        near = np.sqrt(((QUERY[:, None] - BASE[TRUTH]) ** 2).sum(-1)).astype(np.float32)
        file.create_dataset("distances", data=near, **options)
        file.attrs["distance"] = "euclidean"
    return path


@pytest.mark.parametrize("place", ["", "sift"])
def test_the_order_is_database_then_learning_set_then_queries(tmp_path, place):
    write_texmex(tmp_path / place)
    dataset = sift1m.load(tmp_path)
    np.testing.assert_array_equal(dataset["sift"][:], np.concatenate([BASE, LEARN, QUERY]))
    assert {k: list(v) for k, v in dataset.official.items()} == {
        "database": [0, 1, 2, 3, 4, 5, 6],
        "train": [7, 8, 9, 10],
        "query": [11, 12, 13],
    }
    assert dataset["sift"].dtype == np.float32 and dataset.labels is None
    assert "not the published 1,000,000 base" in dataset.notes[1]
    assert all(isinstance(part, np.memmap) for part in dataset["sift"].parts)


def test_the_small_set_of_the_publisher_is_read_too(tmp_path):
    write_texmex(tmp_path / "siftsmall", "siftsmall")
    assert len(sift1m.load(tmp_path)) == 14


@pytest.mark.parametrize(
    "options", [{}, {"chunks": True, "compression": "gzip"}], ids=["plain", "gzip"]
)
def test_hdf5_has_database_and_queries(tmp_path, options):
    path = write_hdf5(tmp_path, **options)
    for place in (tmp_path, path):
        dataset = sift1m.load(place)
        np.testing.assert_array_equal(dataset["sift"][:], np.concatenate([BASE, QUERY]))
        assert list(dataset.official) == ["database", "query"]
    assert isinstance(dataset["sift"].parts[0], np.memmap) == (not options)


def test_ground_truth_are_positions_of_the_dataset(tmp_path):
    write_texmex(tmp_path / "a")
    (tmp_path / "b").mkdir()
    write_hdf5(tmp_path / "b")
    texmex, hdf5 = (sift1m.ground_truth(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(texmex.neighbours, TRUTH)
    np.testing.assert_array_equal(hdf5.neighbours, TRUTH)
    assert texmex.distances is None
    rows = sift1m.load(tmp_path / "a")["sift"]
    nearest = rows[texmex.neighbours[:, 0]]
    distance = np.linalg.norm(rows[11:14] - nearest, axis=1)
    np.testing.assert_allclose(hdf5.distances[:, 0], distance, rtol=1e-6)


def changed(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            changed("sift_learn.fvecs", vecs([[1.0] * 127], "fvecs")),
            "learn.*128 dimensions, got 127",
        ),
        (changed("sift_base.fvecs", vecs([[1.0] * 128], "fvecs")[:-4]), "base.fvecs: is truncated"),
        (lambda folder: (folder / "sift_query.fvecs").unlink(), "sift_query.fvecs: no such file"),
        (lambda folder: (folder / "sift_base.fvecs").unlink(), "sift1m needs sift_base.fvecs"),
        (changed("siftsmall_base.fvecs", b""), "holds several sets"),
    ],
)
def test_wrong_files_are_refused_by_name(tmp_path, change, says):
    change(write_texmex(tmp_path))
    with pytest.raises(FileError, match=says):
        sift1m.load(tmp_path)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[0, 1]] * 2, "neighbours of 2 queries, but there are 3"),
        ([[0, 7]] * 3, "must be positions in the database of 7"),
        ([[0, -1]] * 3, "must be positions in the database of 7"),
    ],
)
def test_ground_truth_that_does_not_fit_is_refused(tmp_path, rows, says):
    write_texmex(tmp_path)
    (tmp_path / "sift_groundtruth.ivecs").write_bytes(vecs(rows, "ivecs"))
    with pytest.raises(FileError, match=rf"sift_groundtruth\.ivecs: .*{says}"):
        sift1m.ground_truth(tmp_path)


def test_an_archive_alone_is_to_be_unpacked(tmp_path):
    (tmp_path / "sift.tar.gz").write_bytes(b"")
    with pytest.raises(FileError, match=r"unpack .*sift\.tar\.gz there first"):
        sift1m.load(tmp_path)


def test_hdf5_without_what_is_needed_is_refused(tmp_path):
    path = tmp_path / "sift-128-euclidean.hdf5"
    with h5py.File(path, "w") as file:
        file["train"] = np.zeros(5)
        file["more"] = np.zeros(5)
    with pytest.raises(FileError, match="'train' must be numbers in 2 dimensions, got float64"):
        sift1m.load(tmp_path)
    with h5py.File(path, "w") as file:
        file["train"] = np.zeros((5, 128))
        file["secret"] = h5py.ExternalLink("/etc/passwd", "x")
    with pytest.raises(FileError, match="has no dataset 'test', only train"):
        sift1m.load(tmp_path)


def test_hdf5_that_promises_more_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "sift-128-euclidean.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train", (1 << 40, 128), np.float32, chunks=(1, 128))
    with pytest.raises(FileError, match=r"claims .* bytes, but 0 stored bytes cannot hold"):
        sift1m.load(tmp_path)


def test_damaged_hdf5_is_refused_by_name(tmp_path):
    path = write_hdf5(tmp_path)
    content = path.read_bytes()
    load = lambda: (sift1m.load(tmp_path)["sift"][:], sift1m.ground_truth(tmp_path))  # noqa: E731
    assert len(survivors(path, [content], load)) == 1
    assert not survivors(path, truncations(content, 150), load)
    survivors(path, flips(content, 300), load)
