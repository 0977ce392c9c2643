"""Fusion by a linear support vector machine on the scores of all sources."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_count, check_labels
from bittern.errors import InputError
from bittern.fusion.scores import (
    NORMALISATIONS,
    FittedFusion,
    add_up,
    check_judgements,
    check_scores,
    check_weights,
)
from bittern.relevance import Relevance


class SVMFusion(FittedFusion):
    r"""Ranks items by the distance of their score vectors from a learned hyperplane.

    The *score vector* x of an item holds its scores from all sources, normalised for each query.
    From every category one query is drawn, and for it at most ``n_per_category`` score vectors of
    relevant items and as many of other items.  A linear SVM with hinge loss is trained on these:

    .. math:: \min_{w, b} \; \tfrac12 \|w\|^2 + C \sum_i \max(0, 1 - y_i (w^\top x_i + b)),

    and an item's fused score is its signed distance :math:`(w^\top x + b) / \|w\|`.

    ``weights_`` is w ``(sources,)`` and ``intercept_`` is b.  ``queries_`` holds the query drawn
    from each category, ``items_`` the pairs ``(query, item)`` drawn, and ``labels_`` says which of
    these were relevant.

    The paper normalises scores for the baselines and does not mention it for the SVM; here they
    are normalised for both (``normalise="none"`` turns it off).

    Reference: 3.1 and 3.2 of [Yavlinsky-2004].
    """

    def __init__(
        self,
        n_per_category: int = 4,
        *,
        C: float = 1.0,
        normalise: str = "zscore",
        random_state: int | None = 0,
    ) -> None:
        self.n_per_category = n_per_category
        self.C = C
        self.normalise = normalise
        self.random_state = random_state

    def fit(
        self, scores: ArrayLike, relevant: Relevance | ArrayLike, categories: ArrayLike
    ) -> Self:
        """Learn from training queries and their categories; a category may be a single query."""
        from sklearn.svm import SVC

        s = check_scores(scores, self._title, complete=True)
        judged = check_judgements(relevant, s.shape[1:], self._title)
        check_count(self.n_per_category, f"{self._title}: n_per_category")
        queries, pairs = self._draw(judged, categories)
        labels = judged[pairs[:, 0], pairs[:, 1]] == 1
        if labels.all() or not labels.any():
            kind = "relevant" if labels.all() else "not relevant"
            raise InputError(
                f"{self._title}: needs relevant and other items, all drawn ones were {kind}."
            )
        vectors = self._vectors(s, queries, pairs)
        machine = SVC(kernel="linear", C=self.C).fit(vectors, labels)
        if not machine.coef_.any():
            raise InputError(f"{self._title}: the drawn score vectors do not differ by relevance.")
        self.n_sources_ = len(s)
        self.queries_, self.items_, self.labels_ = queries, pairs, labels
        self.weights_, self.intercept_ = machine.coef_[0], float(machine.intercept_[0])
        return self

    def combine(self, scores: ArrayLike) -> Float64Array:
        """Signed distance of each item from the hyperplane, ``(queries, items)``."""
        s = self._fitted_scores(scores)
        length = np.linalg.norm(self.weights_)
        weights = check_weights(self.weights_ / length, s, self._title)
        return add_up(s, self.normalise, weights) + self.intercept_ / length

    def _draw(
        self, judged: NDArray[np.int8], categories: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """One query of each category, and pairs (query, item) to learn from."""
        labels = check_labels(categories, f"{self._title}: categories", len(judged))
        rng = self._generator()
        queries = [rng.choice(np.flatnonzero(labels == c)) for c in np.unique(labels)]
        pairs: list[Any] = []
        for query in queries:
            for level in (1, 0):
                items = rng.permutation(np.flatnonzero(judged[query] == level))
                pairs += [(query, item) for item in items[: self.n_per_category]]
        return np.array(queries, np.int64), np.array(pairs, np.int64).reshape(-1, 2)

    def _vectors(
        self, scores: Any, queries: NDArray[np.int64], pairs: NDArray[np.int64]
    ) -> Float64Array:
        """Score vectors of the pairs; only the drawn queries are normalised."""
        z = NORMALISATIONS[self.normalise](scores[:, queries])
        place = np.empty(scores.shape[1], np.int64)
        place[queries] = np.arange(len(queries))
        return z[:, place[pairs[:, 0]], pairs[:, 1]].T
