"""Run what a protocol still lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol as Interface

from bittern.checks import check_count
from bittern.errors import BitternError, FileError
from bittern.experiments.cells import Cell, cells_of, only
from bittern.experiments.images import write_images
from bittern.experiments.material import Root, material_of
from bittern.experiments.processes import Errand, Failed, Finished, measure_all
from bittern.experiments.protocol import Protocol
from bittern.experiments.records import FAILURES, PROTOCOL, Records
from bittern.io.files import atomic_write, existing_file
from bittern.io.toml import to_toml
from bittern.parallel import available_threads

__all__ = ["Watcher", "run", "run_cells"]


class Watcher(Interface):
    """Who wants to see an experiment go on."""

    def begin(self, cells: Sequence[Cell], n_known: int) -> None:
        """These cells are measured now; so many others are known already."""
        ...

    def tell(self, outcome: Finished | Failed) -> None:
        """A cell has ended."""
        ...


def run(
    protocol: Protocol | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    wanted: Sequence[str] = (),
    watcher: Watcher | None = None,
) -> Records:
    """Measure the cells that the folder lacks, and read all that is there.

    A finished cell is never measured again; after Ctrl-C or a crash, the same call goes on.  Cells
    that fail are told in ``failures``, and tried again by the next call.  ``jobs`` processes work
    side by side, by default one a core; the values do not depend on how many.  ``wanted`` limits
    the cells, as in ``["method=itq", "bits=32", "run=0,1"]``.
    """
    plan, text = _read(protocol)
    cells = only(cells_of(plan), wanted)
    place = Path(folder)
    if jobs is not None:
        check_count(jobs, "jobs")
    if first := next((cell for cell in cells if not cell.place(place).exists()), None):
        _try_out(plan, first.run, root, place)
    with _alone(place):
        _write(place / PROTOCOL, text)
        waiting = [cell for cell in cells if not cell.place(place).exists()]
        earlier = Records.read(place).failures or {}
        failures = run_cells(
            plan,
            waiting,
            place,
            root=root,
            jobs=jobs,
            watcher=watcher,
            n_known=len(cells) - len(waiting),
        )
        tried = {cell.name for cell in waiting}
        failures |= {name: why for name, why in earlier.items() if name not in tried}
        _write(place / FAILURES, json.dumps(failures, indent=1, ensure_ascii=False))
        records = Records.read(place)
        if waiting:
            write_images(records, root)
    return records


def run_cells(
    protocol: Protocol,
    cells: Sequence[Cell],
    folder: Path,
    *,
    root: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    watcher: Watcher | None = None,
    n_known: int = 0,
) -> dict[str, str]:
    """Measure cells, whether or not they are there; the names of those that failed, and why."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    cores = available_threads()
    jobs = min(cores if jobs is None else check_count(jobs, "jobs"), max(len(cells), 1))
    errand = Errand(protocol, folder, None if root is None else os.fspath(root))
    failures: dict[str, str] = {}
    if watcher is not None:
        watcher.begin(cells, n_known)
    done = 0
    try:
        for outcome in measure_all(errand, cells, jobs, max(1, cores // jobs)):
            done += 1
            if isinstance(outcome, Failed):
                failures[outcome.cell.name] = outcome.reason
            if watcher is not None:
                watcher.tell(outcome)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; {done} of {len(cells)} cells were measured and are kept in {folder}. "
            "The same command goes on from there."
        ) from None
    return failures


def _try_out(protocol: Protocol, run: int, root: Root, folder: Path) -> None:
    """Read the data and the split of a run, so that what is wrong with them is told once."""
    if protocol.paradigm == "evidence":
        from bittern.experiments.evidence.gathering import Gathering

        Gathering.of(protocol, run, root, folder)
        return
    protocol.ground_truth.check(material_of(protocol, run, root).train)


def _read(protocol: Protocol | str | os.PathLike[str]) -> tuple[Protocol, str]:
    """The protocol and its text, comments and all if it is a file."""
    if isinstance(protocol, Protocol):
        return protocol, to_toml(protocol.to_dict())
    source = existing_file(protocol)
    return Protocol.load(source), source.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, for one experiment at a time; what a killed one left half-written is removed."""
    import fcntl

    try:
        (folder / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made ({error.strerror}).") from error
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BitternError(
                f"{folder}: another experiment is running in it; wait, or give another folder."
            ) from None
        for leftover in (folder / "cells").glob(".*.tmp"):
            leftover.unlink()
        yield
