"""Signs of the numbers, compared by Hamming distance."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float32Array
from bittern.quantise.base import Quantiser, Queries
from bittern.quantise.scalar import first_columns
from bittern.quantise.stored import Bytes


class Sign(Quantiser):
    """One bit for each number: whether it is positive; distances are those of Hamming.

    ``centred`` subtracts the mean of the training rows first; ``ubinary`` embeddings of
    sentence-transformers are not centred.  ``n_bytes`` keeps the first columns only, for embeddings
    whose first numbers matter most; None keeps all.

    Queries become bits too: this is what engines with binary vectors do.
    """

    name = "sign"

    thresholds_: Float32Array  # (k,)

    def __init__(
        self,
        n_bytes: int | None = None,
        *,
        metric: str = "euclidean",
        centred: bool = True,
        random_state: int | None = 0,
    ):
        self.n_bytes = n_bytes
        self.metric = metric
        self.centred = centred
        self.random_state = random_state

    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        k = first_columns(self.n_bytes, X.shape[1], 1, self._title)
        self.centres_ = np.zeros((1, X.shape[1]), np.float32)
        mean = X[:, :k].mean(axis=0, dtype=np.float64)
        self.thresholds_ = (mean if self.centred else np.zeros(k)).astype(np.float32)

    def _payload(self, residuals: Float32Array) -> Bytes:
        return np.packbits(self._bits(residuals), axis=1)

    def _values(self, payload: Bytes) -> Float32Array:
        bits = np.unpackbits(payload, axis=1, count=len(self.thresholds_))
        return 2 * bits.astype(np.float32) - 1

    def _unprojected(self, values: Float32Array) -> Float32Array:
        return np.pad(values, ((0, 0), (0, self.n_features_in_ - values.shape[1])))

    def _projected(self, X: Float32Array) -> Float32Array:
        return X[:, : len(self.thresholds_)]

    def _queries(self, X: Float32Array) -> Queries:
        signs = 2 * self._bits(X).astype(np.float32) - 1
        return Queries(signs, np.zeros((len(X), 1), np.float32), np.zeros(len(X), np.float32))

    def _distance(
        self, products: Float32Array, of_queries: Float32Array, of_items: Float32Array
    ) -> Float32Array:
        return (len(self.thresholds_) - products) / np.float32(2)

    def _bits(self, X: Float32Array) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        return np.asarray(self._projected(X) > self.thresholds_)
