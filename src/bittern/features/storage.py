"""Fitted features as files of arrays and JSON; reading one never runs code from the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bittern.errors import NotFittedError
from bittern.features.fitting import has_to_learn
from bittern.io.files import reading
from bittern.io.models import ModelFormat

if TYPE_CHECKING:
    from bittern.features.base import Feature


def save(feature: Feature, path: str | os.PathLike[str]) -> None:
    """Write a fitted feature."""
    if has_to_learn(feature):
        raise NotFittedError(f"{feature._title}: call fit() before save().")
    _format().save(feature, path)


def load(path: str | os.PathLike[str]) -> Feature:
    """Read a feature that :meth:`Feature.save` wrote; runs no code from the file."""
    feature: Feature = _format().load(path)
    with reading(path, "feature"):
        feature._check_learned()
    return feature


def _format() -> ModelFormat:
    from bittern.features import FEATURES

    return ModelFormat("feature", (FEATURES,), head="feature")
