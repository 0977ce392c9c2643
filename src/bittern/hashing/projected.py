"""Hashers that quantise the projections of a linear hasher: several bits for each direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from bittern.checks import Float64Array
from bittern.codes import MAX_BITS
from bittern.errors import InputError
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.linear import SLACK, LinearHasher
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph

Allocation = list[int]  # the bits of each dimension


class ProjectedHasher(Hasher):
    r"""Quantises the projected dimensions :math:`z = (x - \bar x)^\top w` of a linear hasher.

    ``projection`` is that hasher: its name, such as ``"itq"``, or an unfitted one, such as
    ``ITQ(n_iter=10)``; by default ``"pcah"``.  A copy with one bit per dimension is fitted, with
    ``y`` if it uses it, and kept as ``projection_``.
    """

    projection: LinearHasher | str | None
    projection_: LinearHasher

    def _project(
        self, X: Rows, targets: Targets | None, n_dimensions: int
    ) -> tuple[LinearHasher, Float64Array, Float64Array]:
        """The fitted projection, the rows in its dimensions, and the rounding error of each."""
        hasher = unfitted(self, "projection", n_dimensions, default="pcah")
        hasher.fit(X, targets.given if targets is not None and hasher._takes_y else None)
        Z = X @ hasher.projection_.astype(X.dtype) - hasher.mean_ @ hasher.projection_
        size = np.abs(hasher.mean_) @ np.abs(hasher.projection_) + np.abs(Z).max(axis=0)
        return hasher, Z, SLACK * np.finfo(X.dtype).eps * size

    @property
    def _takes_y(self) -> bool:
        return takes_y(self.projection)


class ThermometerHasher(ProjectedHasher):
    r"""Codes whose Hamming distance is the Manhattan distance of regions.

    Thresholds :math:`t_1 < t_2 < \ldots` divide a projected dimension into regions 0, 1, 2, …  The
    bits of a dimension are :math:`[z > t_1], [z > t_2], \ldots`, a thermometer: region r has r
    ones.  So two codes differ in as many bits as their regions are apart, summed over dimensions,
    and everything that works on codes works on regions.

    ``n_bits`` is the nominal length: a dimension of q nominal bits has :math:`2^q` regions.  The
    codes store :math:`2^q - 1` bits for it; ``n_stored_bits`` counts them all.
    """

    dimensions_: Any  # (n_stored_bits,) the projected dimension of each stored bit
    thresholds_: Float64Array  # (n_stored_bits,) increasing in each dimension; ∞ if not needed

    @property
    def n_stored_bits(self) -> int:
        """The length of the codes."""
        self._check_fitted()
        return len(self.thresholds_)

    def _bits(self, X: Rows) -> Bits:
        hasher = self.projection_
        Z = X @ hasher.projection_
        return Z[:, self.dimensions_] > self._levels()

    def _onnx_bits(self, graph: OnnxGraph, rows: str) -> str:
        Z = graph.add("MatMul", rows, self.projection_.projection_)
        Z = graph.add("Gather", Z, np.asarray(self.dimensions_, np.int64), axis=1)
        return graph.add("Greater", Z, self._levels())

    def _levels(self) -> Float64Array:
        """The value that the product of each stored bit must exceed."""
        hasher = self.projection_
        return (hasher.mean_ @ hasher.projection_)[self.dimensions_] + self.thresholds_

    def _even_allocation(self, bits_per_dimension: int) -> Allocation:
        """The same number of bits for each dimension; the last one has what is left."""
        full, rest = divmod(self.n_bits, bits_per_dimension)
        allocation = [bits_per_dimension] * full + ([rest] if rest else [])
        self._check_stored(allocation)
        return allocation

    def _check_stored(self, allocation: Allocation) -> None:
        n_stored = sum(n_thresholds(allocation))
        if n_stored > MAX_BITS:
            raise InputError(
                f"{self._title}: codes of {self.n_bits} bits would take {n_stored:,} stored bits, "
                f"and {MAX_BITS:,} are possible; give fewer n_bits, or fewer bits per dimension."
            )

    def _keep_thresholds(
        self, hasher: LinearHasher, thresholds: list[Float64Array], **learned: Any
    ) -> None:
        """Keep the thresholds of each dimension of the projection."""
        sizes = [len(one) for one in thresholds]
        self._keep(
            projection_=hasher,
            dimensions_=np.repeat(np.arange(len(sizes)), sizes),
            thresholds_=np.concatenate(thresholds),
            **learned,
        )
        self.stopped_early_ = hasher.stopped_early_


def n_thresholds(allocation: Allocation) -> list[int]:
    """The number of thresholds of each dimension: 2^q - 1 for q bits."""
    return [(1 << bits) - 1 for bits in allocation]


def unfitted(owner: Hasher, parameter: str, n_bits: int, default: str) -> LinearHasher:
    """The linear hasher that a parameter gives, by its name or as an unfitted one, as a copy."""
    given = getattr(owner, parameter)
    given = default if given is None else given
    if isinstance(given, str) and issubclass(_named(given), LinearHasher):
        return _named(given)(n_bits, random_state=owner.random_state)
    if not isinstance(given, LinearHasher):
        raise InputError(
            f"{owner._title}: {parameter} must be a linear hasher, such as 'itq' or ITQ(), or "
            f"None, got {given!r}."
        )
    hasher: LinearHasher = clone(given)
    return hasher.set_params(n_bits=n_bits)


def takes_y(given: Any) -> bool:
    """Whether the linear hasher that a parameter gives uses ``y``."""
    if isinstance(given, str):
        return bool(_named(given).needs_y)
    return isinstance(given, LinearHasher) and given._takes_y


def _named(name: str) -> Any:
    from bittern.hashing import HASHERS

    return HASHERS[name]
