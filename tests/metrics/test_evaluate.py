import numpy as np
import pytest
from cases import profile_of, write_trec

import bittern as bt
from bittern import metrics
from bittern.errors import InputError, UnknownNameError
from bittern.metrics import DEFAULT_METRICS


@pytest.fixture
def codes():
    """Queries, database and ground truth; AP is defined and below 1."""
    rng = np.random.default_rng(4)
    queries, database = (bt.Codes.from_bits(rng.random((n, 8)) < 0.5) for n in (6, 50))
    truth = bt.Relevance.from_classes(rng.integers(0, 3, 6), rng.integers(0, 3, 50))
    return queries, database, truth


def slow_ap(codes_of_queries, codes_of_database, relevant):
    """AP of each query: distances bit by bit, mean precision over the positions of each tie."""
    values = []
    for q, query in enumerate(codes_of_queries):
        distance = [
            sum(a != b for a, b in zip(query, row, strict=True)) for row in codes_of_database
        ]
        before = found = total = 0
        for d in sorted(set(distance)):
            tie = [bool(relevant[q][i]) for i in range(len(distance)) if distance[i] == d]
            n, r = len(tie), sum(tie)
            for t in range(1, n + 1):
                others = (t - 1) * (r - 1) / (n - 1) if n > 1 else 0
                total += r / n * (found + 1 + others) / (before + t)
            before, found = before + n, found + r
        values.append(total / found)
    return values


def test_every_form_of_call_gives_the_same_scores(codes):
    profile = bt.TieProfile.from_codes(*codes)
    names = ["ap", "ndcg@10"]
    forms = [
        bt.evaluate(profile, names),
        bt.evaluate(profile, tuple(names)),
        bt.evaluate(profile, (name for name in names)),
        bt.evaluate(profile, [bt.MetricName("ap"), bt.MetricName("ndcg", cutoff=10)]),
        bt.evaluate(profile, metrics=names),
        bt.evaluate(*codes, names),
        bt.evaluate(*codes, metrics=names),
        bt.evaluate(codes, names),
        metrics.evaluate_codes(*codes, names),
        metrics.evaluate_codes(*codes, metrics=names),
    ]
    for scores in forms:
        assert list(scores) == names
        for name in names:
            np.testing.assert_array_equal(scores[name].per_query, forms[0][name].per_query)
    assert 0 < forms[0]["ap"].mean < 1


def test_the_values_are_those_of_a_slow_scan(codes):
    queries, database, truth = codes
    wanted = slow_ap(queries.to_bits(), database.to_bits(), truth.block(slice(0, 6)))
    np.testing.assert_allclose(bt.evaluate(*codes, "ap")["ap"].per_query, wanted)


def test_one_name_needs_no_list(codes):
    assert list(bt.evaluate(*codes, "ap")) == ["ap"]
    assert list(bt.evaluate(*codes, bt.MetricName("ap"))) == ["ap"]


def test_without_names_the_usual_ones_are_computed(codes):
    assert list(bt.evaluate(*codes)) == list(DEFAULT_METRICS)
    assert list(bt.evaluate(bt.TieProfile.from_codes(*codes))) == list(DEFAULT_METRICS)


def test_a_name_given_twice_is_computed_once(codes):
    assert list(bt.evaluate(*codes, ["ap", "ndcg", "ap"])) == ["ap", "ndcg"]


def test_queries_of_a_run_keep_their_ids(tmp_path):
    run = {"7": {"a": 1.0}, "10": {"b": 1.0}}
    qrels = {"7": {"a": 1}, "10": {"a": 1}}
    scores = bt.evaluate(bt.TieProfile.from_trec(*write_trec(tmp_path, run, qrels)), "ap")
    by_id = dict(zip(scores.query_ids.tolist(), scores["ap"].per_query, strict=True))
    assert by_id == {"7": 1, "10": 0}


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda q, d, t: bt.evaluate(), InputError, "takes a TieProfile, .* got nothing"),
        (lambda q, d, t: bt.evaluate(q, d), InputError, "got Codes, Codes"),
        (lambda q, d, t: bt.evaluate(q, t, d), InputError, "got Codes, ClassRelevance, Codes"),
        (lambda q, d, t: bt.evaluate(q.to_bits(), d, t), InputError, "got ndarray, Codes"),
        (lambda q, d, t: bt.evaluate(q, d, t, "ap", "rr"), InputError, "then the metrics; got"),
        (lambda q, d, t: bt.evaluate((q, d), "ap"), InputError, "got Codes, Codes, str"),
        (lambda q, d, t: bt.evaluate(q, d, t, "ap", metrics="rr"), InputError, "given twice"),
        (lambda q, d, t: bt.evaluate(q, d, t, []), InputError, "at least one metric"),
        (lambda q, d, t: bt.evaluate(q, d, t, 5), InputError, "a list of names, got 5"),
        (lambda q, d, t: bt.evaluate(q, d, t, [5]), InputError, "got 5"),
        (lambda q, d, t: bt.evaluate(q, d, t, "ap@0"), InputError, "written like"),
        (lambda q, d, t: bt.evaluate(q, d, t, "app"), UnknownNameError, "no metric is called"),
        (lambda q, d, t: bt.evaluate(q, d, t, random_state=-1), InputError, "random_state"),
        (lambda q, d, t: bt.evaluate(q, d, t, random_state=0.5), InputError, "random_state"),
        (lambda q, d, t: bt.evaluate(q[:3], d, t), InputError, "6 queries and 50 items, but .* 3"),
    ],
)
def test_a_bad_call_says_what_rule_it_broke(codes, call, error, says):
    with pytest.raises(error, match=says):
        call(*codes)


def test_evaluating_changes_nothing(codes):
    profile = profile_of(([[1, 0], [1]], [1]))
    before = profile.counts.copy()
    profile.counts.flags.writeable = profile.unretrieved.flags.writeable = False
    first = str(bt.evaluate(profile, ["ap", "ndcg", "auprc", "ap:optimistic", "ap@1:retrieved"]))
    again = str(bt.evaluate(profile, ["ap", "ndcg", "auprc", "ap:optimistic", "ap@1:retrieved"]))
    assert first == again
    np.testing.assert_array_equal(profile.counts, before)
