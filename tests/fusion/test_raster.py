"""Weights found on a grid, against trying them all in Python."""

from itertools import product

import numpy as np
import pytest
from twins import fusion_reference

import bittern as bt
from bittern.fusion import (
    FUSIONS,
    RasterFusion,
    oracle_weights,
    precision_of_weights,
    simplex,
    weighted_sum,
)
from bittern.kernels import fusion

N_SOURCES, N_QUERIES, N_ITEMS = 3, 6, 14


def made(random_state=0, ties=True):
    """Scores that know something, and booleans; the last query has nothing relevant."""
    rng = np.random.default_rng(random_state)
    relevant = rng.random((N_QUERIES, N_ITEMS)) < 0.3
    relevant[:, 0] = True
    relevant[-1] = False
    scores = rng.standard_normal((N_SOURCES, N_QUERIES, N_ITEMS))
    scores += relevant * np.array([1.5, 0.5, 0.0])[:, None, None]
    return (np.round(scores) if ties else scores), relevant


def grid_by_brute_force(n, parts):
    return [
        np.array(point) / parts
        for point in product(range(parts + 1), repeat=n)
        if sum(point) == parts
    ]


def ap_of(fused, relevant):
    """What the package's own metric says of fused scores."""
    truth = bt.Relevance.from_matrix(relevant.astype(int))
    profile = bt.TieProfile.from_distances(-fused, truth)
    return bt.evaluate(profile, ["ap"])["ap"].per_query


@pytest.mark.parametrize(("n", "parts"), [(1, 4), (2, 1), (2, 10), (3, 4), (4, 3)])
def test_the_grid_is_the_simplex(n, parts):
    grid = simplex(n, 1 / parts)
    np.testing.assert_array_equal(grid, grid_by_brute_force(n, parts))


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("normalise", ["zscore", "none"])
def test_fixed_and_oracle_weights_equal_brute_force(ties, normalise):
    scores, relevant = made(int(ties), ties)
    options = {"normalise": normalise}
    tried = np.array(
        [
            ap_of(weighted_sum(scores, weights=point, **options), relevant)
            for point in grid_by_brute_force(N_SOURCES, 4)
        ]
    )  # (points, queries)
    fitted = RasterFusion(step=0.25, **options).fit(scores, relevant)
    np.testing.assert_allclose(fitted.grid_ap_, np.nanmean(tried, axis=1), rtol=1e-14)
    assert fitted.mean_ap_ == pytest.approx(np.nanmean(tried, axis=1).max())
    fused = fitted.combine(scores)
    assert np.nanmean(ap_of(fused, relevant)) == pytest.approx(fitted.mean_ap_)

    oracle = oracle_weights(scores, relevant, step=0.25, **options)
    np.testing.assert_array_equal(oracle.ap[:-1], tried.max(axis=0)[:-1])  # to the last bit
    again = weighted_sum(scores[:, :-1], weights=oracle.weights[:-1], **options)
    np.testing.assert_array_equal(ap_of(again, relevant[:-1]), oracle.ap[:-1])
    assert np.isnan(oracle.ap[-1]) and np.isnan(oracle.weights[-1]).all()
    assert oracle.ap[:-1].mean() > fitted.mean_ap_  # there is something to find


def test_average_precision_is_exactly_that_of_the_profile():
    for random_state in range(5):
        scores, relevant = made(random_state)
        points = np.random.default_rng(random_state).dirichlet(np.ones(N_SOURCES), 7)
        points[0] = [1, 0, 0]  # one source, whole numbers: many ties
        values = precision_of_weights(scores, relevant, points, normalise="none")
        for p, point in enumerate(points):
            wanted = ap_of(weighted_sum(scores, weights=point, normalise="none"), relevant)
            np.testing.assert_array_equal(values[:, p], wanted)


def test_scores_that_single_precision_cannot_tell_apart_are_told_apart():
    scores = np.array([[[1.0, 1.0 + 1e-12, 1.0 - 1e-12, 1.0]]])
    relevant = np.array([[True, False, False, False]])
    # One above, one tied: place 2 or 3.
    (value,) = precision_of_weights(scores, relevant, [[1.0]], normalise="none")[0]
    assert value == pytest.approx((1 / 2 + 1 / 3) / 2)


@pytest.mark.parametrize("random_state", range(3))
def test_kernels_equal_their_twins(random_state):
    scores, relevant = made(random_state)
    judged = relevant.astype(np.int8)
    judged[1, 3:6] = -1
    grid = simplex(N_SOURCES, 0.25)
    changed = np.zeros(len(grid), np.int64)
    changed[1:] = (grid[1:] != grid[:-1]).argmax(axis=1)
    outputs = []
    for module in (fusion, fusion_reference):
        sums, best, ap = np.zeros(len(grid)), np.full(N_QUERIES, -7), np.zeros(N_QUERIES)
        module.scan_grid(scores, judged, grid, changed, sums, best, ap)
        weights, values = grid[best], ap.copy()
        module.climb(scores, judged, 0.1, weights, values)
        outputs.append((sums, best, ap, weights, values))
    for found, wanted in zip(*outputs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert (outputs[0][4][:-1] >= outputs[0][2][:-1]).all()


def test_refining_never_harms_and_weights_stay_on_the_simplex():
    scores, relevant = made(3, ties=False)
    coarse = oracle_weights(scores, relevant, step=0.5)
    fine = oracle_weights(scores, relevant, step=0.5, n_refinements=4)
    assert (fine.ap[:-1] >= coarse.ap[:-1]).all()
    assert fine.ap[:-1].sum() > coarse.ap[:-1].sum()
    np.testing.assert_allclose(fine.weights[:-1].sum(axis=1), 1)
    assert (fine.weights[:-1] >= 0).all()
    fused = weighted_sum(scores[:, :-1], weights=fine.weights[:-1])
    np.testing.assert_allclose(ap_of(fused, relevant[:-1]), fine.ap[:-1])


def test_of_equally_good_weights_the_evenest_are_taken():
    scores = np.tile(np.arange(4.0), (2, 1, 1))  # two sources that say the same
    found = RasterFusion(step=0.25).fit(scores, [[False, True, False, True]])
    assert found.weights_.tolist() == [0.5, 0.5]
    oracle = oracle_weights(scores, [[False, True, False, True]], step=0.25)
    assert oracle.weights.tolist() == [[0.5, 0.5]]


def test_an_excluded_item_is_not_retrieved():
    scores, relevant = made(1)
    truth = bt.Relevance.from_matrix(relevant.astype(int)).excluding(np.arange(N_QUERIES))
    values = precision_of_weights(scores, truth, np.eye(N_SOURCES), normalise="none")
    for s, source in enumerate(scores):
        profile = bt.TieProfile.from_distances(-source, truth)
        wanted = bt.evaluate(profile, ["ap"])["ap"].per_query
        np.testing.assert_array_equal(values[:, s], wanted)


def test_threads_change_nothing():
    scores, relevant = made(2)
    one, two = (RasterFusion(step=0.25, n_threads=n).fit(scores, relevant).grid_ap_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_equal_weights_rank_as_comb_sum():
    scores, relevant = made(4)
    third = precision_of_weights(scores, relevant, np.ones((1, 3)))[:, 0]
    np.testing.assert_array_equal(third, ap_of(FUSIONS["comb-sum"](scores), relevant))


SCORES, RELEVANT = made()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: simplex(3, 0.3), bt.InputError, "1 over a whole number"),
        (lambda: simplex(3, 0), bt.InputError, "1 over a whole number"),
        (lambda: simplex(9, 0.02), bt.InputError, r"grid of 1,916,797,311 points"),
        (lambda: RasterFusion().combine(SCORES), bt.NotFittedError, "before combine"),
        (lambda: RasterFusion().fit(SCORES[0], RELEVANT), bt.InputError, "queries, items"),
        (lambda: RasterFusion().fit(SCORES * np.nan, RELEVANT), bt.InputError, "has NaN"),
        (lambda: RasterFusion().fit(SCORES, RELEVANT[1:]), bt.InputError, r"booleans \(6, 14\)"),
        (lambda: RasterFusion().fit(SCORES, RELEVANT * 1), bt.InputError, "got int64"),
        (lambda: RasterFusion().fit(SCORES, RELEVANT & False), bt.InputError, "no query has"),
        (
            lambda: RasterFusion(step=0.5).fit(SCORES, RELEVANT).combine(SCORES[:2]),
            bt.InputError,
            "fitted on 3 sources, got 2",
        ),
        (
            lambda: RasterFusion(normalise="z").fit(SCORES, RELEVANT),
            bt.UnknownNameError,
            "zscore",
        ),
        (lambda: precision_of_weights(SCORES, RELEVANT, [[1, 2]]), bt.InputError, "points must"),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, error, says):
    with pytest.raises(error, match=says):
        call()
