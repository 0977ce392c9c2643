"""From trials to an advice: shares with intervals, measured and for the user's own size."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
from scipy.special import betaincinv

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.experiments.advice.data import Sample
from bittern.experiments.advice.extrapolation import (
    TAIL,
    predict_ratios,
    predict_shares,
)
from bittern.experiments.advice.record import FEWEST_SIZES, Advice, Estimate, Row, Shares, Sizes
from bittern.experiments.advice.splits import STORES
from bittern.experiments.advice.trials import AdviceSettings, Trial, Trials

RESAMPLES = 1000


class Resampling:
    r"""Draws with replacement of splits and of queries, the same for all that is compared.

    Values are ``(n_splits, n_queries)``, NaN if undefined.  Let split s be drawn :math:`w_s` times
    and query q :math:`v_q` times.  The share of the float values f that codes with values c keep is

    .. math:: \frac{\sum_{s, q} w_s v_q \, c_{sq}}{\sum_{s, q} w_s v_q \, f_{sq}}

    so the two values of a query are drawn together.  The interval goes from the 2.5th to the 97.5th
    percentile of 1,000 draws.  With one split, w is 1.

    Reference: [Owen-2007] for drawing rows and columns, [Efron-Tibshirani-1993] for the interval.
    """

    def __init__(self, n_queries: int, random_state: int = 0) -> None:
        self._queries = _draw_counts(np.random.default_rng([random_state, 0]), n_queries)
        self._random_state = random_state

    def share(self, codes: Float64Array, floats: Float64Array) -> Estimate:
        """Mean of the codes' values divided by that of the floats, where both are defined."""
        value, draws = self.draws(codes[:, :, None], floats)
        return interval(value, draws)[0]

    def mean(self, values: Float64Array) -> Estimate:
        """Mean of the values that are defined."""
        return self.share(values, np.ones_like(values))

    def draws(self, codes: Float64Array, floats: Float64Array) -> tuple[Float64Array, Float64Array]:
        """The shares of m columns ``(n_splits, n_queries, m)`` of codes, and draws of them."""
        defined = ~np.isnan(codes).any(axis=2) & ~np.isnan(floats)
        both = np.concatenate([codes, floats[:, :, None]], axis=2)
        both = np.where(defined[:, :, None], both, 0.0)
        if not both[:, :, -1].sum() > 0:
            m = codes.shape[2]
            return np.full(m, np.nan), np.full((RESAMPLES, m), np.nan)
        whole = both.sum(axis=(0, 1))
        sums = self._sums(both)
        return whole[:-1] / whole[-1], _ratio(sums[:, :-1], sums[:, -1:])

    def _sums(self, values: Float64Array) -> Float64Array:
        """Sums over the drawn splits and queries, ``(RESAMPLES, m)``."""
        splits = _draw_counts(np.random.default_rng([self._random_state, 1]), len(values))
        return sum(
            (splits[:, [s]] * (self._queries @ part) for s, part in enumerate(values)),
            start=np.zeros((RESAMPLES, values.shape[2])),
        )


def interval(values: Float64Array, draws: Float64Array) -> list[Estimate]:
    """Each value with the interval of its draws ``(RESAMPLES, m)``; NaN if undefined."""
    if np.isnan(values).all():
        return [Estimate(np.nan, np.nan, np.nan)] * len(values)
    low, high = np.nanpercentile(draws, [TAIL, 100 - TAIL], axis=0)
    return [Estimate(*map(float, three)) for three in zip(values, low, high, strict=True)]


def judge(found: Trials, sample: Sample, settings: AdviceSettings, began: float) -> Advice:
    """Turn the trials into an advice."""
    if not found.trials:
        raise InputError(f"advise: nothing could be tried: {found.skipped[0].reason}.")
    order = {one: i for i, one in enumerate(settings.contenders)}
    trials = sorted(found.trials, key=lambda trial: (trial.n_bytes, order[trial.contender]))
    estimates = _Estimates(found, sample, settings)
    return Advice(
        target=settings.target,
        truth=sample.truth,
        k=settings.k,
        factors=settings.factors,
        most=settings.most,
        store=settings.store,
        items=settings.items,
        metric=sample.metric,
        ceiling=estimates.ceiling(),
        rows=tuple(estimates.row(trial) for trial in trials),
        skipped=tuple(found.skipped),
        sizes=_sizes(sample, found),
        budget=settings.budget,
        seconds=perf_counter() - began,
        stopped=found.stopped,
        random_state=sample.random_state,
        models=tuple(trial.model for trial in trials),
    )


class _Estimates:
    """Estimates over the two halves of the queries, each with its own draws."""

    def __init__(self, found: Trials, sample: Sample, settings: AdviceSettings) -> None:
        self._found, self._sample, self._settings = found, sample, settings
        self._validation = Resampling(sample.n_validation)
        self._test = Resampling(len(sample.queries) - sample.n_validation)

    def ceiling(self) -> Estimate:
        """Mean relevant items among the first k by the vectors, as a share of k."""
        size = max(n for split, n in self._found.ceilings if split == 0)
        values = self._found.ceilings[0, size][None, self._sample.test]
        return self._test.mean(values / self._settings.k)

    def row(self, trial: Trial) -> Row:
        """A trial with its estimates."""
        return Row(
            method=trial.contender.method,
            n_bits=trial.contender.n_bits or 8 * trial.n_bytes,
            n_bytes=trial.n_bytes,
            columns=trial.contender.columns,
            learns_from_labels=trial.learns_from_labels,
            shares=self._shares(trial, self._test, self._sample.test),
            validation_shares=self._shares(trial, self._validation, self._sample.validation),
            n_measured=trial.largest,
            n_splits=trial.n_splits,
            fit_seconds=trial.fit_seconds,
            encode_microseconds=1e6 * trial.encode_seconds,
            search_milliseconds=1e3 * trial.search_seconds,
        )

    def _shares(self, trial: Trial, resampling: Resampling, part: slice) -> Shares:
        """Shares by store and factor: measured at each size, and for the user's size."""
        sizes = sorted({size for _, size in trial.counts})
        values, draws, totals = [], [], []
        for size in sizes:
            numbers = sorted(split for split, n in trial.counts if n == size)
            counts = np.stack([trial.counts[number, size][part] for number in numbers])
            floats = np.stack([self._found.ceilings[number, size][part] for number in numbers])
            value, drawn = resampling.draws(counts.reshape(*counts.shape[:2], -1), floats)
            values.append(value)
            draws.append(drawn)
            totals.append(np.nansum(floats))
        parts = zip(values, draws, totals, strict=True)
        measured = [self._bounded(interval(v, d), float(total)) for v, d, total in parts]
        expected = measured[-1]
        if self._settings.items > sizes[-1] and len(sizes) >= FEWEST_SIZES:
            expected = self._predicted(sizes, np.stack(values), np.stack(draws), np.array(totals))
        return Shares(
            expected=_by_store(expected),
            measured={size: _by_store(found) for size, found in zip(sizes, measured, strict=True)},
        )

    def _bounded(self, found: list[Estimate], total: float) -> list[Estimate]:
        """Shares of ``total`` relevant items; if none was missed, with Jeffreys' bound.

        A share of judged or labelled items may be above 1; it has the bound if all draws are 1.
        """
        if total == 0:  # the vectors found nothing
            return found
        least, half = float(betaincinv(total + 0.5, 0.5, TAIL / 100)), 0.5 / total
        can_exceed = self._sample.truth != "neighbours"

        def is_full(one: Estimate) -> bool:
            if can_exceed:
                return 1 - half < one.low and one.high < 1 + half
            return one.value > 1 - half

        return [replace(one, low=min(one.low, least)) if is_full(one) else one for one in found]

    def _predicted(
        self, sizes: list[int], values: Float64Array, draws: Float64Array, totals: Float64Array
    ) -> list[Estimate]:
        """Shares ``(n_sizes, n_stores * n_factors)`` of measured sizes, for the user's size."""
        n = self._settings.items
        if self._sample.truth != "neighbours":
            return self._bounded(predict_ratios(sizes, values, draws, n), float(totals[-1]))
        cuts = [self._settings.k * factor for factor in self._settings.factors]
        out = []
        for i in range(len(STORES)):
            some = slice(i * len(cuts), (i + 1) * len(cuts))
            out += predict_shares(sizes, cuts, values[:, some], draws[:, :, some], totals, n)
        return out


def _by_store(estimates: list[Estimate]) -> dict[str, tuple[Estimate, ...]]:
    """Estimates for each factor, by what rescored."""
    n = len(estimates) // len(STORES)
    return {name: tuple(estimates[i * n : (i + 1) * n]) for i, name in enumerate(STORES)}


def _ratio(parts: Float64Array, wholes: Float64Array) -> Float64Array:
    return np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)


def _draw_counts(rng: np.random.Generator, n: int) -> Float64Array:
    """How often each of n was drawn, ``(RESAMPLES, n)``."""
    drawn = rng.integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * n).reshape(-1, n).astype(np.float64)


def _sizes(sample: Sample, found: Trials) -> Sizes:
    return Sizes(
        given=len(sample.given),
        dim=sample.dim,
        float_bytes=sample.dim * 4,
        train=sample.n_train,
        validation=sample.n_validation,
        test=len(sample.queries) - sample.n_validation,
        database=max(size for _, size in found.ceilings),
    )
