"""Quantisers as files of arrays and JSON; reading one never runs code from the file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bittern.io.files import reading
from bittern.io.models import ModelFormat
from bittern.quantise.base import Quantiser

N_PROBES = 3  # rows that a loaded quantiser must encode


def save(quantiser: Quantiser, path: str | os.PathLike[str]) -> None:
    """Write a fitted quantiser."""
    _format().save(quantiser, path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a quantiser that ``save`` wrote; runs no code from the file."""
    quantiser: Quantiser = _format().load(path)
    with reading(path, "model"):  # fails if the arrays do not fit together
        quantiser._check_learned()
        rows = np.ones((N_PROBES, quantiser.n_features_in_), np.float32)
        stored = quantiser.encode(rows)
        if stored.bytes.shape != (N_PROBES, quantiser.n_bytes_):
            raise ValueError(f"codes of shape {stored.bytes.shape}, not {quantiser.n_bytes_} bytes")
        found = quantiser.distances(rows[1:], stored)
        if found.shape != (N_PROBES - 1, N_PROBES):
            raise ValueError(f"distances of shape {found.shape}")
    return quantiser


def _format() -> ModelFormat:
    from bittern.hashing import HASHERS
    from bittern.quantise import QUANTISERS

    return ModelFormat(
        "quantiser", (QUANTISERS, HASHERS), head="model", title="bittern quantiser", version=1
    )
