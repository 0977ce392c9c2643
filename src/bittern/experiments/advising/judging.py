"""From what was tried to an advice: shares with intervals, and what searching costs."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import InputError
from bittern.experiments.advising.estimates import Estimate, Resampling
from bittern.experiments.advising.record import Advice, Row, Sizes
from bittern.experiments.advising.rows import Material
from bittern.experiments.advising.speed import search_milliseconds, search_speed
from bittern.experiments.advising.trials import Plan, Trial, Trials

__all__ = ["summed_up"]


def summed_up(found: Trials, material: Material, plan: Plan, began: float) -> Advice:
    """The advice that the trials amount to; searching is timed here."""
    if not found.trials:
        raise InputError(f"advise: nothing could be tried: {found.skipped[0].reason}.")
    ceilings = np.stack(found.ceilings)
    judges = _Judges(material, ceilings)
    rows = tuple(judges.row(trial) for trial in found.trials)
    hashers = {(trial.method, trial.n_bits): trial.hasher for trial in found.trials}
    advice = Advice(
        target=plan.target,
        truth=_kind(material),
        k=plan.k,
        cutoff=plan.cutoff,
        metric=plan.metric,
        ceiling=judges.test.mean(ceilings[:, material.test]),
        rows=rows,
        skipped=tuple(found.skipped),
        sizes=_sizes(material),
        n_splits=len(ceilings),
        budget=plan.budget,
        seconds=0.0,
        random_state=material.random_state,
        speed=None,
        hashers=hashers,
    )
    return _timed(advice, material, began)


class _Judges:
    """The two halves of the queries, each with draws of its own."""

    def __init__(self, material: Material, ceilings: NDArray[np.float64]) -> None:
        n_splits, n_queries = ceilings.shape
        self._parts = material.validation, material.test
        self._ceilings = ceilings
        self.validation = Resampling(n_splits, material.n_validation)
        self.test = Resampling(n_splits, n_queries - material.n_validation)

    def row(self, trial: Trial) -> Row:
        """A trial with its estimates; the times of searching are still to come."""
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

    def _share(
        self, resampling: Resampling, precision: NDArray[np.float64], part: slice
    ) -> Estimate:
        return resampling.share(precision[:, part], self._ceilings[:, part])


def _timed(advice: Advice, material: Material, began: float) -> Advice:
    """With times of searching: of each length once, by codes of its best method."""
    times = {}
    for n_bits in sorted({row.n_bits for row in advice.rows}):
        times[n_bits] = search_milliseconds(*_codes(advice, material, advice.best_of(n_bits)))
    rows = tuple(replace(row, search_milliseconds=times[row.n_bits]) for row in advice.rows)
    speed = search_speed(*_codes(advice, material, advice.recommended))
    return replace(advice, rows=rows, speed=speed, seconds=perf_counter() - began)


def _codes(advice: Advice, material: Material, row: Row) -> tuple[Codes, Codes]:
    """Queries and database of the first split, by the hasher of a row."""
    hasher = advice.hashers[row.method, row.n_bits]
    _, database = material.divide(0)
    return (
        hasher.encode(material.vectors[material.queries]),
        hasher.encode(material.vectors[database]),
    )


def _kind(material: Material) -> str:
    if material.labels is None:
        return "neighbours"
    return "classes" if material.labels.ndim == 1 else "tags"


def _sizes(material: Material) -> Sizes:
    dim = material.vectors.shape[1]
    return Sizes(
        given=material.n_given,
        dim=dim,
        float_megabytes=dim * material.itemsize,
        train=material.n_train,
        validation=material.n_validation,
        test=len(material.queries) - material.n_validation,
        database=material.n_database,
    )
