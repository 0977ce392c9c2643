"""CIFAR-10: 60,000 images of 32 × 32 pixels in 10 classes, or features of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.data.dataset import Dataset, DatasetSpec, RemoteFile
from bittern.data.rows import DecodedRows, Rows, StackedRows
from bittern.errors import FileError
from bittern.io.archives import read_members
from bittern.io.files import existing_file
from bittern.io.npz import stored_arrays
from bittern.io.pickles import MOST_BYTES, read_pickle
from bittern.registry import Registry

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")  # the official order
PUBLISHED = 10_000  # images in each
SIDE, PIXELS = 32, 3 * 32 * 32
CLASSES: tuple[str, ...] = (
    "airplane", "automobile", "bird", "cat", "deer",
    "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
#: Files of features, below the data's folder.
FEATURE_FILES = Registry(
    "kind of CIFAR-10 features",
    {
        "gist": PurePath("cifar10_gist512/cifar10_gist512_f16.npz"),
        "cnn": PurePath("cifar10_cnn/cifar10_efflite0_128_u8sqrt.npz"),
    },
)
CNN_LEVELS = (6.0 * (np.arange(256) / 255.0) ** 2).astype(np.float32)  # values of the stored bytes


def load(folder: Path, features: str = "image") -> Dataset:
    """Read CIFAR-10 in the official order: the five training batches, then the test batch.

    ``features`` is "image", ``(n, 32, 32, 3)`` uint8 from the published files; "gist", 512 float32;
    or "cnn", 1280 float32, decoded when read.
    """
    return FEATURES[features](folder)


class _Batch(NamedTuple):
    images: NDArray[np.uint8]  # (n, 32, 32, 3)
    labels: NDArray[np.int64]
    filenames: list[str]


def _images(folder: Path) -> Dataset:
    place, ending, parse = _find(folder)
    batches: dict[str, _Batch] = {}
    class_names, notes = CLASSES, ["the file of class names is absent: they are the published ones"]
    for name, content in _files(place, ending):
        stem = name.rpartition("/")[2].removesuffix(".bin")
        if stem.startswith("batches.meta"):
            class_names, notes = _class_names(content, f"{place}: {name}"), []
        else:
            batches[stem] = parse(content, f"{place}: {name}")
    if missing := [name + ending for name in BATCHES if name not in batches]:
        raise FileError(f"{place}: has no {', '.join(missing)}; CIFAR-10 has six batches.")
    ordered = [batches[name] for name in BATCHES]
    if len({len(batch.labels) for batch in ordered}) > 1:
        sizes = ", ".join(f"{name} {len(batches[name].labels)}" for name in BATCHES)
        raise FileError(f"{place}: the batches differ in size: {sizes}.")
    images = StackedRows([batch.images for batch in ordered])
    labels = np.concatenate([batch.labels for batch in ordered])
    filenames = [name for batch in ordered for name in batch.filenames]
    has_ids = len(set(filenames)) == len(labels)
    ids = np.array(filenames) if has_ids else None
    return _dataset("image", images, labels, place, notes, class_names=class_names, ids=ids)


def _gist(folder: Path) -> Dataset:
    path = _find_features(folder, "gist")
    stored, labels = _stored_features(path, "gist", 512, "f")
    return _dataset("gist", np.asarray(stored, dtype=np.float32), labels, path, [])


def _cnn(folder: Path) -> Dataset:
    path = _find_features(folder, "cnn")
    stored, labels = _stored_features(path, "q", 1280, "u")
    note = "EfficientNet-Lite0 features, stored as bytes q: feature = 6·(q/255)²"
    return _dataset("cnn", DecodedRows(stored, _decoded), labels, path, [note])


FEATURES = Registry("kind of CIFAR-10 features", {"image": _images, "gist": _gist, "cnn": _cnn})


def _dataset(
    modality: str,
    rows: Rows,
    labels: NDArray[np.int64],
    place: Path,
    notes: list[str],
    **more: Any,
) -> Dataset:
    n = len(rows)
    if n == 0 or n % len(BATCHES):
        raise FileError(f"{place}: {n} items cannot be six batches of equal size.")
    size = n // len(BATCHES)
    checked = [f"checked: {n:,} items, six batches of {size:,}, classes 0–9"]
    if size != PUBLISHED:
        checked.append(f"not the published batches of {PUBLISHED:,}")
    return Dataset(
        name="cifar10",
        modalities={modality: rows},
        labels=labels,
        class_names=more.pop("class_names", CLASSES),
        official={"train": np.arange(n - size), "test": np.arange(n - size, n)},
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=(*checked, *notes),
        **more,
    )


def _find(folder: Path) -> tuple[Path, str, Any]:
    """Where the batches are, the suffix of their names, and the function that reads one."""
    for ending, parse, stem, archive in (
        ("", _pickled_batch, "cifar-10-batches-py", "cifar-10-python.tar.gz"),
        (".bin", _binary_batch, "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    ):
        if folder.is_file() and folder.name == archive:
            return folder, ending, parse
        for place in (folder, folder / stem):
            if any((place / (name + ending)).is_file() for name in BATCHES):
                return place, ending, parse
        if (folder / archive).is_file():
            return folder / archive, ending, parse
    raise FileError(f"{folder}: has no batches; cifar10 needs {SPEC.layout}.")


def _files(place: Path, ending: str) -> Iterator[tuple[str, Any]]:
    """Name and bytes of each file; .bin files in a folder are memory-mapped."""
    names = [name + ending for name in BATCHES]
    names.append("batches.meta.txt" if ending else "batches.meta")
    if place.is_file():
        top = "cifar-10-batches-bin" if ending else "cifar-10-batches-py"
        yield from read_members(place, {f"{top}/{name}": MOST_BYTES for name in names})
        return
    for path in (place / name for name in names):
        if not path.exists():
            continue
        size = existing_file(path).stat().st_size
        if not ending and size > MOST_BYTES:
            raise FileError(f"{path}: a batch must have at most {MOST_BYTES} bytes, got {size}.")
        yield path.name, np.memmap(path, np.uint8, "r") if _is_mapped(path) else path.read_bytes()


def _is_mapped(path: Path) -> bool:
    return path.suffix == ".bin" and path.stat().st_size > 0


def _pickled_batch(content: bytes, name: str) -> _Batch:
    batch = read_pickle(content, name)
    data, labels = batch.get("data"), batch.get("labels")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        raise FileError(f"{name}: 'data' must be an (n, {PIXELS}) array of uint8.")
    if not isinstance(labels, list) or set(map(type, labels)) - {int}:
        raise FileError(f"{name}: 'labels' must be a list of whole numbers.")
    if len(labels) != len(data):
        raise FileError(f"{name}: {len(labels)} labels for {len(data)} images.")
    if labels and not 0 <= min(labels) <= max(labels) < len(CLASSES):
        raise FileError(f"{name}: labels must be 0 to 9.")
    return _Batch(_colours_last(data), np.array(labels, np.int64), _filenames(batch, len(labels)))


def _filenames(batch: dict[str, Any], n: int) -> list[str]:
    """The images' names as text; empty if the file has no such list."""
    names = batch.get("filenames")
    if not isinstance(names, list) or len(names) != n or set(map(type, names)) - {str, bytes}:
        return []
    return [name.decode("latin1") if isinstance(name, bytes) else name for name in names]


def _binary_batch(content: bytes | NDArray[np.uint8], name: str) -> _Batch:
    raw = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
    if len(raw) == 0 or len(raw) % (1 + PIXELS):
        raise FileError(
            f"{name}: must be records of {1 + PIXELS} bytes each, got {len(raw)} bytes."
        )
    records = raw.reshape(-1, 1 + PIXELS)
    labels = records[:, 0].astype(np.int64)
    if labels.max() >= len(CLASSES):
        raise FileError(f"{name}: labels must be 0 to 9, got {labels.max()}.")
    return _Batch(_colours_last(records[:, 1:]), labels, [])


def _colours_last(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Red, green and blue planes as images whose last axis is the colour, without copying."""
    return planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


def _class_names(content: bytes, name: str) -> tuple[str, ...]:
    if name.endswith(".txt"):
        found: Any = content.decode("latin1").split()
    else:
        found = read_pickle(content, name).get("label_names")
    if not isinstance(found, list) or set(map(type, found)) - {str, bytes}:
        raise FileError(f"{name}: 'label_names' must be a list of text.")
    if len(found) != len(CLASSES):
        raise FileError(f"{name}: names {len(found)} classes, but CIFAR-10 has {len(CLASSES)}.")
    return tuple(text.decode("latin1") if isinstance(text, bytes) else text for text in found)


def find(folder: Path, modalities: Collection[str], options: Mapping[str, Any]) -> Path:
    """The place of the batches, or the file of features."""
    kind = options.get("features", "image")
    return _find(folder)[0] if kind == "image" else _find_features(folder, kind)


def _find_features(folder: Path, kind: str) -> Path:
    """The .npz file of features: alone in its folder, here or next to this one, or here by name."""
    if folder.is_file():
        return folder
    place = FEATURE_FILES[kind].parent
    found = [*(folder / place).glob("*.npz"), *(folder.parent / place).glob("*.npz")]
    found = found or [path for path in folder.glob("*.npz") if kind in path.name]
    if len(found) != 1:
        listed = ", ".join(path.name for path in sorted(found)) or "none"
        hint = "" if found else f"; to make it: bittern data prepare cifar10 --features {kind}"
        raise FileError(
            f"{folder / place}: expected one .npz file of features, found {listed}{hint}."
        )
    return found[0]


def _stored_features(
    path: Path, key: str, dim: int, kind: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    arrays = stored_arrays(path)
    if missing := [name for name in (key, "label") if name not in arrays]:
        raise FileError(f"{path}: has no array '{missing[0]}', only {', '.join(arrays)}.")
    rows, labels = arrays[key], arrays["label"]
    if rows.shape[1:] != (dim,) or rows.dtype.kind != kind or (kind == "u" and rows.dtype != "u1"):
        raise FileError(f"{path}: '{key}' must be (n, {dim}), got {rows.dtype} of {rows.shape}.")
    if labels.shape != rows.shape[:1] or labels.dtype.kind not in "iu":
        raise FileError(
            f"{path}: 'label' must be a whole number for each of {rows.shape[0]} rows, "
            f"got {labels.dtype} of shape {labels.shape}."
        )
    y = labels.read().astype(np.int64)
    if len(y) and not 0 <= y.min() <= y.max() < len(CLASSES):
        raise FileError(f"{path}: labels must be 0 to 9.")
    return rows.read(), y


def _decoded(stored: NDArray[np.uint8]) -> NDArray[np.float32]:
    return CNN_LEVELS[stored]


SPEC = DatasetSpec(
    name="cifar10",
    title="CIFAR-10: 60,000 images of 32 × 32 pixels in 10 classes",
    load=load,
    layout=(
        "cifar-10-batches-py/ or cifar-10-python.tar.gz, cifar-10-batches-bin/ or "
        "cifar-10-binary.tar.gz; features in cifar10_gist512/*.npz and cifar10_cnn/*.npz"
    ),
    citation="Krizhevsky-2009",
    licence="none stated; its authors ask to be cited",
    folder="cifar10",
    sources=(
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "cifar-10-python.tar.gz",
            "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        ),
    ),
    steps=("centre",),
    find=find,
    prepared=tuple(FEATURE_FILES),
)
