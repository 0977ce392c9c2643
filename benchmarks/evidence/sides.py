"""One collection of the protocol: the scores of every feature for every query and item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

import bittern as bt

POWERS = {"bag-of-words": 3.0}  # of the L1 distance, 2.2


@dataclass(frozen=True)
class Side:
    """Scores of each feature for queries by items, and which item is of the query's category."""

    names: tuple[str, ...]
    scores: np.ndarray  # (features, queries, items)
    categories: np.ndarray  # (queries,)
    labels: np.ndarray  # (items,)
    sizes: np.ndarray  # (queries,) number of examples

    @property
    def relevance(self) -> bt.Relevance:
        """Same category."""
        return bt.Relevance.from_classes(self.categories, self.labels)

    @property
    def relevant(self) -> np.ndarray:
        """The same as booleans."""
        return self.categories[:, None] == self.labels[None, :]

    def of_size(self, n: int) -> Side:
        """The queries of n examples."""
        return self.queries(self.sizes == n)

    def queries(self, chosen: np.ndarray) -> Side:
        """Some of the queries."""
        return replace(
            self,
            scores=self.scores[:, chosen],
            categories=self.categories[chosen],
            sizes=self.sizes[chosen],
        )

    def of(self, names: tuple[str, ...]) -> Side:
        """Some of the features."""
        rows = [self.names.index(name) for name in names]
        return replace(self, names=names, scores=self.scores[rows])

    def ap(self, fused: np.ndarray) -> np.ndarray:
        """Tie-aware AP of each query under fused scores ``(queries, items)``."""
        profile = bt.TieProfile.from_distances(-fused, self.relevance)
        return bt.evaluate(profile, ["ap"])["ap"].per_query


def score(
    vectors: Mapping[str, np.ndarray],
    images: np.ndarray,
    categories: np.ndarray,
    pool: np.ndarray,
    database: np.ndarray,
    labels: np.ndarray,
    *,
    k: int,
    n_negatives: int,
    random_state: int,
) -> Side:
    """Scores by retrieval from examples; negatives are drawn from the pool, which is not ranked.

    ``images`` are the positions of each query's examples, -1 for none; pool and database are
    positions too.
    """
    there = np.union1d(pool, images[images >= 0])
    positives = np.where(images >= 0, np.searchsorted(there, images), -1)
    candidates = np.searchsorted(there, pool)
    negatives = bt.fusion.draw_negatives(
        positives, candidates, n_negatives, random_state=random_state
    )
    scores = np.empty((len(vectors), len(images), len(database)), np.float32)
    for row, (name, rows) in zip(scores, vectors.items(), strict=True):
        row[:] = bt.fusion.similarities(
            positives,
            negatives,
            np.asarray(rows[there]),
            np.asarray(rows[database]),
            k=k,
            power=POWERS.get(name, 1.0),
        )
    sizes = np.count_nonzero(images >= 0, axis=1)
    return Side(tuple(vectors), scores, categories, labels[database], sizes)
