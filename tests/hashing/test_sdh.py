"""Supervised discrete hashing: its steps against brute force, its objective written out."""

import itertools

import numpy as np
import pytest
from blobs import KINDS, TAGS, X, Y

import bittern as bt
from bittern.hashing.discrete_codes import DiscreteProblem, RidgeMap, discrete_step
from bittern.hashing.sdh import SDH


def objective(B, W, P, p, values, labels, nu, penalty, ridge=0.01):
    told = np.linalg.norm(labels - B @ W) ** 2 + penalty * np.linalg.norm(W) ** 2
    hashed = np.linalg.norm(B - values @ P - p) ** 2 + ridge * np.linalg.norm(P) ** 2
    return told + nu * hashed


def small_problem(n=20, m=4, c=3, nu=0.3, penalty=0.5, random_state=0):
    rng = np.random.default_rng(random_state)
    values, labels = rng.standard_normal((n, m)), rng.random((n, c))
    values -= values.mean(axis=0)
    B = np.where(rng.random((n, 5)) < 0.5, -1.0, 1.0)
    problem = DiscreteProblem([RidgeMap(values, 0.01)], [nu], labels, penalty)
    return problem, B, (values, labels, nu, penalty)


def test_the_classifier_and_the_hash_function_are_best_for_the_codes():
    problem, B, about = small_problem()
    state = problem.solve(B)
    ((P, p),) = state.functions
    assert state.objective == pytest.approx(objective(B, state.W, P, p, *about))
    rng = np.random.default_rng(1)
    for name in ("W", "P", "p"):
        for _ in range(10):
            parts = {"W": state.W, "P": P, "p": p}
            step = 1e-3 * rng.standard_normal(parts[name].shape)
            for way in (-1, 1):
                parts = {"W": state.W, "P": P, "p": p}
                parts[name] = parts[name] + way * step
                assert objective(B, *parts.values(), *about) > state.objective


@pytest.mark.parametrize("random_state", range(5))
def test_a_discrete_step_ends_where_no_other_column_is_better(random_state):
    problem, B, about = small_problem(n=6, random_state=random_state)
    state = problem.solve(B)
    values, labels, nu, _ = about
    ((P, p),) = state.functions
    linear = labels @ state.W.T + nu * (values @ P + p)
    found = discrete_step(B, state.W, linear)

    def cost(B):
        return objective(B, state.W, P, p, *about)

    assert set(np.unique(found)) <= {-1, 1}
    assert cost(found) <= cost(B)
    for k in range(5):
        for column in itertools.product((-1, 1), repeat=6):
            other = found.copy()
            other[:, k] = column
            assert cost(found) <= cost(other) + 1e-9


def test_the_objective_does_not_rise():
    for random_state in range(5):
        hasher = SDH(n_bits=6, n_anchors=30, n_iter=8, random_state=random_state).fit(X, Y)
        assert len(hasher.objectives_) == 9
        assert (np.diff(hasher.objectives_) <= 0).all()
        assert hasher.objectives_[-1] < 0.5 * hasher.objectives_[0]


def test_the_better_of_two_starts_is_taken():
    problem, B, _ = small_problem()
    state = problem.solve(B)
    after = problem.improve(state)
    assert after.objective < state.objective
    values = [after.objective]
    for _ in range(5):
        after = problem.improve(after)
        values.append(after.objective)
    assert (np.diff(values) <= 0).all()


def test_bits_are_the_signs_of_the_kernel_map():
    hasher = SDH(n_bits=5, n_anchors=30).fit(X, Y)
    squares = ((X[:, None] - hasher.anchors_) ** 2).sum(axis=-1)
    assert hasher.width_ == pytest.approx(squares.mean() / 2)
    kernel = np.exp(-squares / (2 * hasher.width_))
    np.testing.assert_allclose(hasher.mean_, np.append(kernel.mean(axis=0), 0))
    *P, p = hasher.projection_
    np.testing.assert_array_equal(
        hasher.transform(X), (kernel - kernel.mean(axis=0)) @ np.array(P) + p > 0
    )


@pytest.mark.parametrize("kind", KINDS)
def test_like_rows_get_like_codes_whatever_y_is(kind):
    bits = SDH(n_bits=8).fit(X, KINDS[kind]).transform(X)
    apart = (bits[:, None] != bits).sum(axis=-1)
    alike = (TAGS @ TAGS.T > 0) if kind != "labels" else Y[:, None] == Y
    assert apart[alike].mean() < 0.7 * apart[~alike].mean()


def test_a_stop_leaves_the_codes_of_the_last_iteration(monkeypatch):
    def interrupted(steps, what):
        yield from list(steps)[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr("bittern.hashing.sdh.track", interrupted)
    with pytest.warns(UserWarning, match="SDH: stopped early"):
        stopped = SDH(n_bits=6, n_iter=9).fit(X, Y)
    monkeypatch.undo()
    assert stopped.stopped_early_
    assert stopped.encode(X) == SDH(n_bits=6, n_iter=2).fit(X, Y).encode(X)


@pytest.mark.parametrize("n_bits", [1, 65])
@pytest.mark.parametrize("rows", [X[:1], X[:2], np.ones((20, 6))])
def test_few_rows_and_equal_rows_are_hashed(rows, n_bits):
    y = np.arange(len(rows)) % 2
    assert SDH(n_bits).fit(rows, y).transform(rows).shape == (len(rows), n_bits)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_anchors": 0}, "SDH: n_anchors must be at least 1, got 0"),
        ({"n_iter": 0}, "SDH: n_iter must be at least 1, got 0"),
        ({"nu": -1}, "SDH: nu must be at least 0, got -1"),
        ({"penalty": 0}, "SDH: penalty must be above 0, got 0"),
        ({"width": 0}, "SDH: width must be above 0, got 0"),
        ({"width": "wide"}, "SDH: width must be a number, got 'wide'"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(parameters, says):
    with pytest.raises(bt.InputError, match=says):
        SDH(4, **parameters).fit(X, Y)
