"""The ways to combine, each from a training side and a test side to fused scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bittern as bt
from evidence.sides import Side

PER_CATEGORY, MANY = 4, 40  # the paper's m, and ten times as many
ORACLE_STEP, ORACLE_REFINEMENTS = 0.25, 2


def by_size(combine: Callable[[Side, Side, int], np.ndarray]) -> Callable[..., np.ndarray]:
    """The method for each number of examples by itself, as the paper trains an SVM for each."""

    def combined(train: Side, test: Side, run: int) -> np.ndarray:
        fused = np.empty(test.scores.shape[1:])
        for n in np.unique(test.sizes):
            fused[test.sizes == n] = combine(train.of_size(n), test.of_size(n), run)
        return fused

    return combined


@by_size
def svm(train: Side, test: Side, run: int) -> np.ndarray:
    """The SVM meta-classifier."""
    return fitted_svm(train, run).combine(test.scores)


@by_size
def large_svm(train: Side, test: Side, run: int) -> np.ndarray:
    """The same on more score vectors."""
    return fitted_svm(train, run, MANY).combine(test.scores)


def fitted_svm(train: Side, run: int, m: int = PER_CATEGORY) -> bt.fusion.SVMFusion:
    """An SVM on score vectors of training queries."""
    fusion = bt.fusion.SVMFusion(m, random_state=run)
    return fusion.fit(train.scores, train.relevant, train.categories)


def predicted(train: Side, test: Side, run: int) -> np.ndarray:
    """Weights predicted for each query, around the SVM's."""
    weights = [fitted_svm(train.of_size(n), run).weights_ for n in np.unique(train.sizes)]
    prior = np.maximum(np.mean(weights, axis=0), 1e-3)
    predictor = bt.fusion.WeightPredictor(random_state=run)
    predictor.fit(train.scores, train.relevant, train.categories, prior=prior / prior.sum())
    return predictor.combine(test.scores)


def oracle(test: Side) -> np.ndarray:
    """AP of each query with its own best weights: a bound, not a method."""
    return bt.fusion.oracle_weights(
        test.scores, test.relevant, step=ORACLE_STEP, n_refinements=ORACLE_REFINEMENTS
    ).ap


def untrained(name: str) -> Callable[[Side, Side, int], np.ndarray]:
    """A method that learns nothing."""
    return lambda train, test, run: bt.fusion.FUSIONS[name](test.scores)


COMBINATIONS: dict[str, Callable[[Side, Side, int], np.ndarray]] = {
    "SVM": svm,
    f"SVM, m = {MANY}": large_svm,
    "CombSUM": untrained("comb-sum"),
    "BordaFuse": untrained("borda"),
    "CombMIN": untrained("comb-min"),
    "CombMAX": untrained("comb-max"),
    "CombMNZ": untrained("comb-mnz"),
    "reciprocal rank": untrained("reciprocal-rank"),
}
