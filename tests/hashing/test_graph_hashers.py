"""Anchor graphs and self-taught hashing."""

import numpy as np
import pytest

from bittern.hashing import AGH, STH


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
