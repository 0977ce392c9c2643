"""Citations such as ``[Moran-2016]`` as links to the list of references, made from the .bib."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEY = r"[A-Za-z]+(?:-[A-Za-z]+)*-[0-9]{4}[a-z]?"
CITED = re.compile(rf"(?<!\[)\\?\[({KEY})\\?\](?!\()")
ENTRY = re.compile(r"^@(\w+)\{([^,]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?$", re.MULTILINE | re.DOTALL)
VENUES = ("journal", "booktitle", "howpublished", "school", "publisher", "institution", "note")
ACCENTS = {"'": "\u0301", '"': "\u0308", "~": "\u0303", "v ": "\u030c"}  # those that occur


def link_in_markdown(text: str, keys: set[str]) -> str:
    """The text with a link for each citation of a known key, outside code."""
    return outside_code(text, lambda part: _replaced(part, keys, r"[\[{0}\]](#{1})"))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with a change made wherever it is not code."""
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


def link_in_docstring(keys: set[str]) -> Any:
    """What Sphinx calls for each docstring, to change its lines in place."""

    def change(app: Any, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
        lines[:] = [_replaced(line, keys, ":ref:`[{0}] <{1}>`") for line in lines]

    return change


def read_entries(bibliography: str) -> dict[str, dict[str, str]]:
    """The fields of each entry, by key."""
    return {
        key: {"type": kind} | {name: _plain(value) for name, value in FIELD.findall(body)}
        for kind, key, body in ENTRY.findall(bibliography)
    }


def references_page(bibliography: str) -> str:
    """The page that lists every reference, with a target for its key."""
    lines = ["# References\n"]
    for key, entry in read_entries(bibliography).items():
        lines.append(f"({key.lower()})=\n**[{key}]** {_sentence(entry)}\n")
    return "\n".join(lines)


def setup(app: Any) -> dict[str, bool]:
    """Link the citations of docstrings."""
    keys = set(read_entries(Path(app.srcdir, "references.bib").read_text()))
    app.connect("autodoc-process-docstring", link_in_docstring(keys))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _replaced(text: str, keys: set[str], form: str) -> str:
    def link(match: re.Match[str]) -> str:
        key = match[1]
        return form.format(key, key.lower()) if key in keys else match[0]

    return CITED.sub(link, text)


def _sentence(entry: dict[str, str]) -> str:
    authors = " and ".join(_in_order(name) for name in re.split(r"\s+and\s+", entry["author"]))
    parts = [authors, f"*{entry['title']}*"]
    parts += [entry[venue] for venue in VENUES if venue in entry][:1]
    if "volume" in entry:
        parts.append(f"volume {entry['volume']}")
    if "pages" in entry:
        parts.append(f"pages {entry['pages']}")
    found = ", ".join([*parts, entry["year"]]) + "."
    return f"{found} DOI {entry['doi']}." if "doi" in entry else found


def _in_order(name: str) -> str:
    """'Ada Lovelace' for 'Lovelace, Ada'."""
    last, comma, first = name.partition(", ")
    return f"{first} {last}" if comma else last


def _plain(value: str) -> str:
    """A field without TeX's braces and accents."""
    accented = re.sub(
        r"""\{\\(['"~]|v )(\w)\}""", lambda m: m[2] + ACCENTS[m[1]], " ".join(value.split())
    )
    return re.sub(r"[{}]", "", accented).replace("--", "–").replace("\\&", "&").replace("~", " ")
