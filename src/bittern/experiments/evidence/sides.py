"""One partition of a run: the scores of some features for every query and item."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array
from bittern.experiments.evidence.questions import Questions
from bittern.fusion import draw_negatives, similarities
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance

__all__ = ["Float32Array", "Side", "average_precision", "scores_of"]

POWERS = {"bag-of-words": 3.0}  # of the L1 distance, 2.2 of [Yavlinsky-2004]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Scores of features for queries by items, and which item is of the query's category."""

    names: tuple[str, ...]
    scores: Float32Array  # (features, queries, items)
    categories: NDArray[np.int64]  # (queries,)
    labels: NDArray[np.int64]  # (items,)
    sizes: NDArray[np.int64]  # (queries,) number of examples
    in_turn: bool  # what is learned for a query is learned from the others

    @property
    def relevance(self) -> Relevance:
        """An item of the query's category is relevant."""
        return Relevance.from_classes(self.categories, self.labels)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """The same as booleans."""
        return self.categories[:, None] == self.labels[None, :]

    def queries(self, chosen: NDArray[np.bool_]) -> Side:
        """Some of the queries."""
        return replace(
            self,
            scores=self.scores[:, chosen],
            categories=self.categories[chosen],
            sizes=self.sizes[chosen],
        )


def average_precision(side: Side, scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Tie-aware AP of each query under scores ``(queries, items)``."""
    profile = TieProfile.from_distances(-scores, side.relevance)
    found = evaluate(profile, ["ap"])["ap"].per_query
    assert found is not None
    return found


def scores_of(
    name: str,
    vectors: NDArray[np.floating],
    asked: Questions,
    *,
    k: int,
    n_negatives: int,
    random_state: int,
) -> Float32Array:
    """Scores of a feature by retrieval from examples, ``(queries, items)``.

    The negative examples depend on the questions and ``random_state``, not on the feature.
    """
    there = np.union1d(asked.pool, asked.images[asked.images >= 0])
    positives = np.where(asked.images >= 0, np.searchsorted(there, asked.images), -1)
    negatives = draw_negatives(
        positives, np.searchsorted(there, asked.pool), n_negatives, random_state=random_state
    )
    found = similarities(
        positives,
        negatives,
        np.asarray(vectors[there]),
        np.asarray(vectors[asked.database]),
        k=k,
        power=POWERS.get(name, 1.0),
    )
    return found.astype(np.float32)
