"""Central similarity quantisation: centres and loss written out."""

import numpy as np
import pytest
import torch

import bittern as bt
from bittern.hashing.csq import CSQ, _centres_of, hash_centres
from bittern.hashing.targets import Targets


def distances(codes):
    return (codes[:, None] != codes).sum(axis=2)


@pytest.mark.parametrize(
    ("n", "n_bits"), [(2, 16), (10, 16), (16, 16), (20, 16), (32, 16), (10, 64)]
)
def test_hadamard_centres_are_half_or_all_of_the_bits_apart(n, n_bits):
    centres = hash_centres(n, n_bits, np.random.default_rng(0))
    assert centres.shape == (n, n_bits) and centres.dtype == bool
    apart = distances(centres)[~np.eye(n, dtype=bool)]
    assert set(apart) <= {n_bits // 2, n_bits}


@pytest.mark.parametrize(("n", "n_bits"), [(10, 12), (101, 24), (40, 16), (1, 12)])
def test_random_centres_are_farther_apart_than_one_draw_usually_is(n, n_bits):
    centres = hash_centres(n, n_bits, np.random.default_rng(0))
    apart = distances(centres) + n_bits * np.eye(n, dtype=int)
    usual = [
        (distances(np.random.default_rng(i).random((n, n_bits)) < 0.5) + n_bits * np.eye(n)).min()
        for i in range(1, 30)
    ]
    assert apart.min() >= np.median(usual)
    assert len(np.unique(centres, axis=0)) == n


def test_a_row_with_tags_approaches_the_majority_of_their_centres():
    tags = np.array([[1, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]])
    found = _centres_of(Targets.of(tags, 4, "test"), 16, np.random.default_rng(3))
    centres = hash_centres(4, 16, np.random.default_rng(3))
    np.testing.assert_array_equal(found[0], centres[:3].sum(axis=0) >= 2)
    np.testing.assert_array_equal(found[1], centres[2])
    agree = centres[0] == centres[3]  # elsewhere, a fixed draw decides
    np.testing.assert_array_equal(found[2][agree], centres[0][agree])
    np.testing.assert_array_equal(found[2][~agree], found[3][~agree])
    assert (~agree).any()


def test_the_loss_written_out():
    rng = np.random.default_rng(0)
    f, c = rng.standard_normal((5, 6)), rng.random((5, 6)) < 0.5
    p = 1 / (1 + np.exp(-2 * f))
    want = -np.mean(np.where(c, np.log(p), np.log(1 - p)))
    want += 0.3 * np.mean((np.abs(np.tanh(f)) - 1) ** 2)
    found = CSQ(6, eta=0.3)._loss(torch.from_numpy(f), torch.from_numpy(c), 0.5)
    assert found.item() == pytest.approx(want)


def test_rows_reach_the_centre_of_their_class():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    rows = 3 * rng.standard_normal((4, 8))[y] + 0.3 * rng.standard_normal((300, 8))
    codes = CSQ(16, n_epochs=30, dropout=0.0).fit(rows, y).encode(rows).to_bits()
    reached = np.array([np.median(codes[y == c], axis=0) for c in range(4)])
    for c in range(4):
        assert (codes[y == c] == reached[c]).mean() > 0.99
    assert set(distances(reached)[~np.eye(4, dtype=bool)]) <= {8, 16}


def test_a_relevance_by_class_gives_each_class_one_centre():
    y = np.repeat([0, 1, 2], 20)
    targets = Targets.of(bt.Relevance.from_classes(y, y), 60, "test")
    centres = _centres_of(targets, 24, np.random.default_rng(0))
    for c in range(3):
        assert len(np.unique(centres[y == c], axis=0)) == 1
    assert len(np.unique(centres, axis=0)) == 3
