"""Self-taught hashing against the Laplacian eigenmap written out in full."""

import numpy as np
import pytest
import scipy.linalg

import bittern as bt
from bittern.hashing import sth
from bittern.hashing.kernel_maps import unit_rows
from bittern.hashing.sth import STH

X = np.random.default_rng(1).standard_normal((80, 5)) + 2


def textbook_graph(X, k):
    """Cosines of rows, where one is among the k nearest of the other."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit.T
    near = np.zeros(cosines.shape, bool)
    for i in range(len(X)):
        others = [j for j in np.argsort(-cosines[i]) if j != i]
        near[i, others[:k]] = True
    return np.where(near | near.T, cosines, 0)


def test_the_graph_joins_a_row_with_its_nearest_by_cosine():
    graph = sth._neighbour_graph(unit_rows(X), 6).toarray()
    np.testing.assert_allclose(graph, textbook_graph(X, 6))


def test_functions_solve_the_generalised_eigenproblem_of_the_laplacian(monkeypatch):
    A = textbook_graph(X, 12)
    D = np.diag(A.sum(axis=1))
    values = scipy.linalg.eigh(D - A, D)[0]
    graph = sth._neighbour_graph(unit_rows(X), 12)
    for dense in (1000, 0):  # all at once, and by Lanczos iterations
        monkeypatch.setattr(sth, "DENSE", dense)
        V = sth._smooth_functions(graph, 5, np.random.default_rng(0))
        quotient = ((D - A) @ V * V).sum(axis=0) / (D @ V * V).sum(axis=0)
        np.testing.assert_allclose(quotient, values[1:6], atol=1e-6)
        np.testing.assert_allclose((D @ V).sum(axis=0), 0, atol=1e-6)  # none is trivial


def test_classifiers_learn_the_functions_cut_at_the_median():
    X, y = blobs()
    functions = sth._smooth_functions(
        sth._neighbour_graph(unit_rows(X), 10), 3, np.random.default_rng(0)
    )
    wanted = functions > np.median(functions, axis=0)
    np.testing.assert_array_equal(wanted.sum(axis=0), len(X) // 2)
    bits = STH(n_bits=3, n_neighbours=10).fit(X).transform(X)
    agreement = (bits == wanted).mean(axis=0)  # an eigenvector's sign is arbitrary
    assert (np.maximum(agreement, 1 - agreement) > 0.85).all()
    assert len(np.unique(y)) == 4


def blobs(n=160):
    rng = np.random.default_rng(4)
    y = np.arange(n) % 4
    return rng.standard_normal((n, 10)) + 4 * rng.standard_normal((4, 10))[y], y


def test_at_most_n_rows_are_used():
    X, _ = blobs()
    few = STH(n_bits=4, n_rows=50).fit(X)
    rows = np.sort(np.random.default_rng(0).choice(len(X), 50, replace=False))
    mean = unit_rows(X[rows]).mean(axis=0)
    np.testing.assert_allclose(few.mean_, np.append(mean, 0))


def test_the_length_of_a_row_does_not_matter():
    X, _ = blobs()
    hasher = STH(n_bits=6).fit(X)
    assert hasher.encode(X * 4) == hasher.encode(X)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_more_bits_than_rows_are_mixtures_of_the_eigenvectors(n):
    assert STH(n_bits=20).fit(X[:n]).transform(X[:n]).shape == (n, 20)


def test_rows_of_zeros_and_equal_rows_are_hashed():
    rows = np.vstack((np.zeros((3, 5)), X[:20], np.repeat(X[:1], 20, axis=0)))
    bits = STH(n_bits=6).fit(rows).transform(rows)
    assert len(np.unique(bits[:3], axis=0)) == len(np.unique(bits[23:], axis=0)) == 1


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_neighbours": 0}, "STH: n_neighbours must be at least 1, got 0"),
        ({"C": 0}, "STH: C must be above 0, got 0"),
        ({"C": "1"}, "STH: C must be a number, got '1'"),
        ({"n_rows": 0}, "STH: n_rows must be at least 1, got 0"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(parameters, says):
    with pytest.raises(bt.InputError, match=says):
        STH(4, **parameters).fit(X)


def test_self_taught_bits_are_balanced_over_the_training_rows():
    X = np.random.default_rng(0).standard_normal((200, 10))
    bits = STH(n_bits=6).fit(X).transform(X)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.2).all()


def test_self_taught_bits_keep_neighbours_together():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((8, 12))
    y = rng.integers(0, 8, 240)
    X = centres[y] + 0.15 * rng.standard_normal((240, 12))
    bits = STH(n_bits=8, n_neighbours=10).fit(X).transform(X)
    apart = (bits[:, None] != bits).sum(axis=-1)
    same = y[:, None] == y
    assert apart[same].mean() < 0.3 * apart[~same].mean()
