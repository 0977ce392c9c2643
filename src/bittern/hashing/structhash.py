"""Bits that rank relevant rows first, added one by one to a structural support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import (
    Float32Array,
    Float64Array,
    check_choice,
    check_count,
    check_number,
    row_blocks,
)
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.linear import SLACK
from bittern.hashing.targets import Targets
from bittern.progress import track

__all__ = ["StructHash"]

Ints = NDArray[np.int32]
Octets = NDArray[np.uint8]
Bit = NDArray[np.bool_]

RIDGE = 0.3  # of the mean variance of a column
DEPTH = 4  # of a tree
LEVELS = 256  # of a column, between which it may be cut
SAME = 0.95  # rows on which two bits agree, or disagree, that makes them the same
WORTH = 0.25  # of what the best bit is worth, that a new one must be worth to come first
TRIES = 8  # to find a bit that is not the same as an earlier one
STARTS = 3  # eigenvectors from which target bits are sought
STEPS = 30  # to find them
SWEEPS = 20  # to settle the target bits
MOST_STUMPS = 256  # of different columns, among which a new one is sought
GAP = 0.01  # part of the regularised risk that a better w could still gain
MOST_PLANES = 30  # sought for each bit


class StructHash(Hasher):
    r"""Column generation for ranking: each bit is the one that mends the ranking most.

    With weights :math:`w \ge 0`, rows are apart by
    :math:`d_w(x, x') = \sum_b w_b [h_b(x) \ne h_b(x')]`.  For m training rows as queries i, with
    relevant rows :math:`P_i` and irrelevant rows :math:`N_i`, let :math:`S(\pi)` be the pairs
    (j, k) of a relevant and an irrelevant row that a ranking :math:`\pi` has the wrong way round,
    and :math:`\Delta` its loss.  The 1-slack structural support vector machine

    .. math::

        \min_{w \ge 0,\, \xi \ge 0} \|w\|_\infty + C \xi \quad \text{so that} \quad
        \frac1m \sum_i \Delta(\pi_i) - \frac1m \sum_i \frac{1}{|P_i| |N_i|}
        \sum_{(j, k) \in S(\pi_i)} \big( d_w(x_i, x_k) - d_w(x_i, x_j) \big) \le \xi
        \quad \text{for all } \pi_1 \dots \pi_m

    is solved by cutting planes, the most violated rankings for the present w in turn, as a linear
    programme, until a better w could gain 1 % at most (or 30 planes were added).  The multipliers
    of the planes add up to weights :math:`\mu_{ijk} \ge 0` of triplets, and the next bit is sought
    that maximises

    .. math:: \sum_{ijk} \mu_{ijk} \big( [h(x_i) \ne h(x_k)] - [h(x_i) \ne h(x_j)] \big);

    where that is positive, the new column lowers the regularised risk.  It is added, w is solved
    for again, and so on until there are ``n_bits``.

    ``loss="auc"``: :math:`\Delta(\pi) = |S(\pi)| / (|P| |N|)`; then ξ is the mean hinge loss
    :math:`[1 - d_w(x_i, x_k) + d_w(x_i, x_j)]_+` over triplets, as in CGHash.  The most violated
    ranking sorts by distances, those of irrelevant rows less 1.
    ``loss="ndcg"``: :math:`\Delta` is 1 less the normalised discounted cumulative gain, with
    discounts :math:`1 / \log_2(1 + \text{rank})`.  Both kinds of rows sorted by distance, the r-th
    relevant row comes after :math:`b_r` irrelevant ones; the loss and the constraint are sums over
    r of functions of :math:`b_r`, and the best :math:`b_1 \le b_2 \le \dots` are found exactly by
    dynamic programming.

    Bits are sought as follows.  With A the symmetric matrix of the weights of pairs, target bits
    minimise :math:`t^\top A t`: the signs of the lowest three eigenvectors, from which single
    entries are flipped while that helps.  ``learner="linear"`` fits them by ridge regression
    (penalty: 0.3 of the columns' mean variance), and cuts the fitted values where the sum above is
    largest.  ``"tree"`` grows a tree of depth 4 on :math:`-A t`, by its variance.  Both settle the
    targets once more from the bits found, fit again, and take the best.  ``"stump"`` needs no
    targets: of the best cuts of all columns it takes the best.  Stumps and trees cut a column at no
    more than 255 of its values.

    A bit that agrees with an earlier one, or its complement, on 95 % of the rows is passed over for
    the next best, then for what is best if queries are weighted at random, and at last for a
    random cut (which makes all the bits if nothing can be ranked, as with one class).  Only if that
    fails too, as with few distinct rows, are bits repeated.

    At most ``n_queries`` random rows are queries, with at most ``n_relevant`` relevant and
    ``n_irrelevant`` irrelevant random rows each; only rows in these lists are learned from.  A
    graded Relevance is made yes/no for each query by a random one of the levels in its row.

    ``weights_`` are the w, ``objective_`` the regularised risk after each bit; codes are compared
    by the plain Hamming distance all the same.  That is why w is bounded by its largest entry: with
    the sum of the w in its place, as in the original, many bits would get no weight, and later
    bits would rely on that.  Other deviations: the original maximises over linear functions by
    descent on sigmoids, starting from the spectral relaxation.

    References: [Lin-Shen-Wu-2014], [Lin-Liu-Shen-Wu-Shen-2017], and, for triplets,
    [Li-Lin-Shen-vandenHengel-Dick-2013].
    """

    name = "structhash"
    needs_y = True

    weights_: Float64Array  # (n_bits,)
    objective_: Float64Array  # (n_bits,)
    mean_: Float64Array  # (dim,)
    projection_: Float64Array  # (dim, n_bits)
    offset_: Float64Array  # (n_bits,)
    feature_: Ints  # (n_bits, n_nodes), of complete trees, a node m before its 2m + 1 and 2m + 2
    threshold_: Float64Array  # (n_bits, n_nodes)
    leaf_: Bit  # (n_bits, n_nodes + 1)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "auc",
        learner: str = "linear",
        C: float = 1.0,
        n_queries: int = 2000,
        n_relevant: int = 50,
        n_irrelevant: int = 50,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.loss = loss
        self.learner = learner
        self.C = C
        self.n_queries = n_queries
        self.n_relevant = n_relevant
        self.n_irrelevant = n_irrelevant
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._check()
        rng = self._generator()
        lists = _draw(targets, self.n_queries, self.n_relevant, self.n_irrelevant, rng)
        learner = LEARNERS[self.learner](X[lists.rows], lists)
        machine = _Machine(lists, self.loss == "ndcg", float(self.C))
        columns: list[_Column] = []
        objective = []
        for _ in track(range(self.n_bits), f"{self._title}: learning the bits"):
            columns.append(_next(learner, machine, columns, rng))
            objective.append(machine.add(columns[-1].bits))
        self._keep(
            weights_=machine.w,
            objective_=self.C * np.array(objective),
            **learner.model([column.function for column in columns]),
        )

    def _check(self) -> None:
        check_choice(self.loss, f"{self._title}: loss", ("auc", "ndcg"))
        check_choice(self.learner, f"{self._title}: learner", tuple(LEARNERS))
        check_number(self.C, f"{self._title}: C", above=0)
        check_count(self.n_queries, f"{self._title}: n_queries")
        check_count(self.n_relevant, f"{self._title}: n_relevant")
        check_count(self.n_irrelevant, f"{self._title}: n_irrelevant")

    def _bits(self, X: Rows) -> Bits:
        if hasattr(self, "projection_"):
            return _above(X, self.mean_, self.projection_, self.offset_)
        return _leaves(X, self.feature_, self.threshold_, self.leaf_)


def _above(X: Rows, mean: Float64Array, projection: Float64Array, offset: Float64Array) -> Bits:
    """Whether centred rows lie above cuts of directions along which training rows vary by 1."""
    slack = SLACK * np.finfo(X.dtype).eps
    return (X - mean.astype(X.dtype)) @ projection.astype(X.dtype) > offset + slack


def _leaves(X: Rows, feature: Ints, threshold: Float64Array, leaf: Bit) -> Bits:
    """The bits in which rows end that go right where a feature exceeds its threshold."""
    trees, rows = np.arange(len(leaf)), np.arange(len(X))[:, None]
    node = np.zeros((len(X), len(leaf)), np.intp)
    for _ in range((leaf.shape[1] - 1).bit_length()):
        right = X[rows, feature[trees, node]] > threshold[trees, node]
        node = 2 * node + 1 + right
    return leaf[trees, node - feature.shape[1]]


@dataclass(frozen=True, eq=False)
class _Lists:
    """Pairs of queries and the rows in their lists, the relevant rows first in each."""

    rows: NDArray[np.intp]  # (n_rows,) training rows in any list; below, positions among these
    one: Ints  # (n_pairs,) the query
    other: Ints  # (n_pairs,) the row in its list
    start: NDArray[np.int64]  # (n_queries + 1,) pairs of query i are start[i]:start[i + 1]
    n_relevant: NDArray[np.int64]  # (n_queries,)

    def score(self, bits: Bit, weights: Float64Array) -> float:
        """Sum of the weights of pairs that a bit tells apart."""
        return float(weights @ (bits[self.one] != bits[self.other]))

    def matrix(self, weights: Float64Array) -> Any:
        """Weights of pairs as a sparse symmetric matrix."""
        from scipy.sparse import csr_array

        slot, indices, indptr = self._pattern
        data = np.bincount(slot, np.tile(weights, 2), minlength=len(indices))
        return csr_array((data, indices, indptr), shape=(len(self.rows), len(self.rows)))

    @cached_property
    def _pattern(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Where the pairs, and then their mirror images, are in the matrix; its structure."""
        n = len(self.rows)
        there = self.one.astype(np.int64) * n + self.other
        back = self.other.astype(np.int64) * n + self.one
        entries, slot = np.unique(np.concatenate((there, back)), return_inverse=True)
        indptr = np.searchsorted(entries, n * np.arange(n + 1, dtype=np.int64))
        return slot, (entries % max(n, 1)).astype(np.int32), indptr.astype(np.int32)


def _draw(
    targets: Targets, n_queries: int, n_relevant: int, n_irrelevant: int, rng: np.random.Generator
) -> _Lists:
    """Random queries, and random relevant and irrelevant rows for those that have both."""
    queries = np.sort(rng.permutation(targets.n)[:n_queries])
    asked, sizes, members = [queries[:0]], [], [queries[:0]]
    for some in row_blocks(len(queries), 4 * targets.n):
        for i, affinity in zip(queries[some], targets.affinity(queries[some]), strict=True):
            kinds = _two_kinds(i, affinity, targets.relevance is not None, rng)
            if min(map(len, kinds)) == 0:
                continue
            chosen = [_some(kinds[0], n_relevant, rng), _some(kinds[1], n_irrelevant, rng)]
            sizes.append([len(part) for part in chosen])
            asked.append(np.full(sum(sizes[-1]), i))
            members += chosen
    pairs = np.concatenate(asked + members)
    rows, position = np.unique(pairs, return_inverse=True) if sizes else (queries, pairs)
    one, other = position.astype(np.int32).reshape(2, -1)
    length = np.array(sizes, np.int64).reshape(-1, 2)
    start = np.concatenate(([0], np.cumsum(length.sum(axis=1))))
    return _Lists(rows, one, other, start, length[:, 0].copy())  # one layout, compiled once


def _two_kinds(
    i: int, affinity: Float32Array, is_graded: bool, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows relevant to row i, and rows irrelevant to it; without row i itself."""
    level = 0.0
    if is_graded:
        levels = np.unique(np.delete(affinity, i))
        level = levels[rng.integers(max(1, len(levels) - 1))] if len(levels) else level
    is_relevant = affinity > level
    relevant, irrelevant = np.flatnonzero(is_relevant), np.flatnonzero(~is_relevant)
    return relevant[relevant != i], irrelevant[irrelevant != i]


def _some(rows: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    return rng.choice(rows, min(n, len(rows)), replace=False)


class _Machine:
    """The structural support vector machine for the bits so far."""

    def __init__(self, lists: _Lists, is_ndcg: bool, C: float):
        self.lists, self.is_ndcg = lists, is_ndcg
        self.price = min(1 / C, 1e9)  # of max w, where ξ costs 1; what no gain pays for is enough
        self.w = np.zeros(0)
        self.apart = np.zeros((0, len(lists.one)), np.uint8)  # by bit and pair
        coefficients, loss = self._most_violated(self.w)
        self.objective = loss
        self.planes = [coefficients]  # each (n_pairs,)
        self.losses = [loss]
        self.gains = np.zeros((1, 0))  # of a plane from the weight of a bit
        self.duals = np.ones(1)

    def pair_weights(self) -> Float64Array:
        """What telling a pair apart is worth to the next bit."""
        total = np.zeros(len(self.lists.one))
        for dual, plane in zip(self.duals, self.planes, strict=True):
            total += dual * plane
        return total

    def add(self, bits: Bit) -> float:
        """Take another bit, solve for w again, and return the regularised risk, divided by C."""
        apart = bits[self.lists.one] != bits[self.lists.other]
        gains = [float(plane @ apart.astype(plane.dtype)) for plane in self.planes]
        self.gains = np.column_stack((self.gains, gains))
        self.apart = np.vstack((self.apart, apart.astype(np.uint8)))
        self.w = np.append(self.w, 0.0)
        for _ in range(MOST_PLANES):
            if self._improve():
                break
        used = np.flatnonzero(self.duals > 0)
        self.planes = [self.planes[p] for p in used]
        self.losses = [self.losses[p] for p in used]
        self.gains, self.duals = self.gains[used], self.duals[used]
        return self.objective

    def _improve(self) -> bool:
        """Solve for the planes so far and seek another; whether w is good enough."""
        w, bound, self.duals = _solve(self.gains, np.array(self.losses), self.price)
        coefficients, loss = self._most_violated(w)
        gains = _gains(coefficients, self.apart)
        objective = self.price * w.max() + loss - gains @ w
        if objective < self.objective:
            self.w, self.objective = w, float(objective)
        if self.objective - bound <= GAP * self.objective:
            return True
        self.planes.append(coefficients)
        self.losses.append(loss)
        self.gains = np.vstack((self.gains, gains))
        self.duals = np.append(self.duals, 0.0)
        return False

    def _most_violated(self, w: Float64Array) -> tuple[Float32Array, float]:
        """A cutting plane: its coefficient for each pair, and the mean loss of its rankings."""
        lists = self.lists
        coefficients = np.zeros(len(lists.one), np.float32)
        distance = _weighted_distance(w, self.apart)
        loss = _worst_rankings(distance, lists.start, lists.n_relevant, self.is_ndcg, coefficients)
        return coefficients, float(loss)


def _solve(
    gains: Float64Array, losses: Float64Array, price: float
) -> tuple[Float64Array, float, Float64Array]:
    """w, the regularised risk over C, and the planes' multipliers, if there are no other planes."""
    from scipy.optimize import linprog

    n_planes, n_bits = gains.shape
    planes = np.column_stack((-gains, -np.ones(n_planes), np.zeros(n_planes)))
    largest = np.column_stack((np.eye(n_bits), np.zeros(n_bits), -np.ones(n_bits)))
    found = linprog(
        np.concatenate((np.zeros(n_bits), [1.0, price])),  # of w, ξ and max w
        A_ub=np.vstack((planes, largest)),
        b_ub=np.concatenate((-losses, np.zeros(n_bits))),
        method="highs-ds",
    )
    duals = np.maximum(-found.ineqlin.marginals[:n_planes], 0)
    return np.maximum(found.x[:n_bits], 0), float(found.fun), duals


@dataclass(frozen=True, eq=False)
class _Column:
    """A hash function: what it is made of, the rows' bits, and what they are worth."""

    function: tuple[Any, ...]
    bits: Bit
    score: float


class _Learner(Protocol):
    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_Column]:
        """Columns that are worth something for these weights of pairs, the best first."""

    def random(self, rng: np.random.Generator) -> _Column:
        """Any column."""

    def model(self, functions: list[tuple[Any, ...]]) -> dict[str, Any]:
        """What a hasher keeps."""


def _next(
    learner: _Learner, machine: _Machine, columns: list[_Column], rng: np.random.Generator
) -> _Column:
    """The best column that is none of those before, or is worth repeating; or any."""
    lists, weights = machine.lists, machine.pair_weights()
    before = np.array([column.bits for column in columns]).reshape(-1, len(lists.rows))
    best = found = learner.best(weights, rng)
    enough = WORTH * best[0].score if best else 0.0
    for _ in range(TRIES):
        for column in found:
            if lists.score(column.bits, weights) > enough and _is_new(column.bits, before):
                return column
        tilt = rng.standard_exponential(len(lists.n_relevant)) ** 2
        found = learner.best(weights * np.repeat(tilt, np.diff(lists.start)), rng)
    if best:
        return best[0]
    for _ in range(TRIES):
        column = learner.random(rng)
        if _is_new(column.bits, before):
            break
    return column


def _is_new(bits: Bit, before: Bit) -> bool:
    """Whether a column is neither constant nor the same as one before."""
    agree = (before == bits).mean(axis=1)
    differs = (agree <= SAME) & (agree >= 1 - SAME)
    return bool(bits.any() and not bits.all() and differs.all())


def _fitted(
    lists: _Lists,
    weights: Float64Array,
    fit: Callable[[Any, Float64Array, Float64Array], _Column],
    rng: np.random.Generator,
) -> list[_Column]:
    """Columns fitted to target bits."""
    if not weights.any():
        return []
    matrix, columns = lists.matrix(weights), []
    for start in _lowest_eigenvectors(matrix, rng).T:
        target = np.where(start > 0, 1.0, -1.0)
        for _ in range(2):
            _settle(matrix.indptr, matrix.indices, matrix.data, target)
            column = fit(matrix, target, weights)
            columns.append(column)
            target = np.where(column.bits, 1.0, -1.0)
    return _best_first(columns)


def _best_first(columns: list[_Column]) -> list[_Column]:
    worth = [column for column in columns if column.score > 0]
    return sorted(worth, key=lambda column: -column.score)


def _lowest_eigenvectors(matrix: Any, rng: np.random.Generator) -> Float64Array:
    """Approximately, as columns; by Lanczos' method, always orthogonalised in full."""
    n = matrix.shape[0]
    basis = np.zeros((min(n, STEPS), n))
    vector = rng.standard_normal(n)
    for step in range(len(basis)):
        size = np.linalg.norm(vector)
        for _ in range(2):
            vector = vector - (basis[:step] @ vector) @ basis[:step]
        if np.linalg.norm(vector) <= 1e-8 * size:
            basis = basis[:step]  # an invariant subspace: there is no more to find from this start
            break
        basis[step] = vector / np.linalg.norm(vector)
        vector = matrix @ basis[step]
    _, small = np.linalg.eigh(basis @ (matrix @ basis.T))
    return basis.T @ small[:, :STARTS]


class _Linear:
    """Half-spaces."""

    def __init__(self, X: Rows, lists: _Lists):
        self.lists = lists
        self.mean = X.mean(axis=0, dtype=np.float64)
        centred = X - self.mean.astype(X.dtype)
        self.scale = float(np.abs(centred).max()) or 1.0
        self.rows = centred / X.dtype.type(self.scale)
        self.regress = _ridge(self.rows)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_Column]:
        return _fitted(self.lists, weights, self._fit, rng)

    def random(self, rng: np.random.Generator) -> _Column:
        values, direction = self._along(rng.standard_normal(self.rows.shape[1]))
        level, cuts = _levels(values, self._tolerance)
        return self._column(direction, level, cuts, len(cuts) // 2, 0.0)

    def model(self, functions: list[tuple[Any, ...]]) -> dict[str, Any]:
        directions, offsets = zip(*functions, strict=True)
        return {
            "mean_": self.mean,
            "projection_": np.column_stack(directions) / self.scale,
            "offset_": np.array(offsets),
        }

    def _fit(self, matrix: Any, target: Float64Array, weights: Float64Array) -> _Column:
        values, direction = self._along(self.regress(target - target.mean()))
        level, cuts = _levels(values, self._tolerance)
        score, cut = _best_cuts(level[None], self.lists.one, self.lists.other, weights)
        return self._column(direction, level, cuts, int(cut[0]), float(score[0]))

    def _along(self, direction: Float64Array) -> tuple[Rows, Float64Array]:
        """The rows along a direction, scaled so that their mean square is 1, and the direction."""
        values = self.rows @ direction.astype(self.rows.dtype)
        size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) or 1.0
        return values / values.dtype.type(size), direction / size

    def _column(
        self, direction: Float64Array, level: Ints, cuts: Rows, cut: int, score: float
    ) -> _Column:
        if cut < len(cuts):
            return _Column((direction, float(cuts[cut])), level > cut, score)
        return _Column((np.zeros_like(direction), 0.0), np.zeros(len(level), bool), 0.0)

    @property
    def _tolerance(self) -> float:
        """Rows nearer to one another than that are not cut apart."""
        return float(4 * SLACK * np.finfo(self.rows.dtype).eps)


def _ridge(rows: Rows) -> Callable[[Float64Array], Float64Array]:
    """What regresses a target with mean 0 on centred rows."""
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


class _Trees:
    """Complete decision trees."""

    depth = DEPTH

    def __init__(self, X: Rows, lists: _Lists):
        self.lists = lists
        self.level = np.empty(X.shape[::-1], np.uint8)
        self.cuts = []
        for column, level in zip(X.T, self.level, strict=True):
            self.cuts.append(_cuts(column))
            level[:] = np.searchsorted(self.cuts[-1], column)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_Column]:
        return _fitted(self.lists, weights, self._fit, rng)

    def random(self, rng: np.random.Generator) -> _Column:
        varying = [f for f, cuts in enumerate(self.cuts) if len(cuts)]
        feature = int(rng.choice(varying)) if varying else 0
        cut = int(rng.integers(len(self.cuts[feature]))) if varying else LEVELS - 1
        return self._stump(feature, cut, 0.0)

    def model(self, functions: list[tuple[Any, ...]]) -> dict[str, Any]:
        feature, threshold, leaf = (np.array(part) for part in zip(*functions, strict=True))
        return {"feature_": feature, "threshold_": threshold, "leaf_": leaf}

    def _fit(self, matrix: Any, target: Float64Array, weights: Float64Array) -> _Column:
        feature, cut, leaf, end = _grow(self.level, -(matrix @ target), self.depth)
        bits = leaf[end]
        threshold = [self._threshold(f, c) for f, c in zip(feature, cut, strict=True)]
        return _Column((feature, threshold, leaf), bits, self.lists.score(bits, weights))

    def _stump(self, feature: int, cut: int, score: float) -> _Column:
        """A single cut, as the root of a tree that cuts no further."""
        n_nodes = 2**self.depth - 1
        features, thresholds = np.zeros(n_nodes, np.int32), np.full(n_nodes, np.inf)
        features[0], thresholds[0] = feature, self._threshold(feature, cut)
        leaf = np.arange(n_nodes + 1) > n_nodes // 2
        return _Column((features, thresholds, leaf), self.level[feature] > cut, score)

    def _threshold(self, feature: int, cut: int) -> float:
        return float(self.cuts[feature][cut]) if cut < len(self.cuts[feature]) else np.inf


class _Stumps(_Trees):
    """Single cuts of single columns."""

    depth = 1

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_Column]:
        score, cut = _best_cuts(self.level, self.lists.one, self.lists.other, weights)
        some = np.argsort(-score, kind="stable")[:MOST_STUMPS]
        return _best_first([self._stump(int(f), int(cut[f]), float(score[f])) for f in some])


LEARNERS: dict[str, Callable[[Rows, _Lists], _Learner]] = {
    "linear": _Linear,
    "stump": _Stumps,
    "tree": _Trees,
}


def _cuts(column: Rows) -> Float64Array:
    """Between the distinct values, or between quantiles if there are too many."""
    values = np.unique(column).astype(np.float64)
    if len(values) > LEVELS:
        quantiles = np.quantile(column, np.linspace(0, 1, LEVELS), method="nearest")
        values = np.unique(quantiles).astype(np.float64)
    return values[:-1] / 2 + values[1:] / 2


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _weighted_distance(w: Float64Array, apart: Octets) -> Float64Array:
    """Of each pair."""
    distance = np.zeros(apart.shape[1])
    for b in range(apart.shape[0]):
        if w[b] > 0:
            for p in range(apart.shape[1]):
                distance[p] += w[b] * apart[b, p]
    return distance


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gains(coefficients: Float32Array, apart: Octets) -> Float64Array:
    """What each bit's weight takes off the violation of a plane."""
    gains = np.zeros(apart.shape[0])
    for b in range(apart.shape[0]):
        total = 0.0
        for p in range(apart.shape[1]):
            total += coefficients[p] * apart[b, p]
        gains[b] = total
    return gains


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _worst_rankings(
    distance: Float64Array,
    start: NDArray[np.int64],
    n_relevant: NDArray[np.int64],
    is_ndcg: bool,
    coefficients: Float32Array,
) -> float:
    """Fill in the coefficients of the most violated rankings, and return their mean loss."""
    total = 0.0
    for i in range(len(n_relevant)):
        first, middle, last = start[i], start[i] + n_relevant[i], start[i + 1]
        near, far = np.argsort(distance[first:middle]), np.argsort(distance[middle:last])
        p, q = len(near), len(far)
        before = np.empty(p, np.int64)  # irrelevant rows before each relevant one
        relevant, irrelevant = distance[first:middle][near], distance[middle:last][far]
        if is_ndcg:
            total += _worst_ndcg(relevant, irrelevant, before)
        else:
            total += _worst_auc(relevant, irrelevant, before)
        share = 1.0 / (p * q * len(n_relevant))
        r = 0
        for rank in range(p):
            coefficients[first + near[rank]] = -share * before[rank]
        for rank in range(q):
            while r < p and before[r] <= rank:
                r += 1
            coefficients[middle + far[rank]] = share * (p - r)
    return total / max(1, len(n_relevant))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _worst_auc(
    relevant: Float64Array, irrelevant: Float64Array, before: NDArray[np.int64]
) -> float:
    """How many irrelevant rows come before each relevant one, from sorted distances; the loss."""
    b, wrong = 0, 0
    for r in range(len(relevant)):
        while b < len(irrelevant) and irrelevant[b] < relevant[r] + 1:
            b += 1
        before[r] = b
        wrong += b
    return wrong / (len(relevant) * len(irrelevant))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _worst_ndcg(
    relevant: Float64Array, irrelevant: Float64Array, before: NDArray[np.int64]
) -> float:
    """How many irrelevant rows come before each relevant one, from sorted distances; the loss."""
    p, q = len(relevant), len(irrelevant)
    discount = 1 / np.log2(2.0 + np.arange(p + q))
    ideal = discount[:p].sum()
    value, choice = np.zeros(q + 1), np.zeros((p, q + 1), np.int64)
    for r in range(p):
        best, away = 0, 0.0  # the best number before the last row; Σ over k of d_ik - d_ij
        kept = value[0]
        for b in range(q + 1):
            if b > 0:
                away += irrelevant[b - 1] - relevant[r]
                if value[b] > kept:
                    best, kept = b, value[b]
            choice[r, b] = best
            value[b] = kept - discount[r + b] / ideal - away / (p * q)
    b, gain = int(np.argmax(value)), 0.0
    for r in range(p - 1, -1, -1):
        before[r] = b
        gain += discount[r + b]
        b = choice[r, b]
    return 1 - gain / ideal


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _settle(indptr: Ints, indices: Ints, data: Float64Array, target: Float64Array) -> None:
    """Flip entries of ±1 while that makes tᵀAt smaller."""
    for _ in range(SWEEPS):
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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _best_cuts(
    level: NDArray[Any], one: Ints, other: Ints, weights: Float64Array
) -> tuple[Float64Array, NDArray[np.int64]]:
    """For each row of levels, the largest sum of weights that a cut tells apart, and that cut."""
    score, cut = np.zeros(level.shape[0]), np.zeros(level.shape[0], np.int64)
    rise = np.empty(int(level.max()) + 1)
    for f in range(level.shape[0]):
        rise[:] = 0
        for p in range(len(weights)):
            a, b = level[f, one[p]], level[f, other[p]]
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
def _grow(
    level: Octets, pull: Float64Array, depth: int
) -> tuple[Ints, Ints, Bit, NDArray[np.int64]]:
    """A tree whose leaves differ most in the mean sign of the pull, and where rows end in it.

    A split maximises the sum over both sides of (Σ pull)² / Σ |pull|; a node that no split makes
    better cuts at 255, which nothing exceeds.
    """
    n_nodes, n = 2**depth - 1, level.shape[1]
    feature, cut = np.zeros(n_nodes, np.int32), np.full(n_nodes, 255, np.int32)
    node = np.zeros(n, np.int64)  # within a generation
    for generation in range(depth):
        first, width = 2**generation - 1, 2**generation
        best = np.zeros(width)
        for f in range(level.shape[0]):
            sums = np.zeros((width, 256, 2))
            for i in range(n):
                sums[node[i], level[f, i], 0] += pull[i]
                sums[node[i], level[f, i], 1] += abs(pull[i])
            for m in range(width):
                gain, c = _best_split(sums[m])
                if gain > best[m]:
                    best[m], feature[first + m], cut[first + m] = gain, f, c
        for i in range(n):
            m = first + node[i]
            node[i] = 2 * node[i] + (level[feature[m], i] > cut[m])
    total = np.zeros(2**depth)
    for i in range(n):
        total[node[i]] += pull[i]
    return feature, cut, total > 0, node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _best_split(sums: Float64Array) -> tuple[float, int]:
    """How much better the best split of a node is than none, and after which level it is."""
    pull, size = sums[:, 0].sum(), sums[:, 1].sum()
    best, cut, left, weight = 0.0, 255, 0.0, 0.0
    if size <= 0:
        return best, cut
    for c in range(255):
        left += sums[c, 0]
        weight += sums[c, 1]
        if 0 < weight < size:
            gain = left**2 / weight + (pull - left) ** 2 / (size - weight) - pull**2 / size
            if gain > best + 1e-12 * size:
                best, cut = gain, c
    return best, cut
