import numpy as np
import oracles
import pytest
import pytrec_eval
from cases import one_value, profile_of, random_trec, rankings_with_ties, write_trec
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt
from bittern.errors import InputError

NAMES = sorted(oracles.rank_metrics(3))


@pytest.mark.parametrize(
    ("rule", "extreme"), [("optimistic", oracles.best), ("pessimistic", oracles.worst)]
)
@settings(max_examples=40, deadline=None)
@given(case=rankings_with_ties(max_gain=2))
def test_the_rules_are_the_best_and_the_worst_of_all_orders(rule, extreme, case):
    scores = bt.evaluate(profile_of(case), [f"{name}:{rule}" for name in NAMES])
    for name, metric in oracles.rank_metrics(3).items():
        assert scores[f"{name}:{rule}"].mean == pytest.approx(extreme(metric, *case)), name


@settings(max_examples=60, deadline=None)
@given(rankings_with_ties(max_gain=2, max_size=7), st.integers(1, 8))
def test_every_rank_metric_is_the_mean_over_all_orders(case, k):
    metrics = oracles.rank_metrics(k)
    scores = bt.evaluate(profile_of(case), list(metrics))
    for name, metric in metrics.items():
        assert scores[name].mean == pytest.approx(oracles.expected(metric, *case)), name


def test_worked_example():
    # One relevant of three tied: AP 1 at best, 1/3 at worst, (1 + 1/2 + 1/3) / 3 in the mean.
    assert one_value("ap:optimistic", [[0, 1, 0]]) == 1
    assert one_value("ap:pessimistic", [[0, 1, 0]]) == pytest.approx(1 / 3)
    assert one_value("ap", [[0, 1, 0]]) == pytest.approx(11 / 18)


def test_graded_gains_of_a_tie_are_ranked_by_their_size():
    # 2 before 1 at best: the ideal; 1 before 2 at worst: (1 + 3/log2(3)) / (3 + 1/log2(3)).
    assert one_value("ndcg:optimistic", [[1, 2]]) == pytest.approx(1)
    worst = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert one_value("ndcg:pessimistic", [[1, 2]]) == pytest.approx(worst)


@pytest.mark.parametrize("name", NAMES)
def test_without_ties_the_rules_agree(name):
    ties = [[0], [1], [], [2], [0], [1]]
    plain = one_value(name, ties, [1])
    assert one_value(f"{name}:optimistic", ties, [1]) == pytest.approx(plain)
    assert one_value(f"{name}:pessimistic", ties, [1]) == pytest.approx(plain)
    assert plain > 0


@pytest.mark.parametrize("name", NAMES)
def test_nothing_relevant_is_nan_under_every_rule(name):
    for rule in ("optimistic", "pessimistic"):
        assert np.isnan(one_value(f"{name}:{rule}", [[0, 0], [0]]))


TREC = {
    "ap": "map",
    "ap@5": "map_cut_5",
    "rr": "recip_rank",
    "r-precision": "Rprec",
    "precision@5": "P_5",
    "recall@5": "recall_5",
    "hit-rate@5": "success_5",
    "ndcg:linear": "ndcg",
    "ndcg@5:linear": "ndcg_cut_5",
}


@pytest.mark.parametrize("random_state", range(3))
def test_the_trec_rule_is_what_trec_eval_says_of_ties(tmp_path, random_state):
    run, qrels = random_trec(random_state, ties=True)
    asked = {name.replace("_5", ".5") for name in TREC.values()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    profile = bt.TieProfile.from_trec(*write_trec(tmp_path, run, qrels))
    scores = bt.evaluate(profile, [f"{name}:trec" for name in TREC])
    for ours, name in TREC.items():
        wanted = [theirs[q][name] for q in scores.query_ids]
        np.testing.assert_allclose(scores[f"{ours}:trec"].per_query, wanted, rtol=1e-6)
    # Not vacuous: the ties matter, so the expectation is another number.
    assert bt.evaluate(profile, "ap")["ap"].mean != pytest.approx(scores["ap:trec"].mean)


def test_the_trec_rule_lies_between_the_extremes(tmp_path):
    run, qrels = random_trec(random_state=9, ties=True)
    profile = bt.TieProfile.from_trec(*write_trec(tmp_path, run, qrels))
    scores = bt.evaluate(
        profile, [f"ap{rule}" for rule in (":pessimistic", ":trec", ":optimistic")]
    )
    worst, trec, best = (score.per_query for score in scores.values())
    assert (worst <= trec + 1e-12).all()
    assert (trec <= best + 1e-12).all()


def test_the_trec_rule_needs_document_ids():
    with pytest.raises(InputError, match=r"':trec' needs document ids .* TieProfile.from_trec"):
        one_value("ap:trec", [[1, 0]])
