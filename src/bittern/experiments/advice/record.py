"""Advice: every method and length that was tried, and which one to take."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bittern.errors import FileError
from bittern.experiments.advice import wording
from bittern.hashing import Hasher


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Milliseconds per query on one thread over the given codes, by scanning and by tables."""

    n_items: int
    flat: float
    multi: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """Lengths of a method that were not tried, and why."""

    method: str
    n_bits: tuple[int, ...]
    reason: str
    lacked_time: bool = False  # a larger budget would try them


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one length.

    ``share``, ``precision`` and ``recall`` come from the queries that judge.  Only
    ``validation_share`` and ``validation_recall``, from the queries that choose, decide.
    """

    method: str
    n_bits: int
    learns_from_labels: bool
    share: Estimate  # of the float ranking's mean average precision
    precision: Estimate  # mean average precision, in expectation over ties
    recall: Estimate | None  # share of true neighbours among the first; None with labels
    validation_share: Estimate
    validation_recall: Estimate | None
    fit_seconds: float
    encode_microseconds: float  # per vector
    search_milliseconds: float  # per query over a million codes, one thread

    @property
    def megabytes(self) -> int:
        """Memory of a million codes, packed into bytes."""
        return -(-self.n_bits // 8)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Number of rows in each role."""

    given: int
    dim: int
    float_megabytes: int  # a million vectors as they were given
    train: int
    validation: int  # queries that choose
    test: int  # queries that judge
    database: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Which method and how many bits keep a share of the float ranking's quality.

    ``rows`` has everything that was tried, by method and length; ``skipped`` what was not, and why.
    The same ``random_state`` gives the same advice, times aside, unless the budget cuts the trials
    or splits differently.
    """

    target: float
    truth: str  # 'classes', 'tags' or 'neighbours'
    k: int  # nearest neighbours that are relevant without labels
    cutoff: int  # candidates among which ``recall`` counts
    metric: str
    ceiling: Estimate  # the float ranking's mean average precision
    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...]
    sizes: Sizes
    n_splits: int
    budget: float
    seconds: float
    random_state: int
    speed: Speed | None  # of the recommended row, over the given codes
    hashers: dict[tuple[str, int], Hasher] = field(repr=False)  # as fitted in the first split

    @property
    def choice(self) -> Row | None:
        """The fewest bits that keep the target, or None."""
        return self._fewest(self._sufficient)

    @property
    def safe_choice(self) -> Row | None:
        """The fewest bits whose whole interval keeps the target, or None."""
        return self._fewest(
            [row for row in self._sufficient if row.validation_share.low >= self.target]
        )

    @property
    def unsupervised_choice(self) -> Row | None:
        """The fewest bits that keep the target without learning from labels, or None."""
        return self._fewest([row for row in self._sufficient if not row.learns_from_labels])

    @property
    def rerank_choice(self) -> Row | None:
        """The fewest bits whose candidates hold the target share of true neighbours, or None."""
        enough = [row for row in self.rows if _validation_recall(row) >= self.target]
        return min(enough, key=lambda row: (row.n_bits, -_validation_recall(row)), default=None)

    @property
    def best(self) -> Row:
        """The largest share, at any length."""
        return max(self.rows, key=lambda row: row.validation_share.value)

    @property
    def best_candidates(self) -> Row:
        """The largest share of true neighbours among the candidates, at any length."""
        return max(self.rows, key=_validation_recall)

    @property
    def recommended(self) -> Row:
        """The choice; if there is none, the choice for reranking, or the best."""
        return self.choice or self.rerank_choice or self.best

    @property
    def hasher(self) -> Hasher:
        """The recommended hasher as it was measured, fitted on the first split's training rows."""
        return self.hashers[self.recommended.method, self.recommended.n_bits]

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return wording.sentence(self)

    def best_of(self, n_bits: int) -> Row:
        """The largest share at one length."""
        rows = [row for row in self.rows if row.n_bits == n_bits]
        return max(rows, key=lambda row: row.validation_share.value)

    def best_by_length(self) -> list[Row]:
        """The best row of each length, and every row that the answer mentions."""
        named = self.choice, self.safe_choice, self.unsupervised_choice, self.rerank_choice
        lengths = sorted({row.n_bits for row in self.rows})
        kept = {id(row) for row in (*map(self.best_of, lengths), *named)}
        return sorted((row for row in self.rows if id(row) in kept), key=lambda row: row.n_bits)

    def table(self, *, every: bool = False) -> str:
        """The best method of each length, or every row, as text."""
        return wording.table(self, list(self.rows) if every else self.best_by_length())

    def notes(self) -> str:
        """How it was measured, and what was left out."""
        return wording.notes(self)

    def text(self, *, every: bool = False) -> str:
        """The sentence, the table and the notes."""
        return "\n\n".join([wording.wrapped(self.sentence), self.table(every=every), self.notes()])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values of everything but the hashers; undefined is None."""
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
    def _sufficient(self) -> list[Row]:
        """The rows that keep the target on the queries that choose."""
        return [row for row in self.rows if row.validation_share.value >= self.target]

    def _fewest(self, rows: list[Row]) -> Row | None:
        """The shortest; among those, the best."""
        return min(rows, key=lambda row: (row.n_bits, -row.validation_share.value), default=None)


def check_export(folder: Path) -> None:
    """Raise FileError now if the folder or the ``.npz`` file could not be made later."""
    if folder.exists() or folder.is_symlink():
        kind = "file" if folder.suffix == ".npz" else "folder"
        raise FileError(f"{folder}: exists already; give the name of a new {kind}.")
    if not folder.parent.is_dir():
        raise FileError(f"{folder}: cannot be made, there is no folder {folder.parent}.")
    if not os.access(folder.parent, os.W_OK):
        raise FileError(f"{folder}: cannot be made, the folder {folder.parent} is read-only.")


def export(advice: Advice, folder: Path) -> str:
    """Write ``hasher.npz``, ``advice.json`` and ``advice.txt`` to a new folder, all or none.

    If the name ends in ``.npz``, it is a file, and has the hasher alone.

    The hasher is the recommended one as it was measured: fitted on the training rows of the first
    split, not on all rows, so that the figures hold for it.  Returns a sentence about it.
    """
    check_export(folder)
    if folder.suffix == ".npz":
        advice.hasher.save(folder)
    else:
        _write_folder(advice, folder)
    row = advice.recommended
    model = folder if folder.suffix == ".npz" else folder / "hasher.npz"
    short = "" if advice.choice else ", which does not keep the target by itself"
    return (
        f"{model} has {row.method} at {row.n_bits} bits{short}, as it was measured, fitted on "
        f"{advice.sizes.train:,} rows; 'bittern encode' and 'bittern index create --hasher' take "
        "it, and bt.hashing.load() reads it."
    )


def _write_folder(advice: Advice, folder: Path) -> None:
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        advice.hasher.save(made / "hasher.npz")
        (made / "advice.json").write_text(advice.to_json(indent=1) + "\n", encoding="utf-8")
        (made / "advice.txt").write_text(f"{advice}\n", encoding="utf-8")
        made.chmod(0o755)
        made.rename(folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


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
