"""Trials: contenders on held-out rows, the most informative first, within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from bittern.checks import Float32Array, Float64Array
from bittern.codes import Codes
from bittern.errors import BitternError, MissingExtraError
from bittern.experiments.advice.contenders import (
    Contender,
    Model,
    Stored,
    bytes_of,
    estimates,
)
from bittern.experiments.advice.counting import Rescorer, count_relevant
from bittern.experiments.advice.data import LARGEST_DATABASE, Sample, sizes_up_to
from bittern.experiments.advice.record import MILLION, Skipped
from bittern.experiments.advice.schedule import Schedule
from bittern.experiments.advice.splits import Split
from bittern.index import FlatIndex
from bittern.index.quantised_index import QuantisedIndex
from bittern.kernels import small
from bittern.quantise import Int8, QuantisedCodes, Quantiser, Sign
from bittern.relevance import Relevance

Progress = Callable[[int, int, str], None]  # called with (done, total, what is being done)
FIRST_SHARE = 0.7  # of the budget, for the first measurement of everything
GROWN_SHARE = 0.9  # of the budget, for larger databases too
NO_TIME = "the time was over"
TIMED_QUERIES, TIMED_ITEMS = 20, 10_000


@dataclass(frozen=True, slots=True)
class AdviceSettings:
    """What is tried, and for how long."""

    contenders: tuple[Contender, ...]  # in this order
    factors: tuple[int, ...]  # of rescoring, ascending from 1
    target: float
    k: int
    items: int  # of the database that the answer is about
    most: int  # factor of rescoring that the answer may use
    store: str  # of the vectors that rescore
    n_splits: int  # at most
    budget: float  # seconds


@dataclass(slots=True, eq=False)
class Trial:
    """One contender: what it found for each query in each split and database, and its costs."""

    contender: Contender
    learns_from_labels: bool
    model: Model  # as fitted in the first split
    n_bytes: int
    #: By number of split and size of database, ``(n_queries, n_stores, n_factors)``.
    counts: dict[tuple[int, int], Float64Array] = field(default_factory=dict)
    seconds: float = 0.0  # of the last measurement, all in all
    fit_seconds: float = np.nan
    encode_seconds: float = np.nan  # per vector
    search_seconds: float = np.nan  # per query and a million items

    @property
    def n_splits(self) -> int:
        """How many splits it was measured in."""
        return len({split for split, _ in self.counts})

    @property
    def largest(self) -> int:
        """The size of the largest database."""
        return max(size for _, size in self.counts)


@dataclass(slots=True)
class Trials:
    """Everything that was tried, what the vectors find, and what was left out."""

    trials: list[Trial] = field(default_factory=list)
    ceilings: dict[tuple[int, int], Float64Array] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    stopped: bool = False  # by Ctrl-C


def try_all(sample: Sample, settings: AdviceSettings, began: float, progress: Progress) -> Trials:
    """Measure everything once, then in a larger database, then in more splits, as time allows.

    After Ctrl-C, what was measured until then is returned.
    """
    work = _Work(sample, settings, began, progress)
    try:
        work.run()
    except KeyboardInterrupt:
        if not work.found.trials:
            raise
        work.found.stopped = True
    work.note_what_is_left()
    return work.found


class _Work:
    """The trials so far, and the time that is left."""

    def __init__(
        self, sample: Sample, settings: AdviceSettings, began: float, progress: Progress
    ) -> None:
        self._sample, self._settings, self._began = sample, settings, began
        self._progress = progress
        self._waiting = list(settings.contenders)
        self._schedule = Schedule(settings.budget, began)
        self._split_seconds = 0.0  # of the last one
        self._done, self._total = 0, len(settings.contenders)
        self.found = Trials()

    def run(self) -> None:
        """Measure in order of what tells most."""
        sample, settings = self._sample, self._settings
        fewest = sample.fewest_searched(settings.k)
        sizes = sizes_up_to(sample.n_database, fewest)
        split = self._split(0, sizes)
        self._try_waiting(split, FIRST_SHARE)
        self._grow(fewest)
        self._try_waiting(split, 1.0)
        for number in range(1, settings.n_splits):
            if not self._repeat(number, sizes):
                break

    def note_what_is_left(self) -> None:
        """List what there was no time for."""
        self.found.skipped += [
            Skipped(one.method, one.n_bits, NO_TIME, lacked=self._schedule.expected(one))
            for one in self._waiting
        ]

    def _try_waiting(self, split: Split, share: float) -> None:
        """Measure what waits and fits into this share of the budget; the first one always does."""
        later = []
        while self._waiting:
            one = self._waiting.pop(0)
            expected = self._schedule.expected(one)
            if self.found.trials and not self._schedule.has_time(expected, share):
                later.append(one)
                continue
            try:
                self._try(one, split)
            except KeyboardInterrupt:
                self._waiting = [*later, one, *self._waiting]
                raise
        self._waiting = later

    def _try(self, one: Contender, split: Split) -> None:
        """Measure a contender in the first split, and note why if it cannot be."""
        self._show(one.title)
        start = perf_counter()
        try:
            trial = measure(one, split, self._sample, self._settings)
        except MissingExtraError:
            raise
        except (BitternError, np.linalg.LinAlgError) as error:
            self.found.skipped.append(Skipped(one.method, one.n_bits, str(error).rstrip(".")))
            return
        trial.seconds = perf_counter() - start
        self._schedule.note(one, trial.seconds)
        self.found.trials.append(trial)

    def _grow(self, fewest: int) -> None:
        """Measure in the largest database, with the same models, those that matter most first."""
        sample, schedule = self._sample, self._schedule
        largest = min(sample.n_searchable, LARGEST_DATABASE)
        ratio = largest / sample.n_database
        if ratio < 1.5 or not schedule.has_time(ratio * self._split_seconds, GROWN_SHARE):
            return
        sizes = sizes_up_to(largest, fewest, begin=sample.n_database // 2)
        split = self._split(0, sizes)
        for trial in most_telling(self.found.trials):
            if schedule.has_time(ratio * (trial.seconds - trial.fit_seconds), GROWN_SHARE):
                self._show(f"{trial.contender.title} among {largest:,}")
                encode_and_count(trial, trial.model, split, sample, self._settings)

    def _repeat(self, number: int, sizes: tuple[int, ...]) -> bool:
        """Measure again in another split while time is left; whether it was for all."""
        quickest = min(trial.seconds for trial in self.found.trials)
        if not self._schedule.has_time(self._split_seconds + quickest):
            return False
        split = self._split(number, sizes)
        complete = True
        for trial in most_telling(self.found.trials):
            if not self._schedule.has_time(trial.seconds):
                complete = False
                continue
            self._show(f"{trial.contender.title}, split {number + 1}")
            seed = self._sample.random_state + number
            model = trial.contender.fit(split.train, split.train_labels, self._sample.metric, seed)
            encode_and_count(trial, model, split, self._sample, self._settings)
        return complete

    def _split(self, number: int, sizes: tuple[int, ...]) -> Split:
        start = perf_counter()
        split = Split.of(number, self._sample, sizes, self._settings.k)
        self._split_seconds = perf_counter() - start
        for size, ceiling in zip(sizes, split.ceilings, strict=True):
            self.found.ceilings[number, size] = ceiling
        return split

    def _show(self, note: str) -> None:
        """Progress is that of the budget; without a limit, that of the first measurements."""
        budget = self._settings.budget
        if np.isfinite(budget):
            self._progress(int(min(perf_counter() - self._began, budget)), int(budget) or 1, note)
        else:
            self._progress(min(self._done, self._total - 1), self._total, note)
        self._done += 1


def measure(one: Contender, split: Split, sample: Sample, settings: AdviceSettings) -> Trial:
    """Fit a contender on training rows, and count what it finds in databases of other rows."""
    start = perf_counter()
    model = one.fit(split.train, split.train_labels, sample.metric, sample.random_state)
    seconds = perf_counter() - start
    learns = split.train_labels is not None and bool(getattr(model, "_takes_y", False))
    trial = Trial(one, learns, model, n_bytes=0, fit_seconds=seconds)
    stored = encode_and_count(trial, model, split, sample, settings)
    trial.n_bytes = bytes_of(stored)
    trial.search_seconds = _search_seconds(model, one.cut(sample.queries), stored, settings.k)
    return trial


def encode_and_count(
    trial: Trial, model: Model, split: Split, sample: Sample, settings: AdviceSettings
) -> Stored:
    """Encode the items of a split, and add what a model finds in each size of database."""
    queries = trial.contender.cut(sample.queries)
    start = perf_counter()
    stored: Stored = model.encode(trial.contender.cut(split.items))
    trial.encode_seconds = (perf_counter() - start) / len(split.items)
    counted = count_relevant(
        lambda some: estimates(model, queries[some], stored),
        sample.queries,
        split.sizes,
        split.truths,
        split.rescorers,
        [factor * settings.k for factor in settings.factors],
        settings.k,
    )
    for size, found in zip(split.sizes, counted, strict=True):
        trial.counts[split.number, size] = found
    return stored


def most_telling(trials: Iterable[Trial]) -> list[Trial]:
    """Trials that no other one beats with fewer bytes, then the others; each by bytes."""

    def quality(trial: Trial) -> Float64Array:
        found = trial.counts[0, min(size for split, size in trial.counts if split == 0)]
        return np.nansum(found[:, 0], axis=0)  # by factor

    values = [(trial, quality(trial)) for trial in trials]

    def is_beaten(one: Trial, value: Float64Array) -> bool:
        return any(
            other.n_bytes <= one.n_bytes and (better >= value).all() and (better > value).any()
            for other, better in values
        )

    ranked = sorted(values, key=lambda pair: (is_beaten(*pair), pair[0].n_bytes))
    return [trial for trial, _ in ranked]


def warm_up(sample: Sample, k: int) -> None:
    """Compile what only the first run needs, so that no trial pays for it."""
    small.use_kernels()
    few = sample.queries[: max(20, k)]
    sizes, rescorer = (len(few),), Rescorer.of_floats(few)
    truth = Relevance.from_neighbours(few, few, 1)
    count_relevant(lambda some: few[some] @ few.T, few, sizes, (truth,), (rescorer,), (1,), 1)
    model = Int8().fit(few)
    _search_seconds(model, few, model.encode(few), 1)
    codes = Codes.from_bits(few > 0)
    FlatIndex(codes).search(codes[:1], 1)


def _search_seconds(model: Model, queries: Float32Array, stored: Stored, k: int) -> float:
    """Seconds per query of scanning a million items on this machine.

    A scan takes time in proportion to the items, so only some are scanned.
    """
    n = TIMED_ITEMS
    rows = np.arange(n) % len(stored)
    asked = queries[:TIMED_QUERIES]
    if isinstance(model, Quantiser) and not isinstance(model, Sign):
        assert isinstance(stored, QuantisedCodes)
        index = QuantisedIndex(model, stored[rows])
        seconds = _fastest(lambda: index.search(asked, k))
    else:  # bits, compared as binary indexes do
        flat, codes = FlatIndex(_like(_as_codes(stored)[rows])), _as_codes(model.encode(asked))
        seconds = _fastest(lambda: flat.search(codes, k))
    return seconds / len(asked) * MILLION / n


def _fastest(search: Callable[[], object]) -> float:
    """The shorter of two times; the first one warms up."""
    times = []
    for _ in range(2):
        start = perf_counter()
        search()
        times.append(perf_counter() - start)
    return min(times)


def _as_codes(stored: Stored) -> Codes:
    if isinstance(stored, Codes):
        return stored
    return Codes.from_bits(np.unpackbits(stored.bytes, axis=1).astype(bool))


def _like(codes: Codes) -> Codes:
    """Codes with each bit flipped with probability 1/16; copies would let a scan stop early."""
    rng = np.random.default_rng(0)
    flipped = np.full(codes.words.shape, ~np.uint64(0))
    for _ in range(4):
        flipped &= rng.integers(0, 1 << 64, flipped.shape, np.uint64)
    used = codes.n_bits % 64
    if used:  # padding stays zero
        flipped[:, -1] &= np.uint64((1 << used) - 1)
    return Codes(codes.words ^ flipped, codes.n_bits)
