"""Measure cells and trials in parallel processes, and store a record of each."""

from __future__ import annotations

import pickle
import platform
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from math import nan
from pathlib import Path
from typing import Any

import bittern
from bittern.data import Dataset
from bittern.errors import BitternError, InputError
from bittern.experiments.cells import Cell, Trial, cells_of, trials_of
from bittern.experiments.paradigm import Clock
from bittern.experiments.protocol import Protocol
from bittern.experiments.record import Record
from bittern.experiments.run_data import Root, load_dataset, source_of
from bittern.parallel import run_tasks
from bittern.registry import Registration, all_registrations, register_all
from bittern.scale.tasks import TaskLostError, submitted

ONE_AT_A_TIME = threading.Lock()  # cells on one worker, which may have several threads
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "lightgbm")


@dataclass(frozen=True, slots=True)
class Finished:
    """A cell whose record is on disk, with the mean of the metric that decides."""

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
    experiment: Experiment,
    cells: Sequence[Cell],
    jobs: int,
    threads: int,
    executor: Executor | None = None,
) -> Iterator[Finished | Failed]:
    """Measure and store each cell, ``jobs`` at a time; yields each outcome as it comes.

    If the iterator is closed early, or on Ctrl-C, the processes end at once: a record is written
    whole or not at all.  An ``executor`` measures the cells instead of processes; its workers must
    see the folder of the records and the data.
    """
    if executor is not None:
        yield from _measure_elsewhere(experiment, cells, executor)
        return
    prepare = partial(_measurer, experiment, _pickled(all_registrations()))
    with closing(run_tasks(prepare, cells, jobs, owner="run", threads=threads)) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                yield Failed(outcome.task, str(outcome.error))
            elif outcome.result is not None:
                yield outcome.result


def _measure_elsewhere(
    experiment: Experiment, cells: Sequence[Cell], executor: Executor
) -> Iterator[Finished | Failed]:
    """Measure and store each cell on the workers of an executor."""
    there = pickle.dumps((experiment, _pickled(all_registrations())))
    tasks = {cell.name: (there, cell) for cell in cells}
    with closing(submitted(executor, _measure_here, tasks)) as outcomes:  # type: ignore[type-var]
        for name, outcome in outcomes:
            if isinstance(outcome, TaskLostError):
                yield Failed(tasks[name][1], f"its task was lost ({outcome}).")
            else:
                yield outcome


def _measure_here(task: tuple[bytes, Cell]) -> Finished | Failed:
    """Measure a cell on this worker, one at a time and with one thread, as in a process of ours."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    there, cell = task
    with ONE_AT_A_TIME, threadpool_limits(1):
        return _measurer_here(there)(cell)


@lru_cache(maxsize=1)
def _measurer_here(there: bytes) -> Callable[[Cell], Finished | Failed]:
    """The measurer of this worker, which keeps its data until another experiment comes."""
    return _measurer(*pickle.loads(there))


def _pickled(registrations: list[Registration]) -> bytes:
    """What was registered at run time, for other processes."""
    try:
        return pickle.dumps(registrations)
    except Exception as error:
        raise InputError(
            f"run: what is registered at run time must be defined in a module ({error})."
        ) from None


def _measurer(experiment: Experiment, registered: bytes) -> Callable[[Cell], Finished | Failed]:
    """The measurer of cells in a process, which gets what the parent has registered."""
    try:
        register_all(pickle.loads(registered))
    except Exception as error:
        raise InputError(
            "run: a process cannot import what was registered at run time; define it in a "
            f"module, not in a notebook ({error})."
        ) from None
    measurer = CellMeasurer(experiment.protocol, experiment.folder, experiment.root)

    def measure(cell: Cell) -> Finished | Failed:
        try:
            return Finished(cell, measurer.measure(cell))
        except BitternError as error:
            return Failed(cell, str(error))
        except MemoryError:
            return Failed(cell, "there was not enough memory; use fewer jobs.")
        except Exception as error:  # the other cells continue
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            return Failed(cell, f"{type(error).__name__}: {error} ({where})")

    return measure


class CellMeasurer:
    """Measures cells of a protocol; keeps the dataset and the data of the last run in memory."""

    def __init__(self, protocol: Protocol, folder: Path, root: Root = None) -> None:
        self._protocol, self._folder, self._root = protocol, folder, root
        self._recorded_data = _recorded_data(protocol, folder)
        self._source = source_of(protocol, root)
        self._dataset: Dataset | None = None
        self._run: int | None = None
        self._data: Any = None

    def measure(self, cell: Cell) -> float:
        """Measure a cell or trial, store its record, and return the mean of its metric."""
        record = measure_cell(self._protocol, cell, self._data_of(cell.run), self._source)
        record.save(cell.place(self._folder))
        protocol = self._protocol
        metric = protocol.search_metric if isinstance(cell, Trial) else protocol.main_metric
        value = record.values.get(metric)
        return nan if value is None else value.mean

    def _data_of(self, run: int) -> Any:
        if run != self._run:
            self._run, self._data = None, None  # freed before the next is read
            if self._dataset is None:
                self._dataset = load_dataset(self._protocol.dataset, self._root)
            data = self._protocol.kind.prepare(self._protocol, self._dataset, run, self._folder)
            if self._recorded_data not in (None, data.fingerprint):
                raise InputError(
                    f"{self._dataset.name}: not the data that the records in "
                    f"{self._folder} were made from; give another folder, or the same data."
                )
            self._run, self._data = run, data
        return self._data


def measure_cell(
    protocol: Protocol, cell: Cell, data: Any, source: Mapping[str, str] | None = None
) -> Record:
    """The record of a cell or trial, measured on the data of its run, which is from ``source``."""
    clock, kind = Clock(), protocol.kind
    with peak_memory() as peak:
        if isinstance(cell, Trial):
            found = kind.measure_trial(protocol, cell, data, clock)
        else:
            found = kind.measure(protocol, cell, data, clock) | {"split": data.statement}
    if source:
        found["split"] = found["split"] | {"source": dict(source)}
    return Record(
        method=cell.method.label,
        n_bits=cell.n_bits,
        run=cell.run,
        fingerprint=cell.fingerprint,
        seconds=clock.seconds,
        peak_memory=peak.bytes,
        versions=versions() | kind.origins(protocol, cell.method),
        protocol=protocol.to_dict(),
        **found,
    )


def _recorded_data(protocol: Protocol, folder: Path) -> str | None:
    """Fingerprint of the data of the first record in the folder; None if it has none."""
    places = (cell.place(folder) for cell in (*trials_of(protocol), *cells_of(protocol)))
    first = next((place for place in places if place.exists()), None)
    return None if first is None else Record.load(first).split.get("data")


RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass
class PeakMemory:
    """Bytes at the peak, 0 if unknown; set when the block ends."""

    bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Peak resident memory of the block, or of the process where the system cannot reset it."""
    peak = PeakMemory()
    with suppress(OSError):  # not Linux, or not allowed
        RESET.write_text("5")
    try:
        yield peak
    finally:
        peak.bytes = _peak_bytes()


def versions() -> dict[str, str]:
    """Versions of Python, the package, and the libraries that its numbers depend on."""
    found = {"bittern": bittern.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found | {"platform": f"{platform.system()} {platform.machine()}"}


def _peak_bytes() -> int:
    """Peak of the process so far; 0 if the system does not tell."""
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
