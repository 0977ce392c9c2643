"""Weights predicted from scores alone."""

import numpy as np
import pytest
from scipy import stats

import bittern as bt
from bittern.fusion import STATISTICS, WeightPredictor, score_statistics, weighted_sum

CATEGORIES = np.repeat(np.arange(10), 8)
N_QUERIES, N_ITEMS = len(CATEGORIES), 40


def made(random_state=0):
    """Two sources; in each query one knows the answer, and shows it by a heavy tail."""
    rng = np.random.default_rng(random_state)
    relevant = rng.random((N_QUERIES, N_ITEMS)) < 0.15
    relevant[:, 0] = True
    scores = rng.standard_normal((2, N_QUERIES, N_ITEMS))
    knows = rng.integers(0, 2, N_QUERIES)
    scores[knows, np.arange(N_QUERIES)] += 4.0 * relevant
    return scores, relevant, knows


def mean_ap(fused, relevant):
    profile = bt.TieProfile.from_distances(-fused, bt.Relevance.from_matrix(relevant.astype(int)))
    return bt.evaluate(profile, ["ap"])["ap"].mean


def test_statistics_equal_their_definitions():
    scores, _, _ = made()
    found = score_statistics(scores)
    assert found.shape == (N_QUERIES, 2, len(STATISTICS))
    for q in (0, 7):
        for s in (0, 1):
            row, other = scores[s, q], scores[1 - s, q]
            ordered = np.sort((row - row.mean()) / row.std())[::-1]
            tops = [set(np.argsort(-x)[:10]) for x in (row, other)]
            wanted = {
                "skewness": np.arcsinh(stats.skew(row)),
                "kurtosis": np.arcsinh(stats.kurtosis(row)),
                "head": ordered[:10].mean(),
                "gap": ordered[0] - ordered[9],
                "agreement": np.corrcoef(row, other)[0, 1],
                "overlap": len(tops[0] & tops[1]) / 10,
            }
            values = dict(zip(STATISTICS, found[q, s], strict=True))
            assert values == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("model", ["ridge", "forest"])
def test_predicted_weights_beat_equal_ones_on_queries_never_seen(model):
    scores, relevant, _ = made(0)
    predictor = WeightPredictor(model=model).fit(scores, relevant, CATEGORIES)
    unseen, truth, knows = made(1)
    weights = predictor.weights(unseen)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    right = weights[np.arange(N_QUERIES), knows] > 0.5
    assert right.mean() > 0.8
    equal = mean_ap(weighted_sum(unseen, weights=[0.5, 0.5]), truth)
    assert mean_ap(predictor.combine(unseen), truth) > equal + 0.05
    assert np.isfinite(predictor.temperature_)


def test_a_query_s_weights_depend_on_its_own_scores_alone():
    scores, relevant, _ = made()
    predictor = WeightPredictor(model="ridge").fit(scores, relevant, CATEGORIES)
    whole = predictor.weights(scores)
    np.testing.assert_allclose(predictor.weights(scores[:, 3:4]), whole[3:4])


def test_where_nothing_can_be_learned_the_prior_stays():
    rng = np.random.default_rng(0)
    one = rng.standard_normal((N_QUERIES, N_ITEMS))
    scores = np.stack([one, one])  # the same twice: no weights change the ranking
    relevant = rng.random((N_QUERIES, N_ITEMS)) < 0.2
    relevant[5] = False  # and a query to leave out
    predictor = WeightPredictor(model="ridge", n_folds=2)
    predictor.fit(scores, relevant, CATEGORIES, prior=[1, 3])
    np.testing.assert_allclose(predictor.prior_, [0.25, 0.75])
    np.testing.assert_allclose(predictor.temperature_ap_, predictor.temperature_ap_[-1], rtol=0.01)
    assert predictor._weights(np.array([[0.9, 0.1]]), np.inf).tolist() == [[0.25, 0.75]]


def test_further_statistics_are_used_and_asked_for_again():
    scores, relevant, knows = made()
    more = (np.arange(2) == knows[:, None]).astype(float)[:, :, None]  # who knows, told outright
    predictor = WeightPredictor(model="ridge").fit(scores, relevant, CATEGORIES, more=more)
    weights = predictor.weights(scores, more=more)
    assert (weights[np.arange(N_QUERIES), knows] > 0.5).mean() > 0.95
    with pytest.raises(bt.InputError, match="give 'more' as in fit"):
        predictor.weights(scores)


SCORES, RELEVANT, _ = made()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: WeightPredictor().combine(SCORES), bt.NotFittedError, "before combine"),
        (
            lambda: WeightPredictor(model="tree").fit(SCORES, RELEVANT, CATEGORIES),
            bt.UnknownNameError,
            "there are ridge, forest",
        ),
        (
            lambda: WeightPredictor(n_folds=11).fit(SCORES, RELEVANT, CATEGORIES),
            bt.InputError,
            "at least n_folds = 11 categories",
        ),
        (
            lambda: WeightPredictor().fit(SCORES, RELEVANT, CATEGORIES, prior=[1, -1]),
            bt.InputError,
            "prior must be a weight",
        ),
        (
            lambda: WeightPredictor().fit(SCORES, RELEVANT, CATEGORIES, more=np.ones((80, 3, 1))),
            bt.InputError,
            "more must be finite",
        ),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, error, says):
    with pytest.raises(error, match=says):
        call()
