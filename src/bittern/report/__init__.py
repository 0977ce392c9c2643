"""Results as images, tables, words and pages; nothing is computed here that a number depends on.

What is named here loads when first used: a figure alone needs no experiment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.report.csvfile import to_csv
    from bittern.report.differences import differences_to_markdown, differences_to_text
    from bittern.report.drawings import to_svg, write_figures
    from bittern.report.formats import REPORTS
    from bittern.report.latex import to_latex
    from bittern.report.markdown import to_markdown
    from bittern.report.page import page_of, write_page
    from bittern.report.text import to_text
    from bittern.report.words import in_words

__all__ = [
    "REPORTS",
    "differences_to_markdown",
    "differences_to_text",
    "in_words",
    "page_of",
    "to_csv",
    "to_latex",
    "to_markdown",
    "to_svg",
    "to_text",
    "write_figures",
    "write_page",
]

_HOMES = {
    "REPORTS": "formats",
    "differences_to_markdown": "differences",
    "differences_to_text": "differences",
    "in_words": "words",
    "page_of": "page",
    "to_csv": "csvfile",
    "to_latex": "latex",
    "to_markdown": "markdown",
    "to_svg": "drawings",
    "to_text": "text",
    "write_figures": "drawings",
    "write_page": "page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bittern.report' has no attribute {name!r}")
    return getattr(import_module(f"bittern.report.{_HOMES[name]}"), name)
