"""The main table as LaTeX."""

from __future__ import annotations

import re
import unicodedata

from bittern.analysis import Analysis, analyse
from bittern.experiments.records import Records
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


def escaped(text: str) -> str:
    """Text escaped for LaTeX without packages; letters that it lacks become code points."""
    composed = unicodedata.normalize("NFC", re.sub(r"\s+", " ", text))
    return "".join(map(_letter, composed))


def _cell(entry: Entry | None) -> str:
    if entry is None or not entry.is_defined:
        return "--"
    deviation = rf" $\pm$ {entry.deviation}" if entry.deviation else ""
    value = rf"\textbf{{{entry.mean}}}" if entry.is_best else entry.mean
    marks = entry.marks(DIFFERENT, TIED)
    return f"{value}{deviation}" + (f"$^{{{marks}}}$" if marks else "")


LETTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
    "²": "$^2$",
    "³": "$^3$",
    "†": r"$\dagger$",
}
GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu mu nu xi pi rho sigma tau phi "
    "chi psi omega Gamma Delta Theta Lambda Pi Sigma Phi Psi Omega"
)
LATIN = "ss o O ae AE oe OE l L"
LETTERS |= dict(
    zip("αβγδεζηθκλμµνξπρστφχψωΓΔΘΛΠΣΦΨΩ", (rf"$\{n}$" for n in GREEK.split()), strict=True)
)
LETTERS |= dict(zip("ßøØæÆœŒłŁ", (rf"\{n}{{}}" for n in LATIN.split()), strict=True))
ACCENTS = dict(
    zip(
        "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327",
        "`'^~=u.\"rHvc",
        strict=True,
    )
)


def _letter(letter: str) -> str:
    if letter in LETTERS:
        return LETTERS[letter]
    if letter.isascii():
        return letter
    base, *marks = list(unicodedata.normalize("NFD", letter))
    if base.isascii() and len(marks) == 1 and marks[0] in ACCENTS:
        return rf"\{ACCENTS[marks[0]]}{{{base}}}"
    return f"U+{ord(letter):04X}"
