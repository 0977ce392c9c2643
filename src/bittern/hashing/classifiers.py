"""Linear classifiers that learn bits."""

from __future__ import annotations

import warnings

import numpy as np

from bittern.checks import Float64Array
from bittern.hashing.base import Bits


def linear_classifier(
    X: Float64Array, wanted: Bits, C: float, rng: np.random.Generator, *, balanced: bool = False
) -> Float64Array:
    """Weights ``(dim + 1,)`` of a linear support vector machine, the constant term last.

    The loss is the squared hinge, by LIBLINEAR.  With ``balanced``, the rows of the rarer bit count
    more, so that both bits count the same.  A bit that all rows share is a constant.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    seed = int(rng.integers(2**31))
    ones = int(wanted.sum())
    zeros = len(wanted) - ones
    if not ones or not zeros:
        return np.append(np.zeros(X.shape[1]), 1.0 if ones else -1.0)
    weights = {True: max(zeros / ones, 1.0), False: max(ones / zeros, 1.0)} if balanced else None
    model = LinearSVC(C=C, dual=True, tol=0.1, class_weight=weights, random_state=seed)
    with warnings.catch_warnings():  # a nearly optimal classifier will do
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, wanted)
    return np.append(model.coef_, model.intercept_)
