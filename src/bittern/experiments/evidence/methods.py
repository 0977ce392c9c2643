"""Methods of the paradigm "evidence": single features, combinations, and oracles as bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.errors import InputError, UnknownNameError
from bittern.experiments.evidence.scores import PartitionScores
from bittern.experiments.evidence.sources import is_source
from bittern.features import FEATURES
from bittern.fusion import (
    FUSIONS,
    RasterFusion,
    SVMFusion,
    WeightPredictor,
    oracle_weights,
    weighted_sum,
)
from bittern.registry import Registry

#: Parameters that every method has.
OPTIONS = ("features", "best", "k", "n_negatives")
NOT_PARAMETERS = ("self", "scores", "relevant", "random_state", "n_threads")
LEAST_PRIOR = 1e-3  # replaces weights of an SVM that are not positive


class FusedScores(NamedTuple):
    """Scores ``(queries, items)``, larger is better, and what was learned, in plain values."""

    scores: NDArray[np.floating]
    learned: dict[str, Any]


TrainingScores = PartitionScores | None  # None if the method learns nothing
Parameters = dict[str, Any]  # the method's own parameters
Combine = Callable[[TrainingScores, PartitionScores, Parameters, int], FusedScores]


@dataclass(frozen=True, slots=True)
class RankingMethod:
    """How a method ranks the test partition; ``combine`` gets training scores if it ``learns``."""

    combine: Combine
    parameters: tuple[str, ...] = ()
    learns: bool = False
    is_oracle: bool = False
    is_single: bool = False


def find_method(name: str) -> RankingMethod:
    """The method of that name: a source, a fusion, or one of :data:`LEARNED`."""
    if is_source(name):
        return RankingMethod(_single, is_single=True)
    if ":" in name or name in FUSIONS:
        return RankingMethod(_untrained(name), _parameters(FUSIONS.find(name)))
    if name in LEARNED:
        return LEARNED[name]
    known = Registry("feature or combination", dict.fromkeys((*FEATURES, *FUSIONS, *LEARNED)))
    raise UnknownNameError(known.refusal(name))


def _parameters(called: Callable[..., Any]) -> tuple[str, ...]:
    names = inspect.signature(called).parameters
    return tuple(name for name in names if name not in NOT_PARAMETERS)


def _single(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    return FusedScores(test.scores[0], {})


def _untrained(name: str) -> Combine:
    def combine(
        train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
    ) -> FusedScores:
        return FusedScores(_fused(name, test, given), {})

    return combine


def _fused(name: str, test: PartitionScores, given: Parameters) -> NDArray[np.floating]:
    fused = np.asarray(FUSIONS.find(name)(test.scores, **given))
    if fused.shape != test.scores.shape[1:] or fused.dtype.kind != "f":
        raise InputError(
            f"{name}: must return floats of shape {test.scores.shape[1:]}, "
            f"got {fused.dtype} of shape {fused.shape}."
        )
    return fused


def _svm(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    """One SVM for each number of examples, as in 3.2 of [Yavlinsky-2004]."""
    scores, weights = _combine_folds(
        _folds(train, test, by_size=True),
        test,
        lambda queries: _fit_svm(queries, given, random_state),
        lambda fusion, _: fusion.weights_,
    )
    return FusedScores(scores, {"weights": weights})


def _topic_svm(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    """An SVM for each topic, from its own judgements in the training partition (4.2)."""
    scores, weights = _combine_folds(
        _own_folds(train, test),
        test,
        lambda queries: _fit_svm(queries, given, random_state),
        lambda fusion, _: fusion.weights_,
    )
    return FusedScores(scores, {"weights": weights})


def _raster(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    """The same weights for all queries."""
    scores, weights = _combine_folds(
        _folds(train, test, by_size=False),
        test,
        lambda queries: RasterFusion(**given).fit(queries.scores, queries.relevant),
        lambda fusion, _: fusion.weights_,
    )
    return FusedScores(scores, {"weights": weights})


def _predicted(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    """Weights predicted for each query, close to those of the SVMs."""

    def fit(queries: PartitionScores) -> WeightPredictor:
        predictor = WeightPredictor(random_state=random_state, **given)
        prior = _prior(queries, random_state)
        return predictor.fit(queries.scores, queries.relevant, queries.categories, prior=prior)

    scores, weights = _combine_folds(
        _folds(train, test, by_size=False),
        test,
        fit,
        lambda predictor, scores: predictor.weights(scores).mean(axis=0),
    )
    return FusedScores(scores, {"mean_weights": weights})


def _fixed_oracle(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    """Weights of the raster, learned from the same queries that they are measured on."""
    fusion = RasterFusion(**given).fit(test.scores, test.relevant)
    return FusedScores(
        fusion.combine(test.scores), {"weights": {ALL: _named(test.names, fusion.weights_)}}
    )


def _oracle(
    train: TrainingScores, test: PartitionScores, given: Parameters, random_state: int
) -> FusedScores:
    """The best weights for each single query."""
    found = oracle_weights(test.scores, test.relevant, **given)
    # If nothing is relevant, the weights are NaN; any will do, because AP is undefined.
    weights = np.where(np.isnan(found.weights), 1.0, found.weights)
    scores = weighted_sum(test.scores, weights=weights, normalise=given.get("normalise", "zscore"))
    mean = _named(test.names, np.nanmean(found.weights, axis=0))
    return FusedScores(scores, {"mean_weights": {ALL: mean}})


#: Methods that see judgements, by name.
LEARNED: Registry[RankingMethod] = Registry(
    "learned combination",
    {
        "svm": RankingMethod(_svm, _parameters(SVMFusion), learns=True),
        "topic-svm": RankingMethod(_topic_svm, _parameters(SVMFusion), learns=True),
        "raster": RankingMethod(_raster, _parameters(RasterFusion), learns=True),
        "predicted-weights": RankingMethod(_predicted, _parameters(WeightPredictor), learns=True),
        "oracle-raster": RankingMethod(_fixed_oracle, _parameters(RasterFusion), is_oracle=True),
        "oracle": RankingMethod(_oracle, _parameters(oracle_weights), is_oracle=True),
    },
)

ALL = "all queries"


class _Fold(NamedTuple):
    """Training queries to learn from, and the test queries to apply it to."""

    name: str
    train: PartitionScores
    test: NDArray[np.bool_]  # (queries,)


def _folds(train: TrainingScores, test: PartitionScores, *, by_size: bool) -> Iterator[_Fold]:
    """Leave each category out in turn if the scores say so; otherwise by size, or all at once."""
    assert train is not None
    if test.in_turn:
        for category in np.unique(test.categories):
            others = train.categories != category
            yield _Fold(f"all but {category}", train.some(others), test.categories == category)
    elif by_size:
        for n in np.unique(test.sizes):
            yield _Fold(f"{n} examples", train.some(train.sizes == n), test.sizes == n)
    else:
        yield _Fold(ALL, train, np.ones(len(test.sizes), bool))


def _own_folds(train: TrainingScores, test: PartitionScores) -> Iterator[_Fold]:
    """Each category by itself, and queries of each size."""
    assert train is not None
    for category, n in np.unique(np.stack([test.categories, test.sizes], axis=1), axis=0):
        same, own = ((side.categories == category) & (side.sizes == n) for side in (train, test))
        yield _Fold(f"{category}, {n} examples", train.some(same), own)


def _combine_folds(
    folds: Iterator[_Fold],
    test: PartitionScores,
    fit: Callable[[PartitionScores], Any],
    weights_of: Callable[[Any, Float32Array], Float64Array],
) -> tuple[Float64Array, dict[str, Any]]:
    """Scores of the models fitted on each fold, and their weights by the name of the fold."""
    scores, weights = np.empty(test.scores.shape[1:]), {}
    for fold in folds:
        model, queries = fit(fold.train), test.scores[:, fold.test]
        scores[fold.test] = model.combine(queries)
        weights[fold.name] = _named(test.names, weights_of(model, queries))
    return scores, weights


def _fit_svm(queries: PartitionScores, given: Parameters, random_state: int) -> SVMFusion:
    fusion = SVMFusion(random_state=random_state, **given)
    return fusion.fit(queries.scores, queries.relevant, queries.categories)


def _prior(queries: PartitionScores, random_state: int) -> Float64Array:
    """Mean weights of the SVMs for each number of examples, at least LEAST_PRIOR."""
    weights = [
        _fit_svm(queries.some(queries.sizes == n), {}, random_state).weights_
        for n in np.unique(queries.sizes)
    ]
    return np.maximum(np.mean(weights, axis=0), LEAST_PRIOR)


def _named(names: tuple[str, ...], weights: Float64Array) -> dict[str, float]:
    return dict(zip(names, weights.tolist(), strict=True))
