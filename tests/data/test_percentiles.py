"""Radii at percentiles of pair distances, against all distances at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

import bittern as bt
from bittern.data import percentiles
from bittern.data.percentiles import distance_percentiles
from bittern.errors import InputError

TINY = 1 << 20  # the least memory that may be asked for
PAPER = [5, 1, 0.2, 0.1]

points = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=30
)


@given(points, st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_equals_numpy_on_all_distances(vectors, wanted):
    expected = np.percentile(pdist(np.array(vectors, float)), wanted)
    np.testing.assert_allclose(distance_percentiles(vectors, wanted), expected, atol=1e-12)


def test_worked_example():
    # 0, 1, 3 on a line: distances 1, 2, 3.  The median is 2; a quarter of the way, at h = 0.5,
    # is 1.5; and half of the way between 2 and 3 at 75 %.
    radii = distance_percentiles([[0.0], [1.0], [3.0]], [50, 25, 75, 0, 100])
    assert radii.tolist() == [2.0, 1.5, 2.5, 1.0, 3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_does_not_change_the_radii(dtype):
    # 600 vectors have 180,000 pairs, more than a megabyte holds: they are found by their bits.
    vectors = np.random.default_rng(0).standard_normal((600, 16)).astype(dtype) + 5
    whole = distance_percentiles(vectors, PAPER)
    np.testing.assert_array_equal(distance_percentiles(vectors, PAPER, memory=TINY), whole)
    expected = np.percentile(pdist(vectors.astype(float)), PAPER)
    np.testing.assert_allclose(whole, expected, rtol=1e-13)


def test_radii_come_in_the_order_asked_for():
    vectors = np.random.default_rng(1).standard_normal((100, 4))
    down = distance_percentiles(vectors, PAPER)
    assert (np.diff(down) < 0).all()
    np.testing.assert_array_equal(distance_percentiles(vectors, PAPER[::-1]), down[::-1])


@pytest.mark.parametrize("memory", [TINY, 1 << 28])
def test_many_ties_are_exact(memory):
    # Points of a grid: a handful of different distances, each very often; rounding must not
    # decide between them, nor must a far-off outlier that spoils the matrix products.
    grid = np.random.default_rng(2).integers(0, 4, (700, 3)).astype(float)
    grid[0] = 1e6
    squares = pdist(grid, "sqeuclidean")
    for p in (1, 10, 30, 60, 90):
        rank = (len(squares) - 1) * p / 100
        expected = np.sqrt(np.sort(squares)[[int(rank), int(rank) + 1]])
        (radius,) = distance_percentiles(grid, [p], memory=memory)
        assert expected[0] <= radius <= expected[1]


def test_a_pair_at_just_the_radius_is_within_it():
    # The distance of two random rows is the percentile 50 of one pair.
    rng = np.random.default_rng(6)
    for dtype in (np.float32, np.float64):
        for _ in range(100):
            rows = rng.standard_normal((2, 37)).astype(dtype)
            (radius,) = distance_percentiles(rows, [50])
            relevance = bt.Relevance.from_ball(rows[:1], rows[1:], radius)
            assert relevance.gains[relevance.block(slice(0, 1))].tolist() == [[1]]


def test_it_feeds_graded_balls():
    vectors = np.random.default_rng(3).standard_normal((300, 8))
    radii = distance_percentiles(vectors, PAPER)
    relevance = bt.Relevance.from_thresholds(vectors, vectors, radii, gains=[1, 2, 5, 10])
    gains = relevance.gains[relevance.block(slice(0, 300))]
    off = gains[np.triu_indices(300, k=1)]
    # Of 44,850 pairs 5 % have a gain, 1 % at least 2, 0.2 % at least 5 and 0.1 % have 10.
    shares = [np.mean(off >= gain) for gain in (1, 2, 5, 10)]
    np.testing.assert_allclose(shares, [0.05, 0.01, 0.002, 0.001], atol=1e-4)


def test_a_sample_of_pairs_comes_near():
    vectors = np.random.default_rng(4).standard_normal((500, 8))
    exact = distance_percentiles(vectors, PAPER)
    sampled = distance_percentiles(vectors, PAPER, sample=50_000, random_state=1)
    np.testing.assert_allclose(sampled, exact, rtol=0.1)
    assert (sampled != exact).all()
    again = distance_percentiles(vectors, PAPER, sample=50_000, random_state=1, memory=TINY)
    np.testing.assert_array_equal(sampled, again)
    other = distance_percentiles(vectors, PAPER, sample=50_000, random_state=2)
    assert (other != sampled).any()


def test_a_sample_of_all_pairs_is_exact():
    vectors = np.random.default_rng(5).standard_normal((20, 3))
    exact = distance_percentiles(vectors, PAPER)
    np.testing.assert_array_equal(distance_percentiles(vectors, PAPER, sample=190), exact)


def test_sampled_pairs_are_pairs_of_different_rows():
    assert distance_percentiles(np.eye(3), [0, 100], sample=2).tolist() == [np.sqrt(2)] * 2


def test_equal_vectors_have_radius_zero():
    assert distance_percentiles(np.ones((9, 2)), [5, 100]).tolist() == [0.0, 0.0]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 1e-300, 3.0, 7e200]), min_size=1, max_size=60),
    st.data(),
)
def test_order_statistics_by_bits(numbers, data):
    ranks = data.draw(st.lists(st.integers(0, len(numbers) - 1), min_size=1, max_size=4))
    array = np.array(numbers)

    def chunks():
        return iter(np.array_split(array, 3))

    for memory in (0, 64, 1 << 20):  # down to the last bit; some kept on the way; all kept
        found = percentiles._by_digits(chunks, np.array(ranks), memory)
        np.testing.assert_array_equal(found, np.sort(array)[ranks])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: distance_percentiles([[1.0]], [5]), r"at least 2 training vectors, got 1"),
        (lambda: distance_percentiles(np.eye(3), [101]), r"numbers from 0 to 100, got \[101\]"),
        (lambda: distance_percentiles(np.eye(3), []), r"a list of numbers from 0 to 100"),
        (lambda: distance_percentiles(np.eye(3), [np.nan]), r"numbers from 0 to 100"),
        (lambda: distance_percentiles(np.eye(3), 5), r"a list of numbers"),
        (lambda: distance_percentiles(np.eye(3), [5], sample=0), r"sample must be at least 1"),
        (lambda: distance_percentiles(np.eye(3), [5], memory=9), r"memory must be at least"),
        (lambda: distance_percentiles([1.0, 2.0], [5]), r"must be 2-D"),
        (
            lambda: distance_percentiles([[1e200], [0.0]], [5]),
            r"the squares of train_vectors overflow",
        ),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, says):
    with pytest.raises(InputError, match=says):
        call()
