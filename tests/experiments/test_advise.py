"""``bittern advise``: shares with their intervals, an honest choice, and what is never seen."""

import itertools
import json
import re
import runpy
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from bittern.cli import main
from bittern.errors import FileError, InputError, UnknownNameError
from bittern.experiments import advise
from bittern.experiments.advice import trials
from bittern.experiments.advice.contenders import Contender, contenders, suited
from bittern.experiments.advice.counting import Rescorer, count_relevant
from bittern.experiments.advice.data import draw_sample
from bittern.experiments.advice.export import export
from bittern.experiments.advice.extrapolation import predict_ratios, predict_shares
from bittern.experiments.advice.judging import Resampling
from bittern.experiments.advice.schedule import Schedule
from bittern.hashing import HASHERS, LSH
from bittern.kernels.rescored import expected_relevant
from bittern.registry import Registry
from bittern.relevance import Relevance
from bittern.report.plots import draw_advice

ROOT = Path(__file__).parents[2]
QUICK = {"methods": "int8,binary,itq", "n_bytes": [1, 2], "n_splits": 2, "budget": np.inf}


@pytest.fixture(autouse=True)
def small_search(monkeypatch):
    """Many items are searched only where times matter."""
    monkeypatch.setattr(trials, "TIMED_ITEMS", 300)


def blobs(n=300, dim=16, n_classes=4, spread=1.0, random_state=0):
    """Classes of points around centres at the corners of a cube."""
    rng = np.random.default_rng(random_state)
    labels = rng.integers(0, n_classes, n)
    centres = np.where(rng.random((n_classes, dim)) < 0.5, -1.0, 1.0)
    return (centres[labels] + spread * rng.standard_normal((n, dim))).astype(np.float32), labels


X, Y = blobs()


@pytest.fixture(scope="module")
def plain():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "TIMED_ITEMS", 300)
        return advise(X, **QUICK, target=0.9)


# What is counted


def test_tied_candidates_are_rescored_in_the_order_of_all_pairs():
    rng = np.random.default_rng(0)
    items, queries = rng.integers(0, 3, (40, 4)).astype(np.float32), np.eye(4, dtype=np.float32)
    estimates = rng.integers(0, 3, (4, 40)).astype(np.float32)
    truth = Relevance.from_neighbours(queries, items, 5)
    cuts, kept = (5, 10, 20), Rescorer.of_floats(items)
    (got,) = count_relevant(
        lambda some: estimates[some], queries, (40,), (truth,), (kept,), cuts, 5
    )
    for q, near in enumerate(((queries[:, None] - items) ** 2).sum(axis=2)):
        order = np.lexsort((np.arange(40), near))
        relevant = truth.levels_of(np.full(40, q), order) > 0
        bounds = np.sort(estimates[q])[np.array(cuts) - 1][None]
        want = expected_relevant(
            estimates[q, order], relevant, np.array([0, 40]), bounds, np.array(cuts), 5
        )
        np.testing.assert_allclose(got[q, 0], want[0])


def test_the_expected_number_of_relevant_items_is_that_of_all_choices_of_tied_ones():
    rng = np.random.default_rng(0)
    estimates = rng.integers(0, 4, 9).astype(np.float32)  # in the order of rescoring
    relevant = rng.random(9) < 0.5
    for cut, k in [(3, 2), (5, 3), (4, 4), (9, 2)]:
        bound = np.sort(estimates)[cut - 1]
        sure, tied = np.flatnonzero(estimates < bound), np.flatnonzero(estimates == bound)
        found = [
            relevant[np.sort([*sure, *some])[:k]].sum()
            for some in itertools.combinations(tied, cut - len(sure))
        ]
        got = expected_relevant(
            estimates, relevant, np.array([0, 9]), np.array([[bound]]), np.array([cut]), k
        )
        assert got[0, 0] == pytest.approx(np.mean(found))


# The line to larger databases


def test_the_extrapolation_finds_what_the_model_says_and_its_interval_covers_it():
    from scipy.special import ndtr, ndtri

    sizes, cuts, n, k = [1000, 2000, 4000, 8000], [10, 20, 40], 100_000, 10

    def share(c, size):
        return ndtr(2.5 + 1.9 * ndtri(c / size) - 1.1 * ndtri(k / size))

    true = np.array([share(c, n) for c in cuts])
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        skill = 0.3 * rng.standard_normal(200)  # a query is easy or hard at every size
        p = np.array([[ndtr(ndtri(share(c, m)) + skill) for c in cuts] for m in sizes])
        counts = rng.binomial(k, p).transpose(0, 2, 1).astype(float)
        found = [Resampling(200).draws(one[None], np.full((1, 200), 10.0)) for one in counts]
        shares, draws = (np.stack(part) for part in zip(*found, strict=True))
        got = predict_shares(sizes, cuts, shares, draws, np.full(4, 2000.0), n)
        # The mean over queries of different skill is near that of the mean query.
        mean = ndtr(ndtri(true) / np.sqrt(1 + 0.09))
        covered += [one.low <= value <= one.high for one, value in zip(got, mean, strict=True)]
        assert abs(got[0].value - mean[0]) < 0.15
    assert np.mean(covered) > 0.85


def test_shares_that_hardly_change_are_predicted_near_what_was_measured():
    sizes, cuts, total = [1800, 3600, 7200, 14_400], [10, 20, 40, 80, 160], 2500
    kept = [[0.90, 0.89, 0.87, 0.86], [0.998, 0.998, 0.994, 0.991], [0.9996, 1, 1, 0.9996]]
    shares = np.array([*kept, [0.9996, 1, 1, 1], [0.9996, 1, 1, 1]]).T  # a few are never found
    rng = np.random.default_rng(0)
    draws = rng.binomial(total, shares[:, None], (4, 500, 5)) / total
    got = predict_shares(sizes, cuts, shares, draws, np.full(4, float(total)), 20_000)
    for one, last in zip(got, shares[-1], strict=True):
        assert one.low < last
        assert abs(one.value - last) < 0.01
        assert one.high - one.low < 0.08
    assert all(one.high - one.low < 0.01 for one in got[2:])


def test_more_candidates_never_find_less_among_more_items():
    sizes, cuts, total = [1800, 3600, 7200, 14_400], [10, 20, 40, 80, 160], 2500
    kept = [[0.81, 0.80, 0.79, 0.78], [0.975, 0.972, 0.97, 0.967], [0.999, 0.999, 0.998, 0.997]]
    shares = np.array([*kept, [1, 1, 1, 0.9998], [1, 1, 1, 1]]).T
    draws = np.random.default_rng(0).binomial(total, shares[:, None], (4, 500, 5)) / total
    got = predict_shares(sizes, cuts, shares, draws, np.full(4, float(total)), 10**7)
    assert got[0].value < 0.75
    for less, more in itertools.pairwise(got):
        assert less.value <= more.value
        assert less.low <= more.low


def test_shares_above_one_follow_a_line_in_the_logarithm_of_the_size():
    sizes = [1000, 2000, 4000]
    shares = (1.5 - 0.1 * np.log(sizes) + 0.6)[:, None]
    draws = shares[:, None] + 0.001 * np.random.default_rng(0).standard_normal((3, 50, 1))
    (got,) = predict_ratios(sizes, shares, draws, 32_000)
    assert got.value == pytest.approx(2.1 - 0.1 * np.log(32_000))
    assert got.low < got.value < got.high < got.low + 0.02


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
    share = Resampling(60).share(codes, floats)
    assert share.value == pytest.approx(np.nansum(codes) / np.nansum(floats))
    low, high = slow_interval(codes, floats)
    width = high - low
    assert width > 0.01
    np.testing.assert_allclose([share.low, share.high], [low, high], atol=0.12 * width)
    assert share.low < share.value < share.high


def test_pairing_makes_the_interval_of_a_constant_share_a_point():
    # Unpaired, the two means would vary by themselves.
    floats = np.random.default_rng(0).random((2, 30))
    share = Resampling(30).share(0.9 * floats, floats)
    np.testing.assert_allclose([share.value, share.low, share.high], 0.9)


def test_splits_that_differ_widen_the_interval():
    floats = np.ones((3, 40))
    codes = np.array([[0.5], [0.7], [0.9]]) * floats
    assert Resampling(40).share(codes, floats).low == pytest.approx(0.5)
    alone = Resampling(40).share(codes[1:2], floats[1:2])
    assert alone.low == pytest.approx(alone.high) == pytest.approx(0.7)


def test_the_mean_leaves_out_what_is_undefined():
    assert Resampling(3).mean(np.array([[1.0, np.nan, 0.5]])).value == 0.75
    assert np.isnan(Resampling(2).mean(np.array([[np.nan, np.nan]])).value)


# Rows and truth


def test_training_rows_queries_and_items_are_disjoint_in_every_split():
    sample = draw_sample(X, Y, 3)
    asked = {tuple(row) for row in sample.queries}
    seen = []
    for split in range(3):
        train, database = sample.divide(split)
        assert sorted([*train, *database]) == sorted(sample.pool)
        assert not asked & {tuple(row) for row in X[sample.pool]}
        seen.append(train.tolist())
    assert seen[0] != seen[1] != seen[2]


def test_of_many_rows_only_the_sample_is_read():
    # 16 GB that take no memory: a copy of all would be noticed.
    made = np.broadcast_to(np.ones(1000, np.float32), (4_000_000, 1000))
    sample = draw_sample(made, None, 0)
    assert sample.queries.shape == (500, 1000)
    assert sample.rows(sample.divide(0)[1][:7]).shape == (7, 1000)


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


def use(monkeypatch, method):
    table = Registry("hasher", {**HASHERS, "made": method})
    monkeypatch.setattr("bittern.experiments.advice.contenders.HASHERS", table)


def test_nothing_fitted_sees_a_query_or_an_item(monkeypatch):
    use(monkeypatch, Spy)
    Spy.fitted, Spy.encoded = [], []
    named = np.hstack([np.arange(len(X))[:, None], X])
    advise(named, Y, methods="made", n_bits=[8], n_splits=3, budget=np.inf)
    assert len({frozenset(fit) for fit in Spy.fitted}) == 3
    everything = Spy.encoded
    first = Spy.fitted[0]
    assert not any(first & some for some in everything[:3])
    assert all(len(fit) == 120 for fit in Spy.fitted)


# The answer


def test_rescoring_keeps_more_and_bytes_include_corrections(plain):
    for row in plain.rows:
        values = [one.value for one in row.shares.expected["float32"]]
        assert all(a <= b + 1e-9 for a, b in itertools.pairwise(values))
        assert row.share.low <= row.share.value <= row.share.high
    by_name = {row.method: row for row in plain.rows}
    assert by_name["int8"].n_bytes == 16 and by_name["binary"].n_bytes == 2
    assert by_name["int8"].share.value > 0.9 > by_name["binary"].share.value
    corrected = advise(X, methods="rabitq-1", n_bytes=[3], n_splits=1, budget=np.inf)
    assert {row.n_bytes for row in corrected.rows} == {3, 4}  # two bytes are corrections


def test_the_answer_is_the_fewest_bytes_within_the_rescoring_allowed(plain):
    row = plain.recommended
    assert plain.needed(row, plain.most) is not None
    fewer = [r for r in plain.rows if r.n_bytes < row.n_bytes]
    assert all(plain.needed(r, plain.most) is None for r in fewer)
    assert plain.sentence.startswith(f"{row.method} at {row.n_bytes} byte")
    assert "In pgvector as it is: binary_quantize with " in plain.sentence
    assert "from float32 vectors" in plain.table() and "↑ the answer" in plain.table()


def test_the_table_can_be_rescored_from_int8(plain):
    coarse = advise(X, **QUICK, target=0.9, rescore_from="int8")
    assert "from int8 vectors" in coarse.table()
    assert (
        "from int8 vectors keeps" in coarse.sentence and "float32 vectors, four" in coarse.sentence
    )
    assert "Rescored from int8 vectors, a quarter of the disk" in plain.sentence
    assert coarse.to_dict()["store"] == "int8"
    for row, same in zip(coarse.rows, plain.rows, strict=True):
        assert coarse.share(row, 4) == plain.share(same, 4, "int8")
        shown = f"{100 * coarse.share(row, 4).value:.1f}".replace("100.0", "100")
        assert shown in coarse.table(every=True)
    assert any(plain.share(row, 16) != plain.share(row, 16, "int8") for row in plain.rows)


def test_a_share_of_which_nothing_was_missed_is_not_certain():
    advice = advise(X, methods="float16", n_splits=1, budget=np.inf)
    share = advice.share(advice.rows[0], 16)
    assert share.value == share.high == 1
    missed = 0.5 / (10 * advice.sizes.test)  # half an item
    assert 1 - 20 * missed < share.low < 1 - missed


def test_nothing_is_called_sure_whose_interval_begins_below_the_target(plain):
    sure = plain.safe_choice
    factor = plain.needed(sure, plain.most, surely=True)
    found = list(sure.shares.expected[plain.store])
    found[plain.factors.index(factor)] = replace(found[plain.factors.index(factor)], low=0.1)
    shares = replace(sure.shares, expected={**sure.shares.expected, plain.store: tuple(found)})
    rows = tuple(replace(row, shares=shares) if row is sure else row for row in plain.rows)
    wide = replace(plain, rows=rows)
    assert "Nothing has its whole interval above" in wide.sentence
    assert "To be sure" not in wide.sentence
    assert "Nothing has its whole interval above" not in plain.sentence


@pytest.mark.parametrize("items", [300, 100_000])
def test_nor_is_one_of_judged_items(items):
    itself = np.eye(60, 300, dtype=int)
    asked = {"queries": X[:60] + 0.001, "relevance": itself, "items": items}
    advice = advise(X, **asked, methods="float16", n_splits=1, budget=np.inf)
    share = advice.share(advice.rows[0], 1)
    assert share.value == pytest.approx(1) and share.high == pytest.approx(1)
    assert 0.8 < share.low < 1 - 0.5 / advice.sizes.test


def test_labels_tags_and_judgements_are_truths_too():
    classes = advise(X, Y, **QUICK)
    tags = advise(X, np.eye(4, dtype=int)[Y], **QUICK)
    assert (classes.truth, tags.truth) == ("classes", "tags")
    assert [row.share for row in classes.rows] == [row.share for row in tags.rows]
    asked, theirs = blobs(60, random_state=0)[0], blobs(60, random_state=0)[1]
    judged = (theirs[:, None] == Y).astype(int) * (np.arange(300) % 7 == 0)
    own = advise(X, queries=asked, relevance=judged, **QUICK)
    assert own.truth == "judgements" and 0 < own.ceiling.value < 1
    assert advise(X, queries=asked, **QUICK).truth == "neighbours"


def test_supervised_methods_are_tried_with_labels():
    assert "sdh" in suited(True) and "sdh" not in suited(False)
    first = contenders(suited(False), None, 384)[:4]
    assert [one.method for one in first] == ["float16", "int8", "binary", "tcq"]


def test_a_larger_corpus_is_extrapolated():
    vectors, _ = blobs(6000, 8)
    advice = advise(vectors, methods="binary,sign", items=10**6, n_splits=1, budget=np.inf)
    row = advice.rows[0]
    measured = [row.shares.measured[n]["float32"][0].value for n in sorted(row.shares.measured)]
    assert len(measured) == 3 and row.share.value < measured[-1] < measured[0]
    assert "extrapolated to 1,000,000" in " ".join(advice.notes().split())


def test_one_random_state_gives_the_same_advice(plain):
    again, other = (advise(X, **QUICK, target=0.9, random_state=seed) for seed in (0, 1))
    assert [row.shares for row in again.rows] == [row.shares for row in plain.rows]
    assert [row.shares for row in other.rows] != [row.shares for row in plain.rows]


def test_a_method_without_its_library_is_named_in_the_answer(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    advice = advise(X, n_bytes=[1], n_splits=1, budget=1e-9)
    assert "Not tried: pq, opq (needs FAISS; pip install 'bittern[io]')." in advice.sentence


def test_a_budget_that_is_too_small_is_said_to_have_cut():
    advice = advise(X, methods="int8,itq", n_bytes=[1], budget=1e-9)
    assert [row.method for row in advice.rows] == ["int8"]
    notes = " ".join(advice.notes().split())
    assert "No time was left to try (bytes): itq at 1. To try all of it, allow about " in notes


def test_a_trial_is_expected_to_take_as_long_as_the_method_did_or_as_its_kind_usually_does():
    schedule = Schedule(budget=100.0, began=perf_counter())
    assert schedule.expected(Contender("opq", 256)) == 0  # nothing is known yet
    schedule.note(Contender("int8"), 0.5)
    schedule.note(Contender("tcq", 256), 5.0)
    assert schedule.expected(Contender("opq", 256)) > 20
    assert schedule.expected(Contender("tcq", 128)) == 5
    assert schedule.expected(Contender("tcq", 512)) == 10
    assert schedule.has_time(60) and not schedule.has_time(60, share=0.5)
    assert not schedule.has_time(97)  # what comes after the trials needs time too


def test_a_short_budget_compares_all_kinds_before_it_tries_other_sizes():
    order = contenders(suited(True), None, 384)
    sized = [one.method for one in order if one.n_bits is not None]
    early = sized[: sized.index("itq", 1 + sized.index("itq"))]  # before its second size
    assert {"tcq", "rabitq-1", "rabitq-4", "water-filled", "itq", "itq+asymmetric"} <= set(early)
    assert {"pq", "opq", "sdh", "talr"} <= set(early) and "lsh" not in early
    assert early.count("tcq") == 5 and early.count("pq") == 1


class Failing(LSH):
    """Refuses one length."""

    def _fit(self, X, targets):
        if self.n_bits == 16:
            raise InputError("Failing: n_bits must not be 16.")
        super()._fit(X, targets)


def test_what_fails_is_reported_and_the_others_go_on(monkeypatch):
    use(monkeypatch, Failing)
    advice = advise(X, methods="made", n_bits=[8, 16], n_splits=1)
    assert [row.n_bits for row in advice.rows] == [8]
    assert "Not tried: made 16 bits (Failing: n_bits must not be 16)." in advice.notes()


class Stopped(LSH):
    """The user presses Ctrl-C while it has a model already."""

    def _fit(self, X, targets):
        super()._fit(X, targets)
        raise KeyboardInterrupt


def test_ctrl_c_loses_nothing_that_was_measured(monkeypatch):
    use(monkeypatch, Stopped)
    with pytest.raises(KeyboardInterrupt, match="advise: stopped; nothing was written"):
        advise(X, methods="made", n_bits=[8])
    advice = advise(X, methods="int8,made", n_bits=[8])
    assert advice.stopped and [row.method for row in advice.rows] == ["int8"]
    assert "Ctrl-C stopped it early." in advice.notes()


# Files and the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("vectors")
    np.save(here / "x.npy", X)
    np.save(here / "q.npy", X[:30] + 0.01)
    np.save(here / "few.npy", X[:50])
    np.save(here / "nan.npy", np.where(np.arange(300)[:, None] == 41, np.nan, X))
    np.save(here / "one.npy", np.zeros(300, int))
    np.save(here / "zero.npy", X * (np.arange(300) != 5)[:, None])
    lines = [f"{i} 0 {i} 1\n{i} 0 {i + 100} 2\n" for i in range(30)]
    (here / "qrels").write_text("".join(lines))
    (here / "odd-qrels").write_text("0 0 abc 1\n")
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


SHORT = ("--methods", "int8,itq", "--bytes", "1,2", "--splits", 1)


def test_the_command_takes_queries_and_judgements(bittern):
    given = ("--vectors", "x.npy", "--queries", "q.npy", "--qrels", "qrels", "--items", "1e3")
    code, out, err = bittern(*given, *SHORT, "--format", "json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["truth"] == "judgements" and said["items"] == 1000
    assert said["rows"][0]["ram"] == {"million": 10**6, "items": 1000}
    assert said["disk"]["int8"] == {"million": 16 * 10**6, "items": 16_000}


@pytest.mark.parametrize(
    ("method", "metric", "store"),
    [
        ("int8", "euclidean", "float32"),
        ("itq", "cosine", "float32"),
        ("itq", "euclidean", "int8"),
        ("prefix", "cosine", "int8"),
        ("water-filled", "cosine", "int8"),
    ],
)
def test_what_is_exported_runs(bittern, folder, monkeypatch, method, metric, store):
    name = f"out-{method}-{metric}"
    given = ("--vectors", "x.npy", "--plot", "c.svg", "--export", name, "--metric", metric)
    given += ("--rescore-from", store, "--rescore", 16)
    code, out, err = bittern(*given, "--methods", method, "--bytes", 2, "--splits", 1)
    assert (code, err) == (0, "")
    assert ET.parse(folder / "c.svg").getroot().tag.endswith("svg")
    made = {path.name for path in (folder / name).iterdir()}
    assert made == {"model.npz", "search.py", "advice.json", "advice.txt"}
    monkeypatch.setattr(sys, "argv", ["search.py", str(folder / "x.npy")])
    names = runpy.run_path(str(folder / name / "search.py"))
    assert names["hits"].ids.shape == (5, 10)
    assert names["hits"].ids[:, 0].tolist() == [0, 1, 2, 3, 4]  # each query finds itself
    assert ("fine" in names) == (store == "int8")
    assert f"{name}/model.npz has " in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--vectors", "none.npy"), "none.npy: no such file."),
        (("--vectors", "few.npy"), "vectors must have at least 200 rows, got 50."),
        (("--vectors", "nan.npy"), "vectors must be finite, but row 41 is not."),
        (("--vectors", "zero.npy", "--metric", "cosine"), "needs rows that are not all zero."),
        (("--vectors", "x.npy", "--labels", "one.npy"), "at least two classes, got one."),
        (("--vectors", "x.npy", "--target", "95"), "such as 0.95 for 95 %, got 95.0."),
        (("--vectors", "x.npy", "--budget", "0"), "number of seconds above 0, got 0.0."),
        (("--vectors", "x.npy", "--methods", "itk"), "no method is called 'itk'; did you mean"),
        (("--vectors", "x.npy", "--methods", "sdh"), "learns from labels, but none were given."),
        (("--vectors", "x.npy", "--bits", "0"), "--bits must be between 1 and 4096, got 0."),
        (("--vectors", "x.npy", "--bytes", "0"), "--bytes must be between 1 and 512, got 0."),
        (("--vectors", "x.npy", "--items", "0"), "--items must be at least 11, got 0."),
        (("--vectors", "x.npy", "--items", "1.5"), "--items must be whole, got 1.5."),
        (("--vectors", "x.npy", "--items", "inf"), "--items must be whole, got inf."),
        (("--vectors", "x.npy", "--rescore", "0"), "--rescore must be between 1 and 1000"),
        (("--vectors", "x.npy", "--qrels", "qrels"), "--qrels needs the --queries"),
        (("--vectors", "x.npy", "--queries", "q.npy", "--qrels", "odd-qrels"), "id 'abc'"),
        (("--vectors", "x.npy", "-k", "120"), "k must be below the 120 "),
        (("--vectors", "x.npy", "--export", "there"), "there: exists already; give the name"),
        (("--vectors", "x.npy", "--plot", "curve.gif"), "written as .svg, .png or .pdf, got .gif."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(bittern, words, says):
    code, out, err = bittern(*words)
    assert (code, out) == (2, "")
    assert err.startswith("bittern: ") and err.count("\n") == 1
    assert says in err


def test_an_export_that_fails_leaves_nothing_behind(plain, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(plain.model), "save", full)
    with pytest.raises(FileError, match="out: cannot be written"):
        export(plain, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_of_the_library_say_what_rule_they_broke():
    for error, says, arguments in [
        (InputError, "metric must be one of 'euclidean', 'cosine', got 'l1'", {"metric": "l1"}),
        (InputError, "rescore_from must be one of 'float32', 'int8'", {"rescore_from": "pq"}),
        (InputError, "n_bits must be a list of lengths, got 8", {"n_bits": 8}),
        (InputError, "at least one size", {"n_bytes": []}),
        (InputError, "not both", {"n_bytes": [8], "n_bits": [8]}),
        (InputError, "at least one method", {"methods": []}),
        (InputError, "relevance needs the queries", {"relevance": np.eye(300)}),
        (InputError, "candidates must be at least 20", {"k": 20, "candidates": 10}),
        (UnknownNameError, "no method is called", {"methods": ["itq", "x"]}),
    ]:
        with pytest.raises(error, match=re.escape(says)):
            advise(X, **arguments)


def test_the_same_advice_gives_the_same_figure(plain, tmp_path):
    draw_advice(tmp_path / "a.svg", plain)
    draw_advice(tmp_path / "b.svg", plain)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "advise.md").read_text()
    names = {}
    for source in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(source, names)
    assert names["advice"].sentence in " ".join(capsys.readouterr().out.split())
