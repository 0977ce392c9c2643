"""The main table as plain text, and for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bittern.analysis import Analysis, analyse
from bittern.experiments.records import Records
from bittern.report.results_table import Entry, ResultsTable, missing, results_table

if TYPE_CHECKING:
    from rich.table import Table

BEST, DIFFERENT, TIED, NOTHING = "*", "†", "≈", "–"


def to_text(records: Records | Analysis, metric: str | None = None) -> str:
    """The main table as plain text, with a legend: methods × lengths, mean ± deviation."""
    analysis = analyse(records)
    table = results_table(analysis, metric)
    rows = [["method", *table.headings]]
    rows += [[method, *map(_cell, row)] for method, row in table.rows.items()]
    rows[0][1:] = [f"{heading}  " for heading in rows[0][1:]]  # headings end above the digits
    lines = aligned(rows)
    rule = "─" * max(map(len, lines))
    parts = [table.caption, "", lines[0], rule, *lines[1:], rule, _legend(table), missing(analysis)]
    return "\n".join(parts).rstrip() + "\n"


def terminal_table(records: Records | Analysis, metric: str | None = None) -> Table:
    """The same for a terminal, the best in bold."""
    from rich.table import Table
    from rich.text import Text

    table = results_table(records, metric)
    shown = Table(
        title=Text(table.caption),
        caption=Text(_legend(table)),
        title_justify="left",
        caption_justify="left",
    )
    for heading in ["method", *table.headings]:
        shown.add_column(heading)
    for method, row in table.rows.items():
        cells = [Text(_cell(e), style="bold" if e and e.is_best else "") for e in row]
        shown.add_row(Text(method), *cells)
    return shown


def aligned(rows: list[list[str]], n_left: int = 1) -> list[str]:
    """The first ``n_left`` columns aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _legend(table: ResultsTable) -> str:
    lines = [table.legend_line(BEST, DIFFERENT, TIED), *table.cautions]
    return "\n".join(filter(None, lines))


def _cell(entry: Entry | None) -> str:
    """A value between its marks; absent marks leave a space, so that digits align."""
    if entry is None or not entry.is_defined:
        return f" {NOTHING}  "
    value = f"{entry.mean} ± {entry.deviation}" if entry.deviation else entry.mean
    return f"{BEST if entry.is_best else ' '}{value}{entry.marks(DIFFERENT, TIED):<2}"
