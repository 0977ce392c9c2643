from math import comb

import numpy as np
import oracles
import pytest
import pytrec_eval
from cases import large_profile, one_value, profile_of, random_trec, rankings_with_ties, write_trec
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt

AT_CUTOFF = {
    "precision": oracles.precision,
    "recall": oracles.recall,
    "f1": oracles.fbeta,
    "f0.5": lambda ranking, missing, k: oracles.fbeta(ranking, missing, k, 0.5),
    "f2": lambda ranking, missing, k: oracles.fbeta(ranking, missing, k, 2),
    "hit-rate": oracles.hit_rate,
    "rr": oracles.reciprocal_rank,
}


@pytest.mark.parametrize("name", AT_CUTOFF)
@settings(max_examples=60, deadline=None)
@given(case=rankings_with_ties(max_gain=2), k=st.integers(1, 8))
def test_at_a_cutoff_it_is_the_mean_over_all_orders(name, case, k):
    wanted = oracles.expected(AT_CUTOFF[name], *case, k)
    assert one_value(f"{name}@{k}", *case) == pytest.approx(wanted)


@settings(deadline=None)
@given(rankings_with_ties(max_size=7))
def test_reciprocal_rank_is_the_mean_over_all_orders(case):
    wanted = oracles.expected(oracles.reciprocal_rank, *case)
    assert one_value("rr", *case) == pytest.approx(wanted)


@settings(deadline=None)
@given(rankings_with_ties(max_size=7))
def test_r_precision_is_the_mean_over_all_orders(case):
    wanted = oracles.expected(oracles.r_precision, *case)
    assert one_value("r-precision", *case) == pytest.approx(wanted)


def test_worked_example_at_a_cutoff_inside_a_tie():
    # One relevant at rank 1, then 1 relevant of 4 tied, one more nowhere; k = 3 takes 2 of the 4.
    # Found in the mean: 1 + 1 * 2/4 = 3/2.  Precision 3/2 / 3, recall 3/2 / 3, so F = 1/2 too.
    case = [[1], [1, 0, 0, 0]], [1]
    assert one_value("precision@3", *case) == pytest.approx(1 / 2)
    assert one_value("recall@3", *case) == pytest.approx(1 / 2)
    assert one_value("f1@3", *case) == pytest.approx(1 / 2)
    # k = 1: precision 1, recall 1/3; F_2 = 5 * 1/3 / (4 + 1/3) = 5/13.
    assert one_value("f2@1", *case) == pytest.approx(5 / 13)


def test_worked_example_of_reciprocal_rank_and_hit_rate():
    # 2 relevant of 4 tied, after one other.  First hit on place 1, 2, 3 of the tie with
    # probability 3/6, 2/6, 1/6, at rank 2, 3, 4: 1/4 + 1/9 + 1/24.
    ties = [[0], [1, 1, 0, 0]]
    assert one_value("rr", ties) == pytest.approx(1 / 4 + 1 / 9 + 1 / 24)
    assert one_value("rr@3", ties) == pytest.approx(1 / 4 + 1 / 9)
    assert one_value("hit-rate@3", ties) == pytest.approx(5 / 6)
    assert one_value("hit-rate@1", ties) == 0


def test_worked_example_of_r_precision():
    # R = 2 with one not retrieved; of the first two ranks, rank 1 misses, rank 2 is 1 of 2 tied.
    assert one_value("r-precision", [[0], [1, 0]], [1]) == pytest.approx(1 / 4)


def test_worked_example_within_a_radius():
    # Distances 0, 0, 1, 2, 3; relevant those at 0 (one of two), 2 and 3, and one nowhere: R = 4.
    case = [[1, 0], [0], [1], [1]], [1]
    assert one_value("precision@r0", *case) == 1 / 2
    assert one_value("precision@r2", *case) == 2 / 4
    assert one_value("recall@r1", *case) == 1 / 4
    assert one_value("recall@r2", *case) == 2 / 4
    assert one_value("f1@r2", *case) == pytest.approx(1 / 2)
    assert one_value("f2@r1", *case) == pytest.approx(5 * (1 / 3) * (1 / 4) / (4 / 3 + 1 / 4))
    assert one_value("hit-rate@r0", *case) == 1
    assert one_value("recall@r100", *case) == 3 / 4


@settings(max_examples=60, deadline=None)
@given(rankings_with_ties(), st.integers(0, 5))
def test_within_a_radius_it_is_the_textbook_value_of_the_set(case, radius):
    ties, missing = case
    inside = [gain for tie in ties[: radius + 1] for gain in tie]
    whole = [gain for tie in ties for gain in tie]
    hits, relevant = oracles.n_relevant(inside), oracles.n_relevant(whole, missing)
    p = hits / len(inside) if inside else np.nan
    assert one_value(f"precision@r{radius}", *case) == pytest.approx(p, nan_ok=True)
    zero = p if inside else 0
    assert one_value(f"precision@r{radius}:empty-zero", *case) == pytest.approx(zero)
    assert one_value(f"recall@r{radius}", *case) == pytest.approx(hits / relevant)
    f = 2 * hits / (len(inside) + relevant)  # 2 p r / (p + r)
    assert one_value(f"f1@r{radius}", *case) == pytest.approx(f)
    assert one_value(f"hit-rate@r{radius}", *case) == (hits > 0)


def test_real_distances_have_radii_too():
    truth = bt.Relevance.from_matrix([[1, 0, 1, 1]])
    profile = bt.TieProfile.from_distances([[0.5, 2.0, 2.0, 2.5]], truth)
    scores = bt.evaluate(profile, ["precision@r2", "recall@r0", "precision@r0"])
    assert scores["precision@r2"].mean == pytest.approx(2 / 3)
    assert scores["recall@r0"].mean == 0
    assert np.isnan(scores["precision@r0"].mean)


def test_a_ranking_shorter_than_the_cutoff_is_still_divided_by_the_cutoff():
    assert one_value("precision@10", [[1], [1]]) == 2 / 10
    assert one_value("f1@10", [[1], [1]]) == pytest.approx(2 * 2 / (10 + 2))
    assert one_value("recall@10", [[1], [1]]) == 1


@pytest.mark.parametrize("name", [*(f"{name}@3" for name in AT_CUTOFF), "rr", "r-precision"])
def test_a_query_with_nothing_relevant_is_nan(name):
    profile = profile_of(([[0, 0]], []), ([[1], [1], [1]], []))
    nothing, something = bt.evaluate(profile, [name])[name].per_query
    assert np.isnan(nothing)
    assert something == 1


@pytest.mark.parametrize("name", [*(f"{name}@3" for name in AT_CUTOFF), "rr", "r-precision"])
def test_relevant_items_of_which_none_is_retrieved_give_zero(name):
    assert one_value(name, [[0], [0, 0]], [1]) == 0
    assert one_value(name, [[]], [1]) == 0


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_without_ties_it_is_what_trec_eval_says(tmp_path, k):
    run, qrels = random_trec(random_state=k, ties=False)
    pairs = {
        "rr": "recip_rank",
        "r-precision": "Rprec",
        f"precision@{k}": f"P_{k}",
        f"recall@{k}": f"recall_{k}",
        f"hit-rate@{k}": f"success_{k}",
    }
    asked = {"recip_rank", "Rprec", f"P.{k}", f"recall.{k}", f"success.{k}"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    profile = bt.TieProfile.from_trec(*write_trec(tmp_path, run, qrels))
    scores = bt.evaluate(profile, list(pairs))
    for ours, name in pairs.items():
        wanted = [theirs[q][name] for q in scores.query_ids]
        np.testing.assert_allclose(scores[ours].per_query, wanted, rtol=1e-6)
        assert scores[ours].mean > 0.01


def large_value(name, ties):
    return bt.evaluate(large_profile(ties), [name])[name].mean


@pytest.mark.parametrize("r", [1, 2, 1000, 10**6])
def test_reciprocal_rank_in_a_tie_of_a_million_items(r):
    # P(first hit on place t) = C(n - t, r - 1) / C(n, r), by its ratio of neighbours.
    n, p, wanted = 10**6, r / 10**6, 0.0
    for t in range(1, n - r + 2):
        wanted += p / (5 + t)
        p *= (n - t - r + 1) / (n - t) if t < n else 0
    assert large_value("rr", [(5, 0), (n, r)]) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("n", "r", "k"), [(10**9, 10**8, 20), (10**9, 1, 5000), (10**9, 3, 10)])
def test_hit_rate_in_a_tie_of_a_billion_items(n, r, k):
    few, many = sorted([r, k])  # C(n - r, k) / C(n, k) either way round
    wanted = 1 - comb(n - many, few) / comb(n, few)
    assert large_value(f"hit-rate@{k}", [(n, r)]) == pytest.approx(wanted, rel=1e-6)


def test_a_cutoff_inside_a_tie_of_a_billion_items():
    ties = [(10, 4), (10**9, 10**8)]
    assert large_value("precision@110", ties) == pytest.approx((4 + 100 / 10) / 110)
    assert large_value("recall@110", ties) == pytest.approx((4 + 100 / 10) / (10**8 + 4))
