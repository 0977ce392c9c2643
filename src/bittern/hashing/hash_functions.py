"""Hash functions that StructHash can add, each learned for given weights of pairs; half-spaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.hashing.base import Rows
from bittern.hashing.linear import SLACK
from bittern.hashing.ranking_lists import BitColumn, Ints, RankingLists

RIDGE = 0.3  # of the mean variance of a column
N_EIGENVECTORS = 3  # from which target bits start
LANCZOS_STEPS = 30
MAX_SWEEPS = 20  # of flips of the target bits


@dataclass(frozen=True, eq=False)
class HashFunction:
    """A hash function: its parameters, its bits of the rows, and their score."""

    parameters: Any  # as the family's model() takes them
    bits: BitColumn
    score: float


class Family(Protocol):
    """A family of hash functions."""

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[HashFunction]:
        """Functions of positive score for these weights of pairs, the best first."""

    def random(self, rng: np.random.Generator) -> HashFunction:
        """A random function."""

    def model(self, parameters: list[Any]) -> dict[str, Any]:
        """The learned attributes of a hasher with these functions."""


def fit_targets(
    lists: RankingLists,
    weights: Float64Array,
    fit: Callable[[Any, Float64Array, Float64Array], HashFunction],
    rng: np.random.Generator,
) -> list[HashFunction]:
    """Functions fitted to target bits, the best first."""
    if not weights.any():
        return []
    matrix, functions = lists.matrix(weights), []
    for start in _lowest_eigenvectors(matrix, rng).T:
        target = np.where(start > 0, 1.0, -1.0)
        for _ in range(2):
            _flip_targets(matrix.indptr, matrix.indices, matrix.data, target)
            functions.append(fit(matrix, target, weights))
            target = np.where(functions[-1].bits, 1.0, -1.0)
    return best_first(functions)


def best_first(functions: list[HashFunction]) -> list[HashFunction]:
    """Those of positive score, in this order."""
    positive = [function for function in functions if function.score > 0]
    return sorted(positive, key=lambda function: -function.score)


def _lowest_eigenvectors(matrix: Any, rng: np.random.Generator) -> Float64Array:
    """Approximate eigenvectors, as columns, by 30 Lanczos steps with full orthogonalisation.

    SciPy's ``eigsh`` iterates to convergence, which starting points do not need, and would change
    the codes.
    """
    n = matrix.shape[0]
    basis = np.zeros((min(n, LANCZOS_STEPS), n))
    vector = rng.standard_normal(n)
    for step in range(len(basis)):
        size = np.linalg.norm(vector)
        for _ in range(2):
            vector = vector - (basis[:step] @ vector) @ basis[:step]
        if np.linalg.norm(vector) <= 1e-8 * size:
            basis = basis[:step]  # an invariant subspace: no further directions
            break
        basis[step] = vector / np.linalg.norm(vector)
        vector = matrix @ basis[step]
    _, small = np.linalg.eigh(basis @ (matrix @ basis.T))
    return basis.T @ small[:, :N_EIGENVECTORS]


class HalfSpaces:
    """Half-spaces: one side of a cut along a direction."""

    def __init__(self, X: Rows, lists: RankingLists):
        self.lists = lists
        self.mean = X.mean(axis=0, dtype=np.float64)
        centred = X - self.mean.astype(X.dtype)
        self.scale = float(np.abs(centred).max()) or 1.0
        self.rows = centred / X.dtype.type(self.scale)
        self.regress = _ridge(self.rows)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[HashFunction]:
        """Functions of positive score, the best first."""
        return fit_targets(self.lists, weights, self._fit, rng)

    def random(self, rng: np.random.Generator) -> HashFunction:
        """A random cut."""
        values, direction = self._along(rng.standard_normal(self.rows.shape[1]))
        level, cuts = _levels(values, self._tolerance)
        return self._function(direction, level, cuts, len(cuts) // 2, 0.0)

    def model(self, parameters: list[tuple[Any, ...]]) -> dict[str, Any]:
        """The learned attributes."""
        directions, offsets = zip(*parameters, strict=True)
        return {
            "mean_": self.mean,
            "projection_": np.column_stack(directions) / self.scale,
            "offset_": np.array(offsets),
        }

    def _fit(self, matrix: Any, target: Float64Array, weights: Float64Array) -> HashFunction:
        values, direction = self._along(self.regress(target - target.mean()))
        level, cuts = _levels(values, self._tolerance)
        score, cut = best_cuts(level[None], self.lists.query, self.lists.item, weights)
        return self._function(direction, level, cuts, int(cut[0]), float(score[0]))

    def _along(self, direction: Float64Array) -> tuple[Rows, Float64Array]:
        """The rows along a direction, scaled so that their mean square is 1, and the direction."""
        values = self.rows @ direction.astype(self.rows.dtype)
        size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) or 1.0
        return values / values.dtype.type(size), direction / size

    def _function(
        self, direction: Float64Array, level: Ints, cuts: Rows, cut: int, score: float
    ) -> HashFunction:
        """The side above a cut; constant if there is no such cut."""
        if cut < len(cuts):
            return HashFunction((direction, float(cuts[cut])), level > cut, score)
        return HashFunction((np.zeros_like(direction), 0.0), np.zeros(len(level), bool), 0.0)

    @property
    def _tolerance(self) -> float:
        """Rows closer than this are not separated by a cut."""
        return float(4 * SLACK * np.finfo(self.rows.dtype).eps)


def _ridge(rows: Rows) -> Callable[[Float64Array], Float64Array]:
    """A function that regresses a target of mean 0 on centred rows, and returns the weights."""
    from scipy.linalg import cho_factor, cho_solve

    n, dim = rows.shape
    gram = (rows.T @ rows if n >= dim else rows @ rows.T).astype(np.float64)
    gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / dim or 1.0
    factor = cho_factor(gram)
    if n >= dim:
        return lambda target: cho_solve(factor, (target.astype(rows.dtype) @ rows).astype(float))
    return lambda target: cho_solve(factor, target).astype(rows.dtype) @ rows


def _levels(values: Rows, tolerance: float) -> tuple[Ints, Rows]:
    """Each value's place among the distinct ones, and the cuts between them."""
    order = np.argsort(values, kind="stable")
    inorder = values[order]
    steps = np.diff(inorder) > tolerance
    level = np.empty(len(values), np.int32)
    level[order] = np.concatenate(([0], np.cumsum(steps)))
    return level, inorder[:-1][steps] / 2 + inorder[1:][steps] / 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def best_cuts(
    level: NDArray[Any], query: Ints, item: Ints, weights: Float64Array
) -> tuple[Float64Array, NDArray[np.int64]]:
    """For each row of levels, the largest weight of pairs that a cut separates, and the cut."""
    score, cut = np.zeros(level.shape[0]), np.zeros(level.shape[0], np.int64)
    rise = np.empty(int(level.max()) + 1)
    for f in range(level.shape[0]):
        rise[:] = 0
        for p in range(len(weights)):
            a, b = level[f, query[p]], level[f, item[p]]
            change = weights[p] * (2 * (b > a) - 1)
            rise[a] += change
            rise[b] -= change
        apart = 0.0
        for c in range(len(rise) - 1):
            apart += rise[c]
            if apart > score[f]:
                score[f], cut[f] = apart, c
    return score, cut


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _flip_targets(indptr: Ints, indices: Ints, data: Float64Array, target: Float64Array) -> None:
    """Flip entries of ±1 while that decreases tᵀAt."""
    for _ in range(MAX_SWEEPS):
        changed = False
        for i in range(len(target)):
            pull = 0.0
            for entry in range(indptr[i], indptr[i + 1]):
                pull += data[entry] * target[indices[entry]]
            if pull * target[i] > 0:
                target[i] = -target[i]
                changed = True
        if not changed:
            break
