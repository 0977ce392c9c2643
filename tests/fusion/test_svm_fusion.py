"""The SVM over score vectors: scikit-learn's on the same sample, and nothing beyond it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

import bittern as bt
from bittern.fusion import NORMALISATIONS, SVMFusion

CATEGORIES = np.repeat(np.arange(5), 3)
N_ITEMS = 20


def made(random_state=0):
    """Three sources, the first good, the last noise; items 0…3 are of category 0, and so on."""
    rng = np.random.default_rng(random_state)
    relevant = CATEGORIES[:, None] == np.arange(N_ITEMS) // 4
    scores = rng.standard_normal((3, 15, N_ITEMS))
    scores += relevant * np.array([2.0, 1.0, 0.0])[:, None, None]
    return scores * np.array([1.0, 50.0, 0.1])[:, None, None], relevant


@pytest.mark.parametrize("normalise", ["zscore", "none"])
def test_weights_are_those_of_scikit_learn_on_the_same_sample(normalise):
    scores, relevant = made()
    fusion = SVMFusion(2, C=0.5, normalise=normalise).fit(scores, relevant, CATEGORIES)
    vectors = []
    for query, item in fusion.items_:
        rows = [NORMALISATIONS[normalise](source[query])[item] for source in scores]
        vectors.append(rows)
    machine = SVC(kernel="linear", C=0.5).fit(vectors, relevant[tuple(fusion.items_.T)])
    np.testing.assert_allclose(fusion.weights_, machine.coef_[0], rtol=1e-10)
    assert fusion.intercept_ == pytest.approx(machine.intercept_[0])

    z = np.stack([NORMALISATIONS[normalise](source) for source in scores], axis=-1)
    distance = machine.decision_function(z.reshape(-1, 3)) / np.linalg.norm(machine.coef_)
    np.testing.assert_allclose(fusion.combine(scores), distance.reshape(15, N_ITEMS), atol=1e-9)


def test_the_sample_is_one_query_a_category_and_as_many_items_of_both_kinds():
    scores, relevant = made()
    fusion = SVMFusion(3).fit(scores, relevant, CATEGORIES)
    assert CATEGORIES[fusion.queries_].tolist() == [0, 1, 2, 3, 4]
    assert fusion.items_.shape == (30, 2)
    assert len({tuple(pair) for pair in fusion.items_}) == 30
    for query in fusion.queries_:
        own = fusion.items_[:, 0] == query
        assert fusion.labels_[own].sum() == 3
        assert own.sum() == 6
    np.testing.assert_array_equal(fusion.labels_, relevant[tuple(fusion.items_.T)])


def test_fewer_relevant_items_than_asked_for_are_all_taken():
    scores, relevant = made()
    fusion = SVMFusion(15).fit(scores, relevant, CATEGORIES)
    assert fusion.labels_.sum() == 5 * 4
    assert (~fusion.labels_).sum() == 5 * 15


def test_nothing_but_the_drawn_queries_is_looked_at():
    scores, relevant = made()
    fusion = SVMFusion().fit(scores, relevant, CATEGORIES)
    others = np.setdiff1d(np.arange(15), fusion.queries_)
    spoilt, wrong = scores.copy(), relevant.copy()
    spoilt[:, others] = 1e6
    wrong[others] = ~wrong[others]
    again = SVMFusion().fit(spoilt, wrong, CATEGORIES)
    np.testing.assert_array_equal(fusion.weights_, again.weights_)


def test_a_query_is_combined_from_its_own_scores_alone():
    scores, relevant = made()
    fusion = SVMFusion().fit(scores, relevant, CATEGORIES)
    whole = fusion.combine(scores)
    np.testing.assert_array_equal(fusion.combine(scores[:, 4:5]), whole[4:5])


def test_it_learns_which_sources_know_something():
    scores, relevant = made()
    fusion = SVMFusion(4).fit(scores, relevant, CATEGORIES)
    assert fusion.weights_.argmax() == 0
    other = SVMFusion(4, random_state=1).fit(scores, relevant, CATEGORIES)
    assert (fusion.weights_ != other.weights_).any()
    again = clone(fusion).fit(scores, relevant, CATEGORIES)
    np.testing.assert_array_equal(fusion.weights_, again.weights_)


def test_a_ground_truth_does_as_well_as_booleans():
    scores, relevant = made()
    truth = bt.Relevance.from_classes(CATEGORIES, np.arange(N_ITEMS) // 4)
    one, two = (SVMFusion().fit(scores, given, CATEGORIES) for given in (relevant, truth))
    np.testing.assert_array_equal(one.weights_, two.weights_)


SCORES, RELEVANT = made()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: SVMFusion().combine(SCORES), bt.NotFittedError, "before combine"),
        (lambda: SVMFusion(0).fit(SCORES, RELEVANT, CATEGORIES), bt.InputError, "at least 1"),
        (lambda: SVMFusion().fit(SCORES, RELEVANT, [1]), bt.InputError, "each of 15 rows"),
        (
            lambda: SVMFusion().fit(SCORES, RELEVANT & False, CATEGORIES),
            bt.InputError,
            "all drawn ones were not relevant",
        ),
        (
            lambda: SVMFusion().fit(SCORES * 0, RELEVANT, CATEGORIES),
            bt.InputError,
            "do not differ",
        ),
        (
            lambda: SVMFusion(random_state=-1).fit(SCORES, RELEVANT, CATEGORIES),
            bt.InputError,
            "random_state",
        ),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, error, says):
    with pytest.raises(error, match=says):
        call()
