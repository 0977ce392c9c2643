"""From trials to an advice: shares with intervals, and the speed of search."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from bittern.checks import Float64Array
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.experiments.advice.data import N_NEAREST, Sample
from bittern.experiments.advice.record import Advice, Estimate, Row, Sizes, Speed
from bittern.index import FlatIndex, MultiIndex
from bittern.index.base import Index

if TYPE_CHECKING:
    from bittern.experiments.advice.trials import AdviceSettings, Trial, Trials

RESAMPLES = 1000
TAIL = 2.5  # per cent outside a 95 % interval, at each end
ITEMS = 1_000_000  # codes that are searched
QUERIES, REPEATS = 20, 3
FEWEST_INDEXED = 4096  # codes; fewer are always scanned


class Resampling:
    r"""Draws with replacement of splits and of queries, the same for all that is compared.

    Values are ``(n_splits, n_queries)``, NaN if undefined.  Let split s be drawn :math:`w_s` times
    and query q :math:`v_q` times.  The share of the float values f that codes with values c keep is

    .. math:: \frac{\sum_{s, q} w_s v_q \, c_{sq}}{\sum_{s, q} w_s v_q \, f_{sq}}

    so the two values of a query are drawn together.  The interval goes from the 2.5th to the 97.5th
    percentile of 1,000 draws.  With one split, w is 1.

    Reference: [Owen-2007] for drawing rows and columns, [Efron-Tibshirani-1993] for the interval.
    """

    def __init__(self, n_splits: int, n_queries: int, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        self._splits = _draw_counts(rng, n_splits)
        self._queries = _draw_counts(rng, n_queries)

    def share(self, codes: Float64Array, floats: Float64Array) -> Estimate:
        """Mean of the codes' values divided by that of the floats, where both are defined."""
        defined = ~np.isnan(codes) & ~np.isnan(floats)
        part, whole = np.where(defined, codes, 0.0), np.where(defined, floats, 0.0)
        if not whole.sum() > 0:
            return Estimate(np.nan, np.nan, np.nan)
        sums = self._sums(whole)
        shares = np.divide(self._sums(part), sums, out=np.full(len(sums), np.nan), where=sums > 0)
        low, high = np.nanpercentile(shares, [TAIL, 100 - TAIL])
        return Estimate(float(part.sum() / whole.sum()), float(low), float(high))

    def mean(self, values: Float64Array) -> Estimate:
        """Mean of the values that are defined."""
        return self.share(values, np.ones_like(values))

    def _sums(self, values: Float64Array) -> Float64Array:
        return ((self._splits @ values) * self._queries).sum(axis=1)


def judge(found: Trials, sample: Sample, settings: AdviceSettings, began: float) -> Advice:
    """Turn the trials into an advice; search is timed here."""
    if not found.trials:
        raise InputError(f"advise: nothing could be tried: {found.skipped[0].reason}.")
    ceilings = np.stack(found.ceilings)
    estimates = _Estimates(sample, ceilings)
    advice = Advice(
        target=settings.target,
        truth=_truth_name(sample),
        k=settings.k,
        cutoff=settings.cutoff,
        metric=settings.metric,
        ceiling=estimates.test.mean(ceilings[:, sample.test]),
        rows=tuple(estimates.row(trial) for trial in found.trials),
        skipped=tuple(found.skipped),
        sizes=_sizes(sample),
        n_splits=len(ceilings),
        budget=settings.budget,
        seconds=0.0,
        random_state=sample.random_state,
        speed=None,
        hashers={(trial.method, trial.n_bits): trial.hasher for trial in found.trials},
    )
    return _timed(advice, sample, began)


class _Estimates:
    """Estimates over the two halves of the queries, each with its own draws."""

    def __init__(self, sample: Sample, ceilings: Float64Array) -> None:
        n_splits, n_queries = ceilings.shape
        self._parts = sample.validation, sample.test
        self._ceilings = ceilings
        self.validation = Resampling(n_splits, sample.n_validation)
        self.test = Resampling(n_splits, n_queries - sample.n_validation)

    def row(self, trial: Trial) -> Row:
        """A trial with its estimates; search is timed later."""
        precision = np.stack(trial.precision)
        chooses, judges = self._parts
        recall = validation_recall = None
        if trial.recall:
            validation_recall = self.validation.mean(np.stack(trial.recall)[:, chooses])
            recall = self.test.mean(np.stack(trial.recall)[:, judges])
        return Row(
            method=trial.method,
            n_bits=trial.n_bits,
            learns_from_labels=trial.learns_from_labels,
            share=self._share(self.test, precision, judges),
            precision=self.test.mean(precision[:, judges]),
            recall=recall,
            validation_share=self._share(self.validation, precision, chooses),
            validation_recall=validation_recall,
            fit_seconds=median(trial.fit_seconds),
            encode_microseconds=1e6 * median(trial.encode_seconds),
            search_milliseconds=np.nan,
        )

    def _share(self, resampling: Resampling, precision: Float64Array, part: slice) -> Estimate:
        return resampling.share(precision[:, part], self._ceilings[:, part])


def search_milliseconds(queries: Codes, items: Codes) -> float:
    """Milliseconds per query of comparing it with a million codes on one thread.

    The million repeats the given codes, each bit flipped with probability 1/16.  Exact copies
    would equal a query so often that the scan could stop early.
    """
    return _milliseconds(FlatIndex(_like(items)), queries)


def search_speed(queries: Codes, items: Codes) -> Speed | None:
    """Milliseconds of both exact indexes over the given codes; None if there are too few.

    Codes are not repeated here: the speed of tables depends on how near the nearest codes are.
    """
    if len(items) < FEWEST_INDEXED:
        return None
    flat, multi = (_milliseconds(kind(items), queries) for kind in (FlatIndex, MultiIndex))
    return Speed(len(items), flat, multi)


def _draw_counts(rng: np.random.Generator, n: int) -> Float64Array:
    """How often each of n was drawn, ``(RESAMPLES, n)``."""
    drawn = rng.integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * n).reshape(-1, n).astype(np.float64)


def _timed(advice: Advice, sample: Sample, began: float) -> Advice:
    """The advice with search times; each length is timed once, with codes of its best method."""
    times = {}
    for n_bits in sorted({row.n_bits for row in advice.rows}):
        times[n_bits] = search_milliseconds(*_codes(advice, sample, advice.best_of(n_bits)))
    rows = tuple(replace(row, search_milliseconds=times[row.n_bits]) for row in advice.rows)
    speed = search_speed(*_codes(advice, sample, advice.recommended))
    return replace(advice, rows=rows, speed=speed, seconds=perf_counter() - began)


def _codes(advice: Advice, sample: Sample, row: Row) -> tuple[Codes, Codes]:
    """Queries and database of the first split, encoded by the hasher of a row."""
    hasher = advice.hashers[row.method, row.n_bits]
    _, database = sample.divide(0)
    return (
        hasher.encode(sample.vectors[sample.queries]),
        hasher.encode(sample.vectors[database]),
    )


def _truth_name(sample: Sample) -> str:
    if sample.labels is None:
        return "neighbours"
    return "classes" if sample.labels.ndim == 1 else "tags"


def _sizes(sample: Sample) -> Sizes:
    dim = sample.vectors.shape[1]
    return Sizes(
        given=sample.n_given,
        dim=dim,
        float_megabytes=dim * sample.itemsize,
        train=sample.n_train,
        validation=sample.n_validation,
        test=len(sample.queries) - sample.n_validation,
        database=sample.n_database,
    )


def _like(codes: Codes) -> Codes:
    """ITEMS codes that are like the given ones."""
    rng = np.random.default_rng(0)
    words = np.resize(codes.words, (ITEMS, codes.words.shape[1]))
    flipped = np.full(words.shape, ~np.uint64(0))
    for _ in range(4):
        flipped &= rng.integers(0, 1 << 64, words.shape, np.uint64)
    used = codes.n_bits % 64
    if used:  # padding stays zero
        flipped[:, -1] &= np.uint64((1 << used) - 1)
    return Codes(words ^ flipped, codes.n_bits)


def _milliseconds(index: Index, queries: Codes) -> float:
    """Median of a few times, after a first search that compiles and warms up."""
    some = queries[:QUERIES]
    index.search(some, N_NEAREST, n_threads=1)
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        index.search(some, N_NEAREST, n_threads=1)
        times.append(perf_counter() - start)
    return 1000 * float(np.median(times)) / len(some)
