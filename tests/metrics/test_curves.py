from fractions import Fraction

import numpy as np
import pytest
from cases import large_profile, one_value, profile_of, rankings_with_ties
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

import bittern as bt
from bittern.errors import InputError

LECTURE = [[1], [1], [0], [1], *([[0]] * 10), [1], *([[0]] * 5)]  # relevant at 1, 2, 4, 15 of 20


def interpolated(ties, missing, recall):
    """The lecture's p(r) = P_i for R_{i-1} < r ≤ R_i, with points at the ends of ties."""
    relevant = sum(map(sum, ties)) + len(missing)
    found = retrieved = 0
    for tie in ties:
        found, retrieved = found + sum(tie), retrieved + len(tie)
        if sum(tie) and recall <= Fraction(found, relevant):
            return found / retrieved
    return 0.0


def random_pairs(random_state, real=False):
    """Distances and gains of five queries by thirty items, with many ties."""
    rng = np.random.default_rng(random_state)
    distances = rng.integers(0, 9, (5, 30))
    return distances / 4 - 0.1 if real else distances, rng.integers(0, 2, (5, 30))


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("random_state", range(5))
def test_pr_curve_is_the_pooled_curve_of_scikit_learn(random_state, real):
    distances, gains = random_pairs(random_state, real)
    profile = bt.TieProfile.from_distances(distances, bt.Relevance.from_matrix(gains))
    curve = bt.pr_curve(profile)
    precision, recall, thresholds = precision_recall_curve(gains.ravel(), -distances.ravel())
    # Theirs runs from the farthest to the nearest, and ends in a point of its own making.
    used = np.isin(curve.radius, -thresholds)
    np.testing.assert_array_equal(curve.radius[used], -thresholds[::-1])
    np.testing.assert_allclose(curve.precision[used], precision[-2::-1])
    np.testing.assert_allclose(curve.recall[used], recall[-2::-1])
    assert len(thresholds) > 5


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("random_state", range(5))
def test_auprc_is_the_pooled_average_precision_of_scikit_learn(random_state, real):
    distances, gains = random_pairs(random_state, real)
    profile = bt.TieProfile.from_distances(distances, bt.Relevance.from_matrix(gains))
    wanted = average_precision_score(gains.ravel(), -distances.ravel())
    assert bt.evaluate(profile, "auprc")["auprc"].mean == pytest.approx(wanted)


def test_pr_curve_worked_example():
    # Two queries, radii 0 … 2.  TP by radius 1, 2, 3; retrieved 2, 3, 5; relevant 3 + 1 nowhere.
    curve = bt.pr_curve(profile_of(([[1], [1], [0]], []), ([[0], [], [1]], [1])))
    np.testing.assert_allclose(curve.radius, [0, 1, 2])
    np.testing.assert_allclose(curve.precision, [1 / 2, 2 / 3, 3 / 5])
    np.testing.assert_allclose(curve.recall, [1 / 4, 2 / 4, 3 / 4])
    assert len(curve) == 3


def test_auprc_worked_example():
    # The curve above: steps of recall 1/4 each, at 1/2, 2/3, 3/5.
    profile = profile_of(([[1], [1], [0]], []), ([[0], [], [1]], [1]))
    steps = (1 / 2 + 2 / 3 + 3 / 5) / 4
    # Trapezoids: the first step at 1/2, then at (1/2 + 2/3) / 2 and (2/3 + 3/5) / 2.
    trapezoids = (1 / 2 + (1 / 2 + 2 / 3) / 2 + (2 / 3 + 3 / 5) / 2) / 4
    scores = bt.evaluate(profile, ["auprc", "auprc:trapezoid"])
    assert scores["auprc"].mean == pytest.approx(steps)
    assert scores["auprc:trapezoid"].mean == pytest.approx(trapezoids)
    assert scores["auprc"].per_query is None


def test_precision_is_nan_while_nothing_is_retrieved():
    curve = bt.pr_curve(profile_of(([[], [1]], [])))
    np.testing.assert_array_equal(curve.precision, [np.nan, 1])
    np.testing.assert_array_equal(curve.recall, [0, 1])


def test_nothing_relevant_anywhere_leaves_the_areas_undefined():
    scores = bt.evaluate(profile_of(([[0], [0]], [])), ["auprc", "auprc:trapezoid"])
    assert all(np.isnan(score.mean) and score.undefined == 1 for score in scores.values())


@pytest.mark.parametrize("dtype", [int, float])
def test_nothing_retrieved_has_an_area_of_zero(dtype):
    truth = bt.Relevance.from_matrix([[1, 0]])
    profile = bt.TieProfile.from_hits([[-1, -1]], np.zeros((1, 2), dtype), truth)
    for name in ("auprc", "auprc:trapezoid", "interpolated-ap", "ap"):
        assert bt.evaluate(profile, name)[name].mean == 0


def test_the_precision_of_real_distances_is_that_of_whole_ones():
    distances, gains = random_pairs(random_state=11)
    truth = bt.Relevance.from_matrix(gains)
    names = ["auprc", "auprc:trapezoid"]
    whole = bt.evaluate(bt.TieProfile.from_distances(distances, truth), names)
    real = bt.evaluate(bt.TieProfile.from_distances(distances * 0.5 + 0.1, truth), names)
    for name in names:
        assert real[name].mean == pytest.approx(whole[name].mean)


def test_the_lectures_table_of_precision_and_recall():
    # k: precision, recall; two digits, as written on the board.
    table = {
        1: (1, 0.25),
        2: (1, 0.5),
        3: (0.67, 0.5),
        4: (0.75, 0.75),
        5: (0.6, 0.75),
        6: (0.5, 0.75),
        14: (0.21, 0.75),
        15: (0.27, 1),
        16: (0.25, 1),
        20: (0.2, 1),
    }
    for k, (precision, recall) in table.items():
        assert round(one_value(f"precision@{k}", LECTURE), 2) == precision
        assert round(one_value(f"recall@{k}", LECTURE), 2) == recall


def test_the_lectures_worked_example_digit_by_digit():
    # R_i 0.25, 0.5, 0.75, 1 with P_i 1, 1, 0.75, 4/15 = 0.27.
    curve = bt.interpolated_pr_curve(profile_of((LECTURE, [])))
    wanted = [1, 1, 1, 1, 1, 1, 3 / 4, 3 / 4, 4 / 15, 4 / 15, 4 / 15]
    np.testing.assert_allclose(curve.recall, np.arange(11) / 10)
    np.testing.assert_allclose(curve.precision, wanted)
    assert curve.radius is None
    # Average precision of the lecture: (6 * 1 + 2 * 0.75 + 3 * 4/15) / 11 = 8.3 / 11.
    assert one_value("interpolated-ap", LECTURE) == pytest.approx(8.3 / 11)


def test_the_lectures_points_lie_on_its_curve():
    curve = bt.interpolated_pr_curve(profile_of((LECTURE, [])), [0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(curve.precision, [1, 1, 0.75, 4 / 15])
    beyond = bt.interpolated_pr_curve(profile_of((LECTURE, [])), [0.2501, 0.5001, 0.7501])
    np.testing.assert_allclose(beyond.precision, [1, 0.75, 4 / 15])


def test_two_queries_are_averaged_at_each_recall():
    # The second query: relevant at 1 and 3, so p = 1 up to recall 0.5, then 2/3.
    second = [[1], [0], [1], [0]]
    curve = bt.interpolated_pr_curve(profile_of((LECTURE, []), (second, [])), [0.5, 0.7, 1.0])
    wanted = [(1 + 1) / 2, (0.75 + 2 / 3) / 2, (4 / 15 + 2 / 3) / 2]
    np.testing.assert_allclose(curve.precision, wanted)


def test_queries_with_nothing_relevant_are_left_out_of_the_average():
    curve = bt.interpolated_pr_curve(profile_of((LECTURE, []), ([[0], [0]], [])), [0.7])
    np.testing.assert_allclose(curve.precision, [0.75])
    nothing = bt.interpolated_pr_curve(profile_of(([[0], [0]], [])), [0.7])
    np.testing.assert_array_equal(nothing.precision, [np.nan])


@settings(deadline=None)
@given(rankings_with_ties())
def test_interpolation_follows_the_lectures_rule(case):
    curve = bt.interpolated_pr_curve(profile_of(case))
    wanted = [interpolated(*case, Fraction(tenth, 10)) for tenth in range(11)]
    np.testing.assert_allclose(curve.precision, wanted)
    assert one_value("interpolated-ap", *case) == pytest.approx(np.mean(wanted))


def test_a_tie_is_one_point():
    # Both ties whole: 1 of 2 at recall 1/2, then 2 of 4.
    curve = bt.interpolated_pr_curve(profile_of(([[1, 0], [1, 0]], [])), [0, 0.5, 0.51])
    np.testing.assert_allclose(curve.precision, [1 / 2, 1 / 2, 2 / 4])
    # A tie without anything relevant is not a point: recall does not grow there.
    curve = bt.interpolated_pr_curve(profile_of(([[0], [1, 0]], [])), [0])
    np.testing.assert_allclose(curve.precision, [1 / 3])


def test_a_recall_never_reached_has_precision_zero():
    curve = bt.interpolated_pr_curve(profile_of(([[1], [0]], [1])), [0.5, 0.6, 1])
    np.testing.assert_allclose(curve.precision, [1, 0, 0])


@pytest.mark.parametrize("n", [6, 11, 21, 101])
@pytest.mark.parametrize("relevant", [1, 3, 7, 10, 20, 30, 10**5, 10**8, 10**9])
def test_recalls_from_linspace_hit_the_points_that_they_name(n, relevant):
    # 0.1 * 3 is a little above 0.3; one relevant item more must not be asked for.  A tenth of the
    # relevant items in each tie (if it divides), precision falling from tie to tie.
    parts = 10 if relevant % 10 == 0 else relevant
    size = relevant // parts
    profile = large_profile([(size * (i + 1), size) for i in range(parts)])
    curve = bt.interpolated_pr_curve(profile, np.linspace(0, 1, n))
    for j, value in enumerate(curve.precision):
        tie = max(1, -(-parts * j // (n - 1)))  # the first with i / parts ≥ j / (n - 1)
        assert value == pytest.approx(tie / sum(range(1, tie + 1))), j


@pytest.mark.parametrize("recalls", [[-0.1], [1.1], [], [[0.5]], [np.nan]])
def test_recalls_outside_zero_to_one_are_refused(recalls):
    with pytest.raises(InputError, match=r"interpolated_pr_curve: recalls must .*\[0, 1\]"):
        bt.interpolated_pr_curve(profile_of((LECTURE, [])), recalls)


def test_one_recall_gives_a_curve_of_one_point():
    assert len(bt.interpolated_pr_curve(profile_of((LECTURE, [])), 0.5)) == 1


def test_a_compact_profile_has_no_curve_over_radius():
    distances, gains = random_pairs(random_state=2, real=True)
    truth = bt.Relevance.from_matrix(gains)
    compact = bt.TieProfile.from_distances(distances, truth, compact=True)
    with pytest.raises(InputError, match="compact=False"):
        bt.pr_curve(compact)
    plain = bt.TieProfile.from_distances(distances, truth)
    np.testing.assert_allclose(
        bt.interpolated_pr_curve(compact).precision, bt.interpolated_pr_curve(plain).precision
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(rankings_with_ties(), min_size=1, max_size=4))
def test_recall_never_falls_and_ends_at_what_was_retrieved(cases):
    curve = bt.pr_curve(profile_of(*cases))
    assert (np.diff(curve.recall) >= 0).all()
    found = sum(sum(map(sum, ties)) for ties, _ in cases)
    missing = sum(len(missing) for _, missing in cases)
    assert curve.recall[-1] == pytest.approx(found / (found + missing))
