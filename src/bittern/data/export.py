"""Write a dataset's images and captions as a folder that anyone can look at, or index."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bittern.data.dataset import Dataset
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write, make_folder
from bittern.progress import track

PLAIN = re.compile(r"[\w-]+")  # an id that can be a file's name
MANIFEST, CAPTIONS = "manifest.csv", "captions.csv"


def write_folder(
    dataset: Dataset, folder: str | os.PathLike[str], *, image: str = "image", text: str = "text"
) -> int:
    """Write every image as a PNG file into a new folder; return how many.

    ``manifest.csv`` has the tags, and the labels if every image has one; ``captions.csv`` has the
    texts if there are any.  The dataset ``folder`` reads them back.  ``image`` and ``text`` are the
    modalities.
    """
    rows, has_image = dataset[image], dataset.has(image)
    root = make_folder(Path(folder))
    if any(root.iterdir()):
        raise FileError(f"{root}: is not empty; give a new folder.")
    names = _names(dataset)
    positions = np.flatnonzero(has_image).tolist()
    for i in track(positions, "writing images", len(positions)):
        _write_image(root / names[i], rows[i], f"{dataset.name}: {image}")
    is_labelled = dataset.labels is not None and bool((dataset.labels[positions] >= 0).all())
    header = ["path", "tags", *(["label"] if is_labelled else [])]
    known = ([names[i], _tags(dataset, i), *_label(dataset, i)][: len(header)] for i in positions)
    _write_table(root / MANIFEST, header, known)
    if text in dataset.modalities:
        worded = dataset.complete(text).tolist()
        said = ([names[i] if has_image[i] else "", dataset[text][i]] for i in worded)
        _write_table(root / CAPTIONS, ["file", "caption"], said)
    return len(positions)


def _names(dataset: Dataset) -> list[str]:
    ids = [] if dataset.ids is None else dataset.ids.tolist()
    if not ids or not all(PLAIN.fullmatch(name) for name in ids):
        width = len(str(len(dataset) - 1))
        ids = [f"{i:0{width}d}" for i in range(len(dataset))]
    return [f"{name}.png" for name in ids]


def _label(dataset: Dataset, i: int) -> list[str]:
    return [] if dataset.labels is None else [dataset.class_names[int(dataset.labels[i])]]


def _tags(dataset: Dataset, i: int) -> str:
    if dataset.tags is None:
        return ""
    row = dataset.tags[[i]]
    marked = np.flatnonzero(row.toarray() if hasattr(row, "toarray") else row)
    return ";".join(dataset.tag_names[t] for t in marked)


def _write_image(path: Path, pixels: Any, title: str) -> None:
    from PIL import Image

    array = np.asarray(pixels)
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise InputError(f"{title} must be images of bytes, got {array.dtype} {array.shape}.")
    with atomic_write(path) as file:
        Image.fromarray(array.squeeze()).save(file, format="PNG")


def _write_table(path: Path, header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(lines)
