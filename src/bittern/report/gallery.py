"""The gallery: queries with their nearest items by each method, items at one distance grouped."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bittern.analysis import Analysis
from bittern.experiments.record import Example, Record

FOLDERS = ("images", "pictures")  # the second in experiments of version 0.1
SMALL = 40  # pixels; smaller images are enlarged without blur
PNG_WIDTH = slice(16, 20)  # bytes


@dataclass(frozen=True, slots=True)
class Tie:
    """Items at one distance, each with whether it is relevant."""

    distance: str
    items: list[tuple[int, bool]]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query, and each method's nearest items in groups of ties."""

    query: int
    label: str
    ties: list[tuple[str, list[Tie]]]


@dataclass(frozen=True, slots=True)
class GalleryPart:
    """The queries of one code length."""

    n_bits: int | None
    run: int
    rows: list[QueryRow]
    is_open: bool


def gallery(analysis: Analysis) -> list[GalleryPart]:
    """A part per code length, the middle one open; empty without images."""
    shown = _with_examples(analysis)
    if not shown or not _folders(analysis):
        return []
    lengths = [n for n in analysis.columns if any(r.n_bits == n for r in shown)] or [None]
    middle = lengths[len(lengths) // 2 - (len(lengths) % 2 == 0)]
    return [_part(shown, n_bits, n_bits == middle) for n_bits in lengths]


def image_rules(analysis: Analysis) -> str:
    """A style rule per image, so that the page contains each image once."""
    folders = _folders(analysis)
    positions = {
        position
        for record in _with_examples(analysis)
        for example in record.examples
        for position in (example.query, *example.items)
    }
    return "".join(_rule(position, folders) for position in sorted(positions))


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


def _part(records: Sequence[Record], n_bits: int | None, is_open: bool) -> GalleryPart:
    mine = [record for record in records if record.n_bits in (n_bits, None)]
    queries = dict.fromkeys(example.query for r in mine for example in r.examples)
    run = min(record.run for record in mine)
    return GalleryPart(n_bits, run, [_row(mine, query) for query in queries], is_open)


def _row(records: Sequence[Record], query: int) -> QueryRow:
    ties = [
        (record.method, _ties(example))
        for record in records
        for example in record.examples
        if example.query == query
    ]
    return QueryRow(query, _label(records, query), ties)


def _label(records: Iterable[Record], query: int) -> str:
    for record in records:
        if record.query_labels is not None and query in record.query_positions:
            return f", class {record.query_labels[record.query_positions.index(query)]}"
    return ""


def _ties(example: Example) -> list[Tie]:
    found = zip(example.items, example.distances, example.relevant, strict=True)
    return [
        Tie(_distance(distance), [(position, is_relevant) for position, _, is_relevant in group])
        for distance, group in itertools.groupby(found, key=lambda one: one[1])
    ]


def _distance(distance: float) -> str:
    return f"{distance:g}" if float(distance).is_integer() else f"{distance:.3g}"
