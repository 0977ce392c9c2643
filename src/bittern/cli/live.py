"""What an experiment looks like while it goes on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bittern.experiments import Cell
from bittern.experiments.processes import Failed, Finished

__all__ = ["LiveView"]


class LiveView:
    """A bar with the time left, and the best so far at each length; plain lines elsewhere."""

    def __init__(self, metric: str) -> None:
        from rich.console import Console

        self._metric = metric
        self._console = Console(stderr=True)
        self._values: dict[tuple[str, int | None], list[float]] = defaultdict(list)
        self._n_cells = self._n_done = 0
        self._live: Any = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, cells: Sequence[Cell], n_known: int) -> None:
        """Say how much there is to do."""
        self._n_cells = len(cells)
        if n_known:
            self._console.print(f"{n_known} cells are known, {len(cells)} to measure.", style="dim")
        if cells and self._console.is_terminal:
            self._start(len(cells))

    def tell(self, outcome: Finished | Failed) -> None:
        """Show that a cell has ended."""
        self._n_done += 1
        if isinstance(outcome, Failed):
            self._say(f"{outcome.cell.name}: {outcome.reason}", "red")
        else:
            cell = outcome.cell
            self._values[cell.method.label, cell.n_bits].append(outcome.value)
            if self._live is None:
                self._say(f"{cell.name}: {self._metric} {outcome.value:.4f}", "dim")
        if self._live is not None:
            self._bar.update(self._task, completed=self._n_done)
            self._live.update(self._shown(), refresh=True)

    def _say(self, sentence: str, style: str) -> None:
        told = f"{self._n_done}/{self._n_cells} {sentence}"
        self._console.print(told, style=style, markup=False, highlight=False, soft_wrap=True)

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
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task("cells", total=n_cells)
        self._live = Live(self._shown(), console=self._console, transient=True, auto_refresh=True)
        self._live.start()

    def _shown(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        lines = [Text(line, style="dim") for line in self.best_so_far()]
        return Group(self._bar, *lines)

    def best_so_far(self) -> list[str]:
        """The method that leads at each length, with its mean over the runs so far."""
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
            runs = f"{n_runs} run{'s' if n_runs > 1 else ''}"
            lines.append(f"best so far, {where}: {method} {mean:.4f} ({runs})")
        return lines
