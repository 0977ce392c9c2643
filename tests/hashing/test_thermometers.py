"""Several thresholds per dimension (MHQ, NPQ, VBQ) against all possible thresholds."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

import bittern as bt
from bittern.hashing import MHQ, NPQ, VBQ
from bittern.hashing.cuts import Levels, Neighbourhood, least_squares_cuts
from bittern.hashing.npq import best_cuts, similar_pairs
from bittern.hashing.vbq import divide_bits
from bittern.store.recipe import Recipe

KINDS = (MHQ, NPQ, VBQ)


def labelled_rows(n=120, dim=10):
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, n)
    return rng.standard_normal((n, dim)) * np.linspace(3, 1, dim) + labels[:, None], labels


X, LABELS = labelled_rows()


def regions_of(z, thresholds):
    return np.searchsorted(np.sort(thresholds), z, side="left")


def square_error(z, regions):
    return sum(((z[regions == r] - z[regions == r].mean()) ** 2).sum() for r in np.unique(regions))


def f_measure(regions, similar, beta):
    """F over pairs, counted one by one."""
    pairs = list(combinations(range(len(regions)), 2))
    hits = sum(similar[i, j] and regions[i] == regions[j] for i, j in pairs)
    alarms = sum(not similar[i, j] and regions[i] == regions[j] for i, j in pairs)
    misses = sum(similar[i, j] and regions[i] != regions[j] for i, j in pairs)
    below = (1 + beta**2) * hits + beta**2 * misses + alarms
    return (1 + beta**2) * hits / below if below else 0.0


def objective(z, regions, similar, alpha, beta):
    spread = ((z - z.mean()) ** 2).sum() or 1.0
    compact = 1 - square_error(z, regions) / spread
    return alpha * f_measure(regions, similar, beta) + (1 - alpha) * compact


def all_regions(z, n_cuts):
    """Every way to cut the values apart, with at most this number of cuts."""
    between = (np.unique(z)[1:] + np.unique(z)[:-1]) / 2
    for n in range(min(n_cuts, len(between)) + 1):
        for thresholds in combinations(between, n):
            yield regions_of(z, thresholds)


values = st.lists(st.integers(-9, 9), min_size=2, max_size=9)


def made(numbers, seed):
    z = np.array(numbers, float)
    similar = np.random.default_rng(seed).random((len(z), len(z))) < 0.4
    similar = np.triu(similar, 1)
    return z, similar | similar.T


def neighbourhood(z, similar, beta=1.0):
    return Neighbourhood.of(Levels.of(z, 0.0), np.nonzero(similar), beta)


@given(values, st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_no_cuts_have_a_smaller_squared_error(numbers, n_cuts):
    z = np.array(numbers, float)
    levels = Levels.of(z, 0.0)
    found = regions_of(z, levels.thresholds(least_squares_cuts(levels, n_cuts), n_cuts))
    best = min(square_error(z, regions) for regions in all_regions(z, n_cuts))
    assert square_error(z, found) == pytest.approx(best, abs=1e-9)


@given(values, st.integers(0, 99), st.integers(1, 4), st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=30, deadline=None)
def test_no_cuts_have_a_larger_f(numbers, seed, n_cuts, beta):
    z, similar = made(numbers, seed)
    pairs = neighbourhood(z, similar, beta)
    cuts = best_cuts(pairs, n_cuts, alpha=1.0)
    found = regions_of(z, pairs.levels.thresholds(cuts, n_cuts))
    best = max(f_measure(regions, similar, beta) for regions in all_regions(z, n_cuts))
    assert f_measure(found, similar, beta) == pytest.approx(best)
    assert pairs.f_measure(cuts) == pytest.approx(best)


@given(values, st.integers(0, 99), st.integers(1, 3), st.sampled_from([0.2, 0.5, 0.9]))
@settings(max_examples=25, deadline=None)
def test_between_them_no_change_of_one_threshold_helps(numbers, seed, n_cuts, alpha):
    z, similar = made(numbers, seed)
    pairs = neighbourhood(z, similar)
    between = (np.unique(z)[1:] + np.unique(z)[:-1]) / 2
    cuts = best_cuts(pairs, n_cuts, alpha)
    thresholds = pairs.levels.thresholds(cuts, n_cuts)
    score = objective(z, regions_of(z, thresholds), similar, alpha, 1.0)
    for k, other in product(range(n_cuts), [*between, np.inf]):
        moved = np.append(np.delete(thresholds, k), other)
        assert objective(z, regions_of(z, moved), similar, alpha, 1.0) <= score + 1e-9
    for extreme in (0.0, 1.0):
        start = pairs.levels.thresholds(best_cuts(pairs, n_cuts, extreme), n_cuts)
        assert objective(z, regions_of(z, start), similar, alpha, 1.0) <= score + 1e-9


@given(st.integers(0, 99), st.integers(1, 7))
@settings(max_examples=25, deadline=None)
def test_no_other_division_of_the_bits_is_worth_more(seed, n_bits):
    worth = np.sort(np.random.default_rng(seed).random((3, 3)), axis=1)
    bits = divide_bits(worth, n_bits)
    padded = np.hstack((np.zeros((3, 1)), worth))

    def value(some):
        return sum(padded[h, k] for h, k in enumerate(some))

    allowed = [some for some in product(range(4), repeat=3) if sum(some) <= n_bits]
    assert tuple(bits) in allowed
    assert value(bits) == pytest.approx(max(map(value, allowed)))


def test_clusters_are_at_least_as_tight_as_those_of_k_means():
    z = np.random.default_rng(1).gamma(2, size=3000)
    levels = Levels.of(z, 0.0)
    regions = regions_of(z, levels.thresholds(least_squares_cuts(levels, 7), 7))
    lloyd = KMeans(8, n_init=5, random_state=0).fit(z[:, None])
    assert square_error(z, regions) <= lloyd.inertia_ * (1 + 1e-9)


def test_normal_values_are_cut_where_a_quantiser_of_four_levels_cuts_them():
    # Lloyd-Max for a normal: thresholds 0 and ±0.9816.
    levels = Levels.of(np.random.default_rng(0).standard_normal(100_000), 0.0)
    found = levels.thresholds(least_squares_cuts(levels, 3), 3)
    np.testing.assert_allclose(found, [-0.9816, 0, 0.9816], atol=0.03)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=30), st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_equal_values_are_never_cut_apart(numbers, n_cuts):
    z = np.array(numbers, float)
    noisy = z + 1e-10 * np.random.default_rng(0).standard_normal(len(z))
    levels = Levels.of(noisy, 1e-8)
    regions = regions_of(noisy, levels.thresholds(least_squares_cuts(levels, n_cuts), n_cuts))
    assert len(levels) == len(np.unique(z))
    for value in np.unique(z):
        assert len(np.unique(regions[z == value])) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [1, 7, 12])
def test_hamming_distances_are_manhattan_distances_of_regions(kind, n_bits):
    hasher = kind(n_bits, projection="itq").fit(X)
    inner = hasher.projection_
    Z = (X - inner.mean_) @ inner.projection_
    regions = np.column_stack(
        [regions_of(z, hasher.thresholds_[hasher.dimensions_ == d]) for d, z in enumerate(Z.T)]
    )
    manhattan = np.abs(regions[:, None] - regions).sum(axis=-1)
    bits = hasher.encode(X).to_bits()
    np.testing.assert_array_equal((bits[:, None] != bits).sum(axis=-1), manhattan)
    assert manhattan.max() > 0


@pytest.mark.parametrize(
    ("hasher", "n_dimensions", "n_stored"),
    [
        (MHQ(32), 16, 48),
        (MHQ(7), 4, 10),
        (MHQ(8, bits_per_dimension=3), 3, 17),
        (MHQ(8, bits_per_dimension=1), 8, 8),
        (NPQ(32), 16, 48),
    ],
)
def test_the_length_is_nominal_and_the_codes_store_more(hasher, n_dimensions, n_stored):
    codes = hasher.fit(X).encode(X)
    assert hasher.projection_.n_bits == n_dimensions
    assert codes.n_bits == hasher.n_stored_bits == n_stored
    assert hasher.n_bits == hasher.get_params()["n_bits"] < n_stored or n_stored == 8


def test_one_bit_per_dimension_is_a_two_level_quantiser():
    hasher = MHQ(5, bits_per_dimension=1).fit(X)
    Z = (X - hasher.projection_.mean_) @ hasher.projection_.projection_
    for k, z in enumerate(Z.T):
        best = min(square_error(z, regions) for regions in all_regions(z, 1))
        assert square_error(z, z > hasher.thresholds_[k]) == pytest.approx(best)


def test_vbq_gives_bits_to_the_dimensions_that_keep_neighbours_together():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 400)
    rows = np.column_stack([10 * labels + rng.standard_normal(400), rng.standard_normal((400, 3))])
    hasher = VBQ(4).fit(rows, labels)
    assert hasher.bits_.sum() <= 4 and hasher.bits_[0] == 3  # eight classes are eight regions
    assert hasher.n_stored_bits == sum(2**k - 1 for k in hasher.bits_)


def test_vbq_is_worth_at_least_as_much_as_an_even_division():
    even, free = NPQ(8).fit(X, LABELS), VBQ(8).fit(X, LABELS)
    similar = LABELS[:, None] == LABELS

    def worth(hasher):
        Z = (X - hasher.projection_.mean_) @ hasher.projection_.projection_
        used = np.unique(hasher.dimensions_)
        regions = [regions_of(Z[:, d], hasher.thresholds_[hasher.dimensions_ == d]) for d in used]
        return sum(f_measure(one, similar, 1.0) for one in regions)

    assert worth(free) >= worth(even) - 1e-9


def test_without_y_neighbours_lie_within_the_ball():
    rows, (first, second) = similar_pairs(X, None, 50, np.random.default_rng(0))
    found = np.zeros((50, 50), bool)
    found[first, second] = True
    distances = np.linalg.norm(X[rows][:, None] - X[rows], axis=-1)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(found, found.T)
    assert distances[found].max() < distances[~found].min()
    assert 10 < found.sum() / 50 * 120 / 50 < 90  # about 50 of all rows


@pytest.mark.parametrize("y", [LABELS, np.eye(3, dtype=int)[LABELS]])
def test_with_y_neighbours_are_those_of_y(y):
    targets = bt.hashing.Targets.of(y, len(X), "NPQ")
    rows, (first, second) = similar_pairs(X, targets, 60, np.random.default_rng(0))
    same = LABELS[rows][:, None] == LABELS[rows]
    np.fill_diagonal(same, False)
    np.testing.assert_array_equal(np.argwhere(same), np.column_stack((first, second)))
    assert NPQ(8).fit(X, LABELS).encode(X) != NPQ(8).fit(X).encode(X)


def test_rows_without_neighbours_are_quantised_by_squared_error():
    alone = np.arange(len(X))
    assert NPQ(8).fit(X, alone).encode(X) == MHQ(8).fit(X).encode(X)
    assert VBQ(8).fit(X, alone).bits_.tolist() == [1] * 8


def test_collections_are_as_wide_as_the_stored_bits():
    recipe = Recipe(MHQ(6).fit(X))
    assert recipe.bits(None) == recipe.bits(9) == 9
    assert Recipe.from_blobs(recipe.to_blobs(), 9, "here").encode(X, "queries").n_bits == 9
    with pytest.raises(bt.InputError, match="n_bits must be the hasher's 9, got 6"):
        recipe.bits(6)
    with pytest.raises(bt.FileError, match="its hasher makes codes of 9 bits, but its codes have"):
        Recipe.from_blobs(recipe.to_blobs(), 6, "here")


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (MHQ(projection="sh"), r"MHQ: projection must be a linear hasher, .* got 'sh'"),
        (MHQ(bits_per_dimension=0), r"MHQ: bits_per_dimension must be between 1 and 8, got 0"),
        (MHQ(3000), r"MHQ: codes of 3000 bits would take 4,500 stored bits, and 4,096 are"),
        (VBQ(2000), r"VBQ: codes of 2000 bits would take 7,500 stored bits, and 4,096 are"),
        (NPQ(bits_per_dimension=5), r"NPQ: bits_per_dimension must be between 1 and 4, got 5"),
        (NPQ(alpha=1.5), r"NPQ: alpha must be at most 1, got 1.5"),
        (NPQ(alpha=-1), r"NPQ: alpha must be at least 0, got -1"),
        (NPQ(beta=0), r"NPQ: beta must be above 0, got 0"),
        (VBQ(beta=0), r"VBQ: beta must be above 0, got 0"),
        (VBQ(max_bits=9), r"VBQ: max_bits must be between 1 and 4, got 9"),
        (VBQ(n_rows=0), r"VBQ: n_rows must be at least 1, got 0"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(bt.InputError, match=says):
        hasher.fit(X)
