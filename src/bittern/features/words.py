"""Bag of words: which words a text has, and how much each tells."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from bittern.errors import InputError
from bittern.features.texts import TextFeature

__all__ = ["BagOfWords"]

LARGEST = 1 << 31  # octets of a dense array


class BagOfWords(TextFeature):
    r"""Weights of a text's stemmed words by tf-idf, summing to one.

    The weight of stem :math:`w` in a text is

    .. math:: \frac{n_w \ln(N / N_w)}{\sum_v n_v \ln(N / N_v)}

    with :math:`n_w` the times that it is in this text and :math:`N_w` the number of those
    :math:`N` texts given to ``fit`` that have it; ``idf_`` holds the logarithms.  A stem that all
    of them have weighs nothing.

    A text without a stem that weighs anything has a row of zeros.

    Rows are dense, a column for each of ``vocabulary_``; with ``sparse`` they are a sparse array
    (SciPy's, by rows) of the same values, for large vocabularies.

    References: [Yavlinsky-2004] for the feature, [Salton-Buckley-1988] for the weights,
    [Porter-1980] for the stems.
    """

    name = "bag-of-words"

    def __init__(
        self,
        stop_words: Collection[str] | None = None,
        *,
        min_df: int = 1,
        sparse: bool = False,
    ) -> None:
        self.stop_words = stop_words
        self.min_df = min_df
        self.sparse = sparse

    def _learn(self, counts: Any) -> None:
        n, n_stems = counts.shape
        self.idf_ = np.log(n / np.bincount(counts.indices, minlength=n_stems))

    def _rows(self, counts: Any) -> Any:
        """Weights of counted stems, each row divided by its sum."""
        from scipy.sparse import csr_array
        from sklearn.preprocessing import normalize

        n, n_stems = counts.shape
        if not self.sparse and 4 * n * n_stems > LARGEST:
            raise InputError(
                f"{self._title}: {n:,} texts by {n_stems:,} stems are too large for a dense array; "
                "give sparse=True, or a larger min_df."
            )
        weights = csr_array(normalize(counts.multiply(self.idf_), norm="l1"), dtype=np.float32)
        weights.eliminate_zeros()
        return weights if self.sparse else weights.toarray()
