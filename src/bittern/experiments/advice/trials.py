"""Trials: hashers at several lengths on held-out rows, cheapest first, within a time budget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np

from bittern.checks import Float64Array, PositionArray
from bittern.codes import Codes
from bittern.errors import BitternError, MissingExtraError
from bittern.experiments.advice.data import Sample, SplitTruth, truth_of
from bittern.experiments.advice.judging import Resampling
from bittern.experiments.advice.record import Skipped
from bittern.hashing import HASHERS, Hasher
from bittern.kernels import small
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


class _Split(NamedTuple):
    """Training rows and database of one split, and its ground truth."""

    rows: tuple[PositionArray, PositionArray]
    truth: SplitTruth

    @classmethod
    def of(cls, number: int, sample: Sample, settings: AdviceSettings) -> _Split:
        rows = sample.divide(number)
        return cls(rows, truth_of(sample, rows[1], settings.metric, settings.k))


def try_all(sample: Sample, settings: AdviceSettings, began: float, progress: Progress) -> Trials:
    """Try all methods and lengths in a first split, and repeat the trials in more splits.

    The first split may take half of the time, so that a second one usually fits.  The cheapest
    trial comes next, judging by shorter codes of the method; methods known to be expensive come
    last.  If time is left at the end, it goes to trials that the first split had no time for, in
    all splits at once.
    """
    found, queue = Trials(), _Queue(settings, began)
    splits = [_Split.of(0, sample, settings)]
    _try_waiting(found, queue, splits, sample, settings, progress)
    n, start = len(found.trials), began
    for number in range(1, settings.n_splits):
        now = perf_counter()
        if now - began + (now - start) > settings.budget:  # the next takes as long as the last
            break
        start = now
        splits.append(_Split.of(number, sample, settings))
        for done, trial in enumerate(found.trials):
            note = f"{trial.method}, {trial.n_bits} bits"
            progress(number * n + done, settings.n_splits * n, note)
            _measure(trial, sample, splits, settings.cutoff)
    queue.resume(len(splits))
    _try_waiting(found, queue, splits, sample, settings, progress)
    found.skipped += queue.skipped
    found.ceilings = [split.truth.ceiling for split in splits]
    found.trials.sort(key=lambda trial: (settings.methods.index(trial.method), trial.n_bits))
    return found


def _try_waiting(
    found: Trials,
    queue: _Queue,
    splits: Sequence[_Split],
    sample: Sample,
    settings: AdviceSettings,
    progress: Progress,
) -> None:
    """Measure what waits in the queue, in all of these splits, and note what fails."""
    for method, n_bits in queue:
        progress(queue.done, settings.n_splits * queue.total, f"{method}, {n_bits} bits")
        hasher = _hasher(method, n_bits, sample, 0)
        learns = sample.labels is not None and hasher._takes_y
        trial = Trial(method, n_bits, learns, hasher)
        start = perf_counter()
        try:
            while len(trial.precision) < len(splits):
                _measure(trial, sample, splits, settings.cutoff)
        except MissingExtraError:
            raise
        except (BitternError, np.linalg.LinAlgError) as error:
            found.skipped.append(Skipped(method, (n_bits,), str(error).rstrip(".")))
            continue
        found.trials.append(trial)
        queue.took(method, n_bits, (perf_counter() - start) / len(splits))
        if _surely_keeps(trial, splits[0].truth, sample, settings.target):
            queue.kept(method, n_bits)


class _Queue:
    """Pairs of a method and a length, cheapest first; postpones what the time is too short for."""

    def __init__(self, settings: AdviceSettings, began: float) -> None:
        self._left = {method: list(settings.n_bits) for method in settings.methods}
        self._postponed: dict[str, list[int]] = {}
        self._took: dict[str, list[tuple[int, float]]] = {method: [] for method in settings.methods}
        self._n_kept = dict.fromkeys(settings.methods, 0)
        self._budget, self._limit, self._began = settings.budget, settings.budget / 2, began
        self._n_splits = 1
        self.total, self.done = len(settings.methods) * len(settings.n_bits), 0
        self._surpassed: list[Skipped] = []

    def took(self, method: str, n_bits: int, seconds: float) -> None:
        """Note how long a trial took in one split."""
        self._took[method].append((n_bits, seconds))

    def resume(self, n_splits: int) -> None:
        """Take up what was postponed, with all of the time; a trial is now in so many splits."""
        self._left, self._postponed = self._postponed, {}
        self._limit, self._n_splits = self._budget, n_splits

    @property
    def skipped(self) -> list[Skipped]:
        """What was not tried, and why."""
        late = [
            Skipped(method, tuple(lengths), self._no_time(method, lengths), lacked_time=True)
            for method, lengths in self._postponed.items()
        ]
        return self._surpassed + late

    def kept(self, method: str, n_bits: int) -> None:
        """Note that a length surely keeps the target; after ENOUGH of them, skip longer codes.

        This also skips longer codes of other methods, as long as both or neither learn from labels:
        a user may want one kind without the other.
        """
        self._n_kept[method] += 1
        if self._n_kept[method] < ENOUGH:
            return
        for other in self._took:
            if HASHERS[other].needs_y == HASHERS[method].needs_y:
                self._surpass(other, above=n_bits)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        while waiting := [method for method, lengths in self._left.items() if lengths]:
            method = min(waiting, key=lambda m: (m not in CHEAP, self._expected(m, self._left[m])))
            expected = self._n_splits * self._expected(method, self._left[method])
            if self.done and perf_counter() - self._began + expected >= self._limit:
                self._postponed[method] = self._left.pop(method)
                continue
            n_bits = self._left[method].pop(0)
            yield method, n_bits
            self.done += 1

    def _expected(self, method: str, lengths: list[int]) -> float:
        """Expected seconds of the first of these lengths in one split.

        The first of a method is as slow as the slowest first so far.
        """
        took = self._took[method]
        if not took:
            return max((times[0][1] for times in self._took.values() if times), default=0.0)
        n_bits, seconds = took[-1]
        if len(took) == 1:
            return seconds
        per_bit = (seconds - took[-2][1]) / (n_bits - took[-2][0])
        return seconds + max(0.0, per_bit) * (lengths[0] - n_bits)

    def _no_time(self, method: str, lengths: list[int]) -> str:
        if not self._took[method]:
            return "no time was left to try it"
        expected = self._expected(method, lengths)
        return f"{lengths[0]} bits would take about {expected:.0f} s, too long"

    def _surpass(self, method: str, above: int) -> None:
        """Leave out codes longer than those that surely keep the target."""
        for waiting in (self._left, self._postponed):
            longer = tuple(n_bits for n_bits in waiting.get(method, ()) if n_bits > above)
            if longer:
                self._surpassed.append(Skipped(method, longer, SHORTER))
                waiting[method] = [n for n in waiting[method] if n <= above]
        if not self._postponed.get(method, True):
            del self._postponed[method]


def _hasher(method: str, n_bits: int, sample: Sample, split: int) -> Hasher:
    return HASHERS[method](n_bits=n_bits, random_state=sample.random_state + split)


def _measure(trial: Trial, sample: Sample, splits: Sequence[_Split], cutoff: int) -> None:
    """Measure a trial in its next split: fit on the training rows, and encode the others."""
    number = len(trial.precision)
    (train, database), truth = splits[number]
    hasher = trial.hasher if number == 0 else _hasher(trial.method, trial.n_bits, sample, number)
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
    small.use_kernels()
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
