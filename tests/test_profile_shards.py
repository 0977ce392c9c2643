"""Profiles of the shards of a database add up to the profile of the whole."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from by_hand import (
    EXCLUDED,
    GROUND_TRUTHS,
    KINDS,
    N_DATABASE,
    assert_identical,
    counts_of,
    distances_for,
    random_codes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern import Relevance, TieProfile

splits = st.lists(st.integers(0, N_DATABASE), max_size=4).map(
    lambda cuts: [0, *sorted(cuts), N_DATABASE]
)


@given(st.sampled_from([*GROUND_TRUTHS]), st.sampled_from([12, 64, 70]), splits, st.booleans())
@settings(deadline=None, max_examples=60)
def test_shards_of_codes_add_up_to_the_whole(name, n_bits, cuts, excluded):
    truth = GROUND_TRUTHS[name]()
    truth = truth.excluding(EXCLUDED) if excluded else truth
    queries, database = random_codes(n_bits)
    whole = TieProfile.from_codes(queries, database, truth)
    shards = [
        TieProfile.from_codes(queries, database[start:stop], truth.shard(start, stop))
        for start, stop in pairwise(cuts)
        if stop > start
    ]
    assert_identical(reduce(add, shards), whole)
    assert_identical(sum(shards), whole)


@given(st.sampled_from([*GROUND_TRUTHS]), st.sampled_from(KINDS), splits, st.booleans())
@settings(deadline=None, max_examples=150)
def test_shards_of_distances_add_up_to_the_whole(name, kind, cuts, excluded):
    truth = GROUND_TRUTHS[name]()
    truth = truth.excluding(EXCLUDED) if excluded else truth
    distances = distances_for(kind, len(cuts))
    whole = TieProfile.from_distances(distances, truth)
    shards = [
        TieProfile.from_distances(distances[:, start:stop], truth.shard(start, stop))
        for start, stop in pairwise(cuts)
        if stop > start
    ]
    assert_identical(reduce(add, shards), whole)


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


def test_only_the_zero_of_sum_can_be_added():
    queries, database = random_codes(12)
    profile = TieProfile.from_codes(queries, database, next(iter(GROUND_TRUTHS.values()))())
    assert 0 + profile is profile
    for other in (1, False, 0.0, None):
        with pytest.raises(TypeError, match="unsupported operand"):
            other + profile
