"""Fusions without training: against tables worked by hand, slow definitions, and ranx."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import bittern as bt
from bittern.fusion import FUSIONS, NORMALISATIONS, fuse_lists

# Two sources, five items; item 3 is missing from the first, item 4 from the second, item 5 is new.
NAN = np.nan
TABLE = np.array([[4.0, 2.0, 0.0, NAN, 2.0], [10.0, 30.0, 20.0, 30.0, NAN]])
SPREAD = 2 / np.sqrt(2)  # of 4, 2, 0, 2 about 2
WORTH = 7.5 / np.sqrt(68.75)  # of 10, 30, 20, 30 about 22.5: squares 156.25 + 2 * 56.25 + 6.25


def full_scores(random_state=0, shape=(3, 4, 9)):
    rng = np.random.default_rng(random_state)
    scores = rng.integers(0, 6, shape).astype(float)  # with many ties
    scores[0, 0] = 2.0  # a source that says nothing
    return scores


def with_gaps(random_state=1, shape=(3, 4, 9)):
    """Scores of which some are missing; the last item of query 0 is missing everywhere."""
    scores = full_scores(random_state, shape)
    scores[np.random.default_rng(random_state).random(shape) < 0.3] = NAN
    scores[:, 0, -1] = NAN
    scores[0, 1] = NAN  # a source that found nothing at all
    return scores


@pytest.mark.parametrize(
    ("method", "normalise", "wanted"),
    [
        ("comb-sum", "none", [14, 32, 20, 30, 2]),
        ("comb-min", "none", [4, 2, 0, 30, 2]),
        ("comb-max", "none", [10, 30, 20, 30, 2]),
        ("comb-mnz", "none", [28, 64, 40, 30, 2]),
        # minmax: first 1, 1/2, 0, -, 1/2; second 0, 1, 1/2, 1, -
        ("comb-sum", "minmax", [1, 1.5, 0.5, 1, 0.5]),
        ("comb-mnz", None, [2, 3, 1, 1, 0.5]),
        # rank: first 1, 1 - 1.5/4, 1/4, -, 1 - 1.5/4; second 1/4, 1 - .5/4, 1/2, 1 - .5/4, -
        ("comb-sum", "rank", [1.25, 1.5, 0.75, 0.875, 0.625]),
        # Of 5 candidates, points 5…1: first 5, 3.5, 2, 1 (missing), 3.5; second 2, 4.5, 3, 4.5, 1
        ("borda", None, [7, 8, 5, 5.5, 4.5]),
        ("comb-sum", None, [SPREAD - 5 / 3 * WORTH, WORTH, -SPREAD - WORTH / 3, WORTH, 0]),
        ("comb-max", None, [SPREAD, WORTH, -WORTH / 3, WORTH, 0]),
        ("comb-min", None, [-5 / 3 * WORTH, 0, -SPREAD, WORTH, 0]),
    ],
)
def test_worked_tables(method, normalise, wanted):
    options = {} if normalise is None else {"normalise": normalise}
    np.testing.assert_allclose(FUSIONS[method](TABLE, **options), wanted, atol=1e-12)
    one_query = FUSIONS[method](TABLE[:, None], **options)
    np.testing.assert_allclose(one_query, [wanted], atol=1e-12)


def test_reciprocal_ranks_by_hand():
    # First: ranks 1, {2, 3}, 4, none, {2, 3}; second: 4, {1, 2}, 3, {1, 2}, none.
    tied, top = (1 / 62 + 1 / 63) / 2, (1 / 61 + 1 / 62) / 2
    wanted = [1 / 61 + 1 / 64, tied + top, 1 / 64 + 1 / 63, top, tied]
    np.testing.assert_allclose(FUSIONS["reciprocal-rank"](TABLE), wanted)


def test_weights_scale_the_sources():
    weighted = FUSIONS["weighted-sum"](TABLE, weights=[2, 0.5], normalise="none")
    np.testing.assert_allclose(weighted, [13, 19, 10, 15, 4])
    doubled = FUSIONS["borda"](TABLE, weights=[2, 1])
    np.testing.assert_allclose(doubled, [12, 11.5, 7, 6.5, 8])


def test_a_query_may_have_weights_of_its_own():
    scores = full_scores()
    weights = np.random.default_rng(5).random((4, 3))
    together = FUSIONS["weighted-sum"](scores, weights=weights)
    for q in range(4):
        alone = FUSIONS["weighted-sum"](scores[:, q], weights=weights[q])
        np.testing.assert_array_equal(together[q], alone)


@pytest.mark.parametrize("name", NORMALISATIONS)
@pytest.mark.parametrize("scores", [full_scores(), with_gaps()], ids=["full", "gaps"])
def test_normalisations_equal_a_loop_over_rows(name, scores):
    found = NORMALISATIONS[name](scores)
    for row, result in zip(scores.reshape(-1, 9), found.reshape(-1, 9), strict=True):
        assert (np.isnan(result) == np.isnan(row)).all()
        there = row[~np.isnan(row)]
        for value, normalised in zip(there, result[~np.isnan(row)], strict=True):
            assert normalised == pytest.approx(slowly_normalised(name, value, there))


def slowly_normalised(name, value, row):
    constant = len(set(row)) == 1
    if name == "zscore":
        return 0.0 if constant else (value - np.mean(row)) / np.std(row)
    if name == "minmax":
        return 0.0 if constant else (value - min(row)) / (max(row) - min(row))
    if name == "rank":
        above, ties = sum(row > value), sum(row == value)
        return 1 - (above + (ties - 1) / 2) / len(row)
    return value


def test_rows_that_only_rounding_tells_apart_are_constant():
    row = np.full((1, 7), 0.1) * 3
    assert (NORMALISATIONS["zscore"](row) == 0).all()


@pytest.mark.parametrize("name", [name for name in FUSIONS if name != "weighted-sum"])
def test_only_what_no_source_has_is_nan(name):
    scores = with_gaps()
    fused = FUSIONS[name](scores)
    assert fused.shape == (4, 9)
    np.testing.assert_array_equal(np.isnan(fused), np.isnan(scores).all(axis=0))
    assert np.isnan(fused).any()


@pytest.mark.parametrize("name", [name for name in FUSIONS if name != "weighted-sum"])
def test_items_that_no_source_has_change_nothing(name):
    wider = np.concatenate([TABLE, np.full((2, 3), NAN)], axis=1)
    np.testing.assert_allclose(FUSIONS[name](wider)[:5], FUSIONS[name](TABLE), rtol=1e-13)


@pytest.mark.parametrize("name", [name for name in FUSIONS if name != "weighted-sum"])
def test_no_accident_of_order_enters(name):
    scores = with_gaps()
    order = np.random.default_rng(3).permutation(9)
    there, back = FUSIONS[name](scores)[:, order], FUSIONS[name](scores[:, :, order])
    np.testing.assert_allclose(there, back, rtol=1e-13, atol=1e-13)
    before = scores.copy()
    FUSIONS[name](scores)[:] = -1  # the result is nobody else's memory
    np.testing.assert_array_equal(scores, before)


def test_one_source_keeps_its_own_order():
    scores = full_scores()[:1]
    for name in ("comb-min", "comb-max", "comb-sum", "comb-mnz", "borda", "reciprocal-rank"):
        fused = FUSIONS[name](scores)
        above = scores[0][1:, :, None] > scores[0][1:, None]
        np.testing.assert_array_equal(above, fused[1:, :, None] > fused[1:, None])


def test_single_precision_and_whole_numbers_are_taken():
    whole = full_scores().astype(np.int32)
    for name in ("comb-sum", "borda"):
        wanted = FUSIONS[name](full_scores())
        np.testing.assert_allclose(FUSIONS[name](whole), wanted)
        np.testing.assert_allclose(FUSIONS[name](whole.astype(np.float32)), wanted)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: FUSIONS["comb-sun"], bt.UnknownNameError, "did you mean 'comb-sum'"),
        (lambda: FUSIONS["borda"](TABLE, normalise="zscor"), bt.UnknownNameError, "'zscore'"),
        (lambda: FUSIONS["comb-sum"](TABLE[0]), bt.InputError, r"got shape \(5,\)"),
        (lambda: FUSIONS["comb-sum"](TABLE[:, :0]), bt.InputError, "must not be empty"),
        (lambda: FUSIONS["borda"]([["a"], ["b"]]), bt.InputError, "must be numbers"),
        (lambda: FUSIONS["borda"]([[1], [np.inf]]), bt.InputError, "source 1 has infinite"),
        (lambda: FUSIONS["comb-max"](TABLE, weights=[1, 2]), bt.InputError, "takes no weights"),
        (lambda: FUSIONS["comb-min"](TABLE, weights=[1, 2]), bt.InputError, "takes no weights"),
        (lambda: FUSIONS["weighted-sum"](TABLE), bt.InputError, "needs weights"),
        (lambda: FUSIONS["comb-sum"](TABLE, weights=[1]), bt.InputError, "each of 2 sources"),
        (lambda: FUSIONS["comb-sum"](TABLE, weights=[1, NAN]), bt.InputError, "finite"),
        (lambda: bt.fusion.reciprocal_rank(TABLE, damping=-1), bt.InputError, "damping"),
        (lambda: fuse_lists([]), bt.InputError, "at least one source"),
        (lambda: fuse_lists([[([1, 1], [2, 3])]]), bt.InputError, "an item only once"),
        (lambda: fuse_lists([[([1], [NAN])]]), bt.InputError, "leave out what is missing"),
        (lambda: fuse_lists([[([1, 2], [1])]]), bt.InputError, "equally long"),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_lists_are_the_array_with_gaps():
    fused = fuse_lists(
        [[([10, 11, 12, 14], [4, 2, 0, 2])], [([13, 12, 11, 10], [30, 20, 30, 10])]], "borda"
    )
    assert fused.ids[0].tolist() == [11, 10, 13, 12, 14]
    assert fused.scores[0].tolist() == [8, 7, 5.5, 5, 4.5]
    assert fused.missing.tolist() == [1, 1]


def test_a_query_that_nobody_answered_stays_empty():
    fused = fuse_lists([[([], []), (["b"], [1.0])], [([], []), (["a"], [1.0])]])
    assert [ids.tolist() for ids in fused.ids] == [[], ["a", "b"]]
    assert fused.missing.tolist() == [1, 1]


RANX = """
import json, sys, warnings
warnings.simplefilter("ignore")
from ranx import Run, fuse
lists, methods = json.load(sys.stdin)
for method, norm, options in methods:
    fused = fuse([Run({"q": found}) for found in lists], norm=norm, method=method, params=options)
    print(json.dumps({name: float(score) for name, score in fused.run["q"].items()}))
"""


def test_equals_ranx_where_it_has_the_same_method():
    # ranx breaks ties by an accident of order, so these scores have none.  Compiling it takes
    # minutes, interpreting it seconds.
    rng = np.random.default_rng(7)
    scores = rng.permutation(24).reshape(3, 8) * 0.37 + 1
    scores[rng.random((3, 8)) < 0.25] = NAN
    there = np.flatnonzero(~np.isnan(scores).all(axis=0))
    weights = {"weights": [0.2, 0.5, 0.3]}
    methods = {
        "comb-sum": ("sum", "zmuv", {}),
        "comb-min": ("min", "zmuv", {}),
        "comb-max": ("max", "zmuv", {}),
        "comb-mnz": ("mnz", "min-max", {}),
        "borda": ("bordafuse", None, {}),
        "reciprocal-rank": ("rrf", None, {}),
        "weighted-sum": ("wsum", "zmuv", weights),
    }
    assert set(methods) == set(FUSIONS)
    lists = [{f"d{i}": s for i, s in enumerate(row) if s == s} for row in scores]
    done = subprocess.run(
        [sys.executable, "-c", RANX],
        input=json.dumps([lists, list(methods.values())]),
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    for name, line in zip(methods, done.stdout.splitlines(), strict=True):
        fused, wanted = FUSIONS[name](scores, **methods[name][2]), json.loads(line)
        np.testing.assert_allclose(fused[there], [wanted[f"d{i}"] for i in there], err_msg=name)


def test_fused_scores_end_in_a_profile():
    scores = full_scores()
    relevance = bt.Relevance.from_classes(np.arange(4) % 2, np.arange(9) % 2)
    profile = bt.TieProfile.from_distances(-FUSIONS["comb-sum"](scores), relevance)
    assert 0 < bt.evaluate(profile, ["ap"])["ap"].mean < 1


def test_hits_are_fused_by_their_distances():
    database = bt.Codes.from_bits([[0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]])
    queries = bt.Codes.from_bits([[0, 0, 0, 0], [1, 1, 1, 1]])
    index = bt.FlatIndex(database, ids=[10, 11, 12, 13])
    nearest, near = index.search(queries, k=2), index.within(queries, radius=3)
    fused = bt.fusion.fuse_hits([nearest, near], "comb-sum", normalise="none")
    # The first query has 10 and 13 at 1 and 2, and within 3 also 11; the second 12, 11, and so on.
    assert [ids.tolist() for ids in fused.ids] == [[10, 11, 13], [12, 11, 13, 10]]
    assert [scores.tolist() for scores in fused.scores] == [[-2, -3, -4], [0, -2, -2, -3]]
    assert fused.missing.tolist() == [3, 0]  # 11 for the first query; 13 and 10 for the second
    with pytest.raises(bt.InputError, match="every source must be a Hits, got list"):
        bt.fusion.fuse_hits([[1]])
