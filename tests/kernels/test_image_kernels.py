"""Kernels over images against their NumPy twins."""

import numpy as np
import pytest
from twins import image_reference

from bittern.features.colour import _hmmd_tables
from bittern.kernels import images

SHAPES = [(1, 1), (1, 9), (11, 2), (40, 23), (70, 9)]  # the tall ones have several strips


def random_image(shape, random_state=0):
    """Bytes with many greys, primary colours and black: where hue and saturation are singular."""
    rng = np.random.default_rng(random_state)
    image = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
    image[rng.random(shape) < 0.2] //= 64
    image[rng.random(shape) < 0.2] &= 192
    image[rng.random(shape) < 0.2] = rng.integers(256)
    return image


def both(name, arguments, shape, dtype):
    """What a kernel and its twin write, over something that neither would."""
    outs = []
    for module in (images, image_reference):
        out = np.full(shape, 77, dtype)
        getattr(module, name)(*arguments, out)
        outs.append(out)
    return outs


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_bins", [(16, 4, 4), (7, 3, 5), (1, 1, 1)])
def test_hsv_cells_equal_their_twin(shape, n_bins):
    arguments = (random_image(shape), *n_bins)
    found, wanted = both("hsv_cells", arguments, shape, np.intp)
    np.testing.assert_array_equal(found, wanted)
    assert wanted.min() >= 0 and wanted.max() < np.prod(n_bins)


@pytest.mark.parametrize("n_bins", [32, 64, 128, 256])
def test_hmmd_cells_equal_their_twin(n_bins):
    image = random_image((90, 90))
    arguments = (image, *_hmmd_tables(n_bins))
    found, wanted = both("hmmd_cells", arguments, image.shape[:2], np.uint8)
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(wanted)) > 0.8 * n_bins


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_cells", [5, 64, 200])
@pytest.mark.parametrize("side", [8, 3, 1])
def test_seen_cells_equal_their_twin(shape, n_cells, side):
    cells = np.random.default_rng(1).integers(0, n_cells, shape).astype(np.uint8)
    sides = [min(side, length) for length in shape]
    found, wanted = both("count_seen", (cells, *sides), n_cells, np.int64)
    np.testing.assert_array_equal(found, wanted)
    assert wanted.any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [(1, 1), (4, 6), (13, 5)])
def test_shrunken_images_equal_their_twin(shape, size):
    found, wanted = both("shrink", (random_image(shape),), (*size, 3), np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [2, 5])
def test_deviations_equal_their_twin(shape, side):
    grey = np.ascontiguousarray(random_image(shape)[:, :, 0] // 4)
    sides = [min(side, length) for length in shape]
    starts = [np.arange(4) * (n - s + 1) // 3 for n, s in zip(shape, sides, strict=True)]
    arguments = (grey, *sides, 2.5, *starts)
    found, wanted = both("count_deviations", arguments, (3, 3, 9), np.int64)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 7, 1), (9, 4, 80), (8, 8, 300)])
def test_filtered_maps_equal_their_twin(shape):
    rng = np.random.default_rng(2)
    maps = rng.standard_normal(shape).astype(np.float32)
    kernels = rng.standard_normal((3, 5)).astype(np.float32)
    half = tuple((length + 1) // 2 for length in shape[:2])
    found, wanted = both("rectify", (maps, kernels), (*half, 9, shape[2]), np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    found, wanted = both("sum_rectified", (maps, kernels), (9, shape[2]), np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
