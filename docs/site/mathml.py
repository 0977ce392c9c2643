"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re
from typing import Any

from latex2mathml.converter import convert


def visit_inline(self: Any, node: Any) -> None:
    """Write a formula inside a line; the node has no children to visit."""
    self.body.append(to_mathml(node.astext(), "inline"))
    raise _skip()


def visit_display(self: Any, node: Any) -> None:
    """Write a formula in a line of its own, which scrolls if it is wider than the page."""
    self.body.append(f'<div class="formula">{to_mathml(node.astext(), "block")}</div>')
    raise _skip()


def to_mathml(latex: str, display: str) -> str:
    """The MathML of a formula; an unknown command is an error that names the formula."""
    plain = re.sub(r"\\text\{[^}]*\}", lambda text: text[0].replace(r"\_", "_"), latex)
    found = convert(plain, display=display)
    if "\\" in found.replace("<mo>\\</mo>", "").replace("<mi>\\</mi>", ""):
        raise ValueError(f"a command of this formula is not understood: {latex}")
    return found


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()
