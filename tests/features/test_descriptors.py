"""The hand-made descriptors against slow direct computations and what must not change them."""

import itertools
import math
import statistics
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from bittern import InputError
from bittern.features.colour import ColourStructure, HSVFocus, HSVGlobal, RGBMoments
from bittern.features.texture import (
    Convolution,
    Smoothness,
    Thumbnail,
    Uniformity,
    Variance,
    tile_slices,
)

FEATURES = {
    HSVGlobal: 256,
    HSVFocus: 256,
    ColourStructure: 64,
    RGBMoments: 12,
    Thumbnail: 384,
    Convolution: 46_875,
    Variance: 144,
    Smoothness: 64,
    Uniformity: 64,
}


def image_of(height, width, random_state=0, low=0, high=256):
    """Random pixels, a fifth of them grey."""
    rng = np.random.default_rng(random_state)
    image = rng.integers(low, high, (height, width, 3), dtype=np.uint8)
    grey = rng.random((height, width)) < 0.2
    image[grey] = image[grey][:, :1]
    return image


def describe(feature, image):
    (row,) = feature.transform([image])
    return row


def luma(image):
    """Grey values as nested lists, by ITU-R BT.601 in 16-bit fixed point."""
    return [
        [(19595 * int(r) + 38470 * int(g) + 7471 * int(b) + 32768) >> 16 for r, g, b in row]
        for row in image
    ]


# Every descriptor


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 1), (3, 4), (9, 30)])
def test_images_of_any_size_have_finite_rows_of_one_length(kind, shape):
    row = describe(kind(), image_of(*shape))
    assert row.dtype == np.float32 and row.shape == (FEATURES[kind],)
    assert np.isfinite(row).all() and row.any() == (kind is not Smoothness or shape == (9, 30))


@pytest.mark.parametrize("kind", FEATURES)
def test_a_clone_describes_alike_and_images_do_not_influence_each_other(kind):
    images = [image_of(12, 17, 1), image_of(9, 8, 2)]
    together = clone(kind()).fit(images).transform(images)
    for row, image in zip(together, images, strict=True):
        np.testing.assert_array_equal(row, describe(kind(), image))
    assert (together[0] != together[1]).any()


def test_names_are_those_of_the_issue():
    names = [kind.name for kind in FEATURES]
    assert names == [
        "hsv-global",
        "hsv-focus",
        "colour-structure",
        "rgb-moments",
        "thumbnail",
        "convolution",
        "variance",
        "smoothness",
        "uniformity",
    ]


@pytest.mark.parametrize(
    ("feature", "says"),
    [
        (HSVGlobal(n_hues=0), r"HSVGlobal: n_hues must be between 1 and 360, got 0\."),
        (HSVFocus(n_values=2.5), r"HSVFocus: n_values must be a whole number between"),
        (HSVGlobal(n_saturations=True), r"n_saturations must be a whole number between"),
        (ColourStructure(n_bins=100), r"n_bins must be 32, 64, 128 or 256, got 100\."),
        (ColourStructure(n_bins="64"), r"n_bins must be a whole number between 32 and 256"),
        (ColourStructure(quantise=1), r"ColourStructure: quantise must be a bool, got int\."),
        (RGBMoments(roots="no"), r"RGBMoments: roots must be a bool, got str\."),
        (Thumbnail(width=0), r"Thumbnail: width must be between 1 and 4096, got 0\."),
        (Convolution(size=4), r"Convolution: size must be between 8 and 1024, got 4\."),
        (Variance(window=1), r"Variance: window must be between 2 and 255, got 1\."),
        (Variance(largest=0), r"largest must be a number above 0 and at most 127\.5, got 0\."),
        (Variance(largest=math.nan), r"largest must be a number above 0 .* got nan\."),
        (Variance(largest="64"), r"largest must be a number above 0 .* got '64'\."),
        (Smoothness(n_tiles=-1), r"Smoothness: n_tiles must be between 1 and 256, got -1\."),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(feature, says):
    for use in (feature.fit, feature.transform):
        with pytest.raises(InputError, match=says):
            use([image_of(2, 2)])


# Colour


def hue_in_turns(r, g, b):
    top, low = max(r, g, b), min(r, g, b)
    if top == low:
        return Fraction(0)
    if top == r:
        return Fraction(g - b, 6 * (top - low)) % 1
    if top == g:
        return Fraction(b - r, 6 * (top - low)) + Fraction(1, 3)
    return Fraction(r - g, 6 * (top - low)) + Fraction(2, 3)


def slow_hsv(image, n_hues, n_saturations, n_values):
    counts = Counter()
    for r, g, b in image.reshape(-1, 3).tolist():
        top, low = max(r, g, b), min(r, g, b)
        saturation = Fraction(top - low, top) if top else Fraction(0)
        counts[
            min(math.floor(saturation * n_saturations), n_saturations - 1),
            math.floor(hue_in_turns(r, g, b) * n_hues),
            math.floor(Fraction(top, 256) * n_values),
        ] += 1
    return [
        counts[s, h, v] / (len(image) * len(image[0]))
        for v in range(n_values)
        for s in range(n_saturations)
        for h in range(n_hues)
    ]


@pytest.mark.parametrize("n_bins", [(16, 4, 4), (5, 3, 2)])
@pytest.mark.parametrize("high", [256, 3])  # few values: many colours on the bounds of bins
def test_the_histogram_of_colours_is_that_of_exact_fractions(n_bins, high):
    image = image_of(20, 20, high=high)
    names = ("n_hues", "n_saturations", "n_values")
    found = describe(HSVGlobal(**dict(zip(names, n_bins, strict=True))), image)
    np.testing.assert_allclose(found, slow_hsv(image, *n_bins), rtol=1e-6)


@pytest.mark.parametrize(
    ("colour", "cell"),
    [
        ((0, 0, 0), (0, 0, 0)),
        ((255, 255, 255), (3, 0, 0)),
        ((255, 0, 0), (3, 3, 0)),
        ((0, 100, 0), (1, 3, 5)),
        ((100, 100, 200), (3, 2, 10)),
        ((255, 0, 1), (3, 3, 15)),
    ],
)
def test_a_known_colour_has_a_known_cell(colour, cell):
    row = describe(HSVGlobal(), np.full((2, 3, 3), colour, np.uint8)).reshape(4, 4, 16)
    assert row[cell] == 1 and row.sum() == 1


def test_the_global_histogram_knows_no_positions():
    image = image_of(16, 21)
    shuffled = np.random.default_rng(0).permutation(image.reshape(-1, 3)).reshape(image.shape)
    row = describe(HSVGlobal(), image)
    np.testing.assert_array_equal(row, describe(HSVGlobal(), shuffled))
    np.testing.assert_array_equal(row, describe(HSVGlobal(), image[:, ::-1]))
    assert row.sum() == pytest.approx(1)


@pytest.mark.parametrize(("height", "width"), [(8, 12), (9, 14), (1, 2), (3, 3)])
def test_focus_sees_the_middle_only(height, width):
    image = image_of(height, width)
    outside = image.copy()
    middle = slice(height // 4, height - height // 4), slice(width // 4, width - width // 4)
    outside[:] = 255 - outside
    outside[middle] = image[middle]
    row = describe(HSVFocus(), image)
    np.testing.assert_array_equal(row, describe(HSVFocus(), outside))
    np.testing.assert_array_equal(row, describe(HSVGlobal(), image[middle]))
    assert row.sum() == pytest.approx(1)


# Colour structure

HMMD = {  # least and next difference of a subspace, cells by hue, cells by sum; as printed
    32: [(0, 6, 1, 8), (6, 60, 4, 4), (60, 110, 4, 1), (110, 256, 4, 1)],
    64: [(0, 6, 1, 8), (6, 20, 4, 4), (20, 60, 4, 4), (60, 110, 8, 2), (110, 256, 8, 1)],
    128: [(0, 6, 1, 16), (6, 20, 4, 4), (20, 60, 8, 4), (60, 110, 8, 4), (110, 256, 8, 4)],
    256: [(0, 6, 1, 32), (6, 20, 4, 8), (20, 60, 16, 4), (60, 110, 16, 4), (110, 256, 16, 4)],
}


def slow_cell(r, g, b, n_bins):
    """Number of the cell, the subspace of the greatest differences first."""
    top, low = max(r, g, b), min(r, g, b)
    half = Fraction(1, 2)
    degrees = math.floor(360 * hue_in_turns(r, g, b) + half) % 360
    total = math.floor(Fraction(top + low, 2) + half)
    before = 0
    for least, beyond, n_hues, n_sums in reversed(HMMD[n_bins]):
        if least <= top - low < beyond:
            hue = math.floor(Fraction(degrees, 360) * n_hues)
            level = math.floor((total - Fraction(least, 2)) * n_sums / (255 - least))
            return before + hue * n_sums + min(level, n_sums - 1)
        before += n_hues * n_sums
    raise AssertionError((r, g, b))


def slow_structure(image, n_bins, side=8):
    height, width = image.shape[:2]
    cells = [[slow_cell(*pixel, n_bins) for pixel in row] for row in image.tolist()]
    rows, columns = min(side, height), min(side, width)
    seen = Counter()
    corners = list(itertools.product(range(height - rows + 1), range(width - columns + 1)))
    for y, x in corners:
        seen.update({cells[y + i][x + j] for i in range(rows) for j in range(columns)})
    return [seen[c] / len(corners) for c in range(n_bins)]


@pytest.mark.parametrize("n_bins", HMMD)
@pytest.mark.parametrize("shape", [(11, 14), (3, 12), (9, 2), (1, 1)])
def test_colour_structure_counts_the_elements_that_see_a_colour(n_bins, shape):
    image = image_of(*shape, random_state=n_bins)
    image[:, : shape[1] // 2] //= 8  # else every element sees everything
    found = describe(ColourStructure(n_bins=n_bins, quantise=False), image)
    np.testing.assert_allclose(found, slow_structure(image, n_bins), rtol=1e-6)


def test_every_cell_of_every_space_has_a_colour():
    levels = np.arange(0, 256, 3, dtype=np.uint8)
    colours = np.stack(np.meshgrid(levels, levels, levels[::3]), axis=-1).reshape(1, -1, 3)
    for n_bins in HMMD:
        feature = ColourStructure(n_bins=n_bins, quantise=False)
        rows = feature.transform([colours[:, i : i + 9000] for i in range(0, 216_000, 9000)])
        assert (rows.max(axis=0) > 0).sum() >= 0.95 * n_bins


def test_one_colour_is_seen_everywhere():
    image = np.full((20, 30, 3), (200, 30, 40), np.uint8)
    for quantise, most in ((True, 255), (False, 1)):
        row = describe(ColourStructure(quantise=quantise), image)
        assert row.max() == most and np.count_nonzero(row) == 1


def test_scattered_colour_is_seen_by_more_elements_than_colour_in_one_patch():
    patch, scattered = np.zeros((2, 40, 40, 3), np.uint8)
    patch[:5, :5] = scattered[::8, ::8] = (255, 0, 0)
    assert (patch.sum(), scattered.sum()) == (25 * 255, 25 * 255)
    feature = ColourStructure(quantise=False)
    red = slow_cell(255, 0, 0, 64)
    assert describe(feature, patch)[red] < describe(feature, scattered)[red] == 1


def test_structure_is_unchanged_by_a_mirror():
    image = image_of(13, 17)
    row = describe(ColourStructure(), image)
    np.testing.assert_array_equal(row, describe(ColourStructure(), image[::-1, ::-1]))


@pytest.mark.parametrize(("shape", "step"), [((401, 603), 2), ((902, 701), 4)])
def test_of_large_images_every_kth_pixel_is_taken(shape, step):
    height, width = shape
    small = image_of(height // step, width // step)
    large = image_of(height, width, random_state=5)
    large[: len(small) * step : step, : len(small[0]) * step : step] = small
    feature = ColourStructure()
    np.testing.assert_array_equal(describe(feature, large), describe(feature, small))


@pytest.mark.parametrize(("side", "n_seen"), [(362, 4), (363, 2), (724, 2), (725, 1)])
def test_images_are_large_from_a_side_of_two_to_the_power_of_8_and_a_half(side, n_seen):
    image = np.zeros((side, side, 3), np.uint8)
    for i, colour in enumerate([(255, 0, 0), (0, 0, 255), (0, 255, 0), (0, 0, 0)]):
        image[i::4] = colour  # a step of two sees two of them
    assert np.count_nonzero(describe(ColourStructure(), image)) == n_seen


def test_a_long_thin_image_is_not_sampled_away():
    assert describe(ColourStructure(), image_of(1, 300_000)).any()


def slow_level(share):
    """The standard's 8 bits: 1 level for nothing, then 25, 20, 35, 35 and 140."""
    if share == 0:
        return 0
    level = 1
    bounds = [0, 0.037, 0.08, 0.195, 0.32, 1]
    for low, high, n in zip(bounds, bounds[1:], (25, 20, 35, 35, 140), strict=False):
        if share < high:
            return level + math.floor((share - low) * n / (high - low))
        level += n
    return 255


def test_amplitudes_are_quantised_as_the_standard_says():
    image = image_of(40, 40)
    image[:35] //= 9
    image[:30] = 7
    shares = describe(ColourStructure(n_bins=256, quantise=False), image)
    levels = describe(ColourStructure(n_bins=256), image)
    n = 33 * 33
    exact = [round(float(share) * n) / n for share in shares]
    np.testing.assert_array_equal(levels, [slow_level(share) for share in exact])
    assert len(set(levels.tolist())) > 8 and levels.max() > 115


# Moments


def slow_moments(image):
    values = []
    for channel in range(3):
        z = [int(pixel[channel]) / 255 for row in image for pixel in row]
        mean = sum(z) / len(z)
        values += [mean] + [sum((v - mean) ** k for v in z) / len(z) for k in (2, 3, 4)]
    return values


def test_moments_are_sums_over_pixels():
    image = image_of(9, 8, high=200)
    image[:2] = 255
    wanted = slow_moments(image)
    np.testing.assert_allclose(describe(RGBMoments(roots=False), image), wanted, rtol=1e-5)
    orders = [1, 2, 3, 4] * 3
    roots = [math.copysign(abs(v) ** (1 / k), v) for v, k in zip(wanted, orders, strict=True)]
    np.testing.assert_allclose(describe(RGBMoments(), image), roots, rtol=1e-5)


def test_brightness_moves_the_means_alone_and_complement_turns_the_third():
    image = image_of(9, 8, high=200)
    row, shifted, complement = (
        describe(RGBMoments(), p).reshape(3, 4) for p in (image, image + 51, 255 - image)
    )
    np.testing.assert_allclose(shifted - row, [[0.2, 0, 0, 0]] * 3, atol=1e-5)
    np.testing.assert_allclose(complement, [1, 0, 0, 0] + row * [-1, 1, -1, 1], atol=1e-5)


def test_moments_know_no_positions():
    image = image_of(6, 7)
    shuffled = np.random.default_rng(0).permutation(image.reshape(-1, 3)).reshape(7, 6, 3)
    np.testing.assert_array_equal(describe(RGBMoments(), image), describe(RGBMoments(), shuffled))


# Thumbnail


def overlap(i, n, x, length):
    """Part of pixel x that lies in share i of n."""
    low = max(Fraction(i * length, n), Fraction(x))
    return max(min(Fraction((i + 1) * length, n), Fraction(x + 1)) - low, Fraction(0))


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3, 10), (12, 8)])
def test_a_thumbnail_has_means_over_areas(shape):
    image = image_of(*shape)
    height, width = shape
    wanted = []
    for i, j in itertools.product(range(4), range(6)):
        share = 0
        for y, x in itertools.product(range(height), range(width)):
            r, g, b = map(int, image[y, x])
            grey = Fraction(299 * r + 587 * g + 114 * b, 1000 * 255)
            share += overlap(i, 4, y, height) * overlap(j, 6, x, width) * grey
        wanted.append(float(share * 24 / (height * width)))
    found = describe(Thumbnail(width=6, height=4), image)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_mirror_mirrors_the_thumbnail():
    image = image_of(31, 45)
    row = describe(Thumbnail(), image).reshape(16, 24)
    mirrored = describe(Thumbnail(), image[:, ::-1]).reshape(16, 24)
    np.testing.assert_allclose(row[:, ::-1], mirrored, rtol=1e-5)
    assert np.ptp(row) > 0.1


# Convolution

LAWS = [[1, 4, 6, 4, 1], [-1, -2, 0, 2, 1], [-1, 0, 2, 0, -1], [-1, 2, 0, -2, 1], [1, -4, 6, -4, 1]]


def slow_response(plane, filter_number):
    """One channel filtered, rectified and every other pixel taken, in nested lists."""
    along_y, along_x = LAWS[filter_number // 5], LAWS[filter_number % 5]
    length = math.hypot(*along_y) * math.hypot(*along_x)
    height, width = len(plane), len(plane[0])
    return [
        [
            abs(
                sum(
                    along_y[t + 2]
                    * along_x[s + 2]
                    * plane[min(max(y + t, 0), height - 1)][min(max(x + s, 0), width - 1)]
                    for t, s in itertools.product(range(-2, 3), repeat=2)
                )
                / length
            )
            for x in range(0, width, 2)
        ]
        for y in range(0, height, 2)
    ]


def test_convolution_is_three_times_filter_rectify_and_downsample():
    image = image_of(13, 13)
    row = describe(Convolution(size=13), image).reshape(25, 25, 25, 3)
    for k, j, i, c in np.random.default_rng(0).integers(0, [25, 25, 25, 3], (60, 4)):
        plane = (image[:, :, c] / 255).tolist()
        for f in (i, j, k):
            plane = slow_response(plane, f)
        assert (len(plane), len(plane[0])) == (2, 2)
        wanted = statistics.fmean(itertools.chain.from_iterable(plane))
        assert row[k, j, i, c] == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_the_image_is_scaled_first():
    image = image_of(8, 10)
    large = np.repeat(np.repeat(image, 2, axis=0), 4, axis=1)
    row, scaled = (describe(Convolution(size=10), p) for p in (image, large))
    np.testing.assert_allclose(scaled, row, rtol=1e-3, atol=1e-6)


def test_brightness_changes_only_what_begins_with_the_smoothing_filter():
    image = image_of(16, 16, high=200)
    row, shifted = (
        describe(Convolution(size=16), p).reshape(25, 25, 25, 3) for p in (image, image + 50)
    )
    np.testing.assert_allclose(shifted[:, :, 1:], row[:, :, 1:], rtol=1e-2, atol=1e-5)
    assert (np.abs(shifted - row)[0, 0, 0] > 0.1).all()


def test_a_constant_image_answers_only_to_smoothing():
    row = describe(Convolution(), np.full((5, 5, 3), 100, np.uint8)).reshape(25, 25, 25, 3)
    gain = (16 / math.sqrt(70)) ** 6
    np.testing.assert_allclose(row[0, 0, 0], 100 / 255 * gain, rtol=1e-5)
    row[0, 0, 0] = 0
    assert np.abs(row).max() < 1e-4


def test_transposing_an_image_swaps_the_filters():
    image = image_of(16, 16)
    row, turned = (
        describe(Convolution(size=16), p).reshape([5, 5] * 3 + [3])
        for p in (image, image.transpose(1, 0, 2))
    )
    np.testing.assert_allclose(turned.transpose(1, 0, 3, 2, 5, 4, 6), row, rtol=1e-3, atol=1e-6)
    assert np.abs(turned - row).max() > 0.01


# Variance


def slow_deviations(image, window, n_bins, largest):
    grey = luma(image)
    height, width = len(grey), len(grey[0])
    side_y, side_x = min(window, height), min(window, width)
    n = side_y * side_x
    bounds = [Fraction(largest) * k / n_bins for k in range(n_bins)]

    def bin_at(y, x):
        z = [grey[y + i][x + j] for i in range(side_y) for j in range(side_x)]
        variance = Fraction(n * sum(v * v for v in z) - sum(z) ** 2, n * n)
        return max(k for k, bound in enumerate(bounds) if bound * bound <= variance)

    histograms = []
    for rows, columns in itertools.product(thirds(height - side_y + 1), thirds(width - side_x + 1)):
        bins = Counter(bin_at(y, x) for y, x in itertools.product(rows, columns))
        histograms += [bins[k] / bins.total() for k in range(n_bins)]
    return histograms


def thirds(length):
    """Ranges of three parts as even as may be, none of them empty."""
    for i in range(3):
        start = length * i // 3
        yield range(start, max(length * (i + 1) // 3, start + 1))


@pytest.mark.parametrize("shape", [(11, 13), (6, 5), (2, 9), (1, 1)])
@pytest.mark.parametrize("options", [{}, {"window": 3, "n_bins": 5, "largest": 40.0}])
def test_variance_is_the_histogram_of_exact_deviations(shape, options):
    image = image_of(*shape)
    image[: shape[0] // 2] //= 6
    settings = {"window": 5, "n_bins": 16, "largest": 64.0} | options
    found = describe(Variance(**options), image)
    np.testing.assert_allclose(found, slow_deviations(image, **settings), rtol=1e-6)


def test_deviations_on_the_bounds_of_bins_go_to_the_upper_bin():
    image = np.zeros((4, 4, 3), np.uint8)
    image[:, ::2] = 16  # every window has deviation 8
    row = describe(Variance(window=2, n_bins=16, largest=64.0), image).reshape(9, 16)
    np.testing.assert_array_equal(row, np.eye(16)[[2] * 9])


def test_variance_is_unchanged_by_brightness_and_sums_to_one_in_each_tile():
    image = image_of(20, 23, low=40, high=160)
    row = describe(Variance(), image)
    np.testing.assert_array_equal(row, describe(Variance(), image + 40))
    np.testing.assert_allclose(row.reshape(9, 16).sum(axis=1), 1, rtol=1e-6)
    assert (describe(Variance(), image // 4) != row).any()


def test_a_mirror_swaps_the_tiles_of_variance():
    image = image_of(22, 22)  # 18 × 18 positions
    image[:9] //= 3
    row, mirrored = (describe(Variance(), p).reshape(3, 3, 16) for p in (image, image[::-1, ::-1]))
    np.testing.assert_array_equal(row[::-1, ::-1], mirrored)
    assert (row != mirrored).any()


# Tiles


def slow_tiles(image, n_tiles, value):
    grey = luma(image)
    values = []
    for i, j in itertools.product(range(n_tiles), repeat=2):
        top, bottom = i * len(grey) // n_tiles, (i + 1) * len(grey) // n_tiles
        left, right = j * len(grey[0]) // n_tiles, (j + 1) * len(grey[0]) // n_tiles
        rows = grey[top : max(bottom, top + 1)]
        values.append(value([z for row in rows for z in row[left : max(right, left + 1)]]))
    return values


def slow_smoothness(z):
    return 1 - 1 / (1 + statistics.pvariance([v / 255 for v in z]))


def slow_uniformity(z):
    return sum((count / len(z)) ** 2 for count in Counter(z).values())


@pytest.mark.parametrize("shape", [(24, 31), (8, 8), (5, 20), (1, 1)])
@pytest.mark.parametrize("n_tiles", [8, 3])
@pytest.mark.parametrize(
    ("kind", "value"), [(Smoothness, slow_smoothness), (Uniformity, slow_uniformity)]
)
def test_tiles_have_the_value_of_their_pixels(shape, n_tiles, kind, value):
    image = image_of(*shape)
    image[:, : shape[1] // 2] //= 30
    found = describe(kind(n_tiles=n_tiles), image)
    np.testing.assert_allclose(found, slow_tiles(image, n_tiles, value), rtol=1e-5, atol=1e-7)


def test_a_constant_image_is_smooth_and_uniform():
    image = np.full((20, 33, 3), (10, 200, 30), np.uint8)
    np.testing.assert_array_equal(describe(Smoothness(), image), np.zeros(64))
    np.testing.assert_array_equal(describe(Uniformity(), image), np.ones(64))


def test_black_and_white_is_as_rough_as_can_be():
    image = np.zeros((16, 16, 3), np.uint8)
    image[::2] = 255
    np.testing.assert_allclose(describe(Smoothness(), image), 0.2, rtol=1e-6)
    np.testing.assert_allclose(describe(Uniformity(), image), 0.5, rtol=1e-6)


@pytest.mark.parametrize("kind", [Smoothness, Uniformity])
def test_a_mirror_swaps_the_tiles(kind):
    image = image_of(16, 24)
    image[:, :7] //= 20
    row, mirrored = (describe(kind(), p).reshape(8, 8) for p in (image, image[:, ::-1]))
    np.testing.assert_array_equal(row[:, ::-1], mirrored)
    assert (row != mirrored).any()


@pytest.mark.parametrize("length", [8, 9, 100, 1, 3])
def test_tiles_cover_the_side_and_are_never_empty(length):
    slices = tile_slices(length, 8)
    pixels = [x for s in slices for x in range(length)[s]]
    assert len(slices) == 8 and set(pixels) == set(range(length))
    assert all(range(length)[s] for s in slices)
    assert len(pixels) == max(length, 8)
