import gzip
import io
import os
import pickle

import numpy as np
import pytest
import python2
import real_files
from cifar_files import NAMES, image, packed, write_binary, write_pickles
from numeric_damage import flips, survivors, truncations

from bittern.data.readers import cifar10
from bittern.errors import BitternError, FileError, UnknownNameError


@pytest.fixture(params=["py", "bin", "python.tar.gz", "binary.tar.gz", "archive itself"])
def folder(request, tmp_path):
    write = write_binary if request.param.startswith("bin") else write_pickles
    made = write(tmp_path / f"cifar-10-batches-{'bin' if write is write_binary else 'py'}")
    if request.param in ("py", "bin"):
        return tmp_path
    (tmp_path / "archives").mkdir()
    kind = "python.tar.gz" if request.param == "archive itself" else request.param
    archive = packed(made, tmp_path / "archives" / f"cifar-10-{kind}")
    return archive if request.param == "archive itself" else archive.parent


def test_every_form_gives_the_same_items_in_the_official_order(folder):
    dataset = cifar10.load(folder)
    images = np.asarray(dataset["image"])
    assert images.shape == (12, 32, 32, 3) and images.dtype == np.uint8
    assert list(images[0, 0, 0]) == [0, 100, 200]
    assert list(images[0, 3, 1]) == [0 + 3 + 2, 103, 200]  # y = 3, x = 1
    assert list(images[11, 3, 1]) == [5 + 3 + 2 + 1, 104, 201]  # second of the test batch
    assert list(dataset.labels) == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]
    assert dataset.class_names == tuple(NAMES)
    assert list(dataset.official["train"]) == list(range(10))
    assert list(dataset.official["test"]) == [10, 11]
    assert dataset.notes == (
        "checked: 12 items, six batches of 2, classes 0–9",
        "not the published batches of 10,000",
    )


def test_ids_are_the_names_of_the_images(tmp_path):
    write_pickles(tmp_path / "c")
    assert list(cifar10.load(tmp_path / "c").ids[[0, 11]]) == [
        "data_batch_1_0.png",
        "test_batch_1.png",
    ]


def test_binary_batches_are_mapped_and_not_copied(tmp_path):
    dataset = cifar10.load(write_binary(tmp_path / "c"))
    base = dataset["image"].parts[0]
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_pickles_of_python_3_are_read_too(tmp_path):
    write_pickles(tmp_path / "c")
    for path in (tmp_path / "c").iterdir():
        again = pickle.loads(path.read_bytes(), encoding="bytes")
        path.write_bytes(pickle.dumps(again, protocol=2))
    assert cifar10.load(tmp_path / "c").ids[0] == "data_batch_1_0.png"


def test_without_the_file_of_names_they_are_the_published_ones(tmp_path):
    (write_pickles(tmp_path / "c") / "batches.meta").unlink()
    dataset = cifar10.load(tmp_path / "c")
    assert dataset.class_names == tuple(NAMES)
    assert "file of class names is absent" in dataset.notes[-1]


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch ran",)


def replaced(folder, name, content):
    (folder / name).write_bytes(content)
    return folder


ROWS = image(0)
REFUSALS = {
    "no files": (lambda f: f.parent / "nowhere", "has no batches; cifar10 needs cifar-10-batches"),
    "a batch less": (lambda f: (f / "data_batch_3").unlink() or f, "has no data_batch_3"),
    "sizes": (
        lambda f: replaced(f, "data_batch_2", python2.batch(ROWS[:1], [1])),
        "batches differ in size: data_batch_1 2, data_batch_2 1",
    ),
    "labels": (
        lambda f: replaced(f, "data_batch_2", python2.batch(ROWS, [1])),
        "data_batch_2: 1 labels for 2 images",
    ),
    "a large label": (
        lambda f: replaced(f, "data_batch_2", python2.batch(ROWS, [1, 10])),
        "data_batch_2: labels must be 0 to 9",
    ),
    "width": (
        lambda f: replaced(
            f, "test_batch", python2.a_dict({b"data": python2.array(bytes(12), (3, 4))})
        ),
        r"test_batch: 'data' must be an \(n, 3072\) array of uint8",
    ),
    "CIFAR-100": (
        lambda f: replaced(
            f, "test_batch", python2.a_dict({b"data": python2.array(bytes(3072), (1, 3072))})
        ),
        "test_batch: 'labels' must be a list of whole numbers",
    ),
    "names": (
        lambda f: replaced(f, "batches.meta", python2.meta([b"cat"])),
        "batches.meta: names 1 classes, but CIFAR-10 has 10",
    ),
    "code": (
        lambda f: replaced(f, "data_batch_1", pickle.dumps({b"data": Evil()}, protocol=2)),
        r"data_batch_1: .*must not run code",
    ),
}


@pytest.mark.parametrize(("change", "says"), REFUSALS.values(), ids=REFUSALS)
def test_a_file_that_is_wrong_is_refused_by_name(tmp_path, monkeypatch, change, says):
    monkeypatch.chdir(tmp_path)
    place = change(write_pickles(tmp_path / "c"))
    with pytest.raises(FileError, match=says):
        cifar10.load(place)
    assert not (tmp_path / "ran").exists()


def test_labels_that_contain_themselves_are_refused_at_once(tmp_path):
    folder = write_pickles(tmp_path / "c")
    nested = b"]q\x00" + b"](h\x00h\x00eq\x00" * 50  # lists of lists, 2**50 entries in all
    data = python2.array(ROWS[0], (1, 3072))
    content = b"\x80\x02" + nested + b"}(U\x06labelsh\x00U\x04data" + data + b"u."
    (folder / "data_batch_1").write_bytes(content)
    with pytest.raises(FileError, match="'labels' must be a list of whole numbers"):
        cifar10.load(folder)


@pytest.mark.parametrize("size", [0, 1, 3072, 3074])
def test_binary_batches_are_whole_records(tmp_path, size):
    folder = write_binary(tmp_path / "c")
    (folder / "data_batch_4.bin").write_bytes(bytes(size))
    with pytest.raises(FileError, match=rf"data_batch_4\.bin: .*3073 bytes each, got {size}"):
        cifar10.load(folder)


@pytest.mark.parametrize("name", ["data_batch_1", "batches.meta", "test_batch"])
def test_damaged_pickles_are_refused_by_name(tmp_path, name):
    folder = write_pickles(tmp_path / "c", n=1)
    path, content = folder / name, (folder / name).read_bytes()
    load = lambda: np.asarray(cifar10.load(folder)["image"])  # noqa: E731
    assert not survivors(path, truncations(content, 60)[1:], load)
    survivors(path, flips(content, 100), load)


def test_damaged_binary_batches_are_refused_by_name(tmp_path):
    folder = write_binary(tmp_path / "c", n=1)
    path = folder / "test_batch.bin"
    load = lambda: np.asarray(cifar10.load(folder)["image"])  # noqa: E731
    assert not survivors(path, truncations(path.read_bytes(), 100), load)
    survivors(path, flips(path.read_bytes(), 100), load)


def test_damaged_archives_are_refused_by_name(tmp_path):
    made = write_pickles(tmp_path / "cifar-10-batches-py", n=1)
    path = packed(made, tmp_path / "cifar-10-python.tar.gz")
    content = path.read_bytes()
    load = lambda: cifar10.load(path)  # noqa: E731
    assert len(survivors(path, [content], load)) == 1
    assert not survivors(path, truncations(content, 100), load)
    survivors(path, flips(content, 100), load)


def features(folder, place, n=12, **arrays):
    (folder / place).mkdir(parents=True, exist_ok=True)
    arrays.setdefault("label", np.arange(n, dtype=np.uint8) % 10)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    path = folder / place / "features.npz"
    path.write_bytes(file.getvalue())
    return path


@pytest.mark.parametrize("where", ["own folder", "root"])
def test_features_are_found_below_the_root(tmp_path, where):
    q = np.zeros((12, 1280), np.uint8)
    q[3, :3] = [255, 51, 1]
    gist = np.full((12, 512), 0.25, np.float16)
    features(tmp_path, "cifar10_cnn", q=q)
    features(tmp_path, "cifar10_gist512", gist=gist)
    folder = tmp_path / "cifar10" if where == "own folder" else tmp_path
    cnn, gists = (cifar10.load(folder, features=kind) for kind in ("cnn", "gist"))
    assert cnn["cnn"].shape == (12, 1280) and cnn["cnn"][0].dtype == np.float32
    # 6·(255/255)² = 6, 6·(51/255)² = 6/25, 6·(1/255)²
    np.testing.assert_allclose(cnn["cnn"][3][:4], [6, 0.24, 6 / 65025, 0], rtol=1e-6)
    assert gists["gist"].dtype == np.float32 and (gists["gist"] == 0.25).all()
    assert list(gists.official["test"]) == [10, 11]
    assert list(cnn.labels) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"gist": np.zeros((12, 511), np.float16)}, r"'gist' must be \(n, 512\), got float16"),
        ({"gist": np.zeros((12, 512), np.int8)}, r"'gist' must be \(n, 512\), got int8"),
        ({"other": np.zeros((12, 512), np.float16)}, "has no array 'gist', only other, label"),
        (
            {"gist": np.zeros((13, 512), np.float16)},
            "'label' must be a whole number for each of 13",
        ),
        (
            {"gist": np.zeros((7, 512), "f2"), "label": np.zeros(7, int)},
            "7 items cannot be six batches",
        ),
        ({"gist": np.zeros((6, 512), "f2"), "label": np.full(6, 10)}, "labels must be 0 to 9"),
        ({"gist": np.array([{}], object)}, "holds pickled objects, which could run code"),
    ],
)
def test_wrong_features_are_refused_by_name(tmp_path, arrays, says):
    path = features(tmp_path, "cifar10_gist512", **arrays)
    with pytest.raises(FileError, match=says) as caught:
        cifar10.load(tmp_path, features="gist")
    assert str(path) in str(caught.value)


def test_absent_and_ambiguous_features_are_said(tmp_path):
    with pytest.raises(FileError, match=r"cifar10_cnn: expected one \.npz file .* found none"):
        cifar10.load(tmp_path, features="cnn")
    path = features(tmp_path, "cifar10_cnn", q=np.zeros((6, 1280), np.uint8))
    path.with_name("more.npz").write_bytes(b"")
    with pytest.raises(FileError, match=r"found features\.npz, more\.npz"):
        cifar10.load(tmp_path, features="cnn")
    with pytest.raises(UnknownNameError, match="did you mean 'gist'"):
        cifar10.load(tmp_path, features="gits")


def test_damaged_features_are_refused_by_name(tmp_path):
    path = features(tmp_path, "cifar10_gist512", n=6, gist=np.zeros((6, 512), np.float16))
    load = lambda: cifar10.load(tmp_path, features="gist")  # noqa: E731
    assert not survivors(path, truncations(path.read_bytes(), 150), load)
    survivors(path, flips(path.read_bytes(), 200), load)


def test_a_missing_folder_is_our_error(tmp_path):
    for kind in cifar10.FEATURES:
        with pytest.raises(BitternError, match="nowhere"):
            cifar10.load(tmp_path / "nowhere", features=kind)


def test_gzip_of_something_else_is_refused(tmp_path):
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(gzip.compress(b"hello" * 1000))
    with pytest.raises(FileError, match=r"not a readable \.tar\.gz archive"):
        cifar10.load(tmp_path)


@pytest.mark.shared
@pytest.mark.parametrize(("kind", "place", "dim"), [("gist", "gist512", 512), ("cnn", "cnn", 1280)])
def test_real_features_have_6000_of_each_class(kind, place, dim):
    dataset = cifar10.load(real_files.shared_data(f"cifar10_{place}") / "cifar10", features=kind)
    assert dataset[kind].shape == (60_000, dim)
    assert list(np.bincount(dataset.labels)) == [6000] * 10
    assert list(np.bincount(dataset.labels[dataset.official["test"]])) == [1000] * 10
    assert dataset.notes[0] == "checked: 60,000 items, six batches of 10,000, classes 0–9"
    rows = dataset[kind][[0, 49_999, 59_999]]
    assert rows.dtype == np.float32 and np.isfinite(rows).all() and (rows.max(axis=1) > 0.1).all()


@pytest.mark.shared
def test_real_images_have_6000_of_each_class():
    dataset = cifar10.load(real_files.cifar10_pickles())
    assert dataset["image"].shape == (60_000, 32, 32, 3)
    assert list(np.bincount(dataset.labels)) == [6000] * 10
    assert list(np.bincount(dataset.labels[dataset.official["test"]])) == [1000] * 10
    assert dataset.class_names == tuple(NAMES)
    starts = range(0, 50_000, 5000)
    mean = np.mean([dataset["image"][i : i + 5000].mean(axis=(0, 1, 2)) for i in starts], axis=0)
    np.testing.assert_allclose(mean / 255, [0.4914, 0.4822, 0.4465], atol=5e-5)  # as is well known


@pytest.mark.shared
def test_real_features_and_images_are_in_one_order():
    features = cifar10.load(real_files.shared_data("cifar10_cnn"), features="cnn")
    images = cifar10.load(real_files.cifar10_pickles())
    np.testing.assert_array_equal(features.labels, images.labels)
