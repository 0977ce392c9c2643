"""``bittern advise``: shares with their intervals, an honest choice, and what is never seen."""

import dataclasses
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import bittern as bt
from bittern.cli import main
from bittern.errors import FileError, InputError, UnknownNameError
from bittern.experiments import advise
from bittern.experiments.advice import advisor, data, judging, trials
from bittern.experiments.advice.data import draw_sample, truth_of
from bittern.experiments.advice.judging import Resampling
from bittern.experiments.advice.record import Advice, Estimate, Row, Sizes, Skipped, export
from bittern.hashing import HASHERS, LSH
from bittern.inputs import read_vectors
from bittern.registry import Registry
from bittern.report.plots import draw_advice

ROOT = Path(__file__).parents[2]
QUICK = {"methods": "lsh,itq", "n_bits": [8, 16], "n_splits": 2, "budget": np.inf}
TIMES = {"fit_seconds", "encode_microseconds", "search_milliseconds"}


@pytest.fixture(autouse=True)
def small_search(monkeypatch):
    """A million codes are searched only where times matter."""
    monkeypatch.setattr(judging, "ITEMS", 2000)


def blobs(n=300, dim=16, n_classes=4, spread=1.0, random_state=0):
    """Classes of points around centres at the corners of a cube."""
    rng = np.random.default_rng(random_state)
    labels = rng.integers(0, n_classes, n)
    centres = np.where(rng.random((n_classes, dim)) < 0.5, -1.0, 1.0)
    return (centres[labels] + spread * rng.standard_normal((n, dim))).astype(np.float32), labels


X, Y = blobs()


@pytest.fixture(scope="module")
def labelled():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "ITEMS", 2000)
        return advise(X, Y, **QUICK, target=0.7)


# Estimates


def slow_interval(codes, floats, n_resamples=4000):
    """Draw splits and queries again and again, in plain loops, and cut both ends."""
    rng = np.random.default_rng(77)
    n_splits, n_queries = codes.shape
    shares = []
    for _ in range(n_resamples):
        splits, queries = (
            rng.integers(n_splits, size=n_splits),
            rng.integers(n_queries, size=n_queries),
        )
        c, f = codes[splits][:, queries].ravel(), floats[splits][:, queries].ravel()
        known = ~np.isnan(c)
        shares.append(c[known].mean() / f[known].mean())
    return np.quantile(shares, [0.025, 0.975])


@pytest.mark.parametrize("n_splits", [1, 4])
def test_the_interval_of_a_share_is_that_of_drawing_queries_and_splits_again(n_splits):
    rng = np.random.default_rng(1)
    floats = rng.random((n_splits, 60))
    codes = floats * rng.uniform(0.5, 1, (n_splits, 1)) * rng.uniform(0.6, 1, (n_splits, 60))
    floats[:, 7] = codes[:, 7] = np.nan  # a query with nothing relevant
    share = Resampling(n_splits, 60).share(codes, floats)
    assert share.value == pytest.approx(np.nansum(codes) / np.nansum(floats))
    low, high = slow_interval(codes, floats)
    width = high - low
    assert width > 0.01
    np.testing.assert_allclose([share.low, share.high], [low, high], atol=0.12 * width)
    assert share.low < share.value < share.high


def test_pairing_makes_the_interval_of_a_constant_share_a_point():
    # Unpaired, the two means would vary by themselves.
    floats = np.random.default_rng(0).random((2, 30))
    share = Resampling(2, 30).share(0.9 * floats, floats)
    np.testing.assert_allclose([share.value, share.low, share.high], 0.9)


def test_splits_that_differ_widen_the_interval():
    floats = np.ones((3, 40))
    codes = np.array([[0.5], [0.7], [0.9]]) * floats
    assert Resampling(3, 40).share(codes, floats).low == pytest.approx(0.5)
    alone = Resampling(1, 40).share(codes[1:2], floats[1:2])
    assert alone.low == pytest.approx(alone.high) == pytest.approx(0.7)


def test_the_mean_leaves_out_what_is_undefined():
    assert Resampling(1, 3).mean(np.array([[1.0, np.nan, 0.5]])).value == 0.75
    assert np.isnan(Resampling(1, 2).mean(np.array([[np.nan, np.nan]])).value)


# Rows and truth


def test_training_rows_queries_and_database_are_disjoint_in_every_split():
    sample = draw_sample(X, Y, 3)
    everything = []
    for split in range(3):
        train, database = sample.divide(split)
        parts = np.concatenate([sample.queries, train, database])
        assert sorted(parts) == list(range(len(X)))
        everything.append(train.tolist())
        assert (len(train), len(database)) == (sample.n_train, sample.n_database)
    assert everything[0] != everything[1] != everything[2]


def test_large_inputs_are_sampled_and_said_to_be(monkeypatch):
    monkeypatch.setattr(data, "MOST_TRAIN", 90)
    monkeypatch.setattr(data, "MOST_DATABASE", 80)
    monkeypatch.setattr(data, "MOST_QUERIES", 40)
    advice = advise(X, methods="lsh", n_bits=[8], n_splits=1)
    assert dataclasses.astuple(advice.sizes)[3:] == (84, 20, 20, 86)
    assert (
        "300 vectors of 16 dimensions. 210 random ones were used. Methods were fitted on 84"
        in advice.notes()
    )


def test_of_a_mapped_file_only_the_sample_is_read(tmp_path, monkeypatch):
    # A hole of 16 GB on disk: reading all of it would be noticed.
    for name in ("MOST_DATABASE", "MOST_TRAIN", "MOST_QUERIES"):
        monkeypatch.setattr(data, name, 60)
    made = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (4_000_000, 1000))
    del made
    sample = draw_sample(read_vectors(tmp_path / "x.npy").vectors, None, 0)
    assert sample.vectors.shape == (180, 1000)
    assert sample.n_given == 4_000_000


def textbook_ap(order, relevant):
    hits = [rank for rank, item in enumerate(order, 1) if relevant[item]]
    return np.mean([(i + 1) / rank for i, rank in enumerate(hits)]) if hits else np.nan


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_ceiling_is_the_precision_of_the_ranking_by_floats(metric):
    shifted = X + 5000  # far from the origin
    sample = draw_sample(shifted, Y, 0)
    _, database = sample.divide(0)
    truth = truth_of(sample, database, metric, 10)
    for i, q in enumerate(sample.queries[:10]):
        a, b = shifted[q].astype(float), shifted[database].astype(float)
        if metric == "euclidean":
            distance = np.linalg.norm(b - a, axis=1)
        else:
            distance = 1 - b @ a / np.linalg.norm(a) / np.linalg.norm(b, axis=1)
        expected = textbook_ap(np.argsort(distance), Y[database] == Y[q])
        assert truth.ceiling[i] == pytest.approx(expected, abs=1e-6)
    assert 0.3 < truth.ceiling.mean() < 0.99


def test_ties_of_whole_numbers_stay_ties_in_the_ceiling():
    # Corners of a cube: in expectation over ties, not in whatever order rounding gives.
    rng = np.random.default_rng(0)
    corners, labels = rng.integers(0, 2, (400, 7)), rng.integers(0, 2, 400)
    sample = draw_sample(corners, labels, 0)
    _, database = sample.divide(0)
    truth = truth_of(sample, database, "euclidean", 10)
    apart = (corners[sample.queries][:, None] != corners[database]).sum(axis=-1)
    profile = bt.TieProfile.from_distances(apart, truth.relevance)
    expected = bt.evaluate(profile, "ap")["ap"].per_query
    np.testing.assert_allclose(truth.ceiling, expected, rtol=1e-12)


# What is never seen


class Spy(LSH):
    """Remembers which rows it was fitted on and which it encoded; column 0 names a row."""

    fitted, encoded = [], []

    def fit(self, X, y=None):
        """Fit, and remember."""
        Spy.fitted.append(set(np.asarray(X)[:, 0].astype(int).tolist()))
        return super().fit(X, y)

    def encode(self, X):
        """Encode, and remember."""
        Spy.encoded.append(set(np.asarray(X)[:, 0].astype(int).tolist()))
        return super().encode(X)


def test_nothing_fitted_sees_a_query_or_the_database(monkeypatch):
    for module in ("bittern.experiments.advice.trials", "bittern.experiments.advice.advisor"):
        monkeypatch.setattr(f"{module}.HASHERS", Registry("hasher", {"spy": Spy}))
    Spy.fitted, Spy.encoded = [], []
    named = np.hstack([np.arange(len(X))[:, None], X])
    advise(named, Y, methods="spy", n_bits=[8, 16], n_splits=3, budget=np.inf)
    assert len(Spy.fitted) == 2 * 3  # lengths by splits, and none is fitted again at the end
    for fit, queries, database in zip(
        Spy.fitted, Spy.encoded[::2], Spy.encoded[1::2], strict=False
    ):
        assert not fit & queries and not fit & database and not queries & database
        assert len(fit | queries | database) == len(X)
    assert len({frozenset(fit) for fit in Spy.fitted}) == 3


def test_the_figures_are_of_queries_that_had_no_part_in_the_choice(labelled):
    sample = draw_sample(X, Y, 0)
    row = labelled.rows[0]
    shares = {"validation": [], "test": []}
    for split in range(2):
        train, database = sample.divide(split)
        truth = truth_of(sample, database, "euclidean", 10)
        hasher = HASHERS[row.method](n_bits=row.n_bits, random_state=split).fit(X[train])
        queries = hasher.encode(X[sample.queries])
        scores = bt.evaluate(queries, hasher.encode(X[database]), truth.relevance, "ap")
        for name, half in (("validation", sample.validation), ("test", sample.test)):
            shares[name].append((scores["ap"].per_query[half].sum(), truth.ceiling[half].sum()))
    codes, floats = np.sum(shares["validation"], axis=0)
    assert row.validation_share.value == pytest.approx(codes / floats)
    codes, floats = np.sum(shares["test"], axis=0)
    assert row.share.value == pytest.approx(codes / floats)
    assert row.share != row.validation_share


# The answer


def test_classes_at_corners_of_a_cube_need_few_bits():
    vectors, labels = blobs(400, 32, spread=0.05)
    advice = advise(vectors, labels, methods="lsh,itq", n_splits=2, budget=np.inf)
    assert advice.choice.n_bits <= 16
    assert advice.choice.share.value >= 0.95
    assert advice.ceiling.value == pytest.approx(1)


def test_the_neighbours_of_noise_are_not_kept_by_few_bits():
    noise = np.random.default_rng(0).standard_normal((400, 64))
    advice = advise(noise, **QUICK)
    assert advice.choice is None and advice.safe_choice is None and advice.rerank_choice is None
    assert advice.ceiling == Estimate(1.0, 1.0, 1.0)
    best = advice.best
    value, low, high = (100 * x for x in dataclasses.astuple(best.share))
    assert advice.sentence.startswith(
        "No method keeps 95 % of the float ranking's quality "
        "(average precision of the 10 nearest). "
        f"Best overall: {best.method} at {best.n_bits} bits keeps "
        f"{value:.1f} % ({low:.1f} to {high:.1f})"
    )
    assert advice.recommended is best
    assert 0.03 < best.share.value < 0.6


def test_candidates_for_reranking_are_an_answer_too():
    noise = np.random.default_rng(0).standard_normal((400, 8))
    advice = advise(noise, methods="lsh", n_bits=[4, 64], k=3, candidates=30, target=0.9)
    row = advice.rerank_choice
    assert advice.choice is None and advice.recommended is row
    assert row.n_bits == 64 and row.recall.value > 0.9
    assert f"the first 30 by lsh at 64 bits hold {100 * row.recall.value:.1f} %" in advice.sentence
    assert "recall@30" in advice.table() and "for reranking" in advice.table()


def test_methods_that_learn_from_labels_may_beat_the_floats():
    vectors, labels = blobs(400, 8)
    noise = np.random.default_rng(1).standard_normal((400, 40))  # nothing to the labels
    advice = advise(
        np.hstack([vectors, noise]), labels, methods="lsh,itq-cca", n_bits=[16, 32], n_splits=2
    )
    learned = [row for row in advice.rows if row.learns_from_labels]
    assert {row.method for row in learned} == {"itq-cca"}
    assert max(row.share.value for row in learned) > 1
    assert "a share above 100 %" in " ".join(advice.notes().split())


def test_tags_are_a_truth_too():
    advice = advise(X, np.eye(4, dtype=int)[Y], **QUICK)
    again = advise(X, Y, **QUICK)
    assert advice.truth == "tags" and again.truth == "classes"
    assert [row.share for row in advice.rows] == [row.share for row in again.rows]


def without_times(advice):
    return [
        {key: value for key, value in dataclasses.asdict(row).items() if key not in TIMES}
        for row in advice.rows
    ]


def test_one_random_state_gives_the_same_advice(labelled):
    again, other = (advise(X, Y, **QUICK, target=0.7, random_state=s) for s in (0, 1))
    assert without_times(again) == without_times(labelled) != without_times(other)
    assert again.sentence == labelled.sentence


# The choice, by rows that are made up


def estimate(value, half=0.0):
    return Estimate(value, value - half, value + half)


def row(method, n_bits, chosen_by, judged=None, half=0.01, *, learns=False, recall=None):
    return Row(
        method=method,
        n_bits=n_bits,
        learns_from_labels=learns,
        share=estimate(chosen_by if judged is None else judged, half),
        precision=estimate(0.5),
        recall=None if recall is None else estimate(recall),
        validation_share=estimate(chosen_by, half),
        validation_recall=None if recall is None else estimate(recall),
        fit_seconds=0.1,
        encode_microseconds=2.0,
        search_milliseconds=0.5,
    )


def made_up(*rows, target=0.95, **more):
    facts = {
        "target": target,
        "truth": "classes",
        "k": 10,
        "cutoff": 100,
        "metric": "euclidean",
        "ceiling": estimate(0.6),
        "rows": rows,
        "skipped": (),
        "sizes": Sizes(1000, 100, 400, 400, 100, 100, 400),
        "n_splits": 3,
        "budget": 120.0,
        "seconds": 60.0,
        "random_state": 0,
        "speed": None,
        "hashers": {},
    }
    return Advice(**{**facts, **more})


def test_the_fewest_bits_come_first_and_then_the_better_method():
    short, better, long = row("lsh", 32, 0.955), row("itq", 32, 0.96), row("lsh", 64, 0.99)
    advice = made_up(long, short, better, row("lsh", 16, 0.9))
    assert advice.choice is better
    assert advice.safe_choice is better  # 0.96 - 0.01
    assert advice.best is long
    assert advice.sentence == (
        "itq at 32 bits keeps 96.0 % (95.0 to 97.0) of the float ranking's average precision, "
        "in 4 MB per million items instead of 400."
    )


def test_much_more_than_was_asked_for_is_reported():
    short, more = row("itq", 8, 1.1), row("itq", 16, 1.2)
    told = "Best overall: itq at 16 bits, 120.0 % (119.0 to 121.0)."
    assert made_up(short, more).sentence.endswith(told)
    assert told not in made_up(row("itq", 8, 1.16), more).sentence


@pytest.mark.parametrize(
    ("advice", "says"),
    [
        (made_up(row("itq", 64, 0.96)), None),
        (
            made_up(row("itq", 64, 0.9), skipped=[Skipped("ksh", (8, 16), "", lacked_time=True)]),
            "Next, allow more time, --budget 240 (budget=240): ksh could not be tried",
        ),
        (
            made_up(row("itq", 32, 0.5), row("itq", 64, 0.9)),
            "Next, try longer codes: --bits 128 (n_bits=[128]).",
        ),
        (
            made_up(row("itq", 32, 0.9, recall=0.5), row("itq", 64, 0.8, recall=0.5),
                    truth="neighbours"),
            "Next, rerank more candidates: --candidates 400 (candidates=400).",
        ),
        (
            made_up(row("itq", 32, 0.907), row("itq", 64, 0.8)),
            "Next, ask for less: --target 0.9 (target=0.9).",
        ),
        (
            made_up(row("itq", 4096, 0.907)),
            "Next, ask for less: --target 0.9 (target=0.9).",
        ),
    ],
)  # fmt: skip
def test_if_nothing_keeps_the_target_the_option_to_try_next_is_named(advice, says):
    assert ("Next," in advice.sentence) == (says is not None)
    assert says is None or says in advice.sentence


def test_a_default_method_without_its_library_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    advice = advise(X, Y, n_bits=[8], n_splits=1, budget=1e-9)
    (lacking,) = [one for one in advice.skipped if one.method == "talr"]
    assert lacking.reason == "needs PyTorch; pip install 'bittern[deep]'"


def test_a_choice_that_is_sure_is_the_surer_choice_too():
    wide, narrow = row("sdh", 8, 1.3, half=0.2), row("ksh", 8, 1.29)
    advice = made_up(wide, narrow)
    assert advice.choice is advice.safe_choice is wide


def test_what_chooses_is_not_what_judges():
    advice = made_up(row("lsh", 16, 0.96, judged=0.93), row("itq", 32, 0.94, judged=0.99))
    assert advice.choice.method == "lsh"
    assert "keeps 93.0 % (92.0 to 94.0)" in advice.sentence
    assert "That is below 95 %; on the queries that chose it, it kept 96 %." in advice.sentence


def test_a_surer_choice_is_offered_where_there_is_one():
    doubtful, sure = row("itq", 32, 0.955), row("itq", 64, 0.97)
    assert made_up(doubtful, sure).sentence.endswith(
        "To be sure of 95 %, take itq at 64 bits: 97.0 % (96.0 to 98.0)."
    )
    assert made_up(doubtful).sentence.endswith("No method has its whole interval above 95 %.")


def test_a_choice_that_learned_from_labels_is_set_beside_one_that_did_not():
    learned, plain = row("sdh", 16, 1.4, learns=True), row("itq", 64, 0.97)
    assert "Without learning from labels, take itq at 64 bits" in made_up(learned, plain).sentence
    alone = made_up(learned, row("itq", 64, 0.7)).sentence
    assert "Without learning from labels, no method keeps as much." in alone


def test_the_table_has_the_best_of_each_length_or_everything():
    rows = row("lsh", 16, 0.5), row("itq", 16, 0.6), row("lsh", 32, 0.97), row("itq", 32, 0.96)
    advice = made_up(*rows)
    lines = advice.table().splitlines()
    assert [line.split()[:2] for line in lines[3:]] == [["itq", "16"], ["lsh", "32"]]
    assert lines[2].split()[:3] == ["float", "ranking", "3,200"]
    assert lines[4].endswith("← fewest bits, best")
    assert len(advice.table(every=True).splitlines()) == 3 + 4
    assert str(advice).startswith(advice.sentence[:60])
    assert repr(advice) == str(advice)


def test_json_has_everything_but_hashers(labelled):
    plain = json.loads(labelled.to_json())
    assert len(plain["rows"]) == len(labelled.rows) == 4
    assert plain["rows"][1]["share"]["low"] == labelled.rows[1].share.low
    assert plain["sentence"] == labelled.sentence
    assert plain["budget"] is None  # infinite
    assert plain["choice"] == {
        "method": labelled.choice.method,
        "n_bits": labelled.choice.n_bits,
    }


# Time


class Clock:
    """Seconds that pass only where a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        """The time."""
        return self.now


SETTINGS = trials.AdviceSettings(
    ("lsh", "itq", "ksh"), (8, 16, 32), 0.95, "euclidean", 10, 100, 5, 100.0
)


def test_the_cheapest_is_next_and_what_does_not_fit_is_skipped(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(trials, "perf_counter", clock)
    cost = {"lsh": 0.1, "itq": 0.5, "ksh": 2.0}  # seconds a bit
    queue, order = trials._Queue(SETTINGS, 0.0), []
    for method, n_bits in queue:
        order.append((method, n_bits))
        clock.now += cost[method] * n_bits
        queue.took(method, n_bits, cost[method] * n_bits)
    # A method begins as expensively as any before: itq after lsh 16, which is thought to take 0.8.
    # Of the 50 s, 0.8 + 1.6 + 4 + 3.2 + 8 + 16 + 16 are used; ksh is dear and waits.
    assert order == [
        ("lsh", 8), ("lsh", 16), ("itq", 8), ("lsh", 32), ("itq", 16), ("itq", 32), ("ksh", 8),
    ]  # fmt: skip
    (skipped,) = queue.skipped
    assert (skipped.method, skipped.n_bits) == ("ksh", (16, 32))
    assert skipped.reason == "16 bits would take about 16 s, too long"
    assert skipped.lacked_time

    # Time is left after the splits, so that ksh goes on, in 3 splits at once.
    clock.now = 60.0
    queue.resume(3)
    assert list(queue) == []  # 16 bits would take 3 times 16 s, and 40 s of 100 are left
    clock.now = 50.0
    queue.resume(3)
    for method, n_bits in queue:
        order.append((method, n_bits))
        clock.now += 3 * cost[method] * n_bits
        queue.took(method, n_bits, cost[method] * n_bits)
    assert order[7:] == [("ksh", 16)]
    assert queue.skipped[0].n_bits == (32,)


@pytest.mark.parametrize(
    ("budget", "n_splits", "tried"),
    [
        (70.0, 1, [8, 16]),  # the first split stops at 35 s, and nothing else needs the rest
        (55.0, 1, [8]),
        (59.0, 2, [8]),  # a second split takes 60 s, and so does another length
        (1000.0, 2, [8, 16]),
    ],
)
def test_time_that_is_left_goes_to_what_was_postponed(monkeypatch, budget, n_splits, tried):
    use(monkeypatch, Slow)
    monkeypatch.setattr(Slow, "clock", Clock())
    for module in (trials, advisor):
        monkeypatch.setattr(module, "perf_counter", Slow.clock)
    advice = advise(X, methods="made", n_bits=[8, 16], n_splits=n_splits, budget=budget)
    assert [row.n_bits for row in advice.rows] == tried
    assert [skipped.n_bits for skipped in advice.skipped] == [(16,)] * (len(tried) < 2)
    assert all(skipped.lacked_time for skipped in advice.skipped)


def test_longer_codes_are_left_where_shorter_ones_surely_keep_the_target():
    queue, order = trials._Queue(SETTINGS, trials.perf_counter()), []
    for method, n_bits in queue:
        order.append((method, n_bits))
        if method == "lsh":
            queue.kept(method, n_bits)
    assert ("itq", 16) in order and ("itq", 32) not in order  # lsh kept it with 8 and with 16 bits
    assert ("ksh", 32) in order  # it learns from labels
    assert {(s.method, s.n_bits) for s in queue.skipped} == {("lsh", (32,)), ("itq", (32,))}
    assert queue.skipped[0].reason == "shorter codes surely keep the target"


def test_a_budget_that_is_too_small_is_said_to_have_cut():
    advice = advise(X, methods="lsh,itq,pcah", n_bits=[8, 16], budget=1e-9)
    assert [(row.method, row.n_bits) for row in advice.rows] == [("lsh", 8)]
    assert advice.n_splits == 1
    assert {(s.method, s.n_bits) for s in advice.skipped} == {
        ("lsh", (16,)), ("itq", (8, 16)), ("pcah", (8, 16)),
    }  # fmt: skip
    said = " ".join(advice.notes().split())
    assert "itq from 8 bits, pcah from 8 bits (no time was left to try it)" in said
    assert "one split, so the intervals cover only the choice of queries" in said


class Slow(LSH):
    """Takes 30 seconds to fit."""

    clock = None

    def _fit(self, X, targets):
        super()._fit(X, targets)
        self.clock.now += 30.0


class Failing(LSH):
    """Refuses one length."""

    def _fit(self, X, targets):
        if self.n_bits == 16:
            raise InputError("Failing: n_bits must not be 16.")
        super()._fit(X, targets)


def use(monkeypatch, method):
    table = Registry("hasher", {**HASHERS, "made": method})
    for module in ("trials", "advisor"):
        monkeypatch.setattr(f"bittern.experiments.advice.{module}.HASHERS", table)


def test_what_fails_is_reported_and_the_others_go_on(monkeypatch):
    use(monkeypatch, Failing)
    advice = advise(X, methods="made", n_bits=[8, 16, 32], n_splits=1)
    assert [row.n_bits for row in advice.rows] == [8, 32]
    assert "Not tried: made 16 bits (Failing: n_bits must not be 16)." in advice.notes()
    with pytest.raises(InputError, match="nothing could be tried: Failing: n_bits must not be 16"):
        advise(X, methods="made", n_bits=[16], n_splits=1)


class Stopped(LSH):
    """The user presses Ctrl-C while it has a model already."""

    def _fit(self, X, targets):
        super()._fit(X, targets)
        raise KeyboardInterrupt


def test_ctrl_c_within_a_fit_ends_everything(monkeypatch):
    use(monkeypatch, Stopped)
    with pytest.raises(KeyboardInterrupt, match="advise: stopped; nothing was written"):
        advise(X, methods="made", n_bits=[8])


# Speed


def test_speed_is_measured_by_repeated_codes_and_over_those_at_hand(monkeypatch):
    codes = bt.Codes.from_bits(np.random.default_rng(0).random((60, 16)) < 0.5)
    sizes = []
    monkeypatch.setattr(
        judging, "_milliseconds", lambda index, queries: sizes.append(len(index)) or 1
    )
    judging.search_milliseconds(codes, codes)
    assert judging.search_speed(codes, codes) is None  # too few to tell anything
    monkeypatch.setattr(judging, "FEWEST_INDEXED", 50)
    assert judging.search_speed(codes, codes).n_items == 60
    assert sizes == [2000, 60, 60]


def test_the_codes_that_are_searched_are_near_those_at_hand():
    codes = bt.Codes.from_bits(np.random.default_rng(0).random((60, 70)) < 0.5)
    many = judging._like(codes)
    apart = many.to_bits() != codes.to_bits()[np.arange(2000) % 60]
    assert apart.mean() == pytest.approx(1 / 16, abs=0.004)  # 140,000 bits
    assert (apart.mean(axis=0) > 0.03).all()


def test_times_are_there(labelled):
    for r in labelled.rows:
        assert r.search_milliseconds > 0 and r.fit_seconds > 0 and r.encode_microseconds > 0
    assert labelled.seconds > 0


# Files and the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("vectors")
    np.save(here / "x.npy", X)
    np.save(here / "y.npy", Y)
    np.savez(here / "x.npz", X=X, other=Y)
    np.savez(here / "odd.npz", a=X, b=X)
    np.save(here / "flat.npy", X[0])
    np.save(here / "few.npy", X[:50])
    np.save(here / "nan.npy", np.where(np.arange(300)[:, None] == 41, np.nan, X))
    np.save(here / "names.npy", np.array([["a"]] * 300))
    np.save(here / "one.npy", np.zeros(300, int))
    np.save(here / "own.npy", np.arange(300))
    np.save(here / "tags.npy", 2 * np.ones((300, 4), int))
    np.save(here / "zero.npy", X * (np.arange(300) != 5)[:, None])
    (here / "text.npy").write_text("no array")
    (here / "there").mkdir()
    return here


@pytest.fixture
def bittern(folder, monkeypatch, capsys):
    def call(*words):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["bittern", "advise", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capsys.readouterr())

    return call


SHORT = ("--methods", "lsh,itq", "--bits", "8,16", "--splits", 1)


def test_the_command_says_what_the_library_says(bittern):
    code, out, err = bittern("--vectors", "x.npz", "--labels", "y.npy", *SHORT, "--format", "json")
    assert (code, err) == (0, "")
    advice = advise(X, Y, methods=["lsh", "itq"], n_bits=[8, 16], n_splits=1)
    said = json.loads(out)
    assert said["sentence"] == advice.sentence
    assert [row["share"]["value"] for row in said["rows"]] == [r.share.value for r in advice.rows]


def test_the_command_writes_a_curve_and_a_folder(bittern, folder):
    given = (
        "--vectors",
        "x.npy",
        "--labels",
        "y.npy",
        "--plot",
        "c.svg",
        "--export",
        "out",
        "--all",
    )
    code, out, err = bittern(*given, *SHORT)
    assert (code, err) == (0, "")
    assert ET.parse(folder / "c.svg").getroot().tag.endswith("svg")
    assert {path.name for path in (folder / "out").iterdir()} == {
        "hasher.npz", "advice.json", "advice.txt",
    }  # fmt: skip
    said = json.loads((folder / "out" / "advice.json").read_text())
    hasher = bt.hashing.load(folder / "out" / "hasher.npz")
    assert {"method": hasher.name, "n_bits": hasher.n_bits} == said["recommended"]
    train, _ = draw_sample(X, Y, 0).divide(0)
    measured = HASHERS[hasher.name](n_bits=hasher.n_bits).fit(X[train], Y[train])
    np.testing.assert_array_equal(hasher.encode(X).words, measured.encode(X).words)
    assert "The curve is in c.svg.\nout/hasher.npz has " in out
    assert f"fitted on {len(train)} rows" in out
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--vectors", "none.npy"), "none.npy: no such file."),
        (("--vectors", "text.npy"), "text.npy: is text; give arrays as .npy"),
        (("--vectors", "odd.npz"), "several arrays may be the vectors; choose one, like --key 'a'"),
        (("--vectors", "flat.npy"), "no array is 2-D numbers; the file has 'flat' "),
        (("--vectors", "names.npy"), "no array is 2-D numbers; the file has 'names' text"),
        (("--vectors", "few.npy"), "vectors must have at least 200 rows, got 50."),
        (("--vectors", "nan.npy"), "vectors must be finite, but row 41 is not."),
        (("--vectors", "zero.npy", "--metric", "cosine"), "needs rows that are not all zero."),
        (("--vectors", "x.npy", "--labels", "few.npy"), "for each of 300 rows, got 50."),
        (("--vectors", "x.npy", "--labels", "one.npy"), "at least two classes, got one."),
        (("--vectors", "x.npy", "--labels", "own.npy"), "queries has anything relevant among 120"),
        (("--vectors", "x.npy", "--labels", "tags.npy"), "tags (n, n_tags), booleans or 0/1"),
        (("--vectors", "x.npy", "--target", "95"), "such as 0.95 for 95 %, got 95.0."),
        (("--vectors", "x.npy", "--target", "0"), "above 0 and at most 1, "),
        (("--vectors", "x.npy", "--target", "nan"), "above 0 and at most 1, "),
        (("--vectors", "x.npy", "--budget", "0"), "number of seconds above 0, got 0.0."),
        (("--vectors", "x.npy", "--methods", "itk"), "no hasher is called 'itk'; did you mean"),
        (("--vectors", "x.npy", "--methods", "sdh"), "learns from labels, but none were given."),
        (("--vectors", "x.npy", "--bits", "8,many"), "number between 1 and 4096, got 'many'"),
        (("--vectors", "x.npy", "--bits", "0"), "--bits must be between 1 and 4096, got 0."),
        (("--vectors", "x.npy", "-k", "120", "--candidates", "200"), "k must be below the 120 "),
        (("--vectors", "x.npy", "--splits", "0"), "--splits must be at least 1, got 0."),
        (("--vectors", "x.npy", "--export", "there"), "there: exists already; give the name"),
        (("--vectors", "x.npy", "--export", "no/where"), "there is no folder no."),
        (("--vectors", "x.npy", "--plot", "curve.gif"), "written as .svg, .png or .pdf, got .gif."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(bittern, words, says):
    code, out, err = bittern(*words)
    assert (code, out) == (2, "")
    assert err.startswith("bittern: ") and err.count("\n") == 1
    assert says in err


def test_ctrl_c_leaves_nothing_behind(bittern, folder, monkeypatch):
    use(monkeypatch, Stopped)
    before = sorted(path.name for path in folder.iterdir())
    code, out, err = bittern("--vectors", "x.npy", "--methods", "made", "--export", "new")
    assert (code, out) == (130, "")
    assert err == "bittern: advise: stopped; nothing was written.\n"
    assert sorted(path.name for path in folder.iterdir()) == before


def test_an_export_that_fails_leaves_nothing_behind(labelled, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(labelled.hasher), "save", full)
    with pytest.raises(FileError, match="out: cannot be written"):
        export(labelled, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_of_the_library_say_what_rule_they_broke():
    for error, says, arguments in [
        (InputError, "metric must be one of 'euclidean', 'cosine', got 'l1'", {"metric": "l1"}),
        (InputError, "n_bits must be a list of lengths, got 8", {"n_bits": 8}),
        (InputError, "at least one length", {"n_bits": []}),
        (InputError, "at least one method", {"methods": []}),
        (InputError, "target must be a share", {"target": "0.9"}),
        (InputError, "at most 2", {"labels": Y, "target": 2.5}),
        (InputError, "candidates must be at least 20", {"k": 20, "candidates": 10}),
        (InputError, "random_state must be", {"random_state": -1}),
        (UnknownNameError, "no hasher is called", {"methods": ["itq", "x"]}),
    ]:
        with pytest.raises(error, match=re.escape(says)):
            advise(X, **arguments)


# The curve


def test_the_same_advice_gives_the_same_curve(labelled, tmp_path):
    draw_advice(tmp_path / "a.svg", labelled)
    draw_advice(tmp_path / "b.svg", labelled)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    other = dataclasses.replace(labelled, target=0.5)
    draw_advice(tmp_path / "c.svg", other)
    assert (tmp_path / "c.svg").read_bytes() != (tmp_path / "a.svg").read_bytes()


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "advise.md").read_text()
    names = {}
    for source in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(source, names)
    assert names["advice"].sentence in " ".join(capsys.readouterr().out.split())
