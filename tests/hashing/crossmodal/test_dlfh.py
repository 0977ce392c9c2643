"""DLFH: its steps against brute force over a bit, and its likelihood."""

import itertools

import numpy as np
import pytest

import bittern as bt
from bittern.hashing.crossmodal import DLFH
from bittern.hashing.crossmodal.dlfh import likelier_codes

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 60)
IMAGES = rng.standard_normal((60, 5)) + 2 * rng.standard_normal((3, 5))[LABELS] + 7
TEXTS = 20 * (rng.standard_normal((60, 4)) + 2 * rng.standard_normal((3, 4))[LABELS])


def signs(n, b):
    return rng.choice([-1.0, 1.0], (n, b))


def likelihood(U, V, S, weights, strength):
    theta = strength / U.shape[1] * U @ V.T
    return (weights * (S * theta - np.logaddexp(0, theta))).sum()


def test_one_bit_maximises_the_quadratic_bound():
    U, V, S, strength = signs(4, 1), signs(5, 1), (rng.random((4, 5)) < 0.4) * 1.0, 3.0
    weights = rng.random((4, 5))
    theta = strength * U @ V.T
    slope = strength * (weights * (S - 1 / (1 + np.exp(-theta)))) @ V
    curvature = strength**2 / 4 * weights.sum(axis=1, keepdims=True)

    def bound(new):
        return (slope * (new - U) - curvature / 2 * np.square(new - U)).sum()

    best = max(itertools.product((-1.0, 1.0), repeat=4), key=lambda c: bound(np.array(c)[:, None]))
    np.testing.assert_array_equal(likelier_codes(U, V, S, weights, strength)[:, 0], best)


@pytest.mark.parametrize("strength", [1.0, 8.0, 50.0])
def test_the_likelihood_never_falls(strength):
    for _ in range(20):
        U, V, S = signs(12, 6), signs(9, 6), (rng.random((12, 9)) < 0.4) * 1.0
        weights = rng.random((12, 9))
        better = likelier_codes(U, V, S, weights, strength)
        assert set(np.unique(better)) <= {-1, 1}
        before, after = (likelihood(codes, V, S, weights, strength) for codes in (U, better))
        assert after >= before - 1e-9


def test_balance_keeps_the_codes_from_the_trivial_solution():
    y = np.arange(60) // 2  # pairs of pairs: few are similar
    products = {}
    for balanced in (True, False):
        hasher = DLFH(16, n_columns=60, balanced=balanced).fit(IMAGES, TEXTS, y)
        U, V = (2.0 * b - 1 for b in (hasher.training_bits_, hasher.training_text_bits_))
        products[balanced] = U @ V.T / 16
    same = y[:, None] == y
    assert products[True][same].mean() > 0.2 > 0 > products[True][~same].mean()
    assert products[False][same].mean() < -0.1  # even similar pairs have opposite codes


@pytest.mark.parametrize("balanced", [True, False])
def test_similar_and_dissimilar_pairs_weigh_the_same_if_balanced(balanced):
    S = np.array([[1, 0, 0, 0], [0, 0, 1, 0]], float)
    weights = DLFH(balanced=balanced)._weights(S)
    similar, dissimilar = weights[S == 1], weights[S == 0]
    assert similar.sum() == pytest.approx(4 if balanced else 2)
    assert dissimilar.sum() == pytest.approx(4 if balanced else 6)
    for constant in (0.0, 1.0):  # nothing to balance
        np.testing.assert_array_equal(DLFH(balanced=balanced)._weights(S * 0 + constant), 1)


def test_the_codes_explain_the_affinities_and_the_functions_the_codes():
    hasher = DLFH(16, kernel="linear", ridge=0.05).fit(IMAGES, TEXTS, LABELS)
    U, V = (2.0 * b - 1 for b in (hasher.training_bits_, hasher.training_text_bits_))
    same = LABELS[:, None] == LABELS
    assert (U @ V.T)[same].mean() > 4 > 0 > (U @ V.T)[~same].mean()
    for rows, codes, given in (
        (IMAGES, U, {"images": IMAGES}),
        (TEXTS, V, {"texts": TEXTS}),
    ):
        X = rows - rows.mean(axis=0)
        X /= np.sqrt(np.square(X).mean())
        P = np.linalg.solve(X.T @ X + 0.05 * 60 * np.eye(X.shape[1]), X.T @ codes)
        np.testing.assert_array_equal(hasher.transform(**given), X @ P > 0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"strength": 0}, "strength must be above 0"),
        ({"n_columns": 0}, "n_columns must be at least 1"),
        ({"ridge": 0}, "ridge must be above 0"),
        ({"kernel": "cosine"}, "kernel must be one of"),
    ],
)
def test_bad_options_are_refused(options, says):
    with pytest.raises(bt.InputError, match=f"^DLFH: {says}"):
        DLFH(5, **options).fit(IMAGES, TEXTS, LABELS)
