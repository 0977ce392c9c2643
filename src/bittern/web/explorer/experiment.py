"""Experiment: the records of a folder as the explorer sees them, a cell and a task at a time."""

from __future__ import annotations

import io
import json
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bittern.data import Dataset
from bittern.data.thumbnails import image_modality, small_image
from bittern.errors import BitternError, InputError
from bittern.experiments.paradigm import Task
from bittern.experiments.protocol import Protocol
from bittern.experiments.record import Record
from bittern.experiments.records import Records
from bittern.experiments.run_data import load_dataset, root_of
from bittern.experiments.running import IMAGES, TEXTS
from bittern.io.files import reading
from bittern.web.refusal import Refusal

ADDRESS = "/view/experiment/images"
IMAGE, TEXT = "image", "text"  # kinds of items that a task has


class Items:
    """Images, texts and classes of an experiment's items, as far as they are still there."""

    def __init__(self, folder: Path, protocol: Protocol) -> None:
        self.folder, self.protocol = folder, protocol

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The data of the experiment, if it is still where it was."""
        try:
            return load_dataset(self.protocol.dataset, root_of(self.protocol, None))
        except (BitternError, OSError):
            return None

    @cached_property
    def _modality(self) -> str | None:
        """The modality of the dataset that has images."""
        return None if self._dataset is None else image_modality(self._dataset)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Texts that were kept, by position."""
        path = self.folder / IMAGES / TEXTS
        if not path.is_file():
            return {}
        with reading(path, "JSON file"):
            return json.loads(path.read_text(encoding="utf-8"))

    def has_image(self, position: int) -> bool:
        """Whether there is an image of an item."""
        return (self.folder / IMAGES / f"{position}.png").is_file() or self._modality is not None

    def image(self, position: int) -> bytes:
        """The small image of an item: a kept one, or else one of the dataset."""
        path = self.folder / IMAGES / f"{position}.png"
        if path.is_file():
            return path.read_bytes()
        dataset, modality = self._dataset, self._modality
        if dataset is None or modality is None or not 0 <= position < len(dataset):
            raise Refusal(404, f"The experiment has no image of item {position}.")
        content = io.BytesIO()
        small_image(np.asarray(dataset[modality][position])).save(content, format="PNG")
        return content.getvalue()

    def label_of(self, position: int) -> int | None:
        """The class of an item, if the dataset is there and has classes."""
        if self._dataset is None or self._dataset.labels is None:
            return None
        label = int(self._dataset.labels[position]) if position < len(self._dataset) else -1
        return None if label < 0 else label


class Experiment:
    """The records of a folder, a cell (method, length and run) at a time.

    With several tasks, values are means over the main ones; :meth:`of_task` selects one.  Cells
    have the same numbers in every task.
    """

    def __init__(self, folder: Path) -> None:
        whole = Records.read(folder)
        if not len(whole):
            raise InputError(f"{folder}: has no records yet; 'bittern run' makes them.")
        self.folder, self._whole = folder, whole
        self.items = Items(folder, whole.protocol)
        self._tasks: dict[str, Experiment] = {}
        self._select(None)

    def _select(self, task: Task | None) -> None:
        self.task = task
        self.records = self._whole if task is None else self._whole.of_task(task)
        self._numbered = {
            i: one if task is None else one.of_task(task.name)
            for i, one in enumerate(self._whole)
            if task is None or task.name in one.tasks
        }

    def of_task(self, name: str | None) -> Experiment:
        """The same with the results of one task; an empty name means all of them."""
        if not name:
            return self
        if name not in self._tasks:
            named = {one.name: one for one in self._whole.tasks}
            if name not in named:
                raise InputError(f"quality: there is no task {name!r}.")
            part = copy(self)
            part.__dict__.pop("cells", None)  # they were of all tasks
            part._select(named[name])
            self._tasks[name] = part
        return self._tasks[name]

    @property
    def title(self) -> str:
        """The title of the protocol."""
        return self.records.protocol.title

    @property
    def metric(self) -> str:
        """The metric that is shown."""
        return self.records.protocol.main_metric

    @property
    def task_names(self) -> list[str]:
        """Names of the tasks; empty if there is just one."""
        return [one.name for one in self._whole.tasks]

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """The cells that have a value for each query of the main metric."""
        return [
            {"number": i, "method": one.method, "n_bits": one.n_bits, "run": one.run}
            for i, one in self._numbered.items()
            if self.metric in one.values and one.values[self.metric].per_query is not None
        ]

    def number(self, cell: int | None) -> int:
        """The number of a cell that can be shown, by default of the first with codes."""
        numbers = [one["number"] for one in self.cells]
        if not numbers:
            raise InputError(f"{self.folder}: no record has values for each query.")
        if cell is None:
            coded = [one["number"] for one in self.cells if one["n_bits"] is not None]
            return int((coded or numbers)[0])
        if cell not in numbers:
            raise InputError(f"quality: there is no cell {cell}.")
        return cell

    def record(self, cell: int | None) -> Record:
        """The record of a cell, by default the first with codes."""
        return self._numbered[self.number(cell)]

    def tile(
        self, position: int, label: int | None = None, kind: str = IMAGE, **more: Any
    ) -> dict[str, Any]:
        """What is shown of an item of the dataset; its text alone if that was searched or found."""
        is_image = kind != TEXT and self.items.has_image(position)
        return {
            "id": position,
            "title": f"row {position}",
            "label": None if label is None else self.class_name(label),
            "text": self.items.texts.get(str(position)),
            "src": f"{ADDRESS}/{position}" if is_image else None,
            "code": None,
            "details": {},
            **more,
        }

    def query_tile(self, record: Record, i: int) -> dict[str, Any]:
        """What is shown of a query, which is an item of the dataset in most paradigms."""
        label = None if record.query_labels is None else int(record.query_labels[i])
        position = record.query_positions[i]
        if not self.records.protocol.kind.queries_are_items:
            title = f"query {position}"
            text = title if label is None else self.class_name(label)
            return self.tile(position, label) | {"title": title, "text": text, "src": None}
        return self.tile(position, label, "" if self.task is None else self.task.query)

    def class_name(self, label: int) -> str:
        """The name of a class, or its number."""
        names = self.records.records[0].split.get("class_names") or []
        return str(names[label]) if 0 <= label < len(names) else str(label)
