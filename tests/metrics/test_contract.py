"""What every metric promises; joining the table is what gets it tested."""

from dataclasses import replace
from math import fsum

import numpy as np
import pytest
from cases import large_profile, profile_of
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt
from bittern.metrics import METRICS, parse


def names_of(base):
    """A metric with every place and every option that its entry in the table allows."""
    metric = METRICS[base]
    places = [""] * (not metric.needs_place) + ["@3"] * metric.cutoff + ["@r2"] * metric.radius
    names = [base + place for place in places]
    for place in places:
        for option in metric.options:
            if option != "empty-zero" or place == "@r2":
                names.append(f"{base}{place}:{option}")
    return names


NAMES = [name for base in METRICS for name in names_of(base)] + [
    "f0.5@3",
    "micro-f2@r2",
    "macro-f2@r2",
]
RANKED = [n for n in NAMES if METRICS.get(parse(n).metric, METRICS["f1"]).ranked and "@r" not in n]
PER_QUERY = [name for name in NAMES if not name.startswith(("micro-", "macro-", "auprc"))]
# A relevant item that comes nearer may lower the mean over what was retrieved (a late hit joins),
# and the height of a step at the end of a tie (recall is reached sooner, among more others).
MONOTONE = [n for n in NAMES if "retrieved" not in n and not n.startswith(("auprc", "interp"))]


def values(profile, name):
    """What a metric says: a value for each query, or one for all."""
    return values_of(profile, [name])[name]


def values_of(profile, names):
    """What each of these metrics says, by its name."""
    return {
        name: np.array([score.mean]) if score.per_query is None else score.per_query
        for name, score in bt.evaluate(profile, names).items()
    }


@pytest.fixture(scope="module")
def codes():
    """Twelve-bit codes with many ties; each of five queries has relevant items."""
    rng = np.random.default_rng(8)
    queries, database = (rng.random((n, 12)) < 0.15 for n in (5, 60))
    gains = rng.integers(0, 3, (5, 60)) * (rng.random((5, 60)) < 0.4)
    return queries, database, gains


def of_codes(queries, database, gains):
    packed = bt.Codes.from_bits(queries), bt.Codes.from_bits(database)
    return bt.TieProfile.from_codes(*packed, bt.Relevance.from_matrix(gains))


@pytest.fixture(scope="module")
def profile(codes):
    """Of these codes; nobody changes it."""
    return of_codes(*codes)


binary_ties = st.lists(st.lists(st.integers(0, 1), max_size=4), min_size=1, max_size=5)
several = st.lists(st.tuples(binary_ties, st.lists(st.just(1), max_size=2)), min_size=1, max_size=4)


def test_the_table_is_covered():
    assert {parse(name).metric for name in NAMES} >= set(METRICS)
    assert len(RANKED) > 15
    assert "ap@3:retrieved" in RANKED
    assert "auprc" not in RANKED


# To draw a case takes longer than to compute a metric of it: each is given to all metrics.
@settings(max_examples=80, deadline=None)
@given(cases=several)
def test_it_lies_between_zero_and_one(cases):
    names = [name for name in NAMES if not name.startswith("dcg")]
    for name, found in values_of(profile_of(*cases), names).items():
        defined = found[~np.isnan(found)]
        assert (defined >= 0).all(), name
        assert (defined <= 1 + 1e-12).all(), name


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("dcg")])
def test_a_perfect_ranking_has_one(name):
    # Three relevant within radius 2 and nothing else there: every place holds just these.
    apart = [[1], [1], [1], [0, 0], [0]]
    tied = [[1, 1, 1], [], [], [0, 0, 0]]
    np.testing.assert_allclose(values(profile_of((apart, []), (tied, [])), name), 1)


@pytest.mark.parametrize("name", NAMES)
def test_an_imperfect_ranking_has_less(name):
    # Not vacuous: one that always said 1 would pass the two tests above.
    ties = [[0, 0], [1, 0], [0, 0], [1], [1]]
    perfect = values(profile_of(([[1], [1], [1], [0] * 5], [])), name)
    found = values(profile_of((ties, [])), name)
    if name.startswith("hit-rate@r"):
        np.testing.assert_array_equal(found, 1)  # it asks for no more than one
    else:
        assert found < perfect - 1e-3


@settings(max_examples=80, deadline=None)
@given(ties=binary_ties.filter(lambda ties: any(map(any, ties[1:]))), data=st.data())
def test_it_does_not_fall_when_a_relevant_item_comes_nearer(ties, data):
    source = data.draw(st.sampled_from([d for d, tie in enumerate(ties) if any(tie) and d]))
    target = data.draw(st.integers(0, source - 1))
    nearer = [list(tie) for tie in ties]
    nearer[source].remove(1)
    nearer[target].append(1)
    before, after = (values_of(profile_of((t, [])), MONOTONE) for t in (ties, nearer))
    for name in MONOTONE:
        if np.isnan(before[name]):  # nothing within the radius
            assert name.startswith(("precision@r", "micro-precision@r"))
        else:
            assert after[name] >= before[name] - 1e-12, name


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_column_changes_nothing(name, profile):
    wanted = values(profile, name)
    n_columns = profile.counts.shape[1]
    # Columns are radii here: within a radius, only one beyond it may be added.
    for place in [n_columns] if "@r" in name else [0, 4, n_columns]:
        counts = np.insert(profile.counts, place, 0, axis=1)
        np.testing.assert_allclose(values(replace(profile, counts=counts), name), wanted)
    assert (wanted > 0).any()


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_database_does_not_matter(name, codes, profile):
    queries, database, gains = codes
    order = np.random.default_rng(1).permutation(len(database))
    shuffled = of_codes(queries, database[order], gains[:, order])
    np.testing.assert_array_equal(values(shuffled, name), values(profile, name))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_bits", [1, 51, 52, 53, 120])
def test_constant_bits_do_not_matter(name, codes, profile, n_bits):
    # 12 + 52 bits fill a word; the others leave padding, or need another word.
    queries, database, gains = codes
    tail = np.arange(n_bits) % 3 == 0
    longer = [np.hstack([np.tile(tail, (len(rows), 1)), rows]) for rows in (queries, database)]
    wanted = values(profile, name)
    np.testing.assert_allclose(values(of_codes(*longer, gains), name), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_queries_does_not_matter(name, codes, profile):
    queries, database, gains = codes
    order = np.array([3, 0, 4, 2, 1])
    found = values(of_codes(queries[order], database, gains[order]), name)
    wanted = values(profile, name)
    np.testing.assert_allclose(found, wanted[order] if len(wanted) > 1 else wanted, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_two_shards_have_the_value_of_the_whole(name, codes, profile):
    queries, database, gains = codes
    parts = [of_codes(queries, database[s], gains[:, s]) for s in (np.s_[:23], np.s_[23:])]
    np.testing.assert_array_equal(values(parts[0] + parts[1], name), values(profile, name))


@pytest.mark.parametrize("name", PER_QUERY)
def test_a_query_does_not_see_the_others(name, profile):
    alone = np.concatenate([values(profile.take([q]), name) for q in range(profile.n_queries)])
    np.testing.assert_allclose(alone, values(profile, name), rtol=1e-12)


@settings(max_examples=80, deadline=None)
@given(cases=several)
def test_the_expectation_lies_between_the_worst_and_the_best_order(cases):
    rules = ":pessimistic", "", ":optimistic"
    found = values_of(profile_of(*cases), [name + rule for name in RANKED for rule in rules])
    for name in RANKED:
        worst, mean, best = (found[name + rule] for rule in rules)
        defined = ~np.isnan(mean)
        np.testing.assert_array_equal(np.isnan(worst), ~defined, name)
        assert (worst <= mean + 1e-12)[defined].all(), name
        assert (mean <= best + 1e-12)[defined].all(), name


@pytest.mark.parametrize("name", RANKED)
def test_ties_that_matter_make_the_bounds_differ(name):
    profile = profile_of(([[1, 0, 0, 1], [1, 0]], []))
    (worst,), (mean,), (best,) = (
        values(profile, name + rule) for rule in (":pessimistic", "", ":optimistic")
    )
    if name == "hit-rate@3":
        assert worst == mean == best == 1  # three ranks cannot miss two of four
    else:
        assert worst < mean < best


@pytest.mark.parametrize("name", PER_QUERY)
def test_a_query_with_nothing_relevant_is_undefined_and_counted(name):
    profile = profile_of(([[1], [0]], []), ([[0], [0]], []), ([[0, 0]], []), ([[1, 1]], []))
    score = bt.evaluate(profile, name)[name]
    np.testing.assert_array_equal(np.isnan(score.per_query), [False, True, True, False])
    assert score.undefined == 2
    assert score.mean == pytest.approx((score.per_query[0] + score.per_query[3]) / 2)


@pytest.mark.parametrize("name", NAMES)
def test_real_distances_give_what_whole_ones_give(name, codes, profile):
    queries, database, gains = codes
    distances = (queries[:, None] != database[None]).sum(axis=-1)
    truth = bt.Relevance.from_matrix(gains)
    real = bt.TieProfile.from_distances(distances.astype(float), truth)
    np.testing.assert_allclose(values(real, name), values(profile, name), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if "@r" not in n and "auprc" not in n])
def test_a_compact_profile_gives_what_the_whole_one_gives(name, codes):
    _, _, gains = codes
    distances = np.random.default_rng(2).integers(0, 20, gains.shape) / 4
    truth = bt.Relevance.from_matrix(gains)
    whole, compact = (bt.TieProfile.from_distances(distances, truth, compact=c) for c in (0, 1))
    assert compact.counts.shape[1] < whole.counts.shape[1]
    np.testing.assert_allclose(values(compact, name), values(whole, name), rtol=1e-12)


def test_a_constant_code_has_the_closed_form_of_one_tie():
    # AP = (1/n) (H_n + rho (n - H_n)), rho = (r - 1) / (n - 1); precision is r / n anywhere.
    n, r = 60, 20
    same = np.zeros((n + 1, 16), bool)
    truth = bt.Relevance.from_classes([0], np.arange(n) % 3)
    codes = bt.Codes.from_bits(same)
    flat = ["precision@7", "r-precision", "auprc", "auprc:trapezoid", "interpolated-ap"]
    scores = bt.evaluate(codes[:1], codes[1:], truth, ["ap", "recall@7", *flat])
    h, rho = fsum(1 / t for t in range(1, n + 1)), (r - 1) / (n - 1)
    assert scores["ap"].mean == pytest.approx((h + rho * (n - h)) / n)
    assert scores["recall@7"].mean == pytest.approx(7 / n)
    assert [scores[name].mean for name in flat] == pytest.approx([r / n] * 5)


@pytest.mark.parametrize("name", NAMES)
def test_no_queries_have_no_value(name):
    score = bt.evaluate(large_profile([(3, 1)]).take(slice(0, 0)), name)[name]
    assert np.isnan(score.mean)
    assert np.isnan(score.interval).all()
