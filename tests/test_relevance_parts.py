"""Taking queries, sharding the database and leaving items out, against a dense matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from truth import assert_is, gains_of, random_tags

from bittern import InputError, PositionError, Relevance

GROUND_TRUTHS = {
    "classes": lambda: Relevance.from_classes([0, 1, 2, 1, 9], [0, 1, 1, 2, 0, 1, 3]),
    "tags": lambda: Relevance.from_tags(random_tags(5, 70, 1), random_tags(7, 70, 2)),
    "graded tags": lambda: Relevance.from_tags(
        np.tri(5, 6, dtype=bool), np.tri(7, 6, dtype=bool), graded=True
    ),
    "matrix": lambda: Relevance.from_matrix(np.arange(35).reshape(5, 7) % 4),
    "nothing": lambda: Relevance.from_matrix(np.zeros((5, 7))),
    "neighbours": lambda: Relevance.from_neighbours(
        np.arange(5.0)[:, None], np.arange(7.0)[:, None], 3
    ),
}


@pytest.fixture(params=GROUND_TRUTHS)
def truth(request):
    return GROUND_TRUTHS[request.param]()


@pytest.mark.parametrize(
    "queries",
    [
        slice(1, 4),
        slice(None, None, -1),
        [3, 0, 3],
        [-1],
        [],
        np.array([True, False, True, False, True]),
    ],
    ids=repr,
)
def test_taking_queries_takes_rows(truth, queries):
    assert_is(truth.take(queries), gains_of(truth)[queries])


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 7), (0, 3), (2, 5), (6, 7), (4, 4), (0, 0), (7, 7)]
)
def test_a_shard_takes_columns(truth, start, stop):
    assert_is(truth.shard(start, stop), gains_of(truth)[:, start:stop])


def test_excluding_leaves_gains_and_changes_totals(truth):
    before = truth.totals().copy()
    left_out = truth.excluding([6, -1, 0, 3, 3])
    assert_is(left_out, gains_of(truth))
    assert left_out.totals().sum(axis=1).tolist() == [6, 7, 6, 6, 6]
    assert_is(truth, gains_of(truth))  # the first is as it was
    np.testing.assert_array_equal(truth.totals(), before)


def test_excluding_again_replaces_and_nobody_excludes_nothing(truth):
    again = truth.excluding([0, 1, 2, 3, 4]).excluding([-1] * 5)
    np.testing.assert_array_equal(again.totals(), truth.totals())


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_taking_sharding_and_excluding_commute_with_the_dense_matrix(data):
    gains = data.draw(arrays(np.int64, (5, 7), elements=st.integers(0, 3)))
    kind = data.draw(st.sampled_from(["matrix", *GROUND_TRUTHS]))
    truth = Relevance.from_matrix(gains) if kind == "matrix" else GROUND_TRUTHS[kind]()
    dense = gains_of(truth)
    excluded = data.draw(st.lists(st.integers(-1, 6), min_size=5, max_size=5))
    queries = data.draw(st.lists(st.integers(0, 4), max_size=6))
    start = data.draw(st.integers(0, 7))
    stop = data.draw(st.integers(start, 7))

    part = truth.excluding(excluded).take(queries).shard(start, stop)
    other = truth.excluding(excluded).shard(start, stop).take(queries)
    inside = [excluded[q] - start if start <= excluded[q] < stop else -1 for q in queries]
    for result in (part, other):
        assert result.excluded.tolist() == inside
        assert_is(result, dense[queries, start:stop])


def test_totals_of_shards_add_up(truth):
    truth = truth.excluding([6, -1, 0, 3, 3])
    total = truth.shard(0, 3).totals() + truth.shard(3, 7).totals()
    np.testing.assert_array_equal(total, truth.totals())


def test_the_order_of_queries_is_a_permutation(truth):
    assert sorted(truth.query_order().tolist()) == list(range(5))


def test_repr_tells_kind_and_sizes():
    assert repr(GROUND_TRUTHS["classes"]()) == "<ClassRelevance: 5 queries by 7 items>"
    graded = Relevance.from_matrix([[0, 2, 5]])
    assert repr(graded) == "<SparseRelevance: 1 queries by 3 items, gains [0, 2, 5]>"


@pytest.mark.parametrize("queries", [9, [9], [-6], "a", np.zeros(2, bool), [0.5]], ids=repr)
def test_taking_queries_that_are_not_there_is_a_position_error(queries):
    with pytest.raises(PositionError, match=r"^Relevance: "):
        GROUND_TRUTHS["classes"]().take(queries)


def test_taking_one_query_is_a_ground_truth_of_one_or_refused():
    truth = GROUND_TRUTHS["classes"]()
    try:
        one = truth.take(2)
    except InputError:
        return
    assert_is(one, gains_of(truth)[[2]])
