import dataclasses

import numpy as np
import pytest
import scipy.stats
from made_records import drawn, protocol_of, record_of, records_of, three_methods, value_of

from bittern.analysis import (
    areas_against_means,
    best_by_length,
    compare_methods,
    costs,
    leaders,
    per_class,
    rank_agreement,
    summarise,
)
from bittern.analysis.areas import kendall_tau
from bittern.errors import InputError, UnknownNameError
from bittern.experiments import Records, Value
from bittern.profile import TieProfile
from bittern.report import in_words

NAN = np.nan
VALUES = three_methods()
RECORDS = records_of(VALUES)


def summary_of(records, method, n_bits, metric="ap"):
    (found,) = [s for s in summarise(records, metric) if (s.method, s.n_bits) == (method, n_bits)]
    return found


def with_values(records, values):
    """The records, each with other values, as the function of a record gives them."""
    found = [dataclasses.replace(record, values=values(record)) for record in records]
    return dataclasses.replace(records, records=tuple(found))


# Summaries


@pytest.mark.parametrize("key", VALUES, ids=str)
def test_a_summary_is_what_scipy_says_of_the_means_of_runs(key):
    means = [values.mean() for values in VALUES[key]]
    summary = summary_of(RECORDS, *key)
    assert summary.mean == pytest.approx(np.mean(means))
    assert summary.deviation == pytest.approx(scipy.stats.tstd(means))
    student = scipy.stats.t.interval(0.95, 5, loc=np.mean(means), scale=scipy.stats.sem(means))
    assert summary.interval == pytest.approx(student)
    assert (summary.n_runs, summary.n_queries, summary.undefined) == (6, 240, 0)


def test_two_runs_by_hand():
    # Means 0.4 and 0.6: deviation sqrt(0.02), and t of one degree of freedom is 12.7062, so the
    # interval is 0.5 ± 12.7062 * sqrt(0.02 / 2).
    records = records_of({("a", 8): [[0.3, 0.5], [0.6, 0.6, NAN]]}, spread=0.1)
    summary = summary_of(records, "a", 8)
    assert summary.mean == pytest.approx(0.5)
    assert summary.deviation == pytest.approx(0.02**0.5)
    assert summary.interval == pytest.approx((0.5 - 1.27062, 0.5 + 1.27062), abs=1e-5)
    assert summary.spread == pytest.approx((0.4, 0.6))
    assert (summary.undefined, summary.n_queries) == (1, 5)


def test_summaries_are_in_the_order_of_the_protocol():
    keys = [("b", 16), ("float", None), ("b", 8), ("a", 8)]
    records = records_of({key: [[0.5]] for key in keys}, protocol=protocol_of(["b", "float", "a"]))
    found = [(s.method, s.n_bits) for s in summarise(records, "ap")]
    assert found == [("b", 8), ("b", 16), ("float", None), ("a", 8)]


def test_one_run_has_no_deviation_and_an_interval_over_queries():
    values = drawn(1, 60, 0.5, 7)
    summary = summary_of(records_of({("a", 8): values}), "a", 8)
    assert np.isnan(summary.deviation)
    oracle = scipy.stats.bootstrap(
        (values[0],), np.mean, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    assert summary.interval == pytest.approx((oracle.low, oracle.high), abs=0.004)


def test_one_run_with_undefined_queries_has_the_interval_of_the_others():
    values = drawn(1, 60, 0.5, 7)[0]
    whole = summary_of(records_of({("a", 8): [values]}), "a", 8).interval
    holed = summary_of(records_of({("a", 8): [np.concatenate([values, [NAN] * 4])]}), "a", 8)
    assert holed.undefined == 4
    assert holed.interval == pytest.approx(whole, abs=0.01)


def test_one_run_of_an_area_has_its_interval_from_the_profile_or_none():
    for profile, has_one in ((BIG, True), (None, False)):
        values = {"auprc": Value(mean=0.4625)}
        record = record_of("a", 8, 0, values, profile=profile)
        protocol = protocol_of(["a"], metrics=["auprc"])
        summary = summary_of(Records(protocol, (record,)), "a", 8, "auprc")
        assert np.isnan(summary.interval).any() != has_one


def test_identical_runs_have_no_deviation():
    summary = summary_of(records_of({("a", 8): [[0.1, 0.2]] * 3}), "a", 8)
    assert summary.deviation == pytest.approx(0, abs=1e-15)
    # Copies of a run tell nothing of other runs: the interval is that of one, over its queries.
    one = summary_of(records_of({("a", 8): [[0.1, 0.2]]}), "a", 8)
    assert summary.interval == one.interval != (0.15, 0.15)


def test_one_query_has_no_interval():
    summary = summary_of(records_of({("a", 8): [[0.1]]}), "a", 8)
    assert np.isnan(summary.interval).all()


def test_a_metric_with_one_value_counts_runs_not_queries():
    protocol = protocol_of(["a"], runs=3, n_bits=[8], metrics=["ap", "auprc"])
    found = [
        record_of("a", 8, run, {"ap": value_of([0.5, 0.6]), "auprc": Value(mean=mean, undefined=u)})
        for run, (mean, u) in enumerate([(0.5, 0), (NAN, 1), (0.4, 0)])
    ]
    (summary,) = summarise(Records(protocol, tuple(found)), "auprc")
    assert (summary.undefined, summary.n_queries) == (1, 3)


def test_copies_of_a_run_prove_nothing():
    """A split that does not change, methods without chance: ten runs are one."""
    values = {"a": drawn(1, 20, 0.5, 0)[0], "b": drawn(1, 20, 0.55, 1)[0]}

    def verdict(n_runs):
        records = records_of({(name, 8): [one] * n_runs for name, one in values.items()})
        same = [dataclasses.replace(r, query_positions=tuple(range(20))) for r in records]
        return next(
            iter(compare_methods(dataclasses.replace(records, records=tuple(same)), "ap", 8))
        )

    one, ten = verdict(1), verdict(10)
    assert (ten.n_runs, ten.n_queries) == (1, 20)
    assert ten.p_values["t-test"] == pytest.approx(one.p_values["t-test"])
    assert np.isnan(ten.p_values["wilcoxon"])


def test_a_query_that_several_runs_ask_counts_once_with_its_mean():
    values = {("a", 8): drawn(3, 10, 0.4, 0), ("b", 8): drawn(3, 10, 0.6, 1)}
    values["a", 8][1][4] = NAN
    records = records_of(values)
    same = [dataclasses.replace(r, query_positions=tuple(range(10))) for r in records]
    (found,) = compare_methods(dataclasses.replace(records, records=tuple(same)), "ap", 8)
    pairs = [np.array(values[name, 8]) for name in ("a", "b")]
    both = ~np.isnan(pairs[0])
    a, b = (np.nanmean(np.where(both, side, NAN), axis=0) for side in pairs)
    assert found.n_queries == 10 and found.n_runs == 3
    assert found.p_values["t-test"] == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)


def test_where_all_queries_are_undefined_everything_is_nan():
    records = records_of({("a", 8): [[NAN, NAN]] * 2, ("b", 8): [[NAN, NAN]] * 2}, spread=0.1)
    summary = summary_of(records, "a", 8)
    assert np.isnan([summary.mean, summary.deviation, *summary.interval, *summary.spread]).all()
    assert (summary.undefined, summary.n_queries) == (4, 4)
    (verdict,) = compare_methods(records, "ap", 8)
    assert np.isnan([verdict.difference, *verdict.p_values.values()]).all()
    assert not any(verdict.is_significant.values())
    assert "cannot be compared" in verdict.sentence
    assert best_by_length(records, "ap") == {8: ()}
    assert leaders(records, "ap") == ()
    assert np.isnan(costs(records)[0].mean)


def test_a_run_without_a_value_is_left_out_of_the_mean():
    records = records_of({("a", 8): [[0.2], [NAN], [0.4]]})
    summary = summary_of(records, "a", 8)
    assert summary.mean == pytest.approx(0.3)
    assert (summary.n_runs, summary.undefined) == (3, 1)


def test_missing_cells_make_unequal_numbers_of_runs():
    records = records_of({("a", 8): [[0.2], None, [0.4]], ("b", 8): [[0.1], [0.2], [0.3]]})
    assert [s.n_runs for s in summarise(records, "ap")] == [2, 3]


def test_a_metric_that_one_method_lacks_is_nan_there():
    protocol = protocol_of(["float", "a"], runs=2, n_bits=[8], metrics=["ap", "precision@r2"])
    both = {"ap": value_of([0.5, 0.6]), "precision@r2": value_of([0.1, NAN])}
    found = [record_of("a", 8, run, both) for run in (0, 1)]
    found += [record_of("float", None, run, {"ap": value_of([0.7, 0.8])}) for run in (0, 1)]
    records = Records(protocol, tuple(found))
    lacking, having = summarise(records, "precision@r2")
    assert np.isnan(lacking.mean) and lacking.n_runs == 2 and lacking.undefined == 0
    assert having.mean == pytest.approx(0.1) and having.undefined == 2
    (verdict,) = compare_methods(records, "precision@r2", 8)
    assert np.isnan(verdict.difference) and verdict.baseline == "a"


def test_an_unknown_metric_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'ap'"):
        summarise(RECORDS, "app")
    for function in (compare_methods, per_class):
        with pytest.raises(UnknownNameError):
            function(RECORDS, "nothing", 8)


# The best


def test_the_best_is_the_highest_mean_of_a_length_among_codes():
    assert best_by_length(RECORDS, "ap") == {8: ("b",), 16: ("b",)}
    first, second = leaders(RECORDS, "ap")
    means = {key: np.mean(values) for key, values in VALUES.items()}
    assert (first.methods, first.followers) == (("b",), ("c",))
    assert first.margin == pytest.approx(means["b", 8] - means["c", 8])
    assert second.ceiling == "float"
    assert second.from_ceiling == pytest.approx(means["b", 16] - means["float", None])


def test_methods_that_share_the_best_mean_are_all_named():
    # 0.1 + 0.2 and 0.3 differ in the last digit only.
    values = {("a", 8): [[0.1, 0.2, 0.3]], ("b", 8): [[0.3, 0.2, 0.1]], ("c", 8): [[0.1]]}
    assert best_by_length(records_of(values), "ap") == {8: ("a", "b")}
    (leader,) = leaders(records_of(values), "ap")
    assert leader.followers == ("c",)
    assert leader.margin == pytest.approx(0.1)


def test_what_has_seen_the_judgements_is_a_bound_and_never_the_best():
    values = {("float", None): drawn(3, 9, 0.5, 0), ("oracle", None): drawn(3, 9, 0.9, 1)}
    values["other", None] = drawn(3, 9, 0.3, 2)
    protocol = protocol_of([name for name, _ in values], runs=3, n_bits=[8])
    records = records_of(values, protocol=protocol)
    told = [
        dataclasses.replace(r, parameters={"looks_at": "judgements"}) if r.method == "oracle" else r
        for r in records
    ]
    records = dataclasses.replace(records, records=tuple(told))
    assert records.bounds == ("oracle",)
    assert best_by_length(records, "ap") == {None: ("float",)}
    (leader,) = leaders(records, "ap")
    assert (leader.methods, leader.followers) == (("float",), ("other",))
    verdicts = compare_methods(records, "ap")
    assert verdicts.baseline == "float" and verdicts.of("oracle") is not None
    said = in_words(records)
    assert "float is best" in said and "is an upper bound, chosen by the judgements" in said


def test_without_codes_the_best_has_no_length():
    records = records_of({("float", None): [[0.5], [0.6]]})
    assert best_by_length(records, "ap") == {None: ("float",)}
    (leader,) = leaders(records, "ap")
    assert leader.ceiling is None and np.isnan(leader.margin)
    assert compare_methods(records, "ap").baseline == "float"


# Verdicts


def by_run_and_query(method, n_bits):
    values = VALUES.get((method, n_bits)) or VALUES[method, None]
    return np.mean(values, axis=1), np.concatenate(values)


def stepped_down(p_values):
    """Holm's correction from its definition: each p by the number not yet rejected."""
    adjusted, most = {}, 0.0
    for i, name in enumerate(sorted(p_values, key=p_values.get)):
        most = max(most, min(1.0, (len(p_values) - i) * p_values[name]))
        adjusted[name] = most
    return adjusted


@pytest.mark.parametrize("n_bits", [8, 16])
def test_p_values_are_those_of_scipy_corrected_by_holm(n_bits):
    verdicts = compare_methods(RECORDS, "ap", n_bits)
    assert verdicts.baseline == "b"
    assert [one.method for one in verdicts] == ["float", "a", "c"]
    runs, queries = by_run_and_query("b", n_bits)
    over_runs, over_queries = {}, {}
    for method in ("float", "a", "c"):
        other_runs, other_queries = by_run_and_query(method, n_bits)
        over_runs[method] = scipy.stats.wilcoxon(other_runs, runs).pvalue
        over_queries[method] = scipy.stats.ttest_rel(other_queries, queries).pvalue
        assert verdicts.of(method).difference == pytest.approx(np.mean(other_runs - runs))
    for test, p_values in (("wilcoxon", over_runs), ("t-test", over_queries)):
        found = {one.method: one.p_values[test] for one in verdicts}
        assert found == pytest.approx(stepped_down(p_values))
        for one in verdicts:
            assert one.is_significant[test] == (one.p_values[test] <= 0.05)


def test_the_randomisation_test_is_that_of_scipy():
    records = records_of({("a", 8): drawn(2, 50, 0.5, 1), ("b", 8): drawn(2, 50, 0.475, 2)})
    (verdict,) = compare_methods(records, "ap", 8)
    one, other = (
        np.concatenate([records.of(m, 8)[r].per_query("ap") for r in (0, 1)]) for m in "ab"
    )
    oracle = scipy.stats.permutation_test(
        (one, other),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=1999,
        rng=np.random.default_rng(1),
    )
    assert 0.005 < oracle.pvalue < 0.9  # not vacuous
    assert verdict.p_values["randomisation"] == pytest.approx(oracle.pvalue, abs=0.03)


def test_trap_26_randomisation_is_never_zero_is_repeatable_and_families_are_corrected():
    # Every query of every other method is far worse, as clear as it gets.
    values = {
        ("best", 8): drawn(2, 60, 0.9, 0),
        ("a", 8): drawn(2, 60, 0.2, 1),
        ("b", 8): drawn(2, 60, 0.2, 2),
    }
    first, again = (compare_methods(records_of(values), "ap", 8) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert one.p_values == other.p_values
        # The least of 10,000 draws is 1 / 10,001; two methods are compared.
        assert one.p_values["randomisation"] == pytest.approx(2 / 10_001)
    alone = compare_methods(records_of({k: v for k, v in values.items() if k[0] != "b"}), "ap", 8)
    assert alone.of("a").p_values["randomisation"] == pytest.approx(1 / 10_001)
    assert "Holm-corrected over 2 comparisons" in first.note


def test_trap_5_a_difference_can_be_significant_and_smaller_than_the_tie_spread():
    # CIFAR-10 at 12 bits as MIHash's logs have it: 0.687, between 0.565 and 0.812.
    def about(mean):
        return [mean + 0.001 * np.arange(-10, 11)] * 3

    values = {("log", 12): about(0.687), ("next", 12): about(0.75), ("far", 12): about(0.40)}
    records = records_of(values, spread={"log": 0.12, "next": 0.01, "far": 0.01})
    verdicts = compare_methods(records, "ap", 12)
    assert verdicts.baseline == "next"
    log, far = verdicts.of("log"), verdicts.of("far")
    assert log.is_significant["t-test"] and log.is_different
    assert log.within_tie_spread
    assert "another order of tied items could reverse it" in log.sentence
    assert not far.within_tie_spread
    assert "tied" not in far.sentence


@pytest.mark.parametrize(
    ("difference", "spreads", "is_within"),
    [
        (0.05, {"a": 0.1, "b": 0.0}, True),
        (0.05, {"a": 0.0, "b": 0.1}, True),
        (0.05, {"a": 0.04, "b": 0.04}, False),  # only both together could
        (0.05, {"a": None, "b": None}, False),
        (0.0, {"a": 0.0, "b": 0.0}, False),
        (0.0, {"a": 0.01, "b": 0.0}, True),
    ],
)
def test_within_the_tie_spread_is_the_mean_of_one_inside_the_spread_of_the_other(
    difference, spreads, is_within
):
    values = {("a", 8): [[0.4, 0.6]] * 2, ("b", 8): [[0.4 + difference, 0.6 + difference]] * 2}
    (verdict,) = compare_methods(records_of(values, spread=spreads), "ap", 8)
    assert verdict.within_tie_spread is is_within


def test_too_few_runs_for_wilcoxon_are_told():
    values = {("a", 8): drawn(3, 30, 0.3, 1), ("b", 8): drawn(3, 30, 0.8, 2)}
    verdicts = compare_methods(records_of(values), "ap", 8)
    (verdict,) = verdicts
    assert verdict.p_values["wilcoxon"] == 0.25  # 2^(1 - 3)
    assert verdict.unable == ("wilcoxon",)
    assert verdict.is_different  # by those that could tell
    assert verdicts.cautions == ("3 runs are too few for Wilcoxon's test: its smallest p is 0.25.",)
    assert "too few pairs for Wilcoxon over runs" in verdict.sentence


@pytest.mark.parametrize(
    ("n_runs", "n_others", "can"), [(5, 1, False), (6, 1, True), (6, 2, False), (7, 2, True)]
)
def test_wilcoxon_reaches_alpha_if_its_smallest_corrected_p_does(n_runs, n_others, can):
    # 2^-4 = 0.0625 is too much and 2^-5 = 0.03125 is not, unless twice that is asked.
    values = {("best", 8): drawn(n_runs, 20, 0.9, 0)}
    values |= {(f"m{i}", 8): drawn(n_runs, 20, 0.1, i + 1) for i in range(n_others)}
    for verdict in compare_methods(records_of(values), "ap", 8):
        assert ("wilcoxon" in verdict.unable) is not can
        assert verdict.is_significant["wilcoxon"] is can


def test_with_one_run_only_queries_are_tested():
    values = {("a", 8): drawn(1, 30, 0.3, 1), ("b", 8): drawn(1, 30, 0.8, 2)}
    verdicts = compare_methods(records_of(values), "ap", 8)
    assert np.isnan(verdicts.of("a").p_values["wilcoxon"])
    assert verdicts.of("a").is_different
    assert "at least two runs" in verdicts.note


def test_one_method_has_no_verdicts():
    verdicts = compare_methods(records_of({("a", 8): drawn(3, 5, 0.5, 0)}), "ap", 8)
    assert len(verdicts) == 0
    assert verdicts.baseline == "a"
    assert verdicts.note == "a has nothing to be compared with."


def test_equal_values_are_no_difference():
    same = drawn(6, 10, 0.5, 0)
    verdicts = compare_methods(records_of({("a", 8): same, ("b", 8): same}), "ap", 8)
    (verdict,) = verdicts
    assert verdict.difference == 0
    assert set(verdict.p_values.values()) == {1.0}
    assert "b is level with a" in verdict.sentence
    assert not verdict.is_different


def test_runs_are_paired_and_those_of_one_method_alone_left_out():
    # b lacks run 1, where a is far off; in the others a is 0.1 better.
    values = {
        ("a", 8): [[0.5, 0.7], [0.0, 0.0], [0.6, 0.8]],
        ("b", 8): [[0.4, 0.6], None, [0.5, 0.7]],
    }
    (verdict,) = compare_methods(records_of(values), "ap", 8)
    assert (verdict.method, verdict.baseline) == ("a", "b")
    assert verdict.difference == pytest.approx(0.1)
    assert (verdict.n_runs, verdict.n_queries) == (2, 4)


def test_queries_are_paired_by_position_and_undefined_ones_left_out():
    values = np.array([0.1, 0.4, 0.35, 0.8, NAN])
    lower = values - np.array([0.05, 0.02, 0.03, 0.01, 0.0])
    order = np.array([3, 1, 4, 0, 2])
    first = record_of("a", 8, 0, {"ap": value_of(values)})
    positions = np.array(first.query_positions)[order]
    second = record_of(
        "b", 8, 0, {"ap": value_of(lower[order])}, query_positions=tuple(positions.tolist())
    )
    records = Records(protocol_of(["a", "b"], n_bits=[8], runs=1), (first, second))
    (verdict,) = compare_methods(records, "ap", 8)
    oracle = scipy.stats.ttest_rel(lower[:4], values[:4]).pvalue
    assert verdict.p_values["t-test"] == pytest.approx(oracle)
    assert (verdict.n_queries, verdict.left_out) == (4, 1)


def test_an_area_is_tested_over_runs_alone():
    areas = with_values(
        RECORDS, lambda r: {"ap": dataclasses.replace(r.values["ap"], per_query=None)}
    )
    for verdict in compare_methods(areas, "ap", 16):
        assert not np.isnan(verdict.p_values["wilcoxon"])
        assert np.isnan([verdict.p_values["t-test"], verdict.p_values["randomisation"]]).all()
        assert not verdict.is_different  # six runs cannot tell three methods apart


def test_the_protocol_names_baseline_tests_and_level():
    rules = {"baseline": "a", "tests": ["t-test"], "alpha": 0.01}
    protocol = protocol_of(["float", "a", "b", "c"], runs=6, significance=rules)
    verdicts = compare_methods(records_of(VALUES, protocol=protocol), "ap", 8)
    assert (verdicts.baseline, verdicts.alpha) == ("a", 0.01)
    assert "a, the protocol's baseline" in verdicts.note
    assert all(list(one.p_values) == ["t-test"] for one in verdicts)
    assert verdicts.of("b").difference > 0


def test_a_baseline_without_records_gives_way_to_the_best_and_it_is_told():
    protocol = protocol_of(["a", "b", "c"], runs=6, significance={"baseline": "c"})
    values = {key: VALUES[key] for key in (("a", 8), ("b", 8))}
    verdicts = compare_methods(records_of(values, protocol=protocol), "ap", 8)
    assert verdicts.baseline == "b"
    assert "baseline, c, has no records at this length" in verdicts.note


def test_a_length_without_records_is_refused():
    with pytest.raises(InputError, match="no records at 99 bits; there are 8, 16"):
        compare_methods(records_of({k: v for k, v in VALUES.items() if k[1]}), "ap", 99)


# Areas against means

# Two queries and eight items; the first query has four relevant items and the second has one.
# One method finds those of the first at distance 0 and the other that of the second.  Rows are
# distances; columns irrelevant and relevant items.
QUERIES_OF_BIG = [[[0, 4], [4, 0]], [[4, 0], [3, 1]]]
QUERIES_OF_SMALL = [[[4, 0], [0, 4]], [[0, 1], [7, 0]]]


def made_profile(counts):
    return TieProfile(
        counts=np.array(counts, np.uint32),
        gains=np.array([0, 1]),
        unretrieved=np.zeros((len(counts), 2), np.int64),
    )


BIG, SMALL = made_profile(QUERIES_OF_BIG), made_profile(QUERIES_OF_SMALL)


def skewed():
    """Records that list neither AUPRC nor AP, of two methods whose order differs by measure."""
    protocol = protocol_of(["big", "small"], runs=1, n_bits=[8], metrics=["rr"])
    more = {"n_relevant": (4, 1), "query_positions": (0, 1)}
    found = [
        record_of(name, 8, 0, {"rr": value_of([0.5, 0.5])}, profile=profile, **more)
        for name, profile in (("big", BIG), ("small", SMALL))
    ]
    return Records(protocol, tuple(found))


def test_areas_favour_queries_with_many_relevant_items_and_means_do_not():
    found = areas_against_means(skewed())
    big, small = found.rows
    # Within radius 0 big finds 4 of 5 among 8 items, within radius 1 all among 16.
    assert big.auprc == pytest.approx(4 / 8 * 4 / 5 + 5 / 16 * 1 / 5)
    assert small.auprc == pytest.approx(1 / 5 * 1 / 5 + 5 / 16 * 4 / 5)
    assert big.ap == pytest.approx((1 + (1 / 5 + 1 / 6 + 1 / 7 + 1 / 8) / 4) / 2)
    assert small.ap == pytest.approx(((1 / 5 + 2 / 6 + 3 / 7 + 4 / 8) / 4 + 1) / 2)
    assert found.tau == {8: -1.0}
    assert "rank the methods differently (8 bits: τ = -1.00)" in found.sentence
    assert "1 to 4 relevant items" in found.sentence


def test_skew_is_that_of_scipy_with_each_run_counted_once():
    rng = np.random.default_rng(0)
    counts = [rng.geometric(0.1, 30) - 1 for _ in range(2)]
    found = [
        record_of(m, 8, run, {"ap": value_of(np.full(30, 0.5))}, n_relevant=tuple(counts[run]))
        for run in (0, 1)
        for m in "ab"
    ]
    skew = areas_against_means(Records(protocol_of("ab", n_bits=[8]), tuple(found))).skew
    pooled = np.concatenate(counts).astype(float)
    assert skew.n_queries == 60
    assert skew.variation == pytest.approx(scipy.stats.variation(pooled))
    assert skew.skewness == pytest.approx(scipy.stats.skew(pooled))
    assert (skew.least, skew.most) == (pooled.min(), pooled.max())
    assert skew.median == np.median(pooled)
    assert skew.without == np.mean(pooled == 0) > 0


def test_the_skew_of_equal_numbers_has_no_variation():
    skew = areas_against_means(RECORDS).skew
    assert skew.variation == 0
    assert np.isnan(skew.skewness)


def test_without_relevant_items_there_is_no_variation():
    record = record_of("a", 8, 0, {"ap": value_of([NAN, NAN])}, n_relevant=(0, 0))
    skew = areas_against_means(Records(protocol_of(["a"]), (record,))).skew
    assert np.isnan(skew.variation) and skew.without == 1


def test_a_ranking_that_lacks_an_area_takes_no_part_in_the_order():
    found = areas_against_means(RECORDS)  # neither profiles nor areas
    assert all(np.isnan(row.auprc) and not np.isnan(row.ap) for row in found.rows)
    assert all(np.isnan(tau) for tau in found.tau.values())
    assert "cannot be compared" in found.sentence


@pytest.mark.parametrize("random_state", range(5))
def test_kendalls_tau_is_that_of_scipy_with_ties(random_state):
    rng = np.random.default_rng(random_state)
    a, b = rng.integers(0, 4, (2, 9)).astype(float)
    assert kendall_tau(a, b) == pytest.approx(scipy.stats.kendalltau(a, b).statistic)


def test_kendalls_tau_by_hand():
    # Of three pairs two agree and one does not: (2 - 1) / 3.
    assert kendall_tau([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    assert np.isnan(kendall_tau([1, 1], [1, 2]))
    assert np.isnan(kendall_tau([1], [1]))
    assert kendall_tau([1, 2, NAN], [1, 2, 3]) == 1


# Classes and costs


def test_classes_by_hand():
    values = {
        ("a", 8): [[0.1, 0.3, 0.5], [0.2, NAN, 0.6]],
        ("float", None): [[1.0, 0.8, 0.6], None],
    }
    found = per_class(records_of(values, query_labels=(7, 7, 2)), "ap", 8)
    assert found.classes == (2, 7)
    assert found.n_queries == (2, 4)
    assert found.of("a") == pytest.approx((0.55, 0.2))  # (0.5 + 0.6) / 2, (0.1 + 0.3 + 0.2) / 3
    assert found.of("float") == pytest.approx((0.6, 0.9))


def test_a_class_without_defined_values_is_nan():
    found = per_class(records_of({("a", 8): [[0.1, NAN]]}, query_labels=(0, 1)), "ap", 8)
    assert found.of("a")[0] == 0.1
    assert np.isnan(found.of("a")[1])


def test_without_labels_there_are_no_classes():
    found = per_class(RECORDS, "ap", 8)
    assert (found.classes, found.means) == ((), {})


def test_costs_are_means_of_seconds_and_the_largest_memory():
    values = {("float", None): [[0.9], [0.7]], ("a", 8): [[0.5], [0.6]]}
    records = records_of(values)
    found = [
        dataclasses.replace(
            r, seconds={"evaluate": 3.0} if r.method == "float" else {"fit": 1.0 + r.run, "tune": 0}
        )
        for r in records
    ]
    exact, hashed = costs(dataclasses.replace(records, records=tuple(found)))
    assert exact.seconds["evaluate"] == 3
    assert np.isnan([exact.seconds[s] for s in ("tune", "fit", "encode")]).all()
    assert hashed.seconds["fit"] == 1.5
    assert hashed.peak_memory == 1001
    assert (exact.stored_bits, hashed.stored_bits) == (None, None)  # they have no profiles
    assert (exact.mean, hashed.mean) == pytest.approx((0.8, 0.55))


def test_no_records_have_no_statistics():
    nothing = Records(protocol_of(["a"]), ())
    assert summarise(nothing, "ap") == ()
    assert costs(nothing) == ()
    assert best_by_length(nothing, "ap") == {None: ()}
    assert areas_against_means(nothing).skew.n_queries == 0


# Rankings


def ranked(first, second, n_runs=2):
    """Two experiments with a mean per method and run."""
    return [
        records_of({(m, 8): [[v + run / 1000] for run in range(n_runs)] for m, v in of.items()})
        for of in (first, second)
    ]


def test_rankings_agree_by_kendalls_tau():
    one, two = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}, {"a": 0.5, "b": 0.6, "c": 0.7, "d": 0.9}
    (found,) = rank_agreement(*ranked(one, two))
    expected = scipy.stats.kendalltau(list(one.values()), list(two.values())).statistic
    assert found.tau == pytest.approx(expected) == pytest.approx(4 / 6)
    assert found.tau_of_runs == (found.tau, found.tau)
    assert found.swapped == (("b", "c"),)
    assert (found.n_bits, found.methods) == (8, ("a", "b", "c", "d"))


def test_rankings_of_the_shared_methods_are_compared():
    (found,) = rank_agreement(*ranked({"a": 0.1, "b": 0.3, "x": 0.9}, {"b": 0.2, "a": 0.4}))
    assert found.methods == ("a", "b") and found.tau == -1 and found.swapped == (("b", "a"),)
    with pytest.raises(InputError, match="fewer than two methods"):
        rank_agreement(*ranked({"a": 0.1, "b": 0.2}, {"a": 0.1, "c": 0.2}))


def test_runs_that_one_experiment_lacks_have_no_tau():
    (one, _), (_, two) = (ranked({"a": 0.1, "b": 0.3}, {"a": 0.2, "b": 0.4}, n) for n in (3, 2))
    (found,) = rank_agreement(one, two)
    assert found.tau == 1 and found.tau_of_runs == (1.0, 1.0)


def even():
    """Two methods; each query has one relevant item, near for one query and far for the other."""
    near, far = [[0, 1], [3, 0]], [[3, 0], [0, 1]]
    protocol = protocol_of(["uneven", "good"], runs=1, n_bits=[8], metrics=["rr"])
    more = {"n_relevant": (1, 1), "query_positions": (0, 1)}
    profiles = {"uneven": made_profile([near, far]), "good": made_profile([near, near])}
    found = [
        record_of(name, 8, 0, {"rr": value_of([0.5, 0.5])}, profile=profile, **more)
        for name, profile in profiles.items()
    ]
    return Records(protocol, tuple(found))


def test_areas_and_means_differ_without_skew_and_the_sentence_says_so():
    found = areas_against_means(even())
    uneven, good = found.rows
    # Within radius 0 one of two relevant items among four, within radius 1 both among eight.
    assert uneven.auprc == pytest.approx(1 / 4) and uneven.ap == pytest.approx((1 + 1 / 4) / 2)
    assert good.gap == 0 and found.widest == uneven
    assert "differ most for uneven at 8 bits: AUPRC is 0.3750 below mAP." in found.sentence
    assert "Every query has 1 relevant item. So skew, the only reason" in found.sentence


def test_with_skew_no_other_reason_is_named():
    sentence = areas_against_means(skewed()).sentence
    assert "coefficient of variation 0.60." in sentence and "So skew" not in sentence
