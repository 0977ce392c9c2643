"""Profiles from codes and distances against counting by hand; adding, taking, comparing."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern import Codes, InputError, Relevance, TieProfile, evaluate
from bittern.profile import codes as counting

N_QUERIES, N_DATABASE = 9, 45
RANK_METRICS = [
    "ap",
    "ndcg",
    "rr",
    "precision@3",
    "precision@20",
    "interpolated-ap",
    "ap:optimistic",
    "ap:pessimistic",
]


def random_tags(n, random_state):
    return np.random.default_rng(random_state).random((n, 70)) < 0.05


def random_gains():
    return np.random.default_rng(5).choice([0, 0, 0, 1, 2, 9], (N_QUERIES, N_DATABASE))


GROUND_TRUTHS = {
    "classes": lambda: Relevance.from_classes(
        np.arange(N_QUERIES) % 5, (np.arange(N_DATABASE) * 7) % 4
    ),
    "one class": lambda: Relevance.from_classes(np.zeros(N_QUERIES, int), np.zeros(N_DATABASE, int)),
    "strings": lambda: Relevance.from_classes(
        ["a", "b", "c"] * 3, ["c", "a", "emu", "b", "a"] * (N_DATABASE // 5)
    ),
    "tags": lambda: Relevance.from_tags(random_tags(N_QUERIES, 1), random_tags(N_DATABASE, 2)),
    "graded tags": lambda: Relevance.from_tags(
        random_tags(N_QUERIES, 1) | (np.arange(70) < 6), random_tags(N_DATABASE, 2), graded=True
    ),
    "matrix": lambda: Relevance.from_matrix(random_gains()),
    "nothing": lambda: Relevance.from_matrix(np.zeros((N_QUERIES, N_DATABASE))),
    "neighbours": lambda: Relevance.from_neighbours(
        np.arange(N_QUERIES)[:, None], np.arange(N_DATABASE)[:, None] / 3, 5
    ),
    "thresholds": lambda: Relevance.from_thresholds(
        np.arange(N_QUERIES)[:, None], np.arange(N_DATABASE)[:, None] / 3, [1, 4], [3, 1]
    ),
}
EXCLUDED = np.array([3, -1, 0, N_DATABASE - 1, 7, 7, -1, 20, 21])


@pytest.fixture(params=GROUND_TRUTHS)
def truth(request):
    return GROUND_TRUTHS[request.param]()


def random_codes(n_bits):
    """Queries and database with near and far neighbours, both read-only."""
    rng = np.random.default_rng(n_bits)
    bits = [rng.random((n, n_bits)) < rng.uniform(0.1, 0.9, (n, 1)) for n in (N_QUERIES, N_DATABASE)]
    bits[1][::3] = bits[0][: N_DATABASE // 3 % N_QUERIES + 1][0]
    codes = [Codes.from_bits(b) for b in bits]
    for part in codes:
        part.words.flags.writeable = False
    return codes


def gains_of(relevance):
    return relevance.gains[relevance.block(slice(0, relevance.n_queries))]


def slow_counts(distances, relevance):
    """Per query, {(distance, gain): items}; counted one by one."""
    gains = gains_of(relevance)
    counted = []
    for q, row in enumerate(distances):
        counts = {}
        for i, distance in enumerate(row):
            if relevance.excluded is None or relevance.excluded[q] != i:
                key = distance, gains[q, i]
                counts[key] = counts.get(key, 0) + 1
        counted.append(counts)
    return counted


def counts_of(profile):
    """The same from a profile."""
    counted = []
    for q in range(profile.n_queries):
        counts = {}
        for d, v in zip(*np.nonzero(profile.counts[q]), strict=True):
            distance = d if profile.distances is None else profile.distances[q, d]
            counts[distance, profile.gains[v]] = profile.counts[q, d, v]
        counted.append(counts)
    return counted


def hamming(queries, database):
    return (queries.to_bits()[:, None] != database.to_bits()[None]).sum(axis=-1)


def assert_identical(a, b):
    """Equal, and equal in everything that can be asked."""
    assert a == b
    np.testing.assert_array_equal(a.total, b.total)
    np.testing.assert_array_equal(a.relevant, b.relevant)
    np.testing.assert_array_equal(a.n_relevant, b.n_relevant)
    np.testing.assert_array_equal(a.unretrieved[:, 1:].sum(axis=1), b.unretrieved[:, 1:].sum(axis=1))


def test_worked_example():
    # Distances of 000 to 000, 001, 011, 110: 0, 1, 2, 2; the first and the last are of its class.
    queries, database = Codes.from_bits([[0, 0, 0]]), Codes.from_bits(
        [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 0]]
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


@pytest.mark.parametrize("excluded", [False, True])
def test_counting_in_small_parts_changes_nothing(truth, monkeypatch, excluded):
    truth = truth.excluding(EXCLUDED) if excluded else truth
    queries, database = random_codes(64)
    whole = TieProfile.from_codes(queries, database, truth)
    monkeypatch.setattr(counting, "PART", 7)
    monkeypatch.setattr(counting, "PAIRS", 20)
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


splits = st.lists(st.integers(0, N_DATABASE), max_size=4).map(
    lambda cuts: [0, *sorted(cuts), N_DATABASE]
)


def distances_for(kind, random_state):
    """(n_queries, n_database) distances of one kind, with ties across shards."""
    rng = np.random.default_rng(random_state)
    shape = N_QUERIES, N_DATABASE
    if kind == "whole numbers":
        return rng.integers(0, 9, shape)
    if kind == "negative":
        return rng.integers(-4, 4, shape)
    if kind == "infinite":
        return rng.choice([-np.inf, 0.5, 1.5, np.inf], shape)
    if kind == "huge":
        return rng.choice([-1e308, 0.0, 1e308], shape)
    return rng.choice([0.1, 0.2, 0.1 + 0.2, 0.3, 1e-300, 5.0, -2.5], shape)


KINDS = ["whole numbers", "negative", "real", "infinite", "huge"]


@given(st.sampled_from([*GROUND_TRUTHS]), st.sampled_from([12, 64, 70]), splits, st.booleans())
@settings(deadline=None, max_examples=60)
def test_shards_of_codes_add_up_to_the_whole(name, n_bits, cuts, excluded):
    truth = GROUND_TRUTHS[name]()
    truth = truth.excluding(EXCLUDED) if excluded else truth
    queries, database = random_codes(n_bits)
    whole = TieProfile.from_codes(queries, database, truth)
    shards = [
        TieProfile.from_codes(queries, database[start:stop], truth.shard(start, stop))
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True)
        if stop > start
    ]
    total = shards[0]
    for shard in shards[1:]:
        total = total + shard
    assert_identical(total, whole)


@given(st.sampled_from([*GROUND_TRUTHS]), st.sampled_from(KINDS), splits, st.booleans())
@settings(deadline=None, max_examples=150)
def test_shards_of_distances_add_up_to_the_whole(name, kind, cuts, excluded):
    truth = GROUND_TRUTHS[name]()
    truth = truth.excluding(EXCLUDED) if excluded else truth
    distances = distances_for(kind, len(cuts))
    whole = TieProfile.from_distances(distances, truth)
    shards = [
        TieProfile.from_distances(distances[:, start:stop], truth.shard(start, stop))
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True)
        if stop > start
    ]
    total = shards[0]
    for shard in shards[1:]:
        total = total + shard
    assert_identical(total, whole)


def test_adding_commutes_and_leaves_its_parts_alone():
    distances = distances_for("real", 0)
    truth = GROUND_TRUTHS["matrix"]()
    a, b = (
        TieProfile.from_distances(distances[:, part], truth.shard(*part.indices(N_DATABASE)[:2]))
        for part in (slice(0, 20), slice(20, N_DATABASE))
    )
    before = a.counts.copy(), b.counts.copy()
    assert_identical(a + b, b + a)
    assert a != b
    np.testing.assert_array_equal(a.counts, before[0])
    np.testing.assert_array_equal(b.counts, before[1])


def test_shards_that_know_other_gains_add_up():
    a = TieProfile.from_distances([[0, 1]], Relevance.from_matrix([[0, 5]]))
    b = TieProfile.from_distances([[0, 1, 1]], Relevance.from_matrix([[2, 5, 0]]))
    whole = TieProfile.from_distances([[0, 1, 0, 1, 1]], Relevance.from_matrix([[0, 5, 2, 5, 0]]))
    assert_identical(a + b, whole)
    assert (a + b).gains.tolist() == [0, 2, 5]


def test_a_shard_of_radii_adds_to_one_of_real_distances():
    a = TieProfile.from_distances([[0, 2]], Relevance.from_matrix([[0, 1]]))
    b = TieProfile.from_distances([[0.5, 2.0]], Relevance.from_matrix([[1, 1]]))
    whole = TieProfile.from_distances([[0.0, 2.0, 0.5, 2.0]], Relevance.from_matrix([[0, 1, 1, 1]]))
    assert a + b == whole
    assert counts_of(a + b) == counts_of(whole)


def test_counts_beyond_32_bits_do_not_wrap():
    nearly = np.array([[[2**32 - 1, 2**32 - 1]]], np.uint32)
    profile = TieProfile(
        counts=nearly, gains=np.array([0, 1]), unretrieved=np.zeros((1, 2), np.int64)
    )
    assert (profile + profile).counts.tolist() == [[[2**33 - 2, 2**33 - 2]]]
    assert (profile + profile).total.tolist() == [[2**34 - 4]]


def test_unretrieved_items_add_up_too():
    truth = Relevance.from_matrix([[1, 1, 0, 1]])
    a = TieProfile.from_hits([[0]], [[3]], truth.shard(0, 2))
    b = TieProfile.from_hits([[0]], [[1]], truth.shard(2, 4))
    assert (a + b).n_relevant.tolist() == [3]
    assert (a + b).relevant.sum() == 1


@pytest.mark.parametrize(
    ("distances", "columns"),
    [
        ([[2, 0, 2]], None),
        ([[True, False, True]], None),
        (np.array([[2, 0, 2]], np.uint8), None),
        ([[65_535, 0, 65_535]], None),
        ([[65_536, 0, 65_536]], [[0, 65_536]]),
        ([[-1, 3, -1]], [[-1, 3]]),
        ([[2.0, 0.0, 2.0]], [[0, 2]]),
        (np.array([[0.5, 0.25, 0.5]], np.float16), [[0.25, 0.5]]),
        ([[np.inf, -np.inf, np.inf]], [[-np.inf, np.inf]]),
        ([[0.0, 1.0, -0.0]], [[0.0, 1.0]]),
        ([[1e300, 1e-300, 1e300]], [[1e-300, 1e300]]),
    ],
    ids=repr,
)
def test_equal_distances_are_tied(distances, columns):
    truth = Relevance.from_classes([1], [1, 1, 0])
    profile = TieProfile.from_distances(distances, truth)
    assert counts_of(profile) == slow_counts(np.asarray(distances), truth)
    if columns is None:
        assert profile.distances is None
    else:
        assert profile.distances.tolist() == columns
    sizes = profile.total[profile.total > 0]
    assert sorted(sizes) == [1, 2]


@pytest.mark.parametrize(
    "distances",
    [
        [[1.0, 1.0 + 1e-9, 1.0 - 1e-9]],
        [[1e9, 1e9 + 1e-6, 1e9 - 1e-6]],
        [[-0.3, -(0.1 + 0.2), 0.0]],
        [[128, 127, -128]],
        [[2**53 - 1, 2**53 - 2, 2**53 - 3]],
    ],
    ids=repr,
)
def test_distances_that_differ_stay_apart(distances):
    # Trap 25: scores 10⁻⁹ apart merged by single precision; 128 stored in 8 bits.
    truth = Relevance.from_classes([1], [1, 0, 0])
    profile = TieProfile.from_distances(np.array(distances), truth)
    assert sorted(profile.total[profile.total > 0]) == [1, 1, 1]
    order = np.argsort(np.array(distances)[0])
    assert profile.relevant[profile.total > 0].argmax() == np.flatnonzero(order == 0)[0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_that_a_double_would_merge_stay_apart_or_are_refused(dtype):
    distances = np.array([[2**53, 2**53 + 1, 0]], dtype)
    truth = Relevance.from_classes([1], [1, 0, 0])
    for make in (
        lambda: TieProfile.from_distances(distances, truth),
        lambda: TieProfile.from_hits([[0, 1, 2]], distances, truth),
    ):
        try:
            profile = make()
        except InputError:
            continue
        assert sorted(profile.total[profile.total > 0]) == [1, 1, 1]


def test_counts_from_distances_are_those_counted_by_hand(truth):
    for kind in KINDS:
        distances = distances_for(kind, 1)
        for relevance in (truth, truth.excluding(EXCLUDED)):
            profile = TieProfile.from_distances(distances, relevance)
            assert counts_of(profile) == slow_counts(distances, relevance)
            assert profile.n_relevant.tolist() == relevance.n_relevant.tolist()


def test_hamming_distances_give_the_profile_of_their_codes(truth):
    queries, database = random_codes(64)
    distances = hamming(queries, database)
    assert TieProfile.from_distances(distances, truth) == TieProfile.from_codes(
        queries, database, truth
    )
    assert TieProfile.from_distances(distances * 1.0, truth) == TieProfile.from_codes(
        queries, database, truth
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("cuts", [[0, 9], [0, 1, 9], [0, 4, 4, 9], [*range(10)]], ids=repr)
def test_blocks_of_queries_are_the_whole(kind, compact, cuts):
    distances, truth = distances_for(kind, 2), GROUND_TRUTHS["matrix"]().excluding(EXCLUDED)
    whole = TieProfile.from_distances(distances, truth, compact=compact)
    blocks = [distances[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    for given_blocks in (iter(blocks), (block for block in blocks), (b.tolist() for b in blocks if len(b))):
        profile = TieProfile.from_distances(given_blocks, truth, compact=compact)
        assert profile == whole
        assert profile.n_relevant.tolist() == whole.n_relevant.tolist()


def test_a_list_of_blocks_is_an_iterable_of_blocks():
    distances, truth = distances_for("real", 2), GROUND_TRUTHS["matrix"]()
    whole = TieProfile.from_distances(distances, truth)
    for cut in (3, 8):
        assert TieProfile.from_distances([distances[:cut], distances[cut:]], truth) == whole
        assert TieProfile.from_distances((distances[:cut], distances[cut:]), truth) == whole


def test_blocks_of_whole_numbers_may_meet_blocks_of_real_ones():
    truth = Relevance.from_matrix(np.eye(3))
    blocks = [np.array([[0, 1, 2]]), np.array([[0.5, 2.0, 2.0]]), np.array([[-7, 2, 2]])]
    profile = TieProfile.from_distances(iter(blocks), truth)
    assert profile == TieProfile.from_distances(np.concatenate(blocks), truth)
    assert counts_of(profile) == slow_counts(np.concatenate(blocks), truth)


def test_blocks_are_asked_for_one_at_a_time():
    # An iterable is there so that the whole need not be held.
    alive = []
    truth = GROUND_TRUTHS["matrix"]()

    def blocks():
        for q in range(N_QUERIES):
            alive.append(q)
            yield distances_for("real", q)[q : q + 1]

    seen = []
    TieProfile.from_distances(blocks(), truth, progress=lambda done, _: seen.append((done, len(alive))))
    assert seen == [(q + 1, q + 1) for q in range(N_QUERIES)]


@pytest.mark.parametrize("n_rows", [8, 10])
def test_too_few_or_too_many_rows_are_refused(n_rows):
    distances = np.zeros((n_rows, N_DATABASE))
    truth = GROUND_TRUTHS["classes"]()
    for given_distances in (distances, iter(distances[:, None])):
        with pytest.raises(InputError, match="rows of distances and queries must agree"):
            TieProfile.from_distances(given_distances, truth)


@pytest.mark.parametrize("kind", KINDS)
def test_a_compact_profile_has_the_same_rank_metrics(truth, kind):
    for relevance in (truth, truth.excluding(EXCLUDED)):
        distances = distances_for(kind, 3)
        full = evaluate(TieProfile.from_distances(distances, relevance), RANK_METRICS)
        compact = evaluate(
            TieProfile.from_distances(distances, relevance, compact=True), RANK_METRICS
        )
        for name in RANK_METRICS:
            np.testing.assert_allclose(
                compact[name].per_query, full[name].per_query, rtol=1e-12, err_msg=name
            )


def test_a_compact_profile_is_small():
    rng = np.random.default_rng(0)
    gains = np.zeros((4, 3000), int)
    gains[:, :3] = 1
    truth = Relevance.from_matrix(gains)
    distances = rng.random((4, 3000))
    full = TieProfile.from_distances(distances, truth)
    compact = TieProfile.from_distances(distances, truth, compact=True)
    assert full.counts.shape[1] == 3000
    assert compact.counts.shape[1] <= 7  # three relevant columns and the runs around them
    assert compact.total.sum(axis=1).tolist() == [3000] * 4
    a, b = (evaluate(profile, ["ap", "precision@100"]) for profile in (full, compact))
    for name in ("ap", "precision@100"):
        np.testing.assert_allclose(a[name].per_query, b[name].per_query, rtol=1e-12)


def test_compact_profiles_do_not_add():
    truth = Relevance.from_matrix([[1, 0]])
    compact = TieProfile.from_distances([[0.5, 1.5]], truth, compact=True)
    with pytest.raises(InputError, match="compact profiles have lost the distances"):
        compact + compact


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


def test_progress_grows_to_the_whole(monkeypatch):
    monkeypatch.setattr(counting, "PART", 7)
    monkeypatch.setattr(counting, "PAIRS", 20)
    queries, database = random_codes(64)
    for truth in (GROUND_TRUTHS["classes"](), GROUND_TRUTHS["tags"](), GROUND_TRUTHS["matrix"]()):
        calls = []
        TieProfile.from_codes(queries, database, truth, progress=lambda *call: calls.append(call))
        done = [call[0] for call in calls]
        assert len(calls) > 10
        assert {call[1] for call in calls} == {N_QUERIES * N_DATABASE}
        assert done == sorted(set(done))
        assert done[-1] == N_QUERIES * N_DATABASE


def test_an_interrupt_stops_the_counting_soon(monkeypatch):
    # 60,000 × 200,000 pairs take seconds; a block of them a fraction of one.
    monkeypatch.setattr(counting, "PAIRS", 1 << 22)
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**63, (200_000, 1)).astype(np.uint64)
    queries, database = Codes(words[:60_000], 64), Codes(words, 64)
    truth = Relevance.from_classes(np.zeros(60_000, int), np.arange(200_000) % 10)
    TieProfile.from_codes(queries[:9], database, truth.take(slice(9)))  # compiled before
    calls = []

    def interrupt(done, whole):
        calls.append(done / whole)
        raise KeyboardInterrupt

    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        TieProfile.from_codes(queries, database, truth, progress=interrupt)
    assert len(calls) == 1
    assert calls[0] < 0.1
    assert time.perf_counter() - start < 1.5


def test_an_interrupt_stops_reading_distances():
    asked = []

    def blocks():
        for q in range(N_QUERIES):
            asked.append(q)
            yield distances_for("real", q)[q : q + 1]

    def interrupt(done, whole):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TieProfile.from_distances(blocks(), GROUND_TRUTHS["matrix"](), progress=interrupt)
    assert asked == [0]


def test_repr_tells_sizes_and_gains():
    truth = Relevance.from_matrix([[0, 2, 1]])
    assert repr(TieProfile.from_distances([[0, 1, 2]], truth)) == (
        "<TieProfile: 1 queries, 3 distances, gains [0, 1, 2]>"
    )
    assert "3 distinct distances at most" in repr(TieProfile.from_distances([[0.5, 1, 2]], truth))
