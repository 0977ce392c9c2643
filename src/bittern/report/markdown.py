"""The results as a Markdown section: tables, images, the summary in words, the command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan

from bittern.analysis import Analysis, analyse
from bittern.analysis.curves import Surface
from bittern.experiments.records import PROTOCOL, Records
from bittern.moved import renamed
from bittern.report.choices import CAPTION, choice_header, choice_rows
from bittern.report.results_table import (
    DIGITS,
    Entry,
    ResultsTable,
    results_table,
    second_table,
    task_notes,
    task_tables,
)
from bittern.report.sentences import in_words

DIFFERENT, TIED = "†", "≈"


@renamed(pictures="images")
def to_markdown(
    records: Records | Analysis,
    *,
    heading: str = "",
    level: int = 2,
    command: str = f"bittern run {PROTOCOL}",
    metric: str | None = None,
    images: Sequence[str] = (),
) -> str:
    """Title, what it reproduces and how it differs, tables, images, the summary, the command.

    Below the main table are the values under the best and worst order of tied items, the table of
    the second metric (unless ``metric`` names one), all tasks at each length, and the retrieval by
    hash tables, if the records have them.  ``heading`` replaces the protocol's title, at a
    ``level`` of 1 to 6; ``command`` makes these records; ``images`` are files to show.
    """
    analysis = analyse(records)
    protocol = analysis.protocol
    table = results_table(analysis, metric)
    parts = [
        f"{'#' * level} {markdown_text(heading or protocol.title)}",
        f"Reproduces: {markdown_text(protocol.reproduces)}" if protocol.reproduces else "",
        f"Differs: {markdown_text(protocol.differs)}" if protocol.differs else "",
        f"{markdown_text(table.caption)}.",
        _table(table),
        markdown_text(table.legend_line("Bold:", DIFFERENT, TIED)),
        *(f"![{markdown_text(protocol.title)}]({one})" for one in images),
        _ties(table),
        *_second(analysis, metric),
        *_tasks(analysis, metric),
        *_surfaces(analysis),
        _choices(analysis),
        markdown_text(in_words(analysis, metric)),
        _undefined(analysis),
        f"```bash\n{command}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_text(text: str) -> str:
    """Text on one line, with every special character escaped."""
    return re.sub(r"([\\`*_\[\]<>|#$~])", r"\\\1", re.sub(r"\s+", " ", text).strip())


def _table(table: ResultsTable) -> str:
    rows = [[markdown_text(m), *map(_cell, row)] for m, row in table.rows.items()]
    return _drawn(["method", *table.headings], rows)


def _second(analysis: Analysis, metric: str | None) -> list[str]:
    """Caption and table of the second metric."""
    table = second_table(analysis, metric)
    return [] if table is None else [f"{markdown_text(table.caption)}.", _table(table)]


def _tasks(analysis: Analysis, metric: str | None) -> list[str]:
    """All tasks at each length, by the main metric and the second one."""
    second = analysis.protocol.metrics[1:2] if metric is None else ()
    tables = task_tables(analysis, metric)
    tables += [one for name in second for one in task_tables(analysis, name, with_tests=False)]
    parts = []
    for table in tables:
        legend = table.legend_line("Bold:", DIFFERENT, TIED)
        parts += [f"{markdown_text(table.caption)}.", _table(table), markdown_text(legend)]
    return [*parts, *map(markdown_text, task_notes(analysis))]


def _ties(table: ResultsTable) -> str:
    """The values under the worst and the best order of tied items, if the order matters."""
    rows = {
        method: [None if entry is None else entry.summary.spread for entry in row]
        for method, row in table.rows.items()
    }
    if not any(one and one[0] < one[1] for row in rows.values() for one in row):
        return ""
    metric = markdown_text(table.metric)
    lines = [[markdown_text(method), *map(_reach, row)] for method, row in rows.items()]
    drawn = _drawn(["method", *table.headings], lines)
    return f"The same {metric} under the worst and the best order of tied items:\n\n{drawn}"


def _reach(spread: tuple[float, float] | None) -> str:
    if spread is None or isnan(spread[0]):
        return "–"
    return f"{spread[0]:.{DIGITS}f} to {spread[1]:.{DIGITS}f}"


def _surfaces(analysis: Analysis) -> list[str]:
    """F1 of hash tables, a table for each method and length that has them."""
    found = [
        (method, n_bits, surface)
        for method in analysis.methods
        for n_bits in analysis.lengths
        if (surface := analysis.surface(method, n_bits)) is not None
    ]
    return [_surface(markdown_text(f"{m}, {n_bits} bits"), one) for m, n_bits, one in found]


def _surface(whose: str, surface: Surface) -> str:
    rows = [
        [f"K = {k}", *("" if isnan(f) else f"{f:.{DIGITS}f}" for f in row)]
        for k, row in zip(surface.bits_per_table, surface.f1.tolist(), strict=True)
    ]
    heading = ["", *(f"L = {n}" for n in surface.n_tables)]
    return f"F1 of L tables of K bits, {whose}:\n\n{_drawn(heading, rows)}"


def _choices(analysis: Analysis) -> str:
    """What a search chose for each method and length."""
    if not analysis.searches:
        return ""
    rows = [[markdown_text(cell) for cell in row] for row in choice_rows(analysis)]
    drawn = _drawn([markdown_text(name) for name in choice_header(analysis)], rows)
    return f"{CAPTION}:\n\n{drawn}"


def _drawn(heading: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *("--:" for _ in heading[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heading, rule, *rows))


def _cell(entry: Entry | None) -> str:
    if entry is None or not entry.is_defined:
        return "–"
    value = f"**{entry.mean}**" if entry.is_best else entry.mean
    deviation = f" ± {entry.deviation}" if entry.deviation else ""
    marks = entry.marks(DIFFERENT, TIED)
    return f"{value}{deviation}{f' {marks}' if marks else ''}"


def _undefined(analysis: Analysis) -> str:
    """For each metric with undefined queries, their largest number."""
    worst = [
        max(analysis.summaries(metric), key=lambda one: one.undefined)
        for metric in analysis.protocol.metrics
    ]
    counts = [
        f"{one.metric} {one.undefined:,} of {one.n_queries:,} ({one.method})"
        for one in worst
        if one.undefined
    ]
    return markdown_text(f"Undefined, at most: {', '.join(counts)}.") if counts else ""
