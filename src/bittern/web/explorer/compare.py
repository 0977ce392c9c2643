"""The compare view: one query in two collections, or in codes of two lengths, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.index.flat_index import FlatIndex
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance
from bittern.web.explorer.asking import Asked, Question, Uploads, condition_of, question_of
from bittern.web.explorer.contents import Contents, Ids
from bittern.web.explorer.search import bands, everything, first_radius

NEAREST = 24  # items that are compared, and those that tie with the last of them


@dataclass(frozen=True, eq=False)
class Side:
    """A collection and its uploaded images; with ``n_bits``, only the first bits of its codes."""

    name: str
    contents: Contents
    uploads: Uploads
    n_bits: int | None = None

    @property
    def length(self) -> int:
        """The length of the codes that are compared."""
        return self.n_bits or self.contents.source.n_bits

    @cached_property
    def _short(self) -> FlatIndex:
        """The items with shortened codes."""
        return FlatIndex(first_bits(self.contents.codes, self.length), ids=self.contents.ids)

    def nearest(self, query: Asked) -> tuple[Question, Ids, NDArray[Any]]:
        """The query, and all items by their distance."""
        question = question_of(self.contents, query, self.uploads)
        where = condition_of(self.contents, query)
        if self.n_bits is None:
            return question, *everything(self.contents, question, where)
        allowed = None
        if where is not None:
            found = self.contents.source.within(question.code, self.contents.source.n_bits, where)
            allowed = found[0].ids
        code = first_bits(question.code, self.length)
        ids, distances = self._short.within(code, self.length, where=allowed)[0]
        others = ids != (-1 if question.item is None else question.item)
        return question, ids[others], distances[others]


def first_bits(codes: Codes, n_bits: int) -> Codes:
    """The codes cut to their first bits."""
    words = codes.words[:, : -(-n_bits // 64)].copy()
    if n_bits % 64:
        words[:, -1] &= np.uint64((1 << n_bits % 64) - 1)
    return Codes(np.ascontiguousarray(words), n_bits)


def compare(sides: tuple[Side, Side], query: Asked) -> dict[str, Any]:
    """The nearest items on either side, marked where only one side has them.

    These are whole bands: as many nearest ones as are needed for 24 items.  Average precision
    comes with its range over the orders of tied items, if the query has a label.
    """
    asked = (query, _on_other_side(sides, query))
    found = [_answer(side, one) for side, one in zip(sides, asked, strict=True)]
    names = [one.pop("names", None) for one in found]
    for i, (side, one) in enumerate(zip(sides, found, strict=True)):
        if names[i] is not None:
            _mark(side, one, names[i], names[1 - i])
    both = [set(one) for one in names if one is not None]
    return {
        "query": next((one["query"] for one in found if "query" in one), None),
        "sides": found,
        "n_common": len(both[0] & both[1]) if len(both) == 2 else None,
    }


def average_precision(
    distances: NDArray[Any], labels: NDArray[np.int64], label: int
) -> dict[str, float] | None:
    """Average precision of one ranking, and its range over the orders of ties; None without."""
    if label < 0 or not (labels == label).any():
        return None
    relevance = Relevance.from_classes([label], labels)
    profile = TieProfile.from_distances(distances[None].astype(np.int64), relevance)
    found = evaluate(profile, ["ap", "ap:pessimistic", "ap:optimistic"])
    return {
        "ap": float(found["ap"].mean),
        "low": float(found["ap:pessimistic"].mean),
        "high": float(found["ap:optimistic"].mean),
    }


def _on_other_side(sides: tuple[Side, Side], query: Asked) -> Asked:
    """The same query for the second side, where an item may have another id."""
    first, second = (side.contents for side in sides)
    if first is second or query.item is None:
        return query
    name = first.names[int(first.rows_of([query.item])[0])]
    there = second.once(
        "by name", lambda: dict(zip(second.names, second.ids.tolist(), strict=True))
    )
    if name not in there:
        return Asked(item=-1)
    return Asked(item=there[name], where=query.where, to=query.to)


def _answer(side: Side, query: Asked) -> dict[str, Any]:
    about = {"name": side.name, "n_bits": side.length}
    if query.item == -1:
        return {**about, "error": "This collection does not have the item."}
    try:
        question, ids, distances = side.nearest(query)
    except BitternError as error:
        return {**about, "error": str(error)}
    contents, counts = side.contents, np.bincount(distances, minlength=side.length + 1)
    radius = first_radius(counts, NEAREST)
    rows = contents.rows_of(ids)
    n = int(counts[: radius + 1].sum())
    label = -1 if question.item is None else contents.label_of(question.item)
    labels = None if contents.labels is None else contents.labels.numbers[rows]
    return {
        **about,
        "query": question.about,
        "histogram": counts.tolist(),
        "radius": radius,
        "n_within": n,
        "n_items": len(ids),
        "score": None if labels is None else average_precision(distances, labels, label),
        "found": (ids, distances),
        "names": [contents.names[row] for row in rows[:n].tolist()],
    }


def _mark(side: Side, one: dict[str, Any], names: list[str], others: list[str] | None) -> None:
    """Draw the bands of a side, and mark what the other side has not."""
    ids, distances = one.pop("found")
    marks = np.zeros(len(ids), np.bool_)
    if others is not None:
        there = set(others)
        marks[: len(names)] = [name not in there for name in names]
    one["n_only"] = int(marks.sum())
    one["bands"] = bands(side.contents, ids, distances, one["radius"], marks)


def sides_of(
    contents: Contents,
    uploads: Uploads,
    other: tuple[Contents, Uploads] | None,
    n_bits: int | None,
) -> tuple[Side, Side]:
    """The two sides: a collection and another, or its codes and their first bits."""
    here = Side(_name(contents), contents, uploads)
    if n_bits is not None:
        n_bits = check_count(n_bits, "compare: bits", 1, contents.source.n_bits)
        return here, Side(f"{_name(contents)}, first {n_bits} bits", contents, uploads, n_bits)
    if other is None:
        raise InputError("compare: choose a number of bits, or start with --against OTHER.")
    return here, Side(_name(other[0]), *other)


def _name(contents: Contents) -> str:
    return contents.source.place.rsplit("/", 1)[-1]
