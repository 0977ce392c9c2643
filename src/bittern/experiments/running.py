"""Measure the missing cells of an experiment."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.data import Dataset
from bittern.errors import BitternError
from bittern.experiments.cells import Cell, cells_of, select_cells
from bittern.experiments.measure import (
    Experiment,
    Failed,
    Finished,
    measure_all,
)
from bittern.experiments.protocol import Protocol
from bittern.experiments.records import FAILURES, PROTOCOL, Records
from bittern.experiments.run_data import Root, load_dataset
from bittern.io.files import atomic_write, existing_file, make_folder, write_text
from bittern.io.toml import to_toml
from bittern.parallel import available_threads

IMAGES = "images"  # folder of small images of the examples
IMAGE_SIDE = 96  # pixels at most
PIXELS = "pixels"  # a modality of grey levels in rows, as of scikit-learn's digits


class Watcher(Interface):
    """Follows an experiment as it runs."""

    def begin(self, cells: Sequence[Cell], n_known: int) -> None:
        """These cells are about to be measured; ``n_known`` others already have records."""
        ...

    def tell(self, outcome: Finished | Failed) -> None:
        """A cell has been measured or has failed."""
        ...


def run(
    protocol: Protocol | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    root: Root = None,
    jobs: int | None = None,
    wanted: Sequence[str] = (),
    watcher: Watcher | None = None,
) -> Records:
    """Measure the missing cells, and return all records of the folder.

    A finished cell is never measured again; after Ctrl-C or a crash, the same call continues.
    ``failures`` lists the cells that failed; the next call tries them again.  ``jobs`` is the
    number of processes, one per core by default; values do not depend on it.  ``wanted`` limits
    the cells, as in ``["method=itq", "bits=32", "run=0,1"]``.
    """
    checked, text = _read_protocol(protocol)
    cells = select_cells(cells_of(checked), wanted)
    place = Path(folder)
    if jobs is not None:
        check_count(jobs, "jobs")
    if first := next((cell for cell in cells if not cell.place(place).exists()), None):
        # Report bad data once, before anything is written.
        checked.kind.prepare(checked, load_dataset(checked.dataset, root), first.run, place)
    with _locked(place):
        write_text(place / PROTOCOL, text)
        waiting = [cell for cell in cells if not cell.place(place).exists()]
        earlier = Records.read(place).failures or {}
        if watcher is not None:
            watcher.begin(waiting, len(cells) - len(waiting))
        failures = run_cells(checked, waiting, place, root=root, jobs=jobs, watcher=watcher)
        tried = {cell.name for cell in waiting}
        failures |= {name: why for name, why in earlier.items() if name not in tried}
        write_text(place / FAILURES, json.dumps(failures, indent=1, ensure_ascii=False))
        records = Records.read(place)
        if waiting:
            _write_images(records, place / IMAGES, root)
    return records


def run_cells(
    protocol: Protocol,
    cells: Sequence[Cell],
    folder: Path,
    *,
    root: Root = None,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> dict[str, str]:
    """Measure all these cells; returns the names of those that failed, and why."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    cores = available_threads()
    jobs = min(cores if jobs is None else check_count(jobs, "jobs"), max(len(cells), 1))
    experiment = Experiment(protocol, folder, None if root is None else os.fspath(root))
    failures: dict[str, str] = {}
    done = 0
    try:
        for outcome in measure_all(experiment, cells, jobs, max(1, cores // jobs)):
            done += 1
            if isinstance(outcome, Failed):
                failures[outcome.cell.name] = outcome.reason
            if watcher is not None:
                watcher.tell(outcome)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; {done} of {len(cells)} cells are measured and stored in {folder}. "
            "Run the same command again to continue."
        ) from None
    return failures


def _read_protocol(protocol: Protocol | str | os.PathLike[str]) -> tuple[Protocol, str]:
    """The protocol and its text; the text of a file keeps its comments."""
    if isinstance(protocol, Protocol):
        return protocol, to_toml(protocol.to_dict())
    source = existing_file(protocol)
    return Protocol.load(source), source.read_text(encoding="utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder for one experiment; remove half-written files of a killed one."""
    import fcntl

    make_folder(folder / "cells")
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BitternError(
                f"{folder}: another experiment is running here; wait, or give another folder."
            ) from None
        for leftover in (folder / "cells").glob(".*.tmp"):
            leftover.unlink()
        yield


def _write_images(records: Records, folder: Path, root: Root) -> None:
    """Write ``POSITION.png`` for every item in an example, if the dataset has images."""
    shown = {p for record in records for e in record.examples for p in (e.query, *e.items)}
    lacking = sorted(p for p in shown if not (folder / f"{p}.png").exists())
    if not lacking:
        return
    dataset = load_dataset(records.protocol.dataset, root)
    modality = _image_modality(dataset)
    if modality is None:
        return
    folder.mkdir(exist_ok=True)
    for position in lacking:
        _write_image(folder / f"{position}.png", np.asarray(dataset[modality][position]))


def _image_modality(dataset: Dataset) -> str | None:
    """The modality whose rows are images."""
    for name, rows in dataset.modalities.items():
        shape = np.shape(rows[0])
        if len(shape) in (2, 3) or (name == PIXELS and math.isqrt(shape[0]) ** 2 == shape[0]):
            return name
    return None


def _write_image(path: Path, pixels: NDArray[Any]) -> None:
    from PIL import Image

    image = Image.fromarray(_grey_levels(pixels))
    image.thumbnail((IMAGE_SIDE, IMAGE_SIDE))
    with atomic_write(path) as file:
        image.save(file, format="PNG")


def _grey_levels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels as bytes; a row of grey levels becomes a square, dark on light like ink."""
    if pixels.dtype == np.uint8 and pixels.ndim > 1:
        return pixels.squeeze()
    side = math.isqrt(pixels.size)
    square = pixels.reshape(side, side) if pixels.ndim == 1 else pixels
    return np.round(255 * (1 - square / max(float(square.max()), 1.0))).astype(np.uint8)
