"""Evaluation of one setting of hash tables, against dictionaries and sets."""

from itertools import pairwise

import numpy as np
import pytest
from by_hand import EXCLUDED, N_DATABASE
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_tables import buckets_of, look_up
from slow_tables import segments as consecutive
from table_cases import GROUND_TRUTHS, crowded
from truth import gains_of

import bittern as bt
from bittern import InputError
from bittern.index import Tables


def slow_profile(queries, database, relevance, positions, probe=0):
    """Rows of (TP, FP, FN, retrieved, examined, buckets), one a query."""
    tables = [buckets_of(database.to_bits(), chosen) for chosen in positions]
    gains, rows = gains_of(relevance), []
    for q, query in enumerate(queries.to_bits()):
        left_out = -1 if relevance.excluded is None else int(relevance.excluded[q])
        found, n_read, n_buckets = look_up(query, tables, positions, probe, left_out)
        relevant = {int(i) for i in np.flatnonzero(gains[q])} - {left_out}
        n_hits = len(found & relevant)
        rows.append(
            [n_hits, len(found - relevant), len(relevant - found), len(found), n_read, n_buckets]
        )
    return rows


def rows_of(profile):
    columns = (
        profile.true_positives,
        profile.false_positives,
        profile.false_negatives,
        profile.retrieved,
        profile.examined,
        profile.buckets,
    )
    return np.stack(columns, axis=1).tolist()


@pytest.mark.parametrize("kind", GROUND_TRUTHS)
@pytest.mark.parametrize("leave_out", [False, True])
def test_it_counts_what_dictionaries_and_sets_count(kind, leave_out):
    relevance = GROUND_TRUTHS[kind]()
    relevance = relevance.excluding(EXCLUDED) if leave_out else relevance
    queries, database = crowded(20, 3)
    for n_tables, width, probe in ((1, 5, 0), (4, 5, 0), (3, 6, 1), (2, 10, 2)):
        profile = bt.table_profile(
            queries, database, relevance, n_tables=n_tables, bits_per_table=width, probe=probe
        )
        wanted = slow_profile(queries, database, relevance, consecutive(n_tables, width), probe)
        assert rows_of(profile) == wanted
        assert profile.retrieved.any()  # not vacuous


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 150),
    st.integers(1, 12),
    st.integers(1, 64),
    st.integers(0, 2),
    st.integers(0, 2**32),
)
def test_random_tables_count_the_same(n_bits, n_tables, width, probe, random_state):
    width = min(width, n_bits)
    probe = min(probe, width) if width <= 12 else 0
    queries, database = crowded(n_bits, random_state)
    relevance = GROUND_TRUTHS["matrix"]()
    profile = bt.table_profile(
        queries,
        database,
        relevance,
        n_tables=n_tables,
        bits_per_table=width,
        segments="random",
        probe=probe,
        random_state=random_state,
    )
    positions = profile.tables.bits.tolist()
    assert all(len(set(chosen)) == width for chosen in positions)
    assert rows_of(profile) == slow_profile(queries, database, relevance, positions, probe)


def test_random_tables_are_nested_in_both_directions():
    small = Tables.choose("test", 40, 3, 5, "random", random_state=7)
    large = Tables.choose("test", 40, 6, 9, "random", random_state=7)
    np.testing.assert_array_equal(large.bits[:3, :5], small.bits)
    other = Tables.choose("test", 40, 3, 5, "random", random_state=8)
    assert other != small
    assert len({tuple(chosen) for chosen in large.bits.tolist()}) == 6


def figure_3_4():
    """One query; its table has a bucket of three relevant items and one other, and misses two."""
    query = bt.Codes.from_bits([[1, 0, 1, 1]])
    together, elsewhere = [1, 0, 1, 1], [0, 1, 0, 0]
    database = bt.Codes.from_bits([together] * 4 + [elsewhere] * 4)
    relevance = bt.Relevance.from_classes(
        ["car"], ["car"] * 3 + ["dog"] + ["car"] * 2 + ["dog"] * 2
    )
    return bt.table_profile(query, database, relevance, n_tables=1, bits_per_table=4)


def test_the_counts_of_figure_3_4_are_f1_two_thirds_and_not_its_0_78():
    profile = figure_3_4()
    assert rows_of(profile)[0][:3] == [3, 1, 2]
    # P = 3 / (3 + 1), R = 3 / (3 + 2), F1 = 2 P R / (P + R) = (9 / 10) / (27 / 20) = 2 / 3.
    assert profile.micro_precision() == 3 / 4
    assert profile.micro_recall() == 3 / 5
    assert profile.micro_f_beta() == pytest.approx(2 / 3)
    # No weight between the two gives what is printed: F lies between R and P for every beta.
    values = [profile.micro_f_beta(beta) for beta in np.geomspace(1e-3, 1e3, 50)]
    assert 3 / 5 - 1e-9 <= min(values) < max(values) <= 3 / 4 + 1e-9 < 0.78


def test_metrics_are_those_of_the_counts():
    queries, database = crowded(20, 3)
    relevance = GROUND_TRUTHS["classes"]()
    profile = bt.table_profile(queries, database, relevance, n_tables=1, bits_per_table=12)
    rows = rows_of(profile)
    empty = [r[3] == 0 for r in rows]
    lost = [r[0] + r[2] == 0 for r in rows]
    assert any(empty) and any(lost) and not all(empty)
    for value, zero, recall, f2, (tp, fp, fn, *_) in zip(
        profile.precision(),
        profile.precision(empty_is_zero=True),
        profile.recall(),
        profile.f_beta(2.0),
        rows,
        strict=True,
    ):
        if tp + fn == 0:
            assert np.isnan([value, zero, recall, f2]).all()
            continue
        assert recall == tp / (tp + fn)
        assert f2 == pytest.approx(5 * tp / (5 * tp + 4 * fn + fp))
        if tp + fp == 0:
            assert np.isnan(value) and zero == 0
        else:
            assert value == zero == tp / (tp + fp)
    tp, fp, fn = np.sum(rows, axis=0)[:3]
    assert profile.micro_precision() == tp / (tp + fp)
    assert profile.micro_recall() == tp / (tp + fn)
    assert profile.micro_f_beta(0.5) == pytest.approx(1.25 * tp / (1.25 * tp + 0.25 * fn + fp))


def test_scores_report_means_and_what_is_undefined():
    queries, database = crowded(20, 3)
    relevance = GROUND_TRUTHS["classes"]()
    profile = bt.table_profile(queries, database, relevance, n_tables=1, bits_per_table=12)
    scores = profile.scores()
    undefined = profile.is_empty | (relevance.n_relevant == 0)
    assert scores["precision@r0"].undefined == undefined.sum() > 0
    assert scores["precision@r0"].mean == pytest.approx(np.nanmean(profile.precision()))
    assert scores["precision@r0:empty-zero"].undefined == (relevance.n_relevant == 0).sum()
    assert scores["micro-f1@r0"].mean == profile.micro_f_beta()


@pytest.mark.parametrize("n_bits", [1, 8, 33, 64])
def test_one_table_of_all_bits_is_radius_zero(n_bits):
    queries, database = crowded(n_bits, 0)
    database = bt.Codes.concatenate([queries, database[len(queries) :]])  # equal codes, some twice
    relevance = GROUND_TRUTHS["graded tags"]().excluding(EXCLUDED)
    profile = bt.table_profile(queries, database, relevance, n_tables=1, bits_per_table=n_bits)
    ranking = bt.TieProfile.from_codes(queries, database, relevance)
    np.testing.assert_array_equal(profile.true_positives, ranking.relevant[:, 0])
    np.testing.assert_array_equal(profile.retrieved, ranking.total[:, 0])
    names = ["precision@r0", "recall@r0", "micro-f1@r0"]
    ours, theirs = profile.scores(names), bt.evaluate(ranking, names)
    for name in names:
        assert ours[name].mean == pytest.approx(theirs[name].mean, nan_ok=True)
        assert ours[name].undefined == theirs[name].undefined
    assert profile.retrieved.any()


def test_tables_of_one_bit_retrieve_everything_but_complements():
    rng = np.random.default_rng(0)
    bits = rng.random((30, 7)) < 0.5
    bits[10:13] = ~bits[0]
    codes = bt.Codes.from_bits(bits)
    relevance = bt.Relevance.from_classes(np.zeros(30, int), np.zeros(30, int))
    profile = bt.table_profile(codes, codes, relevance, n_tables=7, bits_per_table=1)
    complements = (bits[:, None] != bits[None]).all(axis=2).sum(axis=1)
    assert complements[0] >= 3
    np.testing.assert_array_equal(profile.retrieved, 30 - complements)


def test_probing_all_of_a_key_retrieves_everything():
    queries, database = crowded(12, 1)
    relevance = GROUND_TRUTHS["classes"]()
    profile = bt.table_profile(queries, database, relevance, n_tables=2, bits_per_table=6, probe=6)
    assert (profile.retrieved == N_DATABASE).all()
    assert (profile.examined == 2 * N_DATABASE).all()
    assert profile.n_look_ups == 2 * 64


@pytest.mark.parametrize("kind", ["classes", "tags", "matrix", "thresholds"])
@pytest.mark.parametrize("probe", [0, 1])
def test_shards_add_up_and_a_bucket_in_two_shards_is_one(kind, probe):
    queries, database = crowded(16, 5)
    relevance = GROUND_TRUTHS[kind]().excluding(EXCLUDED)
    setting = {"n_tables": 3, "bits_per_table": 5, "probe": probe}
    whole = bt.table_profile(queries, database, relevance, **setting)
    cuts = [0, 1, 17, N_DATABASE]
    shards = [
        bt.table_profile(queries, database[a:b], relevance.shard(a, b), **setting)
        for a, b in pairwise(cuts)
    ]
    total = shards[0] + shards[1] + shards[2]
    assert rows_of(total) == rows_of(whole)
    assert total.n_look_ups == whole.n_look_ups
    # Not vacuous: plain sums would count shared buckets again.
    assert sum(shard.buckets.sum() for shard in shards) > whole.buckets.sum()


def test_unlike_profiles_do_not_add():
    queries, database = crowded(16, 5)
    relevance = GROUND_TRUTHS["classes"]()
    one = bt.table_profile(queries, database, relevance, n_tables=2, bits_per_table=5)
    other = bt.table_profile(queries, database, relevance, n_tables=2, bits_per_table=6)
    with pytest.raises(InputError, match="same queries and tables"):
        one + other


def test_many_queries_go_in_blocks_and_threads(monkeypatch):
    queries, database = crowded(16, 5)
    relevance = GROUND_TRUTHS["matrix"]().excluding(EXCLUDED)
    setting = {"n_tables": 3, "bits_per_table": 5}
    whole = bt.table_profile(queries, database, relevance, **setting, n_threads=1)
    monkeypatch.setattr("bittern.index.hash_tables.BLOCK", 7)
    divided = bt.table_profile(queries, database, relevance, **setting, n_threads=3)
    assert rows_of(divided) == rows_of(whole)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"n_tables": 0, "bits_per_table": 4}, "n_tables must be between 1"),
        ({"n_tables": 4, "bits_per_table": 5}, "4 segments of 5 bits do not fit into codes of 16"),
        ({"n_tables": 1, "bits_per_table": 17}, "bits_per_table must be between 1 and 16, got 17"),
        ({"n_tables": 1, "bits_per_table": 4, "probe": 5}, "probe must be between 0 and 4"),
        ({"n_tables": 1, "bits_per_table": 4, "segments": "odd"}, "one of 'consecutive', 'random'"),
        ({"n_tables": 1, "bits_per_table": 4, "random_state": -1}, "random_state must be at least"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting, says):
    queries, database = crowded(16, 5)
    with pytest.raises(InputError, match=says):
        bt.table_profile(queries, database, GROUND_TRUTHS["classes"](), **setting)


def test_keys_are_at_most_64_bits_and_probes_not_too_many():
    queries, database = crowded(100, 5)
    truth = GROUND_TRUTHS["classes"]()
    with pytest.raises(InputError, match="bits_per_table must be between 1 and 64, got 65"):
        bt.table_profile(queries, database, truth, n_tables=1, bits_per_table=65)
    with pytest.raises(InputError, match="more than 1048576 others within 6 bits"):
        bt.table_profile(queries, database, truth, n_tables=1, bits_per_table=64, probe=6)


def test_sides_that_do_not_fit_are_refused():
    queries, database = crowded(16, 5)
    setting = {"n_tables": 1, "bits_per_table": 4}
    with pytest.raises(InputError, match="codes of the same length, got 8 and 16"):
        bt.table_profile(queries.truncate(8), database, GROUND_TRUTHS["classes"](), **setting)
    with pytest.raises(InputError, match=r"is for 9 queries and 45 items, got 8 and 45"):
        bt.table_profile(queries[:8], database, GROUND_TRUTHS["classes"](), **setting)
