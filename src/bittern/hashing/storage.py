"""Hashers as files of arrays and JSON; reading one never runs code from the file."""

from __future__ import annotations

import os
from typing import Any

from bittern.hashing.base import CodeLearner
from bittern.io.files import reading
from bittern.io.models import ModelFormat


def save(hasher: CodeLearner, path: str | os.PathLike[str]) -> None:
    """Write a fitted hasher."""
    _format().save(hasher, path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a hasher that ``save`` wrote, of one modality or two; runs no code from the file."""
    hasher: CodeLearner = _format().load(path)
    with reading(path, "model"):
        hasher._check_learned()
        for bits in hasher._blank_bits():  # fails if the arrays do not fit together
            if bits.shape != (1, hasher.n_stored_bits):
                raise ValueError(f"codes of {bits.shape[1]} bits, not {hasher.n_stored_bits}")
    return hasher


def _format() -> ModelFormat:
    from bittern.hashing import HASHERS
    from bittern.hashing.crossmodal import CROSSMODAL
    from bittern.hashing.feature_signs import FeatureSigns

    tables = (HASHERS, CROSSMODAL, {FeatureSigns.name: FeatureSigns})
    return ModelFormat("hasher", tables, head="model", title="bittern hasher", version=1)
