"""Profiles from codes against counting by hand; taking, comparing, progress."""

import time

import numpy as np
import pytest
from by_hand import (
    EXCLUDED,
    GROUND_TRUTHS,
    N_DATABASE,
    N_QUERIES,
    assert_identical,
    counts_of,
    distances_for,
    hamming,
    random_codes,
    random_gains,
    slow_counts,
)

from bittern import Codes, Relevance, TieProfile
from bittern.profile import counting


@pytest.fixture(params=GROUND_TRUTHS)
def truth(request):
    return GROUND_TRUTHS[request.param]()


def test_worked_example():
    # Distances of 000 to 000, 001, 011, 110: 0, 1, 2, 2; the first and the last are of its class.
    queries, database = (
        Codes.from_bits([[0, 0, 0]]),
        Codes.from_bits([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 0]]),
    )
    profile = TieProfile.from_codes(queries, database, Relevance.from_classes([7], [7, 1, 1, 7]))
    assert profile.total.tolist() == [[1, 1, 2, 0]]
    assert profile.relevant.tolist() == [[1, 0, 1, 0]]
    assert profile.n_relevant.tolist() == [2]
    assert profile.counts[0].tolist() == [[0, 1], [1, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("n_bits", [1, 12, 64, 65, 130])
def test_counts_from_codes_are_those_counted_by_hand(truth, n_bits):
    queries, database = random_codes(n_bits)
    profile = TieProfile.from_codes(queries, database, truth)
    assert profile.counts.shape == (N_QUERIES, n_bits + 1, truth.n_levels)
    assert counts_of(profile) == slow_counts(hamming(queries, database), truth)
    assert (profile.total.sum(axis=1) == N_DATABASE).all()
    assert profile.n_relevant.tolist() == truth.n_relevant.tolist()
    assert not profile.unretrieved.any()


@pytest.mark.parametrize("n_bits", [12, 64, 130])
def test_leaving_one_out_is_counting_without_it(truth, n_bits):
    truth = truth.excluding(EXCLUDED)
    queries, database = random_codes(n_bits)
    profile = TieProfile.from_codes(queries, database, truth)
    assert counts_of(profile) == slow_counts(hamming(queries, database), truth)
    assert (profile.total.sum(axis=1) == N_DATABASE - (EXCLUDED >= 0)).all()
    assert profile.n_relevant.tolist() == truth.n_relevant.tolist()


def test_leaving_every_query_out_of_its_own_ranking():
    codes = random_codes(12)[1]
    labels = np.arange(N_DATABASE) % 4
    truth = Relevance.from_classes(labels, labels).excluding(np.arange(N_DATABASE))
    profile = TieProfile.from_codes(codes, codes, truth)
    assert counts_of(profile) == slow_counts(hamming(codes, codes), truth)
    sizes = np.bincount(labels)
    assert profile.n_relevant.tolist() == (sizes[labels] - 1).tolist()


@pytest.mark.parametrize("n_bits", [64, 130])
@pytest.mark.parametrize("many", [{"FEW": 0}, {}, {"FEW_CLASSES": 1}], ids=repr)
@pytest.mark.parametrize("excluded", [False, True])
def test_counting_in_small_parts_changes_nothing(truth, monkeypatch, excluded, many, n_bits):
    truth = truth.excluding(EXCLUDED) if excluded else truth
    queries, database = random_codes(n_bits)
    whole = TieProfile.from_codes(queries, database, truth)
    for name, size in {"PART": 7, "LARGEST_PART": 5, "WORDS": 20, **many}.items():
        monkeypatch.setattr(counting, name, size)
    assert_identical(TieProfile.from_codes(queries, database, truth), whole)


@pytest.mark.parametrize("n_bits", [64, 130])
def test_one_thread_counts_as_many_do(truth, n_bits):
    queries, database = random_codes(n_bits)
    one = TieProfile.from_codes(queries, database, truth, n_threads=1)
    for n_threads in (2, 7):
        many = TieProfile.from_codes(queries, database, truth, n_threads=n_threads)
        assert_identical(many, one)
        assert many.counts.tobytes() == one.counts.tobytes()


@pytest.mark.parametrize("n_bits", [12, 64, 130])
def test_the_order_of_the_database_does_not_matter(n_bits):
    queries, database = random_codes(n_bits)
    gains = random_gains()
    order = np.random.default_rng(0).permutation(N_DATABASE)
    a = TieProfile.from_codes(queries, database, Relevance.from_matrix(gains))
    b = TieProfile.from_codes(queries, database[order], Relevance.from_matrix(gains[:, order]))
    assert_identical(a, b)
    labels = np.arange(N_DATABASE) % 5
    a = TieProfile.from_codes(queries, database, Relevance.from_classes(labels[:9], labels))
    b = TieProfile.from_codes(
        queries, database[order], Relevance.from_classes(labels[:9], labels[order])
    )
    assert_identical(a, b)


def test_codes_mapped_into_memory_count_as_codes_read(tmp_path, truth):
    queries, database = random_codes(64)
    whole = TieProfile.from_codes(queries, database, truth)
    for ending in ("npz", "npy"):
        database.save(tmp_path / f"d.{ending}")
        queries.save(tmp_path / f"q.{ending}")
        mapped = [Codes.load(tmp_path / f"{name}.{ending}", mmap=True) for name in "qd"]
        assert_identical(TieProfile.from_codes(*mapped, truth), whole)


@pytest.mark.parametrize(
    "queries", [slice(2, 5), [8, 0, 0], [], np.arange(N_QUERIES) % 2 == 0], ids=repr
)
@pytest.mark.parametrize("kind", ["whole numbers", "real"])
def test_taking_queries_takes_rows(queries, kind):
    distances, truth = distances_for(kind, 4), GROUND_TRUTHS["matrix"]()
    profile = TieProfile.from_distances(distances, truth).take(queries)
    assert counts_of(profile) == slow_counts(distances[queries], truth.take(queries))


def test_profiles_that_differ_are_not_equal():
    truth = Relevance.from_matrix([[0, 1, 1]])
    profile = TieProfile.from_distances([[0, 1, 2]], truth)
    assert profile != TieProfile.from_distances([[0, 1, 3]], truth)
    assert profile != TieProfile.from_distances([[1, 0, 2]], truth)
    assert profile != TieProfile.from_distances([[0, 1, 2]], Relevance.from_matrix([[0, 1, 2]]))
    assert profile != TieProfile.from_hits([[0, 1]], [[0, 1]], truth)
    one, other = (Relevance.from_matrix([[0, gain, 1]]) for gain in (0, 1))
    a, b = (TieProfile.from_hits([[0, 2]], [[0, 1]], t) for t in (one, other))
    assert a.counts.tolist() == b.counts.tolist()
    assert a != b  # only what was not retrieved differs
    assert profile != profile.take([0, 0])
    assert profile != "profile"
    with pytest.raises(TypeError, match="unhashable"):
        hash(profile)


def test_empty_columns_do_not_matter_to_equality():
    truth = Relevance.from_matrix([[0, 1]])
    queries, database = Codes.from_bits([[0, 0]]), Codes.from_bits([[0, 1], [0, 0]])
    wide = TieProfile.from_codes(queries, database, truth)
    narrow = TieProfile.from_distances([[1, 0]], truth)
    assert wide.counts.shape[1] == 3
    assert narrow.counts.shape[1] == 2
    assert wide == narrow


@pytest.mark.parametrize("few", [0, 1000])
def test_progress_grows_to_the_whole(monkeypatch, few):
    for name, size in {"PART": 3, "LARGEST_PART": 3, "WORDS": 20, "FEW": few}.items():
        monkeypatch.setattr(counting, name, size)
    queries, database = random_codes(64)
    for truth in (GROUND_TRUTHS["classes"](), GROUND_TRUTHS["tags"](), GROUND_TRUTHS["matrix"]()):
        calls = []
        record = calls.append
        TieProfile.from_codes(
            queries, database, truth, progress=lambda *call, record=record: record(call)
        )
        done = [call[0] for call in calls]
        assert len(calls) > 10
        assert {call[1] for call in calls} == {N_QUERIES * N_DATABASE}
        assert done == sorted(set(done))
        assert done[-1] == N_QUERIES * N_DATABASE


def test_an_interrupt_stops_the_counting_soon(monkeypatch):
    # 60,000 × 200,000 pairs take seconds; a block of them a fraction of one.
    monkeypatch.setattr(counting, "WORDS", 1 << 22)
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**63, (200_000, 1)).astype(np.uint64)
    queries, database = Codes(words[:60_000], 64), Codes(words, 64)
    truth = Relevance.from_classes(np.zeros(60_000, int), np.arange(200_000) % 10)
    TieProfile.from_codes(queries[:9], database, truth.take(slice(9)))  # compiled before
    calls = []

    def interrupt(done, whole):
        calls.append(done / whole)
        raise KeyboardInterrupt

    start = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        TieProfile.from_codes(queries, database, truth, progress=interrupt)
    assert len(calls) == 1
    assert calls[0] < 0.1
    assert time.process_time() - start < 1.5


def test_repr_tells_sizes_and_gains():
    truth = Relevance.from_matrix([[0, 2, 1]])
    assert repr(TieProfile.from_distances([[0, 1, 2]], truth)) == (
        "<TieProfile: 1 queries, 3 distances, gains [0, 1, 2]>"
    )
    assert "3 distinct distances at most" in repr(TieProfile.from_distances([[0.5, 1, 2]], truth))


@pytest.mark.parametrize("most", [(1 << 31) - 1, (1 << 32) - 1])
def test_sums_of_alike_profiles_do_not_wrap_around(most):
    counts, nothing = np.full((1, 3, 2), most, np.uint32), np.zeros((1, 2), np.int64)
    one = TieProfile(counts=counts, gains=np.array([0, 1]), unretrieved=nothing)
    total = one + one
    np.testing.assert_array_equal(total.counts.astype(np.int64), np.full((1, 3, 2), 2 * most))
    assert one.counts.max() == most  # it was not added to in place
