"""Trials: hashers by lengths on held-out rows, the cheapest first, for as long as there is time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.codes import Codes
from bittern.errors import BitternError, MissingExtraError
from bittern.experiments.advising.estimates import Resampling
from bittern.experiments.advising.rows import Material
from bittern.experiments.advising.truth import Truth, truth_of
from bittern.hashing import HASHERS, Hasher
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance

__all__ = ["Plan", "Report", "Skipped", "Trial", "Trials", "try_all", "warm_up"]

Report = Callable[[int, int, str], None]  # called with (done, all, what is being done)
CHEAP = ("lsh", "pcah", "sh", "isohash", "itq", "dbq", "itq-cca", "sdh")  # seconds at most
SHORTER = "shorter codes surely keep the target"
ENOUGH = 2  # lengths of a method that surely keep the target, after which no longer one is tried


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tried, and for how long."""

    methods: tuple[str, ...]
    n_bits: tuple[int, ...]  # ascending
    target: float
    metric: str
    k: int
    cutoff: int  # candidates, to be put in order by the real vectors
    n_splits: int  # at most
    budget: float  # seconds


@dataclass(slots=True)
class Trial:
    """One method at one length: per split, the values of each query, and what it cost."""

    method: str
    n_bits: int
    learns_from_labels: bool
    hasher: Hasher  # as fitted in the first split
    precision: list[Float64Array] = field(default_factory=list)
    recall: list[Float64Array] = field(default_factory=list)  # at the cut-off; empty with labels
    fit_seconds: list[float] = field(default_factory=list)
    encode_seconds: list[float] = field(default_factory=list)  # of one vector


@dataclass(frozen=True, slots=True)
class Skipped:
    """Lengths of a method that were not tried, and why."""

    method: str
    n_bits: tuple[int, ...]
    reason: str


@dataclass(slots=True)
class Trials:
    """All that was tried, the ceilings of the splits, and what was left out."""

    trials: list[Trial] = field(default_factory=list)
    ceilings: list[Float64Array] = field(default_factory=list)  # (n_queries,) for each split
    skipped: list[Skipped] = field(default_factory=list)


def try_all(material: Material, plan: Plan, began: float, report: Report) -> Trials:
    """Try methods by lengths in a first split, and all that was tried again in others.

    The first split may take half of the time, so that a second one fits as a rule.  Next is always
    what will be cheapest, by what shorter codes of the method took; methods that are known to be
    dear wait until the others are through.
    """
    found = Trials()
    _first_split(found, material, plan, began, report)
    found.trials.sort(key=lambda trial: (plan.methods.index(trial.method), trial.n_bits))
    n, start = len(found.trials), began
    for split in range(1, plan.n_splits):
        now = perf_counter()
        if now - began + (now - start) > plan.budget:  # as long as the split before
            break
        start = now
        train, database = material.divide(split)
        truth = truth_of(material, database, plan.metric, plan.k)
        found.ceilings.append(truth.ceiling)
        for done, trial in enumerate(found.trials):
            report(split * n + done, plan.n_splits * n, f"{trial.method}, {trial.n_bits} bits")
            hasher = _hasher(trial.method, trial.n_bits, material, split)
            _measure(trial, hasher, material, train, database, truth, plan)
    return found


def _first_split(
    found: Trials, material: Material, plan: Plan, began: float, report: Report
) -> None:
    train, database = material.divide(0)
    truth = truth_of(material, database, plan.metric, plan.k)
    found.ceilings.append(truth.ceiling)
    queue = _Queue(plan, began)
    for method, n_bits in queue:
        report(queue.done, plan.n_splits * queue.total, f"{method}, {n_bits} bits")
        hasher = _hasher(method, n_bits, material, 0)
        learns = material.labels is not None and hasher._takes_y
        trial = Trial(method, n_bits, learns, hasher)
        start = perf_counter()
        try:
            _measure(trial, hasher, material, train, database, truth, plan)
        except MissingExtraError:
            raise
        except (BitternError, np.linalg.LinAlgError) as error:
            found.skipped.append(Skipped(method, (n_bits,), str(error).rstrip(".")))
            continue
        found.trials.append(trial)
        queue.took(method, n_bits, perf_counter() - start)
        if _surely_keeps(trial, truth, material, plan.target):
            queue.kept(method, n_bits)
    found.skipped += queue.skipped


class _Queue:
    """Pairs of a method and a length, the cheapest next; what does not fit is left out."""

    def __init__(self, plan: Plan, began: float) -> None:
        self._left = {method: list(plan.n_bits) for method in plan.methods}
        self._took: dict[str, list[tuple[int, float]]] = {method: [] for method in plan.methods}
        self._n_kept = dict.fromkeys(plan.methods, 0)
        self._limit, self._began = plan.budget / 2, began
        self.total, self.done = len(plan.methods) * len(plan.n_bits), 0
        self.skipped: list[Skipped] = []

    def took(self, method: str, n_bits: int, seconds: float) -> None:
        """Learn what a trial cost."""
        self._took[method].append((n_bits, seconds))

    def kept(self, method: str, n_bits: int) -> None:
        """A length has kept the target for sure; after a few of them, longer ones are not tried.

        Nor are those of other methods, but for methods that learn from labels and others that do
        not: one may be wanted without the other.
        """
        self._n_kept[method] += 1
        if self._n_kept[method] < ENOUGH:
            return
        for other in self._left:
            if HASHERS[other].needs_y == HASHERS[method].needs_y:
                self._skip(other, SHORTER, above=n_bits)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        while waiting := [method for method, lengths in self._left.items() if lengths]:
            method = min(waiting, key=lambda m: (m not in CHEAP, self._expected(m)))
            expected = self._expected(method)
            if self.done and perf_counter() - self._began + expected >= self._limit:
                self._skip(method, self._no_time(method, expected))
                continue
            n_bits = self._left[method].pop(0)
            yield method, n_bits
            self.done += 1

    def _expected(self, method: str) -> float:
        """Seconds of the next length, by the last two; to begin with, as long as any began with."""
        took = self._took[method]
        if not took:
            return max((times[0][1] for times in self._took.values() if times), default=0.0)
        n_bits, seconds = took[-1]
        if len(took) == 1:
            return seconds
        per_bit = (seconds - took[-2][1]) / (n_bits - took[-2][0])
        return seconds + max(0.0, per_bit) * (self._left[method][0] - n_bits)

    def _no_time(self, method: str, expected: float) -> str:
        if not self._took[method]:
            return "no time was left to begin"
        return f"{self._left[method][0]} bits would take about {expected:.0f} s, too long"

    def _skip(self, method: str, reason: str, above: int = 0) -> None:
        longer = tuple(n_bits for n_bits in self._left[method] if n_bits > above)
        if longer:
            self.skipped.append(Skipped(method, longer, reason))
        self._left[method] = [n_bits for n_bits in self._left[method] if n_bits <= above]


def _hasher(method: str, n_bits: int, material: Material, split: int) -> Hasher:
    return HASHERS[method](n_bits=n_bits, random_state=material.random_state + split)


def _measure(
    trial: Trial,
    hasher: Hasher,
    material: Material,
    train: NDArray[Any],
    database: NDArray[Any],
    truth: Truth,
    plan: Plan,
) -> None:
    """Fit on the training rows, encode queries and database, and keep the queries' values."""
    start = perf_counter()
    _fit(hasher, material, train)
    fitted = perf_counter()
    queries = hasher.encode(material.vectors[material.queries])
    items = hasher.encode(material.vectors[database])
    encoded = perf_counter()
    profile = TieProfile.from_codes(queries, items, truth.relevance)
    names = ["ap"] if material.labels is not None else ["ap", f"recall@{plan.cutoff}"]
    values = [score.per_query for score in evaluate(profile, names).values()]
    for kept, per_query in zip((trial.precision, trial.recall), values, strict=False):
        assert per_query is not None
        kept.append(per_query)
    trial.fit_seconds.append(fitted - start)
    trial.encode_seconds.append((encoded - fitted) / (len(queries) + len(items)))


def _fit(hasher: Hasher, material: Material, train: NDArray[Any]) -> None:
    """Fit; Ctrl-C, from which a hasher keeps what it has learned so far, ends everything here."""
    labels = None if material.labels is None else material.labels[train]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*: stopped early", category=UserWarning)
        hasher.fit(material.vectors[train], labels)
    if hasher.stopped_early_:
        raise KeyboardInterrupt


def _surely_keeps(trial: Trial, truth: Truth, material: Material, target: float) -> bool:
    """Whether the queries that choose leave no doubt that the target is kept."""
    part = material.validation
    codes, floats = trial.precision[0][None, part], truth.ceiling[None, part]
    return Resampling(1, codes.shape[1]).share(codes, floats).low >= target


def warm_up(material: Material, plan: Plan) -> None:
    """Compile what counts codes and scores them, which only the first run ever has to."""
    pair = np.eye(2, dtype=bool)
    if material.labels is None:
        truth = Relevance.from_matrix(pair.astype(int))
    elif material.labels.ndim == 1:
        truth = Relevance.from_classes([0, 1], [0, 1])
    else:
        truth = Relevance.from_tags(pair, pair)
    for n_bits in plan.n_bits:
        codes = Codes.from_bits(np.zeros((2, n_bits), bool))
        evaluate(TieProfile.from_codes(codes, codes, truth), ["ap", f"recall@{plan.cutoff}"])
