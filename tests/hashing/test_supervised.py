"""What each method that learns from pairs promises beyond the contract."""

import itertools
import sys
from functools import partial

import blobs as rows_in_blobs
import numpy as np
import pytest

import bittern as bt
from bittern.hashing import BRE, KSH, SDH, FastHash, MACHash, StructHash, Targets
from bittern.hashing.bre import DistancePairs, Embedding, _sweep
from bittern.hashing.discrete_codes import discrete_step
from bittern.hashing.graph_cuts import (
    AffinityPairs,
    choose_bits,
    count_differences,
    loss_steps,
    make_blocks,
    minimum_cut,
    set_weights,
)
from bittern.hashing.machash import AuxiliaryCoordinates
from bittern.hashing.trees import Forest

blobs = partial(rows_in_blobs.blobs, n=150, dim=8, gap=4.0)


# --- BRE


def random_pairs(rng, n, n_pairs):
    pairs = DistancePairs(rng.integers(n, size=n_pairs), rng.integers(n, size=n_pairs), n)
    pairs.distance[:] = rng.random(len(pairs.row))
    for e, (i, j) in enumerate(zip(pairs.row, pairs.other, strict=True)):
        back = pairs.first[j] + np.flatnonzero(
            pairs.other[pairs.first[j] : pairs.first[j + 1]] == i
        )
        pairs.distance[back] = pairs.distance[e]
    return pairs


def best_weight(kernel, rest, bit, pairs, costs):
    """The weight w for which bits ``rest + w * kernel > 0`` cost least, and what it saves."""
    flat = kernel == 0
    places = np.where(flat, np.inf, -rest / np.where(flat, 1, kernel))
    signs = np.where(bit, 1, -1).astype(np.float32)
    order = np.argsort(places, kind="stable")
    return _sweep(kernel, rest, places, order, signs, pairs.first, pairs.other, costs)


@pytest.mark.parametrize("random_state", range(20))
def test_bre_finds_the_best_weight_of_all(random_state):
    rng = np.random.default_rng(random_state)
    n = 9
    pairs = random_pairs(rng, n, 30)
    half = rng.standard_normal((n, n))
    costs = (half + half.T)[pairs.row, pairs.other]
    kernel, rest = rng.standard_normal(n), rng.standard_normal(n)
    kernel[rng.random(n) < 0.2] = 0
    bit = rng.random(n) < 0.5

    def cost(bits):
        return costs[bits[pairs.row] != bits[pairs.other]].sum() / 2

    places = -rest[kernel != 0] / kernel[kernel != 0]
    tried = np.concatenate([[places.min() - 1, places.max() + 1], np.sort(places)])
    tried = np.concatenate([tried, (np.sort(places)[1:] + np.sort(places)[:-1]) / 2])
    least = min(cost(rest + w * kernel > 0) for w in tried)
    weight, saved = best_weight(kernel, rest, bit, pairs, costs)
    assert cost(rest + weight * kernel > 0) == pytest.approx(least, abs=1e-5)
    assert saved == pytest.approx(cost(bit) - least, abs=1e-5)


def test_bre_never_raises_its_objective():
    rng = np.random.default_rng(0)
    embedding = Embedding(rng.standard_normal((60, 20)), random_pairs(rng, 60, 400), 6, 5, rng)
    values = [embedding.objective()]
    for _ in range(3):
        for p in range(6):
            embedding.improve(p, rng)
            values.append(embedding.objective())
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < 0.9 * values[0]
    bits = embedding.K @ embedding.weights > 0
    np.testing.assert_array_equal(bits, embedding.bits)


def test_bre_without_labels_reconstructs_distances():
    X, _ = blobs(random_state=1, n_classes=5)
    unit = X - X.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    wanted = ((unit[:, None] - unit) ** 2).sum(axis=-1).ravel()
    bits = BRE(n_bits=32).fit(X).transform(X)
    assert np.corrcoef(wanted, (bits[:, None] != bits).sum(axis=-1).ravel())[0, 1] > 0.8


# --- KSH and SDH


def test_ksh_s_code_products_approach_the_affinities():
    X, y = blobs()
    codes = 2.0 * KSH(n_bits=16, n_anchors=50).fit(X, y).transform(X) - 1
    wanted = 2.0 * (y[:, None] == y) - 1
    got = codes @ codes.T / 16
    assert ((got > 0) == (wanted > 0)).mean() > 0.97
    assert np.abs(got - wanted).mean() < np.abs(wanted).mean() / 2


def test_sdh_s_discrete_step_never_raises_its_objective_and_ends_at_a_minimum():
    rng = np.random.default_rng(0)
    B = np.where(rng.random((30, 6)) < 0.5, 1.0, -1.0)
    W, linear = rng.standard_normal((6, 3)), rng.standard_normal((30, 6))

    def objective(B):
        return ((B @ W) ** 2).sum() - 2 * (B * linear).sum()

    better = discrete_step(B, W, linear)
    assert objective(better) < objective(B)
    for i, k in itertools.product(range(30), range(6)):
        other = better.copy()
        other[i, k] *= -1
        assert objective(other) >= objective(better) - 1e-9


def test_sdh_lets_a_linear_classifier_read_the_labels():
    from sklearn.linear_model import RidgeClassifier

    X, y = blobs()
    codes = SDH(n_bits=12, n_anchors=60).fit(X, y).transform(X) * 2.0 - 1
    assert RidgeClassifier().fit(codes, y).score(codes, y) > 0.97


# --- graph cuts, trees, FastHash


@pytest.mark.parametrize("random_state", range(30))
def test_a_cut_is_the_best_of_all_bits(random_state):
    rng = np.random.default_rng(random_state)
    n, unary = 7, rng.standard_normal(7)
    heads, tails = np.array(list(itertools.combinations(range(n), 2))).T
    weights = rng.random(len(heads)) * (rng.random(len(heads)) < 0.6)

    def energy(z):
        z = np.asarray(z)
        return weights[z[heads] != z[tails]].sum() + unary @ z

    least = min(energy(z) for z in itertools.product((-1, 1), repeat=n))
    assert energy(np.where(minimum_cut(unary, heads, tails, weights), 1, -1)) == pytest.approx(
        least
    )


def test_a_sweep_of_cuts_never_raises_the_energy():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 80)
    pairs = AffinityPairs.sample(Targets.of(y, 80, "X"), 10, 10, rng)
    blocks = make_blocks(pairs, rng)
    assert np.sort(np.concatenate([block.rows for block in blocks])).tolist() == list(range(80))
    for block in blocks:
        assert (pairs.affinity[block.listed] == 1).all()
    weights, unary = np.empty(len(pairs.other), np.float32), rng.standard_normal(80)
    set_weights(
        pairs.affinity, np.zeros(len(pairs.other), np.uint16), *loss_steps("ksh", 1), weights
    )
    bit = np.where(rng.random(80) < 0.5, 1, -1).astype(np.int8)
    energies = []
    for _ in range(5):
        apart = bit[pairs.rows()] != bit[pairs.other]
        energies.append(weights[apart].sum(dtype=float) / 2 + unary @ bit)
        choose_bits(bit, weights, unary, pairs, blocks, rng)
    assert (np.diff(energies) <= 1e-6).all() and energies[-1] < energies[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_forest_equals_lightgbm(dtype):
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 5)).astype(dtype) / 4  # values that lie on thresholds
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 1.4).astype(int)
    parameters = {"objective": "binary", "max_depth": 4, "min_data_in_leaf": 3, "verbosity": -1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y), 20)
    theirs = booster.predict(X, raw_score=True)
    np.testing.assert_allclose(Forest.from_booster(booster).sums(X)[:, 0], theirs, atol=1e-12)
    two = Forest.joined([Forest.constant(-1.0), Forest.from_booster(booster)])
    np.testing.assert_allclose(two.sums(X), np.stack([-np.ones(200), theirs], 1), atol=1e-12)


def test_fasthash_and_machash_rank_separable_rows_perfectly():
    X, y = blobs()
    truth = bt.Relevance.from_classes(y, y)
    for hasher in (FastHash(n_bits=8, n_trees=20), MACHash(n_bits=8), StructHash(n_bits=8)):
        codes = hasher.fit(X, y).encode(X)
        assert bt.evaluate(codes, codes, truth, ["ap"])["ap"].mean > 0.95


@pytest.mark.parametrize(
    ("hasher", "module", "library"),
    [
        (FastHash(4), "maxflow", "PyMaxflow"),
        (FastHash(4), "lightgbm", "LightGBM"),
        (MACHash(4), "maxflow", "PyMaxflow"),
        (StructHash(4, learner="boosted"), "lightgbm", "LightGBM"),
    ],
)
def test_a_missing_library_is_named(monkeypatch, hasher, module, library):
    monkeypatch.setitem(sys.modules, module, None)
    X, y = blobs(n=20)
    says = rf"{type(hasher).__name__}: needs {library}; pip install 'bittern\[hashing\]'"
    with pytest.raises(bt.MissingExtraError, match=says):
        hasher.fit(X, y)


# --- MACHash


def test_machash_s_codes_never_raise_their_objective():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    pairs = AffinityPairs.sample(Targets.of(y, 60, "X"), 10, 10, rng)
    codes = AuxiliaryCoordinates(pairs, make_blocks(pairs, rng), "ksh", 5, rng)
    predicted = np.where(rng.random((5, 60)) < 0.5, 1, -1).astype(np.int8)
    for mu in (0.1, 1.0, 30.0):
        before = codes.objective(predicted, mu)
        codes.update(predicted, mu)
        assert codes.objective(predicted, mu) <= before + 1e-6
    np.testing.assert_array_equal(codes.bits, predicted)  # a large penalty prevails
    again = np.zeros_like(codes.apart)
    for bit in codes.bits:
        count_differences(bit, pairs, 1, again)
    np.testing.assert_array_equal(again, codes.apart)


# --- StructHash


@pytest.mark.parametrize("loss", ["auc", "ndcg"])
@pytest.mark.parametrize("learner", ["linear", "tree", "boosted", "stump"])
def test_structhash_never_raises_the_regularised_risk(loss, learner):
    X, y = blobs(random_state=2, gap=1.0)
    hasher = StructHash(n_bits=8, loss=loss, learner=learner).fit(X, y)
    # Each is solved to 1 % of its value.
    assert (np.diff(hasher.objective_) <= 0.011 * hasher.objective_[:-1]).all()
    assert hasher.objective_[-1] < hasher.objective_[0]
    assert (hasher.weights_ >= 0).all() and hasher.weights_.max() > 0


# --- parameters


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (BRE(4, n_pairs=0), "BRE: n_pairs must be at least 1, got 0"),
        (BRE(4, n_landmarks=2.5), "BRE: n_landmarks must be"),
        (KSH(4, n_anchors=0), "KSH: n_anchors must be at least 1"),
        (SDH(4, nu=-1), "SDH: nu must be"),
        (FastHash(4, loss="l2"), "FastHash: loss must be one of 'hinge', 'ksh', 'exponential'"),
        (FastHash(4, depth=99), "FastHash: depth must be"),
        (MACHash(4, mu=0), "MACHash: mu must be above 0"),
        (MACHash(4, C="much"), "MACHash: C must be a number"),
        (StructHash(4, loss="map"), "StructHash: loss must be one of 'auc', 'ndcg'"),
        (StructHash(4, learner="net"), "StructHash: learner must be one of"),
        (bt.hashing.AGH(4, layers=3), "AGH: layers must be"),
        (bt.hashing.STH(4, n_neighbours=0), "STH: n_neighbours must be at least 1"),
    ],
)
def test_a_bad_parameter_is_named(hasher, says):
    X, y = blobs(n=20)
    with pytest.raises(bt.InputError) as caught:
        hasher.fit(X, y)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize("hasher", [BRE(6), SDH(6), MACHash(6)])
def test_ctrl_c_leaves_the_model_so_far(hasher, monkeypatch):
    def interrupted(steps, what, total=None):
        for k, step in enumerate(steps):
            if k == 2:
                raise KeyboardInterrupt
            yield step

    monkeypatch.setattr(f"{type(hasher).__module__}.track", interrupted)
    X, y = blobs(gap=1.0)
    with pytest.warns(UserWarning, match="stopped early"):
        hasher.fit(X, y)
    assert hasher.encode(X).n_bits == 6
