"""Measure the missing trials and cells of an experiment."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.data import Dataset
from bittern.errors import BitternError, InputError
from bittern.experiments.cells import Cell, Trial, cells_of, select_cells, trials_of
from bittern.experiments.measure import (
    Experiment,
    Failed,
    Finished,
    measure_all,
)
from bittern.experiments.protocol import Protocol
from bittern.experiments.ready_codes import CODES, check_unchanged
from bittern.experiments.records import FAILURES, PROTOCOL, Records, parted, read_record
from bittern.experiments.run_data import Root, check_source, dense, load_dataset, root_of
from bittern.experiments.search import Choice, choose, tried_points
from bittern.extras import require
from bittern.io.arrays import modules_to_read
from bittern.io.files import atomic_write, existing_file, make_folder, write_text
from bittern.io.locks import locked
from bittern.io.protocol_files import EXTENDS, read_protocol_file
from bittern.io.toml import to_toml
from bittern.parallel import available_threads

IMAGES = "images"  # folder of small images of the examples
TEXTS = "texts.json"  # in that folder: texts of the examples by position
IMAGE_SIDE = 96  # pixels at most
PIXELS = "pixels"  # a modality of grey levels in rows, as of scikit-learn's digits


class Watcher(Interface):
    """Follows an experiment as it runs."""

    def begin(self, cells: Sequence[Cell], n_known: int) -> None:
        """These cells are about to be measured; ``n_known`` others already have records.

        Called first for the trials of a search, if some are missing, and then for the cells.
        """
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
    search_only: bool = False,
    watcher: Watcher | None = None,
) -> Records:
    """Measure the missing trials and cells, and return all records of the folder.

    A finished one is never measured again; after Ctrl-C or a crash, the same call continues.
    ``failures`` lists those that failed; the next call tries them again.  ``jobs`` is the number of
    processes, one per core by default; values do not depend on it.  ``wanted`` limits the cells, as
    in ``["method=itq", "bits=32", "run=0,1"]``, and the trials to those that these cells need.
    ``search_only`` measures the trials alone.
    """
    checked, text = _read_protocol(protocol)
    cells = select_cells(cells_of(checked), wanted)
    trials = trials_of(checked, cells)
    place = Path(folder)
    if jobs is not None:
        check_count(jobs, "jobs")
    if search_only and not trials:
        raise InputError("search: there is nothing to search; add [search] and a grid.")
    known, missing = parted([*trials, *(() if search_only else cells)], place)
    for cell in known:
        check_unchanged(checked, cell, place)
    require_extras(checked, missing)
    root = root_of(checked, root)
    if missing and known:
        check_source(checked, read_record(known[0], place), root)
    if missing:  # report bad data once, before anything is written
        checked.kind.prepare(checked, load_dataset(checked.dataset, root), missing[0].run, place)
    with _locked(place):
        write_text(place / PROTOCOL, _with_base(text, checked, place))
        failures = Records.read(place).failures or {}

        def measure(waiting: Sequence[Cell], n_known: int) -> None:
            if watcher is not None:
                watcher.begin(waiting, n_known)
            for cell in waiting:
                failures.pop(cell.name, None)
            failures.update(
                run_cells(checked, waiting, place, root=root, jobs=jobs, watcher=watcher)
            )

        done, waiting = parted(trials, place)
        if waiting:
            measure(waiting, len(done))
        if not search_only:
            finished, unfinished = parted(cells, place)
            ready, unready = with_choices(checked, unfinished, place)
            measure(ready, len(finished))
            failures |= unready
        write_text(place / FAILURES, json.dumps(failures, indent=1, ensure_ascii=False))
        records = Records.read(place)
        if missing:
            _write_images(records, place / IMAGES, root)
    return records


def require_extras(protocol: Protocol, cells: Sequence[Cell]) -> None:
    """Raise an error that names all optional libraries which these cells need and lack."""
    methods = {cell.method.label: cell.method for cell in cells}
    needs = {label: protocol.kind.needs_modules(protocol, one) for label, one in methods.items()}
    own = protocol.dataset.path
    require(needs | (modules_to_read(Path(own)) if cells and own is not None else {}))


def with_choices(
    protocol: Protocol, cells: Sequence[Cell], folder: Path
) -> tuple[list[Cell], dict[str, str]]:
    """The cells with the parameters that the search chose; and why others must wait, by name."""
    choices: dict[tuple[str, int | None], Choice | str] = {}
    ready, unready = [], {}
    for cell in cells:
        if protocol.search is None or not cell.needs_search:
            ready.append(cell)
            continue
        key = (cell.method.label, cell.n_bits)
        if key not in choices:
            choices[key] = _choice(trials_of(protocol, [cell]), folder)
        found = choices[key]
        if isinstance(found, Choice):
            ready.append(replace(cell, choice=found))
        else:
            unready[cell.name] = found
    return ready, unready


def _choice(trials: Sequence[Trial], folder: Path) -> Choice | str:
    """The best point of these trials; a reason if some of them are not finished."""
    done, missing = parted(trials, folder)
    if missing:
        return (
            f"its search is not finished: {len(missing)} of {len(trials)} trials "
            f"{'has' if len(missing) == 1 else 'have'} no result, such as {missing[0].name}."
        )
    return choose(tried_points([read_record(trial, folder) for trial in done]))


def run_cells(
    protocol: Protocol,
    cells: Sequence[Cell],
    folder: Path,
    *,
    root: Root = None,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> dict[str, str]:
    """Measure all these cells or trials; returns the names of those that failed, and why."""
    for place in {cell.place(folder).parent for cell in cells}:
        place.mkdir(parents=True, exist_ok=True)
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
            f"stopped; {done} of {len(cells)} {kind_of(cells)} are measured and stored in "
            f"{folder}. "
            "Run the same command again to continue."
        ) from None
    return failures


def kind_of(cells: Sequence[Cell]) -> str:
    """What these are in a sentence: cells or trials."""
    return "trials" if any(isinstance(cell, Trial) for cell in cells) else "cells"


def _read_protocol(protocol: Protocol | str | os.PathLike[str]) -> tuple[Protocol, str]:
    """The protocol and its text; the text of a file keeps its comments, if it is complete."""
    if isinstance(protocol, Protocol):
        return protocol, to_toml(protocol.to_dict())
    source = existing_file(protocol)
    checked = Protocol.load(source)
    if EXTENDS in read_protocol_file(source):  # the other file may change
        return checked, to_toml(checked.to_dict())
    return checked, source.read_text(encoding="utf-8")


def _with_base(text: str, protocol: Protocol, folder: Path) -> str:
    """The text with the way from ``folder`` to the protocol's own, if it reads files there."""
    reads_codes = any(method.name == CODES for method in protocol.method)
    if not reads_codes and protocol.dataset.path is None:
        return text
    base = protocol.base or str(Path.cwd())
    with suppress(ValueError):  # two drives of Windows
        base = os.path.relpath(base, folder)
    without = re.sub(r"\Abase = .*\n", "", text)
    return to_toml({"base": Path(base).as_posix()}) + without


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder for one experiment; remove half-written files of a killed one."""
    make_folder(folder / "cells")
    with locked(folder / ".lock", wait=False) as is_ours:
        if not is_ours:
            raise BitternError(
                f"{folder}: another experiment is running here; wait, or give another folder."
            )
        for leftover in (*(folder / "cells").glob(".*.tmp"), *(folder / "trials").glob(".*.tmp")):
            leftover.unlink()
        yield


def _write_images(records: Records, folder: Path, root: Root) -> None:
    """Write ``POSITION.png`` for every item in an example, if the dataset has images."""
    shown = _shown(records)
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
    if records.tasks and (texts := _texts(dataset, sorted(shown))):
        write_text(folder / TEXTS, json.dumps(texts, ensure_ascii=False))


def _shown(records: Records) -> set[int]:
    """The items that some example shows."""
    examples = [
        example
        for record in records
        for listed in (record.examples, *(task.examples for task in record.tasks.values()))
        for example in listed
    ]
    return {position for one in examples for position in (one.query, *one.items)}


def _texts(dataset: Dataset, positions: Sequence[int]) -> dict[int, str]:
    """What to show as the text of an item: its text, or its tags; empty if it has neither."""
    for rows in dataset.modalities.values():
        if isinstance(rows[positions[0]], str):
            return {p: str(rows[p]) for p in positions}
    if dataset.tags is None:
        return {}
    tags = {p: np.flatnonzero(dense(dataset.tags[[p]])[0]) for p in positions}
    return {p: ", ".join(dataset.tag_names[tag] for tag in found) for p, found in tags.items()}


def _image_modality(dataset: Dataset) -> str | None:
    """The modality whose rows are images."""
    for name, rows in dataset.modalities.items():
        shape = np.shape(rows[0])
        if len(shape) in (2, 3) or (name == PIXELS and math.isqrt(shape[0]) ** 2 == shape[0]):
            return name
    return None


def small_image(dataset: Dataset, position: int) -> bytes | None:
    """A small PNG of an item; None if the dataset has no images."""
    modality = _image_modality(dataset)
    return None if modality is None else _png(np.asarray(dataset[modality][position]))


def _write_image(path: Path, pixels: NDArray[Any]) -> None:
    with atomic_write(path) as file:
        file.write(_png(pixels))


def _png(pixels: NDArray[Any]) -> bytes:
    from PIL import Image

    image = Image.fromarray(_grey_levels(pixels))
    image.thumbnail((IMAGE_SIDE, IMAGE_SIDE))
    content = io.BytesIO()
    image.save(content, format="PNG")
    return content.getvalue()


def _grey_levels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels as bytes; a row of grey levels becomes a square, dark on light like ink."""
    if pixels.dtype == np.uint8 and pixels.ndim > 1:
        return pixels.squeeze()
    side = math.isqrt(pixels.size)
    square = pixels.reshape(side, side) if pixels.ndim == 1 else pixels
    return np.round(255 * (1 - square / max(float(square.max()), 1.0))).astype(np.uint8)
