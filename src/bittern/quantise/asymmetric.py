"""The bits of a hash function, scored by the full query."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from bittern.checks import Float32Array
from bittern.errors import InputError
from bittern.hashing import HASHERS, Hasher
from bittern.hashing.linear import LinearHasher
from bittern.quantise.base import Queries, squared_float32
from bittern.quantise.corrected import CorrectedQuantiser
from bittern.quantise.correction import Corrections, Measured, measure
from bittern.quantise.stored import Bytes


class Asymmetric(CorrectedQuantiser):
    r"""Any hasher whose bits are signs, as a quantiser: items are coded, queries are not.

    The query keeps its logits z, the numbers whose signs would be its bits, and an item with bits
    :math:`b \in \{-1, 1\}` is ranked by :math:`-z^\top b` [Gordo-Perronnin-Gong-Lazebnik-2014].
    With ``correction`` an item has two bytes more for length and angle
    (:mod:`~bittern.quantise.correction`), which costs little and finds much more.

    ``hasher`` is a hasher with its parameters, which is cloned and fitted, or the name of one with
    as many bits as ``n_bytes`` leave.  With ``refit=False`` it is a fitted hasher that stays as it
    is, so that the codes of an index need only the bytes of :meth:`corrections`.  If its directions
    are orthonormal, as those of ITQ, lengths and products are those of the vectors; otherwise those
    of the logits.
    """

    name = "asymmetric"

    hasher_: Hasher
    is_linear_: bool

    def __init__(
        self,
        hasher: Any = "itq",
        *,
        n_bytes: int = 16,
        metric: str = "euclidean",
        correction: Any = "auto",
        refit: bool = True,
        random_state: int | None = 0,
    ):
        self.hasher = hasher
        self.n_bytes = n_bytes
        self.metric = metric
        self.correction = correction
        self.refit = refit
        self.random_state = random_state

    def corrections(self, X: Any) -> Corrections:
        """The bytes of correction of rows whose bits an index has, for ``rerank_asymmetric``."""
        stored = self.encode(X)
        if not self.n_correction_:
            raise InputError(f"{self._title}: has no correction; pass correction=True.")
        more = stored.bytes[:, -self.n_correction_ :].copy()
        return Corrections(more, self.bounds_, self.power_, self.share_)

    @property
    def centres(self) -> bool:
        """There is one centre, the one of the hasher."""
        return False

    def _centred(self, X: Float32Array, many: bool, draw: np.random.Generator) -> Float32Array:
        return X  # the hasher subtracts its own centre, which is known once it is fitted

    def _prepare(self, residuals: Float32Array, draw: np.random.Generator) -> None:
        self._space = residuals

    def _allocate(self, n_bytes: int, draw: np.random.Generator) -> None:
        X: Float32Array = self._space
        self.hasher_ = self._made(8 * n_bytes).fit(X) if self.refit else self._given()
        self.hasher_.logits(X[:1])  # says so if the bits are not signs
        self.is_linear_ = isinstance(self.hasher_, LinearHasher) and _is_orthonormal(
            self.hasher_.projection_
        )
        self.centres_ = np.zeros((1, X.shape[1]), np.float32)
        if self.is_linear_:
            self.centres_[0] = self.hasher_.mean_

    def _given(self) -> Hasher:
        """The fitted hasher that stays as it is."""
        if not isinstance(self.hasher, Hasher) or not self.hasher.__sklearn_is_fitted__():
            raise InputError(f"{self._title}: refit=False needs a fitted hasher.")
        return self.hasher

    def _room(self, choice: Any) -> int:
        """A hasher brings its own number of bits."""
        return super()._room(choice) if isinstance(self.hasher, str) else 1

    def _made(self, n_bits: int) -> Hasher:
        """A hasher to fit."""
        if isinstance(self.hasher, Hasher):
            made: Hasher = clone(self.hasher)
        elif isinstance(self.hasher, str):
            made = HASHERS[self.hasher](n_bits, random_state=self.random_state)
        else:
            raise InputError(
                f"{self._title}: hasher must be a hasher or the name of one, got {self.hasher!r}."
            )
        if made.needs_y:
            raise InputError(f"{self._title}: {made.name} needs labels; fit it by itself.")
        return made

    def _projected(self, X: Float32Array) -> Float32Array:
        if self.is_linear_:
            return X @ self.hasher_.projection_.astype(np.float32)
        return np.asarray(self.hasher_.logits(X), np.float32)

    def _unprojected(self, values: Float32Array) -> Float32Array:
        if self.is_linear_:
            return values @ self.hasher_.projection_.T.astype(np.float32)
        raise InputError(f"{self._title}: codes of {self.hasher_.name} cannot be decoded.")

    def _lengths(self, values: Float32Array, groups: Any, own: Float32Array) -> Float32Array:
        return super()._lengths(values, groups, own) if self.is_linear_ else own

    def _measured(self, residuals: Float32Array, payload: Bytes) -> Measured:
        if self.is_linear_:
            return super()._measured(residuals, payload)
        z = self._projected(residuals)
        return measure(z, z, self._values(payload))

    def _queries(self, X: Float32Array) -> Queries:
        if self.is_linear_:
            return super()._queries(X)
        z = self._projected(X)
        return Queries(z, np.zeros((len(X), 1), np.float32), squared_float32(z))

    def _payload(self, residuals: Float32Array) -> Bytes:
        return np.packbits(self.hasher_.transform(residuals + self.centres_), axis=1)

    def _values(self, payload: Bytes) -> Float32Array:
        bits = np.unpackbits(payload, axis=1, count=self.hasher_.n_stored_bits)
        return 2 * bits.astype(np.float32) - 1


def _is_orthonormal(projection: Any) -> bool:
    products = projection.T @ projection
    return bool(np.allclose(products, np.eye(len(products)), atol=1e-5))
