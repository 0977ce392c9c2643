"""StructHash: hash functions added one by one to a structural support vector machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bittern.checks import Float64Array, check_choice, check_count, check_number
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.hash_functions import Family, HalfSpaces, HashFunction
from bittern.hashing.linear import SLACK
from bittern.hashing.ranking_lists import BitColumn, Ints, RankingLists
from bittern.hashing.structural_svm import StructuralSVM
from bittern.hashing.targets import Targets
from bittern.hashing.tree_functions import BoostedSums, Stumps, Trees
from bittern.hashing.trees import Forest
from bittern.io.onnx_graph import OnnxGraph
from bittern.progress import track

SAME_SHARE = 0.95  # share of rows on which two bits must agree, or disagree, to count as the same
LEAST_SCORE = 0.25  # share of the best bit's score that a new bit must reach to be preferred
CUT_SLACK = SLACK * np.finfo(np.float64).eps  # training rows vary by 1 along a direction
N_ATTEMPTS = 8  # to find a bit that is not the same as an earlier one

FAMILIES: dict[str, Callable[[Rows, RankingLists], Family]] = {
    "linear": HalfSpaces,
    "stump": Stumps,
    "tree": Trees,
    "boosted": BoostedSums,
}


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

    With grades, this is done at every level of gain that occurs in a list: rows of at least this
    gain are relevant, the others irrelevant, and loss and margin are those of the level times its
    weight ω, which :class:`~bittern.hashing.ranking_lists.RankingLists` defines.  For NDCG the
    weighted losses of one ranking add up to 1 minus its NDCG with gains :math:`2^v - 1`.  The
    rankings :math:`\pi` of the levels may differ, so ξ bounds this loss from above, and finding
    the most violated rankings stays exact.  This extension to grades is ours.

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
    largest.  ``"tree"`` grows a tree of depth 4 on :math:`-A t`, by its variance.  ``"boosted"``
    learns the signs of :math:`-A t`, weighted by their size, by a sum of 50 such trees, boosted as
    in FastHash.  All improve the targets once more from the bits found, fit again, and take the
    best.  ``"stump"`` needs no targets: it takes the best cut of any column.  Stumps and single
    trees cut a column at no more than 255 of its values.

    A bit that agrees with an earlier one, or its complement, on 95 % of the rows is replaced by the
    next best, then by the best with random weights of queries, and finally by a random cut (with a
    single class, where nothing can be ranked, all bits are random cuts).  Bits are repeated only if
    that fails too, as with few distinct rows.

    At most ``n_queries`` random rows are queries, with at most ``n_relevant`` relevant and
    ``n_irrelevant`` irrelevant random rows each; rows in none of these lists are not used.  The
    relevant rows are divided evenly among the gains.  Gains are those of a Relevance; tags give the
    number of shared tags for NDCG, and yes or no for AUC.

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
    is_nested = True
    cost_power = 1

    weights_: Float64Array  # (n_bits,)
    objective_: Float64Array  # (n_bits,)
    mean_: Float64Array  # (dim,)
    projection_: Float64Array  # (dim, n_bits)
    offset_: Float64Array  # (n_bits,)
    feature_: Ints  # this and the following: a Forest, with a sum for each bit
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
        lists = RankingLists.draw(targets, self.loss == "ndcg", self.n_queries, most, rng)
        family = FAMILIES[self.learner](X[lists.rows], lists)
        svm = StructuralSVM(lists, float(self.C))
        functions: list[HashFunction] = []
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

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """LightGBM, to learn boosted trees."""
        return ("lightgbm",) if self.learner == "boosted" else ()

    def _logits(self, X: Rows) -> Rows:
        if hasattr(self, "projection_"):
            return (X - self.mean_) @ self.projection_ - (self.offset_ + CUT_SLACK)
        return self._forest().sums(X)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        if not hasattr(self, "projection_"):
            return self._forest().onnx_sums(graph, rows)
        along = graph.add("MatMul", graph.add("Sub", rows, self.mean_), self.projection_)
        return graph.add("Sub", along, self.offset_ + CUT_SLACK)

    def _forest(self) -> Forest:
        """The trees; files of earlier versions have complete ones, with bits at their leaves."""
        if not hasattr(self, "leaf_"):
            return Forest.of(self)
        leaves = np.where(self.leaf_, 1.0, -1.0)
        trees = zip(self.feature_, self.threshold_, leaves, strict=True)
        return Forest.joined(Forest.complete(*tree) for tree in trees)


def _next_function(
    family: Family, svm: StructuralSVM, before: list[HashFunction], rng: np.random.Generator
) -> HashFunction:
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
        factor = rng.standard_exponential(lists.n_queries) ** 2
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
