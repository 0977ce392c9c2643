"""The kernels of PDQ against their NumPy twins, to the last bit."""

import numpy as np
import pytest
from twins import pdq_reference

from bittern.features.pdq import _cosines
from bittern.kernels import pdq


@pytest.mark.parametrize("shape", [(5, 5), (64, 64), (64, 65), (129, 63), (300, 257), (5, 700)])
def test_shrinking_gradients_and_frequencies(shape):
    rng = np.random.default_rng(shape[1])
    luma = (255 * rng.random(shape)).astype(np.float32)
    found, want = np.empty((2, 64, 64), np.float32)
    pdq.shrink_by_boxes(luma.copy(), found)
    pdq_reference.shrink_by_boxes(luma.copy(), want)
    np.testing.assert_array_equal(found, want)
    assert pdq.sum_gradients(found) == pdq_reference.sum_gradients(want) > 0
    low, expected = np.empty((2, 16, 16), np.float32)
    pdq.find_frequencies(found, _cosines(), low)
    pdq_reference.find_frequencies(want, _cosines(), expected)
    np.testing.assert_array_equal(low, expected)
