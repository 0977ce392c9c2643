"""CVH and CCA-ITQ against textbook canonical correlation analysis."""

import numpy as np
import pytest
import scipy.linalg

from bittern.hashing.crossmodal import CCAITQ, CVH

rng = np.random.default_rng(0)
HIDDEN = rng.standard_normal((200, 4))
IMAGES = HIDDEN @ rng.standard_normal((4, 9)) + 0.5 * rng.standard_normal((200, 9)) + 3
TEXTS = 100 * (HIDDEN @ rng.standard_normal((4, 6)) + 0.5 * rng.standard_normal((200, 6)))


def textbook_cca(X, Y, regularisation):
    """Directions of both sides and correlations, by the generalised eigenproblem."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    whole, other = (
        M.T @ M + regularisation * np.trace(M.T @ M) / M.shape[1] * np.eye(M.shape[1])
        for M in (X, Y)
    )
    between = X.T @ Y
    values, W = scipy.linalg.eigh(between @ np.linalg.solve(other, between.T), whole)
    keep = np.argsort(-values)[: min(X.shape[1], Y.shape[1])]
    correlations = np.sqrt(values[keep])
    return W[:, keep], np.linalg.solve(other, between.T @ W[:, keep]) / correlations, correlations


@pytest.mark.parametrize("regularisation", [1e-4, 0.5])
def test_cvh_takes_the_signs_of_canonical_variables(regularisation):
    W, V, correlations = textbook_cca(IMAGES, TEXTS, regularisation)
    hasher = CVH(5, regularisation=regularisation).fit(IMAGES, TEXTS)
    assert hasher.n_directions_ == 5 and np.ptp(correlations) > 0.1
    for k in range(5):
        a, b = (
            (rows - rows.mean(axis=0)) @ directions[:, k] > 0
            for rows, directions in ((IMAGES, W), (TEXTS, V))
        )
        flipped = a[0] != hasher.transform(images=IMAGES)[0, k]  # a pair may change its sign
        np.testing.assert_array_equal(hasher.transform(images=IMAGES)[:, k], a ^ flipped)
        np.testing.assert_array_equal(hasher.transform(texts=TEXTS)[:, k], b ^ flipped)


def test_cvh_says_how_many_directions_there_are():
    shares = np.abs(TEXTS) / np.abs(TEXTS).sum(axis=1, keepdims=True)  # six columns, sum 1
    with pytest.warns(UserWarning, match="have 5 correlated directions; the other 11") as told:
        hasher = CVH(16).fit(IMAGES, shares)
    assert told[0].filename == __file__, "the warning points to the call of fit"
    assert hasher.n_directions_ == 5
    bits = hasher.transform(images=IMAGES)
    assert bits[:, :5].any(axis=0).all() and not bits[:, 5:].any()


def test_cca_itq_rotates_both_sides_alike():
    W, V, correlations = textbook_cca(IMAGES, TEXTS, 1.0)
    hasher = CCAITQ(10).fit(IMAGES, TEXTS)
    assert hasher.n_directions_ == 6
    mine = [f["projection"] for f in (hasher.image_function_, hasher.text_function_)]
    for a, A in zip(mine, (W, V), strict=True):
        for b, B in zip(mine, (W, V), strict=True):
            scaled = (A * correlations) @ (B * correlations).T
            np.testing.assert_allclose(a @ b.T, scaled * (a @ b.T)[0, 0] / scaled[0, 0], atol=1e-9)


def test_the_rotation_brings_both_modalities_nearer_to_their_signs():
    def loss(hasher):
        parts = []
        for rows, f in ((IMAGES, hasher.image_function_), (TEXTS, hasher.text_function_)):
            parts.append((rows - f["mean"]) @ f["projection"])
        V = np.vstack(parts)
        return np.square(np.where(V > 0, 1, -1) - V).sum()

    losses = [loss(CCAITQ(6, n_iter=n).fit(IMAGES, TEXTS)) for n in (1, 3, 50)]
    assert losses[0] > losses[1] > losses[2]
