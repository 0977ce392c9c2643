from math import sqrt

import numpy as np
import pytest

import bittern as bt
from bittern.errors import InputError


def slow_rmse(predicted, true):
    return sqrt(sum((p - t) ** 2 for p, t in zip(predicted, true, strict=True)) / len(true))


def test_rmse_is_the_root_of_the_mean_square():
    rng = np.random.default_rng(0)
    predicted, true = rng.standard_normal((2, 50))
    assert bt.rmse(predicted, true) == pytest.approx(slow_rmse(predicted, true))


def test_rmse_worked_example():
    # Errors 3 and 4: sqrt((9 + 16) / 2).
    assert bt.rmse([3, 0], [0, 4]) == pytest.approx(sqrt(12.5))
    assert bt.rmse([1, 2], [1, 2]) == 0


@pytest.mark.parametrize(
    ("predicted", "true", "says"),
    [
        ([], [], "the same shape, not empty"),
        ([1.0], [1.0, 2.0], r"got \(1,\) and \(2,\)"),
        ([np.nan], [1.0], "must be finite"),
        ([1.0], [np.inf], "must be finite"),
    ],
)
def test_rmse_refuses_what_has_no_error(predicted, true, says):
    with pytest.raises(InputError, match=says):
        bt.rmse(predicted, true)
