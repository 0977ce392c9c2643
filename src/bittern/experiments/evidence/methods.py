"""The ways to rank: one feature alone, features combined, and oracles that bound them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.errors import UnknownNameError
from bittern.experiments.evidence.sides import Side
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

__all__ = ["OPTIONS", "Fused", "Way", "way_of"]

#: What every method may be given besides its own parameters.
OPTIONS = ("features", "best", "k", "n_negatives")
APART = ("self", "scores", "relevant", "random_state", "n_threads")  # not for a protocol to say
LEAST_PRIOR = 1e-3  # of an SVM's weight that is not positive

Given = Mapping[str, Any]


class Fused(NamedTuple):
    """Scores ``(queries, items)``, larger is better, and what was learned in plain values."""

    scores: NDArray[np.floating]
    learned: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """How a method ranks the test side; one that learns nothing is given no training side."""

    combine: Callable[[Side | None, Side, Given, int], Fused]
    parameters: tuple[str, ...] = ()
    learns: bool = False
    is_oracle: bool = False
    is_alone: bool = False


def way_of(name: str) -> Way:
    """The way of that name: a feature, a fusion, or one of :data:`LEARNED`."""
    if name in FEATURES:
        return Way(_alone, is_alone=True)
    if name in FUSIONS:
        return Way(_untrained(name), _parameters(FUSIONS[name]))
    if name in LEARNED:
        return LEARNED[name]
    known = Registry("feature or combination", dict.fromkeys((*FEATURES, *FUSIONS, *LEARNED)))
    raise UnknownNameError(known.refusal(name))


def _parameters(called: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(called).parameters if name not in APART)


def _alone(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
    return Fused(test.scores[0], {})


def _untrained(name: str) -> Callable[[Side | None, Side, Given, int], Fused]:
    def combine(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
        return Fused(FUSIONS[name](test.scores, **given), {})

    return combine


def _svm(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
    """An SVM for each number of examples, as in 3.2 of [Yavlinsky-2004]."""
    scores, learned = np.empty(test.scores.shape[1:]), {}
    for fold in _folds(train, test, by_size=True):
        fusion = _fitted_svm(fold.train, given, random_state)
        scores[fold.asked] = fusion.combine(test.scores[:, fold.asked])
        learned[fold.name] = _named(test.names, fusion.weights_)
    return Fused(scores, {"weights": learned})


def _raster(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
    """The same weights for queries of every size."""
    scores, learned = np.empty(test.scores.shape[1:]), {}
    for fold in _folds(train, test, by_size=False):
        fusion = RasterFusion(**given).fit(fold.train.scores, fold.train.relevant)
        scores[fold.asked] = fusion.combine(test.scores[:, fold.asked])
        learned[fold.name] = _named(test.names, fusion.weights_)
    return Fused(scores, {"weights": learned})


def _predicted(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
    """Weights predicted for each query, around those of SVMs."""
    scores, learned = np.empty(test.scores.shape[1:]), {}
    for fold in _folds(train, test, by_size=False):
        side = fold.train
        predictor = WeightPredictor(random_state=random_state, **given).fit(
            side.scores, side.relevant, side.categories, prior=_prior(side, random_state)
        )
        asked = test.scores[:, fold.asked]
        scores[fold.asked] = predictor.combine(asked)
        learned[fold.name] = _named(test.names, predictor.weights(asked).mean(axis=0))
    return Fused(scores, {"mean_weights": learned})


def _fixed_oracle(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
    """The raster's weights, learned from the very queries that it is measured on."""
    fusion = RasterFusion(**given).fit(test.scores, test.relevant)
    return Fused(
        fusion.combine(test.scores), {"weights": {ALL: _named(test.names, fusion.weights_)}}
    )


def _oracle(train: Side | None, test: Side, given: Given, random_state: int) -> Fused:
    """The best weights of each query by itself."""
    found = oracle_weights(test.scores, test.relevant, **given)
    weights = np.where(np.isnan(found.weights), 1.0, found.weights)  # nothing relevant: no value
    scores = weighted_sum(test.scores, weights=weights, normalise=given.get("normalise", "zscore"))
    mean = _named(test.names, np.nanmean(found.weights, axis=0))
    return Fused(scores, {"mean_weights": {ALL: mean}})


#: Ways that look at judgements, by their names.
LEARNED: Registry[Way] = Registry(
    "learned combination",
    {
        "svm": Way(_svm, _parameters(SVMFusion), learns=True),
        "raster": Way(_raster, _parameters(RasterFusion), learns=True),
        "predicted-weights": Way(_predicted, _parameters(WeightPredictor), learns=True),
        "oracle-raster": Way(_fixed_oracle, _parameters(RasterFusion), is_oracle=True),
        "oracle": Way(_oracle, _parameters(oracle_weights), is_oracle=True),
    },
)

ALL = "all queries"


class _Fold(NamedTuple):
    """Training queries to learn from, and the test queries that what is learned is for."""

    name: str
    train: Side
    asked: NDArray[np.bool_]


def _folds(train: Side | None, test: Side, *, by_size: bool) -> Iterator[_Fold]:
    """All queries at once, or by their sizes; where one is left out in turn, that goes before."""
    assert train is not None
    if test.in_turn:
        for category in np.unique(test.categories):
            others = train.categories != category
            yield _Fold(f"all but {category}", train.queries(others), test.categories == category)
    elif by_size:
        for n in np.unique(test.sizes):
            yield _Fold(f"{n} examples", train.queries(train.sizes == n), test.sizes == n)
    else:
        yield _Fold(ALL, train, np.ones(len(test.sizes), bool))


def _fitted_svm(side: Side, given: Given, random_state: int) -> SVMFusion:
    fusion = SVMFusion(random_state=random_state, **given)
    return fusion.fit(side.scores, side.relevant, side.categories)


def _prior(side: Side, random_state: int) -> Float64Array:
    """The mean weights of SVMs for each number of examples, none below a little."""
    weights = [
        _fitted_svm(side.queries(side.sizes == n), {}, random_state).weights_
        for n in np.unique(side.sizes)
    ]
    return np.maximum(np.mean(weights, axis=0), LEAST_PRIOR)


def _named(names: tuple[str, ...], weights: Float64Array) -> dict[str, float]:
    return dict(zip(names, weights.tolist(), strict=True))
