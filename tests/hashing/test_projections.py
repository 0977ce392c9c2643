"""Learned projections against the textbook versions of what they solve."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg

from bittern import InputError, Relevance
from bittern.hashing.isohash import IsoHash, lift_and_project
from bittern.hashing.itq import ITQ, rotations
from bittern.hashing.itq_cca import ITQCCA, canonical_directions
from bittern.hashing.linear import principal_axes
from bittern.hashing.pcah import PCAH


def labelled_rows(n=150, dim=12, n_classes=4):
    """Classes around different means, with columns of different spread and a shifted origin."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, n_classes, n)
    means = rng.standard_normal((n_classes, dim))
    rows = means[labels] + rng.standard_normal((n, dim)) * np.linspace(0.3, 2, dim)
    return rows + 3, labels


X, LABELS = labelled_rows()
CENTRED = X - X.mean(axis=0)
LINE = np.outer(np.linspace(-1, 2, 40), [3.0, 4.0, 0.0])  # rank 1


def stop_after(steps):
    """A stand-in for ``track`` in which the user presses Ctrl-C after some steps."""

    def track(things, what, total=None):
        for i, thing in enumerate(things):
            if i == steps:
                raise KeyboardInterrupt
            yield thing

    return track


def test_pcah_bits_are_signs_of_principal_components():
    _, _, axes = np.linalg.svd(CENTRED, full_matrices=False)
    bits = PCAH(12).fit(X).transform(X)
    for mine, theirs in zip(bits.T, (CENTRED @ axes.T > 0).T, strict=True):
        assert (mine == theirs).all() or (mine == ~theirs).all()  # an axis has no sign of its own


def test_pcah_fills_up_with_random_hyperplanes_in_the_principal_subspace():
    plane = np.random.default_rng(0).standard_normal((60, 2)) @ np.array(
        [[1.0, 2, 0, 0], [0, 0, 1, 1]]
    )
    hasher = PCAH(40).fit(plane + 1)
    assert np.linalg.matrix_rank(hasher.projection_) == 2
    bits = hasher.transform(plane + 1)
    assert len(np.unique(bits, axis=1).T) > 20  # as many different cuts, not the same again
    assert bits.any(axis=0).all() and not bits.all(axis=0).any()


def loss_of(V, R):
    signs = np.where(V @ R > 0, 1.0, -1.0)
    return ((signs - V @ R) ** 2).sum()


@pytest.mark.parametrize("r", [1, 3, 8])
def test_itq_never_loses_more_than_before(r):
    V = np.random.default_rng(r).standard_normal((80, r)) * np.arange(1, r + 1)
    steps = list(rotations(V, 8, 50, np.random.default_rng(0), ""))
    losses = [loss_of(V, R) for R in steps]
    assert all(after <= before + 1e-9 for before, after in pairwise(losses))
    assert losses[-1] < losses[0] - 1
    for R in steps:
        np.testing.assert_allclose(R @ R.T, np.eye(r), atol=1e-12)


def textbook_itq(V, n_iter, rng):
    """Square rotations of V, padded with columns of zeros, as in the paper."""
    b = V.shape[1]
    R = np.linalg.qr(rng.standard_normal((b, b)))[0]
    for _ in range(n_iter):
        B = np.where(V @ R > 0, 1.0, -1.0)
        left, _, right = np.linalg.svd(B.T @ V)
        R = (left @ right).T
    return R


@pytest.mark.parametrize("n_bits", [5, 12, 20])
def test_itq_equals_the_textbook_with_columns_of_zeros(n_bits):
    mean, axes, _ = principal_axes(X, n_bits)
    R = textbook_itq((X - mean) @ axes, 7, np.random.default_rng(3))
    hasher = ITQ(n_bits, n_iter=7, random_state=3).fit(X)
    np.testing.assert_allclose(hasher.projection_, axes @ R, atol=1e-8)


def test_itq_of_one_bit_is_the_sign_of_the_first_component():
    bits = ITQ(1).fit(X).transform(X)[:, 0]
    first = PCAH(1).fit(X).transform(X)[:, 0]
    assert (bits == first).all() or (bits == ~first).all()


def test_itq_finds_the_corners_of_a_rotated_cube():
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    turn = scipy.linalg.qr(np.random.default_rng(4).standard_normal((3, 3)))[0]
    noise = 0.05 * np.random.default_rng(5).standard_normal((200, 3))
    rows = (np.repeat(corners, 25, axis=0) + noise) @ turn
    codes = ITQ(3).fit(rows).transform(rows)
    of_corner = np.unique(codes.reshape(8, 25, 3), axis=1)
    assert of_corner.shape[1] == 1  # one code for each corner
    assert len(np.unique(of_corner, axis=0)) == 8


@pytest.mark.parametrize(
    ("hasher", "module"), [(ITQ(6), "itq"), (ITQCCA(6), "itq"), (IsoHash(6), "isohash")]
)
def test_ctrl_c_leaves_the_last_rotation(hasher, module, monkeypatch):
    few = type(hasher)(6, n_iter=2).fit(X, LABELS)
    monkeypatch.setattr(f"bittern.hashing.{module}.track", stop_after(2))
    with pytest.warns(UserWarning, match="stopped early; the model is the one learned so far"):
        hasher.fit(X, LABELS)
    assert hasher.stopped_early_ and not few.stopped_early_
    np.testing.assert_array_equal(hasher.projection_, few.projection_)


def textbook_cca(rows, indicators, rho, rho_targets):
    """Generalised eigenproblem of regularised canonical correlation analysis."""
    rows, indicators = rows - rows.mean(axis=0), indicators - indicators.mean(axis=0)
    between = rows.T @ indicators
    targets = indicators.T @ indicators + rho_targets * np.eye(indicators.shape[1])
    whole = rows.T @ rows + rho * np.eye(rows.shape[1])
    values, vectors = scipy.linalg.eigh(between @ np.linalg.solve(targets, between.T), whole)
    return np.sqrt(np.maximum(values[::-1], 0)), vectors[:, ::-1]


TAGS = np.random.default_rng(8).random((150, 5)) < 0.4
TAGS[:, 0] = X[:, 0] > 3


@pytest.mark.parametrize("indicators", [np.eye(4)[LABELS], TAGS.astype(float)])
@pytest.mark.parametrize("regularisation", [1e-3, 1.0])
def test_canonical_directions_solve_the_eigenproblem(indicators, regularisation):
    _, axes, _ = principal_axes(X, 12)
    squares = np.linalg.eigvalsh(CENTRED.T @ CENTRED)
    target_squares = np.linalg.eigvalsh(np.cov(indicators.T, bias=True) * len(X))
    correlations, directions = textbook_cca(
        X, indicators, regularisation * squares.mean(), 1e-4 * target_squares.mean()
    )
    W, mine = canonical_directions(CENTRED @ axes, indicators, regularisation)
    assert len(mine) == np.linalg.matrix_rank(indicators - indicators.mean(axis=0))
    np.testing.assert_allclose(mine, correlations[: len(mine)], rtol=1e-8)
    for a, b in zip((axes @ W).T, directions.T, strict=False):
        np.testing.assert_allclose(np.sign(a @ b) * a, b, atol=1e-8)


def test_itq_cca_rotates_the_directions_scaled_by_their_correlations():
    indicators = np.eye(4)[LABELS]
    squares = np.linalg.eigvalsh(CENTRED.T @ CENTRED).mean()
    target_squares = np.linalg.eigvalsh(np.cov(indicators.T, bias=True) * len(X)).mean()
    correlations, directions = textbook_cca(X, indicators, squares, 1e-4 * target_squares)
    scaled = directions[:, :3] * correlations[:3]
    projection = ITQCCA(9).fit(X, LABELS).projection_
    np.testing.assert_allclose(projection @ projection.T, scaled @ scaled.T, atol=1e-10)
    assert np.ptp(correlations[:3]) > 0.1  # not vacuous: they differ


def separation(hasher, affinity):
    """How much farther apart unrelated rows are than related ones, in bits."""
    bits = hasher.transform(X)
    apart = (bits[:, None] != bits).sum(axis=-1)
    return apart[affinity == 0].mean() - apart[affinity > 0].mean()


@pytest.mark.parametrize("kind", ["labels", "tags", "relevance"])
@pytest.mark.parametrize("n_bits", [2, 16])
def test_itq_cca_brings_related_rows_together(kind, n_bits):
    tags = np.eye(4, dtype=int)[LABELS]
    y = {"labels": LABELS, "tags": tags, "relevance": Relevance.from_tags(tags, tags)}[kind]
    same = (LABELS[:, None] == LABELS).astype(float)
    supervised = separation(ITQCCA(n_bits).fit(X, y), same)
    assert supervised > 1.5 * separation(ITQ(n_bits).fit(X), same) > 0


def test_itq_cca_uses_graded_relevance():
    gains = np.minimum((LABELS[:, None] == LABELS) * 2, 3)
    hasher = ITQCCA(8).fit(X, Relevance.from_matrix(gains))
    assert separation(hasher, gains) > separation(ITQ(8).fit(X), gains)


def test_itq_cca_with_nothing_to_tell_apart_is_itq():
    one_class = ITQCCA(5).fit(X, np.zeros(len(X), int))
    np.testing.assert_allclose(one_class.projection_, ITQ(5).fit(X).projection_, atol=1e-9)


def variances_of(hasher, rows):
    return ((rows - hasher.mean_) @ hasher.projection_).var(axis=0)


@pytest.mark.parametrize("n_bits", [1, 2, 7, 12])
def test_isohash_gives_all_bits_one_variance(n_bits):
    variances = variances_of(IsoHash(n_bits, n_iter=500).fit(X), X)
    kept = np.sort(np.linalg.eigvalsh(np.cov(X.T, bias=True)))[::-1][:n_bits]
    np.testing.assert_allclose(variances, kept.mean(), rtol=1e-6)
    assert n_bits == 1 or kept[0] > 1.1 * kept.mean()  # not vacuous: they differed before


def test_isohash_shares_the_variance_of_one_direction_among_all_bits():
    variances = variances_of(IsoHash(9, n_iter=500).fit(LINE), LINE)
    np.testing.assert_allclose(variances, LINE.var(axis=0).sum() / 9, rtol=1e-6)


def test_isohash_never_moves_away_from_equal_variances():
    variances = np.array([9.0, 4.0, 1.0, 0.5, 0.0])
    steps = lift_and_project(variances, 200, np.random.default_rng(0), "")
    uneven = []
    for R in steps:
        np.testing.assert_allclose(R @ R.T, np.eye(5), atol=1e-12)
        uneven.append(np.linalg.norm(np.diagonal(R.T @ np.diag(variances) @ R) - 2.9))
    assert all(after <= before + 1e-9 for before, after in pairwise(uneven))
    assert uneven[0] > 1 and uneven[-1] < 1e-8


def test_isohash_turns_two_components_by_45_degrees():
    # The only rotations that even out two unequal variances: cos² = sin² = 1/2.
    *_, R = lift_and_project(np.array([5.0, 1.0]), 300, np.random.default_rng(1), "")
    np.testing.assert_allclose(np.abs(R), np.sqrt(0.5), atol=1e-6)


@pytest.mark.parametrize("hasher", [PCAH(), ITQ(), ITQCCA(), IsoHash(n_iter=10)])
@pytest.mark.parametrize("n_bits", [1, 7, 64, 65])
@pytest.mark.parametrize("rows", [X[:, :3], X[:5], LINE, LINE[:1], np.full((9, 4), 0.1)])
def test_any_number_of_bits_of_any_rows(hasher, n_bits, rows):
    y = np.arange(len(rows)) % 2
    for dtype in (np.float32, np.float64):
        some = rows.astype(dtype)
        bits = hasher.set_params(n_bits=n_bits).fit(some, y).transform(some)
        assert bits.shape == (len(rows), n_bits)
        assert np.isfinite(hasher.projection_).all()
        if len(np.unique(rows, axis=0)) > 1:
            assert len(np.unique(bits, axis=0)) > 1


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (ITQ(n_iter=0), r"ITQ: n_iter must be at least 1, got 0"),
        (ITQCCA(n_iter=True), r"ITQCCA: n_iter must be a whole number at least 1, got True"),
        (ITQCCA(regularisation=0), r"ITQCCA: regularisation must be above 0, got 0"),
        (IsoHash(n_iter=1.5), r"IsoHash: n_iter must be a whole number at least 1, got 1.5"),
        (PCAH("8"), r"PCAH: n_bits must be a whole number between 1 and 4096, got '8'"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(InputError, match=says):
        hasher.fit(X, LABELS)


def test_itq_cca_asks_for_y():
    with pytest.raises(InputError, match="ITQCCA: requires y to be passed"):
        ITQCCA().fit(X)
