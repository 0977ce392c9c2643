"""Bits inferred by graph cuts over pairs of rows, and boosted trees that learn them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, check_choice, check_count, row_blocks
from bittern.errors import MissingExtraError
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.targets import Targets
from bittern.hashing.trees import Forest
from bittern.progress import track

__all__ = ["FastHash"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Counts = NDArray[np.uint16]
Signs = NDArray[np.int8]  # -1 and 1, and 0 where it is not known yet

#: What a pair costs whose codes differ in the share x of their bits: if it is similar, and if not.
LOSSES: dict[
    str, tuple[Callable[[Float64Array], Float64Array], Callable[[Float64Array], Float64Array]]
] = {
    "hinge": (lambda x: x**2, lambda x: np.maximum(0.5 - x, 0) ** 2),
    "ksh": (lambda x: 4 * x**2, lambda x: 4 * (1 - x) ** 2),
    "exponential": (lambda x: np.exp(2 * x - 1), lambda x: np.exp(1 - 2 * x)),
}
BINS = 63  # of a column's values, between which trees may divide them
LEAF = 20  # training rows at a leaf at least; fewer if there are fewer than LEAF * SHARE of them
SHARE = 250
RATE = 0.2  # of each tree's step


class FastHash(Hasher):
    r"""Bits that graph cuts choose for the training rows, each learned by boosted trees.

    Let pairs of rows have affinities :math:`a_{ij}`, 0 to 1.  Bit r of all rows, the earlier bits
    being known, is chosen for least

    .. math:: \sum_{\{i,j\}} a_{ij}\,\ell_1(x_{ij}) + (1 - a_{ij})\,\ell_0(x_{ij})

    where :math:`x_{ij}` is the share of the r bits in which rows i and j differ, and

    ===============  =====================  ========================
    ``loss``         :math:`\ell_1(x)`      :math:`\ell_0(x)`
    ===============  =====================  ========================
    ``hinge``        :math:`x^2`            :math:`\max(½ - x, 0)^2`
    ``ksh``          :math:`4 x^2`          :math:`4 (1 - x)^2`
    ``exponential``  :math:`e^{2x - 1}`     :math:`e^{1 - 2x}`
    ===============  =====================  ========================

    (``ksh`` is :math:`(z_i^\top z_j / r - 2 a_{ij} + 1)^2` but for a constant).  A new bit adds 0
    or 1 to the number d of bits in which a pair differs; so, whatever the loss, this is but for a
    constant the energy :math:`\sum w_{ij} [z_i \ne z_j]` of the new bits z, where
    :math:`w = \ell((d + 1) / r) - \ell(d / r)`.  The rows are divided into blocks in which all
    pairs have affinity 1, so that no weight there is negative; then the best bits of a block,
    those of other rows being what they are, are a minimum cut, which is found exactly.  All blocks
    have their turn ``n_sweeps`` times in random order; at first, rows whose turn has not come have
    no say.

    A sum of ``n_trees`` trees of at most the given depth, boosted for logistic loss with rows
    weighted by :math:`\sum_j |w_{ij}|`, learns the bit; each tree sees ``n_features`` random
    columns.  What the trees say, not what the cuts chose, is the bit that later ones build upon.

    Each row is paired with ``n_pairs`` random rows of affinity above 0 and as many of affinity 0,
    so that memory grows with n, not its square.  With one class only, all bits are constant.

    Differs from the original in the boosting, there AdaBoost with 200 random columns at each node,
    and in the start of the cuts, there 1 for all rows.

    References: [Lin-Shen-Shi-vandenHengel-Suter-2014], [Lin-Shen-Suter-vandenHengel-2013].
    """

    name = "fasthash"
    needs_y = True

    feature_: Ints
    threshold_: Float64Array
    left_: Ints
    right_: Ints
    value_: Float64Array
    roots_: Ints
    first_: Ints

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "hinge",
        n_pairs: int = 100,
        n_sweeps: int = 2,
        n_trees: int = 200,
        depth: int = 4,
        n_features: int = 200,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.loss = loss
        self.n_pairs = n_pairs
        self.n_sweeps = n_sweeps
        self.n_trees = n_trees
        self.depth = depth
        self.n_features = n_features
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._check()
        rng = self._generator()
        pairs = Pairs.sample(targets, self.n_pairs, self.n_pairs, rng)
        blocks = make_blocks(pairs, rng)
        learner = _Learner(X, self.n_trees, self.depth, self.n_features)
        apart = np.zeros(len(pairs.other), np.uint16)
        weights, field = np.empty(len(pairs.other), np.float32), np.zeros(len(X))
        forests = []
        for r in track(range(1, self.n_bits + 1), "FastHash: inferring and learning bits"):
            weigh(pairs.affinity, apart, *loss_steps(self.loss, r), weights)
            bit = np.zeros(len(X), np.int8)
            for _ in range(self.n_sweeps):
                sweep(bit, weights, field, pairs, blocks, rng)
            forest = learner.learn(bit, pairs.total(np.abs(weights)), int(rng.integers(2**31)))
            bit = np.where(forest.sums(X)[:, 0] > 0, 1, -1).astype(np.int8)
            count_apart(bit, pairs.first, pairs.other, apart)
            forests.append(forest)
        arrays = Forest.joined(forests).arrays()
        self._keep(**{f"{name}_": array for name, array in arrays.items()})

    def _check(self) -> None:
        check_choice(self.loss, "FastHash: loss", tuple(LOSSES))
        for name in ("n_pairs", "n_sweeps", "n_trees", "depth", "n_features"):
            check_count(
                getattr(self, name), f"FastHash: {name}", 1, 16 if name == "depth" else None
            )
        library("maxflow", "PyMaxflow", "FastHash")
        library("lightgbm", "LightGBM", "FastHash")

    def _bits(self, X: Rows) -> Bits:
        names = "feature", "threshold", "left", "right", "value", "roots", "first"
        forest = Forest(**{name: getattr(self, f"{name}_") for name in names})
        return forest.sums(X) > 0


def library(module: str, name: str, title: str) -> Any:
    """An optional library; ``title`` begins the sentence if it is missing."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(f"{title}: needs {name}; pip install 'bittern[hashing]'.") from None


class _Learner:
    """Boosted trees on rows whose values are sorted into bins once for all bits."""

    def __init__(self, X: Rows, n_trees: int, depth: int, n_features: int):
        import lightgbm

        self._n_trees = n_trees
        self._parameters = {
            "objective": "binary",
            "learning_rate": RATE,
            "max_depth": depth,
            "num_leaves": 2**depth,
            "feature_fraction": min(1.0, n_features / X.shape[1]),
            "min_data_in_leaf": min(LEAF, max(1, len(X) // SHARE)),
            "max_bin": BINS,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "enable_bundle": False,
            "use_missing": False,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        none = np.zeros(len(X))
        self._rows = lightgbm.Dataset(X, none, params=self._parameters).construct()

    def learn(self, bit: Signs, weights: Float64Array, seed: int) -> Forest:
        """Trees whose sum is above 0 where the bit is 1, in the training rows that weigh most."""
        import lightgbm

        if (bit == bit[0]).all():
            return Forest.constant(float(bit[0]))
        self._rows.set_label(bit > 0).set_weight(weights / weights.mean())
        booster = lightgbm.train({**self._parameters, "seed": seed}, self._rows, self._n_trees)
        return Forest.from_booster(booster)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows that count, each listed twice: row i with ``other[first[i]:first[i + 1]]``."""

    first: Longs  # (n + 1,)
    other: Ints  # (n_listed,)
    affinity: Float32Array  # (n_listed,) 0 … 1, the same both ways

    @classmethod
    def sample(
        cls, targets: Targets, n_similar: int, n_dissimilar: int, rng: np.random.Generator
    ) -> Pairs:
        """For every row some others of affinity above 0, and some of affinity 0, at random."""
        n = targets.n
        most = min(n_similar, n), min(n_dissimilar, n)
        order, starts = rng.permutation(n), rng.integers(n, size=n)
        keys, affinities = [], []
        for some in row_blocks(n, 16 * n):
            rows = np.arange(some.start, some.stop)
            block = targets.affinity(rows, order)
            chosen = np.full((len(rows), sum(most)), -1)
            _choose(block, rows, order, starts[some], *most, chosen)
            at, place = np.nonzero(chosen >= 0)
            columns = chosen[at, place]
            keys.append(rows[at] * n + order[columns])
            affinities.append(block[at, columns])
        return cls._listed(np.concatenate(keys), np.concatenate(affinities), n)

    @classmethod
    def _listed(cls, keys: Longs, affinity: Float32Array, n: int) -> Pairs:
        """Pairs ``i * n + j``; one that is there twice has the mean of the two affinities."""
        both = np.concatenate([keys, keys % n * n + keys // n])
        unique, where, count = np.unique(both, return_inverse=True, return_counts=True)
        total = np.bincount(where, np.tile(affinity, 2), len(unique))
        first = np.searchsorted(unique, np.arange(n + 1) * n)
        return cls(first, (unique % n).astype(np.int32), (total / count).astype(np.float32))

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.first) - 1

    def rows(self) -> Ints:
        """The row at which each is listed."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.first))

    def total(self, values: NDArray[Any]) -> Float64Array:
        """The sum over each row's pairs."""
        return np.bincount(self.rows(), values, self.n).astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of which no two are a pair of affinity below 1, and the pairs among them."""

    rows: NDArray[np.intp]
    listed: NDArray[np.intp]  # where the pairs are listed, each once
    heads: NDArray[np.intp]  # places in ``rows`` of the pairs' ends
    tails: NDArray[np.intp]


def make_blocks(pairs: Pairs, rng: np.random.Generator) -> list[Block]:
    """Divide all rows into blocks.

    Each grows from a random row along pairs of affinity 1 as far as it can.  Rows that would stay
    alone are put together with others that they are not paired with.
    """
    member = np.full(pairs.n, -1, np.int32)
    order = rng.permutation(pairs.n)
    n_blocks = _grow_blocks(order, pairs.first, pairs.other, pairs.affinity, member)
    at, place = pairs.rows(), np.empty(pairs.n, np.intp)
    inside = np.flatnonzero((member[at] == member[pairs.other]) & (at < pairs.other))
    groups = _grouped(np.arange(pairs.n), member, n_blocks)
    for rows in groups:
        place[rows] = np.arange(len(rows))
    return [
        Block(rows, listed, place[at[listed]], place[pairs.other[listed]])
        for rows, listed in zip(groups, _grouped(inside, member[at[inside]], n_blocks), strict=True)
    ]


def _grouped(items: NDArray[Any], group: Ints, n_groups: int) -> list[NDArray[Any]]:
    order = np.argsort(group, kind="stable")
    return np.split(items[order], np.searchsorted(group[order], np.arange(1, n_groups)))


def loss_steps(loss: str, n_bits: int) -> tuple[Float64Array, Float64Array]:
    """What it costs a pair that differs in d = 0 … n_bits - 1 of n_bits bits to differ in one more.

    For a similar pair, and for one that is not.
    """
    share = np.arange(n_bits + 1) / n_bits
    similar, dissimilar = LOSSES[loss]
    return np.diff(similar(share)), np.diff(dissimilar(share))


def sweep(
    bit: Signs,
    weights: Float32Array,
    field: Float64Array,
    pairs: Pairs,
    blocks: list[Block],
    rng: np.random.Generator,
) -> None:
    r"""Give each block in turn its bits of least energy, the others' being what they are.

    The energy is :math:`\sum_{\{i,j\}} w_{ij} [z_i \ne z_j] + \sum_i f_i z_i`, with weights that
    are not negative inside a block.
    """
    for k in rng.permutation(len(blocks)):
        block = blocks[k]
        bit[block.rows] = 0
        outer = field[block.rows]
        _add_field(bit, weights, pairs.first, pairs.other, block.rows, outer)
        chosen = cut(outer, block.heads, block.tails, weights[block.listed].astype(float))
        bit[block.rows] = np.where(chosen, 1, -1)


def cut(field: Float64Array, heads: Any, tails: Any, weights: Float64Array) -> Bits:
    r"""Where z is 1 for the least :math:`\sum_e w_e [z_{h(e)} \ne z_{t(e)}] + \sum_i f_i z_i`.

    The maximum flow between the rows that pull to -1 and those that pull to 1 gives it, if no
    weight is negative.  What can flow over one pair is let flow first: it is often all.
    """
    excess, there, back = 2 * field, weights.copy(), weights.copy()
    _flow_over(excess, heads, tails, there, back)
    if not (excess > 0).any() or not (excess < 0).any():
        return np.full(len(field), not (excess > 0).any())
    import maxflow

    graph = maxflow.GraphFloat(len(field), len(heads))
    nodes = graph.add_grid_nodes(len(field))
    graph.add_edges(heads, tails, there, back)
    graph.add_grid_tedges(nodes, np.maximum(excess, 0), np.maximum(-excess, 0))
    graph.maxflow()
    return np.asarray(graph.get_grid_segments(nodes), bool)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _choose(
    affinity: Float32Array,
    rows: Longs,
    order: Longs,
    starts: Longs,
    n_similar: int,
    n_dissimilar: int,
    chosen: Longs,
) -> None:
    """Each row's first similar and dissimilar columns from its start on; the row itself is none."""
    n = affinity.shape[1]
    for i in range(affinity.shape[0]):
        similar = dissimilar = 0
        for step in range(n):
            j = (starts[i] + step) % n
            if order[j] == rows[i]:
                continue
            if affinity[i, j] > 0 and similar < n_similar:
                chosen[i, similar] = j
                similar += 1
            elif affinity[i, j] <= 0 and dissimilar < n_dissimilar:
                chosen[i, n_similar + dissimilar] = j
                dissimilar += 1
            if similar == n_similar and dissimilar == n_dissimilar:
                break


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _grow_blocks(
    order: Longs, first: Longs, other: Ints, affinity: Float32Array, member: Ints
) -> int:
    """Number the blocks in ``member``, -1 before, and return how many there are."""
    clashes = np.full(member.shape[0], -1, np.int64)  # with the block grown from which row
    waiting = np.empty(other.shape[0] + 1, np.int64)
    n_blocks = 0
    for seed in order:
        if member[seed] < 0:
            size = _spread(seed, n_blocks, first, other, affinity, member, clashes, waiting)
            if size > 1:
                n_blocks += 1
            else:
                member[seed] = -1
    clashes[:] = -1
    for seed in order:
        if member[seed] < 0:
            for i in order:
                if member[i] < 0 and clashes[i] != seed:
                    _join(i, seed, n_blocks, first, other, affinity, member, clashes)
            n_blocks += 1
    return n_blocks


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _spread(
    seed: int,
    block: int,
    first: Longs,
    other: Ints,
    affinity: Float32Array,
    member: Ints,
    clashes: Longs,
    waiting: Longs,
) -> int:
    """Let a block spread from a row along pairs of affinity 1, and return how large it is."""
    waiting[0] = seed
    size, here, n_waiting = 0, 0, 1
    while here < n_waiting:
        i = waiting[here]
        here += 1
        if member[i] < 0 and clashes[i] != seed:
            _join(i, seed, block, first, other, affinity, member, clashes)
            size += 1
            for e in range(first[i], first[i + 1]):
                if affinity[e] >= 1 and member[other[e]] < 0:
                    waiting[n_waiting] = other[e]
                    n_waiting += 1
    return size


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _join(
    i: int,
    seed: int,
    block: int,
    first: Longs,
    other: Ints,
    affinity: Float32Array,
    member: Ints,
    clashes: Longs,
) -> None:
    member[i] = block
    for e in range(first[i], first[i + 1]):
        if affinity[e] < 1:
            clashes[other[e]] = seed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_field(
    bit: Signs, weights: Float32Array, first: Longs, other: Ints, rows: Longs, field: Float64Array
) -> None:
    r"""Add :math:`-\frac12 \sum_j w_{ij} z_j` to the field of some rows."""
    for k in range(rows.shape[0]):
        total = 0.0
        for e in range(first[rows[k]], first[rows[k] + 1]):
            total += weights[e] * bit[other[e]]
        field[k] -= 0.5 * total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _flow_over(
    excess: Float64Array, heads: Longs, tails: Longs, there: Float64Array, back: Float64Array
) -> None:
    """Let flow from positive to negative excess over single pairs, until nothing more does."""
    moved = True
    while moved:
        moved = False
        for e in range(heads.shape[0]):
            i, j = heads[e], tails[e]
            if excess[i] > 0 > excess[j]:
                flow = min(excess[i], -excess[j], there[e])
            elif excess[i] < 0 < excess[j]:
                flow = -min(-excess[i], excess[j], back[e])
            else:
                continue
            excess[i] -= flow
            excess[j] += flow
            there[e] -= flow
            back[e] += flow
            moved = moved or flow != 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_apart(bit: Signs, first: Longs, other: Ints, apart: Counts) -> None:
    """Add 1 for each listed pair that differs in a bit."""
    for i in range(first.shape[0] - 1):
        for e in range(first[i], first[i + 1]):
            apart[e] += bit[i] != bit[other[e]]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def weigh(
    affinity: Float32Array,
    apart: Counts,
    similar: Float64Array,
    dissimilar: Float64Array,
    weights: Float32Array,
) -> None:
    """What it costs each listed pair to differ in one more bit."""
    for e in range(affinity.shape[0]):
        d, a = apart[e], affinity[e]
        weights[e] = a * similar[d] + (1 - a) * dissimilar[d]
