"""The results as a section of a page: a table that GitHub draws, and what one must know of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan

from bittern.analysis import summarise
from bittern.analysis.averages import Surface, mean_surface
from bittern.experiments.records import PROTOCOL, Records
from bittern.report.grid import DIGITS, Entry, Grid, grid_of
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
    images: Sequence[str] = (),
) -> str:
    """Title, what it reproduces and how it differs, tables, images, the summary, the command.

    Beside the main table stand what the order of tied items could make of it, and what hash tables
    retrieve, where records have them.  ``heading`` stands for the protocol's title, at a ``level``
    of 1 to 6; ``command`` is what makes these records; ``images`` are files to show.
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
        *(f"![{markdown_text(protocol.title)}]({one})" for one in images),
        _ties(grid),
        *_surfaces(records),
        markdown_text(in_words(records, metric)),
        _undefined(records),
        f"```\n{command}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_text(text: str) -> str:
    """Text whose every letter stands for itself, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#$~])", r"\\\1", re.sub(r"\s+", " ", text).strip())


def _table(grid: Grid) -> str:
    rows = [[markdown_text(m), *map(_cell, row)] for m, row in grid.rows.items()]
    return _drawn(["method", *grid.headings], rows)


def _ties(grid: Grid) -> str:
    """The values under the worst and the best order of tied items, where that has an effect."""
    rows = {
        method: [None if entry is None else entry.summary.spread for entry in row]
        for method, row in grid.rows.items()
    }
    if not any(one and one[0] < one[1] for row in rows.values() for one in row):
        return ""
    said = f"The same {markdown_text(grid.metric)} under the worst and the best order of tied items"
    lines = [[markdown_text(method), *map(_reach, row)] for method, row in rows.items()]
    return f"{said}:\n\n{_drawn(['method', *grid.headings], lines)}"


def _reach(spread: tuple[float, float] | None) -> str:
    if spread is None or isnan(spread[0]):
        return "–"
    return f"{spread[0]:.{DIGITS}f} to {spread[1]:.{DIGITS}f}"


def _surfaces(records: Records) -> list[str]:
    """F of hash tables, a table for each method and length that has them."""
    found = [
        (method, n_bits, surface)
        for method in records.methods
        for n_bits in records.lengths
        if (surface := mean_surface(records, method, n_bits)) is not None
    ]
    return [_surface(markdown_text(f"{m}, {n_bits} bits"), one) for m, n_bits, one in found]


def _surface(whose: str, surface: Surface) -> str:
    rows = [
        [f"K = {k}", *("" if isnan(f) else f"{f:.{DIGITS}f}" for f in row)]
        for k, row in zip(surface.bits_per_table, surface.f1.tolist(), strict=True)
    ]
    heading = ["", *(f"L = {n}" for n in surface.n_tables)]
    return f"F1 of L tables of K bits, {whose}:\n\n{_drawn(heading, rows)}"


def _drawn(heading: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *("--:" for _ in heading[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heading, rule, *rows))


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
