"""Two experiments side by side, against SciPy and by hand."""

import numpy as np
import pytest
import scipy.stats
from made_records import CLEAN, drawn, protocol_of, records_of

from bittern.analysis import compare_experiments
from bittern.errors import InputError, UnknownNameError
from bittern.report import differences_to_markdown, differences_to_text
from bittern.report.differences import differences_in_words

FIRST = {("a", 8): drawn(8, 20, 0.4, 0), ("b", 8): drawn(8, 20, 0.6, 1)}
RISE = np.linspace(0.01, 0.08, 8)
SECOND = {
    ("b", 8): [values + rise for values, rise in zip(FIRST["b", 8], RISE, strict=True)],
    ("a", 8): FIRST["a", 8],
    ("c", 8): drawn(8, 20, 0.5, 2),
}


def compared():
    return compare_experiments(records_of(FIRST), records_of(SECOND))


def test_rows_are_what_both_have_in_the_order_of_the_first():
    assert [(row.method, row.n_bits, row.n_runs) for row in compared().rows] == [
        ("a", 8, 8),
        ("b", 8, 8),
    ]


def test_differences_and_intervals_are_those_of_scipy():
    row = compared().rows[1]
    first, second = ([np.mean(v) for v in side["b", 8]] for side in (FIRST, SECOND))
    assert row.first == pytest.approx(np.mean(first))
    assert row.second == pytest.approx(np.mean(second))
    assert row.difference == pytest.approx(RISE.mean())
    expected = scipy.stats.ttest_rel(second, first).confidence_interval(0.95)
    assert row.interval == pytest.approx((expected.low, expected.high))
    p = scipy.stats.wilcoxon(second, first).pvalue
    assert row.p_value == pytest.approx(p * 2)  # Holm over two rows
    assert compared().n_significant == 1


def test_runs_that_one_lacks_and_undefined_ones_are_left_out():
    first = {("a", 8): [[0.1], [0.2], None, [np.nan], [0.5]]}
    second = {("a", 8): [[0.2], [0.4], [0.6], [0.7], None]}
    (row,) = compare_experiments(records_of(first), records_of(second)).rows
    assert (row.n_runs, row.first, row.second) == (2, pytest.approx(0.15), pytest.approx(0.3))


def test_one_run_has_neither_interval_nor_test():
    one = records_of({("a", 8): [[0.1, 0.2]]})
    two = records_of({("a", 8): [[0.3, 0.4]]})
    (row,) = compare_experiments(one, two).rows
    assert np.isnan([*row.interval, row.p_value]).all()
    written = differences_to_text(compare_experiments(one, two))
    assert "nan" not in written and "+0.2000" in written


def test_too_few_runs_are_told():
    two = {("a", 8): [[0.1], [0.2]]}, {("a", 8): [[0.3], [0.5]]}
    found = compare_experiments(*map(records_of, two))
    assert "never below 0.5" in differences_in_words(found)
    assert "never below" not in differences_in_words(compared())


def test_it_is_told_whether_the_queries_are_the_same():
    assert compared().same_queries
    assert "the same queries" in differences_in_words(compared())
    elsewhere = records_of(SECOND, query_positions=tuple(range(500, 520)))
    other = compare_experiments(records_of(FIRST), elsewhere)
    assert not other.same_queries and "different queries" in differences_in_words(other)
    data = [records_of(FIRST, split=CLEAN | {"data": one}) for one in "ab"]
    assert compare_experiments(data[0], data[0]).same_queries
    assert not compare_experiments(*data).same_queries


def test_the_words_have_the_least_and_the_largest_difference():
    said = differences_in_words(compared())
    assert "changes by +0.0000 (a at 8 bits) to +0.0450 (b at 8 bits)" in said
    assert "1 of 2 differences is significant" in said


def test_text_and_markdown_have_every_row():
    text = differences_to_text(compared())
    assert "First: Made up.\nSecond: Made up." in text
    lines = [line for line in text.splitlines() if line.startswith(("a ", "b "))]
    assert len(lines) == 2 and "+0.0450" in lines[1]
    written = differences_to_markdown(compared(), level=3, heading="Two | splits")
    assert written.startswith("### Two \\| splits\n")
    assert "| --- | --- | --: | --: | --: | --: | --: | --: |\n| a | 8 bits | 8 | " in written


def test_where_nothing_is_defined_it_is_told():
    undefined = records_of({("a", 8): [[np.nan]] * 2})
    found = compare_experiments(undefined, undefined)
    assert "No run has a value of ap in both" in differences_to_text(found)
    assert "nan" not in differences_to_text(found)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match=r"share no method.*first has a, b.*second c"):
        compare_experiments(records_of(FIRST), records_of({("c", 8): drawn(2, 5, 0.5, 0)}))
    with pytest.raises(UnknownNameError, match="did you mean 'ap'"):
        compare_experiments(records_of(FIRST), records_of(SECOND), "app")
    lacking = protocol_of(["a", "b"], runs=8, n_bits=[8], metrics=["ap", "ndcg"])
    with pytest.raises(UnknownNameError, match=r"in the second experiment, .*ndcg"):
        compare_experiments(records_of(FIRST, protocol=lacking), records_of(SECOND), "ndcg")
