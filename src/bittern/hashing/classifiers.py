"""Linear classifiers that learn bits, and bits on which neighbours vote."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from bittern.checks import Float64Array, check_count, check_number, row_blocks
from bittern.errors import InputError
from bittern.hashing.base import Bits
from bittern.hashing.squared_hinge import support_vectors
from bittern.hashing.targets import Targets


def linear_classifier(
    X: Float64Array, wanted: Bits, C: float, rng: np.random.Generator
) -> Float64Array:
    """Weights ``(dim + 1,)`` of a linear support vector machine, the constant term last.

    The loss is the squared hinge, by LIBLINEAR.  A bit that all rows share is a constant.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    seed = int(rng.integers(2**31))
    ones = int(wanted.sum())
    if ones in (0, len(wanted)):
        return np.append(np.zeros(X.shape[1]), 1.0 if ones else -1.0)
    model = LinearSVC(C=C, dual=True, tol=0.1, random_state=seed)
    with warnings.catch_warnings():  # a nearly optimal classifier will do
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, wanted)
    return np.append(model.coef_, model.intercept_)


def bit_classifiers(
    centred: Float64Array, wanted: Bits, C: float, *, balanced: bool
) -> tuple[Float64Array, Float64Array]:
    """Weights ``(dim, n_bits)`` and constant terms of a classifier for each bit.

    The machines see the centred features scaled to a mean square length of 1, so that ``C`` means
    the same whatever their unit; the weights are those of the features as given.
    """
    scale = float(np.sqrt((centred**2).sum(axis=1).mean())) or 1.0
    weights = support_vectors(centred / scale, wanted, C, balanced=balanced)
    return weights[:-1] / scale, weights[-1]


def regularised_classifiers(
    centred: Float64Array,
    start: Bits,
    targets: Targets,
    alpha: float,
    C: float,
) -> Iterator[tuple[Float64Array, Float64Array]]:
    """Classifiers of bits that neighbours vote for, step after step, without end.

    Each step lets neighbours vote on the bits that the last classifiers predict, mixes in the bits
    of the ``start`` with the weight 1 - α, and learns the result.
    """
    bits = start
    while True:
        mixed = alpha * votes(targets, bits) + (1 - alpha) * signs(start)
        weights, constant = bit_classifiers(centred, mixed >= 0, C, balanced=True)
        yield weights, constant
        bits = centred @ weights + constant > 0


def votes(targets: Targets, bits: Bits) -> Float64Array:
    """The mean bit, -1 … 1, of the neighbours of each row, weighted by their affinities.

    A row is its own neighbour.
    """
    out, rows = np.empty(bits.shape), np.arange(len(bits))
    for some in row_blocks(len(rows), 8 * len(rows)):
        affinity = targets.affinity(rows[some]).astype(np.float64)
        own = np.arange(len(affinity)), rows[some]
        affinity[own] = np.maximum(affinity[own], 1)
        out[some] = affinity @ signs(bits) / affinity.sum(axis=1, keepdims=True)
    return out


def signs(bits: Bits) -> Float64Array:
    """-1 and 1 for 0 and 1."""
    return np.where(bits, 1.0, -1.0)


def check_regularisation(title: str, alpha: float, n_iter: int, C: float) -> None:
    """Check the parameters of :func:`regularised_classifiers`."""
    if check_number(alpha, f"{title}: alpha", least=0) > 1:
        raise InputError(f"{title}: alpha must be at most 1, got {alpha:g}.")
    check_count(n_iter, f"{title}: n_iter")
    check_number(C, f"{title}: C", above=0)
