"""NIST's topics for video search: XML as published, which is not always XML.

A file may hold one ``videoTopic``, many inside ``videoTopics``, or many documents one after the
other with their declarations; comments may hold anything, and ``&`` may stand unescaped.  So
comments and declarations are taken out, the rest is put inside one element, and no entity is ever
declared: nothing outside the file is read, and nothing grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from bittern.errors import FileError
from bittern.io.files import existing_file

__all__ = ["Topic", "read_topics"]

_LARGEST = 1 << 24  # octets of a file of topics
_DECLARATION = re.compile(r"<![A-Za-z][^<>\[\]]*>")
_LONE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


@dataclass(frozen=True, slots=True)
class Topic:
    """What is looked for: its number without leading zeros, in words, and by images."""

    number: str
    description: str
    examples: tuple[str, ...]  # paths or addresses, as the file has them


def read_topics(path: Path) -> list[Topic]:
    """The topics of a file, in its order; a file without any gives none."""
    text = _plain(path)
    try:
        tree = ElementTree.fromstring(f"<all>{text}</all>")
    except (ElementTree.ParseError, ValueError) as error:
        raise FileError(f"{path}: not a readable file of topics ({error}).") from error
    return [_topic(path, node) for node in _named(tree, "videotopic")]


def _plain(path: Path) -> str:
    """The elements of a file alone."""
    try:
        content = existing_file(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error
    if len(content) > _LARGEST:
        raise FileError(f"{path}: has {len(content):,} bytes, too many for topics.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    text = _without(path, text, "<!--", "-->")
    text = _without(path, text, "<?", "?>")
    text = _DECLARATION.sub(" ", text)
    if "<!" in text:
        raise FileError(f"{path}: declares entities or elements, which topics need not.")
    return _LONE_AMPERSAND.sub("&amp;", text)


def _without(path: Path, text: str, start: str, stop: str) -> str:
    """``text`` without what stands between ``start`` and ``stop``."""
    parts, at = [], 0
    while (begin := text.find(start, at)) >= 0:
        end = text.find(stop, begin + len(start))
        if end < 0:
            raise FileError(f"{path}: opens {start} and never closes it; it may be cut short.")
        parts.append(text[at:begin])
        at = end + len(stop)
    return "".join([*parts, text[at:]])


def _topic(path: Path, node: ElementTree.Element) -> Topic:
    number = _attribute(node, "num").lstrip("0")
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise FileError(f"{path}: a topic's num must be a number, got {number[:20]!r}.")
    texts = [
        _attribute(child, "text") or child.text or "" for child in _named(node, "textdescription")
    ]
    if not any(text.strip() for text in texts):
        raise FileError(f"{path}: topic {number} has no textDescription.")
    sources = [_attribute(child, "src") for child in _named(node, "imageexample")]
    examples = tuple(source for source in sources if source)
    return Topic(number, " ".join(" ".join(texts).split()), examples)


def _named(node: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """Elements below ``node`` of this name, in whatever case."""
    return (child for child in node.iter() if str(child.tag).lower() == name)


def _attribute(node: ElementTree.Element, name: str) -> str:
    found = (value for key, value in node.attrib.items() if key.lower() == name)
    return next(found, "").strip()
