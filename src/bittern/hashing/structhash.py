"""StructHash: hash functions added one by one to a structural support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_choice, check_count, check_number
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.linear import SLACK
from bittern.hashing.structural_svm import BitColumn, Ints, RankingLists, StructuralSVM
from bittern.hashing.targets import Targets
from bittern.progress import track

RIDGE = 0.3  # of the mean variance of a column
TREE_DEPTH = 4
N_LEVELS = 256  # of a column, between which it may be cut
SAME_SHARE = 0.95  # share of rows on which two bits must agree, or disagree, to count as the same
LEAST_SCORE = 0.25  # share of the best bit's score that a new bit must reach to be preferred
N_ATTEMPTS = 8  # to find a bit that is not the same as an earlier one
N_EIGENVECTORS = 3  # from which target bits start
LANCZOS_STEPS = 30
MAX_SWEEPS = 20  # of flips of the target bits
MAX_STUMPS = 256  # candidate cuts of different columns for a new bit


class StructHash(Hasher):
    r"""Column generation for ranking: each bit is the one that improves the ranking most.

    With weights :math:`w \ge 0`, the distance of two rows is
    :math:`d_w(x, x') = \sum_b w_b [h_b(x) \ne h_b(x')]`.  For m training rows as queries i, with
    relevant rows :math:`P_i` and irrelevant rows :math:`N_i`, let :math:`S(\pi)` be the pairs
    (j, k) of a relevant and an irrelevant row that a ranking :math:`\pi` has in the wrong order,
    and :math:`\Delta` its loss.  The 1-slack structural support vector machine

    .. math::

        \min_{w \ge 0,\, \xi \ge 0} \|w\|_\infty + C \xi \quad \text{so that} \quad
        \frac1m \sum_i \Delta(\pi_i) - \frac1m \sum_i \frac{1}{|P_i| |N_i|}
        \sum_{(j, k) \in S(\pi_i)} \big( d_w(x_i, x_k) - d_w(x_i, x_j) \big) \le \xi
        \quad \text{for all } \pi_1 \dots \pi_m

    is solved by cutting planes: a linear programme, to which the most violated rankings for the
    current w are added until a better w could gain at most 1 % (or 30 planes were added).  The
    multipliers of the planes add up to weights :math:`\mu_{ijk} \ge 0` of triplets, and the next
    bit maximises its score

    .. math:: \sum_{ijk} \mu_{ijk} \big( [h(x_i) \ne h(x_k)] - [h(x_i) \ne h(x_j)] \big);

    a bit of positive score lowers the regularised risk.  The bit is added and w solved again, until
    there are ``n_bits``.

    ``loss="auc"``: :math:`\Delta(\pi) = |S(\pi)| / (|P| |N|)`; then ξ is the mean hinge loss
    :math:`[1 - d_w(x_i, x_k) + d_w(x_i, x_j)]_+` over triplets, as in CGHash.  The most violated
    ranking sorts by distance, after 1 is subtracted from those of irrelevant rows.
    ``loss="ndcg"``: :math:`\Delta` is 1 minus the normalised discounted cumulative gain, with
    discounts :math:`1 / \log_2(1 + \text{rank})`.  With both kinds of rows sorted by distance, let
    the r-th relevant row come after :math:`b_r` irrelevant ones; loss and constraint are sums over
    r of functions of :math:`b_r`, and dynamic programming finds the best
    :math:`b_1 \le b_2 \le \dots` exactly.

    Bits are learned as follows.  With A the symmetric matrix of the weights of pairs, target bits
    minimise :math:`t^\top A t`: they start at the signs of the lowest three eigenvectors, and
    single entries are flipped while that helps.  ``learner="linear"`` fits them by ridge regression
    (penalty: 0.3 of the columns' mean variance), and cuts the fitted values where the score is
    largest.  ``"tree"`` grows a tree of depth 4 on :math:`-A t`, by its variance.  Both improve the
    targets once more from the bits found, fit again, and take the best.  ``"stump"`` needs no
    targets: it takes the best cut of any column.  Stumps and trees cut a column at no more than 255
    of its values.

    A bit that agrees with an earlier one, or its complement, on 95 % of the rows is replaced by the
    next best, then by the best with random weights of queries, and finally by a random cut (with a
    single class, where nothing can be ranked, all bits are random cuts).  Bits are repeated only if
    that fails too, as with few distinct rows.

    At most ``n_queries`` random rows are queries, with at most ``n_relevant`` relevant and
    ``n_irrelevant`` irrelevant random rows each; rows in none of these lists are not used.  A
    graded Relevance becomes yes/no for each query at a random one of the levels in its row.

    ``weights_`` are the w, ``objective_`` the regularised risk after each bit; codes are still
    compared by the plain Hamming distance.  That is why w is bounded by its largest entry: with the
    sum of the w instead, as in the original, many bits would get no weight, and later bits would
    rely on that.  Another deviation: the original maximises over linear functions by descent
    on sigmoids, starting from the spectral relaxation.

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
    feature_: Ints  # (n_bits, n_nodes) of complete trees; the children of node m are 2m + 1, 2m + 2
    threshold_: Float64Array  # (n_bits, n_nodes)
    leaf_: BitColumn  # (n_bits, n_nodes + 1)

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
        most = self.n_relevant, self.n_irrelevant
        lists = RankingLists.draw(targets, self.n_queries, most, rng)
        family = FAMILIES[self.learner](X[lists.rows], lists)
        svm = StructuralSVM(lists, self.loss == "ndcg", float(self.C))
        functions: list[_HashFunction] = []
        objective = []
        for _ in track(range(self.n_bits), f"{self._title}: learning the bits"):
            functions.append(_next_function(family, svm, functions, rng))
            objective.append(svm.add(functions[-1].bits))
        self._keep(
            weights_=svm.w,
            objective_=self.C * np.array(objective),
            **family.model([function.parameters for function in functions]),
        )

    def _check(self) -> None:
        check_choice(self.loss, f"{self._title}: loss", ("auc", "ndcg"))
        check_choice(self.learner, f"{self._title}: learner", tuple(FAMILIES))
        check_number(self.C, f"{self._title}: C", above=0)
        for name in ("n_queries", "n_relevant", "n_irrelevant"):
            check_count(getattr(self, name), f"{self._title}: {name}")

    def _bits(self, X: Rows) -> Bits:
        if hasattr(self, "projection_"):
            centred = X - self.mean_.astype(X.dtype)
            slack = SLACK * np.finfo(X.dtype).eps  # training rows vary by 1 along a direction
            return centred @ self.projection_.astype(X.dtype) > self.offset_ + slack
        return _tree_bits(X, self.feature_, self.threshold_, self.leaf_)


def _tree_bits(X: Rows, feature: Ints, threshold: Float64Array, leaf: BitColumn) -> Bits:
    """The bits at the leaves, where rows go right if a feature exceeds its threshold."""
    trees, rows = np.arange(len(leaf)), np.arange(len(X))[:, None]
    node = np.zeros((len(X), len(leaf)), np.intp)
    for _ in range((leaf.shape[1] - 1).bit_length()):
        right = X[rows, feature[trees, node]] > threshold[trees, node]
        node = 2 * node + 1 + right
    return leaf[trees, node - feature.shape[1]]


@dataclass(frozen=True, eq=False)
class _HashFunction:
    """A hash function: its parameters, its bits of the rows, and their score."""

    parameters: tuple[Any, ...]
    bits: BitColumn
    score: float


class _Family(Protocol):
    """A family of hash functions."""

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_HashFunction]:
        """Functions of positive score for these weights of pairs, the best first."""

    def random(self, rng: np.random.Generator) -> _HashFunction:
        """A random function."""

    def model(self, parameters: list[tuple[Any, ...]]) -> dict[str, Any]:
        """The learned attributes of a hasher with these functions."""


def _next_function(
    family: _Family, svm: StructuralSVM, before: list[_HashFunction], rng: np.random.Generator
) -> _HashFunction:
    """The best function that differs from the earlier ones; otherwise the best, or a random one."""
    lists, weights = svm.lists, svm.pair_weights()
    earlier = np.array([function.bits for function in before]).reshape(-1, len(lists.rows))
    best = found = family.best(weights, rng)
    least = LEAST_SCORE * best[0].score if best else 0.0
    for _ in range(N_ATTEMPTS):
        for function in found:
            score = float(weights @ lists.differ(function.bits))
            if score > least and _is_new(function.bits, earlier):
                return function
        factor = rng.standard_exponential(len(lists.n_relevant)) ** 2
        found = family.best(weights * np.repeat(factor, np.diff(lists.start)), rng)
    if best:
        return best[0]
    for _ in range(N_ATTEMPTS):
        function = family.random(rng)
        if _is_new(function.bits, earlier):
            break
    return function


def _is_new(bits: BitColumn, earlier: BitColumn) -> bool:
    """Whether a bit is neither constant nor the same as an earlier one."""
    agree = (earlier == bits).mean(axis=1)
    differs = (agree <= SAME_SHARE) & (agree >= 1 - SAME_SHARE)
    return bool(bits.any() and not bits.all() and differs.all())


def _fit_targets(
    lists: RankingLists,
    weights: Float64Array,
    fit: Callable[[Any, Float64Array, Float64Array], _HashFunction],
    rng: np.random.Generator,
) -> list[_HashFunction]:
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
    return _best_first(functions)


def _best_first(functions: list[_HashFunction]) -> list[_HashFunction]:
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


class _HalfSpaces:
    """Half-spaces: one side of a cut along a direction."""

    def __init__(self, X: Rows, lists: RankingLists):
        self.lists = lists
        self.mean = X.mean(axis=0, dtype=np.float64)
        centred = X - self.mean.astype(X.dtype)
        self.scale = float(np.abs(centred).max()) or 1.0
        self.rows = centred / X.dtype.type(self.scale)
        self.regress = _ridge(self.rows)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_HashFunction]:
        return _fit_targets(self.lists, weights, self._fit, rng)

    def random(self, rng: np.random.Generator) -> _HashFunction:
        values, direction = self._along(rng.standard_normal(self.rows.shape[1]))
        level, cuts = _levels(values, self._tolerance)
        return self._function(direction, level, cuts, len(cuts) // 2, 0.0)

    def model(self, parameters: list[tuple[Any, ...]]) -> dict[str, Any]:
        directions, offsets = zip(*parameters, strict=True)
        return {
            "mean_": self.mean,
            "projection_": np.column_stack(directions) / self.scale,
            "offset_": np.array(offsets),
        }

    def _fit(self, matrix: Any, target: Float64Array, weights: Float64Array) -> _HashFunction:
        values, direction = self._along(self.regress(target - target.mean()))
        level, cuts = _levels(values, self._tolerance)
        score, cut = _best_cuts(level[None], self.lists.query, self.lists.item, weights)
        return self._function(direction, level, cuts, int(cut[0]), float(score[0]))

    def _along(self, direction: Float64Array) -> tuple[Rows, Float64Array]:
        """The rows along a direction, scaled so that their mean square is 1, and the direction."""
        values = self.rows @ direction.astype(self.rows.dtype)
        size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) or 1.0
        return values / values.dtype.type(size), direction / size

    def _function(
        self, direction: Float64Array, level: Ints, cuts: Rows, cut: int, score: float
    ) -> _HashFunction:
        """The side above a cut; constant if there is no such cut."""
        if cut < len(cuts):
            return _HashFunction((direction, float(cuts[cut])), level > cut, score)
        return _HashFunction((np.zeros_like(direction), 0.0), np.zeros(len(level), bool), 0.0)

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


class _Trees:
    """Complete decision trees."""

    depth = TREE_DEPTH

    def __init__(self, X: Rows, lists: RankingLists):
        self.lists = lists
        self.level = np.empty(X.shape[::-1], np.uint8)
        self.cuts = []
        for column, level in zip(X.T, self.level, strict=True):
            self.cuts.append(_cuts(column))
            level[:] = np.searchsorted(self.cuts[-1], column)

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_HashFunction]:
        return _fit_targets(self.lists, weights, self._fit, rng)

    def random(self, rng: np.random.Generator) -> _HashFunction:
        varying = [f for f, cuts in enumerate(self.cuts) if len(cuts)]
        feature = int(rng.choice(varying)) if varying else 0
        cut = int(rng.integers(len(self.cuts[feature]))) if varying else N_LEVELS - 1
        return self._stump(feature, cut, 0.0)

    def model(self, parameters: list[tuple[Any, ...]]) -> dict[str, Any]:
        feature, threshold, leaf = (np.array(part) for part in zip(*parameters, strict=True))
        return {"feature_": feature, "threshold_": threshold, "leaf_": leaf}

    def _fit(self, matrix: Any, target: Float64Array, weights: Float64Array) -> _HashFunction:
        feature, cut, leaf, end = _grow_tree(self.level, -(matrix @ target), self.depth)
        bits = leaf[end]
        threshold = [self._threshold(f, c) for f, c in zip(feature, cut, strict=True)]
        score = float(weights @ self.lists.differ(bits))
        return _HashFunction((feature, threshold, leaf), bits, score)

    def _stump(self, feature: int, cut: int, score: float) -> _HashFunction:
        """A single cut, as the root of a tree that cuts no further."""
        n_nodes = 2**self.depth - 1
        features, thresholds = np.zeros(n_nodes, np.int32), np.full(n_nodes, np.inf)
        features[0], thresholds[0] = feature, self._threshold(feature, cut)
        leaf = np.arange(n_nodes + 1) > n_nodes // 2
        return _HashFunction((features, thresholds, leaf), self.level[feature] > cut, score)

    def _threshold(self, feature: int, cut: int) -> float:
        return float(self.cuts[feature][cut]) if cut < len(self.cuts[feature]) else np.inf


class _Stumps(_Trees):
    """Single cuts of single columns."""

    depth = 1

    def best(self, weights: Float64Array, rng: np.random.Generator) -> list[_HashFunction]:
        score, cut = _best_cuts(self.level, self.lists.query, self.lists.item, weights)
        some = np.argsort(-score, kind="stable")[:MAX_STUMPS]
        return _best_first([self._stump(int(f), int(cut[f]), float(score[f])) for f in some])


FAMILIES: dict[str, Callable[[Rows, RankingLists], _Family]] = {
    "linear": _HalfSpaces,
    "stump": _Stumps,
    "tree": _Trees,
}


def _cuts(column: Rows) -> Float64Array:
    """Cuts between the distinct values, or between quantiles if there are too many."""
    values = np.unique(column).astype(np.float64)
    if len(values) > N_LEVELS:
        quantiles = np.quantile(column, np.linspace(0, 1, N_LEVELS), method="nearest")
        values = np.unique(quantiles).astype(np.float64)
    return values[:-1] / 2 + values[1:] / 2


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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _best_cuts(
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
def _grow_tree(
    level: NDArray[np.uint8], pull: Float64Array, depth: int
) -> tuple[Ints, Ints, BitColumn, NDArray[np.int64]]:
    """A tree whose leaves differ most in the mean sign of the pull, and the leaves of the rows.

    A split maximises the sum over both sides of (Σ pull)² / Σ |pull|; a node that no split
    improves cuts at 255, which nothing exceeds.
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
    """The gain of the best split of a node, and the level after which it splits."""
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
