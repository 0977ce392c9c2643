from math import fsum, log2

import numpy as np
import oracles
import pytest
import pytrec_eval
from cases import large_profile, one_value, profile_of, random_trec, rankings_with_ties, write_trec
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import dcg_score, ndcg_score

import bittern as bt
from bittern.errors import InputError
from bittern.metrics.gain import TABLE, dcg, discount_sum, ndcg

graded = rankings_with_ties(max_gain=3)
GAINS = {"": oracles.exponential, ":linear": oracles.linear}


@settings(deadline=None)
@given(graded, st.sampled_from(sorted(GAINS)))
def test_dcg_is_the_mean_over_all_orders(case, option):
    wanted = oracles.expected(oracles.dcg, *case, None, GAINS[option])
    assert one_value(f"dcg{option}", *case) == pytest.approx(wanted)


@settings(deadline=None)
@given(graded, st.integers(1, 7), st.sampled_from(sorted(GAINS)))
def test_dcg_at_a_cutoff_is_the_mean_over_all_orders(case, k, option):
    wanted = oracles.expected(oracles.dcg, *case, k, GAINS[option])
    assert one_value(f"dcg@{k}{option}", *case) == pytest.approx(wanted)


@settings(deadline=None)
@given(graded, st.sampled_from(sorted(GAINS)))
def test_ndcg_is_the_mean_over_all_orders(case, option):
    wanted = oracles.expected(oracles.ndcg, *case, None, GAINS[option])
    assert one_value(f"ndcg{option}", *case) == pytest.approx(wanted)


@settings(deadline=None)
@given(graded, st.integers(1, 7), st.sampled_from(sorted(GAINS)))
def test_ndcg_at_a_cutoff_is_the_mean_over_all_orders(case, k, option):
    wanted = oracles.expected(oracles.ndcg, *case, k, GAINS[option])
    assert one_value(f"ndcg@{k}{option}", *case) == pytest.approx(wanted)


def test_worked_example():
    # Gains 2 and 0 tied, then 1.  G(2) = 3, G(1) = 1; discounts 1, 1/log2(3), 1/2.
    # DCG = 3 (1 + 1/log2(3)) / 2 + 1/2; ideal 3 + 1/log2(3).
    value = 3 * (1 + 1 / log2(3)) / 2 + 1 / 2
    assert one_value("dcg", [[2, 0], [1]]) == pytest.approx(value)
    assert one_value("ndcg", [[2, 0], [1]]) == pytest.approx(value / (3 + 1 / log2(3)))


def test_worked_example_of_a_cut_tie():
    # Only rank 1 counts, and holds the gain of 2 half the time; the ideal at 1 is G(2) = 3.
    assert one_value("ndcg@1", [[2, 0], [1]]) == pytest.approx(1 / 2)
    assert one_value("ndcg@1:linear", [[2, 0], [1]]) == pytest.approx(1 / 2)


def test_linear_and_exponential_gain_differ_above_one_only():
    assert one_value("dcg", [[3]]) == 7
    assert one_value("dcg:linear", [[3]]) == 3
    assert one_value("ndcg", [[0], [1]]) == one_value("ndcg:linear", [[0], [1]])
    assert one_value("ndcg", [[1], [2]]) != one_value("ndcg:linear", [[1], [2]])


def test_the_ideal_ranking_has_the_items_that_were_not_retrieved():
    # Found: gain 1 at rank 1.  Ideal: gain 2, then 1: 3 + 1/log2(3).
    assert one_value("ndcg", [[1]], [2]) == pytest.approx(1 / (3 + 1 / log2(3)))


def test_a_query_with_nothing_relevant_is_nan():
    profile = profile_of(([[0, 0]], []), ([[1]], []))
    for metric in (dcg, ndcg):
        np.testing.assert_array_equal(metric(profile), [np.nan, 1.0])


def test_relevant_items_of_which_none_is_retrieved_give_zero():
    assert one_value("ndcg", [[0], []], [2]) == 0
    assert one_value("dcg@3", [[0], []], [2]) == 0


def test_large_gains_do_not_overflow():
    # 2^900 leaves room for sums; the larger gain outweighs all else.
    assert one_value("ndcg", [[900], [899]]) == pytest.approx(1)
    assert one_value("ndcg", [[899], [900]]) < 1


def test_judgements_too_large_for_exponential_gain_are_refused(tmp_path):
    # 2^2000 is not a double; a matrix of gains is refused above 900, and so are judgements.
    files = write_trec(tmp_path, {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 2000, "b": 1}})
    with pytest.raises(InputError, match="2000"):
        bt.evaluate(bt.TieProfile.from_trec(*files), "ndcg")


def random_scores(random_state):
    """Graded gains, and scores with many ties, of eight queries; each has something relevant."""
    rng = np.random.default_rng(random_state)
    gains = rng.integers(0, 4, (8, 25))
    gains[:, 0] = 3
    return gains, rng.integers(0, 6, (8, 25))


@pytest.mark.parametrize("k", [None, 1, 4, 10, 25])
def test_it_is_what_scikit_learn_averages_over_ties(k):
    gains, scores = random_scores(random_state=3)
    profile = bt.TieProfile.from_distances(5 - scores, bt.Relevance.from_matrix(gains))
    at = "" if k is None else f"@{k}"
    for option, transformed in (("", 2**gains - 1), (":linear", gains)):
        ours = bt.evaluate(profile, [f"ndcg{at}{option}", f"dcg{at}{option}"])
        for score, theirs in zip(ours.values(), (ndcg_score, dcg_score), strict=True):
            wanted = [theirs(transformed[[q]], scores[[q]], k=k) for q in range(8)]
            np.testing.assert_allclose(score.per_query, wanted)


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_without_ties_linear_gain_is_what_trec_eval_says(tmp_path, k):
    run, qrels = random_trec(random_state=k, ties=False)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", f"ndcg_cut.{k}"}).evaluate(run)
    profile = bt.TieProfile.from_trec(*write_trec(tmp_path, run, qrels))
    scores = bt.evaluate(profile, ["ndcg:linear", f"ndcg@{k}:linear", "ndcg"])
    for ours, name in (("ndcg:linear", "ndcg"), (f"ndcg@{k}:linear", f"ndcg_cut_{k}")):
        wanted = [theirs[q][name] for q in scores.query_ids]
        np.testing.assert_allclose(scores[ours].per_query, wanted, rtol=1e-6)
    assert scores["ndcg"].mean != pytest.approx(scores["ndcg:linear"].mean)


def test_near_discounts_are_added_one_by_one():
    low, high = np.array([0, 0, 3, 5]), np.array([0, 4, 3, 7])
    wanted = [0, 1 + 1 / log2(3) + 1 / 2 + 1 / log2(5), 0, 1 / log2(7) + 1 / log2(8)]
    np.testing.assert_allclose(discount_sum(low, high), wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (TABLE, TABLE + 5_000_000),
        (TABLE - 10, TABLE + 10),
        (TABLE - 1, TABLE + 1),
        (0, TABLE + 1_000_000),
        (TABLE + 3, TABLE + 7),
        (10**9, 10**9 + 1),
        (10**9, 10**9 + 999),
        (10**9, 10**9 + 1000),
        (10**9, 10**9 + 1001),
        (10**9, 10**9 + 5_000_000),
    ],
)
def test_far_discounts_equal_the_direct_sum(low, high):
    wanted = np.sum(1 / np.log2(np.arange(low + 2, high + 2, dtype=np.float64)))
    (value,) = discount_sum(np.array([low]), np.array([high]))
    assert value == pytest.approx(wanted, rel=1e-9)


def test_discounts_of_neighbouring_stretches_add_up():
    bounds = np.array([0, 10, TABLE - 1, TABLE, TABLE + 1, 10**7, 10**9, 3 * 10**9])
    parts = discount_sum(bounds[:-1], bounds[1:])
    (whole,) = discount_sum(bounds[:1], bounds[-1:])
    assert fsum(parts) == pytest.approx(whole, rel=1e-12)
    assert (parts > 0).all()


def test_a_tie_of_a_billion_items():
    # One relevant anywhere among n: the mean discount over n ranks, near 1/log2(n); ideal 1.
    n = 10**9
    (value,) = ndcg(large_profile([(n, 1)]))
    assert value == pytest.approx(discount_sum(np.array([0]), np.array([n]))[0] / n)
    assert 1 / log2(n) < value < 1.1 / log2(n)


def test_a_cutoff_before_the_end_of_a_tie_of_a_billion_items():
    # n = 10^9, half relevant, k = 3: half of the ideal.
    (value,) = ndcg(large_profile([(10**9, 5 * 10**8)]), 3)
    assert value == pytest.approx(1 / 2)
