"""Profiles from given distances, whole or in blocks, against counting by hand."""

from itertools import pairwise

import numpy as np
import pytest
from by_hand import (
    EXCLUDED,
    GROUND_TRUTHS,
    KINDS,
    N_DATABASE,
    N_QUERIES,
    counts_of,
    distances_for,
    hamming,
    random_codes,
    slow_counts,
)

from bittern import InputError, Relevance, TieProfile, evaluate

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


@pytest.fixture(params=GROUND_TRUTHS)
def truth(request):
    return GROUND_TRUTHS[request.param]()


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
    blocks = [distances[a:b] for a, b in pairwise(cuts)]
    for given_blocks in (
        iter(blocks),
        (block for block in blocks),
        (b.tolist() for b in blocks if len(b)),
    ):
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
    TieProfile.from_distances(
        blocks(), truth, progress=lambda done, _: seen.append((done, len(alive)))
    )
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
