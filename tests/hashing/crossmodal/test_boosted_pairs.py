"""CMSSH and CRH: drawn pairs, boosting, singular pairs, thresholds and convex bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

import bittern as bt
from bittern.hashing import Targets
from bittern.hashing.crossmodal import CMSSH, CRH
from bittern.hashing.crossmodal.cmssh import N_LEVELS, best_thresholds, leading_pair
from bittern.hashing.crossmodal.crh import (
    LAMBDA,
    A,
    Side,
    tau,
    tau_convex,
    tau_convex_slope,
)
from bittern.hashing.crossmodal.pairs import Boosting, boosted, draw_pairs

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 90)
IMAGES = rng.standard_normal((90, 7)) + 2 * rng.standard_normal((3, 7))[LABELS]
TEXTS = rng.standard_normal((90, 5)) + 2 * rng.standard_normal((3, 5))[LABELS]
TAGS = np.eye(4, dtype=int)[LABELS] * (np.arange(90) % 5 > 0)[:, None]


def pairs_of(y=LABELS, n_pairs=600, seed=1):
    return draw_pairs(Targets.of(y, 90, "CMSSH"), n_pairs, np.random.default_rng(seed))


@pytest.mark.parametrize("n_pairs", [2, 50, 600, 5000])
def test_pairs_are_half_similar_and_none_is_drawn_twice(n_pairs):
    pairs = pairs_of(n_pairs=n_pairs)
    same = LABELS[pairs.images] == LABELS[pairs.texts]
    np.testing.assert_array_equal(pairs.similar, same)
    assert len(set(zip(pairs.images, pairs.texts, strict=True))) == len(pairs)
    assert abs(pairs.similar.mean() - 0.5) < 0.05 and 0.5 < len(pairs) / n_pairs < 1.5


def test_a_row_without_tags_is_similar_to_its_own_partner_only():
    pairs = pairs_of(TAGS)
    bare = TAGS.sum(axis=1) == 0
    similar = pairs.similar & bare[pairs.images]
    assert similar.any() and (pairs.images[similar] == pairs.texts[similar]).all()


def test_one_class_has_no_dissimilar_pairs():
    assert pairs_of(np.zeros(90, int)).similar.all()


@given(st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_boosting_is_that_of_adaboost(seed):
    rng, pairs = np.random.default_rng(seed), pairs_of(n_pairs=100)
    weights = rng.random(len(pairs))
    weights /= weights.sum()
    images, texts = rng.random((2, 90)) < 0.5
    s = np.where(pairs.similar, 1, -1)
    h = np.where(images[pairs.images], 1, -1) * np.where(texts[pairs.texts], 1, -1)
    r = (weights * s * h).sum()
    found = boosted(weights, pairs, images, texts)
    if r <= 0:
        np.testing.assert_array_equal(found, weights)
        return
    expected = weights * np.exp(-0.5 * np.log((1 + r) / (1 - r)) * s * h)
    np.testing.assert_allclose(found, expected / expected.sum())
    assert (found * s * h).sum() == pytest.approx(0, abs=1e-12)  # the bit is now worth nothing


def test_after_a_bit_that_is_worth_nothing_boosting_begins_anew():
    boosting = Boosting(Targets.of(LABELS, 90, "CRH"), 200, np.random.default_rng(2))
    pairs, good = boosting.pairs, LABELS == 0
    boosting.after(good, good)
    assert boosting.pairs is pairs
    even = np.full(len(pairs), 1 / len(pairs))
    np.testing.assert_array_equal(boosting.weights, boosted(even, pairs, good, good))
    boosting.after(good, ~good)  # wrong more often than right
    assert boosting.pairs is not pairs
    assert not np.array_equal(boosting.pairs.texts, pairs.texts)
    np.testing.assert_array_equal(boosting.weights, 1 / len(boosting.pairs))


def test_bits_of_crh_do_not_repeat_where_nothing_can_be_learned():
    noise = np.random.default_rng(3)
    images, texts = noise.standard_normal((2, 60, 3))
    hasher = CRH(24, n_pairs=100).fit(images, texts, noise.integers(0, 3, 60))
    bits = hasher.transform(images=images)
    assert len(np.unique(bits, axis=1).T) > 20


def test_the_leading_pair_maximises_the_weighted_products():
    pairs = pairs_of()
    signed = rng.standard_normal(len(pairs))
    C = sum(
        w * np.outer(IMAGES[i], TEXTS[j])
        for w, i, j in zip(signed, pairs.images, pairs.texts, strict=True)
    )
    p, q = leading_pair(IMAGES, TEXTS, pairs, signed)
    assert np.linalg.norm(p) == pytest.approx(1) and np.linalg.norm(q) == pytest.approx(1)
    assert p @ C @ q == pytest.approx(np.linalg.norm(C, 2))


def test_no_thresholds_on_the_grid_agree_better():
    pairs = pairs_of(n_pairs=80)
    z, t, signed = rng.standard_normal(90), rng.standard_normal(90), rng.standard_normal(len(pairs))

    def agreement(a, b):
        left, right = np.where(z + a > 0, 1, -1), np.where(t + b > 0, 1, -1)
        return (signed * left[pairs.images] * right[pairs.texts]).sum()

    levels = [k / (N_LEVELS + 1) for k in range(1, N_LEVELS + 1)]
    best = max(agreement(-np.quantile(z, i), -np.quantile(t, j)) for i in levels for j in levels)
    assert agreement(*best_thresholds(z, t, pairs, signed)) == pytest.approx(best)


def test_each_bit_of_cmssh_is_learned_on_the_weights_that_the_last_one_left():
    hasher = CMSSH(4, n_pairs=400, random_state=5).fit(IMAGES, TEXTS, LABELS)
    X, Y = (
        (part - part.mean(axis=0)) / np.sqrt(((part - part.mean(axis=0)) ** 2).mean())
        for part in (IMAGES, TEXTS)
    )
    pairs = pairs_of(n_pairs=400, seed=5)
    weights = np.full(len(pairs), 1 / len(pairs))
    for k in range(4):
        signed = weights * np.where(pairs.similar, 1, -1)
        p, q = leading_pair(X, Y, pairs, signed)
        a, b = best_thresholds(X @ p, Y @ q, pairs, signed)
        bits = X @ p + a > 0, Y @ q + b > 0
        np.testing.assert_array_equal(hasher.transform(images=IMAGES)[:, k], bits[0])
        np.testing.assert_array_equal(hasher.transform(texts=TEXTS)[:, k], bits[1])
        weights = boosted(weights, pairs, *bits)


def test_tau_is_the_published_function():
    for d in np.linspace(-1.5, 1.5, 301):
        if abs(d) <= LAMBDA:
            expected = -(d**2) / 2 + A * LAMBDA**2 / 2
        elif abs(d) <= A * LAMBDA:
            expected = (d**2 - 2 * A * LAMBDA * abs(d) + A**2 * LAMBDA**2) / (2 * (A - 1))
        else:
            expected = 0
        assert tau(np.array(d)) == pytest.approx(expected, abs=1e-12)


def test_the_convex_part_of_tau_is_convex_and_has_the_slope_given():
    d = np.linspace(-2, 2, 4001)
    values = tau_convex(d)
    assert (np.diff(values, 2) > -1e-12).all()
    middle = (values[2:] - values[:-2]) / (d[2:] - d[:-2])
    np.testing.assert_allclose(tau_convex_slope(d)[1:-1], middle, atol=1e-3)


def side(seed):
    rng, pairs = np.random.default_rng(seed), pairs_of(n_pairs=200, seed=seed)
    weight = 10 * rng.random(len(pairs))
    return Side(IMAGES, pairs.images, rng.standard_normal(len(pairs)), pairs.similar, weight)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_touches_the_objective_and_lies_above_it(seed):
    one, rng = side(seed), np.random.default_rng(seed)
    at = 0.3 * rng.standard_normal(7)
    gap = one.objective(at) - one.bound(at)(at)[0]  # a constant
    for _ in range(50):
        w = at + 0.3 * rng.standard_normal(7)
        assert one.bound(at)(w)[0] + gap >= one.objective(w) - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_slope_of_the_bound_is_its_derivative(seed):
    one, rng = side(seed), np.random.default_rng(seed)
    at, w = 0.3 * rng.standard_normal((2, 7))
    numeric = approx_fprime(w, lambda v: one.bound(at)(v)[0], 1e-7)
    np.testing.assert_allclose(one.bound(at)(w)[1], numeric, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_descent_never_increases_the_objective(seed):
    one, w = side(seed), np.random.default_rng(seed).standard_normal(7)
    values = [one.objective(w)]
    for _ in range(4):
        w = one.descend(w)
        values.append(one.objective(w))
    assert (np.diff(values) <= 1e-9).all() and values[-1] < values[0]


def test_the_bits_of_crh_agree_for_similar_pairs():
    hasher = CRH(1, random_state=2).fit(IMAGES, TEXTS, LABELS)
    images, texts = hasher.transform(images=IMAGES)[:, 0], hasher.transform(texts=TEXTS)[:, 0]
    same = LABELS[:, None] == LABELS
    agree = images[:, None] == texts
    assert agree[same].mean() > 0.8 > agree[~same].mean() + 0.2


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (CMSSH(n_pairs=1), "CMSSH: n_pairs must be at least 2, got 1"),
        (CRH(n_pairs=0), "CRH: n_pairs must be at least 2, got 0"),
        (CRH(gamma=0), "CRH: gamma must be above 0, got 0"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(bt.InputError, match=says):
        hasher.fit(IMAGES, TEXTS, LABELS)
