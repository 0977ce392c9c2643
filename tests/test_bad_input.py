"""What every public door says to what it cannot take: who, the rule, what came."""

import numpy as np
import pytest
import scipy.sparse

import bittern as bt
from bittern import (
    Codes,
    FileError,
    InputError,
    PositionError,
    Relevance,
    TieProfile,
    UnknownNameError,
)

BITS = np.array([[0, 1, 1], [1, 0, 0]])
CODES = Codes.from_bits(BITS)
WIDE = Codes.from_bits(np.zeros((2, 65)))
NONE = Codes.from_bits(np.zeros((0, 3)))
X = np.array([[0.0, 0.0], [3.0, 4.0]])
TRUTH = Relevance.from_classes([0, 1], [0, 1])
EMPTY = Relevance.from_classes([], [0, 1])
PROFILE = TieProfile.from_codes(CODES, CODES, TRUTH)
REAL = TieProfile.from_distances([[0.5, 1.0], [2.0, 3.0]], TRUTH)
RAGGED = [[1, 0], [1]]


def profile(**fields):
    good = {
        "counts": np.ones((2, 3, 2), np.uint32),
        "gains": np.array([0, 1]),
        "unretrieved": np.zeros((2, 2), np.int64),
    }
    return TieProfile(**(good | fields))


CODES_TABLE = [
    (lambda: Codes.from_bits([0, 1]), r"Codes: bits must be 2-D \(n, n_bits\), got shape \(2,\)"),
    (lambda: Codes.from_bits(1), r"Codes: bits must be 2-D .* got shape \(\)"),
    (lambda: Codes.from_bits(np.zeros((2, 2, 2))), r"Codes: bits must be 2-D .* \(2, 2, 2\)"),
    (lambda: Codes.from_bits(RAGGED), r"Codes: bits must"),
    (lambda: Codes.from_bits(np.zeros((2, 0))), r"Codes: .*columns.* between 1 and 4096, got 0"),
    (lambda: Codes.from_bits(np.zeros((2, 4097))), r"Codes: .* between 1 and 4096, got 4097"),
    (lambda: Codes.from_bits([[1, -1]]), r"Codes: bits must be booleans or 0/1; for ±1 codes"),
    (lambda: Codes.from_bits([[np.nan]]), r"Codes: bits must be booleans or 0/1"),
    (lambda: Codes.from_bits([["a"]]), r"Codes: bits must be booleans or 0/1"),
    (lambda: Codes(np.zeros((2, 1)), 3), r"Codes: words must be .* uint64 .* got float64 of shape"),
    (lambda: Codes(np.zeros((2, 2), "u8"), 3), r"Codes: words must be .* \(n, 1\), got uint64"),
    (lambda: Codes(np.zeros(2, "u8"), 3), r"Codes: words must be .* got uint64 of shape \(2,\)"),
    (lambda: Codes(np.zeros((4, 4), "u8")[::2, ::2], 128), r"Codes: words must be C-contiguous"),
    (lambda: Codes([[1]], 3), r"Codes: words must be .* got \[\[1\]\]; Codes.from_bits"),
    (lambda: Codes(np.full((2, 1), 8, "u8"), 3), r"Codes: words has bits set beyond n_bits=3"),
    (lambda: Codes(np.zeros((2, 1), "u8"), 0), r"Codes: n_bits must be between 1 and 4096, got 0"),
    (
        lambda: Codes(np.zeros((2, 1), "u8"), 3.0),
        r"Codes: n_bits must be a whole number .* got 3.0",
    ),
    (lambda: Codes(np.zeros((2, 1), "u8"), True), r"Codes: n_bits must be a whole .* got True"),
    (
        lambda: Codes.from_packed(BITS),
        r"Codes: packed bytes must be 2-D uint8, got int64 of shape \(2, 3\)",
    ),
    (
        lambda: Codes.from_packed(np.zeros(3, "u1")),
        r"Codes: packed bytes must be 2-D uint8, got uint8",
    ),
    (lambda: Codes.from_packed(RAGGED), r"Codes: packed bytes must"),
    (lambda: Codes.from_packed(np.zeros((2, 2), "u1"), 17), r"17 bits take 3 bytes per row, got 2"),
    (lambda: Codes.from_packed(np.zeros((2, 2), "u1"), 8), r"8 bits take 1 bytes per row, got 2"),
    (lambda: Codes.from_packed(np.zeros((2, 2), "u1"), 0), r"n_bits must be between 1 and 4096"),
    (lambda: Codes.from_packed(np.zeros((2, 0), "u1")), r"Codes: n_bits must be .* got 0"),
    (
        lambda: Codes.from_packed(np.zeros((2, 2), "u1"), bitorder="BIG"),
        r"one of 'big', 'little', got 'BIG'",
    ),
    (
        lambda: CODES.to_packed("middle"),
        r"Codes: bitorder must be one of 'big', 'little', got 'middle'",
    ),
    (lambda: CODES.truncate(0), r"Codes: n_bits must be between 1 and 3, got 0"),
    (lambda: CODES.truncate(4), r"Codes: n_bits must be between 1 and 3, got 4"),
    (lambda: CODES.truncate("2"), r"Codes: n_bits must be a whole number .* got '2'"),
    (lambda: Codes.concatenate([]), r"Codes: concatenate takes at least one collection"),
    (lambda: Codes.concatenate([CODES, WIDE]), r"Codes: concatenate .* got lengths \[3, 65\]"),
    (lambda: Codes.concatenate([CODES, BITS]), r"part of concatenate must be a Codes"),
    (
        lambda: CODES.save("codes.txt"),
        r"codes\.txt: codes are saved as \.npz or \.npy, got '\.txt'",
    ),
]

RELEVANCE_TABLE = [
    (lambda: Relevance.from_classes([[0]], [0]), r"query_labels must be 1-D, .*from_tags\(\)"),
    (lambda: Relevance.from_classes([0], 0), r"Relevance: database_labels must be 1-D, got shape"),
    (lambda: Relevance.from_classes([0.5], [0]), r"query_labels must be whole numbers or strings"),
    (lambda: Relevance.from_classes([0], [np.nan]), r"database_labels must be whole numbers"),
    (
        lambda: Relevance.from_classes([0], ["a"]),
        r"both be strings or both integers, got int64",
    ),
    (lambda: Relevance.from_classes([None], [0]), r"query_labels must be all integers or all str"),
    (lambda: Relevance.from_classes([0, "a"], ["0"]), r"query_labels must be all integers or all"),
    (lambda: Relevance.from_classes(RAGGED, [0]), r"Relevance: query_labels must"),
    (lambda: Relevance.from_tags([1, 0], [[1, 0]]), r"query_tags must be 2-D .*from_classes\(\)"),
    (lambda: Relevance.from_tags([[1, 0]], np.zeros((2, 0))), r"database_tags must be 2-D"),
    (lambda: Relevance.from_tags([[1, 0]], [[1]]), r"one column for each tag, got 2 and 1 columns"),
    (lambda: Relevance.from_tags([[1, -1]], [[1, 0]]), r"query_tags must be booleans or 0/1"),
    (lambda: Relevance.from_tags([[1, 0]], [["a", "b"]]), r"database_tags must be booleans or 0/1"),
    (lambda: Relevance.from_tags(RAGGED, [[1, 0]]), r"Relevance: query_tags must"),
    (lambda: Relevance.from_tags(scipy.sparse.coo_array([1]), [[1]]), r"query_tags must be 2-D"),
    (lambda: Relevance.from_tags(scipy.sparse.csr_array((2, 0)), np.zeros((2, 0))), r"must be 2-D"),
    (lambda: Relevance.from_matrix([1, 0]), r"2-D \(n_queries, n_database\), got shape \(2,\)"),
    (lambda: Relevance.from_matrix([["a"]]), r"Relevance: gains must be numbers, got dtype <U1"),
    (lambda: Relevance.from_matrix([[1j]]), r"Relevance: gains must be numbers, got dtype complex"),
    (lambda: Relevance.from_matrix(scipy.sparse.csr_array([[1j]])), r"Relevance: gains must be"),
    (lambda: Relevance.from_matrix(scipy.sparse.coo_array([1])), r"Relevance: .* 2-D"),
    (lambda: Relevance.from_matrix([[-1]]), r"Relevance: gains must be whole numbers, 0 or more"),
    (lambda: Relevance.from_matrix([[0.5]]), r"whole numbers, 0 or more; round or bin real-valued"),
    (lambda: Relevance.from_matrix([[np.nan]]), r"Relevance: gains must be whole numbers"),
    (lambda: Relevance.from_matrix([[901]]), r"Relevance: gains must be at most 900, got 901"),
    (lambda: Relevance.from_matrix(RAGGED), r"Relevance: .*gains"),
    (
        lambda: Relevance.from_ball(X[0], X, 1),
        r"query_vectors must be 2-D \(n, dim\), got shape \(2,\)",
    ),
    (lambda: Relevance.from_ball(X, X[0], 1), r"database_vectors must be 2-D \(n, dim\)"),
    (lambda: Relevance.from_ball(X, X[:, :1], 1), r"must have the same dimension, got 2"),
    (lambda: Relevance.from_ball(X[:0], X, 1), r"query_vectors must have at least one row"),
    (lambda: Relevance.from_ball(X, X[:, :0], 1), r"database_vectors must have at least one row"),
    (lambda: Relevance.from_ball(X * np.nan, X, 1), r"query_vectors must be finite, but row 0 is"),
    (
        lambda: Relevance.from_ball(X, [[0.0, 1.0], [np.inf, 0.0]], 1),
        r"database_vectors must be finite, but row 1",
    ),
    (
        lambda: Relevance.from_ball(X * 1j, X, 1),
        r"query_vectors must be numbers, got dtype complex",
    ),
    (lambda: Relevance.from_ball([["a"]], X, 1), r"query_vectors must be numbers, got dtype <U1"),
    (lambda: Relevance.from_ball(RAGGED, X, 1), r"Relevance: query_vectors must"),
    (
        lambda: Relevance.from_ball(X, X, -1),
        r"radius must be finite and not negative, got \[-1.0\]",
    ),
    (lambda: Relevance.from_ball(X, X, np.nan), r"radius must be finite and not negative"),
    (lambda: Relevance.from_ball(X, X, np.inf), r"radius must be finite and not negative"),
    (lambda: Relevance.from_ball(X, X, "far"), r"Relevance: .*radi"),
    (lambda: Relevance.from_ball(X, X, [1, 2]), r"Relevance: .*radi"),
    (lambda: Relevance.from_ball(X, X, 1, metric="l2"), r"one of 'euclidean', 'cosine', got 'l2'"),
    (lambda: Relevance.from_ball(X, X, 1, memory=1), r"memory must be at least 1048576, got 1"),
    (
        lambda: Relevance.from_ball(X, X, 1, metric="cosine"),
        r"cosine .* rows that are not all zero",
    ),
    (lambda: Relevance.from_neighbours(X, X, 0), r"Relevance: k must be at least 1, got 0"),
    (lambda: Relevance.from_neighbours(X, X, -1), r"Relevance: k must be at least 1, got -1"),
    (
        lambda: Relevance.from_neighbours(X, X, 3),
        r"Relevance: k must be at most 2, the number of items, got 3",
    ),
    (
        lambda: Relevance.from_neighbours(X, X, 1.5),
        r"Relevance: k must be a whole number .* got 1.5",
    ),
    (lambda: Relevance.from_neighbours(X, X, True), r"Relevance: k must be a whole .* got True"),
    (lambda: Relevance.from_thresholds(X, X, [1, 2], [1]), r"lists of the same length, got \(2,\)"),
    (lambda: Relevance.from_thresholds(X, X, [], []), r"radii and gains must be lists"),
    (
        lambda: Relevance.from_thresholds(X, X, [1, 2], [1, 2]),
        r"a smaller radius must have a larger",
    ),
    (lambda: Relevance.from_thresholds(X, X, [1, 1], [2, 1]), r"radii must differ"),
    (
        lambda: Relevance.from_thresholds(X, X, [1], [0]),
        r"gains must be whole numbers from 1 to 900",
    ),
    (lambda: Relevance.from_thresholds(X, X, [1], [1.5]), r"whole numbers from 1 .* got \[1.5\]"),
    (lambda: Relevance.from_thresholds(X, X, [1], [901]), r"whole numbers from 1 to 900"),
    (lambda: Relevance.from_thresholds(X, X, ["a"], [1]), r"Relevance: .*radi"),
    (lambda: TRUTH.excluding([0]), r"one item for each of 2 queries, got 1"),
    (lambda: TRUTH.excluding([0, 2]), r"positions must lie in \[0, 2\), got 2"),
    (lambda: TRUTH.excluding([0, -2]), r"positions must lie in \[0, 2\), got -2"),
    (
        lambda: TRUTH.excluding([0.0, 1.0]),
        r"positions must be a 1-D array of whole numbers, got float",
    ),
    (lambda: TRUTH.excluding([[0, 1]]), r"positions must be a 1-D array .* \(1, 2\)"),
    (lambda: TRUTH.excluding(RAGGED), r"Relevance: positions must"),
    (lambda: TRUTH.shard(1, 0), r"Relevance: stop must be between 1 and 2, got 0"),
    (lambda: TRUTH.shard(0, 3), r"Relevance: stop must be between 0 and 2, got 3"),
    (lambda: TRUTH.shard(-1, 1), r"Relevance: start must be between 0 and 2, got -1"),
    (lambda: bt.ball_radius(X, 0), r"ball_radius: neighbours must be at least 1, got 0"),
    (lambda: bt.ball_radius(X, 2), r"ball_radius: needs more than neighbours=2 .* got 2"),
    (lambda: bt.ball_radius(X), r"ball_radius: needs more than neighbours=50 .* got 2"),
    (lambda: bt.ball_radius(X, 1, sample=0), r"ball_radius: sample must be at least 1, got 0"),
    (lambda: bt.ball_radius(X, 1, random_state=-1), r"ball_radius: random_state must be .* got -1"),
    (
        lambda: bt.ball_radius(X, 1, random_state="a"),
        r"ball_radius: random_state must be .* got 'a'",
    ),
    (lambda: bt.ball_radius(X, 1, metric="l2"), r"ball_radius: metric must be .* got 'l2'"),
    (lambda: bt.ball_radius(X, 1, memory=0), r"ball_radius: memory must be at least .* got 0"),
    (lambda: bt.ball_radius(X[0], 1), r"ball_radius: train_vectors must be 2-D"),
    (
        lambda: bt.ball_radius(X * np.nan, 1),
        r"ball_radius: train_vectors must be finite, but row 0",
    ),
    (lambda: bt.ball_radius(RAGGED, 1), r"ball_radius: train_vectors must"),
]

PROFILE_TABLE = [
    (lambda: TieProfile.from_codes(CODES, WIDE, TRUTH), r"codes of the same length, got 3 and"),
    (
        lambda: TieProfile.from_codes(CODES[:1], CODES, TRUTH),
        r"2 queries and 2 items, but .* 1 and 2",
    ),
    (
        lambda: TieProfile.from_codes(CODES, CODES[:1], TRUTH),
        r"2 queries and 2 items, but .* 2 and 1",
    ),
    (
        lambda: TieProfile.from_codes(NONE, CODES, EMPTY),
        r"at least one query and one item, got 0 and 2",
    ),
    (lambda: TieProfile.from_codes(CODES, NONE, TRUTH.shard(0, 0)), r"at least one .* got 2 and 0"),
    (lambda: TieProfile.from_codes(BITS, CODES, TRUTH), r"TieProfile: .*Codes.*ndarray"),
    (lambda: TieProfile.from_codes(CODES, BITS, TRUTH), r"TieProfile: .*Codes.*ndarray"),
    (lambda: TieProfile.from_codes(CODES, CODES, np.eye(2)), r"TieProfile: .*Relevance.*ndarray"),
    (
        lambda: TieProfile.from_codes(CODES, CODES, TRUTH, n_threads=0),
        r"n_threads must be at least 1",
    ),
    (
        lambda: TieProfile.from_codes(CODES, CODES, TRUTH, n_threads=1.5),
        r"n_threads must be a whole",
    ),
    (
        lambda: TieProfile.from_distances([[0, 1]], TRUTH),
        r"rows of distances and queries .* 1 and 2",
    ),
    (lambda: TieProfile.from_distances([[0, 1]] * 3, TRUTH), r"rows of .* must agree, got 3 and 2"),
    (
        lambda: TieProfile.from_distances([[0], [1]], TRUTH),
        r"2-D \(n_queries, 2\), got shape \(2, 1\)",
    ),
    (lambda: TieProfile.from_distances([0, 1], TRUTH), r"TieProfile: distances must be 2-D"),
    (lambda: TieProfile.from_distances([["a", "b"]] * 2, TRUTH), r"distances must be numbers, got"),
    (
        lambda: TieProfile.from_distances([[1j, 0]] * 2, TRUTH),
        r"distances must be numbers, got dtype",
    ),
    (
        lambda: TieProfile.from_distances([[0, 1], [0, np.nan]], TRUTH),
        r"must not be NaN, but row 1 has one",
    ),
    (lambda: TieProfile.from_distances(RAGGED, TRUTH), r"TieProfile: distances must"),
    (lambda: TieProfile.from_distances(3.0, TRUTH), r"TieProfile: distances must be"),
    (lambda: TieProfile.from_distances(None, TRUTH), r"TieProfile: distances must be"),
    (lambda: TieProfile.from_distances("near", TRUTH), r"TieProfile: distances must be"),
    (lambda: TieProfile.from_distances(iter([]), TRUTH), r"rows of .* must agree, got 0 and 2"),
    (lambda: TieProfile.from_distances(np.eye(2), np.eye(2)), r"TieProfile: .*Relevance.*ndarray"),
    (
        lambda: TieProfile.from_hits([[0]] * 2, [[0, 1]] * 2, TRUTH),
        r"ids and distances .* the same shape",
    ),
    (
        lambda: TieProfile.from_hits([0, 1], [0, 1], TRUTH),
        r"the same shape, \(n_queries, k\) or flat",
    ),
    (
        lambda: TieProfile.from_hits([[0]] * 2, [[0]] * 2, TRUTH, offsets=[0, 1, 2]),
        r"flat with offsets",
    ),
    (lambda: TieProfile.from_hits([[0]], [[0]], TRUTH), r"rows of hits and queries .* got 1 and 2"),
    (
        lambda: TieProfile.from_hits([[0.0]] * 2, [[0]] * 2, TRUTH),
        r"ids must be whole numbers, got float",
    ),
    (
        lambda: TieProfile.from_hits([[0]] * 2, [["a"]] * 2, TRUTH),
        r"distances must be numbers, got <U1",
    ),
    (lambda: TieProfile.from_hits([[0]] * 2, [[np.nan]] * 2, TRUTH), r"distances must not be NaN"),
    (
        lambda: TieProfile.from_hits([[2]] * 2, [[0]] * 2, TRUTH),
        r"ids must lie in \[0, 2\), or be -1",
    ),
    (
        lambda: TieProfile.from_hits([[-2]] * 2, [[0]] * 2, TRUTH),
        r"ids must lie in \[0, 2\), or be -1",
    ),
    (
        lambda: TieProfile.from_hits([[0, 0]] * 2, [[0, 1]] * 2, TRUTH),
        r"query 0 hit item 0 twice",
    ),
    (
        lambda: TieProfile.from_hits([0], [0], TRUTH, offsets=[0, 0]),
        r"rows of hits and queries",
    ),
    (
        lambda: TieProfile.from_hits([0], [0], TRUTH, offsets=[0, 0, 2]),
        r"offsets must ascend from 0 to 1",
    ),
    (
        lambda: TieProfile.from_hits([0], [0], TRUTH, offsets=[0, 2, 1]),
        r"offsets must ascend from 0 to 1",
    ),
    (
        lambda: TieProfile.from_hits([0], [0], TRUTH, offsets=[5, 5, 6]),
        r"offsets must ascend from 0 to 1",
    ),
    (
        lambda: TieProfile.from_hits([0], [0], TRUTH, offsets=[0.0, 0.5, 1.0]),
        r"TieProfile: offsets must",
    ),
    (
        lambda: TieProfile.from_hits([0], [0], TRUTH, offsets=[[0, 1, 1]]),
        r"TieProfile: offsets must",
    ),
    (lambda: TieProfile.from_hits(RAGGED, RAGGED, TRUTH), r"TieProfile: ids"),
    (lambda: TieProfile.from_hits([[0]] * 2, [[0]] * 2, None), r"TieProfile: .*Relevance.*None"),
    (
        lambda: PROFILE + PROFILE.take([0]),
        r"for the same queries can be added, got 2 and 1 queries",
    ),
    (lambda: profile(counts=np.ones((2, 3))), r"counts must be unsigned .* got float64 of shape"),
    (lambda: profile(counts=np.ones((2, 3, 2))), r"counts must be unsigned .* got float64"),
    (lambda: profile(counts=np.ones((2, 3, 3), "u4")), r"with 2 levels, got uint32 of shape"),
    (lambda: profile(counts=np.ones((2, 0, 2), "u4")), r"counts must be unsigned"),
    (lambda: profile(counts=[[[1, 2]]]), r"TieProfile: counts must be"),
    (lambda: profile(gains=np.array([1, 2])), r"gains must ascend from 0, got \[1, 2\]"),
    (lambda: profile(gains=np.array([0, 0])), r"gains must ascend from 0, got \[0, 0\]"),
    (
        lambda: profile(counts=np.ones((2, 3, 1), "u4"), gains=np.array([0])),
        r"gains must be at least two whole numbers",
    ),
    (
        lambda: profile(counts=np.ones((2, 3, 0), "u4"), gains=np.array([])),
        r"gains must be at least two whole numbers",
    ),
    (
        lambda: profile(unretrieved=np.zeros((2, 3))),
        r"unretrieved must be .*\(n_queries, n_levels\)",
    ),
    (
        lambda: profile(unretrieved=np.full((2, 2), -1)),
        r"unretrieved must be .* none of them negative",
    ),
    (
        lambda: profile(distances=np.zeros((2, 2))),
        r"distances must be doubles \(n_queries, n_columns\)",
    ),
    (lambda: PROFILE.save("profile.npy"), r"profile\.npy: save a profile as \.npz"),
]

METRICS_TABLE = [
    (lambda: bt.evaluate(), r"evaluate: takes a TieProfile, or .* got nothing"),
    (lambda: bt.evaluate(3), r"evaluate: takes a TieProfile, or .* got int"),
    (lambda: bt.evaluate(BITS, BITS, TRUTH), r"evaluate: takes .* got ndarray, ndarray, "),
    (lambda: bt.evaluate(CODES, CODES), r"evaluate: takes .* got Codes, Codes"),
    (lambda: bt.evaluate(CODES, CODES, np.eye(2)), r"evaluate: takes .* got Codes, Codes, ndarray"),
    (lambda: bt.evaluate(PROFILE, []), r"evaluate: needs at least one metric"),
    (lambda: bt.evaluate(PROFILE, 3), r"evaluate: metrics must be a list of names, got 3"),
    (lambda: bt.evaluate(PROFILE, [3]), r"a metric is written like 'ap', .* got 3"),
    (lambda: bt.evaluate(PROFILE, "AP"), r"a metric is written like 'ap', .* got 'AP'"),
    (lambda: bt.evaluate(PROFILE, "ap@0"), r"a metric is written like 'ap', .* got 'ap@0'"),
    (lambda: bt.evaluate(PROFILE, "ap@-1"), r"a metric is written like 'ap', .* got 'ap@-1'"),
    (lambda: bt.evaluate(PROFILE, "ap@1.5"), r"a metric is written like 'ap', .* got 'ap@1.5'"),
    (lambda: bt.evaluate(PROFILE, " ap"), r"a metric is written like 'ap', .* got ' ap'"),
    (lambda: bt.evaluate(PROFILE, ""), r"a metric is written like 'ap', .* got ''"),
    (lambda: bt.evaluate(PROFILE, "ap:trec"), r"':trec' needs document ids"),
    (
        lambda: bt.evaluate(PROFILE, "ap", random_state=-1),
        r"random_state must be at least 0, got -1",
    ),
    (lambda: bt.evaluate(PROFILE, "ap", random_state=0.5), r"random_state must be a whole number"),
    (
        lambda: bt.rmse([1.0], [1.0, 2.0]),
        r"rmse: .* the same shape, not empty, got \(1,\) and \(2,\)",
    ),
    (lambda: bt.rmse([], []), r"rmse: .* the same shape, not empty, got \(0,\) and \(0,\)"),
    (lambda: bt.rmse([np.nan], [1.0]), r"rmse: predicted and true must be finite"),
    (lambda: bt.rmse(["a"], [1.0]), r"rmse: predicted and true must be"),
    (lambda: bt.rmse(RAGGED, RAGGED), r"rmse: predicted must be an array with rows of the same"),
    (lambda: bt.pr_curve(3), r"pr_curve: profile must be a TieProfile, got int"),
    (
        lambda: bt.interpolated_pr_curve(3),
        r"interpolated_pr_curve: profile must be a TieProfile, got int",
    ),
    (
        lambda: bt.interpolated_pr_curve(PROFILE, [1.1]),
        r"recalls must lie in \[0, 1\], got \[1.1\]",
    ),
    (
        lambda: bt.interpolated_pr_curve(PROFILE, [-0.1]),
        r"recalls must lie in \[0, 1\], got \[-0.1\]",
    ),
    (lambda: bt.interpolated_pr_curve(PROFILE, []), r"recalls must lie in \[0, 1\], got \[\]"),
    (lambda: bt.interpolated_pr_curve(PROFILE, [np.nan]), r"recalls must lie in \[0, 1\]"),
    (lambda: bt.interpolated_pr_curve(PROFILE, "all"), r"recalls must lie in \[0, 1\], got 'all'"),
]

OTHER_TABLE = [
    (lambda: CODES[2], PositionError, r"Codes: no such rows among 2"),
    (lambda: CODES[[0, -3]], PositionError, r"Codes: no such rows among 2"),
    (lambda: CODES[[[0]]], PositionError, r"Codes: choose rows by a position, a slice, a mask"),
    (lambda: TRUTH.take([2]), PositionError, r"Relevance: .*2"),
    (lambda: PROFILE.take([2]), PositionError, r"TieProfile: .*2"),
    (lambda: Codes.load("no/such.npz"), FileError, r"no/such\.npz: no such file"),
    (lambda: TieProfile.load("no/such.npz"), FileError, r"no/such\.npz: no such file"),
    (lambda: TieProfile.from_trec("no/run", "no/qrels"), FileError, r"no/run"),
    (lambda: CODES.save("no/such/c.npz"), FileError, r"no/such/c\.npz: cannot be written"),
    (lambda: PROFILE.save("no/such/p.npz"), FileError, r"no/such/p\.npz: cannot be written"),
    (
        lambda: bt.evaluate(PROFILE, "app"),
        UnknownNameError,
        r"no metric is called 'app'; did you mean",
    ),
    (lambda: bt.METRICS["mapp"], UnknownNameError, r"no metric is called 'mapp'"),
    (lambda: bt.evaluate(PROFILE, "ap")["ndcg"], UnknownNameError, r"no score is called 'ndcg'"),
]

TABLE = [
    *((call, InputError, says) for table in (CODES_TABLE, RELEVANCE_TABLE) for call, says in table),
    *((call, InputError, says) for table in (PROFILE_TABLE, METRICS_TABLE) for call, says in table),
    *OTHER_TABLE,
]


@pytest.mark.parametrize(("call", "error", "says"), TABLE, ids=[says for _, _, says in TABLE])
def test_bad_input_says_what_rule_it_broke(call, error, says):
    with pytest.raises(error, match=says) as caught:
        call()
    assert str(caught.value).endswith((".", "?"))


def test_our_errors_can_be_caught_as_python_s_own():
    for ours, theirs in (
        (InputError, ValueError),
        (FileError, ValueError),
        (PositionError, IndexError),
        (UnknownNameError, KeyError),
        (bt.NotFittedError, RuntimeError),
        (bt.MissingExtraError, ImportError),
    ):
        assert issubclass(ours, theirs)
        assert issubclass(ours, bt.BitternError)
    assert issubclass(FileError, InputError)
    assert issubclass(PositionError, InputError)
