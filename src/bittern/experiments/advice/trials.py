"""Trials: hashers at several lengths on held-out rows, cheapest first, within a time budget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from bittern.checks import Float64Array, PositionArray
from bittern.codes import Codes
from bittern.errors import BitternError, MissingExtraError
from bittern.experiments.advice.data import Sample, SplitTruth, truth_of
from bittern.experiments.advice.judging import Resampling
from bittern.experiments.advice.record import Skipped
from bittern.hashing import HASHERS, Hasher
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance

Progress = Callable[[int, int, str], None]  # called with (done, total, what is being done)
CHEAP = ("lsh", "pcah", "sh", "isohash", "itq", "dbq", "itq-cca", "sdh")  # take seconds
SHORTER = "shorter codes surely keep the target"
ENOUGH = 2  # lengths of a method that surely keep the target; longer ones are then not tried


@dataclass(frozen=True, slots=True)
class AdviceSettings:
    """What is tried, and for how long."""

    methods: tuple[str, ...]
    n_bits: tuple[int, ...]  # ascending
    target: float
    metric: str
    k: int
    cutoff: int  # candidates for reranking by the real vectors
    n_splits: int  # at most
    budget: float  # seconds


@dataclass(slots=True)
class Trial:
    """One method at one length: the values of each query in each split, and its costs."""

    method: str
    n_bits: int
    learns_from_labels: bool
    hasher: Hasher  # as fitted in the first split
    precision: list[Float64Array] = field(default_factory=list)
    recall: list[Float64Array] = field(default_factory=list)  # at the cut-off; empty with labels
    fit_seconds: list[float] = field(default_factory=list)
    encode_seconds: list[float] = field(default_factory=list)  # per vector


@dataclass(slots=True)
class Trials:
    """Everything that was tried, the ceilings of the splits, and what was left out."""

    trials: list[Trial] = field(default_factory=list)
    ceilings: list[Float64Array] = field(default_factory=list)  # (n_queries,) for each split
    skipped: list[Skipped] = field(default_factory=list)


def try_all(sample: Sample, settings: AdviceSettings, began: float, progress: Progress) -> Trials:
    """Try all methods and lengths in a first split, and repeat the trials in more splits.

    The first split may take half of the time, so that a second one usually fits.  The cheapest
    trial comes next, judging by shorter codes of the method; methods known to be expensive come
    last.
    """
    found = Trials()
    _first_split(found, sample, settings, began, progress)
    found.trials.sort(key=lambda trial: (settings.methods.index(trial.method), trial.n_bits))
    n, start = len(found.trials), began
    for split in range(1, settings.n_splits):
        now = perf_counter()
        if now - began + (now - start) > settings.budget:  # the next takes as long as the last
            break
        start = now
        rows = sample.divide(split)
        truth = truth_of(sample, rows[1], settings.metric, settings.k)
        found.ceilings.append(truth.ceiling)
        for done, trial in enumerate(found.trials):
            progress(
                split * n + done, settings.n_splits * n, f"{trial.method}, {trial.n_bits} bits"
            )
            hasher = _hasher(trial.method, trial.n_bits, sample, split)
            _measure(trial, hasher, sample, rows, truth, settings.cutoff)
    return found


def _first_split(
    found: Trials, sample: Sample, settings: AdviceSettings, began: float, progress: Progress
) -> None:
    rows = sample.divide(0)
    truth = truth_of(sample, rows[1], settings.metric, settings.k)
    found.ceilings.append(truth.ceiling)
    queue = _Queue(settings, began)
    for method, n_bits in queue:
        progress(queue.done, settings.n_splits * queue.total, f"{method}, {n_bits} bits")
        hasher = _hasher(method, n_bits, sample, 0)
        learns = sample.labels is not None and hasher._takes_y
        trial = Trial(method, n_bits, learns, hasher)
        start = perf_counter()
        try:
            _measure(trial, hasher, sample, rows, truth, settings.cutoff)
        except MissingExtraError:
            raise
        except (BitternError, np.linalg.LinAlgError) as error:
            found.skipped.append(Skipped(method, (n_bits,), str(error).rstrip(".")))
            continue
        found.trials.append(trial)
        queue.took(method, n_bits, perf_counter() - start)
        if _surely_keeps(trial, truth, sample, settings.target):
            queue.kept(method, n_bits)
    found.skipped += queue.skipped


class _Queue:
    """Pairs of a method and a length, cheapest first; leaves out what the budget cannot pay for."""

    def __init__(self, settings: AdviceSettings, began: float) -> None:
        self._left = {method: list(settings.n_bits) for method in settings.methods}
        self._took: dict[str, list[tuple[int, float]]] = {method: [] for method in settings.methods}
        self._n_kept = dict.fromkeys(settings.methods, 0)
        self._limit, self._began = settings.budget / 2, began
        self.total, self.done = len(settings.methods) * len(settings.n_bits), 0
        self.skipped: list[Skipped] = []

    def took(self, method: str, n_bits: int, seconds: float) -> None:
        """Note how long a trial took."""
        self._took[method].append((n_bits, seconds))

    def kept(self, method: str, n_bits: int) -> None:
        """Note that a length surely keeps the target; after ENOUGH of them, skip longer codes.

        This also skips longer codes of other methods, as long as both or neither learn from labels:
        a user may want one kind without the other.
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
        """Expected seconds of the next length; the first is as slow as the slowest first so far."""
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
            return "no time was left to try it"
        return f"{self._left[method][0]} bits would take about {expected:.0f} s, too long"

    def _skip(self, method: str, reason: str, above: int = 0) -> None:
        longer = tuple(n_bits for n_bits in self._left[method] if n_bits > above)
        if longer:
            self.skipped.append(Skipped(method, longer, reason))
        self._left[method] = [n_bits for n_bits in self._left[method] if n_bits <= above]


def _hasher(method: str, n_bits: int, sample: Sample, split: int) -> Hasher:
    return HASHERS[method](n_bits=n_bits, random_state=sample.random_state + split)


def _measure(
    trial: Trial,
    hasher: Hasher,
    sample: Sample,
    split: tuple[PositionArray, PositionArray],
    truth: SplitTruth,
    cutoff: int,
) -> None:
    """Fit on the training rows, encode queries and database, and add the values of the queries."""
    train, database = split
    start = perf_counter()
    _fit(hasher, sample, train)
    fitted = perf_counter()
    queries = hasher.encode(sample.vectors[sample.queries])
    items = hasher.encode(sample.vectors[database])
    encoded = perf_counter()
    profile = TieProfile.from_codes(queries, items, truth.relevance)
    names = ["ap"] if sample.labels is not None else ["ap", f"recall@{cutoff}"]
    values = [score.per_query for score in evaluate(profile, names).values()]
    for kept, per_query in zip((trial.precision, trial.recall), values, strict=False):
        assert per_query is not None
        kept.append(per_query)
    trial.fit_seconds.append(fitted - start)
    trial.encode_seconds.append((encoded - fitted) / (len(queries) + len(items)))


def _fit(hasher: Hasher, sample: Sample, train: PositionArray) -> None:
    """Fit a hasher; if Ctrl-C stopped it early, stop everything."""
    labels = None if sample.labels is None else sample.labels[train]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*: stopped early", category=UserWarning)
        hasher.fit(sample.vectors[train], labels)
    if hasher.stopped_early_:
        raise KeyboardInterrupt


def _surely_keeps(trial: Trial, truth: SplitTruth, sample: Sample, target: float) -> bool:
    """Whether the whole interval on the queries that choose keeps the target."""
    part = sample.validation
    codes, floats = trial.precision[0][None, part], truth.ceiling[None, part]
    return Resampling(1, codes.shape[1]).share(codes, floats).low >= target


def warm_up(sample: Sample, settings: AdviceSettings) -> None:
    """Compile the kernels, which only the first run needs, so that no trial pays for it."""
    pair = np.eye(2, dtype=bool)
    if sample.labels is None:
        truth = Relevance.from_matrix(pair.astype(int))
    elif sample.labels.ndim == 1:
        truth = Relevance.from_classes([0, 1], [0, 1])
    else:
        truth = Relevance.from_tags(pair, pair)
    for n_bits in settings.n_bits:
        codes = Codes.from_bits(np.zeros((2, n_bits), bool))
        evaluate(TieProfile.from_codes(codes, codes, truth), ["ap", f"recall@{settings.cutoff}"])
