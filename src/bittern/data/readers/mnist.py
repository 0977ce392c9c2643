"""MNIST and Fashion-MNIST: 70,000 grey images of 28 × 28 pixels in 10 classes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.dataset import Dataset
from bittern.data.readers.idx import read_idx
from bittern.data.spec import DatasetSpec, Source
from bittern.data.stacked import StackedRows
from bittern.errors import FileError
from bittern.io.finding import find_file

__all__ = ["FASHION_MNIST", "MNIST"]

SIDE = 28
PLACES = ("", "raw", "MNIST/raw", "FashionMNIST/raw")  # torchvision's folders as well
PUBLISHED = {"train": 60_000, "test": 10_000}
STEMS = {"train": "train", "test": "t10k"}
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
DIGITS = tuple("0123456789")


def _load(name: str, folder: Path) -> Dataset:
    """The images in the official order: train, then test; those of plain files stay there."""
    spec, class_names = {
        "mnist": (MNIST, DIGITS),
        "fashion-mnist": (FASHION_MNIST, CLOTHES),
    }[name]
    parts = {part: _part(folder, stem, spec) for part, stem in STEMS.items()}
    n_train, n_test = (len(labels) for _, labels in parts.values())
    notes = [f"checked: {n_train:,} train and {n_test:,} test images, classes 0–9"]
    if {part: len(labels) for part, (_, labels) in parts.items()} != PUBLISHED:
        notes.append("not the published 60,000 and 10,000")
    return Dataset(
        name=name,
        modalities={"image": StackedRows([images for images, _ in parts.values()])},
        labels=np.concatenate([labels for _, labels in parts.values()]).astype(np.int64),
        class_names=class_names,
        official={"train": np.arange(n_train), "test": np.arange(n_train, n_train + n_test)},
        citation=spec.citation,
        licence=spec.licence,
        notes=tuple(notes),
    )


def _part(folder: Path, stem: str, spec: DatasetSpec) -> tuple[NDArray[Any], NDArray[Any]]:
    image_file = _find(folder, f"{stem}-images", "idx3-ubyte", spec)
    label_file = _find(folder, f"{stem}-labels", "idx1-ubyte", spec)
    images, labels = read_idx(image_file), read_idx(label_file)
    if images.dtype != np.uint8 or images.shape[1:] != (SIDE, SIDE):
        raise FileError(
            f"{image_file}: must hold uint8 images of 28 × 28, "
            f"got {images.dtype} of shape {images.shape}."
        )
    if labels.dtype != np.uint8 or labels.shape != images.shape[:1]:
        raise FileError(
            f"{label_file}: must hold one uint8 label for each of {len(images)} images, "
            f"got {labels.dtype} of shape {labels.shape}."
        )
    if labels.max(initial=0) > 9:
        raise FileError(f"{label_file}: labels must be 0 to 9, got {labels.max()}.")
    return images, labels


def _find(folder: Path, stem: str, kind: str, spec: DatasetSpec) -> Path:
    names = [f"{stem}{dot}{kind}{ending}" for ending in ("", ".gz") for dot in "-."]
    found = find_file(folder, names, PLACES)
    if found is None:
        raise FileError(f"{folder / names[0]}: no such file; {spec.name} needs {spec.layout}.")
    return found


def _sources(base: str, md5: dict[str, str]) -> tuple[Source, ...]:
    return tuple(Source(base + name, name, f"md5:{digest}") for name, digest in md5.items())


LAYOUT = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
    "t10k-labels-idx1-ubyte, plain or .gz"
)

MNIST = DatasetSpec(
    name="mnist",
    title="MNIST: 70,000 handwritten digits",
    load=partial(_load, "mnist"),
    layout=LAYOUT,
    citation="LeCun-Bottou-Bengio-Haffner-1998",
    licence="none stated by its authors",
    folder="mnist",
    # A mirror: the authors' own page no longer serves the files; the checksums are of theirs.
    sources=_sources(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
    ),
)

FASHION_MNIST = DatasetSpec(
    name="fashion-mnist",
    title="Fashion-MNIST: 70,000 images of clothes",
    load=partial(_load, "fashion-mnist"),
    layout=LAYOUT,
    citation="Xiao-Rasul-Vollgraf-2017",
    licence="MIT, Zalando SE",
    folder="fashion-mnist",
    sources=_sources(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        {
            "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
        },
    ),
)
