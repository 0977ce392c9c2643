"""Graph-regularised hashing against the steps written out."""

import numpy as np
import pytest
from blobs import KINDS, X, Y

import bittern as bt
from bittern.hashing import GRH, ITQ, LSH, classifiers
from bittern.hashing.classifiers import bit_classifiers, regularised_classifiers


def smoothed(bits, start, affinity, alpha):
    """The vote of the neighbours, row by row and bit by bit."""
    out = np.empty(bits.shape, bool)
    for i in range(len(bits)):
        weights = affinity[i].copy()
        weights[i] = max(weights[i], 1)
        for k in range(bits.shape[1]):
            vote = sum(w * (1 if b else -1) for w, b in zip(weights, bits[:, k], strict=True))
            own = 1 if start[i, k] else -1
            out[i, k] = alpha * vote / weights.sum() + (1 - alpha) * own >= 0
    return out


@pytest.fixture
def learned(monkeypatch):
    """The bits that classifiers were told to learn."""
    found = []

    def recorded(centred, wanted, C, **options):
        found.append(wanted)
        return bit_classifiers(centred, wanted, C, **options)

    monkeypatch.setattr(classifiers, "bit_classifiers", recorded)
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.4, 0.8, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_to_learn_are_those_that_neighbours_vote_for(kind, alpha, learned):
    targets = bt.hashing.Targets.of(KINDS[kind], len(X), "GRH")
    start, centred = LSH(5, random_state=1).fit(X).transform(X), X - X.mean(axis=0)
    steps = regularised_classifiers(centred, start, targets, alpha, 1.0)
    bits = start
    for _ in range(3):
        weights, constant = next(steps)
        expected = smoothed(bits, start, targets.affinity(), alpha)
        np.testing.assert_array_equal(learned[-1], expected)
        bits = centred @ weights + constant > 0


def test_with_all_the_weight_on_the_graph_a_class_has_one_code_to_learn(learned):
    GRH(8, alpha=1.0).fit(X, Y)
    for label in np.unique(Y):
        assert len(np.unique(learned[-1][label == Y], axis=0)) == 1


def test_the_functions_are_the_last_classifiers():
    hasher = GRH(6, alpha=0.9, n_iter=2, n_anchors=None, n_labelled=60, random_state=3).fit(X, Y)
    rng = np.random.default_rng(3)
    start = LSH(6, random_state=3).fit(X)
    rows = np.sort(rng.permutation(len(X))[:60])
    mean, targets = X[rows].mean(axis=0), bt.hashing.Targets.of(Y[rows], 60, "GRH")
    steps = regularised_classifiers(X[rows] - mean, start.transform(X[rows]), targets, 0.9, 1.0)
    next(steps)
    weights, constant = next(steps)
    np.testing.assert_array_equal(hasher.transform(X), (X - mean) @ weights + constant > 0)


def test_a_kernel_separates_what_no_hyperplane_does():
    rng = np.random.default_rng(0)
    angle, labels = rng.uniform(0, 2 * np.pi, 300), np.arange(300) % 2
    ring = (1 + 2 * labels)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    ring += 0.1 * rng.standard_normal(ring.shape)
    truth = bt.Relevance.from_classes(labels, labels)

    def precision(n_anchors):
        codes = GRH(8, n_anchors=n_anchors).fit(ring, labels).encode(ring)
        return bt.evaluate(codes, codes, truth, ["ap"])["ap"].mean

    assert precision(50) > 0.95 > 0.75 > precision(None)


def test_codes_are_better_than_those_it_starts_from():
    truth = bt.Relevance.from_classes(Y, Y)
    hard = X + np.random.default_rng(0).normal(0, 2, X.shape)
    start, learned = ITQ(12).fit(hard).encode(hard), GRH(12, start="itq").fit(hard, Y).encode(hard)
    before, after = (
        bt.evaluate(codes, codes, truth, ["ap"])["ap"].mean for codes in (start, learned)
    )
    assert after > before + 0.02


def test_ctrl_c_keeps_the_last_classifiers(monkeypatch):
    def track(things, what, total=None):
        yield from list(things)[:1]
        raise KeyboardInterrupt

    monkeypatch.setattr("bittern.hashing.grh.track", track)
    with pytest.warns(UserWarning, match="GRH: stopped early"):
        stopped = GRH(6, n_iter=5).fit(X, Y)
    monkeypatch.undo()
    assert stopped.stopped_early_
    assert stopped.encode(X) == GRH(6, n_iter=1).fit(X, Y).encode(X)


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (GRH(alpha=1.2), r"GRH: alpha must be at most 1, got 1.2"),
        (GRH(alpha=-0.1), r"GRH: alpha must be at least 0, got -0.1"),
        (GRH(n_iter=0), r"GRH: n_iter must be at least 1, got 0"),
        (GRH(C=0), r"GRH: C must be above 0, got 0"),
        (GRH(n_anchors=0), r"GRH: n_anchors must be at least 1, got 0"),
        (GRH(n_labelled=0), r"GRH: n_labelled must be at least 1, got 0"),
        (GRH(start="sh"), r"GRH: start must be a linear hasher, .* got 'sh'"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(bt.InputError, match=says):
        hasher.fit(X, Y)
