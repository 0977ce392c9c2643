"""FastHash: graph cuts infer the bits of the training rows, boosted trees learn them."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_choice, check_count
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.graph_cuts import (
    LOSSES,
    AffinityPairs,
    Ints,
    choose_bits,
    count_differences,
    loss_steps,
    make_blocks,
    set_weights,
)
from bittern.hashing.targets import Targets
from bittern.hashing.trees import BoostedTrees, Forest
from bittern.io.onnx_graph import OnnxGraph
from bittern.progress import track


class FastHash(Hasher):
    r"""Bits that graph cuts choose for the training rows, each learned by boosted trees.

    Let pairs of rows have affinities :math:`a_{ij}`, 0 to 1.  With the earlier bits known, bit r of
    all rows is chosen to minimise

    .. math:: \sum_{\{i,j\}} a_{ij}\,\ell_1(x_{ij}) + (1 - a_{ij})\,\ell_0(x_{ij})

    where :math:`x_{ij}` is the share of the r bits in which rows i and j differ, and

    ===============  =====================  ========================
    ``loss``         :math:`\ell_1(x)`      :math:`\ell_0(x)`
    ===============  =====================  ========================
    ``hinge``        :math:`x^2`            :math:`\max(½ - x, 0)^2`
    ``ksh``          :math:`4 x^2`          :math:`4 (1 - x)^2`
    ``exponential``  :math:`e^{2x - 1}`     :math:`e^{1 - 2x}`
    ===============  =====================  ========================

    (``ksh`` is :math:`(z_i^\top z_j / r - 2 a_{ij} + 1)^2` up to a constant).  A new bit adds 0 or
    1 to the number d of bits in which a pair differs.  So, up to a constant, this is the energy
    :math:`\sum w_{ij} [z_i \ne z_j]` of the new bits z for any loss, where :math:`w = \ell((d + 1)
    / r) - \ell(d / r)`.  The rows are divided into blocks in which all pairs have affinity 1, so
    that no weight there is negative; then a minimum cut finds exactly the best bits of a block
    given those of the other rows.  In each of ``n_sweeps`` sweeps, all blocks are cut in random
    order; in the first sweep, rows that are not cut yet have no influence.

    A sum of ``n_trees`` trees of at most the given ``depth``, boosted for logistic loss with rows
    weighted by :math:`\sum_j |w_{ij}|`, learns the bit; each tree sees ``n_features`` random
    columns.  Later bits build on the output of the trees, not on that of the cuts.

    Each row is paired with ``n_pairs`` random rows of affinity above 0 and as many of affinity 0,
    so that memory grows with n, not its square.  With a single class, all bits are constant.

    Deviations: the original boosts by AdaBoost with 200 random columns at each node, and starts the
    cuts with 1 for all rows.

    References: [Lin-Shen-Shi-vandenHengel-Suter-2014], [Lin-Shen-Suter-vandenHengel-2013].
    """

    name = "fasthash"
    needs_y = True
    is_nested = True
    cost_power = 1

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
        pairs = AffinityPairs.sample(targets, self.n_pairs, self.n_pairs, rng)
        blocks = make_blocks(pairs, rng)
        trees = BoostedTrees(X, self.n_trees, self.depth, self.n_features)
        apart = np.zeros(len(pairs.other), np.uint16)
        weights, unary = np.empty(len(pairs.other), np.float32), np.zeros(len(X))
        forests = []
        for r in track(range(1, self.n_bits + 1), f"{self._title}: learning the bits"):
            set_weights(pairs.affinity, apart, *loss_steps(self.loss, r), weights)
            bit = np.zeros(len(X), np.int8)
            for _ in range(self.n_sweeps):
                choose_bits(bit, weights, unary, pairs, blocks, rng)
            row_weights = pairs.sum_by_row(np.abs(weights))
            forest = trees.fit(bit, row_weights, int(rng.integers(2**31)))
            bit = np.where(forest.sums(X)[:, 0] > 0, 1, -1).astype(np.int8)
            count_differences(bit, pairs, 1, apart)
            forests.append(forest)
        self._keep(**Forest.joined(forests).attributes())

    def _check(self) -> None:
        check_choice(self.loss, f"{self._title}: loss", tuple(LOSSES))
        for name in ("n_pairs", "n_sweeps", "n_trees", "n_features"):
            check_count(getattr(self, name), f"{self._title}: {name}")
        check_count(self.depth, f"{self._title}: depth", 1, 16)

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """PyMaxflow chooses bits, and LightGBM learns trees."""
        return ("maxflow", "lightgbm")

    def _logits(self, X: Rows) -> Rows:
        return Forest.of(self).sums(X)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        return Forest.of(self).onnx_sums(graph, rows)
