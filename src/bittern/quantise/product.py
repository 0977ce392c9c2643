"""Product and residual quantisation, learned by FAISS: a sum or a row of codewords."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import InputError
from bittern.extras import import_extra
from bittern.quantise.base import Quantiser
from bittern.quantise.stored import Bytes

CODEWORDS = 256  # of one byte
N_ITERATIONS = 25  # of k-means
N_ROTATIONS = 25  # of OPQ, each with its k-means
BEAM = 8  # of residual quantisation


class _CodewordQuantiser(Quantiser):
    """One byte names one of 256 codewords; FAISS learns them, from the extra ``io``."""

    codewords_: Float32Array

    def __init__(
        self, n_bytes: int = 16, *, metric: str = "euclidean", random_state: int | None = 0
    ):
        self.n_bytes = n_bytes
        self.metric = metric
        self.random_state = random_state

    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        check_count(self.n_bytes, f"{self._title}: n_bytes")
        if len(X) < CODEWORDS:
            raise InputError(
                f"{self._title}: needs at least {CODEWORDS} training rows, got {len(X)}."
            )
        self.centres_ = np.zeros((1, X.shape[1]), np.float32)
        faiss = import_extra("faiss", self._title)
        self._learn_codewords(faiss, X, int(draw.integers(1 << 30)))

    def _check_learned(self) -> None:
        super()._check_learned()
        words = self.codewords_
        if words.ndim != 3 or words.shape[:2] != (self.n_bytes, CODEWORDS):
            raise ValueError(f"codewords_ must be {CODEWORDS} for each byte")
        if words.dtype != np.float32:
            raise ValueError(f"codewords_ must be float32, got {words.dtype}")

    @abstractmethod
    def _learn_codewords(self, faiss: Any, X: Float32Array, seed: int) -> None:
        """Set ``codewords_``."""


class PQ(_CodewordQuantiser):
    """Product quantisation: each part of the vector is one of its 256 codewords.

    The vector is cut into ``n_bytes`` parts of equal length; zeros are added if it does not divide.
    Learned by FAISS.  Reference: [Jegou-Douze-Schmid-2011].
    """

    name = "pq"

    def _learn_codewords(self, faiss: Any, X: Float32Array, seed: int) -> None:
        self._learn_parts(faiss, self._padded(X), seed)

    def _learn_parts(self, faiss: Any, X: Float32Array, seed: int) -> None:
        pq = self._coder(faiss, X.shape[1])
        pq.cp.seed, pq.cp.niter = seed, N_ITERATIONS
        pq.train(np.ascontiguousarray(X))
        found = faiss.vector_to_array(pq.centroids)
        self.codewords_ = found.reshape(self.n_bytes, CODEWORDS, -1).copy()

    def _coder(self, faiss: Any, dim: int) -> Any:
        pq = faiss.ProductQuantizer(dim, self.n_bytes, 8)
        pq.cp.min_points_per_centroid = 1  # few rows are the caller's choice, not worth a warning
        return pq

    def _payload(self, residuals: Float32Array) -> Bytes:
        parts = self._padded(residuals).reshape(len(residuals), self.n_bytes, -1)
        out = np.empty((len(residuals), self.n_bytes), np.uint8)
        for j, words in enumerate(self.codewords_):
            gaps = np.square(words).sum(axis=1) - 2 * parts[:, j] @ words.T
            out[:, j] = gaps.argmin(axis=1)
        return out

    def _values(self, payload: Bytes) -> Float32Array:
        return self.codewords_[np.arange(self.n_bytes), payload].reshape(len(payload), -1)

    def _projected(self, X: Float32Array) -> Float32Array:
        return self._padded(X)

    def _unprojected(self, values: Float32Array) -> Float32Array:
        return values[:, : self.n_features_in_]

    def _padded(self, X: Float32Array) -> Float32Array:
        lack = -X.shape[1] % self.n_bytes
        return np.pad(X, ((0, 0), (0, lack))) if lack else X


class OPQ(PQ):
    """Product quantisation after the rotation that suits it best, learned by FAISS.

    Vectors of many dimensions are reduced to the ``4 * n_bytes`` principal ones by the same matrix.
    Reference: [Ge-He-Ke-Sun-2013].
    """

    name = "opq"

    axes_: Float32Array  # (dim, k)

    def _learn_codewords(self, faiss: Any, X: Float32Array, seed: int) -> None:
        k = -(-min(X.shape[1], 4 * self.n_bytes) // self.n_bytes) * self.n_bytes
        opq = faiss.OPQMatrix(X.shape[1], self.n_bytes, k)
        opq.niter = N_ROTATIONS
        coder = self._coder(faiss, k)  # which must outlive the training
        opq.pq = coder
        opq.train(np.ascontiguousarray(X))
        self.axes_ = faiss.vector_to_array(opq.A).reshape(k, X.shape[1]).T.copy()
        self._learn_parts(faiss, X @ self.axes_, seed)

    def _payload(self, residuals: Float32Array) -> Bytes:
        return super()._payload(residuals @ self.axes_)

    def _projected(self, X: Float32Array) -> Float32Array:
        return X @ self.axes_

    def _unprojected(self, values: Float32Array) -> Float32Array:
        return values @ self.axes_.T


class RQ(_CodewordQuantiser):
    """Residual quantisation: a sum of codewords, each coding what those before it left.

    Learned, and coded with a beam of eight, by FAISS.  Reference: [Chen-Guan-Wang-2010].
    """

    name = "rq"

    def _check_learned(self) -> None:
        super()._check_learned()
        if self.codewords_.shape[2] != self.n_features_in_:  # FAISS would read beyond their end
            raise ValueError(f"codewords_ must have {self.n_features_in_} columns")

    def _learn_codewords(self, faiss: Any, X: Float32Array, seed: int) -> None:
        rq = self._coder(faiss, X.shape[1])
        rq.cp.seed = seed
        rq.train(np.ascontiguousarray(X))
        found = faiss.vector_to_array(rq.codebooks)
        self.codewords_ = found.reshape(self.n_bytes, CODEWORDS, X.shape[1]).copy()

    def _coder(self, faiss: Any, dim: int) -> Any:
        rq = faiss.ResidualQuantizer(dim, self.n_bytes, 8)
        rq.max_beam_size = BEAM
        rq.cp.min_points_per_centroid = 1  # few rows are the caller's choice, not worth a warning
        return rq

    def _payload(self, residuals: Float32Array) -> Bytes:
        faiss = import_extra("faiss", self._title)
        rq = self._coder(faiss, residuals.shape[1])
        faiss.copy_array_to_vector(self.codewords_.ravel(), rq.codebooks)
        rq.is_trained = True
        return np.asarray(rq.compute_codes(np.ascontiguousarray(residuals)))

    def _values(self, payload: Bytes) -> Float32Array:
        out = np.zeros((len(payload), self.codewords_.shape[2]), np.float32)
        for j, words in enumerate(self.codewords_):
            out += words[payload[:, j]]
        return out
