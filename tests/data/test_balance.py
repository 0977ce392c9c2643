"""Samples in which every class has its share."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from made_sets import classes, dataset, labellings, multi_hot, taggings

from bittern.data.balance import (
    AtRandom,
    ByClass,
    ByRarestLabel,
    Shuffler,
    balance_of,
    disjoint_sets,
    most_frequent,
)
from bittern.errors import InputError


def class_counts(labels, positions):
    present = np.unique(labels[labels >= 0])
    return [int(np.sum(labels[positions] == c)) for c in present]


def drawn_for_each(tags, positions):
    """Whether the items can be shared out among the labels in shares that differ by one at most.

    Kuhn's matching of items to places: every label has its places, every item needs one.
    """
    present = np.flatnonzero(tags.any(axis=0))
    share, extra = divmod(len(positions), len(present))
    places = [(t, i) for t in present for i in range(share + (1 if extra else 0))]
    holder = {}

    def seat(item, tried):
        for place in places:
            if tags[item, place[0]] and place not in tried:
                tried.add(place)
                if place not in holder or seat(holder[place], tried):
                    holder[place] = item
                    return True
        return False

    return all(seat(item, set()) for item in positions)


@given(labellings, st.integers(1, 60), st.integers(0, 99))
def test_classes_differ_by_at_most_one(labels, n, seed):
    everything = np.arange(len(labels))
    balance = balance_of(dataset(labels=labels))
    try:
        chosen = balance.sample(n, everything, Shuffler(seed), "sample")
    except InputError as refusal:
        assert str(n) in str(refusal)
        return
    assert len(np.unique(chosen)) == n
    assert (np.diff(chosen) > 0).all()
    if (labels >= 0).any():
        counts = class_counts(labels, chosen)
        assert sum(counts) == n  # nothing without a class
        assert max(counts) - min(counts) <= 1


@given(labellings, st.integers(0, 99))
def test_a_class_sample_is_refused_only_if_there_is_none(labels, seed):
    present, sizes = np.unique(labels[labels >= 0], return_counts=True)
    if not len(present):
        return
    balance = ByClass(labels, tuple("abcde"))
    least, more = sizes.min(), np.sum(sizes > sizes.min())
    most = least * len(present) + more  # one more where there is one more
    if most == sizes.sum():
        balance.sample(int(most), np.arange(len(labels)), Shuffler(seed), "sample")
    else:
        balance.sample(int(most), np.arange(len(labels)), Shuffler(seed), "sample")
        with pytest.raises(InputError):
            balance.sample(int(most) + 1, np.arange(len(labels)), Shuffler(seed), "sample")


@given(taggings, st.integers(1, 30), st.integers(0, 9), st.booleans())
def test_labels_are_drawn_for_in_shares_that_differ_by_at_most_one(tags, n, seed, is_sparse):
    given_tags = scipy.sparse.csr_array(tags) if is_sparse else tags
    balance = balance_of(dataset(tags=given_tags))
    try:
        chosen = balance.sample(n, np.arange(len(tags)), Shuffler(seed), "sample")
    except InputError:
        return
    assert len(np.unique(chosen)) == n
    assert tags[chosen].any(axis=1).all()
    assert drawn_for_each(tags, chosen)


def test_the_rarest_label_draws_first():
    # Tag 0 is on items 0 and 1 only, which have tag 1 as well: were tag 1 to draw first, it might
    # take them.  Whatever the order of chance, both are drawn for tag 0.
    tags = np.zeros((40, 2), dtype=bool)
    tags[:2, 0] = True
    tags[:, 1] = True
    for seed in range(20):
        chosen = ByRarestLabel(tags, ("rare", "common")).sample(
            4, np.arange(40), Shuffler(seed), "sample"
        )
        assert {0, 1} <= set(chosen.tolist())
        assert len(chosen) == 4


def test_samples_of_equal_classes_leave_equal_classes():
    # 7 classes of 20; samples of 10, 5, 23 and 41 are no multiples of 7.
    labels = classes(7, 20)
    balance = balance_of(dataset(labels=labels))
    sizes = {"queries": 10, "train": 5, "validation_queries": 23, "validation_database": 41}
    for seed in range(10):
        sets = disjoint_sets(balance, sizes, np.arange(140), Shuffler(seed), "made")
        used = np.concatenate(list(sets.values()))
        assert len(np.unique(used)) == 79
        left = np.setdiff1d(np.arange(140), used)
        counts = class_counts(labels, left)
        assert max(counts) - min(counts) <= 1


def test_without_labels_a_sample_is_plain():
    assert isinstance(balance_of(dataset(10)), AtRandom)
    assert isinstance(balance_of(dataset(labels=[-1, -1])), AtRandom)
    assert isinstance(balance_of(dataset(labels=[0, 1]), balanced=False), AtRandom)
    assert isinstance(balance_of(dataset(labels=[0, 1], tags=multi_hot(2))), ByClass)


def test_every_item_is_equally_likely():
    drawn = [AtRandom().sample(3, np.arange(6), Shuffler(seed), "") for seed in range(2000)]
    counts = np.bincount(np.concatenate(drawn))
    # Binomial(2000, 1/2) has a deviation of 22; five of them either way.
    assert (np.abs(counts - 1000) < 112).all()


def test_draws_are_the_same_on_every_machine_and_in_every_version():
    # PCG64's raw stream is fixed by NumPy's NEP 19; these were written down with NumPy 2.4.
    order = Shuffler(0, 0).shuffled(np.arange(10))
    assert order.tolist() == GOLDEN_ORDER
    assert Shuffler(0, 1).shuffled(np.arange(10)).tolist() != GOLDEN_ORDER
    assert Shuffler(1, 0).shuffled(np.arange(10)).tolist() != GOLDEN_ORDER


GOLDEN_ORDER = [7, 9, 4, 3, 0, 6, 5, 2, 8, 1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: ByClass(np.array([0] * 9 + [1]), ("cat", "dog")).sample(
                4, np.arange(10), Shuffler(), "standard: queries"
            ),
            r"standard: queries: 4 items over 2 classes need 2 of class 'dog', but 1 are left",
        ),
        (
            lambda: ByRarestLabel(np.eye(3, dtype=bool), ("a", "b", "c")).sample(
                3, np.array([0, 1]), Shuffler(), "x"
            ),
            r"x: 3 items asked for, but only 2 are available",
        ),
        (
            lambda: ByRarestLabel(np.eye(3, dtype=bool)[[0, 0, 1]], ("a", "b", "c")).sample(
                3, np.arange(3), Shuffler(), "x"
            ),
            None,
        ),
        (
            lambda: ByRarestLabel(np.eye(2, dtype=bool)[[0, 0, 0, 1]], ("a", "b")).sample(
                4, np.arange(4), Shuffler(), "x"
            ),
            r"x: 2 items needed for 'b', but 1 are left",
        ),
        (
            lambda: AtRandom().sample(3, np.arange(2), Shuffler(), "x"),
            r"3 items asked for, but only 2",
        ),
        (lambda: Shuffler(-1), r"random_state must be at least 0, got -1"),
        (lambda: Shuffler(0, 1.5), r"run must be a whole number"),
        (
            lambda: most_frequent(np.eye(3, dtype=bool), 4),
            r"n must be at most 3, the labels in use, got 4",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_numbers(call, says):
    if says is None:
        assert len(call()) == 3  # label c has no item, and no share
        return
    with pytest.raises(InputError, match=says):
        call()


def test_most_frequent_tags():
    tags = np.array([[1, 0, 1, 1], [1, 0, 1, 0], [1, 0, 0, 1]], dtype=bool)
    assert most_frequent(tags, 2).tolist() == [0, 2]  # 2 and 3 are equally frequent
    assert most_frequent(scipy.sparse.csr_array(tags), 3).tolist() == [0, 2, 3]
