import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import tie_reference

from bittern.kernels import ties

KERNELS = [
    "sum_precisions",
    "count_found",
    "hit_probability",
    "reciprocal_ranks",
    "mean_precisions",
]
EVERYTHING = np.iinfo(np.int64).max


def random_profiles(random_state, n_queries=40, largest=12):
    """Items and relevant items of eight ties, and cut-offs: inside, at the end of, and beyond."""
    rng = np.random.default_rng(random_state)
    total = rng.integers(0, largest, (n_queries, 8)) * (rng.random((n_queries, 8)) < 0.7)
    relevant = rng.binomial(total, rng.choice([0.0, 0.1, 0.5, 1.0], (n_queries, 8)))
    cutoffs = rng.integers(1, total.sum(axis=1) + 5)
    cutoffs[::7] = EVERYTHING
    cutoffs[1::3] = rng.integers(1, 4, len(cutoffs[1::3]))  # inside the first tie, mostly
    return total, relevant, cutoffs


def filled(kernel, *arguments):
    out = np.full(len(arguments[0]), -7.0)  # what a kernel that forgets a row would leave
    kernel(*arguments, out)
    return out


@pytest.mark.parametrize("random_state", range(4))
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_equals_its_twin(name, random_state):
    profiles = random_profiles(random_state)
    found, wanted = (filled(getattr(module, name), *profiles) for module in (ties, tie_reference))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    assert len(np.unique(wanted.round(9))) > 5  # not vacuous


@pytest.mark.parametrize("random_state", range(4))
@pytest.mark.parametrize("best", [True, False])
def test_the_extremes_equal_their_twins(best, random_state):
    profiles = random_profiles(random_state)
    kernels = (module.extreme_mean_precisions for module in (ties, tie_reference))
    found, wanted = (filled(kernel, *profiles, best) for kernel in kernels)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    assert len(np.unique(wanted.round(9))) > 5


@pytest.mark.parametrize("name", KERNELS)
def test_long_ties_equal_their_twins(name):
    profiles = random_profiles(random_state=9, n_queries=8, largest=400)
    found, wanted = (filled(getattr(module, name), *profiles) for module in (ties, tie_reference))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_retrieved_and_nothing_relevant_give_zero(name):
    total, relevant = np.array([[0, 0], [3, 2]]), np.zeros((2, 2), np.int64)
    for module in (ties, tie_reference):
        for cutoff in (1, 4, EVERYTHING):
            out = filled(getattr(module, name), total, relevant, np.array([cutoff, cutoff]))
            np.testing.assert_array_equal(out, [0, 0])


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_harmonic_differences_equal_their_sums(low, length):
    wanted = tie_reference.harmonic_difference(low, low + length)
    assert ties.harmonic_difference(low, low + length) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("low", [0, 15, 16, 17, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("length", [0, 1, 16, 17, 18, 1000, 200_000])
def test_harmonic_differences_far_out_equal_their_sums(low, length):
    wanted = tie_reference.harmonic_difference(low, low + length)
    assert ties.harmonic_difference(low, low + length) == pytest.approx(wanted, rel=1e-13)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_sum_of_precisions_in_a_tie_equals_its_twin(data):
    before = data.draw(st.integers(0, 200))
    found = data.draw(st.integers(0, before))
    n = data.draw(st.integers(1, 100))
    r, ranks = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    wanted = tie_reference.precision_sum(before, found, n, r, ranks)
    assert ties.precision_sum(before, found, n, r, ranks) == pytest.approx(wanted, rel=1e-11)


def test_worked_example():
    # 1 relevant of 2, then 2 of 3, cut at 3: one rank of the second tie counts.
    total, relevant, cutoffs = np.array([[2, 3]]), np.array([[1, 2]]), np.array([3])
    # First tie (1 + 1/2) / 2 = 3/4; rank 3 relevant with probability 2/3, precision then 2/3.
    assert filled(ties.sum_precisions, total, relevant, cutoffs)[0] == pytest.approx(3 / 4 + 4 / 9)
    assert filled(ties.count_found, total, relevant, cutoffs)[0] == pytest.approx(1 + 2 / 3)
    # With the hit at rank 3, 2/3 of the time: (3/4 + 2/3) / 2; without it 3/4.
    mean = 2 / 3 * (3 / 4 + 2 / 3) / 2 + 1 / 3 * 3 / 4
    assert filled(ties.mean_precisions, total, relevant, cutoffs)[0] == pytest.approx(mean)
    # Best: the first at rank 1, no other: 1.  Worst: the first at rank 2, none at 3: 1/2.
    for best, value in ((True, 1), (False, 1 / 2)):
        out = filled(ties.extreme_mean_precisions, total, relevant, cutoffs, best)
        assert out[0] == pytest.approx(value)
