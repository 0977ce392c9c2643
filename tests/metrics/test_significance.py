import json
from dataclasses import FrozenInstanceError
from functools import partial
from itertools import product
from math import comb, gamma, inf, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from cases import profile_of
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt
from bittern.errors import InputError, UnknownNameError
from bittern.metrics import pooled
from bittern.metrics.pooled import Pooled
from bittern.metrics.significance import (
    ALTERNATIVES,
    TESTS,
    bootstrap_interval,
    cohen_d,
    compare,
    dominance,
    hedges_g,
    holm,
    paired_t_test,
    randomisation_test,
    randomisation_tests,
    rank_biserial,
    sign_test,
    wilcoxon,
)

SIDES = list(ALTERNATIVES)
WHOLE = st.lists(st.integers(-6, 6), min_size=2, max_size=6)


def two_systems(n, shift=0.1, random_state=0):
    rng = np.random.default_rng(random_state)
    a = rng.random(n)
    return a, a - shift + rng.normal(0, 0.3, n)


def flips(difference):
    """Every way to flip the signs."""
    return [[s * d for s, d in zip(flip, difference, strict=True)] for flip in signs_of(difference)]


def signs_of(values):
    return product((-1, 1), repeat=len(values))


def share_as_far_out(statistics, seen, alternative):
    """Of equally likely statistics that are symmetric about zero, the share as far out."""
    far = {
        "greater": [s >= seen for s in statistics],
        "less": [s <= seen for s in statistics],
        "two-sided": [abs(s) >= abs(seen) for s in statistics],
    }
    return sum(far[alternative]) / len(statistics)


def slow_signed_rank_sum(difference):
    """Twice the sum of signed mean ranks, pairs without a difference dropped."""
    kept = [d for d in difference if d]

    def twice_rank(d):
        smaller, as_large = (
            sum(abs(e) < abs(d) for e in kept),
            sum(abs(e) == abs(d) for e in kept),
        )
        return 2 * smaller + as_large + 1

    return sum(twice_rank(d) if d > 0 else -twice_rank(d) for d in kept)


def slow_holm(p_values, alpha):
    """Step down: reject the smallest while it is at most alpha over the number left."""
    rejected = set()
    left = sorted(range(len(p_values)), key=lambda i: p_values[i])
    while left and p_values[left[0]] * len(left) <= alpha:
        rejected.add(left.pop(0))
    return [i in rejected for i in range(len(p_values))]


# Against SciPy


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_the_t_test_is_scipy_s(n, alternative):
    a, b = two_systems(n)
    ours = paired_t_test(a, b, alternative)
    theirs = scipy.stats.ttest_rel(a, b, alternative=alternative)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_the_t_test_is_right_far_out():
    a, b = two_systems(1000, shift=0.25)
    theirs = scipy.stats.ttest_rel(a, b).pvalue
    assert 0 < theirs < 1e-80
    assert paired_t_test(a, b).p_value == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
@pytest.mark.parametrize(("n", "digits"), [(7, 9), (7, 1), (40, 9), (40, 1), (51, 9), (300, 2)])
def test_the_signed_rank_test_is_scipy_s(n, digits, zeros, alternative):
    a, b = np.round(two_systems(n), digits)
    difference = np.round(a - b, digits)  # SciPy would take roundings for differences
    theirs = scipy.stats.wilcoxon(difference, zero_method=zeros, alternative=alternative)
    ours = wilcoxon(a, b, alternative, zeros=zeros)
    assert ours.p_value == pytest.approx(theirs.pvalue)
    one_sided = scipy.stats.wilcoxon(difference, zero_method=zeros, alternative="greater")
    assert ours.statistic == one_sided.statistic
    assert ours.method == ("exact" if n == 7 or (n, digits) == (40, 9) else "normal approximation")


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("repeats", [1, 10])
def test_pairs_without_a_difference_are_treated_as_scipy_does(repeats, alternative):
    difference = np.tile([0, 1, 1, -2, 3, 0, -1, 4], repeats)
    p = {}
    for zeros in ("wilcox", "pratt"):
        theirs = scipy.stats.wilcoxon(difference, zero_method=zeros, alternative=alternative)
        p[zeros] = wilcoxon(difference, 0 * difference, alternative, zeros=zeros).p_value
        assert p[zeros] == pytest.approx(theirs.pvalue)
    assert p["wilcox"] != p["pratt"]


def test_the_exact_signed_rank_test_of_many_pairs_nears_the_normal_one():
    a, b = np.round(two_systems(300), 1)
    exact, normal = (wilcoxon(a, b + 0.1, "greater", exact=e) for e in (True, False))
    assert (exact.method, normal.method) == ("exact", "normal approximation")
    assert 0.01 < normal.p_value < 0.99
    assert exact.p_value != normal.p_value
    assert exact.p_value == pytest.approx(normal.p_value, rel=0.01)


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("n", [2, 9, 400])
def test_the_sign_test_is_scipy_s_binomial_test(n, alternative):
    a, b = two_systems(n)
    wins = int((a > b).sum())
    theirs = scipy.stats.binomtest(wins, n, alternative=alternative).pvalue
    ours = sign_test(a, b, alternative)
    assert ours.statistic == wins
    assert ours.p_value == pytest.approx(theirs)


@pytest.mark.parametrize("alternative", SIDES)
def test_the_randomisation_test_is_scipy_s_permutation_test(alternative):
    a, b = two_systems(9)
    theirs = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: (x - y).mean(axis=axis),
        vectorized=True,
        permutation_type="samples",
        alternative=alternative,
        n_resamples=1000,
    )
    ours = randomisation_test(a, b, alternative)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize(("method", "theirs"), [("bca", "BCa"), ("percentile", "percentile")])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_the_bootstrap_interval_is_scipy_s_of_the_same_resamples(method, theirs, confidence):
    difference = np.random.default_rng(0).exponential(size=20)
    mean = Pooled(difference[:, None], lambda sums: sums[:, 0] / 20)
    resamples = SimpleNamespace(bootstrap_distribution=pooled.resampled(mean, 5, 2000))
    expected = scipy.stats.bootstrap(
        (difference,),
        np.mean,
        method=theirs,
        confidence_level=confidence,
        n_resamples=0,
        bootstrap_result=resamples,
    ).confidence_interval
    ours = bootstrap_interval(
        difference,
        np.zeros(20),
        method,
        confidence=confidence,
        n_resamples=2000,
        random_state=5,
    )
    assert (ours.low, ours.high) == pytest.approx(tuple(expected), abs=1e-9)


# Against enumeration


@given(WHOLE, st.sampled_from(SIDES))
@settings(max_examples=40, deadline=None)
def test_the_randomisation_test_counts_all_flips(difference, alternative):
    sums = [sum(flip) for flip in flips(difference)]
    expected = share_as_far_out(sums, sum(difference), alternative)
    ours = randomisation_test(np.array(difference) / 10, np.zeros(len(difference)), alternative)
    assert ours.method == "exact"
    assert ours.p_value == pytest.approx(expected, abs=1e-12)


@given(WHOLE, st.sampled_from(SIDES))
@settings(max_examples=40, deadline=None)
def test_the_signed_rank_test_counts_all_flips(difference, alternative):
    sums = [slow_signed_rank_sum(flip) for flip in flips(difference)]
    expected = share_as_far_out(sums, slow_signed_rank_sum(difference), alternative)
    ours = wilcoxon(np.array(difference) / 10, np.zeros(len(difference)), alternative)
    assert ours.p_value == pytest.approx(expected, abs=1e-12)


@given(WHOLE, st.sampled_from(SIDES))
@settings(max_examples=40, deadline=None)
def test_the_sign_test_sums_binomials(difference, alternative):
    wins, losses = sum(d > 0 for d in difference), sum(d < 0 for d in difference)
    m = wins + losses
    balances = [k - (m - k) for k in range(m + 1) for _ in range(comb(m, k))]
    ours = sign_test(difference, [0] * len(difference), alternative)
    expected = share_as_far_out(balances, wins - losses, alternative)
    assert ours.p_value == pytest.approx(expected)
    assert (ours.n, ours.zeros) == (len(difference), len(difference) - m)


@pytest.mark.parametrize("test", [randomisation_test, wilcoxon])
@pytest.mark.parametrize("alternative", SIDES)
def test_over_all_flips_an_exact_p_is_as_often_small_as_it_says(test, alternative):
    difference = np.array([0.31, 0.73, 1.91, 4.47, 8.11, 17.3])
    p = np.array(
        [test(difference * s, np.zeros(6), alternative).p_value for s in signs_of(difference)]
    )
    for level in np.unique(p):
        assert np.mean(p <= level) == pytest.approx(level)


def test_flips_that_rounding_tells_apart_count_as_equal():
    # On paper both differences are 1/10, so the flips (+, +) and (-, -) are the ends of four.
    a, b = [0.9, 0.3, 0.7], [0.8, 0.2, 0.8]
    assert len({abs(x - y) for x, y in zip(a, b, strict=True)}) > 1
    # Sums 3, 1, 1, 1, -1, -1, -1, -3 tenths; 1 was seen.
    assert randomisation_test(a, b, "greater").p_value == 4 / 8
    assert randomisation_test(a, b).p_value == 1
    assert wilcoxon(a, b).statistic == 4  # of three ranks of 2


def test_sums_that_rounding_tells_apart_count_as_equal():
    # 1 + 2 - 3 = 0 tenths was seen: sums 6, 0, 2, -4, 4, -2, 0, -6.
    a, b = np.array([0.1, 0.2, 0.0]), np.array([0.0, 0.0, 0.3])
    assert (a - b).sum() != 0
    assert randomisation_test(a, b, "greater").p_value == 5 / 8
    drawn = randomisation_test(a, b, exact=False, n_draws=500)
    assert drawn.p_value == 1


def test_a_difference_of_rounding_alone_is_none():
    a, b = [0.1 + 0.2] * 5, [0.3] * 5
    assert a != b
    for test in TESTS.values():
        outcome = test(a, b, alternative="two-sided")
        assert (outcome.p_value, outcome.zeros, outcome.difference) == (1, 5, 0)


def test_small_differences_beside_large_ones_are_kept():
    outcome = sign_test([1e9, 2e-9, 2e-9], [1e9, 1e-9, 1e-9])
    assert (outcome.zeros, outcome.statistic) == (1, 2)


# Draws


@pytest.mark.parametrize("alternative", SIDES)
def test_drawn_flips_agree_with_all_of_them(alternative):
    a, b = two_systems(21)
    exact = randomisation_test(a, b, alternative, exact=True).p_value
    drawn = randomisation_test(a, b, alternative, exact=False, n_draws=20_000)
    assert drawn.p_value == pytest.approx(exact, abs=5 * sqrt(exact / 20_000))
    low, high = drawn.p_interval
    assert low < drawn.p_value < high
    assert drawn.method == "20,000 draws"


def test_tests_that_share_their_draws_give_the_outcomes_of_separate_tests():
    rng = np.random.default_rng(3)
    sides = [(rng.normal(0.02, 1, n), rng.normal(0, 1, n)) for n in (40, 900, 41, 12, 900)]
    sides[1][0][:5] = np.nan
    together = randomisation_tests(sides, "greater", n_draws=1001, random_state=4)
    alone = [randomisation_test(*s, "greater", n_draws=1001, random_state=4) for s in sides]
    assert together == alone
    assert [one.method for one in together].count("exact") == 1
    assert len({one.p_value for one in together}) == 5


def test_the_drawn_flips_are_those_of_earlier_versions():
    """p-values in published pages stay what they were: a row of bytes for each eight pairs."""
    rng = np.random.default_rng(0)
    difference = rng.normal(0.05, 1, 203)
    stream, sums = np.random.default_rng(7), np.zeros(999)
    padded = np.append(difference, np.zeros(5)).reshape(-1, 8)
    for eight in padded:
        signs = stream.integers(0, 256, 999, np.uint8)
        sums += np.where(signs[:, None] >> np.arange(8) & 1, eight, -eight).sum(axis=1)
    count = (np.abs(sums) >= abs(difference.sum()) - 1e-12).sum()
    found = randomisation_test(difference, np.zeros(203), n_draws=999, random_state=7)
    assert found.p_value == (count + 1) / 1000


def test_drawn_sums_that_rounding_tells_apart_count_as_equal():
    # Six of eleven tenths are positive: half of all flips have as many, a quarter exactly so.
    tenths = np.repeat([0.1, -0.1], [6, 5])
    outcome = randomisation_test(tenths, np.zeros(11), "greater", exact=False, n_draws=20_000)
    assert outcome.p_value == pytest.approx(0.5, abs=0.02)


def test_most_intervals_of_drawn_p_hold_the_exact_one():
    a, b = two_systems(12, shift=0.05)
    exact = randomisation_test(a, b)
    assert exact.p_interval is None
    inside = 0
    for random_state in range(60):
        low, high = randomisation_test(
            a, b, exact=False, n_draws=400, random_state=random_state
        ).p_interval
        inside += low <= exact.p_value <= high
    assert 52 <= inside < 60  # 57 in the mean


def test_a_drawn_p_is_never_zero():
    a, b = two_systems(60, shift=5)
    outcome = randomisation_test(a, b, n_draws=99)
    assert outcome.p_value == 1 / 100
    assert outcome.p_interval[0] == 0
    # No success in 99 draws: the largest share for which that has a chance of 2.5 %.
    assert outcome.p_interval[1] == pytest.approx(1 - 0.025 ** (1 / 99))
    assert randomisation_test(b, a, "greater", n_draws=99).p_value == 1
    assert randomisation_test(b, a, "greater", n_draws=99).p_interval[1] == 1


def test_the_same_random_state_draws_the_same():
    a, b = two_systems(50)
    first, again, other = (
        randomisation_test(a, b, n_draws=999, random_state=seed).p_value for seed in (0, 0, 1)
    )
    assert first == again != other
    interval, again, other = (bootstrap_interval(a, b, random_state=seed) for seed in (0, 0, 1))
    assert interval == again != other


def test_exact_flips_are_counted_for_many_more_pairs_than_could_be_enumerated():
    # All 32 differ by one: p is the chance of 24 heads or more in 32 throws.
    difference = np.repeat([1, -1], [24, 8])
    expected = sum(comb(32, k) for k in range(24, 33)) / 2**32
    outcome = randomisation_test(difference, np.zeros(32), "greater")
    assert outcome.method == "exact"
    assert outcome.p_value == pytest.approx(expected, rel=1e-12)


# Shared by all tests


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_under_the_null_hypothesis_p_is_small_as_seldom_as_it_should(test):
    rng = np.random.default_rng(0)
    p = [
        test(*rng.standard_normal((2, 12)), alternative=side).p_value
        for side in ("two-sided", "less")
        for _ in range(300)
    ]
    for level in (0.05, 0.2, 0.5):
        bound = level + 3 * sqrt(level * (1 - level) / len(p))
        assert np.mean(np.array(p) <= level) <= bound
    if test not in (sign_test, wilcoxon):  # whose p have few values
        assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize("n", [15, 60])
def test_the_larger_the_difference_the_smaller_is_p(test, n):
    noise = np.random.default_rng(1).normal(0, 0.3, n)
    shifts = np.linspace(0.3, 1, 8)
    greater = [test(noise + s, np.zeros(n), alternative="greater").p_value for s in shifts]
    less = [test(noise + s, np.zeros(n), alternative="less").p_value for s in shifts]
    assert greater == sorted(greater, reverse=True) and greater[-1] < 1e-3
    assert less == sorted(less) and less[0] > 0.9


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_swapping_the_systems_swaps_the_sides(test):
    a, b = two_systems(25)
    forth, back = test(a, b, alternative="greater"), test(b, a, alternative="less")
    assert forth.p_value == pytest.approx(back.p_value, abs=1e-12)
    assert forth.difference == -back.difference
    assert forth.effect_size == pytest.approx(-back.effect_size)
    both = test(a, b, alternative="two-sided")
    smaller = min(forth.p_value, test(a, b, alternative="less").p_value)
    assert both.p_value == pytest.approx(min(1, 2 * smaller))


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e200])
def test_the_unit_does_not_matter(test, factor):
    a, b = two_systems(20)
    plain, scaled = (test(a * f, b * f, alternative="two-sided") for f in (1, factor))
    assert scaled.p_value == pytest.approx(plain.p_value)
    assert scaled.effect_size == pytest.approx(plain.effect_size)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize("alternative", SIDES)
def test_identical_systems_have_p_one(test, alternative):
    a, _ = two_systems(20)
    outcome = test(a, a, alternative=alternative)
    assert (outcome.p_value, outcome.effect_size, outcome.difference) == (1, 0, 0)
    assert (outcome.n, outcome.zeros) == (20, 20)


def test_tests_that_approximate_find_nothing_in_identical_systems_either():
    a, _ = two_systems(60)
    assert wilcoxon(a, a, exact=False).p_value == 1
    assert wilcoxon(a, a, zeros="pratt").p_value == 1
    assert randomisation_test(a, a, exact=False, n_draws=10).p_value == 1


def test_a_constant_difference_is_a_limit_for_t_and_a_count_for_the_others():
    a, _ = two_systems(6)
    b = a - 0.1
    assert len(set(a - b)) > 1  # by rounding
    assert (paired_t_test(a, b).statistic, paired_t_test(a, b).p_value) == (inf, 0)
    assert paired_t_test(b, a).statistic == -inf
    assert paired_t_test(b, a, "greater").p_value == 1
    for test in (wilcoxon, sign_test, randomisation_test):
        assert test(a, b).p_value == pytest.approx(2 / 2**6)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_undefined_pairs_are_left_out_and_counted(test):
    a, b = two_systems(20)
    a_with, b_with = np.insert(a, [3, 7], np.nan), np.insert(b, [3, 9], [0.5, np.nan])
    outcome = test(a_with, b_with, alternative="two-sided")
    defined = ~np.isnan(a_with) & ~np.isnan(b_with)
    plain = test(a_with[defined], b_with[defined], alternative="two-sided")
    assert (outcome.n, outcome.left_out) == (19, 3)
    assert (plain.n, plain.left_out) == (19, 0)
    assert outcome.p_value == plain.p_value
    assert outcome.difference == pytest.approx(np.nanmean(a_with - b_with))


def test_what_is_given_is_not_changed():
    a, b = two_systems(20)
    a[3] = np.nan
    before = a.copy(), b.copy()
    for test in TESTS.values():
        test(a, b, alternative="less")
    bootstrap_interval(a, b)
    np.testing.assert_array_equal((a, b), before)


def test_an_outcome_cannot_be_changed_and_prints_its_p():
    outcome = paired_t_test([0.5, 0.7, np.nan], [0.1, 0.5, 0.2], "greater")
    with pytest.raises(FrozenInstanceError):
        outcome.p_value = 0.0
    assert str(outcome).startswith("paired t-test (t distribution, greater): p = 0.1024")
    assert str(outcome).endswith("(2 pairs, 1 left out)")
    assert repr(outcome) == str(outcome)


# Effect sizes


def test_cohen_s_d_is_mean_over_deviation():
    # Differences 1, 2, 3, 6: mean 3, squares of deviations 4 + 1 + 0 + 9 over 3.
    a, b = [2, 4, 6, 10], [1, 2, 3, 4]
    assert cohen_d(a, b) == pytest.approx(3 / sqrt(14 / 3))
    correction = gamma(1.5) / (sqrt(1.5) * gamma(1))
    assert hedges_g(a, b) == pytest.approx(3 / sqrt(14 / 3) * correction)
    assert paired_t_test(a, b).effect_size == cohen_d(a, b)
    assert randomisation_test(a, b).effect_size == cohen_d(a, b)


def test_hedges_removes_the_bias():
    # E[g] is the true effect, here 1/2; Cohen's d is too large by about 3 / (4m - 1).
    rng = np.random.default_rng(0)
    draws = rng.normal(0.5, 1, (1500, 6))
    assert np.mean([hedges_g(d, np.zeros(6)) for d in draws]) == pytest.approx(0.5, abs=0.04)
    assert np.mean([cohen_d(d, np.zeros(6)) for d in draws]) > 0.55
    assert np.isnan(hedges_g([1, 2], [0, 0]))


def test_rank_biserial_is_favourable_less_unfavourable_ranks():
    # Sizes 1, 2, 2, 5 have ranks 1, 2.5, 2.5, 4; the zero is dropped; one 2 is negative.
    a, b = [1, 2, 0, -2, 5], [0, 0, 0, 0, 0]
    assert rank_biserial(a, b) == pytest.approx((7.5 - 2.5) / 10)
    assert wilcoxon(a, b).effect_size == rank_biserial(a, b)
    assert rank_biserial([1, 2], [0, 0]) == 1
    assert rank_biserial([0, 0], [1, 2]) == -1


def test_dominance_is_wins_less_losses():
    assert dominance([1, 2, 0, -2, 5], [0] * 5) == pytest.approx((3 - 1) / 5)
    assert sign_test([1, 2, 0, -2, 5], [0] * 5).effect_size == pytest.approx((3 - 1) / 4)


# Bootstrap


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_the_interval_of_many_pairs_is_that_of_the_normal_distribution(method):
    a, b = two_systems(400)
    interval = bootstrap_interval(a, b, method)
    half = 1.96 * (a - b).std() / sqrt(400)
    assert interval.low == pytest.approx(interval.difference - half, abs=0.1 * half)
    assert interval.high == pytest.approx(interval.difference + half, abs=0.1 * half)
    assert interval.difference == pytest.approx((a - b).mean())


def test_bca_leans_towards_the_long_tail():
    difference = np.random.default_rng(0).exponential(size=25)
    bca, percentile = (
        bootstrap_interval(difference, np.zeros(25), m) for m in ("bca", "percentile")
    )
    assert bca.low > percentile.low and bca.high > percentile.high


def test_a_constant_difference_has_an_interval_of_one_value():
    interval = bootstrap_interval([0.9, 0.3, np.nan], [0.8, 0.2, 0.1])
    assert interval.low == interval.high == interval.difference == pytest.approx(0.1)
    assert (interval.n, interval.left_out) == (2, 1)


def test_two_pairs_have_an_interval():
    for method in ("bca", "percentile"):
        interval = bootstrap_interval([1, 2], [0, 0], method)
        assert (interval.low, interval.high) == (1, 2)


# Families


def test_holm_by_hand():
    # In order .005 .01 .03 .04 times 4 3 2 1 are .02 .03 .06 .04, and no later may be smaller.
    correction = holm([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(correction.adjusted, [0.03, 0.06, 0.06, 0.02])
    assert correction.significant.tolist() == [True, False, False, True]


@given(
    st.lists(st.integers(0, 1000).map(lambda i: i / 1000), min_size=1, max_size=8),
    st.sampled_from([0.0123, 0.0501, 0.3333]),
)
def test_holm_rejects_what_stepping_down_rejects(p_values, alpha):
    correction = holm(p_values, alpha)
    assert correction.significant.tolist() == slow_holm(p_values, alpha)
    assert (correction.adjusted >= np.array(p_values)).all()
    assert (correction.adjusted <= 1).all()


def test_holm_leaves_missing_tests_out_of_the_family():
    correction = holm([np.nan, 0.02, 0.03, np.nan])
    np.testing.assert_allclose(correction.adjusted, [np.nan, 0.04, 0.04, np.nan])
    assert correction.significant.tolist() == [False, True, True, False]
    assert (correction.n, correction.left_out) == (2, 2)
    assert holm([]).adjusted.shape == (0,)
    assert holm([np.nan]).n == 0


def three_systems():
    rng = np.random.default_rng(3)
    base = rng.random(40)
    return {
        "lsh": base,
        "pcah": base + rng.normal(0, 0.1, 40),
        "itq": base + 0.3 + rng.normal(0, 0.1, 40),
    }


def test_a_comparison_with_a_baseline_has_the_others_first():
    values = three_systems()
    table = compare(values, "lsh", test="t-test", alternative="greater")
    assert [(c.first, c.second) for c in table] == [("pcah", "lsh"), ("itq", "lsh")]
    assert table[1].difference == pytest.approx((values["itq"] - values["lsh"]).mean())
    p = [paired_t_test(values[c.first], values["lsh"], "greater").p_value for c in table]
    assert [c.p_value for c in table] == p
    np.testing.assert_array_equal([c.adjusted_p for c in table], holm(p).adjusted)
    assert [c.significant for c in table] == [False, True]
    assert repr(table) == str(table) and "pcah - lsh" in repr(table)
    former = compare(values, "lsh", test="paired-t", alternative="greater")
    assert str(former) == str(table) and "paired-t" not in list(TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_without_a_baseline_each_is_compared_with_each(test):
    table = compare(three_systems(), test=test)
    assert [(c.first, c.second) for c in table] == [
        ("lsh", "pcah"),
        ("lsh", "itq"),
        ("pcah", "itq"),
    ]
    assert [c.significant for c in table] == [False, True, True]
    assert len(table[1:]) == 2


def test_alpha_decides_what_is_significant():
    values = {"a": [1, 2, 3, 4, 5], "b": [0, 0, 0, 0, 0]}  # p = 2 / 32
    assert not compare(values)[0].significant
    assert compare(values, alpha=0.1)[0].significant


def test_a_test_with_options_can_be_given_as_a_function():
    values = {"a": [1, 0, -2, 3], "b": [0, 0, 0, 0]}
    (row,) = compare(values, test=partial(wilcoxon, zeros="pratt"))
    assert row.outcome == wilcoxon(values["a"], values["b"], zeros="pratt")


def test_the_table_shows_a_row_a_comparison_and_what_it_rests_on():
    table = compare(three_systems(), "lsh", test="sign")
    lines = str(table).splitlines()
    assert lines[2].startswith("pcah - lsh") and lines[3].startswith("itq - lsh")
    assert "*" in lines[3] and "*" not in lines[2]
    assert len({len(line) for line in lines[:4]}) == 1
    assert "sign test, two-sided; p adjusted by Holm over 2 comparisons, * at 0.05" in lines[4]
    plain = json.loads(json.dumps([c.to_dict() for c in table]))
    assert plain[1]["significant"] is True and plain[1]["n"] == 40


# Scores


def scores_of(*tied, query_ids=None):
    """Scores of queries with one relevant item, tied with the given numbers of others."""
    profile = profile_of(*[([[1] + [0] * n], []) if n else ([[0]], []) for n in tied])
    if query_ids is not None:
        profile = bt.TieProfile(
            counts=profile.counts,
            gains=profile.gains,
            unretrieved=profile.unretrieved,
            query_ids=np.array(query_ids),
        )
    return bt.evaluate(profile, ["ap", "micro-recall@1"])


def test_scores_are_taken_as_they_are():
    first, second = scores_of(1, 2, 3, 0), scores_of(3, 3, 3, 3)
    outcome = sign_test(first["ap"], second["ap"])
    assert (outcome.statistic, outcome.zeros, outcome.n, outcome.left_out) == (2, 1, 3, 1)
    assert outcome == sign_test(first["ap"].per_query, second["ap"].per_query)
    assert compare({"a": first["ap"], "b": second["ap"]})[0].outcome.n == 3


def test_scores_of_other_queries_are_refused():
    first = scores_of(1, 2, query_ids=["q1", "q2"])["ap"]
    assert sign_test(first, scores_of(2, 1, query_ids=["q1", "q2"])["ap"]).n == 2
    assert sign_test(first, scores_of(2, 1)["ap"]).n == 2
    with pytest.raises(InputError, match="same queries in the same order, but the ids of 2 differ"):
        sign_test(first, scores_of(2, 1, query_ids=["q2", "q1"])["ap"])


VALUES = [0.1, 0.2, 0.3]


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (VALUES, VALUES[:2], "values of the same queries, got 3 and 2 values"),
        ([0.1], [0.2], "at least 2 pairs where both values are defined, got 1"),
        ([np.nan, 1, 1], [1, np.nan, 1], r"got 1 \(2 left out as undefined\)"),
        ([], [], r"a must be a 1-D array|at least 2 pairs"),
        (VALUES, [0.1, np.inf, 0.2], "b must be finite or NaN, but value 1 is not"),
        ([VALUES], [VALUES], r"a must be a 1-D array of numbers, got float64 \(1, 3\)"),
        (["a", "b"], [1, 2], "a must be a 1-D array of numbers"),
        ([[1], [1, 2]], [1, 2], "a must be an array"),
    ],
)
def test_what_cannot_be_paired_is_refused(test, a, b, says):
    with pytest.raises(InputError, match=says):
        test(a, b, alternative="two-sided")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: paired_t_test(VALUES, VALUES, "bigger"), UnknownNameError, "no alternative"),
        (lambda: wilcoxon(VALUES, VALUES, "bigger"), UnknownNameError, "no alternative"),
        (lambda: sign_test(VALUES, VALUES, "bigger"), UnknownNameError, "no alternative"),
        (lambda: randomisation_test(VALUES, VALUES, "grater"), UnknownNameError, "'greater'"),
        (lambda: wilcoxon(VALUES, VALUES, zeros="drop"), UnknownNameError, "wilcox, pratt"),
        (lambda: wilcoxon(*two_systems(501), exact=True), InputError, "at most 500 .* got 501"),
        (lambda: randomisation_test(*two_systems(45), exact=True), InputError, "most 44 .* 45"),
        (lambda: randomisation_test(VALUES, VALUES, n_draws=0), InputError, "n_draws must be"),
        (lambda: randomisation_test(VALUES, VALUES, random_state=-1), InputError, "random_state"),
        (lambda: bootstrap_interval(VALUES, VALUES, "bc"), UnknownNameError, "mean 'bca'"),
        (lambda: bootstrap_interval(VALUES, VALUES, confidence=95), InputError, "got 95"),
        (lambda: bootstrap_interval(VALUES, VALUES, n_resamples=9), InputError, "between 100 and"),
        (lambda: bootstrap_interval(VALUES, VALUES, random_state=None), InputError, "whole"),
        (lambda: cohen_d(VALUES, [1]), InputError, "cohen_d: a and b"),
        (lambda: holm([0.5, 1.5]), InputError, "between 0 and 1, or be NaN"),
        (lambda: holm([[0.5]]), InputError, "1-D"),
        (lambda: holm([0.5], alpha=5), InputError, "alpha must be between 0 and 1, got 5"),
        (lambda: compare({"a": VALUES}), InputError, "at least 2 systems"),
        (lambda: compare([VALUES, VALUES]), InputError, "must be a dictionary"),
        (lambda: compare({"a": VALUES, "b": VALUES}, "c"), UnknownNameError, "no system"),
        (lambda: compare({"a": VALUES, "b": VALUES}, test="t"), UnknownNameError, "no test"),
        (lambda: compare({"a": VALUES, "b": VALUES}, alpha=0), InputError, "compare: alpha"),
        (lambda: compare({"x": VALUES, "y": [1]}), InputError, r"x \(a\) and y \(b\): random"),
        (lambda: sign_test(scores_of(1, 2), VALUES), InputError, r"pass scores\['ap'\]"),
        (
            lambda: sign_test(scores_of(1, 2)["micro-recall@1"], VALUES),
            InputError,
            "a must have a value for each query, but micro-recall@1 has one",
        ),
    ],
)
def test_what_is_not_meant_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()
