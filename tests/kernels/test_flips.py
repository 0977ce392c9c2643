import numpy as np
import pytest
from twins import flip_reference

from bittern.kernels import flips


@pytest.mark.parametrize("n_rows", [1, 13])
def test_the_kernel_equals_its_twin_to_the_bit(n_rows):
    rng = np.random.default_rng(n_rows)
    eights = rng.standard_normal((n_rows, 8))
    drawn = rng.integers(0, 256, (n_rows, 500), np.uint8)
    found, wanted = np.ones((2, 500))
    flips.add_flipped(eights, drawn, found)
    flip_reference.add_flipped(eights, drawn, wanted)
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(found)) > 100  # not vacuous
