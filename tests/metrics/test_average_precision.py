from decimal import Decimal, localcontext
from math import fsum

import numpy as np
import oracles
import pytest
import pytrec_eval
from cases import large_profile, one_value, profile_of, random_trec, rankings_with_ties, write_trec
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt
from bittern.metrics.precision import average_precision

EULER = Decimal("0.57721566490153286060651209008240243104215933593992")


def by_position(ties):
    """Sum of precisions at relevant items, over the positions of every tie.

    Position t of a tie holds a relevant item with probability r / n; then the t - 1 others before
    it in the tie hold (t - 1)(r - 1) / (n - 1) relevant ones in the mean.
    """
    before, found, total = 0, 0, 0.0
    for n, r in ties:
        t = np.arange(1, n + 1, dtype=np.float64)
        hits = found + 1 + (t - 1) * ((r - 1) / max(n - 1, 1))
        total += r / n * fsum(hits / (before + t))
        before, found = before + n, found + r
    return total


def harmonic(n):
    """H_n to forty digits: added up, or by Euler and Maclaurin's series."""
    if n < 500:
        return sum((Decimal(1) / t for t in range(1, n + 1)), Decimal(0))
    x = Decimal(n)
    numbers = [(1, 12, 2), (-1, 120, 4), (1, 252, 6), (-1, 240, 8), (1, 132, 10), (-691, 32760, 12)]
    tail = sum(Decimal(a) / b / x**power for a, b, power in numbers)
    return x.ln() + EULER + 1 / (2 * x) - tail


def in_decimals(ties):
    """The same sum as ``by_position`` for ties too long to walk through."""
    with localcontext(prec=60):
        before, found, total = 0, 0, Decimal(0)
        for n, r in ties:
            h = harmonic(before + n) - harmonic(before)
            slope = Decimal(r - 1) / max(n - 1, 1)
            total += Decimal(r) / n * ((found + 1 - slope * (before + 1)) * h + slope * n)
            before, found = before + n, found + r
        return float(total)


@settings(deadline=None)
@given(rankings_with_ties())
def test_it_is_the_mean_over_all_orders(case):
    assert one_value("ap", *case) == pytest.approx(
        oracles.expected(oracles.average_precision, *case)
    )


@settings(deadline=None)
@given(rankings_with_ties(max_size=7), st.integers(1, 8))
def test_at_a_cutoff_it_is_the_mean_over_all_orders(case, k):
    wanted = oracles.expected(oracles.average_precision, *case, k)
    assert one_value(f"ap@{k}", *case) == pytest.approx(wanted)


def test_worked_example_of_two_tied_items():
    # One relevant: half the time 1/1, half the time 1/2.
    assert one_value("ap", [[1, 0]]) == 3 / 4


def test_worked_example_of_two_ties():
    # One item at rank 1, not relevant; then 3 tied, 2 of them relevant.  Orders of the tie:
    # ++- (1/2 + 2/3) / 2 = 7/12, +-+ (1/2 + 2/4) / 2 = 1/2, -++ (1/3 + 2/4) / 2 = 5/12.  Mean 1/2.
    assert one_value("ap", [[0], [1, 1, 0]]) == pytest.approx(1 / 2)


def test_worked_example_of_a_cut_tie():
    # One relevant of four tied, two ranks count: (1/1 + 1/2) / 4.
    assert one_value("ap@2", [[1, 0, 0, 0]]) == pytest.approx(3 / 8)


def test_gains_above_one_are_merely_relevant():
    assert one_value("ap", [[3, 0], [1]]) == one_value("ap", [[1, 0], [1]])


def test_relevant_items_not_retrieved_are_in_the_denominator():
    # Found at rank 1, another one nowhere: (1/1) / 2.
    assert one_value("ap", [[1], [0]], [1]) == 1 / 2


def test_a_query_with_nothing_relevant_is_nan():
    values = average_precision(profile_of(([[0, 0]], []), ([[1]], [])))
    np.testing.assert_array_equal(values, [np.nan, 1.0])


def test_relevant_items_of_which_none_is_retrieved_give_zero():
    assert one_value("ap", [[0, 0], [0]], [1]) == 0
    assert one_value("ap", [[]], [1]) == 0


@given(rankings_with_ties())
@settings(max_examples=30, deadline=None)
def test_a_cutoff_beyond_the_ranking_changes_nothing(case):
    assert one_value("ap@7", *case) == one_value("ap", *case)


@pytest.mark.parametrize(("n", "r"), [(1, 1), (2, 1), (10, 1), (10, 9), (1000, 37)])
def test_one_tie_has_a_closed_form(n, r):
    # (1/n) (H_n + rho (n - H_n)) with rho = (r - 1) / (n - 1)
    h, rho = fsum(1 / t for t in range(1, n + 1)), (r - 1) / max(n - 1, 1)
    (value,) = average_precision(large_profile([(n, r)]))
    assert value == pytest.approx((h + rho * (n - h)) / n, rel=1e-12)


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_without_ties_it_is_what_trec_eval_says(tmp_path, k):
    run, qrels = random_trec(random_state=k, ties=False)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", f"map_cut.{k}"}).evaluate(run)
    scores = bt.evaluate(
        bt.TieProfile.from_trec(*write_trec(tmp_path, run, qrels)), ["ap", f"ap@{k}"]
    )
    for ours, name in (("ap", "map"), (f"ap@{k}", f"map_cut_{k}")):
        wanted = [theirs[q][name] for q in scores.query_ids]
        np.testing.assert_allclose(scores[ours].per_query, wanted, rtol=1e-6)
        assert scores[ours].mean > 0.01


@pytest.mark.parametrize(
    "ties",
    [
        [(10**6, 10**5)],
        [(10**6, 1)],
        [(3, 1), (10**6, 999_999), (17, 5), (10**5, 4)],
        [(10**6, 0), (10, 10), (10**6, 7)],
    ],
)
def test_ties_of_a_million_items_equal_the_sum_over_positions(ties):
    (value,) = average_precision(large_profile(ties))
    assert value == pytest.approx(by_position(ties) / sum(r for _, r in ties), rel=1e-9)


def test_the_oracle_in_decimals_equals_the_sum_over_positions():
    ties = [(3, 1), (1000, 20), (7, 7), (100_000, 99)]
    assert in_decimals(ties) == pytest.approx(by_position(ties), rel=1e-12)
    assert float(harmonic(499) + Decimal(1) / 500) == float(harmonic(500))


@pytest.mark.parametrize(
    "ties",
    [
        [(10**9, 10**8)],
        [(10**9, 1)],
        [(10**9, 10**9)],
        [(100, 3), (10**7, 10**3), (10**9, 10**6)],
        [(10**9, 10**6), (10**6, 10**5), (10**8, 5)],
    ],
)
def test_ties_of_a_billion_items_are_exact_to_eleven_digits(ties):
    (value,) = average_precision(large_profile(ties))
    assert value == pytest.approx(in_decimals(ties) / sum(r for _, r in ties), rel=1e-11)


@pytest.mark.parametrize("n", [1, 2, 16, 17, 100, 10_000])
def test_a_short_tie_after_a_billion_items_keeps_six_digits(n):
    # Everything relevant comes after 10^9 others: the value is tiny and still not noise.
    ties = [(10**9, 0), (n, n)]
    (value,) = average_precision(large_profile(ties))
    assert value == pytest.approx(in_decimals(ties) / n, rel=1e-6)
    assert value < 1e-5


def test_a_cutoff_inside_a_tie_of_a_billion_items():
    # rank t is relevant with probability 1/10; then (t - 1) rho others before it are
    n, r, k = 10**9, 10**8, 1000
    rho = (r - 1) / (n - 1)
    wanted = fsum((1 + (t - 1) * rho) / t for t in range(1, k + 1)) / n
    (value,) = average_precision(large_profile([(n, r)]), k)
    assert value == pytest.approx(wanted, rel=1e-11)
