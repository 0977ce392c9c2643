"""Tables of measurements: print them, check their bounds, write them into a Markdown file."""

from __future__ import annotations

import datetime
import os
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path

import bittern


@dataclass(frozen=True)
class Target:
    """A measured value and the bound it must meet."""

    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the value meets its bound; True without a bound."""
        low = self.at_least is None or self.value >= self.at_least
        return low and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        bound = "" if self.at_least is None else f" (≥ {self.at_least:.3g})"
        bound += "" if self.at_most is None else f" (≤ {self.at_most:.3g})"
        return f"{self.value:.3g}{bound}{'' if self.holds else ' MISSED'}"


@dataclass
class Section:
    """A titled table."""

    title: str
    header: tuple[str, ...]
    cells: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    holds: bool = True

    def row(self, *values: object) -> None:
        """Add a row; a missed target fails the section."""
        self.holds &= all(v.holds for v in values if isinstance(v, Target))
        self.cells.append([f"{v:.3g}" if isinstance(v, float) else str(v) for v in values])

    def note(self, sentence: str) -> None:
        """Add a sentence below the table."""
        self.notes.append(sentence)

    def text(self) -> str:
        """The section in Markdown."""
        rows = [self.header, ["---"] * len(self.header), *self.cells]
        table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        return "\n\n".join([f"### {self.title}", table, *self.notes])

    @staticmethod
    def write(path: Path, name: str, command: str, sections: list[Section]) -> None:
        """Replace what stands between this benchmark's two marks in a file."""
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        body = "\n\n".join(section.text() for section in sections)
        block = f"{begin}\n\n`{command}`; {_machine()}.\n\n{body}\n\n{end}"
        text = path.read_text()
        if begin not in text:
            raise SystemExit(f"{path} has no mark {begin!r}.")
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        path.write_text(pattern.sub(lambda _: block, text))


def _machine() -> str:
    """The date and the machine of the measurement."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        model = found[1] if found else model
    today = datetime.datetime.now(datetime.UTC).date()
    return f"{today}, {os.cpu_count()} cores of {model}, bittern {bittern.__version__}"
