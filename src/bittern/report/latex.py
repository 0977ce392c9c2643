"""The main table as LaTeX."""

from __future__ import annotations

import re
import unicodedata

from bittern.analysis import Analysis, analyse
from bittern.experiments.records import Records
from bittern.report.results_table import Entry, missing, results_table

DIFFERENT, TIED = r"\dagger", r"\approx"


def to_latex(records: Records | Analysis, metric: str | None = None) -> str:
    """A LaTeX table that needs no package: best values bold, marks raised, a caption."""
    analysis = analyse(records)
    table = results_table(analysis, metric)
    heading = " & ".join(map(escaped, ["method", *table.headings]))
    rows = [
        " & ".join([escaped(method), *map(_cell, row)]) + r" \\"
        for method, row in table.rows.items()
    ]
    legend = table.legend_line("Bold:", "†", "≈")
    parts = (f"{analysis.protocol.title}. {table.caption}.", legend, missing(analysis))
    caption = escaped(" ".join(filter(None, parts)))
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
    "∞": r"$\infty$",
    "²": "$^2$",
    "³": "$^3$",
    "†": r"$\dagger$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\epsilon$",
    "ζ": r"$\zeta$",
    "η": r"$\eta$",
    "θ": r"$\theta$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "µ": r"$\mu$",
    "ν": r"$\nu$",
    "ξ": r"$\xi$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "φ": r"$\phi$",
    "χ": r"$\chi$",
    "ψ": r"$\psi$",
    "ω": r"$\omega$",
    "Γ": r"$\Gamma$",
    "Δ": r"$\Delta$",
    "Θ": r"$\Theta$",
    "Λ": r"$\Lambda$",
    "Π": r"$\Pi$",
    "Σ": r"$\Sigma$",
    "Φ": r"$\Phi$",
    "Ψ": r"$\Psi$",
    "Ω": r"$\Omega$",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
}
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
