"""Reports in letters, by the names of their formats."""

from __future__ import annotations

from collections.abc import Callable

from bittern.experiments.records import Records
from bittern.registry import Registry
from bittern.report.csvfile import to_csv
from bittern.report.latex import to_latex
from bittern.report.markdown import to_markdown
from bittern.report.text import to_text
from bittern.report.words import in_words

__all__ = ["REPORTS"]

REPORTS: Registry[Callable[[Records], str]] = Registry(
    "report format",
    {
        "text": to_text,
        "words": in_words,
        "markdown": to_markdown,
        "latex": to_latex,
        "csv": to_csv,
    },
)
