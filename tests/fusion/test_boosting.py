"""Features chosen by boosting, against textbook AdaBoost in plain loops."""

import math

import numpy as np
import pytest
from twins import boosting_reference

import bittern as bt
from bittern.errors import InputError
from bittern.fusion import boost, boosted_scores, draw_negatives
from bittern.kernels import boosting


def slow_boost(positives, negatives, n_rounds):
    """AdaBoost over single features in floating point; equal errors count as equal to 1e-6."""
    rows = [*positives, *negatives]
    truth = [True] * len(positives) + [False] * len(negatives)
    sides = (positives, negatives)
    weights = [1 / (2 * len(side)) for side in sides for _ in side]
    stumps = []
    for j in range(len(rows[0])):
        high, low = (sum(row[j] for row in side) / len(side) for side in sides)
        variance = sum((row[j] - low) ** 2 for row in negatives) / len(negatives)
        gap = (high - low) ** 2 / variance if variance else (math.inf if high != low else 0.0)
        stumps.append((j, (high + low) / 2, 1 if high >= low else -1, gap))
    chosen = []
    for _ in range(n_rounds):
        found = []
        for j, threshold, sign, gap in stumps:
            said = [sign * (row[j] - threshold) > 0 for row in rows]
            wrong = [s != t for s, t in zip(said, truth, strict=True)]
            error = sum(w for w, bad in zip(weights, wrong, strict=True) if bad)
            found.append((round(error, 6), -gap, j, threshold, sign, error, wrong))
        if not found or min(found)[0] >= 0.5 - 1e-6:
            break
        _, _, j, threshold, sign, error, wrong = min(found)
        floor = max(error, 1 / (4 * max(map(len, sides))))
        chosen.append((j, threshold, sign, math.log((1 - floor) / floor)))
        stumps = [stump for stump in stumps if stump[0] != j]
        if error > 1e-9:
            weights = [
                w * (0.5 / error if bad else 0.5 / (1 - error))
                for w, bad in zip(weights, wrong, strict=True)
            ]
    return chosen


def made(random_state, n_positives, n_negatives=20, dim=15):
    rng = np.random.default_rng(random_state)
    positives = rng.normal(0.7 * (np.arange(dim) < 5), 1.0, (n_positives, dim))
    return positives.astype(np.float32), rng.normal(0, 1, (n_negatives, dim)).astype(np.float32)


@pytest.mark.parametrize("n_positives", [1, 3, 9, 30])
@pytest.mark.parametrize("random_state", range(4))
def test_it_is_adaboost(random_state, n_positives):
    positives, negatives = made(random_state, n_positives)
    found = boost(positives, negatives, n_rounds=8)
    wanted = slow_boost(positives.tolist(), negatives.tolist(), 8)
    assert found.features.tolist() == [j for j, *_ in wanted]
    assert found.signs.tolist() == [sign for _, _, sign, _ in wanted]
    np.testing.assert_allclose(found.thresholds, [t for _, t, _, _ in wanted], rtol=1e-6)
    np.testing.assert_allclose(found.weights, [a for *_, a in wanted], rtol=1e-4)
    items = np.random.default_rng(9).normal(size=(50, positives.shape[1])).astype(np.float32)
    votes = [sum(a for j, t, s, a in wanted if s * (item[j] - t) > 0) for item in items]
    np.testing.assert_allclose(found.scores(items), votes, rtol=1e-4)


@pytest.mark.parametrize("random_state", range(6))
def test_the_kernel_equals_its_twin(random_state):
    rng = np.random.default_rng(random_state)
    dim = (3, 40, boosting.STRIP + 30)[random_state % 3]
    rows = rng.integers(0, 6, (60, dim)).astype(np.float32)  # few values, so that errors tie
    rows[:, -1] = 1.0  # a feature that says nothing
    positives, negatives = np.arange(1 + random_state), np.arange(20, 60)
    both = []
    for way in (boosting.boost, boosting_reference.boost):
        out = np.zeros(12, np.int64), np.zeros(12), np.zeros(12), np.zeros(12)
        n = way(rows, positives, negatives, *out)
        both.append([part[:n] for part in out])
    assert len(both[0][0]) >= 1
    np.testing.assert_array_equal(both[0][0], both[1][0])
    for one, other in zip(both[0][1:], both[1][1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_queries_at_once_equal_one_at_a_time():
    rng = np.random.default_rng(1)
    pool, database = rng.random((40, 30)), rng.random((25, 30))
    queries = [np.array([0]), np.array([3, 1, 2]), np.array([7, 8])]
    negatives = draw_negatives(queries, np.arange(10, 40), 12, random_state=2)
    found = boosted_scores(queries, negatives, pool, database, n_rounds=5, n_threads=2)
    for q, own in enumerate(queries):
        alone = boost(pool[own], pool[negatives[q]], n_rounds=5)
        np.testing.assert_array_equal(found[q], alone.scores(database))


def test_a_feature_that_separates_is_found_among_many():
    rng = np.random.default_rng(3)
    pool, database = rng.normal(size=(100, 500)), rng.normal(size=(60, 500))
    labels = np.arange(60) % 2
    pool[:4, 77] += 8
    database[labels == 1, 77] += 8
    found = boost(pool[:4], pool[4:], n_rounds=1)
    assert found.features.tolist() == [77]
    assert np.isfinite(found.weights).all()  # although there is no mistake
    relevance = bt.Relevance.from_classes([1], labels)
    profile = bt.TieProfile.from_distances(-found.scores(database)[None], relevance)
    assert bt.evaluate(profile, ["ap"])["ap"].mean == 1.0


def test_no_features_are_chosen_where_none_helps():
    found = boost(np.ones((2, 3)), np.ones((5, 3)))
    assert len(found.features) == 0
    assert found.scores(np.ones((4, 3))).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: boost(np.ones((1, 3)), np.ones((2, 4))), "dimensions of examples"),
        (lambda: boost(np.ones((1, 3)), np.ones((2, 3)), n_rounds=0), "n_rounds"),
        (lambda: boost([[np.nan]], [[1.0]]), "positives"),
        (lambda: boosted_scores([[0]], [[9]], np.ones((3, 2)), np.ones((1, 2))), "negatives"),
        (lambda: boosted_scores([[0]], [1], np.ones((3, 2)), np.ones((1, 2))), "negatives must"),
        (lambda: boosted_scores([[0]], [[1]], np.ones((3, 2)), np.ones((1, 3))), "pool and data"),
    ],
)
def test_bad_examples_are_refused(call, says):
    with pytest.raises(InputError, match=says):
        call()
