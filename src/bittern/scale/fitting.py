"""Learn from shards of vectors by sums: means, covariances, rotations and k-means."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_count
from bittern.data.steps import check_matrix
from bittern.errors import BitternError, InputError
from bittern.hashing import HASHERS
from bittern.hashing.itq import rotations, rotations_by
from bittern.hashing.sums import RowSums, SumHasher
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner

ROWS = 1 << 14  # of a shard that are summed at a time
SAMPLE = 100_000  # rows that a rotation is learned from, unless given
Learner = TypeVar("Learner", bound=SumHasher)
Sums = tuple[Float64Array, ...]


def fit(
    hasher: Learner,
    shards: str | os.PathLike[str] | Shards,
    *,
    sample: int | None = SAMPLE,
    executor: Executor | None = None,
) -> Learner:
    """Fit a hasher to shards of vectors, and to their labels or tags if it uses targets.

    Means, covariances and correlations are sums over all rows, two passes over the shards.  The
    rotation of ITQ and ITQ-CCA is learned from ``sample`` rows, projected where they are: rows at
    random positions of the whole database, drawn with the hasher's random_state, or all if there
    are no more.  With ``sample=None`` every step of the rotation is itself a sum over all rows,
    one pass each.  The result is that of ``hasher.fit`` on the rows in one piece, up to rounding;
    it depends neither on the order of tasks nor, beyond rounding, on how the rows were cut.  (The
    canonical directions of ITQ-CCA have no sign of their own; here the largest entry is positive,
    while ``fit`` leaves it to rounding, so that its rotation may start from another sign.)
    """
    if not isinstance(hasher, SumHasher):
        able = [name for name, kind in HASHERS.items() if issubclass(kind, SumHasher)]
        raise InputError(
            f"scale.fit: {hasher!r} does not learn from sums; {', '.join(able)} do.  Fit it on a "
            "sample of the rows instead."
        )
    opened = _with_vectors(shards)
    if sample is not None:
        check_count(sample, "scale.fit: sample")
    target = next((part for part in ("labels", "tags") if part in opened.parts), None)
    if hasher.needs_y and target is None:
        raise InputError(f"{opened.folder}: {hasher.name} needs shards with labels or tags.")
    seed = hasher.random_state if isinstance(hasher.random_state, int) else 0
    sums = ShardSums(opened, Runner(executor), target if hasher.needs_y else None, sample, seed)
    return hasher.fit_sums(sums)


def kmeans(
    shards: str | os.PathLike[str] | Shards,
    n_clusters: int,
    *,
    n_iter: int = 20,
    random_state: int = 0,
    executor: Executor | None = None,
) -> Float64Array:
    """Means ``(n_clusters, dim)`` of clusters of vectors: Lloyd's algorithm, whose steps are sums.

    It begins with the rows at random positions of the whole database.  Every shard gives, for each
    mean, the sum and the number of the rows nearest to it (the first mean, of equally near ones); a
    mean without rows stays where it is.  It ends after ``n_iter`` steps, or when no mean moves.
    """
    opened, run = _with_vectors(shards), Runner(executor)
    k = check_count(n_clusters, "scale.kmeans: n_clusters", most=opened.n_items)
    check_count(n_iter, "scale.kmeans: n_iter")
    means = _gathered(opened, run, random_positions(opened.n_items, k, random_state))
    for _ in range(n_iter):
        tasks = {shard.name: _Clusters(shard, means) for shard in opened}
        sums, sizes = _sum(run, tasks, "cluster")
        moved = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], means)
        if np.array_equal(moved, means):
            break
        means = moved
    return means


def random_positions(n: int, size: int, random_state: int) -> NDArray[np.int64]:
    """Ascending positions of ``size`` of n rows, or of all if there are no more."""
    if size >= n:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n, size, replace=False, shuffle=False))


class ShardSums(RowSums):
    """Sums over the vectors of shards, and over their classes or tags."""

    def __init__(
        self, shards: Shards, run: Runner, target: str | None, sample: int | None, seed: int
    ) -> None:
        self._shards, self._run, self._target = shards, run, target
        self._sample, self._seed = sample, seed
        first = next(iter(shards)).vectors
        self.n, self.dim = shards.n_items, first.shape[1]
        self.eps = float(np.finfo(check_matrix(first[:1], "scale.fit").dtype).eps)

    @cached_property
    def mean(self) -> Float64Array:
        """The mean of the rows."""
        tasks = {shard.name: _Total(shard) for shard in self._shards}
        return _sum(self._run, tasks, "mean")[0] / self.n

    @property
    def scatter(self) -> Float64Array:
        """The sum of squares and products around the mean."""
        return self._scatters[0]

    @property
    def target_scatters(self) -> tuple[Float64Array, Float64Array]:
        """The same of rows and indicators, and of indicators."""
        return self._scatters[1], self._scatters[2]

    def rotations(
        self, axes: Float64Array, n_bits: int, n_iter: int, rng: np.random.Generator, title: str
    ) -> Iterator[Float64Array]:
        """Rotations of the sample's projections, or by a sum over all rows for each step."""
        if self._sample is not None:
            chosen = random_positions(self.n, self._sample, self._seed)
            V = _gathered(self._shards, self._run, chosen, self.mean, axes)
            return rotations(V, n_bits, n_iter, rng, title)

        def product(R: Float64Array, before: Float64Array | None) -> tuple[Float64Array, bool]:
            rotated = [axes @ R] if before is None else [axes @ R, axes @ before]
            tasks = {s.name: _Signs(s, self.mean, axes, rotated) for s in self._shards}
            M, n_changed = _sum(self._run, tasks, "rotate")
            return M, before is None or bool(n_changed)

        return rotations_by(product, axes.shape[1], n_bits, n_iter, rng, title)

    @cached_property
    def _scatters(self) -> Sums:
        classes = self._classes if self._target == "labels" else None
        y_mean = None if self._target is None else self._indicator_mean(classes)
        tasks = {
            shard.name: _Scatter(shard, self.mean, self._target, classes, y_mean)
            for shard in self._shards
        }
        return _sum(self._run, tasks, "covariance")

    @cached_property
    def _classes(self) -> NDArray[Any]:
        tasks = {shard.name: shard for shard in self._shards}
        found = [classes for _, classes in self._run(_classes_of, tasks, "classes")]
        return np.unique(np.concatenate(found))

    def _indicator_mean(self, classes: NDArray[Any] | None) -> Float64Array:
        tasks = {s.name: _TargetTotal(s, self._target, classes) for s in self._shards}
        return _sum(self._run, tasks, "targets")[0] / self.n


def _with_vectors(shards: str | os.PathLike[str] | Shards) -> Shards:
    opened = Shards.open(shards)
    if "vectors" not in opened.parts:
        raise InputError(f"{opened.folder}: its shards have no vectors to learn from.")
    return opened


@dataclass(frozen=True, slots=True)
class _Task:
    """Something that is summed over the rows of a shard."""

    shard: Shard

    def of_rows(self, X: NDArray[Any], rows: slice) -> Sums:
        """The terms of some rows, summed."""
        raise AssertionError("each sum says what it adds")


@dataclass(frozen=True, slots=True)
class _Total(_Task):
    """The sum of the rows."""

    def of_rows(self, X: NDArray[Any], rows: slice) -> Sums:
        """The terms of some rows, summed."""
        return (X.sum(axis=0, dtype=np.float64),)


@dataclass(frozen=True, slots=True)
class _TargetTotal(_Task):
    """The sum of the indicators."""

    target: str | None
    classes: NDArray[Any] | None

    def of_rows(self, X: NDArray[Any], rows: slice) -> Sums:
        """The terms of some rows, summed."""
        return (_indicators(self.shard, self.target, self.classes, rows).sum(axis=0),)


@dataclass(frozen=True, slots=True)
class _Scatter(_Task):
    """Squares and products around the means, of rows and indicators."""

    mean: Float64Array
    target: str | None
    classes: NDArray[Any] | None
    y_mean: Float64Array | None

    def of_rows(self, X: NDArray[Any], rows: slice) -> Sums:
        """The terms of some rows, summed."""
        centred = X - self.mean
        scatter = centred.T @ centred
        if self.y_mean is None:
            return (scatter,)
        Y = _indicators(self.shard, self.target, self.classes, rows) - self.y_mean
        return scatter, centred.T @ Y, Y.T @ Y


@dataclass(frozen=True, slots=True)
class _Signs(_Task):
    """VᵀB for the signs of the rotated rows, and how many of them changed since the step before."""

    mean: Float64Array
    axes: Float64Array
    rotated: list[Float64Array]  # axes after this rotation, and after the one before

    def of_rows(self, X: NDArray[Any], rows: slice) -> Sums:
        """The terms of some rows, summed."""
        centred = X - self.mean
        positive, *before = [centred @ W > 0 for W in self.rotated]
        n_changed = np.float64(sum(np.count_nonzero(positive != one) for one in before))
        return (centred @ self.axes).T @ np.where(positive, 1.0, -1.0), np.asarray(n_changed)


@dataclass(frozen=True, slots=True)
class _Clusters(_Task):
    """The sum and the number of the rows nearest to each mean."""

    means: Float64Array

    def of_rows(self, X: NDArray[Any], rows: slice) -> Sums:
        """The terms of some rows, summed."""
        from bittern.hashing.kernel_maps import square_distances

        nearest = square_distances(X, self.means).argmin(axis=1)
        sums = np.zeros(self.means.shape)
        np.add.at(sums, nearest, X)
        return sums, np.bincount(nearest, minlength=len(sums)).astype(np.float64)


def _sum(run: Runner, tasks: dict[str, Any], what: str) -> Sums:
    """The sum over all shards, in their order."""
    total: Sums | None = None
    for sums in run.in_order(_sum_of_shard, tasks, what):
        total = sums if total is None else tuple(map(np.add, total, sums))
    assert total is not None
    return total


def _sum_of_shard(task: _Task) -> Sums:
    """The sum over one shard, where this runs, block by block."""
    shard, total = task.shard, None
    try:
        vectors = shard.vectors
        for start in range(0, shard.n, ROWS):
            rows = slice(start, min(shard.n, start + ROWS))
            sums = task.of_rows(check_matrix(vectors[rows], "vectors"), rows)
            total = sums if total is None else tuple(map(np.add, total, sums))
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None
    assert total is not None
    return total


def _classes_of(shard: Shard) -> NDArray[Any]:
    return np.unique(shard.labels)


def _indicators(
    shard: Shard, target: str | None, classes: NDArray[Any] | None, rows: slice
) -> Float64Array:
    """A column for each class or tag."""
    if target == "tags":
        return shard.tags[rows].astype(np.float64)
    assert classes is not None
    return (np.asarray(shard.labels[rows])[:, None] == classes).astype(np.float64)


def _gathered(
    shards: Shards,
    run: Runner,
    positions: NDArray[np.int64],
    mean: Float64Array | None = None,
    axes: Float64Array | None = None,
) -> Float64Array:
    """Rows at ascending positions of the whole database, or their projections."""
    tasks = {
        shard.name: (shard, inside - shard.start, mean, axes)
        for shard in shards
        if len(inside := positions[(positions >= shard.start) & (positions < shard.stop)])
    }
    return np.concatenate(list(run.in_order(_rows_of, tasks, "sample")))


def _rows_of(
    task: tuple[Shard, NDArray[np.int64], Float64Array | None, Float64Array | None],
) -> Float64Array:
    """Some rows of a shard, or their projections, where this runs."""
    shard, rows, mean, axes = task
    try:
        X = check_matrix(shard.vectors[rows], "vectors").astype(np.float64, copy=False)
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None
    return X if mean is None or axes is None else (X - mean) @ axes
