"""Gist against a slow transcription of its definition, and against rows in use for CIFAR-10."""

import cmath
import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from real_files import cifar10_pickles, shared_data

import bittern as bt
from bittern.features.gist import Gist

RNG = np.random.default_rng(0)


def textured(height, width):
    """Random pixels, smoothed by sums, so that there is something at each scale."""
    noise = RNG.standard_normal((height, width, 3))
    smooth = noise + 0.3 * noise.cumsum(axis=0) + 0.3 * noise.cumsum(axis=1)
    low, high = smooth.min(), smooth.max()
    return np.uint8(255 * (smooth - low) / (high - low))


def mirrored(x, margin):
    """Item by item: -1 is 0, -2 is 1, and n is n - 1 again."""
    n = len(x)
    where = [i % (2 * n) for i in range(-margin, n + margin)]
    where = [i if i < n else 2 * n - 1 - i for i in where]
    return np.array([[x[i, j] for j in where] for i in where])


def filtered(x, gain):
    """The waves of x, of a cycles downwards and b cycles across, each times gain(a, b)."""
    n = len(x)
    k = [i - n if 2 * i >= n else i for i in range(n)]
    waves = np.array([[cmath.exp(-2j * math.pi * a * i / n) for i in range(n)] for a in k])
    gains = np.array([[gain(a, b) for b in k] for a in k])
    return waves.conj().T @ (waves @ x @ waves.T * gains) @ waves.conj() / n**2


def gist_by_hand(image, n_scales=4, n_orientations=8, n_blocks=4):
    """The docstring, line by line, for a square image."""
    x = image.astype(float).sum(axis=2) / 3
    u = mirrored(np.log(1 + 255 * (x - x.min()) / (x.max() - x.min())), 5)

    def low(a, b):
        return 2 ** (-(a * a + b * b) / 16)

    v = u - filtered(u, low).real
    p = (v / (0.2 + np.sqrt(filtered(v * v, low).real)))[5:-5, 5:-5]
    side, wide = len(p), mirrored(p, 32)
    edges = [side * b // n_blocks for b in range(n_blocks + 1)]
    row = []
    for s in range(n_scales):
        for o in range(n_orientations):

            def gain(a, b, s=s, o=o):
                f = math.hypot(a, b) / len(wide)
                angle = math.atan2(a, b) + math.pi * o / n_orientations
                angle -= 2 * math.pi if angle > math.pi else 0
                radial = 3.5 * (f / (0.3 / 1.85**s) - 1) ** 2
                return math.exp(-radial - 2 * math.pi * (n_orientations / 8 * angle) ** 2)

            strength = abs(filtered(wide, gain))[32:-32, 32:-32]
            for left, right in pairwise(edges):
                for top, bottom in pairwise(edges):
                    row.append(strength[top:bottom, left:right].mean())
    return np.array(row)


def test_a_row_is_what_the_definition_says():
    image = textured(32, 32)
    (row,) = Gist().transform([image])
    assert row.shape == (512,) and row.dtype == np.float32
    expected = gist_by_hand(image)
    assert expected.std() > 0.01
    np.testing.assert_allclose(row, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(
    ("side", "options"),
    [
        (17, {"n_scales": 1, "n_orientations": 4, "n_blocks": 3}),  # odd, and blocks not all alike
        (5, {"n_scales": 2, "n_orientations": 3, "n_blocks": 5}),
        (6, {"n_scales": 1, "n_orientations": 9, "n_blocks": 1}),
    ],
)
def test_other_counts_of_filters_and_blocks_follow_the_definition(side, options):
    image = textured(side, side)
    (row,) = Gist(**options).transform([image])
    np.testing.assert_allclose(row, gist_by_hand(image, **options), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("grey", [0, 7, 100, 255])
@pytest.mark.parametrize("size", [None, 24])
def test_an_image_of_one_grey_has_only_zeros(grey, size):
    images = [np.full((40, 30, 3), grey, np.uint8)]
    assert not Gist(size).transform(images).any()


def test_brightness_and_contrast_make_no_difference():
    image = textured(32, 32) // 2
    rows = Gist().transform([image, image + 50, 2 * image])
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-5)
    np.testing.assert_allclose(rows[2], rows[0], atol=1e-5)


def test_a_mirrored_image_swaps_columns_of_blocks_and_directions():
    image = textured(32, 32)
    rows = Gist(n_scales=2).transform([image, image[:, ::-1]])
    shape = 2, 8, 4, 4  # scale, orientation, column, row of blocks
    one, other = rows[0].reshape(shape), rows[1].reshape(shape)
    back = other[:, [0, 7, 6, 5, 4, 3, 2, 1], ::-1]  # the angle π o / 8 becomes π - π o / 8
    # Not exactly: the waves of half a cycle a pixel have no opposite.
    np.testing.assert_allclose(back, one, rtol=0.02, atol=2e-3)
    assert not np.allclose(other, one, rtol=0.5, atol=2e-3)


def test_stripes_are_strongest_across_their_direction_and_at_their_scale():
    x = np.arange(64)
    for s, o in [(1, 0), (2, 2), (3, 4), (1, 6)]:
        f, angle = 0.3 / 1.85**s, -math.pi * o / 8
        wave = np.cos(2 * math.pi * f * (math.cos(angle) * x + math.sin(angle) * x[:, None]))
        (row,) = Gist().transform([np.uint8(127 + 100 * wave)])
        strengths = row.reshape(4, 8, 16).mean(axis=2)
        assert np.unravel_index(strengths.argmax(), (4, 8)) == (s, o)


def test_images_are_cropped_to_the_square_in_their_middle():
    image = textured(20, 45)
    for one in (image, image.transpose(1, 0, 2)):
        middle = one[:20, 12:32] if one.shape[1] == 45 else one[12:32, :20]
        np.testing.assert_array_equal(*Gist().transform([one, middle]))


def test_large_images_are_scaled_to_128_pixels_unless_told_otherwise():
    image = np.kron(textured(128, 128), np.ones((2, 2, 1), np.uint8))
    given, named = Gist().transform([image]), Gist(128).transform([image])
    np.testing.assert_array_equal(given, named)
    assert not np.allclose(given, Gist(64).transform([image]), atol=1e-3)
    kept = Gist().transform([image[::2, ::2]])  # scaling blurs a little, which is all
    assert np.corrcoef(kept[0], given[0])[0, 1] > 0.95


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (2, 3), (3, 2), (4, 4), (200, 7)])
def test_tiny_and_narrow_images_have_finite_rows(shape):
    rows = Gist().transform([RNG.integers(0, 256, shape, dtype=np.uint8)])
    assert rows.shape == (1, 512) and np.isfinite(rows).all()


def test_threads_make_no_difference():
    images = [textured(side, side) for side in (8, 12, 16, 20) * 3]
    alone = [Gist().transform([image]) for image in images]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda image: Gist().transform([image]), images))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 3}, "size must be between 4 and 1024"),
        ({"size": 31.5}, "size must be a whole number"),
        ({"n_scales": 0}, "n_scales must be between 1 and 16"),
        ({"n_orientations": True}, "n_orientations must be a whole number"),
        ({"n_blocks": -1}, "n_blocks must be between 1 and 64"),
    ],
)
def test_bad_parameters_are_refused(options, words):
    images = [np.zeros((8, 8), np.uint8)]
    for use in (Gist(**options).fit, Gist(**options).transform):
        with pytest.raises(bt.InputError, match=f"^Gist: {words}"):
            use(images)


@pytest.mark.shared
def test_cifar10_has_the_rows_that_are_in_use_for_it():
    given = bt.load("cifar10", shared_data("cifar10_gist512"), features="gist")
    images = bt.load("cifar10", cifar10_pickles())["image"][:400]
    in_use = given["gist"][:400].astype(np.float64)
    rows = Gist().transform(images).astype(np.float64)
    np.testing.assert_allclose(rows, in_use, atol=3e-4)  # they are kept as float16

    ours, theirs = rows - rows.mean(axis=0), in_use - in_use.mean(axis=0)
    products = (ours * theirs).sum(axis=0)
    lengths = np.linalg.norm(ours, axis=0) * np.linalg.norm(theirs, axis=0)
    assert (products / lengths).min() > 0.9999
    assert (nearest(rows) == nearest(in_use)).mean() > 0.99


def nearest(rows):
    squares = (rows**2).sum(axis=1)
    distances = squares - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=1)
