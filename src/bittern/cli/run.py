"""Run experiments: ``bittern run``, ``reproduce`` and ``verify``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bittern.cli.app import app, echo, handle_interrupt
from bittern.cli.report import PAGE, write_reports
from bittern.cli.sharded import executor_for
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.experiments import Cell, Protocol, Records
    from bittern.experiments.measure import Failed, Finished

RESULTS = Path("results")

Root = Annotated[
    Path | None, typer.Option(help="Data folder (default: BITTERN_DATA or your user data folder).")
]
Out = Annotated[Path | None, typer.Option(help="Folder for the records (default: results/NAME).")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Only some cells: method=itq,lsh or bits=32 or run=0; may be repeated.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the protocol: runs=1, dataset.name=nuswide or "
        "method.LABEL.parameters.n_epochs=5; may be repeated.",
    ),
]
Jobs = Annotated[int | None, typer.Option(help="Number of processes (default: one per core).")]


@app.command()
def run(
    protocol: Annotated[str, typer.Argument(help="TOML file, or name from 'bittern reproduce'.")],
    out: Out = None,
    only: Only = None,
    changes: Changes = None,
    jobs: Jobs = None,
    root: Root = None,
    search_only: Annotated[
        bool, typer.Option("--search-only", help="Only search the grids, and show the choices.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Measure on a Dask cluster, whose workers see the data and the folder of the "
            "records: its address, like tcp://127.0.0.1:8786."
        ),
    ] = None,
) -> None:
    """Measure the missing cells of a protocol, and show its table.

    Each cell (a method at a length in a run) is stored as soon as it is finished. If you stop the
    command, run it again to continue. `bittern report` makes a page from the folder.
    """
    found, folder = _find(protocol, changes or (), out)
    options = {"wanted": only or (), "jobs": jobs, "root": root, "search_only": search_only}
    if dask is not None and jobs is not None:
        raise InputError("run: give --jobs or --dask, not both.")
    with nullcontext() if dask is None else executor_for(None, dask) as executor:
        records = _run(found, folder, **options, executor=executor)
    _finish(records, folder)


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Name of a protocol; omit it to list all of them.")
    ] = None,
    out: Out = None,
    only: Only = None,
    changes: Changes = None,
    jobs: Jobs = None,
    root: Root = None,
) -> None:
    """Reproduce a table or figure of the papers, and write its page."""
    from bittern.experiments.readiness import list_protocols

    if name is None:
        echo(list_protocols(root))
        return
    found, folder = _find(name, changes or (), out)
    _check_ready(name, found.protocol, folder, only or (), root)
    echo(introduction(found.protocol))
    records = _run(found, folder, wanted=only or (), jobs=jobs, root=root)
    write_reports(folder, html=folder / PAGE)
    _finish(records, folder)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="Folder made by `bittern run`.")],
    only: Only = None,
    random_state: Annotated[
        int | None, typer.Option(help="Seed for picking the cell (random by default).")
    ] = None,
    root: Root = None,
) -> None:
    """Measure a random cell again, and check that it is the same to the last bit."""
    from bittern import experiments

    with handle_interrupt():
        found = experiments.verify(
            folder, root=root, wanted=tuple(only or ()), random_state=random_state
        )
    echo(str(found))
    if not found.is_same:
        raise typer.Exit(1)


def introduction(protocol: Protocol) -> str:
    """What a protocol reproduces, how it differs, and how long it takes."""
    differs = f"Differs: {protocol.differs}" if protocol.differs else ""
    lines = (protocol.title, protocol.reproduces, differs, protocol.takes)
    return "\n".join(line for line in lines if line)


def summary(records: Records, folder: Path) -> str:
    """The table, or the choices of a search; the failed cells; the page or how to make it."""
    from bittern.report import choices_to_text, to_text

    if len(records):
        lines = [to_text(records).rstrip()]
    else:
        lines = [choices_to_text(records) if records.trials else "Nothing was measured."]
    for name, reason in (records.failures or {}).items():
        lines.append(f"failed: {name}: {reason}")
    page = folder / PAGE
    if page.exists():
        lines.append(f"\nThe page is {page}.")
    elif len(records) or records.trials:
        lines.append(f"\nTo make a page: bittern report {folder} --html {page}")
    return "\n".join(lines)


class _Found(NamedTuple):
    """A protocol, and its file unless values of the file were changed."""

    protocol: Protocol
    path: Path | None


def _find(name: str, changes: Sequence[str], out: Path | None) -> tuple[_Found, Path]:
    """The protocol of that name or path, and the folder for its records.

    A changed protocol has its own folder by default, so that its records do not mix with others.
    """
    from bittern.experiments.protocol import Protocol
    from bittern.io.protocol_files import find_protocol

    path = find_protocol(name)
    protocol = Protocol.load(path, changes)
    ending = f"-{protocol.fingerprint[:8]}" if changes else ""
    folder = out or RESULTS / f"{path.stem}{ending}"
    return _Found(protocol, None if changes else path), folder


def _check_ready(
    name: str, protocol: Protocol, folder: Path, only: Sequence[str], root: Path | None
) -> None:
    """Stop before the first cell if the data or an extra is missing; finished ones need neither."""
    from bittern.experiments.cells import cells_of, select_cells
    from bittern.experiments.readiness import check_ready

    if (folder / "cells").exists():
        return
    wanted = {cell.method.label for cell in select_cells(cells_of(protocol), only)}
    table = protocol.to_dict()
    table["method"] = [one for one in table["method"] if one["label"] in wanted]
    check_ready(name, table, root)


def _run(
    found: _Found,
    folder: Path,
    **options: Any,
) -> Records:
    from bittern import experiments

    protocol = found.protocol
    with handle_interrupt(), LiveView(protocol.main_metric, protocol.search_metric) as live:
        return experiments.run(found.path or protocol, folder, watcher=live, **options)


def _finish(records: Records, folder: Path) -> None:
    echo(summary(records, folder))
    if records.failures:
        raise typer.Exit(1)


class LiveView:
    """The time left and the best so far at each length; plain lines without a terminal."""

    def __init__(self, metric: str, search_metric: str = "") -> None:
        from rich.console import Console

        self._metric, self._search_metric = metric, search_metric or metric
        self._kind = "cells"
        self._console = Console(stderr=True)
        self._values: dict[tuple[str, int | None], list[float]] = defaultdict(list)
        self._n_cells = self._n_done = 0
        self._live: Any = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def begin(self, cells: Sequence[Cell], n_known: int) -> None:
        """Say how much there is to do; trials first, if there are any, and then cells."""
        from bittern.experiments.running import kind_of

        self._stop()
        self._values.clear()
        self._n_cells, self._n_done, self._kind = len(cells), 0, kind_of(cells)
        if n_known:
            self._console.print(
                f"{n_known} {self._kind} are done, {len(cells)} are left.", style="dim"
            )
        if cells and self._console.is_terminal:
            self._start(len(cells))

    def tell(self, outcome: Finished | Failed) -> None:
        """Show the outcome of a cell."""
        from bittern.experiments import Trial
        from bittern.experiments.measure import Failed
        from bittern.experiments.search import point_text

        self._n_done += 1
        cell, label, metric = outcome.cell, outcome.cell.method.label, self._metric
        if isinstance(cell, Trial):
            label, metric = f"{label}, {point_text(cell.point)}:", self._search_metric
        if isinstance(outcome, Failed):
            self._print(f"{cell.name}: {outcome.reason}", "red")
        else:
            self._values[label, cell.n_bits].append(outcome.value)
            if self._live is None:
                self._print(f"{cell.name}: {metric} {outcome.value:.4f}", "dim")
        if self._live is not None:
            self._bar.update(self._task, completed=self._n_done)
            self._live.update(self._content(), refresh=True)

    def best_so_far(self) -> list[str]:
        """The best method at each length, with its mean over the runs so far."""
        leading: dict[int | None, tuple[float, str, int]] = {}
        for (method, n_bits), values in self._values.items():
            defined = [value for value in values if not math.isnan(value)]
            if defined:
                one = (sum(defined) / len(defined), method, len(values))
                leading[n_bits] = max(leading.get(n_bits, one), one)
        lines = []
        for n_bits, (mean, method, n_runs) in sorted(
            leading.items(), key=lambda item: (item[0] is not None, item[0] or 0)
        ):
            where = "without codes" if n_bits is None else f"{n_bits} bits"
            noun = "trial" if self._kind == "trials" else "run"
            runs = f"{n_runs} {noun}{'s' if n_runs > 1 else ''}"
            lines.append(f"best so far, {where}: {method} {mean:.4f} ({runs})")
        return lines

    def _print(self, sentence: str, style: str) -> None:
        line = f"{self._n_done}/{self._n_cells} {sentence}"
        self._console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _start(self, n_cells: int) -> None:
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn(self._kind),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task(self._kind, total=n_cells)
        self._live = Live(self._content(), console=self._console, transient=True, auto_refresh=True)
        self._live.start()

    def _content(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        return Group(self._bar, *(Text(line, style="dim") for line in self.best_so_far()))
