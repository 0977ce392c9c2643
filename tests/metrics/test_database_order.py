import numpy as np
import oracles
import pytest

import bittern as bt
from bittern.errors import InputError
from bittern.profile import database_order

RULE = ":database-order"
NAMES = sorted(oracles.rank_metrics(5))


def few_bits(random_state, n_queries=9, n_database=50, n_bits=4):
    """Codes so short that most items tie."""
    rng = np.random.default_rng(random_state)
    return tuple(bt.Codes.from_bits(rng.random((n, n_bits)) < 0.5) for n in (n_queries, n_database))


def truths(random_state, n_queries=9, n_database=50):
    """Ground truth of every kind, each with its gains as a matrix."""
    rng = np.random.default_rng(random_state)
    q, d = rng.integers(0, 4, n_queries), rng.integers(0, 3, n_database)  # one class has no items
    yield bt.Relevance.from_classes(q, d), (q[:, None] == d).astype(int)
    a, b = rng.random((n_queries, 6)) < 0.4, rng.random((n_database, 6)) < 0.4
    shared = a.astype(int) @ b.T
    yield bt.Relevance.from_tags(a, b), np.minimum(shared, 1)
    yield bt.Relevance.from_tags(a, b, graded=True), shared
    gains = rng.integers(0, 3, (n_queries, n_database)) * (
        rng.random((n_queries, n_database)) < 0.2
    )
    yield bt.Relevance.from_matrix(gains), gains


def sorted_gains(queries, database, gains, excluded=None):
    """The gains of each query's ranking: a stable sort of the database as it is stored."""
    distance = (queries.to_bits()[:, None] != database.to_bits()).sum(axis=2)
    for q, row in enumerate(distance):
        order = np.argsort(row, kind="stable")
        order = order[order != (-1 if excluded is None else excluded[q])]
        yield gains[q, order].tolist()


@pytest.mark.parametrize("random_state", range(3))
@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("memory", [1, 1 << 27])  # a query at a time, or all at once
def test_every_rank_metric_is_that_of_the_stable_sort(monkeypatch, random_state, kind, memory):
    monkeypatch.setattr(database_order, "MEMORY", memory)
    queries, database = few_bits(random_state)
    relevance, gains = list(truths(random_state))[kind]
    scores = bt.evaluate(queries, database, relevance, [name + RULE for name in NAMES])
    rankings = list(sorted_gains(queries, database, gains))
    for name, metric in oracles.rank_metrics(5).items():
        wanted = [metric(ranking, []) if any(ranking) else np.nan for ranking in rankings]
        np.testing.assert_allclose(scores[name + RULE].per_query, wanted, err_msg=name)


def test_the_query_itself_is_left_out():
    queries, _ = few_bits(0, n_queries=30)
    labels = np.arange(30) % 4
    relevance = bt.Relevance.from_classes(labels, labels).excluding(np.arange(30))
    found = bt.evaluate(queries, queries, relevance, "ap" + RULE)["ap" + RULE].per_query
    gains = (labels[:, None] == labels).astype(int)
    rankings = sorted_gains(queries, queries, gains, excluded=np.arange(30))
    np.testing.assert_allclose(found, [oracles.average_precision(r) for r in rankings])


def test_it_lies_between_the_extremes_and_the_mean_over_shuffles_is_the_expectation():
    queries, database = few_bits(1, n_database=40)
    labels, wanted = np.arange(40) % 3, np.arange(9) % 3
    names = ["ap", "ap:pessimistic", "ap" + RULE, "ap:optimistic"]
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(400):
        order = rng.permutation(40)
        relevance = bt.Relevance.from_classes(wanted, labels[order])
        scores = bt.evaluate(queries, database[order], relevance, names)
        expected, worst, plain, best = (scores[name].per_query for name in names)
        assert (worst <= plain + 1e-12).all()
        assert (plain <= best + 1e-12).all()
        drawn.append(plain)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected, atol=0.03)
    assert np.std(drawn, axis=0).min() > 0.01  # the order matters


def test_pooled_metrics_and_chosen_queries():
    queries, database = few_bits(2)
    relevance, gains = next(truths(2))
    profile = bt.TieProfile.from_codes(queries, database, relevance)
    name = "micro-precision@5" + RULE
    hits = [sum(g > 0 for g in r[:5]) for r in sorted_gains(queries, database, gains)]
    assert bt.evaluate(profile, name)[name].mean == pytest.approx(sum(hits) / 45)
    some = bt.evaluate(profile.take([7, 2]), name)[name].mean
    assert some == pytest.approx((hits[7] + hits[2]) / 10)


def test_counts_alone_do_not_know_the_order(tmp_path):
    queries, database = few_bits(3)
    relevance, _ = next(truths(3))
    profile = bt.TieProfile.from_codes(queries, database, relevance)
    profile.save(tmp_path / "profile.npz")
    for lost in (bt.TieProfile.load(tmp_path / "profile.npz"), profile + profile):
        with pytest.raises(
            InputError, match=r"':database-order' needs the codes, .*from_codes\(\)"
        ):
            bt.evaluate(lost, "ap" + RULE)


def test_a_radius_has_no_order():
    with pytest.raises(InputError, match="leave out ':database-order'"):
        bt.metrics.parse("precision@r2:database-order")
