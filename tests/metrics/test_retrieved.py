from fractions import Fraction
from math import comb

import numpy as np
import oracles
import pytest
from cases import large_profile, one_value, profile_of, rankings_with_ties
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt

metric = oracles.average_precision_of_retrieved


def given_the_hits(before, found, whole, hits, ranks):
    """Mean of precisions if ``hits`` of ``ranks`` places are relevant, each placing as likely."""
    slope = Fraction(hits - 1, ranks - 1) if ranks > 1 else Fraction(0)
    inner = sum((found + 1 + (t - 1) * slope) / Fraction(before + t) for t in range(1, ranks + 1))
    part = Fraction(hits, ranks) * inner
    return (whole + part) / (found + hits) if found + hits else Fraction(0)


def in_one_cut_tie(n, r, k):
    """One tie of n items, r relevant, cut at k: over the number of hits before the cut."""
    chances = [(x, Fraction(comb(r, x) * comb(n - r, k - x), comb(n, k))) for x in range(k + 1)]
    return float(sum(p * given_the_hits(0, 0, Fraction(0), x, k) for x, p in chances))


@settings(max_examples=200, deadline=None)
@given(rankings_with_ties(max_size=7), st.integers(1, 8))
def test_it_is_the_mean_over_all_orders(case, k):
    wanted = oracles.expected(metric, *case, k)
    assert one_value(f"ap@{k}:retrieved", *case) == pytest.approx(wanted)


@settings(max_examples=60, deadline=None)
@given(rankings_with_ties(max_size=7))
def test_without_a_cutoff_it_is_the_mean_over_all_orders(case):
    wanted = oracles.expected(metric, *case)
    assert one_value("ap:retrieved", *case) == pytest.approx(wanted)


@settings(max_examples=200, deadline=None)
@given(rankings_with_ties(max_size=7), st.integers(1, 8))
def test_optimistic_is_the_largest_value_of_any_order(case, k):
    assert one_value(f"ap@{k}:retrieved:optimistic", *case) == pytest.approx(
        oracles.best(metric, *case, k)
    )


@settings(max_examples=200, deadline=None)
@given(rankings_with_ties(max_size=7), st.integers(1, 8))
def test_pessimistic_is_the_smallest_value_of_any_order(case, k):
    assert one_value(f"ap@{k}:retrieved:pessimistic", *case) == pytest.approx(
        oracles.worst(metric, *case, k)
    )


def test_worked_example():
    # One relevant at rank 1, then 1 relevant of 2 tied, k = 2.  Half the time the hit is at rank 2:
    # (1 + 2/2) / 2 = 1; half the time it is cut off: 1 / 1 = 1.
    assert one_value("ap@2:retrieved", [[1], [1, 0]]) == pytest.approx(1)
    # Not relevant at rank 1 instead: half the time (1/2) / 1, half the time nothing, which is 0.
    assert one_value("ap@2:retrieved", [[0], [1, 0]]) == pytest.approx(1 / 4)


def test_fewer_hits_can_be_the_best_order():
    # Ranks 1-2: + and −.  Then 2 tied, one relevant, k = 3.  With the hit at rank 3:
    # (1 + 2/3) / 2 = 5/6; without it 1 / 1 = 1.  So the best order leaves the relevant item out.
    case = [[1], [0], [1, 0]], []
    assert one_value("ap@3:retrieved:optimistic", *case) == pytest.approx(1)
    assert one_value("ap@3:retrieved:pessimistic", *case) == pytest.approx(5 / 6)
    assert one_value("ap@3:retrieved", *case) == pytest.approx((1 + 5 / 6) / 2)


def test_what_was_not_retrieved_does_not_count():
    assert one_value("ap@2:retrieved", [[1], [0]], [1, 1]) == 1
    assert one_value("ap@2", [[1], [0]], [1, 1]) == pytest.approx(1 / 3)


def test_nothing_retrieved_counts_as_zero_and_nothing_relevant_is_nan():
    profile = profile_of(([[0], [1]], []), ([[0], [0]], []), ([[]], [1]))
    for rule in ("", ":optimistic", ":pessimistic"):
        name = f"ap@1:retrieved{rule}"
        values = bt.evaluate(profile, [name])[name].per_query
        np.testing.assert_array_equal(values, [0, np.nan, 0])


def test_everything_relevant_gives_one_whatever_the_cutoff():
    for k in range(1, 7):
        assert one_value(f"ap@{k}:retrieved", [[1, 1], [1, 1, 1]]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("n", "r", "k"), [(300, 1, 100), (300, 299, 100), (300, 100, 60), (10**9, 10**8, 40)]
)
def test_a_long_tie_equals_the_exact_fractions(n, r, k):
    name = f"ap@{k}:retrieved"
    value = bt.evaluate(large_profile([(n, r)]), [name])[name].mean
    assert value == pytest.approx(in_one_cut_tie(n, r, k), rel=1e-10)


def test_a_cut_at_millions_inside_a_tie_of_a_billion():
    # A third of everything relevant: the precision at each hit is about 1/3, and so is their mean.
    name = "ap@5000000:retrieved"
    value = bt.evaluate(large_profile([(10**9, 333_333_333)]), [name])[name].mean
    assert value == pytest.approx(1 / 3, rel=1e-5)
