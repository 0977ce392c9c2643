"""The results as a section of a page: a table that GitHub draws, and what one must know of it."""

from __future__ import annotations

import re

from bittern.experiments.records import PROTOCOL, Records
from bittern.experiments.statistics import summarise
from bittern.report.grid import Entry, Grid, grid_of
from bittern.report.text import caption
from bittern.report.words import in_words

__all__ = ["markdown_text", "to_markdown"]

DIFFERENT, TIED = "†", "≈"


def to_markdown(
    records: Records,
    *,
    heading: str = "",
    level: int = 2,
    command: str = f"bittern run {PROTOCOL}",
    metric: str | None = None,
) -> str:
    """Title, what it reproduces and how it differs, the main table, the summary, the command.

    ``heading`` stands for the protocol's title, at a ``level`` of 1 to 6; ``command`` is what
    makes these records.
    """
    protocol = records.protocol
    grid = grid_of(records, metric)
    parts = [
        f"{'#' * level} {markdown_text(heading or protocol.title)}",
        f"Reproduces: {markdown_text(protocol.reproduces)}" if protocol.reproduces else "",
        f"Differs: {markdown_text(protocol.differs)}" if protocol.differs else "",
        f"{markdown_text(caption(grid))}.",
        _table(grid),
        markdown_text(grid.legend("Bold:", DIFFERENT, TIED)),
        markdown_text(in_words(records, metric)),
        _undefined(records),
        f"```\n{command}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_text(text: str) -> str:
    """Text whose every letter stands for itself, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#$~])", r"\\\1", re.sub(r"\s+", " ", text).strip())


def _table(grid: Grid) -> str:
    lines = [
        _line(["method", *grid.headings]),
        _line(["---", *("--:" for _ in grid.columns)]),
        *(_line([markdown_text(m), *map(_cell, row)]) for m, row in grid.rows.items()),
    ]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(entry: Entry | None) -> str:
    if entry is None or not entry.is_defined:
        return "–"
    value = f"**{entry.mean}**" if entry.is_best else entry.mean
    deviation = f" ± {entry.deviation}" if entry.deviation else ""
    marks = (DIFFERENT if entry.is_different else "") + (TIED if entry.within_tie_spread else "")
    return f"{value}{deviation}{f' {marks}' if marks else ''}"


def _undefined(records: Records) -> str:
    """How many queries have no value, metric by metric, where any has none."""
    worst = [
        max(summarise(records, metric), key=lambda one: one.undefined)
        for metric in records.protocol.metrics
    ]
    told = [
        f"{one.metric} {one.undefined:,} of {one.n_queries:,} ({one.method})"
        for one in worst
        if one.undefined
    ]
    return markdown_text(f"Undefined, at most: {', '.join(told)}.") if told else ""
