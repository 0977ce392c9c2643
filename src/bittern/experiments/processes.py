"""Cells measured in processes side by side."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bittern.errors import BitternError
from bittern.experiments.cells import Cell
from bittern.experiments.protocol import Protocol
from bittern.parallel import run_tasks

__all__ = ["Experiment", "Failed", "Finished", "measure_all"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A cell whose record is on disk, with the mean of the main metric."""

    cell: Cell
    value: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A cell that could not be measured, and why."""

    cell: Cell
    reason: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """A protocol, the folder of its records, and the folder of its data."""

    protocol: Protocol
    folder: Path
    root: str | None


def measure_all(
    experiment: Experiment, cells: Sequence[Cell], jobs: int, threads: int
) -> Iterator[Finished | Failed]:
    """Measure and store each cell, ``jobs`` at a time; gives each outcome as it comes.

    If the iterator is closed early, or on Ctrl-C, the processes end at once: a record is written
    whole or not at all.
    """
    prepare = partial(_measurer, experiment)
    with closing(run_tasks(prepare, cells, jobs, owner="run", threads=threads)) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                yield Failed(outcome.task, str(outcome.error))
            elif outcome.result is not None:
                yield outcome.result


def _measurer(experiment: Experiment) -> Callable[[Cell], Finished | Failed]:
    """What a process measures cells with."""
    from bittern.experiments.measure import CellMeasurer

    bench = CellMeasurer(experiment.protocol, experiment.folder, experiment.root)

    def measure(cell: Cell) -> Finished | Failed:
        try:
            return Finished(cell, bench.measure(cell))
        except BitternError as error:
            return Failed(cell, str(error))
        except MemoryError:
            return Failed(cell, "there was not enough memory; use fewer jobs.")
        except Exception as error:  # the other cells go on
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            return Failed(cell, f"{type(error).__name__}: {error} ({where})")

    return measure
