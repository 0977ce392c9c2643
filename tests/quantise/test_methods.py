"""Single methods against slow textbook versions, FAISS, and known properties."""

from itertools import pairwise, product

import numpy as np
import pytest

from bittern.kernels.grid_directions import nearest_directions
from bittern.quantise import OPQ, PQ, RQ, TCQ, Int8, RaBitQ, WaterFilled, correction
from bittern.quantise.components import water_filling
from bittern.quantise.water_filled import lloyd_max


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((32, 32)))[0]
    scaled = rng.standard_normal((3000, 32)) * np.geomspace(4, 0.2, 32)
    return (scaled @ axes.T).astype(np.float32)


@pytest.mark.parametrize("n_bits", [1, 2, 3])
def test_the_direction_is_the_nearest_of_the_whole_grid(n_bits):
    x = np.random.default_rng(n_bits).standard_normal((30, 4)).astype(np.float32)
    middle = (2**n_bits - 1) / 2
    grid = np.array(list(product(range(2**n_bits), repeat=4))) - middle
    cosines = x @ grid.T / np.linalg.norm(grid, axis=1)
    found = nearest_directions(x, n_bits) - middle
    own = (x * found).sum(axis=1) / np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(own, cosines.max(axis=1), rtol=1e-5)


def test_rabitq_is_unbiased_over_rotations(rows):
    few, query = rows[:400], rows[1000:1001]
    true = np.square(few - query).sum(axis=1)
    found = [
        RaBitQ(8, random_state=seed).fit(few) for seed in range(20)
    ]  # 48 bits hold all 32 dimensions
    estimates = np.stack([one.distances(query, one.encode(few))[0] for one in found])
    error = (estimates.mean(axis=0) - true).mean() / true.mean()
    assert abs(error) < 0.01
    spread = estimates.std(axis=0).mean() / true.mean()
    assert spread > 0.02  # a single rotation errs by more


def test_the_bound_of_rabitq_holds_for_most_pairs(rows):
    quantiser = RaBitQ(8).fit(rows)
    stored, queries = quantiser.encode(rows[:1000]), rows[2000:2100]
    true = np.square(queries[:, None] - rows[:1000]).sum(axis=2)
    errors = np.abs(quantiser.distances(queries, stored) - true)
    assert (errors <= quantiser.error_bounds(queries, stored)).mean() > 0.93
    assert (errors <= quantiser.error_bounds(queries, stored) / 4).mean() < 0.6  # it says something


def test_more_bits_a_dimension_err_less(rows):
    queries = rows[2000:2100]
    true = np.square(queries[:, None] - rows[:500]).sum(axis=2)
    errors = []
    for bits in (1, 2, 4, 6):
        quantiser = RaBitQ(40, bits=bits).fit(rows)
        errors.append(
            np.abs(quantiser.distances(queries, quantiser.encode(rows[:500])) - true).mean()
        )
    assert all(later < 0.75 * before for before, later in pairwise(errors))


def test_rabitq_finds_as_much_as_that_of_faiss(rows):
    faiss = pytest.importorskip("faiss")
    items, queries = rows[:2000], rows[2000:2200]
    true = np.argsort(np.square(queries[:, None] - items).sum(axis=2), axis=1)[:, :10]

    def recall(order):
        return (order[:, :40, None] == true[:, None]).any(axis=2).sum() / true.size

    theirs = faiss.index_factory(32, "RR,RaBitQ")
    theirs.train(items)
    theirs.add(items)
    peer = recall(theirs.search(queries, 40)[1])
    quantiser = RaBitQ(8).fit(items)
    own = recall(np.argsort(quantiser.distances(queries, quantiser.encode(items)), axis=1))
    assert own > peer - 0.03
    assert 0.3 < peer < 1


def test_water_filling_is_the_best_allocation():
    variances = np.array([5.0, 1.0, 0.3, 0.02])
    distortions = np.array([one for _, one in lloyd_max()])[:4]
    for total in range(9):
        found = water_filling(variances, distortions, total)
        assert found.sum() == total
        left = [
            (variances * distortions[list(bits)]).sum()
            for bits in product(range(4), repeat=4)
            if sum(bits) == total
        ]
        assert (variances * distortions[found]).sum() == pytest.approx(min(left))
    assert water_filling(variances, distortions, 99).sum() == 12  # no more than three each
    assert water_filling(np.zeros(3), distortions, 8).sum() == 0


def distortion(quantiser, rows):
    return np.square(rows - quantiser.decode(quantiser.encode(rows))).sum(axis=1).mean()


@pytest.mark.parametrize("n_bytes", [4, 8])
def test_the_trellis_errs_less_than_separate_components(n_bytes, rows):
    plain = {"centres": False, "correction": False}
    trellis = distortion(TCQ(n_bytes, **plain).fit(rows), rows)
    separate = distortion(WaterFilled(n_bytes, **plain).fit(rows), rows)
    assert trellis < 0.93 * separate
    variances = np.linalg.eigvalsh(np.cov(rows.T))
    level = 1.0
    for _ in range(60):  # the rate–distortion bound of a Gaussian with these variances
        rate = 0.5 * np.log2(np.maximum(variances / level, 1)).sum()
        level *= 1.1 if rate > 8 * n_bytes else 0.95
    assert trellis > 0.9 * np.minimum(variances, level).sum()


def test_a_correction_is_kept_only_where_it_finds_more(rows):
    found = {}
    for corrected in (0, 1, 2, "auto"):
        quantiser = TCQ(8, centres=False, correction=corrected).fit(rows[:2500])
        found[corrected] = quantiser
    assert [len(found[n].bounds_) for n in (0, 1, 2)] == [0, 2, 2]
    assert [int(found[n].n_bits_.sum()) for n in (0, 1, 2)] == [64, 56, 48]
    assert found["auto"].fingerprint in [found[n].fingerprint for n in (0, 1, 2)]


@pytest.mark.parametrize("n_bytes", [1, 2])
def test_bytes_of_correction_say_ratio_and_cosine(n_bytes):
    rng = np.random.default_rng(6)
    found = correction.Measured(
        rng.uniform(1, 4, 500).astype(np.float32), rng.uniform(0.6, 0.9, 500).astype(np.float32)
    )
    found.ratios[0] = 0
    bounds = correction.ranges(found, n_bytes)
    rows = correction.to_bytes(found, bounds, n_bytes)
    assert rows.shape == (500, n_bytes)
    said = correction.from_bytes(rows, bounds)
    steps = {1: 15, 2: 250}[n_bytes]
    assert said.ratios[0] == 0
    gaps = np.abs(np.log(said.ratios[1:]) - np.log(found.ratios[1:]))
    assert gaps.max() < 0.75 * np.log(4) / steps
    assert np.abs(said.cosines - found.cosines).max() < 0.75 * 0.3 / steps


def test_centres_help_rows_in_clusters():
    rng = np.random.default_rng(2)
    middles = rng.standard_normal((200, 16)) * 5
    rows = (middles[rng.integers(200, size=1500)] + rng.standard_normal((1500, 16))).astype("f4")
    assert len(TCQ(6).fit(rows).centres_) == 256


@pytest.mark.parametrize("kind", [PQ, OPQ, RQ])
def test_codewords_are_those_of_faiss(kind, rows):
    faiss = pytest.importorskip("faiss")
    quantiser = kind(2).fit(rows[:800])
    codes = quantiser.encode(rows[:200]).bytes
    if kind is RQ:
        theirs = faiss.ResidualQuantizer(32, 2, 8)
        faiss.copy_array_to_vector(quantiser.codewords_.ravel(), theirs.codebooks)
        theirs.is_trained = True
        decoded = theirs.decode(codes)
    else:
        theirs = faiss.ProductQuantizer(quantiser.codewords_.shape[2] * 2, 2, 8)
        faiss.copy_array_to_vector(quantiser.codewords_.ravel(), theirs.centroids)
        projected = np.ascontiguousarray(quantiser._projected(rows[:200]))
        np.testing.assert_array_equal(theirs.compute_codes(projected), codes)
        decoded = quantiser._unprojected(theirs.decode(codes))
    np.testing.assert_allclose(quantiser.decode(quantiser.encode(rows[:200])), decoded, atol=1e-4)


def test_int8_is_that_of_faiss(rows):
    faiss = pytest.importorskip("faiss")
    theirs = faiss.IndexScalarQuantizer(32, faiss.ScalarQuantizer.QT_8bit)
    theirs.train(rows)
    theirs.add(rows)
    peer = theirs.reconstruct_n(0, len(rows))
    quantiser = Int8().fit(rows)
    own = quantiser.decode(quantiser.encode(rows))
    step = np.ptp(rows, axis=0) / 255
    assert (np.abs(own - peer) <= 1.01 * step).all()
    assert np.abs(own - rows).max() <= 0.51 * step.max()
