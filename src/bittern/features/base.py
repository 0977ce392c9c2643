"""What every feature promises: images or texts in, float32 rows out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from bittern.checks import Float32Array
from bittern.features.images import ImageArray, iter_images
from bittern.progress import track

__all__ = ["Feature", "Float32Array", "ImageFeature"]


class Feature(TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer from things to float32 rows."""

    name: ClassVar[str]
    takes: ClassVar[str]  # "images" or "texts"

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


class ImageFeature(Feature):
    """A feature of one image at a time.

    X is a sequence of paths, bytes of files, Pillow images, or arrays of pixels
    ``(h, w[, channels])``.
    """

    takes = "images"

    def transform(self, X: Any) -> Float32Array:
        """A row for each image."""
        self._check()
        images = track(iter_images(X, self._title), f"{self._title}: images", len(X))
        return np.stack([self._describe(image) for image in images])

    @abstractmethod
    def _describe(self, image: ImageArray) -> Float32Array:
        """The row of a image."""
