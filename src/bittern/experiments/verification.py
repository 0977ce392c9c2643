"""Measure a recorded cell again, and compare."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bittern.errors import BitternError, InputError
from bittern.experiments.cells import Cell, cells_of, select_cells
from bittern.experiments.record import Record
from bittern.experiments.records import Records
from bittern.experiments.run_data import check_source
from bittern.experiments.running import require_extras, run_cells
from bittern.experiments.search import choose
from bittern.io.files import temporary_folder


@dataclass(frozen=True, slots=True)
class Verification:
    """A cell as it was recorded, and as it was measured again."""

    cell: Cell
    recorded: Record
    again: Record

    @property
    def is_same(self) -> bool:
        """Whether every value is equal, to the last bit."""
        return self.recorded.same_values(self.again)

    def __str__(self) -> str:
        if self.is_same:
            return f"{self.cell.name}: every value is the same, to the last bit."
        differing = [
            f"{name} {value.mean:.6f}, now {self.again.values[name].mean:.6f}"
            for name, value in self.recorded.values.items()
            if name in self.again.values and value != self.again.values[name]
        ]
        changed = [
            f"{name} {self.recorded.versions.get(name, 'absent')}, now {now}"
            for name, now in self.again.versions.items()
            if self.recorded.versions.get(name) != now
        ]
        return (
            f"{self.cell.name}: differs: {'; '.join(differing) or 'values besides the metrics'}. "
            f"Versions: {'; '.join(changed) or 'the same'}."
        )

    def __repr__(self) -> str:
        return str(self)


def verify(
    folder: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    wanted: tuple[str, ...] = (),
    random_state: int | None = None,
) -> Verification:
    """Measure one recorded cell again, picked at random from those wanted."""
    records = Records.read(folder)
    protocol = records.protocol
    done = [c for c in select_cells(cells_of(protocol), wanted) if c.place(Path(folder)).exists()]
    if not done:
        raise InputError(f"{folder}: has no such record; make it with `bittern run`.")
    cell = done[np.random.default_rng(random_state).integers(len(done))]
    recorded = Record.load(cell.place(Path(folder)))
    if protocol.search is not None and cell.needs_search:  # chosen again from the recorded scores
        cell = replace(cell, choice=choose(recorded.tuning))
    require_extras(protocol, [cell])
    root = check_source(protocol, recorded, root)
    with temporary_folder() as empty:
        elsewhere = empty / "again"  # a new folder, so that no cached arrays are used
        failures = run_cells(protocol, [cell], elsewhere, root=root, jobs=1)
        for name, reason in failures.items():
            raise BitternError(f"verify: {name}: {reason}")
        again = Record.load(cell.place(elsewhere))
    return Verification(cell, recorded, again)
