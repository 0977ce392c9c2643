"""Separate weights for each query, predicted from its scores alone."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array, check_count, check_labels, row_blocks
from bittern.errors import InputError
from bittern.fusion.raster import precision_of_weights
from bittern.fusion.scores import (
    FittedFusion,
    add_up,
    check_judgements,
    check_scores,
    check_weights,
    zscore,
)
from bittern.registry import Registry
from bittern.relevance import Relevance

TOP = 10  # items at the head of a ranking
BLOCK = 1 << 27  # bytes of z-scores and intermediate arrays held at once
TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, np.inf)

#: Names of the columns of :func:`score_statistics`.
STATISTICS = ("skewness", "kurtosis", "head", "gap", "agreement", "overlap")


def score_statistics(scores: ArrayLike) -> Float64Array:
    """Statistics of the scores of each source for each query, ``(queries, sources, statistics)``.

    They need no judgements.  With z the z-scores of one source for one query, they are

    - ``skewness`` and ``kurtosis``: the means of z³ and of z⁴ minus 3, each through asinh, because
      they have long tails;
    - ``head``: the mean of the ten largest z;
    - ``gap``: the largest z minus the tenth largest;
    - ``agreement``: the mean correlation of z with the z-scores of every other source;
    - ``overlap``: the mean share of the ten largest that are also among another source's ten.
    """
    s = check_scores(scores, "score_statistics", complete=True)
    out = np.empty((s.shape[1], len(s), len(STATISTICS)))
    for some in row_blocks(s.shape[1], 64 * len(s) * s.shape[2], BLOCK):
        out[some] = _statistics(zscore(s[:, some])).transpose(1, 0, 2)
    return out


class WeightPredictor(FittedFusion):
    r"""A weighted sum whose weights a regression predicts for each query.

    From the statistics of a query's scores, a regression predicts the average precision
    :math:`a_s` of every source alone, and the weights follow from it:

    .. math:: w_s \propto p_s \exp(a_s / t).

    The prior p is an argument of :meth:`fit`, such as the weights of a :class:`RasterFusion` or
    the non-negative ones of an :class:`SVMFusion`; it defaults to equal weights.  The temperature
    t is the one with the largest mean average precision on the training queries, each predicted by
    a model that has not seen its category (``n_folds`` groups of categories).  As
    :math:`t = \infty` is among the temperatures, the prior alone remains if prediction does not
    help.

    ``temperature_`` is t, and ``temperature_ap_`` the mean average precision of each of
    ``TEMPERATURES``.  ``model`` is ``"ridge"`` or ``"forest"``.  The method is ours.
    """

    def __init__(
        self,
        *,
        model: str = "forest",
        n_folds: int = 5,
        normalise: str = "zscore",
        random_state: int | None = 0,
    ) -> None:
        self.model = model
        self.n_folds = n_folds
        self.normalise = normalise
        self.random_state = random_state

    def fit(
        self,
        scores: ArrayLike,
        relevant: Relevance | ArrayLike,
        categories: ArrayLike,
        *,
        prior: ArrayLike | None = None,
        more: ArrayLike | None = None,
    ) -> Self:
        """Learn from training queries and their categories.

        ``more`` holds further statistics, ``(queries, sources, any)``, such as how near a query's
        examples are to each other; :meth:`combine` then needs them too.
        """
        s = check_scores(scores, self._title, complete=True)
        judged = check_judgements(relevant, s.shape[1:], self._title)
        groups = check_labels(categories, f"{self._title}: categories", s.shape[1])
        check_count(self.n_folds, f"{self._title}: n_folds", 2)
        self.n_sources_, self.prior_ = len(s), self._checked_prior(prior, len(s))
        learns = (judged == 1).any(axis=1)
        if len(np.unique(groups[learns])) < self.n_folds:
            raise InputError(
                f"{self._title}: needs queries with something relevant in at least "
                f"n_folds = {self.n_folds} categories."
            )
        alone = precision_of_weights(s, relevant, np.eye(len(s)), normalise=self.normalise)[learns]
        x = self._inputs(s, more)[learns]
        held_out = self._predict_unseen(x, alone, groups[learns])
        points = np.zeros((s.shape[1], len(TEMPERATURES), len(s)))
        points[learns] = np.stack([self._weights(held_out, t) for t in TEMPERATURES], axis=1)
        ap = precision_of_weights(s, relevant, points, normalise=self.normalise)
        self.temperature_ap_ = ap[learns].mean(axis=0)
        self.temperature_ = TEMPERATURES[int(self.temperature_ap_.argmax())]
        self.model_ = self._new_model().fit(x, alone)
        return self

    def weights(self, scores: ArrayLike, *, more: ArrayLike | None = None) -> Float64Array:
        """The weights predicted for each query, ``(queries, sources)``; they sum to one."""
        s = self._fitted_scores(scores)
        x = self._inputs(s, more)
        if x.shape[1] != self.model_.n_features_in_:
            raise InputError(
                f"{self._title}: was fitted on {self.model_.n_features_in_} statistics per query, "
                f"got {x.shape[1]}; give 'more' as in fit()."
            )
        return self._weights(self.model_.predict(x).reshape(len(x), -1), self.temperature_)

    def combine(self, scores: ArrayLike, *, more: ArrayLike | None = None) -> Float64Array:
        """The weighted sum with the predicted weights, ``(queries, items)``."""
        s = self._fitted_scores(scores)
        weights = check_weights(self.weights(s, more=more), s, self._title)
        return add_up(s, self.normalise, weights)

    def _inputs(self, scores: Any, more: ArrayLike | None) -> Float64Array:
        """One row of all statistics for each query."""
        statistics = score_statistics(scores)
        if more is not None:
            m = check_array(more, f"{self._title}: more")
            if m.ndim != 3 or m.shape[:2] != statistics.shape[:2] or not np.isfinite(m).all():
                raise InputError(
                    f"{self._title}: more must be finite {(*statistics.shape[:2], 'any')}, "
                    f"got shape {m.shape}."
                )
            statistics = np.concatenate([statistics, m], axis=2)
        return statistics.reshape(len(statistics), -1)

    def _checked_prior(self, prior: ArrayLike | None, n_sources: int) -> Float64Array:
        p = np.ones(n_sources) if prior is None else np.asarray(prior, np.float64)
        if p.shape != (n_sources,) or not (p >= 0).all() or not 0 < p.sum() < np.inf:
            raise InputError(
                f"{self._title}: prior must be a weight, 0 or more, for each of {n_sources} "
                "sources, and not all 0."
            )
        return p / p.sum()

    def _predict_unseen(
        self, x: Float64Array, y: Float64Array, groups: NDArray[Any]
    ) -> Float64Array:
        """Predictions for each row by a model that has not seen its group."""
        from sklearn.model_selection import GroupKFold, cross_val_predict

        folds = GroupKFold(self.n_folds)
        predicted = cross_val_predict(self._new_model(), x, y, groups=groups, cv=folds)
        return np.asarray(predicted).reshape(len(x), -1)

    def _weights(self, predicted: Float64Array, temperature: float) -> Float64Array:
        raised = self.prior_ * np.exp(
            (predicted - predicted.max(axis=1, keepdims=True)) / temperature
        )
        return raised / raised.sum(axis=1, keepdims=True)

    def _new_model(self) -> Any:
        self._generator()  # checks random_state
        return MODELS[self.model](self.random_state)


def _ridge(random_state: int | None) -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), Ridge(alpha=10.0))


def _forest(random_state: int | None) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(
        n_estimators=100, min_samples_leaf=5, max_features=1 / 3, random_state=random_state
    )


MODELS: Registry[Any] = Registry("model", {"ridge": _ridge, "forest": _forest})


def _statistics(z: Float64Array) -> Float64Array:
    """From z-scores ``(sources, queries, items)`` to ``(sources, queries, statistics)``."""
    head = min(TOP, z.shape[2])
    order = np.argsort(-z, axis=2, kind="stable")[:, :, :head]
    top = np.take_along_axis(z, order, axis=2)
    member = np.zeros(z.shape)
    np.put_along_axis(member, order, 1.0, axis=2)
    columns = (
        np.arcsinh((z**3).mean(axis=2)),
        np.arcsinh((z**4).mean(axis=2) - 3),
        top.mean(axis=2),
        top[:, :, 0] - top[:, :, -1],
        _mean_with_others(z) / z.shape[2],
        _mean_with_others(member) / head,
    )
    return np.stack(columns, axis=-1)


def _mean_with_others(z: NDArray[Any]) -> Float64Array:
    """Mean inner product of each source's row with those of the others, ``(sources, queries)``."""
    n = len(z)
    products = np.einsum("aqi,bqi->qab", z, z, optimize=True)
    itself = np.einsum("qaa->qa", products)
    return ((products.sum(axis=2) - itself) / max(1, n - 1)).T
