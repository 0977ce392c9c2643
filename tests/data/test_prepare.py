"""Preprocessing: the transformers, and datasets that apply them when rows are read."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_sets import dataset
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from bittern.data.images import ImageFiles
from bittern.data.prepare import PreparedRows, prepared
from bittern.data.rows import RowView, SparseRows, Texts
from bittern.data.steps import (
    PCA,
    Centre,
    Root,
    UnitLength,
    make_steps,
)
from bittern.errors import InputError

rows_of_numbers = arrays(
    np.float64, st.tuples(st.integers(1, 20), st.integers(1, 6)), elements=st.floats(-1e3, 1e3)
)


@pytest.mark.parametrize(
    "transformer", [Centre(), UnitLength(), Root(), PCA(1), PCA(1, solver="randomised")], ids=str
)
def test_they_are_scikit_learn_transformers(transformer):
    for estimator, check in estimator_checks_generator(transformer, mark="skip"):
        name = getattr(check, "func", check).__name__
        if name != "check_array_api_input":  # needs an environment variable before import
            check(clone(estimator))


@given(rows_of_numbers)
def test_centred_rows_have_mean_zero(rows):
    done = Centre().fit(rows).transform(rows)
    np.testing.assert_allclose(done, rows - rows.mean(axis=0), atol=1e-9)


@given(rows_of_numbers, st.booleans())
def test_rows_have_unit_length_or_are_zero(rows, is_sparse):
    given_rows = scipy.sparse.csr_array(rows) if is_sparse else rows
    model = UnitLength().fit(given_rows)
    done = model.transform(given_rows)
    assert scipy.sparse.issparse(done) == is_sparse
    done = done.toarray() if is_sparse else done
    tiny = np.linalg.norm(rows, axis=1) < 1e-150  # whose squares are no normal numbers
    is_zero = ~rows.any(axis=1)
    np.testing.assert_allclose(np.linalg.norm(done[~tiny], axis=1), 1)
    assert not done[is_zero].any()
    assert model.n_zero_rows_ >= is_zero.sum()


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots_keep_signs_types_and_sparsity(make, dtype):
    rows = make([[4.0, 0.0, -9.0], [0.25, 1.0, 0.0]], dtype=dtype)
    done = make_steps(["root"]).fit_transform(rows)
    assert done.dtype == dtype and scipy.sparse.issparse(done) == scipy.sparse.issparse(rows)
    done = done.toarray() if scipy.sparse.issparse(done) else done
    np.testing.assert_array_equal(done, [[2, 0, -3], [0.5, 1, 0]])


def test_types_are_kept():
    for dtype in (np.float32, np.float64):
        rows = np.random.default_rng(0).random((9, 4)).astype(dtype)
        for step in (Centre(), UnitLength(), PCA(2)):
            assert step.fit(rows).transform(rows).dtype == dtype
    counts = np.arange(12, dtype=np.uint8).reshape(4, 3)
    assert np.asarray(prepared(dataset(rows=counts), [0, 1], ["l2"])["vectors"]).dtype == np.float32


# Datasets


def test_worked_example():
    # Training rows (3, 4) and (0, 2) have lengths 5 and 2: (0.6, 0.8) and (0, 1), mean (0.3, 0.9).
    rows = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0], [5.0, 0.0]])
    done = prepared(dataset(rows=rows), [0, 1], ["l2", "centre"])
    expected = [[0.3, -0.1], [-0.3, 0.1], [-0.3, -0.9], [0.7, -0.9]]
    np.testing.assert_allclose(np.asarray(done["vectors"]), expected)
    assert done.notes == ("applied to vectors: l2, centre; fitted on 2 training rows",)


def test_rows_of_zeros_are_counted_in_the_notes():
    done = prepared(dataset(rows=np.eye(5, 3)), np.arange(5), ["l2"])
    assert done.notes[-1].endswith("5 training rows; 2 training rows are zero and stay so")


@pytest.mark.parametrize("memory", [1, 1 << 26])
@pytest.mark.parametrize("kind", ["array", "view", "sparse"])
def test_blocks_do_not_change_what_is_read(kind, memory):
    rng = np.random.default_rng(3)
    rows = rng.random((60, 10)) * (rng.random((60, 10)) < 0.4)
    train = np.arange(0, 60, 2)
    steps = ["l2", "pca4", "centre"]
    source = {
        "array": rows,
        "view": RowView(np.concatenate([rows[::-1], rows]), np.arange(60, 120)),
        "sparse": SparseRows(scipy.sparse.csr_array(rows)),
    }[kind]
    done = prepared(dataset(rows=source), train, steps, memory=memory)["vectors"]
    model = make_steps(steps).fit(rows[train])
    expected = model.transform(rows)
    np.testing.assert_allclose(np.asarray(done), expected, atol=1e-12)
    np.testing.assert_allclose(done[7], expected[7], atol=1e-12)
    np.testing.assert_allclose(done[[3, 1]], expected[[3, 1]], atol=1e-12)
    np.testing.assert_allclose(done[5:9], expected[5:9], atol=1e-12)
    np.testing.assert_allclose(done[rows[:, 0] > 0], expected[rows[:, 0] > 0], atol=1e-12)
    assert done[:0].shape == (0, 4)
    assert done.shape == (60, 4)
    assert len(done) == 60


def test_sparse_rows_stay_sparse_where_they_can():
    matrix = scipy.sparse.csr_array(np.eye(6, 4, dtype=np.float32) * 3)
    done = prepared(dataset(rows=SparseRows(matrix)), [0, 1], ["l2"], memory=1)["vectors"]
    read = done[:]
    assert scipy.sparse.issparse(read)
    np.testing.assert_array_equal(read.toarray(), np.eye(6, 4))
    np.testing.assert_array_equal(np.asarray(done), np.eye(6, 4))


def test_prepared_rows_can_be_taken_and_prepared_again():
    rows = np.random.default_rng(4).random((30, 5))
    once = prepared(dataset(rows=rows), np.arange(10), ["l2"])
    twice = once.prepared(np.arange(10), ["centre"])
    assert len(twice.notes) == 2
    expected = make_steps(["l2", "centre"]).fit(rows[:10]).transform(rows)
    part = twice.take([4, 2])
    np.testing.assert_allclose(np.asarray(part["vectors"]), expected[[4, 2]])
    assert isinstance(twice["vectors"], PreparedRows)


def test_one_of_two_modalities():
    made = dataset(rows=np.random.default_rng(5).random((9, 3)))
    made = made.with_note("two", modalities={**made.modalities, "text": np.ones((9, 2))})
    done = made.prepared(np.arange(9), ["centre"], "text")
    assert not np.asarray(done["text"]).any()
    assert done["vectors"] is made["vectors"]
    assert done.notes[-1] == "applied to text: centre; fitted on 9 training rows"


def test_a_transformer_of_your_own_is_cloned():
    mine = StandardScaler()
    rows = np.random.default_rng(6).random((20, 3))
    done = prepared(dataset(rows=rows), np.arange(10), ["l2", mine])
    assert not hasattr(mine, "mean_")
    expected = make_steps(["l2", mine]).fit(rows[:10]).transform(rows)
    np.testing.assert_allclose(np.asarray(done["vectors"]), expected)
    assert "l2, standardscaler" in done.notes[-1]


IMAGES = dataset(rows=np.zeros((4, 2, 2, 3), np.uint8))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: prepared(dataset(9), [], ["l2"]), r"needs training rows, got none"),
        (lambda: prepared(dataset(9), [9], ["l2"]), r"train must lie in \[0, 9\), got 9"),
        (
            lambda: prepared(dataset(9), [1], ["l3"]),
            r"no step is called 'l3'; there are centre, l2, root, pca<number>",
        ),
        (lambda: prepared(dataset(9), [1], ["pca"]), r"no step is called 'pca'"),
        (lambda: prepared(dataset(9), [1], "l2"), r"steps must be a list of names, got 'l2'"),
        (lambda: prepared(dataset(9), [1, 2], ["pca3"]), r"n_components=3 must be at most .* = 1"),
        (lambda: prepared(IMAGES, [1], ["l2"]), r"needs vectors \(n, dim\), got shape"),
        (
            lambda: prepared(
                dataset(rows=ImageFiles(["a", "b"], lambda _: np.eye(2))), [1], ["l2"]
            ),
            r"needs vectors, got images or texts; extract features",
        ),
        (
            lambda: prepared(dataset(rows=Texts(["a", "b"])), [1], ["centre"]),
            r"needs vectors, got images or texts",
        ),
        (
            lambda: prepared(dataset(rows=SparseRows(scipy.sparse.eye(4))), [1], ["centre"]),
            r"Centre: sparse rows would become dense; use PCA",
        ),
        (lambda: Centre().fit(scipy.sparse.eye(4)), r"sparse rows would become dense"),
        (lambda: Centre().fit([[np.nan]]), r"Centre: Input X contains NaN"),
        (lambda: PCA(2, solver="exact").fit(np.eye(3)), r"solver must be one of \['auto', 'svd'"),
        (lambda: PCA(2, solver="svd").fit(scipy.sparse.eye(4)), r"would make sparse rows dense"),
        (lambda: PCA(0).fit(np.eye(3)), r"n_components must be at least 1"),
        (lambda: PCA(1).fit(np.eye(3)).transform(np.eye(4)), r"4 features.* 3 features"),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, says):
    with pytest.raises(InputError, match=says):
        call()
