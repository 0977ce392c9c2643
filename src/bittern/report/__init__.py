"""Analysis to text, Markdown, LaTeX, CSV, one self-contained page, and figures.

Nothing is computed here: every number comes from :mod:`bittern.analysis`.  Every function takes
an ``Analysis``, or ``Records``, which it analyses.  Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.report.differences import differences_to_markdown, differences_to_text
    from bittern.report.figures import to_svg, write_figures
    from bittern.report.formats import REPORTS, to_csv
    from bittern.report.latex import to_latex
    from bittern.report.markdown import to_markdown
    from bittern.report.page import page_of, write_page
    from bittern.report.sentences import in_words
    from bittern.report.text import to_text

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
    "in_words": "sentences",
    "page_of": "page",
    "to_csv": "formats",
    "to_latex": "latex",
    "to_markdown": "markdown",
    "to_svg": "figures",
    "to_text": "text",
    "write_figures": "figures",
    "write_page": "page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bittern.report' has no attribute {name!r}")
    return getattr(import_module(f"bittern.report.{_HOMES[name]}"), name)
