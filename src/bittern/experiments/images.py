"""Small images of the items that an experiment's examples show."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data import Dataset
from bittern.experiments.material import dataset_of
from bittern.experiments.records import Records
from bittern.io.files import atomic_write

__all__ = ["write_images"]

SIDE = 96  # pixels at most
PIXELS = "pixels"  # a modality of grey levels in rows, as of scikit-learn's digits


def write_images(records: Records, root: str | os.PathLike[str] | None = None) -> None:
    """Write ``images/POSITION.png`` for every item in an example; nothing if there are none."""
    assert records.folder is not None
    folder = records.folder / "images"
    shown = {p for record in records for e in record.examples for p in (e.query, *e.items)}
    lacking = sorted(p for p in shown if not _place(folder, p).exists())
    if not lacking or records.protocol.paradigm == "evidence":
        return
    dataset = dataset_of(records.protocol.dataset, root)
    modality = _imaged(dataset)
    if modality is None:
        return
    folder.mkdir(exist_ok=True)
    for position in lacking:
        _write(_place(folder, position), np.asarray(dataset[modality][position]))


def _place(folder: Path, position: int) -> Path:
    return folder / f"{position}.png"


def _imaged(dataset: Dataset) -> str | None:
    """The modality whose rows are images."""
    for name, rows in dataset.modalities.items():
        shape = np.shape(rows[0])
        if len(shape) in (2, 3) or (name == PIXELS and math.isqrt(shape[0]) ** 2 == shape[0]):
            return name
    return None


def _write(path: Path, pixels: NDArray[Any]) -> None:
    from PIL import Image

    image = Image.fromarray(_grey_levels(pixels))
    image.thumbnail((SIDE, SIDE))
    with atomic_write(path) as file:
        image.save(file, format="PNG")


def _grey_levels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Octets; rows of grey levels become squares, dark on light as ink is."""
    if pixels.dtype == np.uint8 and pixels.ndim > 1:
        return pixels.squeeze()
    side = math.isqrt(pixels.size)
    square = pixels.reshape(side, side) if pixels.ndim == 1 else pixels
    return np.round(255 * (1 - square / max(float(square.max()), 1.0))).astype(np.uint8)
