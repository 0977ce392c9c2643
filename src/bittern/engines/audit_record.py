"""Audit: the record of what an engine found and lost, and what it says in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_count
from bittern.engines.reported import NO_FORMULA, SAME, ReportedDistances

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Audit:
    r"""What an engine found of each query's exact answer, and what is wrong with its hits.

    The answer to a search for the k nearest ends at the distance :math:`t` of the k-th nearest
    item; :math:`t` is the *limit*.  Let :math:`a` items be nearer than :math:`t`, and :math:`b`
    at :math:`t`, of which an answer holds :math:`m = K - a`, whichever they are; :math:`K` items
    are *needed*, k unless the database has fewer.  If the engine returned :math:`x` of the nearer
    and :math:`y` of the tied items, each counted once, then

    .. math::

        \text{recall} = \frac{x + \min(y, m)}{K}, \qquad
        \text{expected} = \frac{x + y\,m/b}{K}, \qquad
        \text{worst} = \frac{x + \max(0,\, y + m - b)}{K}.

    *Recall* takes any item at distance :math:`t` for right, as long as there are not too many; it
    is :math:`\sum_d \min(\text{returned at } d, \text{needed at } d) / K`.  *Expected* and *worst*
    are what a comparison of ids with an exact list would say, if that list broke its ties at
    random, or in the worst way for the engine; the best way gives the recall.  So a recall of 1
    means that nothing is lost, and that any difference of ids is an order of ties.

    A search within a radius needs all items up to it: the limit is the radius, all :math:`b` items
    there are needed, and the three agree.  They are NaN for a query that needs nothing.  All arrays
    have one entry for each query.
    """

    n_items: int
    k: int | None
    radius: float | None
    metric: str
    limits: Float64Array  # t, or the radius
    nearer: Integers  # a
    tied: Integers  # b
    needed: Integers  # K
    found_nearer: Integers  # x
    found_tied: Integers  # y
    returned: Integers  # hits, also repeated and unknown ones; only the first k are looked at
    repeated: Integers  # hits whose id the query had already
    unknown: Integers  # hits whose id no item has
    unordered: Integers  # hits nearer than the hit before
    reported: ReportedDistances

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.needed)

    @property
    def found(self) -> Integers:
        """Items of the answer that were found, ties counted fairly."""
        return self.found_nearer + np.minimum(self.found_tied, self.needed - self.nearer)

    @property
    def lost(self) -> Integers:
        """Items of the answer that were not found."""
        return self.needed - self.found

    @property
    def missing(self) -> Integers:
        """Hits that should be there and are not: lists that are too short."""
        return np.maximum(0, self.needed - self.returned)

    @property
    def farther(self) -> Integers:
        """Hits beyond the limit, which no exact answer has."""
        known = self.returned - self.repeated - self.unknown
        return known - self.found_nearer - self.found_tied

    @property
    def recall(self) -> Float64Array:
        """Share of the answer that was found; any tied item is right."""
        return _share(self.found, self.needed)

    @property
    def expected_recall(self) -> Float64Array:
        """Mean share of an exact list that was found, over the orders of its ties."""
        shares = (self.needed - self.nearer) / np.maximum(self.tied, 1)
        return _share(self.found_nearer + self.found_tied * shares, self.needed)

    @property
    def worst_recall(self) -> Float64Array:
        """Least share of an exact list that was found, over the orders of its ties."""
        spare = self.tied - (self.needed - self.nearer)
        return _share(self.found_nearer + np.maximum(0, self.found_tied - spare), self.needed)

    @property
    def means(self) -> dict[str, float]:
        """Means over the queries that need something; NaN if none does."""
        defined = self.needed > 0
        each = {
            "recall": self.recall,
            "expected_recall": self.expected_recall,
            "worst_recall": self.worst_recall,
        }
        return {
            name: float(values[defined].mean()) if defined.any() else float("nan")
            for name, values in each.items()
        }

    @property
    def is_complete(self) -> bool:
        """Whether nothing is lost: ids that differ from an exact list are ties of it."""
        return not self.lost.any()

    @property
    def is_strict(self) -> bool:
        """Whether a search within a radius returned nothing at the radius itself, though items are.

        Some hit must be nearer, so that an engine that finds nothing is not called strict.
        """
        at_radius = self.limits == self.radius
        return bool(
            self.radius is not None
            and self.tied[at_radius].any()
            and not self.found_tied[at_radius].any()
            and (self.found_nearer.any() or not self.nearer.any())
        )

    def worst(self, n: int = 10) -> Integers:
        """The queries with the lowest recall, worst first; none whose answer was found."""
        check_count(n, "Audit: n", least=0)
        order = np.lexsort((np.arange(len(self)), self.expected_recall, self.recall))
        return order[self.lost[order] > 0][:n]

    def rows(self, queries: Any = None) -> list[dict[str, Any]]:
        """What is known of each query, or of some, by name."""
        columns = {
            "needed": self.needed,
            "found": self.found,
            "recall": self.recall,
            "expected_recall": self.expected_recall,
            "worst_recall": self.worst_recall,
            "limit": self.limits,
            "tied": self.tied,
            "returned": self.returned,
            "missing": self.missing,
            "farther": self.farther,
            "repeated": self.repeated,
            "unknown": self.unknown,
            "unordered": self.unordered,
        }
        chosen = np.arange(len(self)) if queries is None else np.asarray(queries, np.intp)
        listed = [column[chosen].tolist() for column in columns.values()]
        return [
            {"query": q, **dict(zip(columns, row, strict=True))}
            for q, *row in zip(chosen.tolist(), *listed, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Totals and means by name, as JSON can say them."""
        totals = (
            "needed",
            "found",
            "lost",
            "returned",
            "missing",
            "farther",
            "repeated",
            "unknown",
            "unordered",
        )
        return {
            "queries": len(self),
            "items": self.n_items,
            "k": self.k,
            "radius": self.radius,
            "metric": self.metric,
            **{name: _or_none(value) for name, value in self.means.items()},
            "least_recall": _or_none(float(self.recall[self.needed > 0].min(initial=np.inf))),
            "complete_queries": int((self.lost == 0).sum()),
            "undefined_queries": int((self.needed == 0).sum()),
            **{name: int(getattr(self, name).sum()) for name in totals},
            "is_complete": self.is_complete,
            "is_strict": self.is_strict,
            "reported": {
                "values": self.reported.n,
                "formula": self.reported.formula or None,
                "wrong": self.reported.n_wrong,
            },
            "says": self.sentences(),
        }

    def sentences(self) -> list[str]:
        """The outcome in one sentence, and one for everything that is wrong."""
        return [self._outcome(), *self._problems()]

    def _outcome(self) -> str:
        queries, asked = _count(len(self), "query", "queries"), self._asked()
        if not self.needed.any():
            return f"There is nothing to find: no query has {asked.removeprefix('all ')}."
        if self.is_complete:
            return f"Nothing is lost: {asked} of {queries} are found{self._ties()}."
        worst, n_hurt = int(self.worst(1)[0]), int((self.lost > 0).sum())
        return (
            f"The recall of {asked} is {self.means['recall']:.4f}, ties counted fairly: {n_hurt:,} "
            f"of {queries} {_verb(n_hurt, 'lacks', 'lack')} items, and query {worst} is the worst "
            f"with {self.found[worst]:,} of {self.needed[worst]:,}."
        )

    def _ties(self) -> str:
        """What a comparison of ids would make of an answer that is complete."""
        expected = self.means["expected_recall"]
        if expected == 1:
            return ""
        return (
            "; another exact list may differ by ties alone, and comparing ids with it would give "
            f"{expected:.4f} on average"
        )

    def _asked(self) -> str:
        near = "all items" if self.k is None else f"the {self.k:,} nearest"
        return near if self.radius is None else f"{near} within {self.radius:g}"

    def _problems(self) -> list[str]:
        said = []
        if self.is_strict:
            n = int(self.tied[self.limits == self.radius].sum())
            said.append(
                f"None of {_count(n, 'item')} at distance {self.radius:g} was returned: the engine "
                "seems to search below the radius (<), not up to it (≤)."
            )
        short = int((self.missing > 0).sum())
        if short and self.radius is None:
            said.append(
                f"{_count(short, 'list')} {_verb(short, 'is', 'are')} too short, by "
                f"{_count(int(self.missing.sum()), 'hit')}."
            )
        for name, verbs, what in (
            ("unknown", ("has", "have"), "an id that no item has"),
            ("repeated", ("repeats", "repeat"), "an item of the same list, and counts once"),
            ("unordered", ("is", "are"), "nearer than the hit before"),
        ):
            if n := int(getattr(self, name).sum()):
                said.append(f"{_count(n, 'hit')} {_verb(n, *verbs)} {what}.")
        return said + self._reported_problems()

    def _reported_problems(self) -> list[str]:
        r = self.reported
        if r.n == 0 or r.are_right:
            return []
        wrong = f"{r.n_wrong:,} of {r.n:,} reported values {_verb(r.n_wrong, 'is', 'are')}"
        if r.formula in (SAME, NO_FORMULA):
            return [f"{wrong} not the distance."]
        others = f"; {wrong} neither" if r.n_wrong else ""
        return [f"The values reported are not the distance but {r.formula}{others}."]

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def _share(part: Any, whole: Integers) -> Float64Array:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def _count(n: int, what: str, plural: str | None = None) -> str:
    return f"{n:,} {what if n == 1 else plural or f'{what}s'}"


def _verb(n: int, one: str, several: str) -> str:
    return one if n == 1 else several


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None
