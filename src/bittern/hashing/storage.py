"""Hashers as files of arrays and JSON; reading one never runs code from the file."""

from __future__ import annotations

import os

from bittern.hashing.base import Hasher
from bittern.io.files import reading
from bittern.io.models import ModelFormat


def save(hasher: Hasher, path: str | os.PathLike[str]) -> None:
    """Write a fitted hasher."""
    _format().save(hasher, path)


def load(path: str | os.PathLike[str]) -> Hasher:
    """Read a hasher that :meth:`Hasher.save` wrote; the file is checked, and none of it is run."""
    hasher: Hasher = _format().load(path)
    with reading(path, "model"):
        bits = hasher._bits(hasher._blank())  # fails if the arrays do not fit together
        if bits.shape != (1, hasher.n_stored_bits):
            raise ValueError(f"codes of {bits.shape[1]} bits, not {hasher.n_stored_bits}")
    return hasher


def _format() -> ModelFormat:
    from bittern.hashing import HASHERS

    return ModelFormat("hasher", HASHERS, head="model", title="bittern hasher", version=1)
