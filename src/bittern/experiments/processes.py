"""Cells measured in processes side by side; one that dies takes only its own cell with it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from bittern.errors import BitternError
from bittern.experiments.cells import Cell
from bittern.experiments.protocol import Protocol
from bittern.parallel import VARIABLE
from bittern.spawning import end_with_parent, interrupts_held

__all__ = ["Failed", "Finished", "measure_all"]

# Products of matrices round differently on two threads than on one, and a bit may flip: cells run
# side by side instead, and only counting, which is exact, may use the threads that are left.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
READY = "ready"


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
class Errand:
    """What every process of an experiment knows."""

    protocol: Protocol
    folder: Path
    root: str | None


def measure_all(
    errand: Errand, cells: Sequence[Cell], jobs: int, threads: int
) -> Iterator[Finished | Failed]:
    """Measure and store each cell, ``jobs`` at a time; tells of each as it ends.

    Stopped half-way (the iterator is closed, or Ctrl-C), the processes end at once: a record is
    written whole or not at all.
    """
    waiting = deque(cells)
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.cell for worker in workers):
            _fill(workers, errand, min(jobs, len(waiting)), threads)
            for worker in workers:
                if worker.is_ready and worker.cell is None and waiting:
                    worker.begin(waiting.popleft())
            for worker in _heard(workers):
                outcome = worker.listen()
                if outcome is not None:
                    yield outcome
            workers = [worker for worker in workers if not worker.is_gone]
    finally:
        for worker in workers:
            worker.end()


def _fill(workers: list[_Worker], errand: Errand, wanted: int, threads: int) -> None:
    """Start as many processes as there is work for."""
    for _ in range(wanted - len(workers)):
        workers.append(_Worker.start(errand, threads))


def _heard(workers: list[_Worker]) -> list[_Worker]:
    """Wait for processes that have something to say, or are gone."""
    said = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in said]


@dataclass(eq=False)
class _Worker:
    """A process, seen from the one that started it."""

    process: Any
    connection: Connection
    cell: Cell | None = None
    is_ready: bool = False
    is_gone: bool = field(default=False)

    @classmethod
    def start(cls, errand: Errand, threads: int) -> _Worker:
        """A process that begins from nothing: threads and locks of this one do not follow."""
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, errand), daemon=True)
        with _environment(threads), interrupts_held():
            process.start()
        theirs.close()
        return cls(process, ours)

    def begin(self, cell: Cell) -> None:
        """Give it a cell."""
        self.cell = cell
        with suppress(OSError):  # it is gone, which listen() finds out
            self.connection.send(cell)

    def listen(self) -> Finished | Failed | None:
        """What it says; its silence, if it is gone, is a failure of its cell."""
        try:
            said = self.connection.recv()
        except (EOFError, OSError):
            return self._mourn()
        if said == READY:
            self.is_ready = True
            return None
        self.cell = None
        return said

    def end(self) -> None:
        """Stop it now."""
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
        self.connection.close()

    def _mourn(self) -> Failed:
        self.is_gone = True
        self.process.join()
        code, cell = self.process.exitcode, self.cell
        if cell is None:
            raise BitternError(
                "run: a process ended before it began; in a script, call run() below "
                "`if __name__ == '__main__':`."
            )
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        reason = f"its process ended with {how}; use fewer jobs if memory ran out"
        return Failed(cell, f"{reason}.")


def _serve(connection: Connection, errand: Errand) -> None:
    """What a process does: measure what it is given until there is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that half a file is cleared away
    end_with_parent()
    from bittern.experiments.bench import Bench

    bench = Bench(errand.protocol, errand.folder, errand.root)
    connection.send(READY)
    with suppress(EOFError):
        while True:
            cell = connection.recv()
            connection.send(_outcome(bench, cell))


def _outcome(bench: Any, cell: Cell) -> Finished | Failed:
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


@contextmanager
def _environment(threads: int) -> Iterator[None]:
    """What a process that starts now will see."""
    wanted = dict.fromkeys(ONE_THREAD, "1") | {VARIABLE: str(threads)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
