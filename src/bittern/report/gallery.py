"""The gallery: queries with their nearest items by each method, items at one distance grouped."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bittern.analysis import Analysis
from bittern.experiments.paradigm import Task
from bittern.experiments.record import Example, Record
from bittern.experiments.running import TEXTS
from bittern.io.files import reading

FOLDERS = ("images", "pictures")  # the second in experiments of version 0.1
IMAGE = "image"  # the kind of items that are shown as images
NO_WORDS = "(no words)"
SMALL = 40  # pixels; smaller images are enlarged without blur
PNG_WIDTH = slice(16, 20)  # bytes


@dataclass(frozen=True, slots=True)
class Tie:
    """Items at one distance, each with whether it is relevant, and its text if texts are found."""

    distance: str
    items: list[tuple[int, bool, str]]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query, and each method's nearest items in groups of ties; ``text`` if it is a text."""

    query: int
    label: str
    ties: list[tuple[str, list[Tie]]]
    text: str = ""


@dataclass(frozen=True, slots=True)
class GalleryPart:
    """The queries of one code length, and of one task if there are several."""

    n_bits: int | None
    run: int
    rows: list[QueryRow]
    is_open: bool
    task: str = ""


def gallery(analysis: Analysis) -> list[GalleryPart]:
    """A part per code length, the middle one open; empty without images.

    If there are several tasks, a part for each main one, at the middle length.
    """
    if not _folders(analysis):
        return []
    if not analysis.tasks:
        return _parts(analysis, _Sides())
    texts = _texts(analysis)
    return [
        replace(part, task=task.name)
        for task, one in analysis.main_tasks.items()
        if texts or IMAGE == task.query == task.found
        for part in _parts(one, _sides(task, texts))
        if part.is_open
    ]


@dataclass(frozen=True, slots=True)
class _Sides:
    """The texts of queries and of items by position; None for those that are shown as images."""

    query: dict[int, str] | None = None
    found: dict[int, str] | None = None


def _sides(task: Task, texts: dict[int, str]) -> _Sides:
    query, found = (None if kind == IMAGE else texts for kind in (task.query, task.found))
    return _Sides(query, found)


def _text(position: int, texts: dict[int, str] | None) -> str:
    """What to show instead of an image; empty if it is shown as an image."""
    return "" if texts is None else texts.get(position) or NO_WORDS


def _parts(analysis: Analysis, sides: _Sides) -> list[GalleryPart]:
    shown = _with_examples(analysis)
    if not shown:
        return []
    lengths = [n for n in analysis.columns if any(r.n_bits == n for r in shown)] or [None]
    middle = lengths[len(lengths) // 2 - (len(lengths) % 2 == 0)]
    return [_part(shown, n_bits, n_bits == middle, sides) for n_bits in lengths]


def image_rules(parts: Sequence[GalleryPart], analysis: Analysis) -> str:
    """A style rule per image, so that the page contains each image once."""
    folders = _folders(analysis)
    rows = [row for part in parts for row in part.rows]
    queries = {row.query for row in rows if not row.text}
    ties = [tie for row in rows for _, listed in row.ties for tie in listed]
    found = {position for tie in ties for position, _, text in tie.items if not text}
    return "".join(_rule(position, folders) for position in sorted(queries | found))


def _texts(analysis: Analysis) -> dict[int, str]:
    """The texts of items by position; empty if the experiment has none."""
    paths = [folder / TEXTS for folder in _folders(analysis)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return {}
    with reading(path, "JSON file"):
        known = json.loads(path.read_text(encoding="utf-8"))
        return {int(position): str(text) for position, text in known.items()}


def _folders(analysis: Analysis) -> list[Path]:
    place = analysis.records.folder
    return [] if place is None else [place / name for name in FOLDERS if (place / name).is_dir()]


def _rule(position: int, folders: Iterable[Path]) -> str:
    paths = [folder / f"{position}.png" for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return ""
    content = path.read_bytes()
    address = "data:image/png;base64," + base64.b64encode(content).decode()
    is_small = int.from_bytes(content[PNG_WIDTH]) < SMALL
    return (
        f".p{position}{{background-image:url({address})"
        f"{';image-rendering:pixelated' if is_small else ''}}}\n"
    )


def _with_examples(analysis: Analysis) -> list[Record]:
    """The first record of each method and length that has examples."""
    found: dict[tuple[str, int | None], Record] = {}
    for record in analysis.records:
        if record.examples:
            found.setdefault((record.method, record.n_bits), record)
    return list(found.values())


def _part(
    records: Sequence[Record], n_bits: int | None, is_open: bool, sides: _Sides
) -> GalleryPart:
    mine = [record for record in records if record.n_bits in (n_bits, None)]
    queries = dict.fromkeys(example.query for r in mine for example in r.examples)
    run = min(record.run for record in mine)
    return GalleryPart(n_bits, run, [_row(mine, query, sides) for query in queries], is_open)


def _row(records: Sequence[Record], query: int, sides: _Sides) -> QueryRow:
    ties = [
        (record.method, _ties(example, sides.found))
        for record in records
        for example in record.examples
        if example.query == query
    ]
    return QueryRow(query, _label(records, query), ties, _text(query, sides.query))


def _label(records: Iterable[Record], query: int) -> str:
    for record in records:
        if record.query_labels is not None and query in record.query_positions:
            return f", class {record.query_labels[record.query_positions.index(query)]}"
    return ""


def _ties(example: Example, texts: dict[int, str] | None) -> list[Tie]:
    found = zip(example.items, example.distances, example.relevant, strict=True)
    return [
        Tie(_distance(distance), [(p, is_relevant, _text(p, texts)) for p, _, is_relevant in group])
        for distance, group in itertools.groupby(found, key=lambda one: one[1])
    ]


def _distance(distance: float) -> str:
    return f"{distance:g}" if float(distance).is_integer() else f"{distance:.3g}"
