"""StructHash: grades enter its loss as grades, and the most violated rankings are exact."""

import math
from itertools import permutations

import blobs as rows_in_blobs
import numpy as np
import pytest

import bittern as bt
from bittern.hashing import StructHash, Targets
from bittern.hashing.ranking_lists import RankingLists
from bittern.hashing.structural_svm import worst_rankings


def graded_lists(random_state, is_ndcg, n=9, most=(4, 3), levels=(0, 1, 2, 4)):
    """Lists of at most seven rows, drawn from a random square of gains, and these gains."""
    rng = np.random.default_rng(random_state)
    gains = rng.choice(levels, (n, n))
    targets = Targets.of(bt.Relevance.from_matrix(gains), n, "X")
    return RankingLists.draw(targets, is_ndcg, n, most, rng), gains


def each_list(lists, gains):
    """Pairs of each query, the gains of its rows, and its levels as (n_relevant, weight)."""
    for i in range(lists.n_queries):
        pairs = slice(lists.start[i], lists.start[i + 1])
        levels = slice(lists.first[i], lists.first[i + 1])
        query, item = (lists.rows[part[pairs]] for part in (lists.query, lists.item))
        weighted = zip(lists.n_relevant[levels], lists.weight[levels], strict=True)
        yield pairs, [int(g) for g in gains[query, item]], list(weighted)


def textbook_ndcg(gains):
    """DCG of a ranking over that of the best one, with gains 2^v - 1."""
    ideal = sorted(gains, reverse=True)
    dcg, best = (
        sum((2**v - 1) / math.log2(rank + 1) for rank, v in enumerate(order, start=1))
        for order in (gains, ideal)
    )
    return dcg / best


def loss_of(ranked, is_ndcg):
    """1 - NDCG of yes/no relevance, or the share of pairs in the wrong order."""
    if is_ndcg:
        return 1 - textbook_ndcg(ranked)
    wrong = sum(a < b for k, b in enumerate(ranked) for a in ranked[:k])
    return wrong / (sum(ranked) * (len(ranked) - sum(ranked)))


def violation(order, n_relevant, distance, is_ndcg):
    """Loss of a ranking, less the mean of d_k - d_j over pairs j, k that it has the wrong way."""
    ranked = [int(row < n_relevant) for row in order]
    margin = sum(
        distance[k] - distance[j]
        for place, j in enumerate(order)
        for k in order[:place]
        if j < n_relevant <= k
    )
    n_pairs = n_relevant * (len(order) - n_relevant)
    return loss_of(ranked, is_ndcg) - margin / n_pairs


@pytest.mark.parametrize("levels", [(0, 1), (0, 1, 2, 4), (1, 2, 3), (0, 10)])
@pytest.mark.parametrize("random_state", range(5))
def test_the_levels_add_up_to_graded_ndcg(random_state, levels):
    lists, gains = graded_lists(random_state, is_ndcg=True, levels=levels)
    assert lists.n_queries > 5
    rng = np.random.default_rng(random_state)
    for _, mine, weighted in each_list(lists, gains):
        order = rng.permutation(len(mine))
        parts = [
            weight * (1 - textbook_ndcg([int(row < n_relevant) for row in order]))
            for n_relevant, weight in weighted
        ]
        assert mine == sorted(mine, reverse=True)
        assert sum(parts) == pytest.approx(1 - textbook_ndcg([mine[row] for row in order]))


@pytest.mark.parametrize("is_ndcg", [True, False])
@pytest.mark.parametrize("random_state", range(4))
def test_the_most_violated_rankings_are_those_of_brute_force(random_state, is_ndcg):
    lists, gains = graded_lists(random_state, is_ndcg, n=7, most=(3, 2))
    rng = np.random.default_rng(random_state)
    distance = rng.integers(0, 4, len(lists.query)) / 2.0  # with ties
    others = rng.random((3, len(lists.query)))
    coefficients = np.zeros(len(lists.query), np.float32)
    levels = lists.first, lists.n_relevant, lists.weight
    loss = worst_rankings(distance, lists.start, *levels, is_ndcg, coefficients)

    def greatest(distance):
        """The mean over queries of the greatest violation at each level."""
        total = 0.0
        for pairs, mine, weighted in each_list(lists, gains):
            orders = list(permutations(range(len(mine))))
            total += sum(
                weight * max(violation(o, n_relevant, distance[pairs], is_ndcg) for o in orders)
                for n_relevant, weight in weighted
            )
        return total / lists.n_queries

    assert loss - coefficients @ distance == pytest.approx(greatest(distance), abs=1e-6)
    # As every plane of rankings, this one bounds the greatest violation at other distances.
    for other in others:
        assert loss - coefficients @ other <= greatest(other) + 1e-6


@pytest.mark.parametrize("random_state", range(5))
def test_the_greatest_violation_bounds_the_graded_loss(random_state):
    lists, gains = graded_lists(random_state, is_ndcg=True)
    distance = np.random.default_rng(random_state).random(len(lists.query))
    coefficients = np.zeros(len(lists.query), np.float32)
    levels = lists.first, lists.n_relevant, lists.weight
    loss = worst_rankings(distance, lists.start, *levels, True, coefficients)
    own = [
        1 - textbook_ndcg([mine[row] for row in np.argsort(distance[pairs])])
        for pairs, mine, _ in each_list(lists, gains)
    ]
    assert loss - coefficients @ distance >= np.mean(own) - 1e-6


def test_relevant_rows_are_shared_among_the_gains():
    gains = np.zeros((40, 40), int)
    gains[:, 1:3], gains[:, 3:13], gains[:, 13:33] = 10, 5, 1
    targets = Targets.of(bt.Relevance.from_matrix(gains), 40, "X")

    def counts(most):
        lists = RankingLists.draw(targets, True, 40, most, np.random.default_rng(0))
        of_row_0 = slice(lists.first[0], lists.first[1])
        assert lists.rows[lists.query[0]] == 0
        return lists.n_relevant[of_row_0].tolist(), int(lists.start[1])

    assert counts((12, 4)) == ([2, 7, 12], 16)
    assert counts((99, 99)) == ([2, 12, 32], 39), "all but the query itself"
    assert counts((1, 1)) == ([1], 2), "levels without rows drop out"


@pytest.mark.parametrize("better", [0, 1])
def test_the_first_bit_serves_the_larger_gain(better):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (80, 2)).astype(float)
    same = (X[:, None] == X).transpose(2, 0, 1)
    y = bt.Relevance.from_matrix(np.where(same[better], 3, same[1 - better]))
    hasher = StructHash(1, loss="ndcg", learner="stump").fit(X, y)
    assert hasher.feature_[hasher.roots_].tolist() == [better]


def test_boosted_trees_learn_what_half_spaces_cannot():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    truth = bt.Relevance.from_classes(y, y)
    ap = {}
    for learner in ("linear", "boosted"):
        codes = StructHash(4, loss="ndcg", learner=learner).fit(X, y).encode(X)
        ap[learner] = bt.evaluate(bt.TieProfile.from_codes(codes, codes, truth), ["ap"])["ap"].mean
    assert ap["boosted"] > 0.95 > 0.8 > ap["linear"]


@pytest.mark.parametrize("learner", ["tree", "boosted", "stump"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_saved_trees_give_the_bits_that_were_learned(tmp_path, learner, dtype):
    X, y = rows_in_blobs.blobs()
    X = X.round(1).astype(dtype)  # values that lie on thresholds
    hasher = StructHash(6, learner=learner).fit(X, y)
    hasher.save(tmp_path / "model.npz")
    again = bt.hashing.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.transform(X), hasher.transform(X))


def test_trees_of_earlier_files_are_read(tmp_path):
    # Complete trees, as they were stored: the children of node m are 2m + 1 and 2m + 2, rows go
    # right if a value exceeds the threshold, and leaves hold the bits.
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 4))
    hasher = StructHash(3, learner="tree").fit(rows, np.arange(50) % 2)
    for name in ("left_", "right_", "value_", "roots_", "first_"):
        delattr(hasher, name)
    hasher.feature_ = rng.integers(0, 4, (3, 7)).astype(np.int32)
    hasher.threshold_ = rng.standard_normal((3, 7))
    hasher.leaf_ = rng.random((3, 8)) < 0.5
    hasher.save(tmp_path / "old.npz")
    found = bt.hashing.load(tmp_path / "old.npz").transform(rows)
    for i, row in enumerate(rows):
        for bit in range(3):
            node = 0
            for _ in range(3):
                right = row[hasher.feature_[bit, node]] > hasher.threshold_[bit, node]
                node = 2 * node + 1 + int(right)
            assert found[i, bit] == hasher.leaf_[bit, node - 7]
