"""Markup that cannot be forged: every text is escaped unless it was made here."""

from __future__ import annotations

from html import escape

__all__ = ["Content", "Html", "fragment", "text"]

VOID = frozenset({"br", "col", "hr", "link", "meta"})  # HTML elements without an end


class Html(str):
    """Text that is markup already."""

    __slots__ = ()

    @staticmethod
    def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
        """An element; content that is not markup is escaped.

        ``class_`` and ``stroke_width`` are written ``class`` and ``stroke-width``.  An attribute
        that is None or False is left out, one that is True has no value.
        """
        opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
        if name in VOID:
            return Html(f"<{opening}>")
        return Html(f"<{opening}>{fragment(*content)}</{name}>")


Content = str | Html | None


def fragment(*content: Content) -> Html:
    """Pieces one after the other, each escaped unless it is markup; None is nothing."""
    return Html("".join(text(one) for one in content if one is not None))


def text(value: str) -> Html:
    """The value as markup."""
    return value if isinstance(value, Html) else Html(escape(value, quote=False))


def _attribute(key: str, value: str | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(shown)}"'
