"""Advice: every length of every method that was tried, and which of them to take."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from bittern.experiments.advising import wording
from bittern.experiments.advising.estimates import Estimate
from bittern.experiments.advising.speed import Speed
from bittern.experiments.advising.trials import Skipped
from bittern.hashing import Hasher

__all__ = ["Advice", "Row", "Sizes"]


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one length.

    ``share``, ``precision`` and ``recall`` are of the queries that judge; ``validation_share`` and
    ``validation_recall`` of those that choose, and nothing else is chosen by.
    """

    method: str
    n_bits: int
    learns_from_labels: bool
    share: Estimate  # of the float ranking's mean average precision
    precision: Estimate  # mean average precision, in expectation over ties
    recall: Estimate | None  # of the true neighbours among the first; None with labels
    validation_share: Estimate
    validation_recall: Estimate | None
    fit_seconds: float
    encode_microseconds: float  # a vector
    search_milliseconds: float  # a query over a million codes, one thread

    @property
    def megabytes(self) -> int:
        """Memory of a million codes, packed into octets."""
        return -(-self.n_bits // 8)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows did what."""

    given: int
    dim: int
    float_megabytes: int  # of a million vectors as they were given
    train: int
    validation: int  # queries that choose
    test: int  # queries that judge
    database: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Which method and how many bits keep a share of the float ranking's quality.

    ``rows`` has all that was tried, by method and length; ``skipped`` what was not, and why.  With
    one ``random_state`` everything but times is the same again, if the same rows were tried in the
    same number of splits: the budget may cut both.
    """

    target: float
    truth: str  # 'classes', 'tags' or 'neighbours'
    k: int  # nearest that are the truth where there are no labels
    cutoff: int  # candidates that ``recall`` is of
    metric: str
    ceiling: Estimate  # the float ranking's mean average precision
    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...]
    sizes: Sizes
    n_splits: int
    budget: float
    seconds: float
    random_state: int
    speed: Speed | None  # of the row to take, over the codes at hand
    hashers: dict[tuple[str, int], Hasher] = field(repr=False)  # as fitted in the first split

    @property
    def choice(self) -> Row | None:
        """The fewest bits that keep the target, or None."""
        return self._fewest(self._able)

    @property
    def safe_choice(self) -> Row | None:
        """The fewest bits that keep the target with the lower end of the interval, or None."""
        return self._fewest([row for row in self._able if row.validation_share.low >= self.target])

    @property
    def unsupervised_choice(self) -> Row | None:
        """The fewest bits that keep the target by a method that did not see the labels, or None."""
        return self._fewest([row for row in self._able if not row.learns_from_labels])

    @property
    def rerank_choice(self) -> Row | None:
        """The fewest bits whose candidates hold the target's share of true neighbours, or None."""
        able = [row for row in self.rows if _validation_recall(row) >= self.target]
        return min(able, key=lambda row: (row.n_bits, -_validation_recall(row)), default=None)

    @property
    def best(self) -> Row:
        """The greatest share, at any length."""
        return max(self.rows, key=lambda row: row.validation_share.value)

    @property
    def best_candidates(self) -> Row:
        """The greatest share of true neighbours among the candidates, at any length."""
        return max(self.rows, key=_validation_recall)

    @property
    def recommended(self) -> Row:
        """What to take: the choice, else that for reranking, else the best there was."""
        return self.choice or self.rerank_choice or self.best

    @property
    def hasher(self) -> Hasher:
        """The recommended hasher as it was measured: fitted on the first split's training rows."""
        return self.hashers[self.recommended.method, self.recommended.n_bits]

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return wording.sentence(self)

    def best_of(self, n_bits: int) -> Row:
        """The greatest share at one length."""
        rows = [row for row in self.rows if row.n_bits == n_bits]
        return max(rows, key=lambda row: row.validation_share.value)

    def best_by_length(self) -> list[Row]:
        """Of each length the row of the greatest share, and all that the answer speaks of."""
        named = self.choice, self.safe_choice, self.unsupervised_choice, self.rerank_choice
        lengths = sorted({row.n_bits for row in self.rows})
        kept = {id(row) for row in (*map(self.best_of, lengths), *named)}
        return sorted((row for row in self.rows if id(row) in kept), key=lambda row: row.n_bits)

    def table(self, *, every: bool = False) -> str:
        """The best method of each length, or every row that was tried, as text."""
        return wording.table(self, list(self.rows) if every else self.best_by_length())

    def notes(self) -> str:
        """How it was measured, and what was left out, a sentence a line."""
        return wording.notes(self)

    def text(self, *, every: bool = False) -> str:
        """The sentence, the table, of every row if asked, and the notes."""
        return "\n\n".join([wording.wrapped(self.sentence), self.table(every=every), self.notes()])

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain values of everything but the hashers; what is undefined is None."""
        names = ("choice", "safe_choice", "unsupervised_choice", "rerank_choice", "recommended")
        named = {name: _name(getattr(self, name)) for name in (*names, "best")}
        facts = ("target", "truth", "k", "cutoff", "metric", "n_splits", "random_state", "seconds")
        return _plain(
            {
                "sentence": self.sentence,
                "reaches_target": self.choice is not None,
                **named,
                **{name: getattr(self, name) for name in facts},
                "budget": self.budget,
                "ceiling": asdict(self.ceiling),
                "sizes": asdict(self.sizes),
                "speed_at_hand": None if self.speed is None else asdict(self.speed),
                "rows": [{**asdict(row), "megabytes": row.megabytes} for row in self.rows],
                "skipped": [asdict(skipped) for skipped in self.skipped],
            }
        )

    def to_json(self, **options: Any) -> str:
        """JSON text of :meth:`to_dict`."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, **options)

    @property
    def _able(self) -> list[Row]:
        """The rows that keep the target, by the queries that choose."""
        return [row for row in self.rows if row.validation_share.value >= self.target]

    def _fewest(self, rows: list[Row]) -> Row | None:
        """The shortest, and of those the best."""
        return min(rows, key=lambda row: (row.n_bits, -row.validation_share.value), default=None)


def _validation_recall(row: Row) -> float:
    return -1.0 if row.validation_recall is None else row.validation_recall.value


def _name(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {"method": row.method, "n_bits": row.n_bits}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
