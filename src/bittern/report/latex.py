"""The main table as LaTeX."""

from __future__ import annotations

from bittern.analysis import Analysis, analyse
from bittern.experiments.records import Records
from bittern.metrics.latex import escaped
from bittern.report.results_table import (
    Entry,
    ResultsTable,
    missing,
    results_table,
    stored_note,
    task_notes,
    task_tables,
)

DIFFERENT, TIED = r"\dagger", r"\approx"


def to_latex(records: Records | Analysis, metric: str | None = None) -> str:
    """A LaTeX table that needs no package: best values bold, marks raised, a caption.

    A table of all tasks at each length follows, if the paradigm has several.
    """
    analysis = analyse(records)
    tables = [results_table(analysis, metric), *task_tables(analysis, metric)]
    return "\n".join(_drawn(analysis, table) for table in tables)


def _drawn(analysis: Analysis, table: ResultsTable) -> str:
    heading = " & ".join(map(escaped, ["method", *table.headings]))
    rows = [
        " & ".join([escaped(method), *map(_cell, row)]) + r" \\"
        for method, row in table.rows.items()
    ]
    legend = table.legend_line("Bold:", "†", "≈")
    title = f"{analysis.protocol.title}. {table.caption}."
    notes = [*(task_notes(analysis) if table.tasks else ()), stored_note(analysis)]
    caption = escaped(" ".join(filter(None, (title, legend, *notes, missing(analysis)))))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\hline",
            rf"{heading} \\",
            r"\hline",
            *rows,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _cell(entry: Entry | None) -> str:
    if entry is None or not entry.is_defined:
        return "--"
    deviation = rf" $\pm$ {entry.deviation}" if entry.deviation else ""
    value = rf"\textbf{{{entry.mean}}}" if entry.is_best else entry.mean
    marks = entry.marks(DIFFERENT, TIED)
    return f"{value}{deviation}" + (f"$^{{{marks}}}$" if marks else "")
