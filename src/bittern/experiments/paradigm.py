"""Paradigm: a kind of experiment, with its own methods, data and measurement."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bittern.data import DATASETS, Dataset
from bittern.errors import InputError
from bittern.metrics import METRICS, parse
from bittern.registry import OpenRegistry

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell, Trial
    from bittern.experiments.protocol import Method, Protocol


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """One of several searches that a paradigm measures with a single fit.

    ``query`` and ``found`` are the kinds of items on the two sides, such as ``image`` and ``text``;
    ``setting`` names the database, and ``explanation`` says in a sentence what that means.  The
    values of a record are means over the tasks with ``is_main``.  A task that does not ``compete``
    is shown as a warning: no method is best in it, and none is tested.
    """

    query: str
    found: str
    setting: str
    explanation: str = ""
    is_main: bool = False
    competes: bool = True

    @property
    def direction(self) -> str:
        """What searches what, such as ``image → text``."""
        return f"{self.query} → {self.found}"

    @property
    def name(self) -> str:
        """Direction and setting, such as ``image → text, unseen``."""
        return f"{self.direction}, {self.setting}"


class Paradigm(ABC):
    """What a kind of experiment decides for itself.

    To add one, write a subclass in its own file and a line in ``PARADIGMS`` of ``protocol.py``.
    """

    #: Key of the protocol's table with settings of this paradigm; ``Protocol.settings`` holds it.
    table: str | None = None
    #: Tables that the names of its methods are looked up in.
    tables: tuple[OpenRegistry[Any], ...] = ()
    #: Whether a query is an item, known by its position in the dataset.  Otherwise
    #: ``Record.query_positions`` only number the queries of a run.
    queries_are_items: bool = True

    @abstractmethod
    def check(self, protocol: Protocol) -> None:
        """Raise InputError for methods, parameters or settings that make no sense here."""

    @abstractmethod
    def lengths(self, protocol: Protocol, method: Method) -> Sequence[int | None]:
        """Code lengths of a method; ``(None,)`` if it makes no codes."""

    def tasks(self, protocol: Protocol) -> tuple[Task, ...]:
        """The tasks that each cell measures; empty if there is just one."""
        return ()

    @abstractmethod
    def prepare(self, protocol: Protocol, dataset: Dataset, run: int, folder: Path) -> Any:
        """The data of one run, checked.

        Its ``statement`` describes the split in plain values, its ``fingerprint`` the data.
        Slow results may be cached in ``folder``, the folder of the experiment.
        """

    @abstractmethod
    def measure(self, protocol: Protocol, cell: Cell, data: Any, clock: Clock) -> dict[str, Any]:
        """Measure one cell on the data of its run: the fields of its Record that it determines."""

    def names_of(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """The names that a method looks up in the paradigm's tables."""
        return (method.name,)

    def needs_modules(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """The optional modules that a method needs, with all points of its grid."""
        return ()

    def origins(self, protocol: Protocol, method: Method) -> dict[str, str]:
        """The plug-ins that take part in a cell: what each is, and where it is from."""
        used: list[tuple[OpenRegistry[Any], str]] = [(DATASETS, protocol.dataset.name)]
        used += [(METRICS, parse(metric).metric) for metric in protocol.metrics]
        names = self.names_of(protocol, method)
        used += [(table, name) for table in self.tables for name in names]
        found = {f"{table.kind} {name}": table.origin(name) for table, name in used}
        return {what: origin for what, origin in found.items() if origin is not None}

    def measure_trial(
        self, protocol: Protocol, trial: Trial, data: Any, clock: Clock
    ) -> dict[str, Any]:
        """Score one point of a grid on training rows: the fields of its Record.

        Only for paradigms whose methods may have grids.
        """
        raise InputError(f"search: {trial.method.label} has no grid in this paradigm.")


class Clock:
    """Seconds spent on each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[[], T]) -> T:
        """Do the work, record its time, and return its result."""
        began = time.perf_counter()
        result = work()
        self.seconds[step] = time.perf_counter() - began
        return result


def check_different(values: Sequence[Any], where: str) -> None:
    """Raise InputError for a value that is named twice: it would be counted twice."""
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InputError(f"{where}: {value} is named twice.")
