"""Traps 21 and 23: test images in the database, and preprocessing that has seen the test."""

import numpy as np
import pytest
import scipy.sparse
from made_sets import classes, dataset

from bittern.data.prepare import prepared
from bittern.data.rows import SparseRows
from bittern.data.splits import Split, make_split
from bittern.errors import InputError

STEPS = ("l2", "pca3", "centre")


def test_trap_21_test_images_at_positions_of_the_database_are_refused_at_birth():
    # 888 of 1,000 test images were in the database (thulab/DeepHash issue 49).
    with pytest.raises(InputError, match=r"queries and database must be disjoint.* share 888 item"):
        Split(
            name="leaky",
            n_items=10_000,
            queries=np.arange(1_000),
            database=np.arange(112, 10_000),
        )


@pytest.mark.parametrize("name", ["standard", "improved"])
def test_trap_21_test_images_that_are_in_the_database_under_another_number_are_found(name):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (2_000, 8, 8, 3), dtype=np.uint8)
    made = dataset(rows=rows, labels=classes(10, 200))
    split = make_split(name, made, queries=200, train=200)
    assert split.check(made).is_clean
    rows[split.queries[:177]] = rows[split.database[-177:]]
    report = split.check(made)
    assert not report.is_clean
    leak = next(one for one in report.leaks if (one.one, one.other) == ("queries", "database"))
    assert (leak.n_one, leak.size_one, leak.n_other) == (177, 200, 177)
    assert leak.examples[0] == (str(split.queries[0]), str(split.database[-177]))
    # In the standard split some of the copies train as well; behind that wall they count once.
    assert report.number == 2 * 177
    assert "177 of 200 queries are also among database" in str(report)


def learned(steps, rows, train):
    """Every array that preprocessing learned."""
    pipeline = prepared(dataset(rows=rows), train, steps)["vectors"].pipeline
    return {
        (name, key): value
        for name, step in pipeline.steps
        for key, value in vars(step).items()
        if key.endswith("_")
    }


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_trap_23_changing_test_rows_changes_nothing_that_was_fitted(kind):
    rng = np.random.default_rng(1)
    rows = rng.random((90, 12)) * (rng.random((90, 12)) < 0.5)
    train, test = np.arange(0, 90, 3), np.setdiff1d(np.arange(90), np.arange(0, 90, 3))

    def wrapped(array):
        return array if kind == "dense" else SparseRows(scipy.sparse.csr_array(array))

    before = learned(STEPS, wrapped(rows), train)
    changed = rows.copy()
    changed[test] = 1000 + rng.random((len(test), 12))
    after = learned(STEPS, wrapped(changed), train)
    assert before.keys() == after.keys()
    assert ("2-pca3", "components_") in before
    for key, value in before.items():
        np.testing.assert_array_equal(value, after[key], err_msg=str(key))
    # Not vacuous: fitted on all rows, it would be another.
    assert not np.allclose(
        learned(STEPS, wrapped(changed), np.arange(90))["2-pca3", "mean_"],
        before["2-pca3", "mean_"],
    )


def test_trap_23_fitting_reads_training_rows_only():
    class Watched:
        shape = (50, 4)

        def __len__(self):
            return 50

        def __getitem__(self, rows):
            seen.update(np.atleast_1d(np.arange(50)[rows]).tolist())
            return np.random.default_rng(2).random((50, 4))[rows]

    seen = set()
    made = dataset(rows=Watched())
    train = np.array([3, 8, 21, 40, 41])
    done = made.prepared(train, ["l2", "centre", "pca2"])
    assert seen == set(train.tolist())
    assert np.asarray(done["vectors"]).shape == (50, 2)
    assert len(seen) == 50
