"""Every split: disjoint exactly where promised, balanced, the same for a seed, another each run."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sets import classes, dataset, labellings, multi_hot, taggings

from bittern.data.splits import SETS, SPLITS, Split, make_split, ten_runs
from bittern.errors import FileError, InputError, UnknownNameError

PARTS = {
    "standard": {"train", "validation_queries", "validation_database"},
    "improved": set(),
    "cifar-s1": {"train", "validation_queries", "validation_database"},
    "nuswide-21": {"train", "validation_queries", "validation_database"},
    "labelme-20k": {"train", "validation_queries", "validation_database"},
}


def assert_disjoint_exactly_where_promised(split):
    """Written from the definition, with Python's sets."""
    sets = {name: set(getattr(split, name).tolist()) for name in SETS}
    promised = {frozenset(pair) for pair in split.parts}
    for i, one in enumerate(SETS):
        for other in SETS[i + 1 :]:
            if not sets[one] or not sets[other]:
                continue
            if frozenset((one, other)) in promised:
                assert sets[one] <= sets[other] or sets[other] <= sets[one]
            else:
                assert not sets[one] & sets[other]


def counts_by_class(labels, positions):
    present = np.unique(labels[labels >= 0])
    return np.array([np.sum(labels[positions] == c) for c in present])


sizes = st.fixed_dictionaries(
    {},
    optional={
        "queries": st.integers(1, 12),
        "train": st.integers(0, 20),
        "validation_queries": st.integers(1, 8),
        "validation_database": st.integers(1, 12),
    },
)


@given(st.sampled_from(["standard", "improved"]), labellings, sizes, st.integers(0, 3))
def test_sets_are_disjoint_and_balanced_or_refused(name, labels, asked, run):
    made = dataset(labels=labels)
    try:
        split = make_split(name, made, run=run, **asked)
    except InputError:
        return
    assert_disjoint_exactly_where_promised(split)
    assert {inner for inner, _ in split.parts} == PARTS[name]
    for what, n in asked.items():
        assert len(getattr(split, what)) == n
    if (labels >= 0).any():
        for what in SETS[:4]:
            counts = counts_by_class(labels, getattr(split, what))
            assert np.ptp(counts) <= 1
    again = make_split(name, made, run=run, **asked)
    assert again.fingerprint == split.fingerprint


@given(taggings, st.integers(1, 3), st.integers(0, 5), st.integers(1, 12))
def test_nuswide_takes_its_labels_only(tags, per_label, run, n_labels):
    made = dataset(tags=scipy.sparse.csr_array(tags))
    asked = {"n_labels": n_labels, "queries_per_label": per_label, "train_per_label": 1}
    try:
        split = make_split("nuswide-21", made, run=run, **asked)
    except InputError:
        return
    assert_disjoint_exactly_where_promised(split)
    assert len(split.queries) == per_label * n_labels
    assert len(split.train) == n_labels
    frequent = np.argsort(-tags.sum(axis=0), kind="stable")[:n_labels]
    has_one = np.flatnonzero(tags[:, frequent].any(axis=1))
    used = np.union1d(split.queries, split.database)
    np.testing.assert_array_equal(used, has_one)
    assert (tags[split.queries][:, frequent].sum(axis=0) >= per_label).all()


@given(st.lists(st.integers(0, 3), min_size=8, max_size=200), st.integers(0, 5))
@settings(max_examples=50)
def test_corel_and_trecvid_share_out_every_group(labels, run):
    labels = np.array(labels)
    made = dataset(labels=labels, tags=np.eye(4, dtype=bool)[labels])
    for name, more in (("corel", {"per_size": 1, "sizes": (1,)}), ("trecvid", {})):
        try:
            split = make_split(name, made, run=run, **more)
        except InputError:
            continue
        assert_disjoint_exactly_where_promised(split)
        counts = {what: counts_by_class(labels, getattr(split, what)) for what in SETS}
        size = sum(counts[what] for what in SETS[1:])
        np.testing.assert_array_equal(size, np.unique(labels, return_counts=True)[1])
        pool = counts["validation_queries"] + counts["queries"]
        assert (np.abs(pool - size / 4) < 1).all()
        assert (np.abs(counts["queries"] - counts["validation_queries"]) <= 1).all()
        assert (np.abs(counts["database"] - counts["validation_database"]) <= 1).all()
        assert (np.abs(counts["train"] - size / 2) <= 1).all()


LABELLED = dataset(
    labels=classes(10, 130),
    tags=np.concatenate([multi_hot(650)] * 2),
    official={"train": np.arange(1000), "test": np.arange(1000, 1300)},
)
SMALL = {
    "standard": {},
    "improved": {},
    "cifar-s1": {"queries_per_class": 10, "train_per_class": 50},
    "cifar-s2": {"queries_per_class": 20},
    "nuswide-21": {"n_labels": 6, "queries_per_label": 10, "train_per_label": 20},
    "labelme-20k": {"queries": 200, "train": 500},
    "corel": {},
    "trecvid": {},
    "official": {},
}


@pytest.mark.parametrize("name", SPLITS)
def test_every_split_keeps_its_promises(name, tmp_path):
    split = make_split(name, LABELLED, **SMALL[name])
    assert split.name == name
    assert split.n_items == 1300
    assert_disjoint_exactly_where_promised(split)
    again = make_split(name, LABELLED, **SMALL[name])
    assert again.fingerprint == split.fingerprint
    assert not split.queries.flags.writeable
    split.save(tmp_path / "split.npz")
    read = Split.load(tmp_path / "split.npz")
    assert type(read) is type(split)
    assert str(read) == str(split)
    assert read.fingerprint == split.fingerprint
    assert split.fingerprint in repr(split)


@pytest.mark.parametrize("name", [name for name in SPLITS if name != "official"])
def test_ten_runs_are_ten_different_splits(name):
    runs = ten_runs(name, LABELLED, 3, **SMALL[name])
    assert len({split.fingerprint for split in runs}) == 10
    assert len({tuple(split.queries.tolist()) for split in runs}) == 10
    assert [split.run for split in runs] == list(range(10))
    assert {split.random_state for split in runs} == {3}
    other = make_split(name, LABELLED, random_state=4, **SMALL[name])
    assert other.fingerprint not in {split.fingerprint for split in runs}


def test_splits_are_the_same_on_every_machine():
    # Written down once; a change here is a change of every published number.
    split = make_split("standard", dataset(labels=classes(10, 100)), random_state=7, run=2)
    assert split.queries[:6].tolist() == GOLDEN_QUERIES
    assert split.train[:6].tolist() == GOLDEN_TRAIN
    assert split.fingerprint == GOLDEN_FINGERPRINT


GOLDEN_QUERIES = [5, 15, 16, 38, 57, 61]
GOLDEN_TRAIN = [4, 7, 10, 24, 28, 32]
GOLDEN_FINGERPRINT = "a8f483c5a82b"


def test_improved_is_standard_with_an_unseen_database():
    seen, unseen = (make_split(name, LABELLED, run=3) for name in ("standard", "improved"))
    for name in ("queries", "train", "validation_queries", "validation_database"):
        np.testing.assert_array_equal(getattr(seen, name), getattr(unseen, name))
    used = np.concatenate([unseen.train, unseen.validation_queries, unseen.validation_database])
    np.testing.assert_array_equal(np.setdiff1d(seen.database, used), unseen.database)
    assert unseen.overlaps == "all sets are disjoint"
    assert "train is part of database" in seen.overlaps


def test_the_papers_sizes():
    cifar = dataset(
        labels=np.repeat(np.arange(10), 6000),
        official={"train": np.arange(50_000), "test": np.arange(50_000, 60_000)},
    )
    s1 = make_split("cifar-s1", cifar)
    assert [len(p) for p in (s1.queries, s1.database, s1.train)] == [1_000, 59_000, 5_000]
    assert counts_by_class(cifar.labels, s1.queries).tolist() == [100] * 10
    assert counts_by_class(cifar.labels, s1.train).tolist() == [500] * 10
    s2 = make_split("cifar-s2", cifar)
    assert [len(p) for p in (s2.queries, s2.database, s2.train)] == [10_000, 50_000, 50_000]
    assert s2.queries[0] == 50_000
    labelme = make_split("labelme-20k", dataset(22_019))
    assert [len(p) for p in (labelme.queries, labelme.database)] == [2_000, 20_019]
    assert len(labelme.train) == 5_000
    standard = make_split("standard", cifar)
    assert {name: len(p) for name, p in standard.sets.items()} == {
        "train": 10_000,
        "validation_queries": 1_000,
        "validation_database": 10_000,
        "queries": 1_000,
        "database": 59_000,
    }


def test_validation_of_cifar_s2_leaves_training_but_not_the_database():
    split = make_split("cifar-s2", LABELLED, validation_queries=50, validation_database=100)
    assert [len(p) for p in split.sets.values()] == [850, 50, 100, 300, 1000]
    assert_disjoint_exactly_where_promised(split)
    assert split.random_state == 0  # the validation sets are random


def test_balance_can_be_turned_off():
    labels = np.array([0] * 990 + [1] * 10)
    split = make_split("standard", dataset(labels=labels), balanced=False)
    assert len(split.queries) == 100
    assert split.balanced_by == "nothing (plain random)"
    with pytest.raises(InputError, match=r"but 1 of 2 classes have fewer: 'class 1' 10; ask"):
        make_split("standard", dataset(labels=labels))


def test_items_without_a_class_are_only_ranked():
    labels = np.concatenate([classes(4, 50), np.full(40, -1)])
    split = make_split("standard", dataset(labels=labels))
    assert (labels[split.queries] >= 0).all()
    assert (labels[split.train] >= 0).all()
    assert np.sum(labels[split.database] == -1) == 40


def test_a_given_test_database_is_balanced_too():
    labels = np.concatenate([classes(5, 60), np.full(100, 4)])
    split = make_split("improved", dataset(labels=labels), queries=10, database=101, train=50)
    assert len(split.database) == 101
    assert np.ptp(counts_by_class(labels, split.database)) == 1
    assert "in no set" in str(split)


# Corel and TRECVID


def test_corel_queries_have_the_stated_shape():
    # 63 categories × 6 sizes × 10 draws = 3,780 queries of each collection, as the paper counts.
    made = dataset(labels=classes(63, 90))
    split = make_split("corel", made)
    for queries, pool in (
        (split.training_queries, split.validation_queries),
        (split.test_queries, split.queries),
    ):
        assert queries.images.shape == (3780, 6)
        assert len(queries) == 3780
        assert queries.sizes.reshape(63, 6, 10)[:, :, 0].tolist() == [[1, 2, 3, 4, 5, 6]] * 63
        np.testing.assert_array_equal(queries.categories, np.repeat(np.arange(63), 60))
        asked = queries.images[queries.images >= 0]
        assert np.isin(asked, pool).all()
        np.testing.assert_array_equal(
            made.labels[asked], np.repeat(queries.categories, queries.sizes)
        )
        for n in range(1, 7):
            some = queries.of_size(n)
            assert some.images.shape == (630, n)
            assert (np.diff(some.images, axis=1) > 0).all()  # ascending, so distinct
            for ten in some.images.reshape(63, 10, n):
                assert len(np.unique(ten, axis=0)) == 10
    assert split.overlaps == (
        "validation_queries is part of train; validation_database is part of train; "
        "all other sets are disjoint"
    )


def test_corel_halves_are_equal():
    split = make_split("corel", dataset(labels=classes(50, 100)))
    assert [len(p) for p in split.sets.values()] == [2500, 625, 1875, 625, 1875]


def test_corel_refuses_queries_from_elsewhere():
    split = make_split("corel", dataset(labels=classes(2, 100)))
    fields = {name: getattr(split, name) for name in ("name", "n_items", "parts", *SETS)}
    images = split.test_images.copy()
    images[3, 0] = split.database[0]
    with pytest.raises(InputError, match=r"test_images must come from the query images"):
        type(split)(
            **fields,
            training_images=split.training_images,
            training_categories=split.training_categories,
            test_images=images,
            test_categories=split.test_categories,
        )


def test_trecvid_leaves_each_topic_out_once():
    tags = np.zeros((200, 25), dtype=bool)
    for topic in range(25):
        tags[topic::40, topic] = True
    split = make_split("trecvid", dataset(tags=scipy.sparse.csr_array(tags)))
    folds = list(split.folds())
    assert [held_out for held_out, _ in folds] == list(split.topics)
    assert all(len(others) == 24 and held_out not in others for held_out, others in folds)
    for side in (split.validation_database, split.database):
        assert tags[side].any(axis=0).all()
    fewer = make_split("trecvid", dataset(tags=tags), topics=["tag 3", "tag 7"])
    assert fewer.topics == ("tag 3", "tag 7")


# The publisher's own


def test_official_test_set_asks_the_training_set():
    split = make_split("official", LABELLED)
    np.testing.assert_array_equal(split.queries, np.arange(1000, 1300))
    np.testing.assert_array_equal(split.database, split.train)
    assert split.overlaps == "train is the same as database; all other sets are disjoint"
    assert split.random_state is None


def test_official_sets_of_sift():
    official = {"database": np.arange(80), "train": np.arange(80, 95), "query": np.arange(95, 100)}
    split = make_split("official", dataset(100, official=official))
    assert split.overlaps == "all sets are disjoint"
    del official["train"]
    split = make_split("official", dataset(100, official=official))
    assert split.overlaps == "train is the same as database; all other sets are disjoint"


def test_official_validation_queries_ask_the_training_set():
    official = {
        "train": np.arange(80),
        "validation_queries": np.arange(80, 90),
        "test": np.arange(90, 100),
    }
    split = make_split("official", dataset(100, official=official))
    np.testing.assert_array_equal(split.validation_database, np.arange(80))
    assert ("validation_queries", "queries") in split.disjoint_pairs
    assert ("train", "validation_queries") in split.disjoint_pairs


# Refusals


NO_LABELS = dataset(1000)
TWO = dataset(labels=[0] * 590 + [1] * 10)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: make_split("cifar-s1", NO_LABELS),
            r"cifar-s1: needs class labels, but made has none",
        ),
        (
            lambda: make_split("cifar-s1", TWO),
            r"cifar-s1: queries: 200 items over 2 classes need 100 of class 'class 1', but 10 are",
        ),
        (lambda: make_split("cifar-s2", NO_LABELS), r"publisher's test and training sets, made"),
        (lambda: make_split("nuswide-21", NO_LABELS), r"nuswide-21: needs tags, but made has none"),
        (
            lambda: make_split("nuswide-21", LABELLED),
            r"nuswide-21: needs 21 labels, made uses 12; pass n_labels=",
        ),
        (
            lambda: make_split("labelme-20k", NO_LABELS),
            r"labelme-20k: queries: 2,000 items asked for, but only 1,000 are available",
        ),
        (
            lambda: make_split("labelme-20k", NO_LABELS, queries=100),
            r"labelme-20k: train: 5,000 items asked for, but only 900 are available",
        ),
        (lambda: make_split("standard", dataset(9)), r"standard: 9 items are too few for queries"),
        (lambda: make_split("standard", NO_LABELS, queries=0), r"queries must be at least 1, got"),
        (lambda: make_split("standard", NO_LABELS, train=-1), r"train must be at least 0, got -1"),
        (lambda: make_split("standard", NO_LABELS, train=2.5), r"must be a whole number"),
        (
            lambda: make_split("standard", NO_LABELS, validation_queries=0),
            r"queries and a database or neither, got 0 and 200",
        ),
        (
            lambda: make_split("improved", NO_LABELS, train=600),
            r"no item of 1,000 is left for the database after queries 100, train 600",
        ),
        (lambda: make_split("corel", NO_LABELS), r"corel: needs categories as class labels"),
        (
            lambda: make_split("corel", dataset(labels=classes(3, 30))),
            r"10 different queries of 1 image cannot be drawn from 4 query images .* \(30 in",
        ),
        (lambda: make_split("corel", LABELLED, sizes=()), r"sizes must be different numbers"),
        (lambda: make_split("trecvid", NO_LABELS), r"trecvid: needs tags"),
        (
            lambda: make_split("trecvid", dataset(tags=np.eye(8, 2, dtype=bool))),
            r"topic 'tag 0' has 1 relevant items, none of them in (validation_)?database",
        ),
        (
            lambda: make_split("trecvid", LABELLED, topics=["tag 3"]),
            r"at least two different topics to leave one out, got \['tag 3'\]",
        ),
        (lambda: make_split("official", NO_LABELS), r"made names nothing"),
        (
            lambda: make_split("official", dataset(9, official={"extra": np.arange(3)})),
            r"sets are called train, .*, made names extra",
        ),
        (lambda: ten_runs("official", LABELLED), r"official has no random part"),
        (
            lambda: make_split("standard", NO_LABELS, quieries=5),
            r"no argument of standard is called 'quieries'; did you mean 'queries'",
        ),
        (lambda: make_split("standard", NO_LABELS, run=-1), r"run must be at least 0"),
    ],
)
def test_a_split_that_cannot_be_made_says_so_with_the_numbers(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_unknown_names():
    with pytest.raises(UnknownNameError, match=r"no split is called 'improvd'; did you mean"):
        make_split("improvd", NO_LABELS)
    with pytest.raises(UnknownNameError, match=r"no topic is called 'tag 99'"):
        make_split("trecvid", LABELLED, topics=["tag 99", "tag 1"])


# The record itself


def split_of(**sets):
    return Split(name="mine", n_items=10, **{"queries": [0], "database": [1, 2], **sets})


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"queries": []}, r"mine: queries must not be empty; of 10 items: train 0"),
        (
            {"train": [2, 2]},
            r"mine: train must be distinct positions, got 2 of which 1 are distinct",
        ),
        ({"train": [10]}, r"mine: train must lie in \[0, 10\), got 10"),
        ({"train": [0.5]}, r"mine: train must be a 1-D array of whole numbers"),
        (
            {"train": [2]},
            r"mine: train and database must be disjoint, but share 1 items, the first",
        ),
        (
            {"train": [3], "parts": (("train", "database"),)},
            r"mine: train must be inside database, but 1 items are not, the first at position 3",
        ),
        ({"parts": (("train", "gallery"),)}, r"parts are pairs of"),
        ({"validation_queries": [4]}, r"queries and a database or neither, got 1 and 0"),
    ],
)
def test_a_wrong_split_is_never_born(sets, says):
    with pytest.raises(InputError, match=says):
        split_of(**sets)


def test_a_split_of_your_own():
    split = split_of(train=[5, 2, 1], database=[8, 5, 2, 1], parts=(("train", "database"),))
    assert split.train.tolist() == [1, 2, 5]
    assert split.database.dtype == np.intp
    assert split.disjoint_pairs == (("train", "queries"), ("queries", "database"))
    assert str(split).splitlines() == [
        f"mine: 10 items, {split.fingerprint}",
        "  train                3",
        "  validation_queries   0",
        "  validation_database  0",
        "  queries              1",
        "  database             4",
        "  in no set            5",
        "  train is part of database; all other sets are disjoint; balanced by nothing",
    ]


def test_a_fingerprint_tells_positions_and_promises_apart():
    known = {
        split_of().fingerprint,
        split_of(train=[5]).fingerprint,
        split_of(validation_queries=[5], validation_database=[6]).fingerprint,
        split_of(train=[1], parts=(("train", "database"),)).fingerprint,
        split_of(queries=[3]).fingerprint,
    }
    assert len(known) == 5
    renamed = Split(name="other", n_items=10, queries=[0], database=[2, 1], random_state=4, run=1)
    assert renamed.fingerprint in known


def test_damaged_files_are_refused_by_name(tmp_path):
    path = tmp_path / "split.npz"
    split_of().save(path)
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(
            FileError, match=r"split\.npz: not a readable (split|\.npy or \.npz file|\.npz file)"
        ):
            Split.load(path)
    for i in range(0, len(whole), 7):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :])
        try:
            read = Split.load(path)
        except FileError as refusal:
            assert "split.npz" in str(refusal)
        else:  # a date or a flag of the archive
            assert read.fingerprint == split_of().fingerprint
    np.savez(path, words=np.eye(3))
    with pytest.raises(FileError, match=r"split\.npz: not a readable split"):
        Split.load(path)
    with pytest.raises(InputError, match=r"save a split as \.npz"):
        split_of().save(tmp_path / "split.json")


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "split.npz"
    split_of().save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, "database": np.array([1, 3])})
    with pytest.raises(FileError, match=rf"but states {split_of().fingerprint}"):
        Split.load(path)


# Classes of very different sizes, as in Caltech-101.

LONG_TAIL = [800, 435, 200, 130, 90, 60, 50, 42, 35, 33, 31]


def long_tailed():
    return dataset(labels=np.repeat(np.arange(len(LONG_TAIL)), LONG_TAIL))


@pytest.mark.parametrize("name", ["standard", "improved"])
def test_classes_that_are_too_small_are_named_with_what_helps(name):
    data = long_tailed()
    sizes = {"queries": 220, "train": 330, "validation_queries": 0, "validation_database": 0}
    with pytest.raises(InputError) as error:
        make_split(name, data, **sizes)
    assert str(error.value) == (
        f"{name}: balanced sets of these sizes take 50 items of each class, but 4 of 11 classes "
        "have fewer: 'class 10' 31, 'class 9' 33, 'class 8' 35, 'class 7' 42; ask for fewer items, "
        "leave out small classes (min_per_class=200 keeps 3 of 11), or draw without regard to "
        "classes: balanced=false."
    )
    found = make_split(name, data, **sizes, min_per_class=200)  # as it says
    counts = np.bincount(data.labels[found.queries], minlength=11)
    assert counts.tolist() == [74, 73, 73] + [0] * 8
    every = np.concatenate([*found.sets.values()])
    assert set(data.labels[every]) == {0, 1, 2}
    assert found.balanced_by == "class; 8 classes of fewer than 200 items are left out"
    at_random = make_split(name, data, **sizes, balanced=False)
    assert len(np.unique(data.labels[at_random.database])) == 11


def test_sizes_that_no_class_but_the_largest_could_give_need_another_way():
    data = dataset(labels=np.repeat([0, 1, 2], [6, 2, 2]))
    with pytest.raises(InputError, match="ask for fewer items, or draw without regard to classes"):
        make_split("standard", data, queries=6, train=4, validation_queries=0,
                   validation_database=0)  # fmt: skip


def test_min_per_class_leaves_items_without_a_class_alone():
    labels = np.repeat([0, 1, -1], [20, 5, 10])
    found = make_split("standard", dataset(labels=labels), queries=4, train=4,
                       validation_queries=0, validation_database=0, min_per_class=6)  # fmt: skip
    assert (labels[found.database] == -1).sum() == 10 and (labels[found.database] == 0).sum() == 16
    assert not (labels[np.concatenate([*found.sets.values()])] == 1).any()


@pytest.mark.parametrize(
    ("labels", "least", "says"),
    [
        ([0, 0, 1, 1], 3, "no class has min_per_class = 3 items"),
        ([0, 0, 1, 1], 0, "min_per_class must be"),
        (None, 2, "min_per_class is for datasets with classes"),
    ],
)
def test_a_min_per_class_that_makes_no_sense_is_refused(labels, least, says):
    with pytest.raises(InputError, match=f"standard: {says}"):
        make_split("standard", dataset(n=4, labels=labels), min_per_class=least, queries=1)
