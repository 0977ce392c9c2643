"""What every feature promises: pictures or texts in, float32 rows out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from bittern.checks import Float32Array
from bittern.features.pictures import Picture, iter_pictures
from bittern.progress import track

__all__ = ["Feature", "Float32Array", "PictureFeature"]


class Feature(TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer from things to float32 rows."""

    name: ClassVar[str]
    takes: ClassVar[str]  # "pictures" or "texts"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what there is to learn; most features have nothing."""
        self._check()
        return self

    @abstractmethod
    def transform(self, X: Any) -> Float32Array:
        """A row for each of X."""

    def _check(self) -> None:
        """Refuse bad parameters."""

    @property
    def _title(self) -> str:
        return type(self).__name__


class PictureFeature(Feature):
    """A feature of one picture at a time.

    X is a sequence of paths, bytes of files, Pillow images, or arrays of pixels
    ``(h, w[, channels])``.
    """

    takes = "pictures"

    def transform(self, X: Any) -> Float32Array:
        """A row for each picture."""
        self._check()
        pictures = track(iter_pictures(X, self._title), f"{self._title}: pictures", len(X))
        return np.stack([self._describe(picture) for picture in pictures])

    @abstractmethod
    def _describe(self, picture: Picture) -> Float32Array:
        """The row of a picture."""
