"""The main table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bittern.experiments.records import Records
from bittern.report.grid import Entry, Grid, grid_of, metric_title, missing

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["aligned", "terminal_table", "to_text"]

BEST, DIFFERENT, TIED, NOTHING = "*", "†", "≈", "–"


def to_text(records: Records, metric: str | None = None) -> str:
    """The main table as plain text, with a legend: methods × lengths, mean ± deviation."""
    grid = grid_of(records, metric)
    rows = [["method", *grid.headings]]
    rows += [[method, *map(_cell, row)] for method, row in grid.rows.items()]
    rows[0][1:] = [f"{heading}  " for heading in rows[0][1:]]  # they end above the digits
    lines = aligned(rows)
    rule = "─" * max(map(len, lines))
    table = [caption(grid), "", lines[0], rule, *lines[1:], rule, legend(grid), missing(records)]
    return "\n".join(table).rstrip() + "\n"


def terminal_table(records: Records, metric: str | None = None) -> Table:
    """The same for a console that has bold and dim letters; the best are bold."""
    from rich.table import Table
    from rich.text import Text

    grid = grid_of(records, metric)
    table = Table(
        title=Text(caption(grid)),
        caption=Text(legend(grid)),
        title_justify="left",
        caption_justify="left",
    )
    for heading in ["method", *grid.headings]:
        table.add_column(heading)
    for method, row in grid.rows.items():
        table.add_row(Text(method), *(_styled(entry, Text) for entry in row))
    return table


def caption(grid: Grid) -> str:
    """What the table shows."""
    title = metric_title(grid.metric)
    return f"{title[0].upper()}{title[1:]}, {grid.runs()}"


def legend(grid: Grid) -> str:
    """What the marks mean, and what the tests lack."""
    return "\n".join(filter(None, [grid.legend(BEST, DIFFERENT, TIED), *grid.cautions]))


def _cell(entry: Entry | None) -> str:
    """A value between its marks; one that is not there leaves its place, so that digits align."""
    if entry is None or not entry.is_defined:
        return f" {NOTHING}  "
    value = f"{entry.mean} ± {entry.deviation}" if entry.deviation else entry.mean
    marks = (DIFFERENT if entry.is_different else "") + (TIED if entry.within_tie_spread else "")
    return f"{BEST if entry.is_best else ' '}{value}{marks:<2}"


def _styled(entry: Entry | None, text: type[Text]) -> Text:
    is_best = entry is not None and entry.is_best
    return text(_cell(entry), style="bold" if is_best else "")


def aligned(rows: list[list[str]], n_left: int = 1) -> list[str]:
    """The first columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
