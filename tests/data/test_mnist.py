import gzip

import numpy as np
import pytest
import real_files
from test_idx import idx

from bittern.data.readers.mnist import FASHION_MNIST, MNIST
from bittern.errors import FileError

FILES = {
    "train-images-idx3-ubyte": idx((3, 28, 28), bytes(784) + b"\x01" * 784 + b"\x02" * 784),
    "train-labels-idx1-ubyte": idx((3,), bytes([5, 0, 9])),
    "t10k-images-idx3-ubyte": idx((2, 28, 28), b"\x07" * 784 + bytes(range(196)) * 4),
    "t10k-labels-idx1-ubyte": idx((2,), bytes([7, 2])),
}


def write(folder, ending="", dot="-", **changed):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        content = changed.get(name.replace("-", "_"), content)
        content = gzip.compress(content) if ending else content
        (folder / (name.replace("-idx", f"{dot}idx") + ending)).write_bytes(content)
    return folder


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("dot", ["-", "."])
@pytest.mark.parametrize("place", ["", "raw"])
def test_images_come_in_the_official_order(tmp_path, ending, dot, place):
    write(tmp_path / place, ending, dot)
    dataset = MNIST.load(tmp_path)
    images = np.asarray(dataset["image"])
    assert images.shape == (5, 28, 28) and images.dtype == np.uint8
    assert [int(image[0, 0]) for image in images] == [0, 1, 2, 7, 0]
    assert images[4, 1, 2] == 30  # row 1, column 2 is byte 28 + 2
    assert list(dataset.labels) == [5, 0, 9, 7, 2] and dataset.labels.dtype == np.int64
    assert {k: list(v) for k, v in dataset.official.items()} == {"train": [0, 1, 2], "test": [3, 4]}
    assert dataset.class_names[9] == "9"
    assert dataset.notes[1] == "not the published 60,000 and 10,000"


def test_plain_files_stay_on_disk(tmp_path):
    parts = MNIST.load(write(tmp_path))["image"].parts
    assert all(isinstance(part, np.memmap) for part in parts)


def test_fashion_has_names_of_clothes(tmp_path):
    dataset = FASHION_MNIST.load(write(tmp_path))
    assert dataset.name == "fashion-mnist" and dataset.licence.startswith("MIT")
    assert dataset.class_names[9] == "Ankle boot" and len(dataset.class_names) == 10


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"train_labels_idx1_ubyte": idx((2,), b"\1\2")},
            "train-labels.*one uint8 label for each of 3",
        ),
        ({"t10k_labels_idx1_ubyte": idx((2,), b"\1\x0a")}, "t10k-labels.*0 to 9, got 10"),
        ({"t10k_images_idx3_ubyte": idx((2, 28, 27), bytes(1512))}, r"t10k-images.*28 × 28, got"),
        ({"t10k_images_idx3_ubyte": idx((2,), b"ab")}, r"t10k-images.*28 × 28, got"),
        ({"train_images_idx3_ubyte": FILES["train-images-idx3-ubyte"][:-1]}, "holds fewer"),
    ],
)
def test_wrong_files_are_refused_by_name(tmp_path, changed, says):
    with pytest.raises(FileError, match=says):
        MNIST.load(write(tmp_path, **changed))


def test_a_missing_file_is_said(tmp_path):
    (write(tmp_path) / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileError, match="t10k-labels-idx1-ubyte: no such file; mnist needs train-"):
        MNIST.load(tmp_path)


@pytest.mark.shared
def test_real_mnist_has_the_published_counts():
    dataset = MNIST.load(real_files.mnist_files())
    assert dataset["image"].shape == (70_000, 28, 28)
    counts = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]
    assert list(np.bincount(dataset.labels)) == counts
    mean = dataset["image"][:60_000].mean() / 255
    assert mean == pytest.approx(0.1307, abs=5e-5)  # as is well known
    assert len(dataset.notes) == 1


@pytest.mark.shared
def test_real_fashion_mnist_has_7000_of_each_class():
    dataset = FASHION_MNIST.load(real_files.fashion_files())
    assert dataset["image"].shape == (70_000, 28, 28)
    assert list(np.bincount(dataset.labels)) == [7000] * 10
    assert dataset["image"][:60_000].mean() / 255 == pytest.approx(0.2860, abs=5e-5)
    assert len(dataset.notes) == 1
