"""Support vector machines against LIBLINEAR, their definition and its derivatives."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from bittern.hashing import squared_hinge
from bittern.hashing.squared_hinge import support_vectors

rng = np.random.default_rng(0)
TALL = rng.standard_normal((120, 6)) + 0.5
WIDE = rng.standard_normal((20, 40)) / 6
KINDS = {"tall": TALL, "wide": WIDE, "square": TALL[:6], "repeated": TALL[:, [0, 1, 1, 0, 2]]}


def wanted_bits(X, n_bits=5):
    noisy = X @ rng.standard_normal((X.shape[1], n_bits)) + rng.standard_normal((len(X), n_bits))
    bits = noisy > 0.7  # ones are rarer
    bits[0], bits[1] = True, False
    return bits


def total(weights, X, bit, C, balanced):
    """The sum as it is defined, row by row."""
    ones, loss = bit.sum(), 0.0
    for row, one in zip(X, bit, strict=True):
        rarer = {True: (len(X) - ones) / ones, False: ones / (len(X) - ones)}[bool(one)]
        cost = C * max(rarer, 1) if balanced else C
        loss += cost * max(0, 1 - (1 if one else -1) * (row @ weights[:-1] + weights[-1])) ** 2
    return weights @ weights / 2 + loss


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_are_those_of_liblinear(kind, C, balanced, monkeypatch):
    monkeypatch.setattr(squared_hinge, "TOLERANCE", 1e-9)
    X = KINDS[kind]
    wanted = wanted_bits(X)
    found = support_vectors(X, wanted, C, balanced=balanced)
    for bit, weights in zip(wanted.T, found.T, strict=True):
        ones, zeros = bit.sum(), (~bit).sum()
        each = {True: max(zeros / ones, 1), False: max(ones / zeros, 1)} if balanced else None
        svc = LinearSVC(C=C, dual=False, tol=1e-10, max_iter=10_000, class_weight=each)
        svc.fit(X, bit)
        expected = np.append(svc.coef_, svc.intercept_)
        np.testing.assert_allclose(weights, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("balanced", [True, False])
def test_the_gradient_is_small_and_no_neighbour_is_better(balanced):
    wanted = wanted_bits(TALL)
    found = support_vectors(TALL, wanted, 3.0, balanced=balanced)
    for bit, weights in zip(wanted.T, found.T, strict=True):
        best = total(weights, TALL, bit, 3.0, balanced)

        def steepness(at, bit=bit):
            moves = 1e-6 * np.eye(7)
            return np.linalg.norm(
                [
                    (
                        total(at + m, TALL, bit, 3.0, balanced)
                        - total(at - m, TALL, bit, 3.0, balanced)
                    )
                    / 2e-6
                    for m in moves
                ]
            )

        assert steepness(weights) <= 1.1e-3 * steepness(np.zeros(7))
        for _ in range(5):
            other = weights + 0.1 * rng.standard_normal(7)
            assert best < total(other, TALL, bit, 3.0, balanced)


def test_a_bit_that_all_rows_share_is_a_constant():
    wanted = wanted_bits(TALL, 4)
    wanted[:, 1], wanted[:, 2] = True, False
    found = support_vectors(TALL, wanted, 1.0)
    np.testing.assert_array_equal(found[:, 1:3], np.outer([0] * 6 + [1], [1, -1]))
    alone = support_vectors(TALL, wanted[:, [0, 3]], 1.0)
    np.testing.assert_allclose(found[:, [0, 3]], alone, rtol=1e-6)


def test_blocks_of_bits_have_the_same_weights(monkeypatch):
    wanted = wanted_bits(TALL)
    together = support_vectors(TALL, wanted, 1.0, balanced=True)
    blocks = lambda n, *_: [slice(k, k + 1) for k in range(n)]  # noqa: E731
    monkeypatch.setattr(squared_hinge, "row_blocks", blocks)
    apart = support_vectors(TALL, wanted, 1.0, balanced=True)
    np.testing.assert_allclose(together, apart, atol=0.02 * np.abs(apart).max())
