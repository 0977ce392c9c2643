"""Records: all results of an experiment so far, read from its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bittern.checks import Float64Array
from bittern.errors import FileError, InputError
from bittern.experiments.cells import Cell, Trial, cells_of, trials_of
from bittern.experiments.paradigm import Task
from bittern.experiments.protocol import Protocol
from bittern.experiments.record import Record, TaskResult, Value, mean_values, values_of
from bittern.extras import import_extra
from bittern.io.files import atomic_write
from bittern.metrics.scores import aligned

# Files in the folder of an experiment.
PROTOCOL = "protocol.toml"
FAILURES = "failures.json"
MOST_NAMED = 4  # tasks that a caption names
AnyCell = TypeVar("AnyCell", bound=Cell)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The finished cells of a protocol, in its order, and the trials of its search.

    ``missing`` and ``missing_trials`` are the others; ``failures`` says why, for those that were
    tried.  ``task`` is the task that the records are of, if the paradigm has several and one of
    them was selected.
    """

    protocol: Protocol
    records: tuple[Record, ...]
    missing: tuple[Cell, ...] = ()
    failures: dict[str, str] | None = None  # names of cells to reasons
    folder: Path | None = None
    trials: tuple[Record, ...] = ()
    missing_trials: tuple[Trial, ...] = ()
    task: Task | None = None

    @staticmethod
    def read(folder: str | os.PathLike[str]) -> Records:
        """Read the folder of an experiment; cells that its protocol no longer has are ignored."""
        place = Path(folder)
        if not (place / PROTOCOL).is_file():
            raise FileError(f"{place}: has no {PROTOCOL}; give a folder made by `bittern run`.")
        protocol = Protocol.load(place / PROTOCOL)
        done, missing = parted(cells_of(protocol), place)
        tried, untried = parted(trials_of(protocol), place)
        records = tuple(_completed(read_record(cell, place), protocol) for cell in done)
        trials = tuple(read_record(trial, place) for trial in tried)
        _check_one_data(place, (*records, *trials))
        failures = _failures(place, (*missing, *untried))
        return Records(protocol, records, tuple(missing), failures, place, trials, tuple(untried))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        """The mean of the main metric over runs, of each method at each length."""
        lengths = self.lengths or (None,)
        head = ["" if n is None else f"{n} bits" for n in lengths]
        rows = [[method, *(self._mean_of(method, n) for n in lengths)] for method in self.methods]
        lacking = f", {len(self.missing):,} missing" if self.missing else ""
        count = f"{len(self):,} record{'' if len(self) == 1 else 's'}{lacking}"
        table = aligned([[self.protocol.main_metric, *head], *rows])
        return "\n".join([f"{self.protocol.title}: {count}", *table])

    def _mean_of(self, method: str, n_bits: int | None) -> str:
        means = [
            record.values[self.protocol.main_metric].mean for record in self.of(method, n_bits)
        ]
        return f"{sum(means) / len(means):.4f}" if means else ""

    @property
    def methods(self) -> tuple[str, ...]:
        """Labels of methods that have at least one record, in the protocol's order."""
        found = {record.method for record in self.records}
        return tuple(label for label in self.protocol.labels if label in found)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that some record has results of; empty if the paradigm has just one."""
        found = {name for record in self.records for name in record.tasks}
        return tuple(t for t in self.protocol.kind.tasks(self.protocol) if t.name in found)

    def of_task(self, task: Task) -> Records:
        """The results of one task alone."""
        found = tuple(one.of_task(task.name) for one in self.records if task.name in one.tasks)
        return Records(self.protocol, found, folder=self.folder, task=task)

    @property
    def task_text(self) -> str:
        """The task in words, or the tasks whose mean the values are; empty if there is just one."""
        if self.task is not None:
            return self.task.name
        means = [task for task in self.tasks if task.is_main]
        directions = " and ".join(task.direction for task in means)
        if len(means) > MOST_NAMED:
            directions = f"mean of {len(means)} tasks"
        elif len(means) > 1:
            directions = f"mean of {directions}"
        return f"{directions}, {means[0].setting}" if means else ""

    @property
    def bounds(self) -> tuple[str, ...]:
        """Oracles: methods that see the judgements of test queries, and so do not compete."""
        looking = {record.method for record in self.records if "looks_at" in record.parameters}
        return tuple(label for label in self.methods if label in looking)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Code lengths that have at least one record, ascending."""
        return tuple(sorted({r.n_bits for r in self.records if r.n_bits is not None}))

    def of(self, method: str, n_bits: int | None = None) -> tuple[Record, ...]:
        """Records of a method at a length, by run; without codes, they count for every length."""
        return tuple(
            record
            for record in self.records
            if record.method == method and record.n_bits in (n_bits, None)
        )

    def over_runs(self, method: str, n_bits: int | None, metric: str) -> Float64Array:
        """Mean of a metric in each run; NaN if it is undefined or the method lacks it."""
        found = [record.values.get(metric) for record in self.of(method, n_bits)]
        return np.array([np.nan if value is None else value.mean for value in found])

    def rows(self) -> list[dict[str, Any]]:
        """One row per value: method, bits, run, metric, mean, spread, undefined, costs.

        Rows say which task they are of, if there are several.
        """
        return [
            {
                "method": record.method,
                **task,
                "n_bits": record.n_bits,
                "run": record.run,
                "metric": metric,
                "mean": value.mean,
                "pessimistic": None if value.spread is None else value.spread[0],
                "optimistic": None if value.spread is None else value.spread[1],
                "undefined": value.undefined,
                "queries": len(record.query_positions),
                "fit_seconds": record.seconds.get("fit"),
                "encode_seconds": record.seconds.get("encode"),
                "peak_memory": record.peak_memory,
                "fingerprint": record.fingerprint,
            }
            for task, record in self._by_task()
            for metric, value in record.values.items()
        ]

    def _by_task(self) -> Iterator[tuple[dict[str, str], Record]]:
        """Each record, and with several tasks also its results of each one."""
        tasks = self.tasks
        for record in self.records:
            yield ({"task": self.task_text} if tasks else {}), record
            for name in record.tasks:
                yield {"task": name}, record.of_task(name)

    def per_query_rows(self) -> dict[str, list[Any]]:
        """Columns of a table with one row per method, length, run, metric and query."""
        tasks = ("task",) if self.tasks else ()
        names = ("method", "n_bits", "run", *tasks, "metric", "query", "value")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for task, record in self._by_task():
            for metric, value in record.values.items():
                if value.per_query is None:
                    continue
                n = len(value.per_query)
                same = (record.method, record.n_bits, record.run, *task.values(), metric)
                for name, one in zip(names, same, strict=False):
                    columns[name] += [one] * n
                columns["query"] += list(record.query_positions)
                columns["value"] += list(value.per_query)
        return columns

    def write_parquet(self, path: str | os.PathLike[str], *, per_query: bool = False) -> None:
        """Write :meth:`rows`, or :meth:`per_query_rows`, as a Parquet file."""
        pyarrow = import_extra("pyarrow", "Parquet")
        parquet = import_extra("pyarrow.parquet", "Parquet")
        if not self.records:
            raise InputError("Parquet: there are no records yet.")
        table = (
            pyarrow.table(self.per_query_rows())
            if per_query
            else pyarrow.Table.from_pylist(self.rows())
        )
        with atomic_write(path) as file:
            parquet.write_table(table, file)


def parted(cells: Sequence[AnyCell], folder: Path) -> tuple[list[AnyCell], list[AnyCell]]:
    """The cells with a record in the folder, and those without."""
    there = [cell.place(folder).exists() for cell in cells]
    pairs = list(zip(cells, there, strict=True))
    return [c for c, is_there in pairs if is_there], [c for c, is_there in pairs if not is_there]


def read_record(cell: Cell, folder: Path) -> Record:
    """The record of a cell; raises FileError if it is damaged or of another cell."""
    path = cell.place(folder)
    try:
        record = Record.load(path)
    except FileError as error:
        raise FileError(f"{error} Delete it; `bittern run` will measure the cell again.") from error
    found = (record.method, record.n_bits, record.run, record.fingerprint)
    if found != (cell.method.label, cell.n_bits, cell.run, cell.fingerprint):
        raise FileError(
            f"{path}: is the record of another cell; delete it and repeat `bittern run`."
        )
    return record


def _check_one_data(folder: Path, records: Sequence[Record]) -> None:
    """Raise FileError if records come from different data."""
    known = {record.split["data"] for record in records if "data" in record.split}
    if len(known) > 1:
        raise FileError(
            f"{folder}: has records of {len(known)} different sets of data; "
            "delete its folders 'cells' and 'trials' and run `bittern run` again."
        )


def _completed(record: Record, protocol: Protocol) -> Record:
    """The record with the protocol's metrics; new ones are computed from its profiles."""
    if not record.tasks:
        return replace(record, values=_all_values(record, protocol))
    tasks = {
        name: replace(one, values=_all_values(one, protocol)) for name, one in record.tasks.items()
    }
    means = [tasks[task.name] for task in protocol.kind.tasks(protocol) if task.is_main]
    return replace(record, tasks=tasks, values=mean_values(means))


def _all_values(found: Record | TaskResult, protocol: Protocol) -> dict[str, Value]:
    lacking = [name for name in protocol.metrics if name not in found.values]
    values = found.values
    if lacking and found.profile is not None:
        values = values | values_of(found.profile, lacking)
    return {name: values[name] for name in protocol.metrics if name in values}


def _failures(folder: Path, missing: Sequence[Cell]) -> dict[str, str]:
    """Why missing cells failed when they were last tried."""
    path = folder / FAILURES
    if not path.exists():
        return {}
    try:
        reasons = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(f"{path}: not readable ({error}); delete it.") from None
    if not isinstance(reasons, dict):
        raise FileError(f"{path}: not a table of reasons; delete it.")
    names = {cell.name for cell in missing}
    return {name: str(reason) for name, reason in reasons.items() if name in names}
