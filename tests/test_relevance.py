import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from truth import assert_is, random_tags

from bittern import InputError, Relevance


def same_label(query_labels, database_labels):
    """Compared pair by pair, in Python."""
    return [[int(a == b) for b in database_labels] for a in query_labels]


def shared(query_tags, database_tags, graded):
    counts = np.asarray(query_tags, int) @ np.asarray(database_tags, int).T
    return counts if graded else (counts > 0).astype(int)


@pytest.mark.parametrize(
    ("query_labels", "database_labels"),
    [
        ([0, 1, 2], [2, 1, 1, 0]),
        ([5, -3, 5], [5, 5, 7, -3]),
        ([9], [1, 2]),  # unseen
        ([1], [0, 2]),  # unseen, between two that are there
        ([0, 3], [1, 2]),  # unseen, below and above
        (["cat", "dog", "cow"], ["dog", "cat", "cat", "emu"]),
        (["cat", "catfish", "ca"], ["catfish", "cat"]),  # of several widths
        (["é", "日本"], ["日本", "é", "e"]),
        ([True, False], [False, False, True]),
        ([1.0, 2.0], [2.0, 1.0, 3.0]),
        ([10**12, 3], [3, 10**12, 4]),
        ([0, 70_000, 140_000], [140_000, 0, 70_001]),
        ([-(2**63), 2**63 - 1, 0], [2**63 - 1, -(2**63), 1]),
        ([2**63 - 1, -(2**63)], [2**63 - 2, 2**63 - 1]),
        ([-(2**63), 2**63 - 1], [-(2**63), -(2**63) + 1]),
        ([1, 1, 1], [1]),
    ],
    ids=repr,
)
def test_same_class_is_relevant(query_labels, database_labels):
    relevance = Relevance.from_classes(query_labels, database_labels)
    assert_is(relevance, same_label(query_labels, database_labels))


def extreme_labels(dtype):
    """The least and the largest labels of a type, and some between."""
    if dtype is bool:
        return np.array([False, True])
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, info.max - 1], dtype)


@pytest.mark.parametrize("dtype", [bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_labels_of_any_two_integer_types_are_compared_by_value(dtype):
    queries = extreme_labels(dtype)
    for other in [bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]:
        database = extreme_labels(other)
        for labels in (database, database[:1], database[1:2], database[-2:]):
            relevance = Relevance.from_classes(queries, labels)
            assert_is(relevance, same_label(queries.tolist(), labels.tolist()))


def test_labels_beyond_the_integers_of_a_double_stay_apart():
    queries, database = np.array([2**53 + 1], np.uint64), np.array([2**53, 2**53 + 1, 2**60])
    assert_is(Relevance.from_classes(queries, database), [[0, 1, 0]])


def test_labels_as_bytes_are_text():
    relevance = Relevance.from_classes(np.array([b"cat", b"dog"]), ["dog", "cat", "emu"])
    assert_is(relevance, [[0, 1, 0], [1, 0, 0]])


def test_labels_as_python_objects():
    words = np.array(["cat", "dog"], object)
    assert_is(Relevance.from_classes(words, ["dog", "cat"]), [[0, 1], [1, 0]])
    numbers = np.array([1, np.int64(2)], object)
    assert_is(Relevance.from_classes(numbers, [2, 1]), [[0, 1], [1, 0]])


def test_no_labels_are_no_queries():
    assert_is(Relevance.from_classes([], [1, 2]), np.zeros((0, 2), int))
    assert_is(Relevance.from_classes([1, 2], []), np.zeros((2, 0), int))


@pytest.mark.parametrize(
    "labels",
    [
        [1, "1"],
        np.array([1, "1"], object),
        [1, None],
        [1.5, 2],
        [np.nan, 1],
        [1e300, 1e301],
        [2**70, 1],
        [b"\xff", b"a"],
        [1j, 2],
        [[1], [2]],
        3,
    ],
    ids=repr,
)
def test_labels_that_cannot_be_compared_are_refused(labels):
    for arguments in ((labels, [1, 2]), ([1, 2], labels)):
        with pytest.raises(InputError, match=r"^Relevance: (query|database)_labels must be"):
            Relevance.from_classes(*arguments)


def test_labels_of_two_kinds_are_refused():
    with pytest.raises(InputError, match="must both be strings or both integers"):
        Relevance.from_classes(["1", "2"], [1, 2])


@given(
    st.lists(st.integers(-3, 3), max_size=6),
    st.lists(st.integers(-3, 3), max_size=9),
    st.sampled_from([1, 40_000, 2**61]),
)
@settings(deadline=None)
def test_any_labels_are_compared_pair_by_pair(queries, database, scale):
    queries, database = [scale * label for label in queries], [scale * label for label in database]
    if queries and database:
        relevance = Relevance.from_classes(queries, database)
        assert_is(relevance, same_label(queries, database))


def test_many_classes():
    # More than 16 bits number them.
    labels = np.random.default_rng(0).permutation(70_000) * 3
    relevance = Relevance.from_classes(labels[:5], labels)
    assert relevance.n_relevant.tolist() == [1] * 5
    assert relevance.block(slice(0, 5)).argmax(axis=1).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("n_tags", [1, 2, 63, 64, 65, 81, 128, 200])
def test_a_shared_tag_is_relevant(n_tags, graded):
    queries, database = random_tags(7, n_tags, 1), random_tags(20, n_tags, 2)
    queries[2], database[3] = True, True  # something is shared, whatever the seed
    relevance = Relevance.from_tags(queries, database, graded=graded)
    expected = shared(queries, database, graded)
    assert_is(relevance, expected)
    assert expected.any()
    assert not expected.all()


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "lil_array", "csr_matrix"])
@pytest.mark.parametrize("dtype", [bool, int, float])
def test_sparse_tags_are_dense_tags(kind, dtype, graded):
    queries, database = random_tags(7, 100, 1), random_tags(20, 100, 2)
    make = getattr(scipy.sparse, kind)
    relevance = Relevance.from_tags(
        make(queries.astype(dtype)), make(database.astype(dtype)), graded=graded
    )
    assert_is(relevance, shared(queries, database, graded))


def test_dense_tags_may_meet_sparse_ones():
    queries, database = random_tags(7, 70, 1), random_tags(20, 70, 2)
    relevance = Relevance.from_tags(queries.tolist(), scipy.sparse.csr_array(database), graded=True)
    assert_is(relevance, shared(queries, database, True))


def test_zeros_stored_in_sparse_tags_are_zeros():
    stored = [0, 1, 1, 0, 0], ([0, 0, 1, 1, 2], [0, 1, 2, 1, 0])
    tags = scipy.sparse.csr_array(stored, shape=(3, 3))
    assert tags.nnz == 5
    assert_is(Relevance.from_tags(tags, np.eye(3)), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_a_tag_named_twice_in_a_sparse_row_is_one_tag():
    tags = scipy.sparse.csr_array(
        (np.array([True, True]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3)
    )
    assert_is(Relevance.from_tags(tags, np.eye(3), graded=True), [[0, 1, 0]])


@pytest.mark.parametrize("graded", [False, True])
def test_no_tags_at_all_are_nothing_relevant(graded):
    nothing = np.zeros((3, 5), bool)
    relevance = Relevance.from_tags(nothing, nothing, graded=graded)
    assert_is(relevance, np.zeros((3, 3), int))
    relevance = Relevance.from_tags(nothing, np.ones((4, 5), bool), graded=graded)
    assert_is(relevance, np.zeros((3, 4), int))


def test_no_rows_of_tags():
    assert_is(Relevance.from_tags(np.zeros((0, 3)), np.eye(3)), np.zeros((0, 3), int))
    assert_is(Relevance.from_tags(np.eye(3), np.zeros((0, 3)), graded=True), np.zeros((3, 0), int))


@pytest.mark.parametrize("bad", [-1, 2, 0.5, np.nan])
@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_tags_other_than_0_and_1_are_refused(bad, make):
    good = np.eye(3)
    spoiled = make([[0.0, bad, 1.0]])
    with pytest.raises(InputError, match="query_tags must be booleans or 0/1"):
        Relevance.from_tags(spoiled, good)
    with pytest.raises(InputError, match="database_tags must be booleans or 0/1"):
        Relevance.from_tags(good, spoiled)


GAINS = np.array([[0, 1, 3, 0, 7], [0, 0, 0, 0, 0], [900, 1, 1, 0, 1]])


@pytest.mark.parametrize(
    "matrix",
    [
        GAINS,
        GAINS.tolist(),
        GAINS.astype(float),
        GAINS.astype(np.uint16),
        GAINS.astype(np.uint64),
        np.asfortranarray(GAINS),
        scipy.sparse.csr_array(GAINS),
        scipy.sparse.csc_matrix(GAINS.astype(float)),
        scipy.sparse.coo_array(GAINS.astype(np.float32)),
        scipy.sparse.lil_array(GAINS),
        scipy.sparse.dok_array(GAINS),
    ],
    ids=lambda matrix: type(matrix).__name__,
)
def test_a_matrix_of_gains_dense_or_sparse(matrix):
    relevance = Relevance.from_matrix(matrix)
    assert relevance.gains.tolist() == [0, 1, 3, 7, 900]
    assert_is(relevance, GAINS)


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_matrix_of_booleans_is_yes_or_no(make):
    truth = np.array([[True, False], [False, False]])
    assert_is(Relevance.from_matrix(make(truth)), truth.astype(int))


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_a_matrix_of_zeros_is_nothing_relevant(shape):
    assert_is(Relevance.from_matrix(np.zeros(shape)), np.zeros(shape, int))


def test_entries_given_twice_are_summed():
    matrix = scipy.sparse.coo_array(([2, 3, 1], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert_is(Relevance.from_matrix(matrix), [[0, 5], [1, 0]])


def test_the_sum_of_entries_given_twice_does_not_overflow_their_type():
    gains = np.array([200, 100], np.uint8)
    matrix = scipy.sparse.coo_array((gains, ([0, 0], [0, 0])), shape=(1, 1))
    assert_is(Relevance.from_matrix(matrix), [[300]])


def test_sparse_entries_may_come_in_any_order():
    matrix = scipy.sparse.csr_array(
        (np.array([7, 5, 6]), np.array([3, 0, 2]), np.array([0, 3])), shape=(1, 4)
    )
    assert_is(Relevance.from_matrix(matrix), [[5, 0, 6, 7]])
    assert matrix.indices.tolist() == [3, 0, 2]  # the caller's matrix is as it was


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("gain", [-1, 0.5, np.nan, np.inf, 1001])
def test_gains_that_are_no_levels_are_refused(gain, make):
    with pytest.raises(InputError, match="Relevance: gains must be"):
        Relevance.from_matrix(make([[0, gain], [1, 0]]))
