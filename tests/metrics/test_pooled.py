from itertools import product

import numpy as np
import oracles
import pytest
from cases import profile_of, rankings_with_ties
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt
from bittern.metrics.pooled import interval, intervals, mean_of


def counted(sets):
    """TP, FP, FN over all queries; a query is what it retrieved and what it did not."""
    tp = sum(gain > 0 for retrieved, _ in sets for gain in retrieved)
    fp = sum(gain == 0 for retrieved, _ in sets for gain in retrieved)
    fn = sum(gain > 0 for _, rest in sets for gain in rest)
    return tp, fp, fn


def micro(sets, beta=1.0):
    """Equations 3.8, 3.9 and 3.10."""
    tp, fp, fn = counted(sets)
    p = tp / (tp + fp) if tp + fp else np.nan
    r = tp / (tp + fn) if tp + fn else np.nan
    f = (1 + beta**2) * p * r / (beta**2 * p + r) if tp else 0.0
    return p, r, f if tp + fn else np.nan


def flat(ties):
    return [gain for tie in ties for gain in tie]


def values(cases, names):
    scores = bt.evaluate(profile_of(*cases), names)
    return [scores[name].mean for name in names]


some_cases = st.lists(rankings_with_ties(max_size=4), min_size=1, max_size=4)


@settings(deadline=None)
@given(some_cases, st.integers(0, 4), st.sampled_from([1, 0.5, 2]))
def test_within_a_radius_the_counts_are_summed_first(cases, radius, beta):
    sets = [
        (flat(ties[: radius + 1]), flat(ties[radius + 1 :]) + missing) for ties, missing in cases
    ]
    names = [f"micro-{name}@r{radius}" for name in ("precision", "recall", f"f{beta}")]
    assert values(cases, names) == pytest.approx(micro(sets, beta), nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(st.lists(rankings_with_ties(max_size=4), min_size=1, max_size=2), st.integers(1, 5))
def test_at_a_cutoff_it_is_the_mean_over_all_orders(cases, k):
    orders = list(product(*(oracles.rankings(ties) for ties, _ in cases)))
    wanted = []
    for order in orders:
        filled = [ranking + [0] * (k - len(ranking)) for ranking in order]
        missing = [missing for _, missing in cases]
        wanted.append(micro([(f[:k], f[k:] + m) for f, m in zip(filled, missing, strict=True)]))
    names = [f"micro-{name}@{k}" for name in ("precision", "recall", "f1")]
    assert values(cases, names) == pytest.approx(np.mean(wanted, axis=0))
    for rule, extreme in (("optimistic", np.max), ("pessimistic", np.min)):
        named = [f"{name}:{rule}" for name in names]
        assert values(cases, named) == pytest.approx(extreme(wanted, axis=0))


def test_worked_example():
    # Query 1 finds 2 relevant of 3, query 2 finds 1 of 1 and misses 2: TP = 3, FP = 1, FN = 2, the
    # counts of figure 3.4 (whose F of 0.78 does not follow from them: 2 * 3 / (6 + 1 + 2) = 2/3).
    cases = [([[1, 1, 0]], []), ([[1], [1]], [1])]
    names = ["micro-precision@r0", "micro-recall@r0", "micro-f1@r0"]
    assert values(cases, names) == pytest.approx([3 / 4, 3 / 5, 2 / 3])
    # The macro average is another number: precision (2/3 + 1) / 2.
    assert values(cases, ["precision@r0"]) == pytest.approx([5 / 6])


def test_a_query_with_nothing_relevant_still_counts_what_it_retrieved():
    cases = [([[1, 1]], []), ([[0, 0]], [])]
    names = ["micro-precision@r0", "micro-recall@r0", "micro-f1@r0"]
    assert values(cases, names) == pytest.approx([2 / 4, 1, 2 * 2 / (4 + 2)])


def test_nothing_retrieved_has_no_precision_and_recall_zero():
    scores = bt.evaluate(profile_of(([[], [1]], [])), ["micro-precision@r0", "micro-recall@r0"])
    assert np.isnan(scores["micro-precision@r0"].mean)
    assert scores["micro-precision@r0"].undefined == 1
    assert scores["micro-recall@r0"].mean == 0
    assert scores["micro-recall@r0"].undefined == 0


def test_nothing_relevant_leaves_recall_and_f_undefined():
    cases = [([[0, 0]], [])]
    assert values(cases, ["micro-precision@r0"]) == [0]
    assert np.isnan(values(cases, ["micro-recall@r0", "micro-f1@r0"])).all()


def test_a_micro_metric_has_one_value_and_an_interval():
    rng = np.random.default_rng(5)
    cases = [([rng.integers(0, 2, 4).tolist(), [0, 1]], []) for _ in range(30)]
    score = bt.evaluate(profile_of(*cases), "micro-f1@r0")["micro-f1@r0"]
    assert score.per_query is None
    low, high = score.interval
    assert low < score.mean < high


def macro_f(sets, beta=1.0, empty=None):
    """F of the mean precision and the mean recall; a precision of 0 / 0 is ``empty``."""
    relevant = [s for s in sets if sum(gain > 0 for side in s for gain in side)]
    if not relevant:
        return np.nan
    hits = [sum(gain > 0 for gain in retrieved) for retrieved, _ in relevant]
    precisions = [h / len(s[0]) if s[0] else empty for h, s in zip(hits, relevant, strict=True)]
    known = [p for p in precisions if p is not None]
    recalls = [
        h / (h + sum(gain > 0 for gain in rest))
        for h, (_, rest) in zip(hits, relevant, strict=True)
    ]
    if not any(hits):
        return 0.0
    p, r = sum(known) / len(known), sum(recalls) / len(recalls)
    return (1 + beta**2) * p * r / (beta**2 * p + r)


anything = st.lists(
    st.tuples(
        st.lists(st.lists(st.integers(0, 1), max_size=3), max_size=3),
        st.lists(st.just(1), max_size=2),
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(anything, st.integers(0, 3), st.sampled_from([1, 0.5, 2]))
def test_macro_f_combines_the_mean_precision_and_the_mean_recall(cases, radius, beta):
    sets = [
        (flat(ties[: radius + 1]), flat(ties[radius + 1 :]) + missing) for ties, missing in cases
    ]
    names = [f"macro-f{beta}@r{radius}", f"macro-f{beta}@r{radius}:empty-zero"]
    wanted = [macro_f(sets, beta), macro_f(sets, beta, empty=0)]
    assert values(cases, names) == pytest.approx(wanted, nan_ok=True)


@settings(deadline=None)
@given(some_cases, st.integers(1, 5))
def test_macro_f_at_a_cutoff_is_that_of_the_two_means_in_the_table(cases, k):
    p, r, f = values(cases, [f"precision@{k}", f"recall@{k}", f"macro-f1@{k}"])
    assert f == pytest.approx(2 * p * r / (p + r) if r else 0.0)
    low, high = values(cases, [f"macro-f1@{k}:pessimistic", f"macro-f1@{k}:optimistic"])
    assert low - 1e-12 <= f <= high + 1e-12


def test_the_three_averages_of_f_are_three_numbers():
    # Query 1: precision 2/3, recall 1, F 4/5.  Query 2: precision 1, recall 1/3, F 1/2.
    cases = [([[1, 1, 0]], []), ([[1], [1]], [1])]
    found = values(cases, ["f1@r0", "macro-f1@r0", "micro-f1@r0"])
    p, r = 5 / 6, 2 / 3
    assert found == pytest.approx([(4 / 5 + 1 / 2) / 2, 2 * p * r / (p + r), 2 / 3])


def test_a_query_that_retrieves_nothing_lowers_macro_recall_and_with_a_name_macro_precision():
    cases = [([[1]], []), ([[], [1]], [])]  # precision 1 and undefined, recall 1 and 0
    found = values(cases, ["macro-f1@r0", "macro-f1@r0:empty-zero"])
    assert found == pytest.approx([2 * 0.5 / 1.5, 0.5])


def test_macro_f_of_nothing():
    nothing_relevant, nothing_found = [([[0, 0]], [])], [([[], [1]], [])]
    scores = bt.evaluate(profile_of(*nothing_relevant), "macro-f1@r0")
    assert np.isnan(scores["macro-f1@r0"].mean)
    assert scores["macro-f1@r0"].undefined == 1
    assert values(nothing_found, ["macro-f1@r0"]) == [0]


def test_intervals_computed_together_are_those_computed_alone(monkeypatch):
    rng = np.random.default_rng(2)
    many = [mean_of(rng.random(n)) for n in (30, 30, 30, 12, 30)]
    many[1] = mean_of(np.full(30, np.nan))
    alone = [interval(one, random_state=5) for one in many]
    np.testing.assert_allclose(list(intervals(many, random_state=5)), alone, rtol=1e-12)
    monkeypatch.setattr("bittern.metrics.pooled.PARTS", 1)
    np.testing.assert_array_equal(list(intervals(many, random_state=5)), alone)
    assert np.isnan(alone).sum() == 2
