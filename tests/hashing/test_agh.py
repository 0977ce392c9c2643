"""Anchor graph hashing against the graph written out in full."""

import numpy as np
import pytest

import bittern as bt
from bittern.hashing.agh import AGH

RNG = np.random.default_rng(3)
X = RNG.standard_normal((90, 4)) * [3, 2, 1, 1]


def textbook_weights(X, anchors, n_neighbours, t):
    """Z, row by row."""
    Z = np.zeros((len(X), len(anchors)))
    for i, x in enumerate(X):
        distances = ((x - anchors) ** 2).sum(axis=1)
        near = np.argsort(distances)[:n_neighbours]
        Z[i, near] = np.exp(-distances[near] / t)
        Z[i] /= Z[i].sum()
    return Z


def textbook_graph(hasher, X):
    Z = textbook_weights(X, hasher.anchors_, hasher.n_neighbours, hasher.width_)
    return Z, Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T


def test_functions_are_the_graph_s_eigenvectors_and_the_smoothest_come_first():
    hasher = AGH(n_bits=6, n_anchors=20, layers=1).fit(X)
    Z, A = textbook_graph(hasher, X)
    values, vectors = np.linalg.eigh(A)
    Y = Z @ hasher.projection_
    for k in range(6):
        theirs = vectors[:, -2 - k] * np.sqrt(len(X))  # the last is the trivial one
        assert abs(theirs @ Y[:, k]) == pytest.approx(len(X)), values[-2 - k]
    np.testing.assert_array_equal(hasher.transform(X), Y > 0)


def test_functions_have_mean_zero_unit_variance_and_no_correlation():
    hasher = AGH(n_bits=6, n_anchors=20, layers=1).fit(X)
    Y = textbook_graph(hasher, X)[0] @ hasher.projection_
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Y.T @ Y / len(X), np.eye(6), atol=1e-9)


def test_the_width_is_the_mean_distance_from_the_last_neighbour():
    hasher = AGH(n_bits=4, n_anchors=20, n_neighbours=2).fit(X)
    distances = np.sqrt(((X[:, None] - hasher.anchors_) ** 2).sum(axis=-1))
    assert np.sqrt(hasher.width_) == pytest.approx(np.sort(distances, axis=1)[:, 1].mean())


def test_second_thresholds_make_the_smoothest_balanced_function():
    hasher = AGH(n_bits=8, n_anchors=20).fit(X)
    Z, A = textbook_graph(hasher, X)
    laplacian = np.eye(len(X)) - A
    Y = Z @ hasher.projection_
    for y, above, below in zip(Y.T, *hasher.thresholds_, strict=True):

        def function(up, down, y=y):
            return np.where(y > 0, y - up, down - y)

        best = function(above, below)
        assert best.sum() == pytest.approx(0, abs=1e-9)
        ratio = (y > 0).sum() / (y <= 0).sum()
        for step in (-1, -0.1, 0.1, 1):  # others that are balanced too
            other = function(above + step, below + step * ratio)
            assert other.sum() == pytest.approx(0, abs=1e-9)
            assert other @ laplacian @ other > best @ laplacian @ best


def test_second_bits_ask_on_which_side_of_their_threshold():
    hasher = AGH(n_bits=7, n_anchors=20).fit(X)
    Y = textbook_graph(hasher, X)[0] @ hasher.projection_
    assert (Y.shape[1], hasher.thresholds_.shape) == (4, (2, 3))
    above, below = hasher.thresholds_
    second = np.where(Y[:, :3] > 0, Y[:, :3] > above, Y[:, :3] < below)
    np.testing.assert_array_equal(hasher.transform(X), np.hstack((Y > 0, second)))


@pytest.mark.parametrize("layers", [1, 2])
def test_more_bits_than_functions_are_completed_by_second_bits_and_mixtures(layers):
    few = AGH(n_bits=30, n_anchors=6, layers=layers).fit(X)
    assert few.thresholds_.shape == (2, 5)  # one function less than anchors
    assert few.projection_.shape == (6, 25)
    bits = few.transform(X)
    assert bits.shape == (90, 30)
    assert (bits.any(axis=0) & ~bits.all(axis=0)).all(), "no bit is constant"


def test_parts_of_a_graph_that_hang_together_by_nothing_differ():
    apart = np.vstack((X[:45], X[45:] + 1000))
    bits = AGH(n_bits=1, n_anchors=20, layers=1).fit(apart).transform(apart)
    assert bits[:45].all() != bits[45:].all()
    assert len(np.unique(bits[:45])) == len(np.unique(bits[45:])) == 1


def test_equally_near_anchors_are_chosen_alike_in_every_block():
    grid = np.array(np.meshgrid(*[range(8)] * 2), float).reshape(2, -1).T / 7 + 0.1
    hasher = AGH(n_bits=6, n_neighbours=2).fit(grid)
    between = grid[:-9] + 1 / 14  # most are as near to four anchors, but for rounding
    whole = hasher.encode(between)
    assert bt.Codes.concatenate(hasher.encode(row[None]) for row in between) == whole


@pytest.mark.parametrize("rows", [X[:1], X[:2], np.ones((20, 3))])
def test_one_row_two_rows_and_equal_rows_are_hashed(rows):
    assert AGH(n_bits=5).fit(rows).transform(rows).shape == (len(rows), 5)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_anchors": 0}, "AGH: n_anchors must be at least 1, got 0"),
        ({"n_neighbours": 1.5}, "AGH: n_neighbours must be a whole number at least 1, got 1.5"),
        ({"layers": 0}, "AGH: layers must be at least 1, got 0"),
        ({"layers": 3}, "AGH: layers must be 1 or 2, got 3"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(parameters, says):
    with pytest.raises(bt.InputError, match=says):
        AGH(4, **parameters).fit(X)


def rings(n=240, random_state=0):
    """Two circles, one inside the other: no straight line parts them, a graph does."""
    rng = np.random.default_rng(random_state)
    y = np.arange(n) % 2
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.where(y == 0, 1.0, 4.0) + 0.1 * rng.standard_normal(n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), y


@pytest.mark.parametrize("layers", [1, 2])
def test_an_anchor_graph_sees_what_is_connected(layers):
    X, y = rings()
    bits = AGH(n_bits=2, n_anchors=40, layers=layers).fit(X).transform(X)
    agreement = [max((bit == y).mean(), (bit != y).mean()) for bit in bits.T]
    assert max(agreement) > 0.95


def test_two_layers_take_two_bits_of_each_function():
    X, _ = rings()
    one = AGH(n_bits=4, n_anchors=40).fit(X).transform(X)
    two = AGH(n_bits=8, n_anchors=40, layers=2).fit(X).transform(X)
    assert two.shape == (240, 8)
    assert one.shape == (240, 4)
    assert len(np.unique(two, axis=0)) >= len(np.unique(one, axis=0))
