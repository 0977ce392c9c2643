"""The gradient of depthwise weights against its NumPy twin; test_backbones compares with torch."""

import numpy as np
import pytest
from twins import depthwise_reference

from bittern.kernels import depthwise


@pytest.mark.parametrize(("stride", "side"), [(1, 5), (2, 5), (1, 3), (2, 7), (1, 1)])
@pytest.mark.parametrize("channels", [3, 64, 100])
def test_sums_equal_the_twin_s(stride, side, channels):
    rng = np.random.default_rng(side)
    x = rng.standard_normal((3, 6, 9, channels))
    padding = side // 2
    rows, columns = ((n + 2 * padding - side) // stride + 1 for n in x.shape[1:3])
    g = rng.standard_normal((3, rows, columns, channels))
    found, want = np.full((2, side, side, channels), np.nan)
    for kernels, out in ((depthwise, found), (depthwise_reference, want)):
        for first in range(0, channels, 40):  # in parts that do not fit the kernel's own
            part = out[:, :, first : first + 40]
            kernels.depthwise_weight_gradient(x, g, stride, padding, first, part)
    np.testing.assert_allclose(found, want, atol=1e-10)
    assert np.abs(want).min() > 0
