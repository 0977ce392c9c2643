"""Quantisers as files of arrays and JSON; reading one never runs code from the file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bittern.io.files import reading
from bittern.io.models import ModelFormat
from bittern.quantise.base import Quantiser


def save(quantiser: Quantiser, path: str | os.PathLike[str]) -> None:
    """Write a fitted quantiser."""
    _format().save(quantiser, path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a quantiser that ``save`` wrote; runs no code from the file."""
    quantiser: Quantiser = _format().load(path)
    with reading(path, "model"):  # fails if the arrays do not fit together
        blank = quantiser._encoded(np.ones((1, quantiser.n_features_in_), np.float32))
        quantiser._expanded(blank)
        if blank.shape != (1, quantiser.n_bytes_):
            raise ValueError(f"codes of {blank.shape[1]} bytes, not {quantiser.n_bytes_}")
    return quantiser


def _format() -> ModelFormat:
    from bittern.hashing import HASHERS
    from bittern.quantise import QUANTISERS

    return ModelFormat(
        "quantiser", (QUANTISERS, HASHERS), head="model", title="bittern quantiser", version=1
    )
