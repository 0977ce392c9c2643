"""The gallery: queries with their nearest items by each method, right and wrong, ties boxed."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from bittern.experiments import Example, Record
from bittern.report.markup import Html
from bittern.report.page.parts import bits_of, folded, scrolling, section
from bittern.report.page.view import View

__all__ = ["gallery", "image_rules"]

IMAGES = "images"
SMALL = 40  # pixels; images that are smaller are enlarged without blur
PNG_WIDTH = slice(16, 20)  # octets


def gallery(view: View) -> Html | None:
    """A part a code length, that in the middle unfolded; nothing without images."""
    shown = _with_examples(view)
    if not shown or _folder(view) is None:
        return None
    lengths = [n for n in view.lengths if any(r.n_bits == n for r in shown)] or [None]
    middle = lengths[len(lengths) // 2 - (len(lengths) % 2 == 0)]
    parts = [_part(view, shown, n_bits, is_open=n_bits == middle) for n_bits in lengths]
    return section("Queries and their neighbours", "gallery", _explained(), *parts)


def image_rules(view: View) -> str:
    """A rule of the style sheet for each image that is shown: each is in the page once."""
    folder = _folder(view)
    if folder is None:
        return ""
    positions = {
        position
        for record in _with_examples(view)
        for example in record.examples
        for position in (example.query, *example.items)
    }
    paths = [(position, folder / f"{position}.png") for position in sorted(positions)]
    return "".join(_rule(position, path) for position, path in paths if path.is_file())


def _folder(view: View) -> Path | None:
    if view.records.folder is None:
        return None
    folder = view.records.folder / IMAGES
    return folder if folder.is_dir() else None


def _rule(position: int, path: Path) -> str:
    content = path.read_bytes()
    address = "data:image/png;base64," + base64.b64encode(content).decode()
    is_small = int.from_bytes(content[PNG_WIDTH]) < SMALL
    return (
        f".p{position}{{background-image:url({address})"
        f"{';image-rendering:pixelated' if is_small else ''}}}\n"
    )


def _with_examples(view: View) -> list[Record]:
    """The first record of each method and length that has examples."""
    found: dict[tuple[str, int | None], Record] = {}
    for record in view.records:
        if record.examples:
            found.setdefault((record.method, record.n_bits), record)
    return list(found.values())


def _explained() -> Html:
    return Html.tag(
        "p",
        _key("right", "✓", "right: relevant to the query"),
        _key("wrong", "✗", "wrong"),
        Html.tag(
            "span",
            Html.tag("span", Html.tag("span", "d", class_="distance"), class_="tie many"),
            " a box holds items at one distance d: any order among them is an accident, "
            "and the last box may go on",
            class_="key",
        ),
        class_="keys",
    )


def _key(kind: str, sign: str, meaning: str) -> Html:
    return Html.tag(
        "span",
        Html.tag("span", sign, class_=f"item {kind}", aria_hidden="true"),
        " " + meaning,
        class_="key",
    )


def _part(view: View, records: Sequence[Record], n_bits: int | None, *, is_open: bool) -> Html:
    mine = [record for record in records if record.n_bits in (n_bits, None)]
    queries = list(dict.fromkeys(example.query for r in mine for example in r.examples))
    run = min(record.run for record in mine)
    content = [_query(mine, query) for query in queries]
    return folded(f"{bits_of(n_bits).capitalize()}, run {run}", *content, is_open=is_open)


def _query(records: Sequence[Record], query: int) -> Html:
    rows = [
        Html.tag(
            "tr",
            Html.tag("th", record.method, scope="row"),
            Html.tag("td", _boxes(example)),
        )
        for record in records
        for example in record.examples
        if example.query == query
    ]
    name = f"Query {query}{_label(records, query)}"
    return Html.tag(
        "div",
        Html.tag(
            "div",
            Html.tag("span", class_=f"item asked p{query}", role="img", aria_label=name),
            Html.tag("span", name),
            class_="asker",
        ),
        scrolling(
            Html.tag(
                "table",
                Html.tag("caption", f"Nearest items of query {query}", class_="unseen"),
                Html.tag("tbody", *rows),
            ),
            f"Nearest items of query {query}",
        ),
        class_="query",
    )


def _label(records: Iterable[Record], query: int) -> str:
    for record in records:
        if record.query_labels is not None and query in record.query_positions:
            return f", class {record.query_labels[record.query_positions.index(query)]}"
    return ""


def _boxes(example: Example) -> Html:
    """The items in order, those at one distance in one box with the distance written once."""
    found = zip(example.items, example.distances, example.relevant, strict=True)
    boxes = []
    for distance, group in itertools.groupby(found, key=lambda one: one[1]):
        items = [_item(position, is_right) for position, _, is_right in group]
        boxes.append(
            Html.tag(
                "span",
                Html.tag("span", _distance(distance), class_="distance"),
                *items,
                class_="tie many" if len(items) > 1 else "tie",
            )
        )
    return Html.tag("div", *boxes, class_="ties")


def _item(position: int, is_right: bool) -> Html:
    kind, sign = ("right", "✓") if is_right else ("wrong", "✗")
    return Html.tag(
        "span",
        sign,
        class_=f"item {kind} p{position}",
        role="img",
        aria_label=f"item {position}, {kind}",
    )


def _distance(distance: float) -> str:
    return f"{distance:g}" if float(distance).is_integer() else f"{distance:.3g}"
