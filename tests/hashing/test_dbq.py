"""Double-bit quantisation against the search written out, and against all pairs of thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern import InputError, Relevance, UnknownNameError
from bittern.hashing.dbq import DBQ, double_thresholds
from bittern.hashing.itq import ITQ
from bittern.hashing.itq_cca import ITQCCA
from bittern.hashing.lsh import LSH
from bittern.hashing.pcah import PCAH
from bittern.hashing.sh import SH


def labelled_rows():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 120)
    return rng.standard_normal((120, 10)) * np.linspace(3, 1, 10) + labels[:, None], labels


X, LABELS = labelled_rows()


def objective(left, right):
    return sum(sum(part) ** 2 / len(part) for part in (left, right) if len(part))


def parts(z, alpha, beta):
    return z[z <= alpha], z[(alpha < z) & (z <= beta)], z[z > beta]


def walk(z):
    """The best objective on the way of the paper's search, value by value."""
    left, middle, right = sorted(z[z <= 0]), [], sorted(z[z > 0], reverse=True)
    best = objective(left, right)
    while (right and sum(middle) <= 0) or (left and sum(middle) > 0):
        middle.append(right.pop() if sum(middle) <= 0 else left.pop())
        best = max(best, objective(left, right))
    return best


def best_pair(z):
    """The best objective over all pairs of thresholds around 0 whose middle has mean exactly 0."""
    cuts = np.concatenate(([z.min() - 1], np.sort(z)))
    best = 0.0
    for alpha in cuts:
        for beta in cuts[cuts >= alpha]:
            left, middle, right = parts(z, alpha, beta)
            if middle.sum() == 0 and (left <= 0).all() and (right > 0).all():
                best = max(best, objective(left, right))
    return best


distinct = st.lists(st.integers(-40, 40).filter(bool), min_size=2, max_size=12, unique=True)


@given(distinct)
@settings(max_examples=100, deadline=None)
def test_thresholds_are_the_best_on_the_way_of_the_search(values):
    z = np.array(values, float)
    left, _, right = parts(z, *double_thresholds(z))
    assert objective(left, right) == pytest.approx(walk(z))


@given(distinct)
@settings(max_examples=100, deadline=None)
def test_no_pair_of_thresholds_with_a_middle_of_mean_zero_is_better(values):
    z = np.array(values, float)
    left, middle, right = parts(z, *double_thresholds(z))
    assert objective(left, right) >= best_pair(z) - 1e-9
    if len(middle):  # its sum is within the value that joined last
        assert abs(middle.sum()) <= np.abs(middle).max()


def test_worked_example():
    # From 0 outwards: 1, -1 and 2, -2 join; then left = {-9}, right = {9}: F = 81 + 81.
    # Empty middle: 12²/3 + 12²/3 = 96; {1, -1}: 11²/2 + 11²/2 = 121.
    alpha, beta = double_thresholds(np.array([-9.0, -2, -1, 1, 2, 9]))
    assert (alpha, beta) == (-5.5, 5.5)  # midway between -9 and -2, and between 2 and 9


def test_two_clusters_get_an_empty_middle():
    z = np.array([-5.1, -5, -4.9, 4.9, 5, 5.1])
    assert double_thresholds(z) == (0.0, 0.0)


@pytest.mark.parametrize("z", [np.zeros(5), np.full(5, 1e-12), np.full(5, -1e-12), np.array([0.0])])
def test_values_that_do_not_vary_have_no_threshold_near_them(z):
    assert np.isinf(double_thresholds(z, rounding=1e-9)).all()


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_equal_values_are_never_cut_apart(values):
    z = np.array(values, float)
    noisy = z + 1e-10 * np.random.default_rng(0).standard_normal(len(z))
    regions = np.searchsorted(double_thresholds(noisy, rounding=1e-8), noisy)
    for value in np.unique(z):
        assert len(np.unique(regions[z == value])) == 1


def test_normal_values_are_cut_where_a_quantiser_of_three_levels_cuts_them():
    # Lloyd–Max for a normal: thresholds ±0.6120.
    z = np.random.default_rng(0).standard_normal(200_000)
    np.testing.assert_allclose(double_thresholds(z - z.mean()), [-0.612, 0.612], atol=0.02)


@pytest.mark.parametrize("n_bits", [1, 2, 7, 8])
@pytest.mark.parametrize("projection", [None, ITQ(3), LSH(16, random_state=4)])
def test_bits_are_the_regions_of_the_projections(n_bits, projection):
    hasher = DBQ(n_bits, projection=projection).fit(X)
    bits = hasher.transform(X)
    inner = (PCAH() if projection is None else projection).set_params(n_bits=-(-n_bits // 2)).fit(X)
    Z = (X - inner.mean_) @ inner.projection_
    for k in range(n_bits // 2):
        alpha, beta = hasher.thresholds_[:, k]
        codes = [(z > beta, z <= alpha) for z in Z[:, k]]
        assert bits[:, 2 * k : 2 * k + 2].tolist() == [list(map(bool, code)) for code in codes]
        assert not (bits[:, 2 * k] & bits[:, 2 * k + 1]).any()  # never 11
    if n_bits % 2:
        np.testing.assert_array_equal(bits[:, -1], Z[:, -1] > 0)


def test_a_projection_may_be_named():
    named, made = DBQ(8, projection="itq", random_state=3), DBQ(8, projection=ITQ(random_state=3))
    assert named.fit(X).encode(X) == made.fit(X).encode(X)
    with pytest.raises(UnknownNameError, match="no hasher is called 'itk'; did you mean 'itq'"):
        DBQ(projection="itk").fit(X)


def test_the_projection_that_was_given_stays_as_it_was():
    given_one = ITQ(16, n_iter=3)
    hasher = DBQ(10, projection=given_one).fit(X)
    assert given_one.n_bits == 16 and not hasattr(given_one, "mean_")
    assert hasher.projection_.n_bits == 5 and hasher.projection_.n_iter == 3


TAGS = np.eye(3, dtype=int)[LABELS]


@pytest.mark.parametrize("y", [LABELS, TAGS, Relevance.from_tags(TAGS, TAGS)])
def test_y_reaches_a_projection_that_needs_it(y):
    hasher = DBQ(8, projection=ITQCCA()).fit(X, y)
    direct = ITQCCA(4).fit(X, y)
    np.testing.assert_array_equal(hasher.projection_.projection_, direct.projection_)


def test_y_is_not_looked_at_otherwise():
    for projection in (None, ITQ()):
        hasher = DBQ(8, projection=projection)
        assert hasher.fit(X, "nonsense").encode(X) == hasher.fit(X).encode(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bits", [1, 7, 64, 65])
@pytest.mark.parametrize("rows", [X[:5], X[:1], X[:, :2], np.full((9, 4), 0.1), np.round(X)])
def test_any_number_of_bits_of_any_rows(rows, n_bits, dtype):
    rows = rows.astype(dtype)
    hasher = DBQ(n_bits).fit(rows)
    together = hasher.transform(rows)
    alone = np.concatenate([hasher.transform(row[None]) for row in rows])
    np.testing.assert_array_equal(together, alone)
    assert together.shape == (len(rows), n_bits)


def test_ctrl_c_while_projecting_leaves_a_model(monkeypatch):
    def track(things, what, total=None):
        yield from list(things)[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr("bittern.hashing.itq.track", track)
    with pytest.warns(UserWarning, match="ITQ: stopped early"):
        hasher = DBQ(12, projection=ITQ()).fit(X)
    assert hasher.stopped_early_
    assert hasher.transform(X).any()


@pytest.mark.parametrize(
    ("hasher", "says"),
    [
        (DBQ(projection="sh"), r"DBQ: projection must be a linear hasher, .* got 'sh'"),
        (DBQ(projection=SH()), r"DBQ: projection must be a linear hasher, .* got SH\(\)"),
        (DBQ(projection=ITQ), r"DBQ: projection must be a linear hasher"),
        (DBQ(projection=ITQ(n_iter=0)), r"ITQ: n_iter must be at least 1"),
        (DBQ(projection=ITQCCA()), r"ITQCCA: requires y to be passed"),
        (DBQ(0), r"DBQ: n_bits must be between 1 and 4096, got 0"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(hasher, says):
    with pytest.raises(InputError, match=says):
        hasher.fit(X)
