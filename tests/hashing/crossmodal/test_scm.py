"""SCM against its textbook form, with dense matrices of all pairs."""

import numpy as np
import pytest
import scipy.linalg

import bittern as bt
from bittern.hashing.crossmodal import SCM

rng = np.random.default_rng(0)
N_BITS = 6
LABELS = rng.integers(0, 4, 90)
TAGS = np.eye(4)[LABELS].astype(int) | (rng.random((90, 4)) < 0.2)
IMAGES = rng.standard_normal((90, 7)) + 2 * rng.standard_normal((4, 7))[LABELS] + 1
TEXTS = 30 * (rng.standard_normal((90, 9)) + 2 * rng.standard_normal((4, 9))[LABELS])


def textbook(X, Y, tags, n_bits, regularisation):
    """Signs of both modalities, by generalised eigenproblems in the whole space."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    L = tags / np.linalg.norm(tags, axis=1, keepdims=True)
    residual = n_bits * (2 * L @ L.T - 1)
    A, B = (
        M.T @ M + regularisation * np.trace(M.T @ M) / M.shape[1] * np.eye(M.shape[1])
        for M in (X, Y)
    )
    bits = []
    for _ in range(n_bits):
        C = X.T @ residual @ Y
        w = scipy.linalg.eigh(C @ np.linalg.solve(B, C.T), A)[1][:, -1]
        v = np.linalg.solve(B, C.T @ w)
        f, g = np.where(X @ w > 0, 1, -1), np.where(Y @ v > 0, 1, -1)
        residual = residual - np.outer(f, g)
        bits.append((f > 0, g > 0))
    return bits


@pytest.mark.parametrize("y", [LABELS, TAGS], ids=["classes", "tags"])
@pytest.mark.parametrize("regularisation", [1e-3, 0.5])
def test_each_bit_maximises_the_agreement_with_what_is_left(y, regularisation):
    tags = np.eye(4)[y] if y.ndim == 1 else y
    expected = textbook(IMAGES, TEXTS, tags, N_BITS, regularisation)
    hasher = SCM(N_BITS, regularisation=regularisation).fit(IMAGES, TEXTS, y)
    mine = hasher.transform(images=IMAGES), hasher.transform(texts=TEXTS)
    for k, (f, g) in enumerate(expected):
        flipped = f[0] != mine[0][0, k]  # a pair of directions may change its sign
        np.testing.assert_array_equal(mine[0][:, k], f ^ flipped)
        np.testing.assert_array_equal(mine[1][:, k], g ^ flipped)


def test_products_of_codes_approach_the_similarities():
    same = LABELS[:, None] == LABELS
    hasher = SCM(16).fit(IMAGES, TEXTS, LABELS)
    f, g = (2.0 * b - 1 for b in (hasher.transform(images=IMAGES), hasher.transform(texts=TEXTS)))
    assert np.corrcoef((f @ g.T).ravel(), same.ravel())[0, 1] > 0.6


def test_a_regularisation_of_zero_is_refused():
    with pytest.raises(bt.InputError, match="SCM: regularisation must be above 0"):
        SCM(4, regularisation=0).fit(IMAGES, TEXTS, LABELS)
