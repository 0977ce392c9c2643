"""The trellis against all bit strings, and its levels against what is known of a Gaussian."""

from itertools import product

import numpy as np
import pytest

from bittern.kernels.trellis import decode_trellis, encode_trellis
from bittern.kernels.trellis_scan import lookups_of, multiplies_bytes, nearest_of_many, rounded
from bittern.kernels.trellis_scores import (
    Asked,
    Held,
    Reading,
    distances_of_pairs,
    first_segments,
    nearest_rows,
    segments_of,
)
from bittern.quantise.trellis_levels import learn_levels, trellis_levels
from bittern.quantise.water_filled import lloyd_max


def textbook_values(bits, n_bits, scales, levels):
    """The components of one string of bits, read as the module says."""
    text, values, place = "0" * 8 + "".join(map(str, bits)), [], 8
    for b, scale in zip(n_bits, scales, strict=True):
        place += b
        values.append(scale * levels[b, int(text[place - 8 : place], 2)])
    return np.array(values, np.float32)


@pytest.mark.parametrize("n_bits", [(1, 1, 1, 1), (2, 1, 3), (5, 4), (3, 1, 2, 1, 3), (1,)])
def test_the_path_is_the_best_of_all(n_bits):
    rng = np.random.default_rng(sum(n_bits))
    levels = rng.standard_normal((6, 256)).astype(np.float32)
    scales = rng.uniform(0.5, 2, len(n_bits)).astype(np.float32)
    z = rng.standard_normal((20, len(n_bits))).astype(np.float32)
    total = sum(n_bits)
    codes = np.zeros((20, -(-total // 8)), np.uint8)
    encode_trellis(z, np.array(n_bits), scales, levels, codes)
    decoded = np.empty_like(z)
    decode_trellis(codes, np.array(n_bits), scales, levels, decoded)
    every = np.stack(
        [textbook_values(bits, n_bits, scales, levels) for bits in product((0, 1), repeat=total)]
    )
    best = np.square(z[:, None] - every).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(np.square(z - decoded).sum(axis=1), best, rtol=1e-5)
    for row, code in zip(decoded, codes, strict=True):
        bits = np.unpackbits(code)[:total]
        np.testing.assert_array_equal(row, textbook_values(bits, n_bits, scales, levels))


@pytest.mark.parametrize("n_bits", [1, 2, 3, 4, 5])
def test_the_levels_leave_less_than_separate_components_and_more_than_the_bound(n_bits):
    levels, distortions = trellis_levels()
    z = np.random.default_rng(5).standard_normal((60, 512)).astype(np.float32)
    every, ones = np.full(512, n_bits), np.ones(512, np.float32)
    codes = np.zeros((60, 64 * n_bits), np.uint8)
    encode_trellis(z, every, ones, levels, codes)
    decoded = np.empty_like(z)
    decode_trellis(codes, every, ones, levels, decoded)
    found = np.square(z - decoded).mean()
    assert 4.0**-n_bits < found < 0.82 * lloyd_max()[n_bits][1]
    assert found == pytest.approx(distortions[n_bits], rel=0.03)


@pytest.mark.parametrize(("n_bits", "decibels"), [(1, 0.6), (2, 1.0), (3, 1.4), (4, 1.7), (5, 2.3)])
def test_each_rate_is_within_the_known_gap_of_the_rate_distortion_bound(n_bits, decibels):
    assert 0 < 10 * np.log10(trellis_levels()[1][n_bits] / 4.0**-n_bits) < decibels


def test_levels_can_be_learned_again():
    levels, distortion = learn_levels(1, n_rounds=8, n_rows=40, seed=3)
    assert levels.shape == (256,)
    assert distortion < 0.31


def test_lloyd_max_has_the_published_distortions():
    published = [0.3634, 0.1175, 0.03454, 0.009497, 0.002499]  # 2 to 32 levels, Max (1960)
    np.testing.assert_allclose([lloyd_max()[b][1] for b in range(1, 6)], published, rtol=3e-3)
    rng = np.random.default_rng(0)
    z = rng.standard_normal(200_000)
    levels, distortion = lloyd_max()[4]
    assert np.square(z[:, None] - levels).min(axis=1).mean() == pytest.approx(distortion, rel=0.02)


def asked_and_held(n_bits, n_centres, by, n_queries=3):
    """Random queries and items, and the distances of all pairs, computed from decoded rows."""
    rng, k = np.random.default_rng(1), len(n_bits)
    levels = rng.standard_normal((6, 256)).astype(np.float32)
    skip = int(n_centres > 1)
    codes = rng.integers(0, 256, (300, -(-sum(n_bits) // 8) + skip)).astype(np.uint8)
    codes[:, :skip] %= n_centres
    codes[150:] = codes[:150]  # ties
    z = rng.standard_normal((n_queries, k)).astype(np.float32)
    to_centres = rng.standard_normal((n_queries, n_centres)).astype(np.float32)
    decoded = np.empty((300, k), np.float32)
    plain = np.ascontiguousarray(codes[:, skip:])
    decode_trellis(plain, np.array(n_bits), np.ones(k, np.float32), levels, decoded)
    scales, lengths = (np.tile(rng.uniform(1, 2, 150), 2).astype(np.float32) for _ in range(2))
    segments = segments_of(np.array(n_bits))
    rest = slice(0, k - first_segments(segments)[1])
    rests = [np.linalg.norm(one[:, rest], axis=1) for one in (z, decoded * scales[:, None])]
    ends = np.square(z).sum(axis=1), np.array(by, np.float32)
    asked = Asked(np.ascontiguousarray(z[:, ::-1]), to_centres, ends[0], rests[0], ends[1])
    centres = codes[:, 0] if skip else np.zeros(300, int)
    products = scales * (z.astype(np.float64) @ decoded.T) + to_centres[:, centres]
    expected = by[0] * (ends[0][:, None] + lengths) + by[1] * products
    numbers = np.stack([scales, lengths, rests[1].astype(np.float32)], axis=1)
    reading = Reading(segments, first_segments(segments)[0], levels)
    return asked, Held(codes, numbers), reading, expected


STRINGS = [(1,), (5, 5), (1,) * 70 + (2,) * 33, (1, 2, 3, 4, 5) * 9, (1,) * 7 + (3,) * 50]


@pytest.mark.parametrize("n_centres", [1, 9])
@pytest.mark.parametrize("n_bits", STRINGS)
def test_distances_of_pairs_are_those_of_decoded_rows(n_bits, n_centres):
    asked, held, reading, expected = asked_and_held(n_bits, n_centres, (1.0, -2.0))
    rng = np.random.default_rng(2)
    queries, rows = rng.integers(0, 3, 200), rng.integers(0, 300, 200)
    found = np.empty(200, np.float32)
    distances_of_pairs(asked, held, queries, rows, reading, found)
    np.testing.assert_allclose(found, expected[queries, rows], atol=5e-4)


@pytest.mark.parametrize("by", [(1.0, -2.0), (0.0, -1.0)])
@pytest.mark.parametrize("n_centres", [1, 9])
@pytest.mark.parametrize("n_bits", STRINGS)
def test_no_near_item_is_abandoned(n_bits, n_centres, by):
    asked, held, reading, expected = asked_and_held(n_bits, n_centres, by)
    allowed = np.random.default_rng(3).random(300) < 0.9
    every, pairs = np.arange(300), np.empty(300, np.float32)
    for q, mask in [(0, np.empty(0, bool)), (1, allowed), (2, np.zeros(300, bool))]:
        nearest, rows = np.full(7, np.inf, np.float32), np.full(7, -1)
        nearest_rows(asked, q, held, 0, 300, mask, reading, nearest, rows)
        distances_of_pairs(asked, held, np.full(300, q), every, reading, pairs)
        usable = np.flatnonzero(mask) if len(mask) else every
        order = usable[np.argsort(pairs[usable], kind="stable")][:7]
        assert rows[: len(order)].tolist() == order.tolist()
        np.testing.assert_array_equal(nearest[: len(order)], pairs[order])
        assert (rows[len(order) :] == -1).all()
        np.testing.assert_allclose(pairs, expected[q], atol=5e-4)


@pytest.mark.skipif(not multiplies_bytes(), reason="the processor does not multiply bytes")
@pytest.mark.parametrize("by", [(1.0, -2.0), (0.0, -1.0)])
@pytest.mark.parametrize("n_centres", [1, 9])
@pytest.mark.parametrize("n_bits", [*STRINGS, (4,) * 9 + (5,)])
def test_many_queries_find_what_each_of_them_finds_alone(n_bits, n_centres, by):
    asked, held, reading, _ = asked_and_held(n_bits, n_centres, by, n_queries=19)
    for array, factor in [(asked.weights, 1e4), (asked.rests, 1e4), (asked.lengths, 1e8)]:
        array[5] = 0
        array[6] *= factor
    whole = rounded(asked, np.array(n_bits), reading.levels)
    lookups = lookups_of(np.array(n_bits), reading.levels)
    some = np.random.default_rng(3).random(300) < 0.9
    for mask, k in [(np.empty(0, bool), 7), (some, 1), (np.zeros(300, bool), 2), (some, 299)]:
        expected, found = (
            (np.full((19, k), np.inf, np.float32), np.full((19, k), -1)) for _ in "ab"
        )
        for q, (nearest, rows) in enumerate(zip(*expected, strict=True)):
            nearest_rows(asked, q, held, 3, 298, mask, reading, nearest, rows)
        nearest_of_many(asked, whole, held, 3, 298, mask, reading, lookups, *found)
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(found[0], expected[0])


def rough_products(asked, codes, n_bits, levels):
    """Bounds of distances without scales, centres and lengths, from the look-ups, one by one."""
    whole, lookups = rounded(asked, n_bits, levels), lookups_of(n_bits, levels)
    values = np.zeros((len(codes), len(n_bits) + 4), np.int64)
    for row, code in zip(values, codes, strict=True):
        bits = int.from_bytes(code.tobytes(), "big")
        for end, shift, mask, table, component in lookups.places.tolist():
            window = (bits >> (8 * (len(code) - end) + shift)) & mask
            row[component : component + 4] = list(lookups.bytes[table + window].tobytes())
    n = len(asked.weights)
    blocks = whole.weights.reshape(len(whole.weights), -1, 16, 4).swapaxes(1, 2)
    weights = blocks.reshape(-1, blocks.shape[2] * 4)[:n]
    sums = weights.astype(np.int64) @ values[:, : weights.shape[1]].T
    steps, slack = (one.ravel()[:n, None].astype(np.float64) for one in (whole.steps, whole.slack))
    return steps * sums - slack


@pytest.mark.parametrize("n_bits", STRINGS)
def test_rough_products_are_bounds_and_tight(n_bits):
    asked, held, reading, _ = asked_and_held(n_bits, 1, (1.0, -2.0), n_queries=17)
    decoded = np.empty((300, len(n_bits)), np.float32)
    every = np.array(n_bits)
    decode_trellis(held.codes, every, np.ones(len(n_bits), np.float32), reading.levels, decoded)
    exact = -2.0 * asked.weights[:, ::-1].astype(np.float64) @ decoded.T
    gaps = exact - rough_products(asked, held.codes, every, reading.levels)
    assert gaps.min() > -1e-4 * np.abs(exact).max()
    assert gaps.max() < 2 * np.abs(exact).std()  # a bound that says nothing would pass the rest
