"""Advice: every method and size that was tried, and which one to take."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bittern import notebook
from bittern.errors import InputError
from bittern.experiments.advice import notes, wording

if TYPE_CHECKING:
    from bittern.experiments.advice.contenders import Model
    from bittern.hashing import Hasher

MILLION = 1_000_000
FEWEST_SIZES = 3  # to extrapolate from; two leave nothing to judge a line by


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method and size that was not tried, and why."""

    method: str
    n_bits: int | None  # None if the method has only one size
    reason: str
    lacked: float | None = None  # seconds that it would take, if only time was lacking


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of what the vectors find, for each factor of rescoring.

    Keys are what rescores: 'float32' or 'int8'.
    """

    expected: dict[str, tuple[Estimate, ...]]  # among the items that the advice is about
    measured: dict[int, dict[str, tuple[Estimate, ...]]]  # by size of database


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one size.

    ``shares`` come from the queries that judge.  Only ``validation_shares``, from the queries that
    choose, decide.
    """

    method: str
    n_bits: int
    n_bytes: int  # of each item, with corrections
    columns: int | None  # of a vector that are used; None means all
    learns_from_labels: bool
    shares: Shares
    validation_shares: Shares
    n_measured: int  # items of the largest database
    n_splits: int
    fit_seconds: float
    encode_microseconds: float  # per vector
    search_milliseconds: float  # per query over a million items

    @property
    def share(self) -> Estimate:
        """Without rescoring, among the items that the advice is about."""
        return self.shares.expected["float32"][0]

    @property
    def validation_share(self) -> Estimate:
        """As ``share``, on the queries that choose."""
        return self.validation_shares.expected["float32"][0]

    @property
    def is_expected(self) -> bool:
        """Whether enough sizes were measured to extrapolate from."""
        return len(self.shares.measured) >= FEWEST_SIZES

    @property
    def megabytes(self) -> int:
        """Memory of a million items."""
        return self.n_bytes


@dataclass(frozen=True, slots=True)
class Sizes:
    """Number of rows in each role."""

    given: int
    dim: int
    float_bytes: int  # of a vector in 32 bits for each number
    train: int
    validation: int  # queries that choose
    test: int  # queries that judge
    database: int  # the largest


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Which method and how few bytes keep a share of the float ranking's quality.

    Quality is the number of relevant items among the first k results.  With rescoring of factor f,
    the f × k candidates that the codes find are sorted by full vectors, which can be on disk.

    ``rows`` has everything that was tried, by bytes; ``skipped`` what was not, and why.  The same
    ``random_state`` gives the same advice, times aside, unless the budget cuts the trials
    differently.
    """

    target: float
    truth: str  # 'classes', 'tags', 'judgements' or 'neighbours'
    k: int  # first results that count; nearest neighbours that are relevant without labels
    factors: tuple[int, ...]  # of rescoring, ascending from 1
    most: int  # factor that the answer may use
    store: str  # of the vectors that rescore: 'float32' or 'int8'
    items: int  # that the answer is about
    metric: str
    ceiling: Estimate  # the share of relevant items among the first k by the vectors
    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...]
    sizes: Sizes
    budget: float
    seconds: float
    stopped: bool  # by Ctrl-C
    random_state: int
    models: tuple[Model, ...] = field(repr=False)  # of the rows, as fitted in the first split

    @property
    def choice(self) -> Row | None:
        """The fewest bytes that keep the target without rescoring, or None."""
        return self._fewest([row for row in self.rows if row.validation_share.value >= self.target])

    @property
    def safe_choice(self) -> Row | None:
        """The fewest bytes whose whole interval keeps the target within ``most``, or None."""
        return self._fewest(
            [row for row in self.rows if self.needed(row, self.most, surely=True) is not None]
        )

    @property
    def rerank_choice(self) -> Row | None:
        """The fewest bytes that keep the target with rescoring of at most ``most``, or None."""
        return self._fewest(self._kept(self.most))

    @property
    def unsupervised_choice(self) -> Row | None:
        """As ``rerank_choice``, without learning from labels."""
        return self._fewest([row for row in self._kept(self.most) if not row.learns_from_labels])

    @property
    def deepest_choice(self) -> Row | None:
        """The fewest bytes that keep the target with rescoring of any factor tried, or None."""
        return self._fewest(self._kept(self.factors[-1]))

    @property
    def best(self) -> Row:
        """The largest share without rescoring, at any size."""
        return max(self.rows, key=lambda row: row.validation_share.value)

    @property
    def recommended(self) -> Row:
        """The choice with rescoring; if there is none, the best with it."""
        index = self.factors.index(self.most)
        return self.rerank_choice or max(
            self.rows, key=lambda row: row.validation_shares.expected[self.store][index].value
        )

    @property
    def factor(self) -> int:
        """The factor of rescoring that the recommended row needs; ``most`` if it is not enough."""
        return self.needed(self.recommended) or self.most

    @property
    def about(self) -> int:
        """The items that the figures are about: ``items`` if extrapolated, or those searched."""
        row = self.recommended
        return self.items if row.is_expected else row.n_measured

    @property
    def model(self) -> Model:
        """The recommended model as it was measured, fitted on the first split's training rows."""
        return self.model_of(self.recommended)

    @property
    def hasher(self) -> Hasher:
        """The recommended hash function: the model, or the one with the fewest bytes that does."""
        from bittern.hashing import Hasher

        model = self.model
        if isinstance(model, Hasher):
            return model
        hashed = [row for row in self.rows if isinstance(self.model_of(row), Hasher)]
        if not hashed:
            raise InputError("advise: no hash function was tried; the answer is in `model`.")
        enough = [row for row in hashed if self.needed(row) is not None]
        row = self._fewest(enough) or max(hashed, key=lambda one: one.validation_share.value)
        found = self.model_of(row)
        assert isinstance(found, Hasher)
        return found

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return wording.sentence(self)

    def model_of(self, row: Row) -> Model:
        """The model of a row."""
        return self.models[[id(one) for one in self.rows].index(id(row))]

    def share(self, row: Row, factor: int, store: str | None = None) -> Estimate:
        """What a row keeps with rescoring of a factor, among ``items``."""
        return row.shares.expected[store or self.store][self.factors.index(factor)]

    def needed(
        self, row: Row, most: int | None = None, store: str | None = None, *, surely: bool = False
    ) -> int | None:
        """The least factor with which a row keeps the target; None if none up to ``most`` does."""
        shares = row.validation_shares.expected[store or self.store]
        for factor, share in zip(self.factors, shares, strict=True):
            if most is not None and factor > most:
                return None
            if (share.low if surely else share.value) >= self.target:
                return factor
        return None

    def frontier(self, factor: int = 1) -> list[Row]:
        """The rows that no other one beats with as few bytes, by bytes."""
        index, kept, best = self.factors.index(factor), [], -math.inf
        key = {id(r): r.validation_shares.expected[self.store][index].value for r in self.rows}
        for row in sorted(self.rows, key=lambda r: (r.n_bytes, -key[id(r)])):
            if key[id(row)] > best:
                best = key[id(row)]
                kept.append(row)
        return kept

    def table(self, *, every: bool = False) -> str:
        """The rows that matter, or every row, as text."""
        return wording.table(self, list(self.rows) if every else self._shown())

    def notes(self) -> str:
        """How it was measured, and what was left out."""
        return notes.notes(self)

    def text(self, *, every: bool = False) -> str:
        """The sentence, the table and the notes."""
        return "\n\n".join([wording.wrapped(self.sentence), self.table(every=every), self.notes()])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return notebook.card(
            f"Advice: keep {wording.percent(self.target)} of the quality",
            notebook.paragraph(self.sentence),
            notebook.table(*wording.cells(self, self._shown())),
            notebook.folded("How it was measured", self.notes()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values of everything but the models; undefined is None."""
        names = ("choice", "safe_choice", "unsupervised_choice", "rerank_choice", "recommended")
        named = {name: self._name(getattr(self, name)) for name in (*names, "best")}
        facts = ("target", "truth", "k", "factors", "most", "store", "items", "metric", "factor")
        more = ("random_state", "seconds", "budget", "stopped")
        return _plain(
            {
                "sentence": self.sentence,
                "reaches_target": self.rerank_choice is not None,
                **named,
                **{name: getattr(self, name) for name in (*facts, *more)},
                "ceiling": asdict(self.ceiling),
                "sizes": asdict(self.sizes),
                "disk": {
                    store: {"million": MILLION * each, "items": self.items * each}
                    for store, each in self.stores.items()
                },
                "rows": [self._plain_row(row) for row in self.rows],
                "skipped": [asdict(skipped) for skipped in self.skipped],
            }
        )

    def to_json(self, **options: Any) -> str:
        """JSON text of :meth:`to_dict`."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, **options)

    @property
    def stores(self) -> dict[str, int]:
        """Bytes of an item in what can rescore."""
        return {"float32": self.sizes.float_bytes, "int8": self.sizes.dim}

    def _plain_row(self, row: Row) -> dict[str, Any]:
        return {
            **asdict(row),
            "needed": {store: self.needed(row, store=store) for store in self.stores},
            "ram": {"million": MILLION * row.n_bytes, "items": self.items * row.n_bytes},
        }

    def _name(self, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        facts = {"method": row.method, "n_bits": row.n_bits, "n_bytes": row.n_bytes}
        return {**facts, "factor": self.needed(row)}

    def _kept(self, most: int) -> list[Row]:
        """The rows that keep the target with rescoring of at most this factor."""
        return [row for row in self.rows if self.needed(row, most) is not None]

    def _fewest(self, rows: list[Row]) -> Row | None:
        """The fewest bytes; among those, the least rescoring, and then the best."""

        def key(row: Row) -> tuple[int, int, float]:
            factor = self.needed(row) or self.factors[-1]
            index = self.factors.index(factor)
            share = row.validation_shares.expected[self.store][index].value
            return row.n_bytes, factor, -share

        return min(rows, key=key, default=None)

    def _shown(self) -> list[Row]:
        """The frontiers, and every row that the answer mentions."""
        named = self.choice, self.safe_choice, self.unsupervised_choice, self.rerank_choice
        engines = [row for row in self.rows if row.method in wording.ENGINE_ROWS]
        fronts = [*self.frontier(), *self.frontier(self.most)]
        kept = {id(row) for row in (*named, *engines, *fronts, self.recommended)}
        return [row for row in self.rows if id(row) in kept]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
