"""Ground truth by distance against the direct formula, pair by pair."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from truth import gains_of

from bittern import InputError, Relevance, ball_radius

TINY = 1 << 20  # the least memory that may be asked for


def squares(queries, database):
    """Exact squared distances of pairs, in rational arithmetic."""
    exact = [[Fraction(float(x)) for x in row] for row in queries]
    others = [[Fraction(float(x)) for x in row] for row in database]
    return [[sum((a - b) ** 2 for a, b in zip(q, d, strict=True)) for d in others] for q in exact]


def textbook_ball(queries, database, radius):
    """1 where the exact distance is at most the radius."""
    limit = Fraction(float(radius)) ** 2
    return [[int(s <= limit) for s in row] for row in squares(queries, database)]


def textbook_neighbours(queries, database, k):
    """1 for the k first by exact distance, then by position."""
    rows = []
    for row in squares(queries, database):
        first = sorted(range(len(row)), key=lambda i: (row[i], i))[:k]
        rows.append([int(i in first) for i in range(len(row))])
    return rows


def grid(side):
    """Points of a square grid, where distances tie."""
    axis = np.arange(side, dtype=float)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


GRID = grid(8)


def test_the_ball_includes_its_rim():
    # 3² + 4² = 5², and 5² + 0²; but 4² + 4² = 32 > 25.
    database = [[3, 4], [4, 3], [5, 0], [0, -5], [4, 4], [5, 1], [0, 0]]
    relevance = Relevance.from_ball([[0, 0]], database, 5)
    assert gains_of(relevance).tolist() == [[1, 1, 1, 1, 0, 0, 1]]


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 4.999999999, 5.000000001, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_balls_on_a_grid(radius, dtype):
    points = GRID.astype(dtype)
    relevance = Relevance.from_ball(points[:20], points, radius)
    assert gains_of(relevance).tolist() == textbook_ball(GRID[:20], GRID, radius)


@pytest.mark.parametrize("square", [2, 3, 5, 6, 7, 10, 11, 13, 14])
def test_a_radius_that_is_the_distance_of_a_pair_includes_the_pair(square):
    # Distances as everybody computes them: the rounded root, whose square may round below.
    ones = np.zeros((1, 20))
    ones[0, :square] = 1
    origin = np.zeros((1, 20))
    relevance = Relevance.from_ball(origin, ones, np.linalg.norm(ones[0]))
    assert gains_of(relevance).tolist() == [[1]]


eighths = st.integers(-800, 800).map(lambda i: i / 8)  # their squares are exact


@given(arrays(np.float64, (3, 2), elements=eighths), st.integers(0, 2))
@settings(deadline=None, max_examples=200)
def test_a_radius_measured_from_the_data_includes_what_it_was_measured_from(points, which):
    distance = np.sqrt(((points - points[0]) ** 2).sum(axis=1))
    relevance = Relevance.from_ball(points[:1], points, distance[which])
    assert gains_of(relevance)[0, which] == 1


@pytest.mark.parametrize("offset", [1e6, -1e6, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_common_offset_changes_nothing(offset, dtype):
    # |x|² + |y|² - 2xy loses all digits here: distances are 1, squares of norms 10¹² and more.
    points = (GRID + offset).astype(dtype)
    exact = points.astype(np.float64)
    for radius in (1, math.sqrt(2) + 1e-9, 5):
        relevance = Relevance.from_ball(points[:10], points, radius)
        assert gains_of(relevance).tolist() == textbook_ball(exact[:10], exact, radius)
    relevance = Relevance.from_neighbours(points[:10], points, 6)
    assert gains_of(relevance).tolist() == textbook_neighbours(exact[:10], exact, 6)


def test_queries_far_from_the_database():
    # The centre is the database's, so that here the queries' norms are large.
    database, queries = GRID, GRID[:4] + 1e7
    relevance = Relevance.from_neighbours(queries, database, 5)
    assert gains_of(relevance).tolist() == textbook_neighbours(queries, database, 5)


def test_one_far_point_does_not_blur_the_others():
    database = np.concatenate([GRID * 1e-3, [[1e6, 1e6]]])
    relevance = Relevance.from_ball(database[:10], database, 1.5e-3)
    assert gains_of(relevance).tolist() == textbook_ball(database[:10], database, 1.5e-3)
    relevance = Relevance.from_neighbours(database[:10], database, 5)
    assert gains_of(relevance).sum(axis=1).tolist() == [5] * 10


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_vectors_whose_squares_leave_double_precision_are_right_or_refused(scale):
    points = GRID[:9] * scale
    try:
        ball = Relevance.from_ball(points, points, 1.5 * scale)
        nearest = Relevance.from_neighbours(points, points, 3)
    except InputError:
        return
    assert gains_of(ball).tolist() == textbook_ball(GRID[:9], GRID[:9], 1.5)
    assert gains_of(nearest).tolist() == textbook_neighbours(GRID[:9], GRID[:9], 3)


def test_balls_and_neighbours_within_little_memory_are_the_same():
    rng = np.random.default_rng(0)
    database = rng.standard_normal((3000, 40)).astype(np.float32)
    database[1500:] = np.round(database[1500:])
    queries = database[::50]
    wide = (
        Relevance.from_ball(queries, database, 7.5),
        Relevance.from_neighbours(queries, database, 9),
    )
    tight = (
        Relevance.from_ball(queries, database, 7.5, memory=TINY),
        Relevance.from_neighbours(queries, database, 9, memory=TINY),
    )
    for a, b in zip(wide, tight, strict=True):
        np.testing.assert_array_equal(gains_of(a), gains_of(b))
    assert 0 < gains_of(wide[0]).mean() < 1  # not vacuous
    distances = np.linalg.norm(queries[:, None].astype(float) - database, axis=-1)
    np.testing.assert_array_equal(gains_of(wide[0]), distances <= 7.5)


@pytest.mark.parametrize("k", [1, 3, 10, 63, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_on_a_grid_tie_by_position(k, dtype):
    points = GRID.astype(dtype)
    relevance = Relevance.from_neighbours(points[:20], points, k)
    assert gains_of(relevance).tolist() == textbook_neighbours(GRID[:20], GRID, k)


def test_equal_distances_are_taken_by_position_and_not_by_chance():
    database = np.array([[1.0], [-1.0], [1.0], [-1.0], [0.0]])
    relevance = Relevance.from_neighbours([[0.0]], database, 3)
    assert gains_of(relevance).tolist() == [[1, 1, 0, 0, 1]]


def test_all_points_equal():
    database = np.full((6, 3), 0.1)
    relevance = Relevance.from_neighbours(database[:2], database, 4)
    assert gains_of(relevance).tolist() == [[1, 1, 1, 1, 0, 0]] * 2
    assert gains_of(Relevance.from_ball(database[:2], database, 0)).all()


@given(
    arrays(np.float64, (4, 2), elements=st.integers(-3, 3).map(float)),
    arrays(np.float64, (9, 2), elements=st.integers(-3, 3).map(float)),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.5, 1e5]),  # exact in binary, so that equal distances stay equal
)
@settings(deadline=None, max_examples=80)
def test_any_grid_points(queries, database, k, offset):
    queries, database = queries + offset, database + offset
    relevance = Relevance.from_neighbours(queries, database, k)
    assert gains_of(relevance).tolist() == textbook_neighbours(queries, database, k)
    relevance = Relevance.from_ball(queries, database, 2)
    assert gains_of(relevance).tolist() == textbook_ball(queries, database, 2)


@pytest.mark.parametrize(
    ("radii", "gains"), [([1, 2, 3, 5], [10, 5, 2, 1]), ([5, 1, 3, 2], [1, 10, 2, 5])]
)
def test_the_gain_is_that_of_the_smallest_ball(radii, gains):
    relevance = Relevance.from_thresholds(GRID[:10], GRID, radii, gains)
    expected = np.zeros((10, 64), int)
    for radius, gain in ((5, 1), (3, 2), (2, 5), (1, 10)):
        expected[np.array(textbook_ball(GRID[:10], GRID, radius)) == 1] = gain
    np.testing.assert_array_equal(gains_of(relevance), expected)
    assert relevance.gains.tolist() == [0, 1, 2, 5, 10]
    totals = [[np.sum(row == gain) for gain in (0, 1, 2, 5, 10)] for row in expected]
    assert relevance.totals().tolist() == totals


def test_graded_balls_within_little_memory_are_the_same():
    points = grid(60)
    arguments = (points[::200], points, [1, 5, 13], [9, 4, 1])
    wide, tight = (Relevance.from_thresholds(*arguments, memory=m) for m in (1 << 28, TINY))
    np.testing.assert_array_equal(gains_of(wide), gains_of(tight))
    assert wide.totals().all()


def test_a_ball_that_holds_nothing_is_nothing_relevant():
    relevance = Relevance.from_ball([[0.0]], [[9.0], [8.0]], 1)
    assert relevance.n_relevant.tolist() == [0]
    assert relevance.gains.tolist() == [0, 1]


def cosine_distances(queries, database):
    """One minus the cosine, as scipy and scikit-learn define cosine distance."""
    dot = queries @ database.T
    norms = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(database, axis=1)
    return 1 - dot / norms


def test_cosine_neighbours_ignore_length():
    rng = np.random.default_rng(0)
    queries, database = rng.standard_normal((5, 6)), rng.standard_normal((30, 6))
    database *= rng.uniform(0.01, 100, (30, 1))
    relevance = Relevance.from_neighbours(queries, database, 7, metric="cosine")
    rank = cosine_distances(queries, database).argsort(axis=1).argsort(axis=1)
    np.testing.assert_array_equal(gains_of(relevance), rank < 7)
    euclidean = Relevance.from_neighbours(queries, database, 7)
    assert (gains_of(euclidean) != gains_of(relevance)).any()  # it does matter here


@pytest.mark.parametrize("radius", [0.1, 0.5, 1.2])
def test_the_radius_of_a_cosine_ball_is_one_minus_the_cosine(radius):
    rng = np.random.default_rng(0)
    queries, database = rng.standard_normal((5, 3)), rng.standard_normal((60, 3))
    relevance = Relevance.from_ball(queries, database, radius, metric="cosine")
    np.testing.assert_array_equal(
        gains_of(relevance), cosine_distances(queries, database) <= radius
    )


def test_a_right_angle_is_at_cosine_distance_one():
    relevance = Relevance.from_ball([[1.0, 0.0]], [[0.0, 3.0], [-1.0, 0.0]], 1, metric="cosine")
    assert gains_of(relevance).tolist() == [[1, 0]]


@pytest.mark.parametrize("side", ["queries", "database"])
def test_a_row_of_zeros_has_no_cosine(side):
    zero, good = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0, 0.0]])
    pair = (zero, good) if side == "queries" else (good, zero)
    with pytest.raises(InputError, match="cosine distance needs rows that are not all zero"):
        Relevance.from_neighbours(*pair, 1, metric="cosine")


def textbook_radius(vectors, neighbours, chosen):
    """Mean over the chosen points of the distance to the n-th nearest other point."""
    distances = []
    for i in chosen:
        others = [math.dist(vectors[i], vectors[j]) for j in range(len(vectors)) if j != i]
        distances.append(sorted(others)[neighbours - 1])
    return sum(distances) / len(distances)


def test_ball_radius_worked_example():
    # On a line at 0, 1, 3: the nearest others are 1, 1 and 2 away; the second 3, 2 and 3.
    line = [[0.0], [1.0], [3.0]]
    assert ball_radius(line, neighbours=1) == pytest.approx(4 / 3)
    assert ball_radius(line, neighbours=2) == pytest.approx(8 / 3)


@pytest.mark.parametrize("neighbours", [1, 2, 7, 39])
def test_ball_radius_is_the_textbook_mean(neighbours):
    vectors = np.random.default_rng(neighbours).standard_normal((40, 5))
    expected = textbook_radius(vectors.tolist(), neighbours, range(40))
    assert ball_radius(vectors, neighbours, sample=100) == pytest.approx(expected, rel=1e-12)
    assert ball_radius(vectors, neighbours, sample=100, memory=TINY) == pytest.approx(expected)


def test_a_point_is_not_its_own_neighbour_but_its_copies_are():
    assert ball_radius([[0.0], [5.0]], neighbours=1) == 5
    assert ball_radius([[0.0], [0.0], [5.0], [5.0]], neighbours=1) == 0
    # The second nearest of 0, 0, 0 is a copy; of 6 it is 6 away: (0 + 0 + 0 + 6) / 4.
    assert ball_radius([[0.0], [0.0], [0.0], [6.0]], neighbours=2) == 1.5


def test_ball_radius_of_a_sample_is_one_of_the_possible_means():
    # Each point has a nearest other at a distance of its own: 1, 10, 100.
    vectors = np.array([[0.0], [1.0], [1000.0], [1010.0], [5000.0], [5100.0]])
    values = {ball_radius(vectors, 1, sample=1, random_state=seed) for seed in range(30)}
    assert values == {1.0, 10.0, 100.0}
    pairs = {ball_radius(vectors, 1, sample=6, random_state=seed) for seed in range(5)}
    assert pairs == {37.0}  # all points, (1 + 1 + 10 + 10 + 100 + 100) / 6, each once


def test_ball_radius_repeats_with_its_seed():
    vectors = np.random.default_rng(0).standard_normal((200, 4))
    first = ball_radius(vectors, 5, sample=10, random_state=3)
    assert first == ball_radius(vectors, 5, sample=10, random_state=3)
    assert first == ball_radius(vectors, 5, sample=10, random_state=3, memory=TINY)
    assert first != ball_radius(vectors, 5, sample=10, random_state=4)


def test_ball_radius_far_from_the_origin():
    points = GRID + 1e6
    assert ball_radius(points, 2) == ball_radius(GRID, 2)
    assert ball_radius(points, 2) == pytest.approx(textbook_radius(GRID.tolist(), 2, range(64)))


def test_a_ball_of_that_radius_holds_about_so_many():
    vectors = np.random.default_rng(0).uniform(size=(2000, 2))
    radius = ball_radius(vectors, neighbours=50, sample=100)
    relevance = Relevance.from_ball(vectors[:300], vectors, radius).excluding(np.arange(300))
    assert relevance.n_relevant.mean() == pytest.approx(50, rel=0.1)


def test_vectors_are_left_as_they_were():
    points = GRID.copy()
    points.flags.writeable = False
    Relevance.from_neighbours(points, points, 3)
    Relevance.from_ball(points, points, 3)
    ball_radius(points, 3)
    np.testing.assert_array_equal(points, GRID)
