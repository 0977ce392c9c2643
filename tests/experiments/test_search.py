"""The search of grids: its points, its trials, the choice, and what `run` does with it."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from made_protocols import PLAIN, command, protocol, run_data, write_arrays
from processes import seconds

import bittern as bt
from bittern.errors import BitternError, InputError
from bittern.experiments import Record, Records, cells_of, measure, run, trials_of, verify
from bittern.experiments.measure import CellMeasurer, Failed, measure_cell
from bittern.experiments.run_data import RunData
from bittern.experiments.search import choose, draw_points, point_text
from bittern.hashing import HASHERS, ITQ
from bittern.parallel import Outcome

SIZES = "{ train = 60, queries = 20, validation_queries = 0, validation_database = 0 }"
SEARCHED = (
    PLAIN.replace(
        "{ train = 60, queries = 20, validation_queries = 15, validation_database = 30 }", SIZES
    ).replace("{ n_iter = [1, 20] }", "{ n_iter = [1, 5, 20] }")
    + """
[[method]]
name = "lsh"
label = "drawn"
parameters = { centre = false }
grid = { random_state = [1, 2] }

[search]
repeats = 2
"""
)
N_TRIALS = (3 + 2) * 2 * 2  # points × lengths × repeats


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_arrays(tmp_path_factory.mktemp("made") / "arrays")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data):
    """An experiment with a search that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "p.toml").write_text(SEARCHED)
    return run(folder / "p.toml", folder / "out", root=data, jobs=2)


@pytest.fixture
def in_this_process(monkeypatch):
    """Measure without other processes, which take long to start."""

    def one_after_another(prepare, tasks, *_, **__):
        work = prepare()
        for task in tasks:
            yield Outcome(task, work(task))

    monkeypatch.setattr(measure, "run_tasks", one_after_another)


def searched(**changes):
    return protocol(SEARCHED, **changes)


def trial_of(plan, name):
    return next(trial for trial in trials_of(plan) if trial.name == name)


# The points


GRID = {"rate": [0.1, 0.2, 0.4], "drop": [0.0, 0.5], "alpha": [[1.0, 4.0], [1.0, 1.0]]}


def test_without_a_budget_every_combination_is_a_point_in_order():
    expected = [dict(zip(GRID, one, strict=True)) for one in itertools.product(*GRID.values())]
    assert draw_points(GRID, None, 0) == draw_points(GRID, 12, 0) == expected
    assert draw_points(GRID, 500, 3) == expected
    assert draw_points({}, 3, 0) == [{}]


def test_a_budget_draws_different_points_and_a_larger_one_continues():
    few, more = draw_points(GRID, 5, 0), draw_points(GRID, 9, 0)
    assert len(few) == 5 and more[:5] == few
    assert len({json.dumps(point) for point in more}) == 9
    assert all(value in GRID[name] for point in more for name, value in point.items())
    assert draw_points(GRID, 5, 1) != few


def test_every_point_is_drawn_equally_often():
    """Of 12 points, 3 are drawn: each with probability 1/4."""
    drawn = [json.dumps(p) for seed in range(2000) for p in draw_points(GRID, 3, seed)]
    counts = np.array([drawn.count(json.dumps(p)) for p in draw_points(GRID, None, 0)])
    deviation = np.sqrt(2000 * 0.25 * 0.75)
    assert counts.sum() == 6000 and np.abs(counts - 500).max() < 4.5 * deviation


def test_methods_that_share_parameters_meet_the_same_values_of_them():
    other = {"rate": GRID["rate"], "eta": [1, 2, 3, 4, 5], "drop": GRID["drop"]}
    shared = [
        [(point["rate"], point["drop"]) for point in draw_points(grid, 6, 0)]
        for grid in (GRID, other)
    ]
    alone = draw_points({"rate": GRID["rate"], "drop": GRID["drop"]}, 5, 0)
    firsts = [list(dict.fromkeys(one)) for one in shared]
    order = [(point["rate"], point["drop"]) for point in alone]
    n = min(map(len, firsts))
    assert n >= 3 and firsts[0][:n] == firsts[1][:n] == order[:n]


def test_the_best_score_is_chosen_the_first_of_equals_and_nan_last():
    points = [{"parameters": {"a": i}, "score": s} for i, s in enumerate([np.nan, 0.3, 0.7, 0.7])]
    assert choose(points).parameters == {"a": 2} and choose(points).tried == tuple(points)
    assert choose(points[:1]).parameters == {"a": 0}
    assert choose([points[0] | {"score": None}, points[1]]).parameters == {"a": 1}


def test_a_point_is_named_in_few_letters():
    point = {"rate": 0.001, "alpha": [1.0, 4.0], "network": "mlp", "centre": True, "n": 5}
    assert point_text(point) == "rate = 0.001, alpha = [1, 4], network = mlp, centre = true, n = 5"


# The protocol


@pytest.mark.parametrize(
    ("search", "says"),
    [
        ({"points": 0}, "search.points must be"),
        ({"runs": []}, "search.runs must name at least one run"),
        ({"runs": [0, 0]}, "search.runs: 0 is named twice"),
        ({"runs": [2]}, "search.runs: there are 2 runs, counted from 0, got 2"),
        ({"held_out": 1.0}, "search.held_out must be between 0 and 1"),
        ({"repeats": 0}, "search.repeats must be"),
        ({"database": "test"}, "search.database must be one of 'held-out', 'train'"),
        ({"metric": "app"}, "app"),
        ({"point": 3}, "did you mean 'points'"),
    ],
)
def test_settings_of_a_search_that_make_no_sense_are_refused(search, says):
    with pytest.raises(BitternError, match=says):
        searched(search=search)


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ({"name": "itq"}, "search: no method has a grid"),
        (
            {"name": "itq", "grid": {"n_anchors": [1, 2]}},
            "method itq: no key is called 'n_anchors'",
        ),
        ({"name": "itq", "grid": {"n_iter": [1, 1]}}, "grid.n_iter: 1 is named twice"),
    ],
)
def test_grids_that_cannot_be_searched_are_refused_up_front(method, says):
    with pytest.raises(InputError, match=says):
        searched(method=[method])


def test_a_search_is_part_of_the_fingerprint_of_the_cells_that_need_it():
    plain = {cell.name: cell.fingerprint for cell in cells_of(protocol())}
    plan = protocol(search={"points": 5})
    for cell in cells_of(plan):
        assert (cell.fingerprint == plain[cell.name]) == (not cell.method.grid)
    other = {cell.name: cell.fingerprint for cell in cells_of(protocol(search={"points": 6}))}
    assert other["itq, 4 bits, run 0"] not in (
        plain["itq, 4 bits, run 0"],
        cells_of(plan)[3].fingerprint,
    )
    assert "search" not in protocol().to_dict()


def test_a_trial_does_not_depend_on_the_budget_nor_on_the_other_points():
    def prints(**search):
        return {t.name: t.fingerprint for t in trials_of(searched(search=search))}

    few, more = prints(), prints(repeats=3, runs=[0, 1])
    assert few.items() <= more.items() and len(more) == 6 * len(few)
    wider = searched(method=[{"name": "itq", "grid": {"n_iter": [1, 2, 5, 20, 50]}}])
    names = {t.name: t.fingerprint for t in trials_of(wider)}
    assert {n: f for n, f in few.items() if n.startswith("itq")}.items() <= names.items()
    for change in ({"held_out": 0.3}, {"database": "train"}, {"metric": "ndcg"}):
        assert not set(prints(**change).values()) & set(few.values())


def test_the_trials_are_those_of_the_cells_that_are_wanted():
    plan = searched(search={"points": 2})
    some = [c for c in cells_of(plan) if c.n_bits == 8 and c.run == 1]
    cells = [c for c in some if c.method.label != "drawn"]
    assert [t.name for t in trials_of(plan, cells)] == [
        f"itq, 8 bits, run 0, n_iter = {point['n_iter']}"
        for point in draw_points({"n_iter": [1, 5, 20]}, 2, 0)
    ]
    assert trials_of(protocol()) == []


# A trial


class Closed(RunData):
    """The data of a run whose test sets must not be touched."""

    @property
    def queries(self):
        """Not for trials."""
        raise AssertionError("the test queries were touched")

    database = statement = queries


@pytest.mark.parametrize("where", ["held-out", "train"])
def test_a_trial_is_scored_on_held_out_training_rows_alone(data, where):
    """By hand: divide the training rows, fit, and rank by sorted distances."""
    plan = searched(search={"database": where, "metric": "precision@5"})
    sets = run_data(plan, 0, data)
    trial = trial_of(plan, "itq, 8 bits, run 0, n_iter = 5")
    closed = Closed(sets.dataset, sets.prepared, sets.split, sets.modality)
    record = measure_cell(plan, trial, closed)
    with pytest.raises(AssertionError, match="touched"):  # not vacuous
        measure_cell(plan, replace(cells_of(plan)[3], choice=choose(record_points(record))), closed)

    order = np.random.default_rng(trial.held_out_seed(plan)).permutation(60)
    held, rest = np.sort(order[:12]), np.sort(order[12:])
    X, y = sets.train.vectors, sets.train.labels
    hasher = ITQ(8, n_iter=5, random_state=trial.random_state(plan)).fit(X[rest])
    bits = hasher.transform(X)
    expected = []
    for row in held:
        items = rest if where == "train" else held[held != row]
        apart = (bits[items] != bits[row]).sum(axis=1)
        expected.append(expected_precision(apart, y[items] == y[row], 5))
    assert record.values["precision@5"].mean == pytest.approx(np.nanmean(expected))
    assert record.values["precision@5"].undefined == np.isnan(expected).sum()
    assert record.parameters == {"n_iter": 5} and list(record.values) == ["precision@5"]
    n_database = 48 if where == "train" else 12
    assert record.split["sizes"] == {"train": 48, "queries": 12, "database": n_database}
    assert set(record.seconds) == {"fit", "encode", "evaluate"}


def record_points(record):
    return [{"parameters": record.parameters, "score": 1.0}]


def expected_precision(apart, relevant, k):
    """Precision at k, with the tie at the border taken in equal shares; NaN if none is relevant."""
    if not relevant.any():
        return np.nan
    border = np.sort(apart)[k - 1]
    nearer, tied = apart < border, apart == border
    return (relevant[nearer].sum() + (k - nearer.sum()) * relevant[tied].mean()) / k


def test_the_split_s_validation_sets_are_used_if_it_has_them(data):
    plan = protocol(search={"repeats": 2})
    sets = run_data(plan, 0, data)
    queries, database = sets.validation
    trial = trial_of(plan, "itq, 8 bits, run 0, n_iter = 20")
    record = measure_cell(plan, trial, sets)
    hasher = ITQ(8, n_iter=20, random_state=trial.random_state(plan)).fit(sets.train.vectors)
    truth = bt.Relevance.from_classes(queries.labels, database.labels)
    codes = hasher.encode(queries.vectors), hasher.encode(database.vectors)
    assert record.values["ap"].mean == bt.evaluate(*codes, truth, ["ap"])["ap"].mean
    again = measure_cell(plan, trial_of(plan, f"{trial.name}, repeat 1"), sets)
    assert again.values["ap"].mean != record.values["ap"].mean  # another seed


def test_every_method_and_point_meets_the_same_held_out_rows_and_repeats_others():
    plan = searched()
    seeds = {}
    for trial in trials_of(plan):
        seeds.setdefault(trial.repeat, set()).add(trial.held_out_seed(plan))
    assert [len(one) for one in seeds.values()] == [1, 1] and seeds[0] != seeds[1]


def test_too_few_held_out_rows_are_one_sentence(data):
    plan = searched(search={"held_out": 0.02})
    with pytest.raises(InputError, match=r"search.held_out: 0.02 of 60 training rows are 1; hold"):
        measure_cell(plan, trials_of(plan)[0], run_data(plan, 0, data))


class Watching(ITQ):
    """A hasher with the curves of a gradient-trained one."""

    watches_held_out = needs_y = True

    def fit(self, X, y=None, held_out=None):
        """Learn as ITQ does, and make curves up."""
        super().fit(X, y)
        self.curves_ = {"train_exact": np.array([0.1, np.nan, 0.5])}
        if held_out is not None:
            rows, target = held_out
            self.curves_["held_out_exact"] = np.array([len(rows), len(target), 0.25])
        return self


def test_training_curves_are_kept_and_held_out_rows_only_watched_in_trials(
    data, monkeypatch, tmp_path
):
    monkeypatch.setitem(HASHERS._entries, "itq", Watching)
    plan = searched()
    sets = run_data(plan, 0, data)
    record = measure_cell(plan, trials_of(plan)[0], sets)
    assert record.training_curves["held_out_exact"] == (12, 12, 0.25)
    record.save(tmp_path / "r.json.gz")
    again = Record.load(tmp_path / "r.json.gz")
    np.testing.assert_array_equal(again.training_curves["train_exact"], [0.1, np.nan, 0.5])
    assert again.same_values(record)
    cell = replace(cells_of(plan)[3], choice=choose(record_points(record)))
    measured = measure_cell(plan, cell, sets)
    assert list(measured.training_curves) == ["train_exact"]
    # An earlier record has no curves, and is still the same; other curves are not.
    assert measured.same_values(replace(measured, training_curves={}))
    assert not measured.same_values(replace(measured, training_curves={"train_exact": (0.2,)}))


# The experiment


def test_each_choice_is_the_best_mean_over_repeats_and_serves_every_run(whole):
    assert len(whole.trials) == N_TRIALS and not whole.failures and not whole.missing
    grids = {"itq": "n_iter", "drawn": "random_state"}
    for (label, name), n_bits in itertools.product(grids.items(), (4, 8)):
        scores = {}
        for trial in whole.trials:
            if (trial.method, trial.n_bits) == (label, n_bits):
                scores.setdefault(trial.parameters[name], []).append(trial.values["ap"].mean)
        assert all(len(of_repeats) == 2 for of_repeats in scores.values())
        means = {value: sum(of_repeats) / 2 for value, of_repeats in scores.items()}
        records = whole.of(label, n_bits)
        assert len(records) == 2 and (label == "itq" or len(set(means.values())) > 1)
        for record in records:
            assert record.parameters[name] == max(means, key=means.get)
            found = {one["parameters"][name]: one["score"] for one in record.tuning}
            assert found == pytest.approx(means)
    assert whole.of("lsh", 4)[0].tuning == ()
    assert "search" in whole.records[0].protocol


def test_nothing_is_measured_twice(whole, data):
    places = [*(whole.folder / "cells").iterdir(), *(whole.folder / "trials").iterdir()]
    before = {path: path.stat().st_mtime_ns for path in places}
    assert len(before) == N_TRIALS + 14
    again = run(whole.folder / "protocol.toml", whole.folder, root=data / "nowhere")
    assert len(again) == 14 and len(again.trials) == N_TRIALS
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.usefixtures("in_this_process")
def test_a_larger_budget_measures_only_the_new_trials(data, tmp_path):
    method = [{"name": "itq", "grid": {"n_iter": [1, 5, 20]}}]
    plan = searched(method=method, search={"points": 2}, n_bits=[4], runs=1)
    run(plan, tmp_path, root=data, jobs=1)
    watcher = Following()
    more = run(
        replace(plan, search=replace(plan.search, points=3)),
        tmp_path, root=data, jobs=1, watcher=watcher,
    )  # fmt: skip
    assert watcher.begun == [(1, 2), (1, 0)]  # a trial, and then the cell with its new choice
    assert len(more.trials) == 3 and len(more) == 1 and len(more.records[0].tuning) == 3


class Following:
    """A watcher that remembers what it is told."""

    def __init__(self):
        self.begun, self.told = [], []

    def begin(self, cells, n_known):
        """How many are left, and how many are known."""
        self.begun.append((len(cells), n_known))

    def tell(self, outcome):
        """One outcome."""
        self.told.append(outcome)


@pytest.mark.usefixtures("in_this_process")
def test_search_only_measures_trials_and_only_of_what_is_wanted(data, tmp_path):
    found = run(searched(), tmp_path, root=data, jobs=1, search_only=True,
                wanted=["method=itq", "bits=4", "run=1"])  # fmt: skip
    assert len(found) == 0 and len(found.trials) == 6 and len(found.missing_trials) == 14
    assert {trial.run for trial in found.trials} == {0}
    with pytest.raises(InputError, match=r"nothing to search; add \[search\]"):
        run(protocol(), tmp_path / "new", root=data, search_only=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_trial_that_fails_is_recorded_and_its_cells_wait(data, tmp_path):
    plan = searched(method=[{"name": "itq", "grid": {"n_iter": [-1, 5]}}, {"name": "lsh"}],
                    search={}, runs=1, n_bits=[4])  # fmt: skip
    watcher = Following()
    found = run(plan, tmp_path, root=data, jobs=1, watcher=watcher)
    assert [record.method for record in found] == ["lsh"] and len(found.trials) == 1
    assert set(found.failures) == {"itq, 4 bits, run 0, n_iter = -1", "itq, 4 bits, run 0"}
    assert (
        "its search is not finished: 1 of 2 trials has no result"
        in (found.failures["itq, 4 bits, run 0"])
    )
    assert isinstance(watcher.told[0], Failed) and watcher.begun == [(2, 0), (1, 0)]
    assert Records.read(tmp_path).failures == found.failures
    better = replace(
        plan, method=(replace(plan.method[0], grid={"n_iter": [5, 7]}), plan.method[1])
    )
    after = run(better, tmp_path, root=data, jobs=1)
    assert not after.failures and len(after) == 2


def test_a_cell_whose_search_is_not_done_is_refused(data):
    plan = searched()
    cell = next(c for c in cells_of(plan) if c.method.grid)
    with pytest.raises(InputError, match="run the search first"):
        measure_cell(plan, cell, run_data(plan, 0, data))


def test_other_data_are_refused_by_trials_too(whole, tmp_path):
    other = write_arrays(tmp_path / "other", random_state=5)
    measurer = CellMeasurer(whole.protocol, whole.folder, other)
    with pytest.raises(InputError, match="not the data that the records"):
        measurer.measure(trials_of(whole.protocol)[0])


@pytest.mark.usefixtures("in_this_process")
def test_verify_measures_a_searched_cell_again(whole, data, tmp_path):
    found = verify(whole.folder, root=data, wanted=("method=drawn",), random_state=0)
    assert found.is_same and found.recorded.tuning
    # A record whose parameters are not the best of its scores is not the same.
    worst = min(found.recorded.tuning, key=lambda one: one["score"])
    changed = replace(found.recorded, parameters=worst["parameters"])
    assert not changed.same_values(found.again)


GOING_ON = """
import sys
from bittern.experiments import run
if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], root=sys.argv[3], jobs=1)
"""


@pytest.mark.slow  # starts the experiment in another process
@pytest.mark.usefixtures("in_this_process")
def test_killed_during_the_search_it_goes_on_and_finds_the_same(whole, data, tmp_path):
    (tmp_path / "p.toml").write_text(SEARCHED.replace("repeats = 2", "repeats = 20"))
    command = [sys.executable, "-c", GOING_ON, tmp_path / "p.toml", tmp_path / "out", data]
    trials = tmp_path / "out" / "trials"
    until = time.monotonic() + seconds(100)
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            while not (trials.is_dir() and len(list(trials.glob("*.json.gz"))) >= 3):
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.01)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    done = {path: path.stat().st_mtime_ns for path in trials.glob("*.json.gz")}
    assert 3 <= len(done) < 10 * N_TRIALS
    (trials / ".half.json.gz.tmp").write_text("half")
    again = run(tmp_path / "p.toml", tmp_path / "out", root=data)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert not list(trials.glob(".*.tmp")) and len(again) == 14
    found = {trial.fingerprint: trial for trial in again.trials}
    assert len(found) == 10 * N_TRIALS
    assert all(found[trial.fingerprint].same_values(trial) for trial in whole.trials)


# The command


@pytest.fixture
def bittern(data, tmp_path, monkeypatch, capsys):
    (tmp_path / "s.toml").write_text(SEARCHED.replace("runs = 2", "runs = 1"))
    return partial(command, monkeypatch, capsys, tmp_path)


@pytest.mark.usefixtures("in_this_process")
def test_run_shows_trials_first_and_search_only_their_choices(bittern, data, tmp_path):
    words = ("run", "s.toml", "--root", data, "--only", "bits=4", "--jobs", 1)
    code, out, err = bittern(*words, "--search-only")
    assert code == 0, err
    assert "10/10 " in err and "drawn, 4 bits, run 0, random_state = 2, repeat 1: ap 0." in err
    assert "Chosen on held-out rows" in out and "2 of 2" in out and "3 of 3" in out
    code, out, err = bittern(*words)
    assert code == 0 and "3/3" in err and "trials" not in err and "itq" in out
    code, out, err = bittern("run", "s.toml", "--root", data, "--jobs", 1)
    assert code == 0 and "10 trials are done, 10 are left" in err
    assert "3 cells are done, 4 are left" in err
    code, _, _ = bittern("verify", "results/s", "--root", data, "--only", "method=itq")
    assert code == 0
    files = ("--html", "r.html", "--markdown", "r.md", "--figures", "drawn")
    assert bittern("report", "results/s", *files)[0] == 0
    assert 'id="search"' in (tmp_path / "r.html").read_text()
    assert "| itq | 4 bits | n\\_iter = " in (tmp_path / "r.md").read_text()
    assert (tmp_path / "drawn" / "search.svg").read_text().startswith("<svg")
    code, _, err = bittern("report", "results/s", "--csv", "results/s/trials/x.csv")
    assert code == 2 and "belongs to the experiment" in err


@pytest.mark.usefixtures("in_this_process")
def test_the_page_of_a_search_without_cells(bittern, data, tmp_path):
    assert bittern("run", "s.toml", "--root", data, "--jobs", 1, "--search-only")[0] == 0
    code, _, err = bittern("report", "results/s", "--html", "r.html", "--figures", "drawn")
    assert code == 0, err
    assert 'id="search"' in (tmp_path / "r.html").read_text()
    assert [path.name for path in (tmp_path / "drawn").iterdir()] == ["search.svg"]


def test_search_only_without_a_search_is_one_sentence(bittern, data, tmp_path):
    (tmp_path / "p.toml").write_text(PLAIN)
    code, out, err = bittern("run", "p.toml", "--root", data, "--search-only")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "nothing to search" in err
