"""RCMH, PDH and IMH: properties of their optima, and their steps written out."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import bittern as bt
from bittern.hashing import Targets
from bittern.hashing.classifiers import bit_classifiers, regularised_classifiers
from bittern.hashing.crossmodal import IMH, PDH, RCMH
from bittern.hashing.crossmodal import pdh as pdh_module
from bittern.hashing.crossmodal.imh import laplacian, unpredictable
from bittern.hashing.crossmodal.pdh import decorrelated
from bittern.hashing.crossmodal.projections import View

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 90)
IMAGES = rng.standard_normal((90, 7)) + 2 * rng.standard_normal((3, 7))[LABELS]
TEXTS = rng.standard_normal((90, 5)) + 2 * rng.standard_normal((3, 5))[LABELS]


def test_rcmh_learns_bits_of_texts_then_the_same_bits_from_images():
    hasher = RCMH(6, alpha=0.9, n_iter=2, kernel="linear", random_state=4)
    hasher.fit(IMAGES, TEXTS, LABELS)
    rng = np.random.default_rng(4)
    X, Y = View.linear(IMAGES).features, View.linear(TEXTS).features
    start = Y @ rng.standard_normal((5, 6)) > 0
    targets = Targets.of(LABELS, 90, "RCMH")
    steps = regularised_classifiers(Y, start, targets, 0.9, 1.0)
    next(steps)
    weights, constant = next(steps)
    texts = Y @ weights + constant > 0
    np.testing.assert_array_equal(hasher.transform(texts=TEXTS), texts)
    weights, constant = bit_classifiers(X, texts, 1.0, balanced=True)
    np.testing.assert_array_equal(hasher.transform(images=IMAGES), X @ weights + constant > 0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_images_predict_the_bits_of_their_texts(kernel):
    hasher = RCMH(8, kernel=kernel, n_anchors=40).fit(IMAGES, TEXTS, LABELS)
    images, texts = hasher.transform(images=IMAGES), hasher.transform(texts=TEXTS)
    assert (images == texts).mean() > 0.8


def test_decorrelated_bits_are_signs_of_the_nearest_orthonormal_columns():
    bits = np.random.default_rng(1).random((50, 6)) < 0.4
    B = np.where(bits, 1.0, -1.0)
    nearest = B @ np.linalg.inv(_root(B.T @ B))  # the polar factor
    np.testing.assert_allclose(nearest.T @ nearest, np.eye(6), atol=1e-9)
    np.testing.assert_array_equal(decorrelated(bits), nearest > 0)
    for _ in range(20):  # no other orthonormal columns are nearer
        other = np.linalg.qr(np.random.default_rng(_).standard_normal((50, 6)))[0]
        assert np.linalg.norm(B - nearest) <= np.linalg.norm(B - other)


def _root(M):
    values, vectors = np.linalg.eigh(M)
    return vectors * np.sqrt(values) @ vectors.T


def test_pdh_learns_in_turn_what_the_other_modality_predicts(monkeypatch):
    asked = []

    def recorded(centred, wanted, C, **options):
        asked.append((centred, wanted))
        return bit_classifiers(centred, wanted, C, **options)

    monkeypatch.setattr(pdh_module, "bit_classifiers", recorded)
    hasher = PDH(5, n_iter=2, C=1.0).fit(IMAGES, TEXTS)
    assert [len(features.T) for features, _ in asked] == [7, 5, 7, 5]
    weights, constant = bit_classifiers(*asked[0], 1.0, balanced=False)
    learned = decorrelated(asked[0][0] @ weights + constant > 0)
    np.testing.assert_array_equal(asked[1][1], learned)
    monkeypatch.undo()
    agree = hasher.transform(images=IMAGES) == hasher.transform(texts=TEXTS)
    assert agree.mean() > 0.7


def test_imh_is_the_bottom_of_its_spectrum():
    hasher = IMH(4, smoothness=0.5, n_neighbours=3, ridge=0.1).fit(IMAGES, TEXTS)
    total, solvers, features = np.zeros((90, 90)), [], []
    for rows in (IMAGES, TEXTS):
        X = View.linear(rows).features
        beta = 0.1 * len(X)
        solver = np.linalg.inv(X.T @ X + beta * np.eye(X.shape[1])) @ X.T
        near = np.zeros((90, 90))
        for i, distances in enumerate(cdist(X, X)):
            near[i, np.argsort(distances)[1:4]] = 1
        near = np.maximum(near, near.T)
        total += np.eye(90) - X @ solver + 0.5 * (np.diag(near.sum(axis=1)) - near)
        solvers.append(solver)
        features.append(X)
    values, vectors = np.linalg.eigh(total)
    constant = np.ptp(vectors, axis=0) < 1e-6
    assert constant[:5].sum() == 1 and np.diff(values[:7]).min() > 0.01
    F = vectors[:, ~constant][:, :4]
    for X, solver, found in zip(
        features,
        solvers,
        (hasher.transform(images=IMAGES), hasher.transform(texts=TEXTS)),
        strict=True,
    ):
        values = X @ solver @ F
        bits = values > np.median(values, axis=0)
        flipped = bits[0] != found[0]  # an eigenvector may change its sign
        np.testing.assert_array_equal(found, bits ^ flipped)
        assert (found.sum(axis=0) == 45).all()


def test_what_a_modality_predicts_costs_nothing():
    view = View.linear(IMAGES)
    X, exact = view.features, unpredictable(view, 1e-12)
    function = X @ rng.standard_normal(7)
    assert function @ exact @ function == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(exact @ exact, exact, atol=1e-9)
    smooth = laplacian(X, 4)
    np.testing.assert_allclose(smooth.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_array_equal(smooth, smooth.T)


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (RCMH(alpha=1.5), "RCMH: alpha must be at most 1, got 1.5"),
        (RCMH(n_iter=0), "RCMH: n_iter must be at least 1, got 0"),
        (RCMH(kernel="cubic"), "RCMH: kernel must be one of 'linear', 'rbf', got 'cubic'"),
        (PDH(C=0), "PDH: C must be above 0, got 0"),
        (PDH(n_iter=0), "PDH: n_iter must be at least 1, got 0"),
        (IMH(n_neighbours=0), "IMH: n_neighbours must be at least 1, got 0"),
        (IMH(smoothness=-1), "IMH: smoothness must be at least 0, got -1"),
        (IMH(n_rows=0), "IMH: n_rows must be at least 1, got 0"),
        (IMH(ridge=0), "IMH: ridge must be above 0, got 0"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(bt.InputError, match=says):
        hasher.fit(IMAGES, TEXTS, LABELS)
