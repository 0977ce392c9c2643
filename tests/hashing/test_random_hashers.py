"""Random hash functions against the probabilities and matrices of their definitions."""

import math

import numpy as np
import pytest
import scipy.linalg

from bittern import InputError
from bittern.hashing.klsh import KLSH
from bittern.hashing.lsh import LSH, SKLSH, PStableLSH, square_spread

MANY = 4096  # bits: a share of them is within .03 of its probability
X = np.random.default_rng(0).standard_normal((50, 6))


def pair_at(distance, dim=6):
    """Two points that far apart, in a random direction from a random place."""
    rng = np.random.default_rng(1)
    x, way = rng.standard_normal((2, dim))
    return np.stack([x, x + distance * way / np.linalg.norm(way)])


def share_that_differs(hasher, pair):
    first, second = hasher.transform(pair)
    return (first != second).mean()


@pytest.mark.parametrize("angle", [0.1, 0.7, math.pi / 2, 2.5])
def test_lsh_bits_differ_as_often_as_the_angle_says(angle):
    pair = np.array([[1.0, 0, 0], [math.cos(angle), math.sin(angle), 0]])
    hasher = LSH(MANY, centre=False).fit(np.eye(3))
    assert share_that_differs(hasher, 5 * pair) == pytest.approx(angle / math.pi, abs=0.03)


def test_lsh_sees_angles_from_the_mean():
    hasher = LSH(MANY).fit(X + 100)
    middle = (X + 100).mean(axis=0)
    across = np.stack([middle + 1, middle - 1])
    assert share_that_differs(hasher, across) == 1  # at angle π from the mean


def stripes_differ(ratio, steps=200_000):
    """Chance that a normal step of deviation ``ratio`` stripes crosses an odd number of edges."""
    rng = np.random.default_rng(2)
    start, step = rng.random(steps), ratio * rng.standard_normal(steps)
    return (np.floor(start + step) % 2 == 1).mean()


@pytest.mark.parametrize("distance", [0.1, 0.5, 1.0, 3.0])
def test_p_stable_bits_differ_as_often_as_odd_crossings(distance):
    hasher = PStableLSH(MANY, width=2.0).fit(X)
    share = share_that_differs(hasher, pair_at(distance))
    assert share == pytest.approx(stripes_differ(distance / 2), abs=0.03)
    c, odd = distance / 2, np.arange(1, 400, 2)  # the series of the docstring
    series = 0.5 - 4 / math.pi**2 * (np.exp(-((odd * math.pi * c) ** 2) / 2) / odd**2).sum()
    assert stripes_differ(c) == pytest.approx(series, abs=0.01)


def test_p_stable_bits_are_the_parities_of_the_cells():
    hasher = PStableLSH(40, width=0.7).fit(X)
    cells = np.floor((X @ hasher.directions_ + hasher.shifts_) / 0.7).astype(int)
    np.testing.assert_array_equal(hasher.transform(X), cells % 2 == 1)
    assert np.ptp(cells) > 5  # not vacuous: many stripes
    assert (hasher.shifts_ >= 0).all() and (hasher.shifts_ < 0.7).all()


@pytest.mark.parametrize("distance", [0.2, 1.0, 2.0, 6.0])
def test_sklsh_bits_differ_as_often_as_the_kernel_says(distance):
    gamma, m = 0.5, np.arange(1, 2000)
    kernel = np.exp(-gamma * (m * distance) ** 2 / 2)
    expected = 8 / math.pi**2 * ((1 - kernel) / (4 * m**2 - 1)).sum()
    hasher = SKLSH(MANY, gamma=gamma).fit(X)
    assert share_that_differs(hasher, pair_at(distance)) == pytest.approx(expected, abs=0.03)


def test_sklsh_bits_are_signs_of_shifted_cosines():
    hasher = SKLSH(40).fit(X)
    values = np.cos(X @ hasher.directions_ + hasher.phases_) + hasher.thresholds_
    np.testing.assert_array_equal(hasher.transform(X), values > 0)
    assert hasher.thresholds_.min() < -0.5 and hasher.thresholds_.max() > 0.5


def mean_square_of_pairs(rows):
    return np.mean([((a - b) ** 2).sum() for a in rows for b in rows])


def test_widths_follow_from_the_mean_squared_distance_of_rows():
    assert square_spread(X) == pytest.approx(mean_square_of_pairs(X))
    assert PStableLSH(4).fit(X).width_ == pytest.approx(3 * math.sqrt(square_spread(X)))
    # Scaled rows get the same codes: γ and r scale with them.
    for hasher in (PStableLSH(64), SKLSH(64)):
        small = hasher.fit(X).transform(X)
        np.testing.assert_array_equal(hasher.fit(8 * X).transform(8 * X), small)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_equal_up_to_rounding_have_no_spread(dtype):
    assert square_spread(np.full((30, 7), 0.1, dtype)) == 1.0


def kernel_of(a, b, kernel, width):
    if kernel == "gaussian":
        return math.exp(-((a - b) ** 2).sum() / (2 * width))
    scale = np.linalg.norm(a) * np.linalg.norm(b) if kernel == "cosine" else 1
    return a @ b / scale


def centred_kernels(x, anchors, kernel, width):
    """Kernel of x with each anchor, both seen from the anchors' mean in the kernel's space."""
    p = len(anchors)
    K = np.array([[kernel_of(a, b, kernel, width) for b in anchors] for a in anchors])
    k = np.array([kernel_of(x, a, kernel, width) for a in anchors])
    return np.array([k[i] - k.mean() - K[:, i].sum() / p + K.mean() for i in range(p)]), K


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "cosine"])
def test_klsh_bits_are_sides_in_the_space_of_the_kernel(kernel):
    hasher = KLSH(20, kernel=kernel, width=2.0, n_anchors=12, n_chosen=4).fit(X)
    for x in X[:10]:
        centred, _ = centred_kernels(x, hasher.anchors_, kernel, 2.0)
        np.testing.assert_array_equal(
            hasher.transform(x[None])[0], centred @ hasher.projection_ > 0
        )


def test_klsh_weights_are_the_inverse_root_of_a_choice_of_anchors():
    hasher = KLSH(30, n_anchors=20, n_chosen=5).fit(X)
    centred = [
        centred_kernels(a, hasher.anchors_, "gaussian", hasher.width_)[0] for a in hasher.anchors_
    ]
    root = scipy.linalg.sqrtm(np.array(centred) + 1e-12 * np.eye(20)).real
    chosen = root @ hasher.projection_ + 5 / 20  # e_S, whose mean the centred kernel cannot see
    np.testing.assert_allclose(chosen, np.round(chosen), atol=1e-4)
    np.testing.assert_array_equal(np.round(chosen).sum(axis=0), 5)
    assert len(np.unique(np.round(chosen), axis=1).T) > 20  # the bits choose differently


def test_klsh_takes_the_width_from_distances_to_its_anchors():
    hasher = KLSH(4, n_anchors=1000).fit(X)
    assert len(hasher.anchors_) == len(X)
    assert hasher.width_ == pytest.approx(mean_square_of_pairs(X))


def test_klsh_with_few_anchors_chooses_at_most_half_of_them():
    # All four together would give no direction: nothing but rounding.
    hasher = KLSH(16, n_anchors=4, n_chosen=30).fit(X)
    assert np.linalg.norm(hasher.projection_, axis=0).min() > 0.1
    bits = hasher.transform(X)
    assert bits.any(axis=0).all() and not bits.all(axis=0).any()


@pytest.mark.parametrize("hasher", [LSH(9), PStableLSH(9), SKLSH(9), KLSH(9)])
def test_rows_that_are_all_equal_get_one_code(hasher):
    rows = np.full((20, 5), 0.3)
    assert len(np.unique(hasher.fit(rows).transform(rows), axis=0)) == 1
    assert hasher.fit(rows[:1]).transform(rows[:1]).shape == (1, 9)


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (PStableLSH(width=0), r"PStableLSH: width must be above 0, got 0"),
        (PStableLSH(width="wide"), r"PStableLSH: width must be a number, got 'wide'"),
        (SKLSH(gamma=-1.0), r"SKLSH: gamma must be above 0, got -1.0"),
        (SKLSH(gamma=float("nan")), r"SKLSH: gamma must be a number, got nan"),
        (
            KLSH(kernel="rbf"),
            r"KLSH: kernel must be one of 'gaussian', 'linear', 'cosine', got 'rbf'",
        ),
        (KLSH(width=-2), r"KLSH: width must be above 0, got -2"),
        (KLSH(n_anchors=0), r"KLSH: n_anchors must be at least 1, got 0"),
        (KLSH(n_chosen=2.5), r"KLSH: n_chosen must be a whole number at least 1, got 2.5"),
        (LSH(0), r"LSH: n_bits must be between 1 and 4096, got 0"),
        (SKLSH(random_state=-1), r"SKLSH: random_state must be at least 0, got -1"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(InputError, match=says):
        hasher.fit(X)
