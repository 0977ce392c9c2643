"""What fusions that are fitted have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError, NotFittedError
from bittern.fusion.sources import Scores, check_scores

__all__ = ["FittedFusion"]


class FittedFusion(BaseEstimator, ABC):
    """Learns from the scores of training queries; :meth:`combine` fuses those of others.

    Scores are ``(sources, queries, items)``, larger is better, every source with every item.
    """

    normalise: str
    random_state: int | None
    n_sources_: int

    @abstractmethod
    def combine(self, scores: ArrayLike) -> Float64Array:
        """One score for each item of each query, ``(queries, items)``; larger is better."""

    @property
    def _title(self) -> str:
        return type(self).__name__

    def _fitted_scores(self, scores: ArrayLike) -> Scores:
        """Scores to combine, of as many sources as were fitted."""
        if not hasattr(self, "n_sources_"):
            raise NotFittedError(f"{self._title}: call fit() before combine().")
        s = check_scores(scores, self._title, complete=True)
        if len(s) != self.n_sources_:
            raise InputError(
                f"{self._title}: was fitted on {self.n_sources_} sources, got {len(s)}."
            )
        return s

    def _generator(self) -> np.random.Generator:
        """Random numbers that follow from ``random_state``."""
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)
        return np.random.default_rng(self.random_state)
