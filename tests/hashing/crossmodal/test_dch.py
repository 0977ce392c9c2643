"""DCH: its objective written out, and codes that cannot be bettered one bit at a time."""

import numpy as np
import pytest

import bittern as bt
from bittern.hashing.crossmodal import DCH

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 60)
IMAGES = rng.standard_normal((60, 5)) + 2 * rng.standard_normal((3, 5))[LABELS] + 7
TEXTS = 20 * (rng.standard_normal((60, 4)) + 2 * rng.standard_normal((3, 4))[LABELS])


def features(rows):
    centred = rows - rows.mean(axis=0)
    return centred / np.sqrt(np.square(centred).mean())


def best_objective(B, mu, penalty, ridge):
    """The objective of codes with the best W, P and Q, by least squares with extra rows."""
    n = len(B)
    L, total = np.eye(3)[LABELS], 0.0
    for A, target, weight, delta in (
        (B, L, 1.0, penalty),
        (features(IMAGES), B, mu, ridge * n),
        (features(TEXTS), B, mu, ridge * n),
    ):
        stacked = np.vstack((A, np.sqrt(delta) * np.eye(A.shape[1])))
        padded = np.vstack((target, np.zeros((A.shape[1], target.shape[1]))))
        best = np.linalg.lstsq(stacked, padded, rcond=None)[0]
        total += weight * np.square(stacked @ best - padded).sum()
    return total


@pytest.mark.parametrize("mu", [1e-3, 0.3])
def test_the_objective_is_that_of_the_definition_and_never_rises(mu):
    settings = {"mu": mu, "penalty": 0.7, "ridge": 0.05}
    hasher = DCH(5, kernel="linear", n_iter=8, **settings).fit(IMAGES, TEXTS, LABELS)
    B = np.where(hasher.training_bits_, 1.0, -1.0)
    assert hasher.objectives_[-1] == pytest.approx(best_objective(B, **settings))
    assert (np.diff(hasher.objectives_) <= 0).all() and len(hasher.objectives_) == 9
    assert hasher.objectives_[-1] < 0.8 * hasher.objectives_[0]


def test_the_functions_are_ridge_regressions_of_the_codes():
    hasher = DCH(5, kernel="linear", ridge=0.05).fit(IMAGES, TEXTS, LABELS)
    B = np.where(hasher.training_bits_, 1.0, -1.0)
    for rows, given in ((IMAGES, {"images": IMAGES}), (TEXTS, {"texts": TEXTS})):
        X = features(rows)
        P = np.linalg.solve(X.T @ X + 0.05 * 60 * np.eye(X.shape[1]), X.T @ B)
        np.testing.assert_array_equal(hasher.transform(**given), X @ P > 0)


def test_the_kernel_separates_what_no_hyperplane_does():
    angle = rng.uniform(0, 2 * np.pi, 300)
    y = np.arange(300) % 2
    rings = np.column_stack((np.cos(angle), np.sin(angle))) * (1 + 2 * y)[:, None]
    texts = np.eye(2)[y] + 0.1 * rng.standard_normal((300, 2))
    relevance = bt.Relevance.from_classes(y, y)

    def quality(**options):
        hasher = DCH(8, **options).fit(rings, texts, y)
        codes = hasher.encode(texts=texts), hasher.encode(images=rings)
        return bt.evaluate(*codes, relevance, ["ap"])["ap"].mean

    assert quality(kernel="rbf", n_anchors=60) > 0.95
    assert quality(kernel="linear") < 0.7


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kernel": "cosine"}, "kernel must be one of 'linear', 'rbf'"),
        ({"n_anchors": 0}, "n_anchors must be at least 1"),
        ({"mu": -1}, "mu must be at least 0"),
        ({"ridge": 0}, "ridge must be above 0"),
        ({"n_iter": 0}, "n_iter must be at least 1"),
    ],
)
def test_bad_options_are_refused(options, says):
    with pytest.raises(bt.InputError, match=f"^DCH: {says}"):
        DCH(5, **options).fit(IMAGES, TEXTS, LABELS)
