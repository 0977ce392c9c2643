"""What is public, called with every argument replaced by odd things: an answer, or one sentence."""

import datetime
import inspect

import numpy as np
import pytest
import scipy.sparse

import bittern as bt
from bittern.metrics import significance

BITS = np.random.default_rng(0).integers(0, 2, (6, 4))
X = np.random.default_rng(1).standard_normal((6, 4))
CODES = bt.Codes.from_bits(BITS)
TRUTH = bt.Relevance.from_classes([0, 1, 0, 1, 2, 2], [0, 1, 0, 1, 2, 2])
PROFILE = bt.TieProfile.from_codes(CODES, CODES, TRUTH)
INDEX = bt.FlatIndex(CODES)
HITS = INDEX.search(CODES, 3)
SCORES = bt.evaluate(PROFILE, ["ap"])
SIDES = {"a": X[:, 0], "b": X[:, 1]}


ODD = {
    "none": None, "text": "abc", "bytes": b"abc", "dictionary": {"a": 1}, "object": object(),
    "ragged": [[1], [2, 3]], "true": True, "minus one": -1, "a half": 0.5, "NaN": np.nan,
    "infinity": np.inf, "huge": 10**30, "thousands of digits": 10**5000, "complex": 1j,
    "NUL": "a\0b", "lines": "a\nb\n", "long": "x" * 10_000, "0-D": np.array(3),
    "date": datetime.date(2020, 1, 1), "3-D": np.zeros((2, 2, 2)), "empty": np.zeros((0, 4)),
    "int8": np.int8(3), "objects": np.array([[1, "a"]] * 6, object),
    "records": np.zeros(6, [("a", "i4")]), "masked": np.ma.masked_less(X, 0),
    "overflowing": X * 1e200, "vanishing": X * 1e-200, "sparse": scipy.sparse.coo_array(BITS),
    "codes": CODES, "beyond int64": np.full(6, 2**64 - 1, np.uint64),
    "negative": np.full((6, 3), -5),
}  # fmt: skip

CALLS = {
    "Codes": (bt.Codes, {"words": CODES.words, "n_bits": 4}),
    "Codes.from_bits": (bt.Codes.from_bits, {"bits": BITS}),
    "Codes.from_packed": (
        bt.Codes.from_packed,
        {"packed": CODES.to_packed(), "n_bits": 4, "bitorder": "big"},
    ),
    "Codes.concatenate": (bt.Codes.concatenate, {"parts": [CODES]}),
    "Codes.load": (bt.Codes.load, {"path": "none.npz", "n_bits": 4, "bitorder": "big"}),
    "Codes.save": (CODES.save, {"path": "none/codes.npz"}),
    "Codes.to": (CODES.to, {"kind": "ubinary", "path": "none/a.npy", "bitorder": "big"}),
    "Codes.to vespa": (
        lambda **given: CODES.to("vespa", "none/a.jsonl", **given),
        {"ids": None, "metadata": None, "name": None},
    ),
    "Codes[]": (lambda rows: CODES[rows], {"rows": 0}),
    "Hits[]": (lambda query: HITS[query], {"query": 0}),
    "Hits.bands": (HITS.bands, {"query": 0, "most_items": None}),
    "from_classes": (
        bt.Relevance.from_classes,
        {"query_labels": [0, 1], "database_labels": [0, 1]},
    ),
    "from_tags": (bt.Relevance.from_tags, {"query_tags": BITS, "database_tags": BITS}),
    "from_matrix": (bt.Relevance.from_matrix, {"gains": BITS}),
    "from_ball": (
        bt.Relevance.from_ball,
        {"query_vectors": X, "database_vectors": X, "radius": 1.0, "metric": "cosine"},
    ),
    "from_thresholds": (
        bt.Relevance.from_thresholds,
        {"query_vectors": X, "database_vectors": X, "radii": [1.0], "gains": [1]},
    ),
    "from_neighbours": (
        bt.Relevance.from_neighbours,
        {"query_vectors": X, "database_vectors": X, "k": 2},
    ),
    "Relevance.take": (bt.Relevance.from_matrix(BITS).take, {"queries": [0]}),
    "TieProfile.take": (PROFILE.take, {"queries": [0]}),
    "TieProfile.save": (PROFILE.save, {"path": "none/p.npz"}),
    "from_distances": (bt.TieProfile.from_distances, {"distances": X[:, :4], "relevance": TRUTH}),
    "from_hits": (
        bt.TieProfile.from_hits,
        {"ids": HITS.ids, "distances": HITS.distances, "relevance": TRUTH, "offsets": None},
    ),
    "from_run": (bt.TieProfile.from_run, {"run": None, "qrels": None}),
    "ball_radius": (
        bt.ball_radius,
        {"train_vectors": X, "neighbours": 2, "sample": 3, "random_state": 0},
    ),
    "distance_percentiles": (
        bt.distance_percentiles,
        {"train_vectors": X, "percentiles": [5], "sample": 3, "random_state": 0},
    ),
    "evaluate": (
        lambda profile, metrics, random_state: bt.evaluate(
            profile, metrics, random_state=random_state
        ),
        {"profile": PROFILE, "metrics": ["ap"], "random_state": 0},
    ),
    "MetricName": (bt.MetricName, {"metric": "ap", "cutoff": 3, "radius": None, "options": ()}),
    "rmse": (bt.rmse, {"predicted": X, "true": X}),
    "compare_systems": (
        bt.metrics.compare_systems,
        {"scores": {"a": SCORES, "b": SCORES}, "baseline": "a", "alpha": 0.05, "n_bits": None},
    ),
    "truth_overlap": (bt.metrics.truth_overlap, {"first": TRUTH, "second": TRUTH}),
    "search": (INDEX.search, {"queries": CODES, "k": 2, "where": None}),
    "positions_of": (INDEX.positions_of, {"ids": [0]}),
    "rerank": (
        bt.index.rerank,
        {"hits": HITS, "queries": X, "vectors": X, "distance": "l2", "ids": None},
    ),
    "groups_within": (bt.index.groups_within, {"codes": CODES, "radius": 1, "link": "complete"}),
    "table_surface": (
        lambda **given: bt.table_surface(CODES, CODES, TRUTH, **given),
        {"n_tables": [1], "bits_per_table": [2], "segments": "consecutive", "probe": 0},
    ),
    "audit": (
        bt.audit,
        {"queries": X, "database": X, "hits": HITS.ids, "k": 3, "radius": None, "metric": "cosine"},
    ),
    "compare": (
        significance.compare,
        {"values": SIDES, "baseline": "a", "test": "sign", "alpha": 0.05},
    ),
    "bootstrap_interval": (
        significance.bootstrap_interval,
        {**SIDES, "confidence": 0.9, "n_resamples": 100, "random_state": 0},
    ),
    "randomisation_tests": (
        significance.randomisation_tests,
        {"sides": [(X[:, 0], X[:, 1])], "n_draws": 10, "random_state": 0},
    ),
    "hashers": (lambda name: bt.hashing.HASHERS[name], {"name": "itq"}),
    "LSH": (lambda X, n_bits: bt.hashing.LSH(n_bits).fit(X).encode(X), {"X": X, "n_bits": 4}),
    "int8": (lambda X: bt.quantise.QUANTISERS["int8"]().fit(X).encode(X), {"X": X}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_arguments_get_an_answer_or_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an odd text may be the name of a file
    call, good = CALLS[name]
    for argument in good:
        for odd in ODD.values():
            try:
                call(**{**good, argument: odd})
            except bt.BitternError as error:
                said = str(error)
                assert said.splitlines() == [said] and said.isprintable() and len(said) <= 1100
                assert said.endswith((".", "?", "…"))


@pytest.mark.parametrize("distance", ["l2", "cosine"])
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_reranking_refuses_vectors_whose_squares_are_no_doubles(distance, scale):
    with pytest.raises(bt.InputError, match="overflow doubles, or vanish"):
        bt.index.rerank(HITS, X * scale, X * scale, distance=distance)


def test_cosines_of_long_vectors_rank_as_those_of_short_ones():
    short = bt.index.rerank(HITS, X, X, distance="cosine")
    assert (bt.index.rerank(HITS, X * 1e120, X, distance="cosine").ids == short.ids).all()


def test_masked_entries_are_not_taken_for_numbers():
    hidden = np.ma.masked_array([0, 1, 1], [False, False, True])
    for call in (
        lambda: bt.Relevance.from_classes(hidden, hidden),
        lambda: bt.rmse(hidden, hidden),
        lambda: bt.Codes.from_bits(hidden[None]),
        lambda: bt.hashing.LSH(4).fit(np.ma.masked_less(X, 0)),
    ):
        with pytest.raises(bt.InputError, match="has masked entries"):
            call()


def test_an_audit_does_not_take_a_large_id_for_no_hit():
    hits = np.full((6, 3), 2**63 + 5, np.uint64)
    with pytest.raises(bt.InputError, match="hits must be at most 9223372036854775807"):
        bt.audit(CODES, CODES, hits)


@pytest.mark.parametrize("scale", [1e30, 1e-40])
def test_sth_in_single_precision_does_not_depend_on_scale(scale):
    rows = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    scaled = bt.hashing.STH(8).fit((rows * np.float64(scale)).astype(np.float32))
    assert len(np.unique(scaled.encode(rows).words)) > 40


def test_a_message_cannot_steer_a_terminal_or_break_a_line():
    said = str(bt.InputError("no\n\n   file \x1b[31mred\udc80 \x85here."))
    assert said == r"no\n\n   file \x1b[31mred\udc80 \x85here."


def test_the_table_above_has_only_arguments_that_exist():
    for call, good in CALLS.values():
        inspect.signature(call).bind_partial(**good)
