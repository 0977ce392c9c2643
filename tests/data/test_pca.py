"""Principal components against NumPy's decomposition of centred, dense rows."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern.data.rows import RowView, SparseRows
from bittern.data.steps import PCA

SOLVERS = ["svd", "covariance", "randomised", "auto"]


def textbook(rows, k):
    """Mean, directions and variances by the singular values of the centred rows."""
    dense = np.asarray(rows, dtype=np.float64)
    centred = dense - dense.mean(axis=0)
    _, s, vt = np.linalg.svd(centred, full_matrices=False)
    return dense.mean(axis=0), vt[:k], s[:k] ** 2 / (len(dense) - 1)


def tags(n, dim, random_state, decay=0.7):
    """Sparse 0/1 rows whose columns are less and less frequent, so that directions differ."""
    rng = np.random.default_rng(random_state)
    return (rng.random((n, dim)) < 0.6 * decay ** np.arange(dim)).astype(float)


def assert_same(model, rows, k, tolerance):
    mean, axes, variances = textbook(rows, k)
    np.testing.assert_allclose(model.mean_, mean, atol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, variances, rtol=tolerance, atol=1e-12)
    cosine = np.abs(np.sum(model.components_ * axes, axis=1))
    np.testing.assert_allclose(cosine, 1, atol=tolerance)
    largest = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(k), largest] > 0).all()


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(SOLVERS[1:]))
@settings(max_examples=30)
def test_sparse_rows_are_centred_without_being_filled(seed, k, solver):
    rows = tags(200, 9, seed)
    variances = textbook(rows, 9)[2]
    if np.min(-np.diff(variances[: k + 1]) / variances[:k]) < 0.05:
        return  # directions of nearly equal variance are anyone's choice
    model = PCA(k, solver=solver).fit(scipy.sparse.csr_array(rows))
    assert_same(model, rows, k, 1e-6)
    done = model.transform(scipy.sparse.csr_array(rows))
    np.testing.assert_allclose(done, (rows - rows.mean(axis=0)) @ model.components_.T, atol=1e-10)
    np.testing.assert_allclose(model.transform(rows), done, atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(60, 8), (8, 60), (30, 30)])
def test_dense_rows(solver, shape):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal(shape) * 0.6 ** np.arange(shape[1]) + 10
    assert_same(PCA(4, solver=solver).fit(rows), rows, 4, 1e-6)


def test_the_mean_is_taken_away():
    # Along the first column rows only sit far off; along the second they vary.
    rows = np.array([[1000.0, 1.0], [1000.0, 2.0], [1000.0, 3.0]])
    for solver in SOLVERS:
        model = PCA(1, solver=solver).fit(rows)
        np.testing.assert_allclose(model.components_, [[0, 1]], atol=1e-9)
        np.testing.assert_allclose(model.transform(rows).ravel(), [-1, 0, 1], atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS[1:])
def test_rows_read_by_blocks_give_the_same(solver):
    rows = tags(300, 12, 2)
    lazy = SparseRows(scipy.sparse.csr_array(rows))
    whole = PCA(3, solver=solver).fit(lazy)
    by_blocks = PCA(3, solver=solver, memory=1 << 12).fit(RowView(lazy, np.arange(300)))
    np.testing.assert_allclose(by_blocks.components_, whole.components_, atol=1e-9)
    assert_same(whole, rows, 3, 1e-6)


def test_a_random_subspace_of_wide_sparse_rows():
    # 2,000 columns, of which 20 components; too wide for the covariance in this memory.
    rng = np.random.default_rng(3)
    factors = scipy.sparse.random_array((400, 20), density=0.3, rng=rng)
    loads = scipy.sparse.random_array((20, 2000), density=0.05, rng=rng)
    scale = scipy.sparse.diags_array(0.8 ** np.arange(20))
    rows = (factors @ scale @ loads).tocsr()
    model = PCA(10, memory=1 << 20)
    assert model._choice(FakeBlocks(rows)) == "randomised"
    assert_same(model.fit(rows), rows.toarray(), 10, 1e-6)
    again = PCA(10, memory=1 << 20).fit(rows)
    np.testing.assert_array_equal(again.components_, model.components_)


class FakeBlocks:
    """What the choice of a solver looks at."""

    def __init__(self, rows, is_sparse=True):
        self.shape, self.is_sparse = rows.shape if hasattr(rows, "shape") else rows, is_sparse


@pytest.mark.parametrize(
    ("shape", "is_sparse", "k", "solver"),
    [
        ((5_000, 512), False, 64, "svd"),  # LabelMe's training rows
        ((269_648, 5_018), True, 1_000, "covariance"),  # NUS-WIDE's tags
        ((269_648, 5_018), True, 64, "randomised"),
        ((100_000, 200_000), True, 1_000, "randomised"),
        ((1_000_000, 128), False, 32, "covariance"),  # SIFT1M
    ],
)
def test_the_solver_follows_the_size(shape, is_sparse, k, solver):
    assert PCA(k)._choice(FakeBlocks(shape, is_sparse)) == solver


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_row_and_constant_rows(solver):
    model = PCA(1, solver=solver).fit([[1.0, 2.0]])
    np.testing.assert_allclose(model.transform([[1.0, 2.0]]), [[0.0]], atol=1e-12)
    same = np.ones((5, 3))
    done = PCA(2, solver=solver).fit(same).transform(same)
    np.testing.assert_allclose(done, np.zeros((5, 2)), atol=1e-12)
