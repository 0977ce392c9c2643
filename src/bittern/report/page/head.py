"""The top of the page: what was done, what it reproduces, what was found, and the contents."""

from __future__ import annotations

from collections.abc import Sequence

from bittern.report.markup import Html, fragment
from bittern.report.page.honesty import leak_warning
from bittern.report.page.view import View
from bittern.report.words import sentences

__all__ = ["contents", "heading"]


def heading(view: View) -> Html:
    """The title, what the protocol says of itself, any leak, and the summary in words."""
    protocol = view.records.protocol
    said = {
        "Reproduces": protocol.reproduces,
        "Differs": protocol.differs,
        "Takes": protocol.takes,
    }
    facts = [
        fragment(Html.tag("dt", name), Html.tag("dd", words))
        for name, words in said.items()
        if words
    ]
    return Html.tag(
        "header",
        Html.tag("h1", protocol.title),
        Html.tag("dl", *facts) if facts else None,
        leak_warning(view),
        _summary(view),
    )


def contents(sections: Sequence[tuple[str, str]]) -> Html:
    """Links to the sections."""
    links = [Html.tag("li", Html.tag("a", name, href=f"#{anchor}")) for anchor, name in sections]
    return Html.tag("nav", Html.tag("ul", *links), aria_label="Contents")


def _summary(view: View) -> Html:
    told = sentences(view.records)
    return Html.tag("ul", *(Html.tag("li", one) for one in told), class_="summary")
