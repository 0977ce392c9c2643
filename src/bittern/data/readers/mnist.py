"""MNIST and Fashion-MNIST: 70,000 grey images of 28 × 28 pixels in 10 classes, in idx files."""

from __future__ import annotations

import gzip
import math
import os
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.data.dataset import Dataset, DatasetSpec, RemoteFile
from bittern.data.rows import StackedRows
from bittern.errors import FileError
from bittern.io.files import existing_file, find_file, reading, refuse_excess

SIDE = 28
PLACES = ("", "raw", "MNIST/raw", "FashionMNIST/raw")  # torchvision's folders too
PUBLISHED = {"train": 60_000, "test": 10_000}
STEMS = {"train": "train", "test": "t10k"}
CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
DIGITS = tuple("0123456789")
IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def _load(name: str, folder: Path) -> Dataset:
    """Read the images in the official order, train then test; plain files are memory-mapped."""
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


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an idx file, plain (memory-mapped) or compressed with gzip.

    The format: two zero bytes, a type code, the number of dimensions, each dimension as a
    big-endian int32, then the numbers, big-endian.
    """
    source = existing_file(path)
    with source.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            return _decompressed(source)
        file.seek(0)
        header = _header(source, file)
    _refuse_length(source, header, source.stat().st_size - header.start)
    if header.n_bytes == 0:
        return np.empty(header.shape, header.dtype)
    return np.memmap(source, header.dtype, "r", header.start, header.shape)


class _Header(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # byte of the first number

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _decompressed(source: Path) -> NDArray[Any]:
    with reading(source, "gzip file"), gzip.open(source) as stream:
        header = _header(source, stream)
        refuse_excess(source, header.n_bytes, source.stat().st_size, "its header")
        content = stream.read(header.n_bytes + 1)
        _refuse_length(source, header, len(content))
    return np.frombuffer(content, header.dtype).reshape(header.shape)


def _header(source: Path, stream: IO[bytes] | gzip.GzipFile) -> _Header:
    magic = stream.read(4)
    if (
        len(magic) < 4
        or magic[:2] != b"\0\0"
        or magic[2] not in IDX_TYPES
        or not 1 <= magic[3] <= 8
    ):
        raise FileError(f"{source}: not an idx file, it starts with {magic.hex(' ') or 'nothing'}.")
    sizes = stream.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise FileError(f"{source}: is truncated inside its header.")
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    return _Header(np.dtype(IDX_TYPES[magic[2]]), shape, 4 + len(sizes))


def _refuse_length(source: Path, header: _Header, length: int) -> None:
    if length != header.n_bytes:
        held = "fewer" if length < header.n_bytes else "more"
        raise FileError(
            f"{source}: an array of shape {header.shape} has {header.n_bytes} bytes, but "
            f"the file holds {held}."
        )


def _sources(base: str, md5: dict[str, str]) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(base + name, name, f"md5:{digest}") for name, digest in md5.items())


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
    # A mirror: the authors' page no longer serves the files; the checksums are of the originals.
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
