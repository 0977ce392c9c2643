"""Files of TRECVID topics, as NIST writes them: descriptions and the names of example images."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from bittern.errors import FileError
from bittern.io.files import existing_file

_MAX_TOPIC_BYTES = 1 << 24  # of a file of topics
_DECLARATION = re.compile(r"<![A-Za-z][^<>\[\]]*>")
_LONE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


@dataclass(frozen=True, slots=True)
class Topic:
    """A search task: its number without leading zeros, a description and example images."""

    number: str
    description: str
    examples: tuple[str, ...]  # paths or addresses as in the file


def read_topics(path: Path) -> list[Topic]:
    """The topics of a file, in its order.

    NIST's files are not always XML: a file may hold one ``videoTopic``, many inside
    ``videoTopics``, or several documents one after another, with comments and unescaped ``&``.  So
    we remove comments and declarations and put the rest inside one element.  We declare no
    entities, so that nothing outside the file is read and nothing expands.
    """
    text = _plain(path)
    try:
        tree = ElementTree.fromstring(f"<all>{text}</all>")
    except (ElementTree.ParseError, ValueError) as error:
        raise FileError(f"{path}: not a readable file of topics ({error}).") from error
    return [_topic(path, node) for node in _named(tree, "videotopic")]


def read_text(path: Path, most: int | None = None, what: str = "") -> str:
    """The text of a file in UTF-8 or ISO 8859-1, of at most ``most`` bytes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error
    if most is not None and len(content) > most:
        raise FileError(f"{path}: has {len(content):,} bytes, too many for {what}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _plain(path: Path) -> str:
    """The elements of a file, without comments and declarations."""
    text = read_text(existing_file(path), _MAX_TOPIC_BYTES, "topics")
    text = _without(path, text, "<!--", "-->")
    text = _without(path, text, "<?", "?>")
    text = _DECLARATION.sub(" ", text)
    if "<!" in text:
        raise FileError(f"{path}: declares entities or elements, which is not allowed in topics.")
    return _LONE_AMPERSAND.sub("&amp;", text)


def _without(path: Path, text: str, start: str, stop: str) -> str:
    """``text`` without the passages from ``start`` to ``stop``."""
    parts, at = [], 0
    while (begin := text.find(start, at)) >= 0:
        end = text.find(stop, begin + len(start))
        if end < 0:
            raise FileError(f"{path}: opens {start} but never closes it; it may be truncated.")
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
    """Elements below ``node`` with this name, upper or lower case."""
    return (child for child in node.iter() if str(child.tag).lower() == name)


def _attribute(node: ElementTree.Element, name: str) -> str:
    found = (value for key, value in node.attrib.items() if key.lower() == name)
    return next(found, "").strip()
