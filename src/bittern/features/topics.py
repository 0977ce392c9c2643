"""Topics: what a text is about, as shares of topics that were learned from texts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.features.texts import TextFeature

__all__ = ["Topics"]


class Topics(TextFeature):
    """A text's mixture of topics by latent Dirichlet allocation, summing to one.

    A topic is a distribution over stems.  ``fit`` learns ``n_topics`` of them by variational Bayes,
    in ``n_iter`` passes over its texts; a text's row is the mean of its topics' distribution, given
    its stems and the topics.  A text without a known stem has the prior's: the same share of each.

    ``topics_`` has the topics, ``(n_topics, n_stems)``, each summing to one.

    References: [Blei-Ng-Jordan-2003], [Porter-1980] for the stems.
    """

    name = "topics"

    def __init__(
        self,
        n_topics: int = 10,
        *,
        stop_words: Collection[str] | None = None,
        min_df: int = 1,
        n_iter: int = 50,
        random_state: int | None = 0,
    ) -> None:
        self.n_topics = n_topics
        self.stop_words = stop_words
        self.min_df = min_df
        self.n_iter = n_iter
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        check_count(self.n_topics, f"{self._title}: n_topics")
        check_count(self.n_iter, f"{self._title}: n_iter")
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)

    def _learn(self, counts: Any) -> None:
        from sklearn.decomposition import LatentDirichletAllocation

        self.allocation_ = LatentDirichletAllocation(
            self.n_topics, max_iter=self.n_iter, random_state=self.random_state
        ).fit(counts)
        weights = self.allocation_.components_
        self.topics_ = weights / weights.sum(axis=1, keepdims=True)

    def _rows(self, counts: Any) -> Float32Array:
        rows: Float32Array = self.allocation_.transform(counts).astype(np.float32)
        return rows
