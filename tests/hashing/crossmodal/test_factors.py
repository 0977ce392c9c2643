"""SCRATCH and CMFH: each step is the best one, and the objective never rises."""

import numpy as np
import pytest

import bittern as bt
from bittern.hashing.crossmodal import CMFH, SCRATCH
from bittern.hashing.crossmodal.factors import Factorisation
from bittern.hashing.crossmodal.projections import View

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 80)
IMAGES = rng.standard_normal((80, 6)) + 2 * rng.standard_normal((3, 6))[LABELS] + 7
TEXTS = 20 * (rng.standard_normal((80, 4)) + 2 * rng.standard_normal((3, 4))[LABELS])
VIEWS = View.linear(IMAGES), View.linear(TEXTS)
MATRICES = [(0.3, VIEWS[0].features), (2.0, np.eye(3)[LABELS])]


def objective(V, U, W, mu, ridge, gamma):
    """The definition, term by term."""
    total = gamma * np.linalg.norm(V) ** 2
    for (weight, A), u in zip(MATRICES, U, strict=True):
        total += weight * np.linalg.norm(A - V @ u) ** 2 + gamma * np.linalg.norm(u) ** 2
    for view, w in zip(VIEWS, W, strict=True):
        total += mu * np.linalg.norm(V - view.features @ w) ** 2
        total += mu * ridge * 80 * np.linalg.norm(w) ** 2
    return total


@pytest.mark.parametrize("step", ["U", "V", "W"])
def test_each_step_is_the_best_for_the_others(step):
    settings = {"mu": 0.7, "ridge": 0.02, "gamma": 0.4}
    problem = Factorisation(MATRICES, VIEWS, **settings)
    V = rng.standard_normal((80, 5))
    U, W = problem.loadings(rng.standard_normal((80, 5))), problem.predictors(V + 1)
    if step == "U":
        U = problem.loadings(V)
    elif step == "V":
        V = problem.factors(U, W)
    else:
        W = problem.predictors(V)
    best = objective(V, U, W, **settings)
    assert problem.objective(V, U, W) == pytest.approx(best)
    for _ in range(20):
        moved = {"V": [V], "U": U, "W": W}
        moved[step] = [part + 1e-4 * rng.standard_normal(part.shape) for part in moved[step]]
        assert objective(moved["V"][0], moved["U"], moved["W"], **settings) > best


def test_a_target_pulls_the_factors():
    problem = Factorisation(MATRICES, VIEWS, 0.7, 0.02, 0.4)
    U, W = (f(rng.standard_normal((80, 5))) for f in (problem.loadings, problem.predictors))
    target = rng.standard_normal((80, 5))
    V = problem.factors(U, W, target)

    def total(V):
        return problem.objective(V, U, W) + np.square(V - target).sum()

    assert all(total(V + 1e-4 * rng.standard_normal(V.shape)) > total(V) for _ in range(20))


@pytest.mark.parametrize("kind", [CMFH, SCRATCH])
def test_the_objective_never_rises_and_the_functions_predict_the_factors(kind):
    hasher = kind(6, n_iter=15).fit(IMAGES, TEXTS, LABELS)
    assert len(hasher.objectives_) == 15
    assert (np.diff(hasher.objectives_) <= 1e-9 * hasher.objectives_[0]).all()
    assert hasher.objectives_[-1] < hasher.objectives_[0]
    for bits in (hasher.transform(images=IMAGES), hasher.transform(texts=TEXTS)):
        assert (bits == hasher.training_bits_).mean() > 0.75


def test_scratch_settles():
    hasher = SCRATCH(4, kernel="linear", n_iter=100).fit(IMAGES, TEXTS, LABELS)
    longer = SCRATCH(4, kernel="linear", n_iter=130).fit(IMAGES, TEXTS, LABELS)
    np.testing.assert_array_equal(hasher.training_bits_, longer.training_bits_)
    assert longer.objectives_[-1] == pytest.approx(hasher.objectives_[-1], rel=1e-2)


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (SCRATCH(kernel="cosine"), "SCRATCH: kernel must be one of"),
        (SCRATCH(alpha=-1), "SCRATCH: alpha must be at least 0"),
        (SCRATCH(mu=0), "SCRATCH: mu must be above 0"),
        (CMFH(mu=0), "CMFH: mu must be above 0"),
        (CMFH(ridge=0), "CMFH: ridge must be above 0"),
        (CMFH(n_iter=0), "CMFH: n_iter must be at least 1"),
    ],
)
def test_bad_options_are_refused(hasher, says):
    with pytest.raises(bt.InputError, match=f"^{says}"):
        hasher.fit(IMAGES, TEXTS, LABELS)
