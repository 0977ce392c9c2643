"""Bench: where one process measures cells, with the data of the last run at hand."""

from __future__ import annotations

from math import nan
from pathlib import Path

from bittern.data import Dataset
from bittern.errors import InputError
from bittern.experiments.cells import Cell, cells_of
from bittern.experiments.material import Material, Root, dataset_of, material_of
from bittern.experiments.measuring import measure
from bittern.experiments.protocol import Protocol, Source
from bittern.experiments.record import Record

__all__ = ["Bench"]


class Bench:
    """Measures cells of a protocol and stores their records."""

    def __init__(self, protocol: Protocol, folder: Path, root: Root = None) -> None:
        self._protocol, self._folder, self._root = protocol, folder, root
        self._dataset: Dataset | None = None
        self._known_data = _known_data(protocol, folder)
        self._material: tuple[int, Material] | None = None

    def measure(self, cell: Cell) -> float:
        """Measure a cell, store its record; the mean of the main metric."""
        record = self._record(cell)
        record.save(cell.place(self._folder))
        value = record.values.get(self._protocol.main_metric)
        return nan if value is None else value.mean

    def _record(self, cell: Cell) -> Record:
        if self._protocol.paradigm == "evidence":
            from bittern.experiments.evidence import measure_evidence

            return measure_evidence(self._protocol, cell, self._root, self._folder)
        if self._material is None or self._material[0] != cell.run:
            self._material = None  # before the next is read
            material = material_of(self._protocol, cell.run, self._root, self._read)
            if self._known_data not in (None, material.statement["data"]):
                raise InputError(
                    f"{material.dataset.name}: these are not the data that {self._folder} has "
                    "records of; give another folder, or take the first data again."
                )
            self._material = cell.run, material
        return measure(self._protocol, cell, self._material[1])

    def _read(self, source: Source, root: Root) -> Dataset:
        if self._dataset is None:
            self._dataset = dataset_of(source, root)
        return self._dataset


def _known_data(protocol: Protocol, folder: Path) -> str | None:
    """The data of the first record that is there; None if there is none, or it does not say."""
    places = (cell.place(folder) for cell in cells_of(protocol))
    known = next((place for place in places if place.exists()), None)
    return None if known is None else Record.load(known).split.get("data")
