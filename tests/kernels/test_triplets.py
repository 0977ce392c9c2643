"""The likelihood of triplets against its NumPy twin; test_objectives writes the loss out."""

import numpy as np
import pytest
from twins import triplet_reference

from bittern.kernels import triplets


@pytest.mark.parametrize("spread", [0.1, 5, 40, 400, 4000])  # from 400 on, exponentials overflow
@pytest.mark.parametrize("n_levels", [1, 2, 4])
def test_sum_count_and_slopes(spread, n_levels):
    rng = np.random.default_rng(n_levels)
    theta = rng.normal(0, spread, (23, 23))
    levels = rng.integers(-1, n_levels, (23, 23))
    found, want = np.zeros((23, 23)), np.zeros((23, 23))
    total, count = triplets.triplet_likelihood(theta, levels, 6.0, found)
    expected, n_triplets = triplet_reference.triplet_likelihood(theta, levels, 6.0, want)
    assert count == n_triplets
    assert total == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


def test_a_batch_without_triplets_has_no_loss():
    slopes = np.zeros((3, 3))
    assert triplets.triplet_likelihood(np.ones((3, 3)), np.ones((3, 3)), 1.0, slopes) == (0, 0)
    assert not slopes.any()
