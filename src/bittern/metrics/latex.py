"""Text and tables in LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence


def tabular(header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """A tabular that needs the package booktabs; cells are LaTeX, the header is plain text.

    The first ``n_left`` columns are aligned left, the others right.
    """
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{'l' * n_left}{'r' * (len(header) - n_left)}}}",
            r"\toprule",
            " & ".join(map(escaped, header)) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def escaped(text: str) -> str:
    """Text escaped for LaTeX without packages; letters that it lacks become code points."""
    composed = unicodedata.normalize("NFC", re.sub(r"\s+", " ", text))
    return "".join(map(_letter, composed))


def _letter(letter: str) -> str:
    if letter in LETTERS:
        return LETTERS[letter]
    if letter.isascii():
        return letter
    base, *marks = list(unicodedata.normalize("NFD", letter))
    if base.isascii() and len(marks) == 1 and marks[0] in ACCENTS:
        return rf"\{ACCENTS[marks[0]]}{{{base}}}"
    return f"U+{ord(letter):04X}"


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
