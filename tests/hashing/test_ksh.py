"""Supervised hashing with kernels against the greedy method written out in full."""

import numpy as np
import pytest
import scipy.linalg
from blobs import KINDS, TAGS, X, Y, blobs

import bittern as bt
from bittern.hashing import ksh
from bittern.hashing.ksh import KSH


def kernel_of(hasher, X):
    squares = ((X[:, None] - hasher.anchors_) ** 2).sum(axis=-1)
    return np.exp(-squares / (2 * hasher.width_)) - hasher.mean_


def signs(values):
    return np.where(values > 0, 1.0, -1.0)


def residual_and_relaxation(seed=0, n_bits=4):
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((30, 5))
    S = n_bits * (2.0 * (np.arange(30) % 3 == (np.arange(30) % 3)[:, None]) - 1)
    H = [signs(rng.standard_normal(30)) for _ in range(2)]
    residual, relaxation = ksh._Residual(S), ksh._Relaxation(K, S)
    for h in H:
        residual.subtract(h)
        relaxation.subtract(h)
    return K, S - sum(np.outer(h, h) for h in H), residual, relaxation


def test_the_residual_is_what_the_bits_leave_of_the_affinities():
    _, R, residual, _ = residual_and_relaxation()
    y = np.random.default_rng(1).standard_normal(30)
    np.testing.assert_allclose(residual.times(y), R @ y)
    assert residual.agreement(y) == pytest.approx(y @ R @ y)


def test_the_relaxed_weights_are_the_largest_generalised_eigenvector():
    K, R, _, relaxation = residual_and_relaxation()
    a = relaxation.best()
    values, vectors = scipy.linalg.eigh(K.T @ R @ K, K.T @ K)
    assert np.linalg.norm(K @ a) ** 2 == pytest.approx(30)
    assert a @ K.T @ R @ K @ a / 30 == pytest.approx(values[-1], rel=1e-4)
    cosine = abs(a @ vectors[:, -1]) / np.linalg.norm(a) / np.linalg.norm(vectors[:, -1])
    assert cosine == pytest.approx(1, abs=1e-4)


def test_gradient_steps_agree_better_with_the_residual_when_signs_are_smooth():
    K, R, residual, relaxation = residual_and_relaxation(seed=2)

    def agreement(a):
        y = 2 / (1 + np.exp(-K @ a)) - 1
        return y @ R @ y

    start = relaxation.best()
    values = [agreement(ksh._ascend(K, residual, start, n)) for n in (0, 1, 5, 50)]
    assert values[0] == pytest.approx(agreement(start))
    assert values[0] < values[1] < values[2] <= values[3]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_each_bit_brings_the_code_products_nearer_to_the_affinities(n_classes):
    X, y = blobs(n_classes=n_classes)
    hasher = KSH(n_bits=12, n_anchors=40).fit(X, y)
    H = signs(kernel_of(hasher, X) @ hasher.projection_)
    np.testing.assert_array_equal(hasher.transform(X), H > 0)
    wanted = 12 * (2.0 * (y[:, None] == y) - 1)
    errors = [np.linalg.norm(wanted - H[:, :k] @ H[:, :k].T) for k in range(13)]
    assert (np.diff(errors) < 0).all()
    # c codewords cannot all be opposite: their products are -1 / (c - 1) at best, or -1 / c if c
    # is odd, of which a share of (c - 1) / c pairs fall short.
    product = -1 / (n_classes - 1 + n_classes % 2)
    bound = (1 + product) * np.sqrt(1 - 1 / n_classes)
    assert errors[-1] / errors[0] == pytest.approx(bound, abs=0.08)


def test_what_is_approached_is_twice_the_affinity_less_one(monkeypatch):
    seen = []
    learn = KSH._learn
    monkeypatch.setattr(KSH, "_learn", lambda self, K, S: seen.append(S) or learn(self, K, S))
    gains = np.random.default_rng(0).integers(0, 5, (120, 120))
    KSH(n_bits=1).fit(X, bt.Relevance.from_matrix(gains))
    np.testing.assert_allclose(seen[0], (gains + gains.T) / 4 - 1, atol=1e-6)


def test_only_the_affinities_of_n_labelled_rows_are_used():
    looked = []

    class Watched(ksh.Targets):
        def affinity(self, rows=None, columns=None):
            looked.append((len(rows), len(columns)))
            return super().affinity(rows, columns)

    hasher = KSH(n_bits=2, n_labelled=25)
    hasher._fit(X, Watched.of(Y, len(X), "KSH"))
    assert looked == [(25, 25)]


@pytest.mark.parametrize("kind", KINDS)
def test_like_rows_get_like_codes_whatever_y_is(kind):
    bits = KSH(n_bits=8).fit(X, KINDS[kind]).transform(X)
    apart = (bits[:, None] != bits).sum(axis=-1)
    alike = (TAGS @ TAGS.T > 0) if kind != "labels" else Y[:, None] == Y
    assert apart[alike].mean() < 0.7 * apart[~alike].mean()


@pytest.mark.parametrize("n_bits", [1, 65])
@pytest.mark.parametrize("rows", [X[:1], X[:2], np.ones((20, 6))])
def test_few_rows_and_equal_rows_are_hashed(rows, n_bits):
    y = np.arange(len(rows)) % 2
    assert KSH(n_bits).fit(rows, y).transform(rows).shape == (len(rows), n_bits)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_anchors": 0}, "KSH: n_anchors must be at least 1, got 0"),
        ({"n_labelled": 2.5}, "KSH: n_labelled must be a whole number at least 1, got 2.5"),
        ({"n_steps": -1}, "KSH: n_steps must be at least 0, got -1"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(parameters, says):
    with pytest.raises(bt.InputError, match=says):
        KSH(4, **parameters).fit(X, Y)
