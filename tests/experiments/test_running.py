import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.spatial.distance
from made_protocols import PLAIN, protocol, run_data, write_arrays
from processes import seconds

import bittern as bt
from bittern.errors import BitternError
from bittern.experiments import Record, Records, cells_of, run, verify
from bittern.experiments.measure import Failed, measure_cell
from bittern.experiments.run_data import data_fingerprint

GOING_ON = """
import sys
from bittern.experiments import run
if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], root=sys.argv[3], jobs=int(sys.argv[4]))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_arrays(tmp_path_factory.mktemp("made") / "arrays")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data):
    """An experiment that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "p.toml").write_text(PLAIN)
    return run(folder / "p.toml", folder / "out", root=data, jobs=2)


def test_every_cell_has_a_record(whole):
    assert len(whole) == len(cells_of(whole.protocol)) == 10
    assert whole.missing == () and not whole.failures
    assert whole.methods == ("float ranking", "lsh", "itq") and whole.lengths == (4, 8)


def test_the_repr_of_records_is_a_table_of_means(whole):
    first, head, *rows = repr(whole).splitlines()
    assert first == "Three classes: 10 records" and head.split() == ["ap", "4", "bits", "8", "bits"]
    means = [
        [np.mean([record.values["ap"].mean for record in whole.of(method, n)]) for n in (4, 8)]
        for method in whole.methods
    ]
    assert [row.split()[-2:] for row in rows] == [[f"{x:.4f}" for x in row] for row in means]
    assert repr(bt.analysis.analyse(whole)) == repr(whole)
    assert repr(replace(whole, missing=cells_of(whole.protocol)[:3])).startswith(
        "Three classes: 10 records, 3 missing\n"
    )


def test_a_record_is_what_the_parts_of_the_package_say(whole, data):
    """By hand: split, centre on training rows, fit, encode, evaluate."""
    record = whole.of("lsh", 8)[1]
    dataset = bt.load("arrays", data)
    split = bt.make_split("improved", dataset, random_state=0, run=1, **whole.protocol.split.sizes)
    X, y = dataset.vectors[:], np.asarray(dataset.labels)
    cell = next(c for c in cells_of(whole.protocol) if c.name == "lsh, 8 bits, run 1")
    hasher = bt.hashing.LSH(8, random_state=cell.random_state(whole.protocol)).fit(X[split.train])
    truth = bt.Relevance.from_classes(y[split.queries], y[split.database])
    codes = hasher.encode(X[split.queries]), hasher.encode(X[split.database])
    scores = bt.evaluate(*codes, truth, ["ap", "auprc"])
    np.testing.assert_array_equal(record.per_query("ap"), scores["ap"].per_query)
    assert record.values["auprc"].mean == scores["auprc"].mean
    assert record.values["ap"].spread == scores["ap"].spread
    assert record.profile == bt.TieProfile.from_codes(*codes, truth)
    assert record.query_positions == tuple(split.queries)
    assert record.split["fingerprint"] == split.fingerprint and record.split["leaks"] == 0
    assert set(record.seconds) == {"tune", "fit", "encode", "evaluate"}
    assert record.peak_memory > 1 << 20
    assert record.protocol == whole.protocol.to_dict()
    assert {"bittern", "numpy", "python"} <= set(record.versions)


def test_the_float_ranking_is_the_ranking_by_distances(whole, data):
    record = whole.of("float ranking")[0]
    dataset = bt.load("arrays", data)
    split = bt.make_split("improved", dataset, random_state=0, run=0, **whole.protocol.split.sizes)
    X, y = dataset.vectors[:].astype(float), np.asarray(dataset.labels)
    for row, value in zip(split.queries, record.per_query("ap"), strict=True):
        order = np.argsort(((X[split.database] - X[row]) ** 2).sum(axis=1))
        hits = np.flatnonzero(y[split.database][order] == y[row]) + 1
        assert value == pytest.approx(np.mean(np.arange(1, len(hits) + 1) / hits))
    assert record.n_bits is None and record.profile is None
    assert whole.of("float ranking", 8) == whole.of("float ranking")


def test_the_grid_is_searched_on_validation_sets_alone(whole, data):
    record = whole.of("itq", 8)[0]
    assert [one["parameters"]["n_iter"] for one in record.tuning] == [1, 20]
    best = max(record.tuning, key=lambda one: one["score"])
    assert record.parameters == best["parameters"]
    sets = run_data(whole.protocol, 0, data)
    queries, database = sets.validation
    cell = next(c for c in cells_of(whole.protocol) if c.name == "itq, 8 bits, run 0")
    hasher = bt.hashing.ITQ(8, n_iter=20, random_state=cell.random_state(whole.protocol))
    hasher.fit(sets.train.vectors)
    truth = bt.Relevance.from_classes(queries.labels, database.labels)
    codes = hasher.encode(queries.vectors), hasher.encode(database.vectors)
    assert record.tuning[1]["score"] == bt.evaluate(*codes, truth, ["ap"])["ap"].mean


def test_without_validation_sets_training_rows_are_held_out(data):
    sizes = {"train": 60, "queries": 20, "validation_queries": 0, "validation_database": 0}
    one = protocol(split={"name": "improved", "sizes": sizes})
    cell = next(c for c in cells_of(one) if c.name == "itq, 8 bits, run 0")
    record = measure_cell(one, cell, run_data(one, 0, data))
    assert len(record.tuning) == 2 and all(0 < t["score"] < 1 for t in record.tuning)


def test_nested_methods_are_fitted_once_for_all_lengths(data):
    plan = protocol(method=[{"name": "structhash", "parameters": {"n_queries": 30}}])
    short, long = cells_of(plan)[:2]
    sets = run_data(plan, 0, data)
    measure_cell(plan, long, sets)
    cut = measure_cell(plan, short, sets)
    assert "fit" not in cut.seconds
    alone = measure_cell(plan, short, run_data(plan, 0, data))
    assert "fit" in alone.seconds
    np.testing.assert_array_equal(cut.profile.total, alone.profile.total)
    other = protocol(method=[{"name": "structhash", "parameters": {"n_queries": 20}}])
    assert "fit" in measure_cell(other, cells_of(other)[0], sets).seconds


def test_trap_24_nothing_is_chosen_on_test_queries(whole, data, tmp_path):
    """Whatever the test labels are, the same parameters are chosen by the same scores."""
    split = bt.make_split(
        "improved", bt.load("arrays", data), random_state=0, run=0, **whole.protocol.split.sizes
    )
    cell = next(c for c in cells_of(whole.protocol) if c.name == "itq, 4 bits, run 0")
    sets = run_data(whole.protocol, 0, data)
    labels = np.array(sets.prepared.labels)
    labels[split.queries] = 0
    labels[split.database] = (labels[split.database] + 1) % 3
    other = replace(sets, prepared=replace(sets.prepared, labels=labels))
    first, second = (measure_cell(whole.protocol, cell, m) for m in (sets, other))
    assert first.tuning == second.tuning and first.parameters == second.parameters
    assert first.values["ap"].mean != second.values["ap"].mean  # not vacuous


def test_trap_22_database_codes_come_from_the_function_not_from_labels(whole, data):
    sets = run_data(whole.protocol, 0, data)
    labels = np.array(sets.prepared.labels)
    database = sets.split.database
    labels[database] = np.random.default_rng(1).permutation(labels[database])
    other = replace(sets, prepared=replace(sets.prepared, labels=labels))
    plan = protocol(method=[{"name": "sdh", "parameters": {"n_anchors": 20}}])
    first, second = (measure_cell(plan, cells_of(plan)[1], m) for m in (sets, other))
    np.testing.assert_array_equal(first.profile.total, second.profile.total)
    assert first.values["ap"].mean > second.values["ap"].mean + 0.2  # the labels did matter


def test_trap_23_preprocessing_is_learned_on_training_rows(data, tmp_path):
    vectors = np.load(data / "vectors.npy")
    plan = protocol(dataset={"name": "arrays", "steps": ["centre"]})
    sets = run_data(plan, 0, data)
    train = sets.split.train
    np.testing.assert_allclose(
        sets.queries.vectors,
        vectors[sets.split.queries] - vectors[train].mean(axis=0),
        atol=1e-5,
    )


def test_trap_21_a_planted_leak_is_found(tmp_path):
    folder = write_arrays(tmp_path / "leaky")
    vectors = np.load(folder / "vectors.npy")
    split = run_data(protocol(), 0, folder).split
    vectors[split.database[:3]] = vectors[split.queries[:3]]
    np.save(folder / "vectors.npy", vectors)
    record = measure_cell(protocol(), cells_of(protocol())[1], run_data(protocol(), 0, folder))
    assert record.split["leaks"] == 6  # three pairs
    assert "3 of 20 queries are also among database" in record.split["leak_check"]


def test_examples_are_the_nearest_items(whole):
    record = whole.of("lsh", 8)[0]
    assert len(record.examples) == 12 and whole.of("lsh", 8)[1].examples == ()
    for example in record.examples:
        assert list(example.distances) == sorted(example.distances)
        row = record.query_positions.index(example.query)
        counted = np.cumsum(record.profile.total[row])
        nearest = int(np.searchsorted(counted, 1))  # the first distance with an item
        assert example.distances[0] == nearest
        assert any(example.relevant)


def test_a_record_survives_the_trip_to_disk(whole, tmp_path):
    for record in (whole.records[0], whole.of("itq", 4)[0]):
        record.save(tmp_path / "r.json.gz")
        again = Record.load(tmp_path / "r.json.gz")
        assert again.same_values(record) and again.seconds == record.seconds
        assert again.profile == record.profile
    assert not whole.records[0].same_values(whole.records[1])


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"{}", lambda b: b""])
def test_a_damaged_record_is_named(whole, tmp_path, damage):
    path = next((whole.folder / "cells").glob("lsh-4-0-*"))
    broken = tmp_path / path.name
    broken.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BitternError, match=rf"{broken.name}: not a readable record"):
        Record.load(broken)


def test_a_damaged_record_is_reported_before_any_work_and_how_to_mend_it(whole, data, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "out")
    (path,) = (tmp_path / "out" / "cells").glob("lsh-4-0-*")
    path.write_bytes(path.read_bytes()[:-20])
    next((tmp_path / "out" / "cells").glob("itq-4-0-*")).unlink()
    before = sorted((tmp_path / "out" / "cells").iterdir())
    with pytest.raises(BitternError, match=r"lsh-4-0.*Delete it; `bittern run` will measure"):
        run(whole.protocol, tmp_path / "out", root=data)
    assert sorted((tmp_path / "out" / "cells").iterdir()) == before
    path.unlink()
    assert len(run(whole.protocol, tmp_path / "out", root=data, jobs=1)) == 10


def test_a_record_of_the_first_format_is_read(whole, tmp_path):
    """It had the counts of the profile as lists."""
    path = next((whole.folder / "cells").glob("lsh-4-0-*"))
    plain, now = json.loads(gzip.decompress(path.read_bytes())), Record.load(path)
    plain["format"], plain["profile"]["counts"] = 1, now.profile.counts.tolist()
    (tmp_path / "old.json.gz").write_bytes(gzip.compress(json.dumps(plain).encode()))
    old = Record.load(tmp_path / "old.json.gz")
    assert old.profile == now.profile and old.same_values(now)


def test_the_record_of_another_cell_is_refused(whole, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "out")
    (one,) = (tmp_path / "out" / "cells").glob("lsh-4-0-*")
    (two,) = (tmp_path / "out" / "cells").glob("itq-4-0-*")
    shutil.copy(one, two)
    with pytest.raises(BitternError, match=r"itq-4-0-.* is the record of another cell"):
        Records.read(tmp_path / "out")


def test_other_data_are_not_mixed_with_those_of_the_records(whole, data, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "out")
    (path,) = (tmp_path / "out" / "cells").glob("lsh-4-0-*")
    kept = path.read_bytes()
    path.unlink()
    other = write_arrays(tmp_path / "other", random_state=1)
    found = run(whole.protocol, tmp_path / "out", root=other, jobs=1)
    assert "not the data that" in found.failures["lsh, 4 bits, run 0"] and len(found) == 9
    split = whole.records[0].split | {"data": "another"}
    replace(Record.load(next((whole.folder / "cells").glob("lsh-4-0-*"))), split=split).save(path)
    with pytest.raises(BitternError, match="has records of 2 different sets of data"):
        Records.read(tmp_path / "out")
    path.write_bytes(kept)
    assert len(Records.read(tmp_path / "out")) == 10


def test_images_of_different_sizes_tell_data_from_other_data(tmp_path):
    from PIL import Image

    def fingerprint(name, grey):
        for c in ("a", "b"):
            (tmp_path / name / c).mkdir(parents=True)
            Image.new("L", (8, 6), grey).save(tmp_path / name / c / "1.png")
            Image.new("L", (5, 9), 9).save(tmp_path / name / c / "2.png")
        dataset = bt.load("folder", tmp_path / name)
        return data_fingerprint(dataset, next(iter(dataset.modalities)))

    assert fingerprint("one", 7) == fingerprint("two", 7) != fingerprint("three", 8)


def test_what_is_wrong_with_the_data_is_reported_once_and_nothing_is_written(data, tmp_path):
    unlabelled = tmp_path / "unlabelled"
    unlabelled.mkdir()
    shutil.copy(data / "vectors.npy", unlabelled)
    sizes = {"train": 60, "queries": 20, "balanced": False}
    undefined = write_arrays(tmp_path / "undefined")
    vectors = np.load(undefined / "vectors.npy")
    vectors[:, 3] = np.nan
    np.save(undefined / "vectors.npy", vectors)
    free = {"name": "improved", "sizes": sizes}
    for plan, root, says in [
        (protocol(), tmp_path / "nowhere", "nowhere"),
        (protocol(split=free), unlabelled, "needs a dataset with class labels"),
        (protocol(split=free, truth={"kind": "tags"}), data, "needs a dataset with tags"),
        (protocol(split={"name": "improved", "sizes": {"train": 10_000}}), data, "10,000 items"),
        (protocol(dataset={"name": "arrays", "modality": "sound"}), data, "sound"),
        (protocol(dataset={"name": "arrays", "steps": []}), undefined, "rows have NaN"),
    ]:
        with pytest.raises(BitternError, match=says):
            run(plan, tmp_path / "out", root=root, jobs=1)
        assert not (tmp_path / "out").exists()


def test_items_without_a_class_match_nothing_and_their_queries_are_undefined(data, tmp_path):
    some = tmp_path / "some"
    shutil.copytree(data, some)
    labels = np.load(some / "labels.npy")
    labels[::4] = -1
    np.save(some / "labels.npy", labels)
    sizes = {"train": 60, "queries": 40, "balanced": False}
    plan = protocol(split={"name": "improved", "sizes": sizes}, runs=1, n_bits=[8],
                    method=[{"name": "lsh"}, {"name": "itq-cca"}, {"name": "sdh"}])  # fmt: skip
    for cell in cells_of(plan):
        record = measure_cell(plan, cell, run_data(plan, 0, some))
        unknown = np.array(record.query_labels) == -1
        assert 0 < unknown.sum() == record.values["ap"].undefined < 40
        assert np.isnan(record.per_query("ap")[unknown]).all()
        assert not np.array(record.n_relevant)[unknown].any()


@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
def test_the_float_ranking_has_the_distance_it_is_asked_for(data, metric):
    plan = protocol(method=[{"name": "exact", "parameters": {"metric": metric}}], runs=1)
    sets = run_data(plan, 0, data)
    record = measure_cell(plan, cells_of(plan)[0], sets)
    apart = scipy.spatial.distance.cdist(
        *(s.vectors.astype(float) for s in (sets.queries, sets.database)),
        metric.replace("manhattan", "cityblock"),
    )
    truth = bt.Relevance.from_classes(sets.queries.labels, sets.database.labels)
    expected = bt.evaluate(bt.TieProfile.from_distances(apart, truth), ["ap"])["ap"].mean
    assert record.values["ap"].mean == pytest.approx(expected, abs=1e-12)
    plain = protocol(method=[{"name": "exact"}], runs=1)
    assert measure_cell(plain, cells_of(plain)[0], sets).values["ap"].mean != expected


def test_a_hamming_radius_is_not_one_of_real_distances(data, tmp_path):
    plan = protocol(metrics=["micro-f1@r2", "precision@r1", "ap"], runs=1, n_bits=[4],
                    method=[{"name": "exact", "label": "float"}, {"name": "lsh"}])  # fmt: skip
    records = run(plan, tmp_path, root=data, jobs=1)
    assert not records.failures
    assert set(records.of("float")[0].values) == {"ap"}
    assert set(records.of("lsh", 4)[0].values) == {"micro-f1@r2", "precision@r1", "ap"}


def test_failures_are_kept_until_the_cells_are_tried_again(data, tmp_path):
    plan = protocol(method=[{"name": "itq", "parameters": {"n_iter": -1}}, {"name": "lsh"}],
                    runs=1, n_bits=[4])  # fmt: skip
    assert set(run(plan, tmp_path, root=data, jobs=1, wanted=["method=itq"]).failures) == {
        "itq, 4 bits, run 0"
    }
    begun = []
    watcher = type("W", (), {"begin": lambda _, c, n: begun.append((len(c), n)),
                             "tell": lambda *_: None})()  # fmt: skip
    after = run(plan, tmp_path, root=data, jobs=1, wanted=["method=lsh"], watcher=watcher)
    assert begun == [(1, 0)]  # one to measure, none of those wanted known
    assert set(after.failures) == {"itq, 4 bits, run 0"}
    (tmp_path / "failures.json").write_text("[1]")
    with pytest.raises(BitternError, match="not a table of reasons; delete it"):
        Records.read(tmp_path)


def test_one_process_and_two_find_the_same(whole, data, tmp_path):
    alone = run(whole.protocol, tmp_path, root=data, jobs=1, wanted=["bits=8"])
    assert len(alone) == 4
    for one in alone:
        (same,) = (r for r in whole.of(one.method, 8) if r.run == one.run)
        assert one.same_values(same)


def test_a_finished_cell_is_never_measured_again(whole, data):
    before = {p: p.stat().st_mtime_ns for p in (whole.folder / "cells").iterdir()}
    again = run(whole.folder / "protocol.toml", whole.folder, root=data / "nowhere")
    assert len(again) == 10  # without any data to measure them on
    assert {p: p.stat().st_mtime_ns for p in (whole.folder / "cells").iterdir()} == before


def test_new_metrics_come_from_the_stored_profiles(whole, tmp_path):
    text = PLAIN.replace('"auprc"]', '"auprc", "rr"]')
    (tmp_path / "cells").symlink_to(whole.folder / "cells")
    (tmp_path / "protocol.toml").write_text(text)
    more = Records.read(tmp_path)
    record = more.of("lsh", 4)[0]
    assert list(record.values) == ["ap", "precision@5", "auprc", "rr"]
    expected = bt.evaluate(record.profile, ["rr"])["rr"].mean
    assert record.values["rr"].mean == expected
    assert {cell.method.label for cell in more.missing} == {"float ranking"}


def test_a_metric_in_database_order_is_measured_from_the_codes(whole, data, tmp_path):
    name, metrics = "ap:database-order", ["ap", "ap:database-order"]
    asked = protocol(metrics=metrics, runs=1)
    known = {cell.fingerprint for cell in cells_of(whole.protocol)}
    assert not known & {cell.fingerprint for cell in cells_of(asked)}  # profiles cannot give it
    (tmp_path / "cells").mkdir()
    record = run(asked, tmp_path, root=data, jobs=1, wanted=["method=lsh", "bits=8"]).of("lsh", 8)[
        0
    ]
    sets = run_data(asked, 0, data)
    cell = next(c for c in cells_of(asked) if c.name == "lsh, 8 bits, run 0")
    hasher = bt.hashing.LSH(8, random_state=cell.random_state(asked)).fit(sets.train.vectors)
    bits = [hasher.encode(s.vectors).to_bits() for s in (sets.queries, sets.database)]
    wanted = []
    for query, label in zip(bits[0], sets.queries.labels, strict=True):
        order = np.argsort((query != bits[1]).sum(axis=1), kind="stable")
        hit = sets.database.labels[order] == label
        wanted.append((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].mean())
    np.testing.assert_allclose(record.per_query(name), wanted)
    assert record.values[name].spread is None
    assert not np.allclose(record.per_query(name), record.per_query("ap"))


def test_killed_and_started_again_it_finds_the_same(whole, data, tmp_path):
    (tmp_path / "p.toml").write_text(PLAIN)
    command = [sys.executable, "-c", GOING_ON, tmp_path / "p.toml", tmp_path / "out", data, "2"]
    process = subprocess.Popen(command, start_new_session=True)
    cells = tmp_path / "out" / "cells"
    wait_until(lambda: cells.is_dir() and len(list(cells.glob("*.json.gz"))) >= 2)
    process.kill()
    process.wait()
    wait_until(lambda: not children_of(process.pid))  # they end with their parent
    n_done = len(list(cells.glob("*.json.gz")))
    assert 2 <= n_done < 10
    (cells / ".half.json.gz.tmp").write_text("half")
    again = run(tmp_path / "p.toml", tmp_path / "out", root=data, jobs=2)
    assert all(one.same_values(other) for one, other in zip(again, whole, strict=True))
    assert not list(cells.glob(".*.tmp"))


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(data, tmp_path):
    (tmp_path / "p.toml").write_text(PLAIN)
    words = ["run", tmp_path / "p.toml", "--out", tmp_path / "out", "--root", data, "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bittern", *words], stderr=subprocess.PIPE, text=True
    )
    cells = tmp_path / "out" / "cells"
    wait_until(lambda: cells.is_dir() and list(cells.glob("*.json.gz")))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=seconds(60))
    assert process.returncode == 130
    assert "Traceback" not in said and "Run the same command again" in said
    assert not list(cells.glob(".*.tmp"))


def test_a_cell_that_fails_is_reported_and_the_others_go_on(data, tmp_path):
    plan = protocol(method=[{"name": "itq", "n_bits": [8, 64]}, {"name": "lsh", "n_bits": [8]}],
                    runs=1)  # fmt: skip
    told = []
    watcher = type("W", (), {"begin": lambda *_: None, "tell": lambda _, o: told.append(o)})()
    # MACHash on one class would do as well; here a method is asked for a parameter it refuses.
    plan = replace(
        plan, method=(replace(plan.method[0], parameters={"n_iter": -1}), plan.method[1])
    )
    records = run(plan, tmp_path, root=data, watcher=watcher)
    assert [record.method for record in records] == ["lsh"]
    assert set(records.failures) == {"itq, 8 bits, run 0", "itq, 64 bits, run 0"}
    assert all("n_iter" in reason for reason in records.failures.values())
    assert sum(isinstance(outcome, Failed) for outcome in told) == 2
    assert json.loads((tmp_path / "failures.json").read_text()) == records.failures
    assert len(Records.read(tmp_path).missing) == 2


def test_a_process_that_dies_takes_only_its_cell(data, tmp_path, monkeypatch):
    from bittern import parallel
    from bittern.experiments import measure

    plan = protocol(method=[{"name": "lsh"}], runs=1)
    cells = cells_of(plan)
    (tmp_path / "cells").mkdir()
    experiment = measure.Experiment(plan, tmp_path, str(data))
    outcomes, killed = [], []
    real = parallel._Worker.begin

    def begin(worker, cell):
        real(worker, cell)
        if not killed:
            killed.append(cell)
            os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(parallel._Worker, "begin", begin)
    outcomes += measure.measure_all(experiment, cells, 1, 1)
    assert [type(outcome).__name__ for outcome in outcomes] == ["Failed", "Finished"]
    assert outcomes[0].cell == killed[0] and "signal 9" in outcomes[0].reason


def test_two_experiments_in_one_folder_are_refused(whole, data):
    import fcntl

    with (whole.folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BitternError, match="another experiment is running here"):
            run(whole.protocol, whole.folder, root=data)


def test_verify_finds_the_same_or_says_what_differs(whole, data, tmp_path):
    found = verify(whole.folder, root=data, wanted=("method=itq",), random_state=3)
    assert found.is_same and "the same, to the last bit" in str(found)
    (tmp_path / "cells").mkdir()
    (tmp_path / "protocol.toml").write_text(PLAIN)
    cell = cells_of(whole.protocol)[1]
    record = Record.load(cell.place(whole.folder))
    ap = replace(record.values["ap"], mean=record.values["ap"].mean + 0.01)
    wrong = replace(record, values=record.values | {"ap": ap}, versions={"numpy": "1.0"})
    wrong.save(cell.place(tmp_path))
    found = verify(tmp_path, root=data)
    assert not found.is_same
    elsewhere = data.parent / "." / data.name / ".." / data.name  # the same, spelled otherwise
    assert verify(whole.folder, root=elsewhere, wanted=("method=lsh",)).is_same
    found = verify(tmp_path, root=data)
    assert f"ap {ap.mean:.6f}, now" in str(found) and "numpy 1.0, now" in str(found)


def test_a_folder_without_records_is_reported(tmp_path):
    with pytest.raises(BitternError, match=r"has no protocol\.toml"):
        Records.read(tmp_path)
    (tmp_path / "protocol.toml").write_text(PLAIN)
    with pytest.raises(BitternError, match="has no such record;"):
        verify(tmp_path)


def test_records_can_be_read_by_others(whole, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    whole.write_parquet(tmp_path / "values.parquet", per_query=True)
    found = duckdb.sql(
        f"select method, n_bits, avg(value) from '{tmp_path / 'values.parquet'}' "
        "where metric = 'ap' and run = 0 group by all"
    ).fetchall()
    means = {(method, n_bits): mean for method, n_bits, mean in found}
    for record in whole:
        if record.run == 0:
            expected = np.mean(record.per_query("ap"))
            assert means[record.method, record.n_bits] == pytest.approx(expected)
    one = duckdb.sql(
        f"select method, run from read_json('{whole.folder}/cells/itq-8-*.json.gz', "
        "maximum_object_size=100000000)"
    ).fetchall()
    assert sorted(one) == [("itq", 0), ("itq", 1)]


def test_images_are_written_for_examples(tmp_path):
    plan = protocol(
        dataset={"name": "digits"},
        split={"name": "improved", "sizes": {"train": 100, "queries": 20, "database": 50}},
        method=[{"name": "lsh", "n_bits": [8]}],
        runs=1,
    )
    records = run(plan, tmp_path)
    from PIL import Image

    for position in (e for x in records.records[0].examples for e in (x.query, *x.items)):
        with Image.open(tmp_path / "images" / f"{position}.png") as image:
            assert image.size == (8, 8)


def test_hash_tables_have_a_surface(data):
    plan = protocol(
        paradigm="tables",
        tables={"bits_per_table": [2, 4], "n_tables": [1, 2, 4]},
        method=[{"name": "lsh", "n_bits": [8]}],
        runs=1,
    )
    sets = run_data(plan, 0, data)
    record = measure_cell(plan, cells_of(plan)[0], sets)
    state = cells_of(plan)[0].random_state(plan)
    hasher = bt.hashing.LSH(8, random_state=state).fit(sets.train.vectors)
    codes = [hasher.encode(s.vectors) for s in (sets.queries, sets.database)]
    truth = bt.Relevance.from_classes(sets.queries.labels, sets.database.labels)
    table = bt.table_profile(*codes, truth, n_tables=2, bits_per_table=4)
    assert record.surface["precision"][1][1] == pytest.approx(table.micro_precision())
    assert record.surface["recall"][1][1] == pytest.approx(table.micro_recall())
    assert np.isnan(record.surface["f1"][1][2])  # four tables of four bits do not fit into eight
    wide = replace(plan, settings=plan.settings | {"bits_per_table": [16, 4]})
    again = measure_cell(wide, cells_of(wide)[0], sets)
    assert again.surface["bits_per_table"] == [4, 16]
    assert again.surface["f1"][0][1] == record.surface["f1"][1][1]
    assert np.isnan(again.surface["f1"][1]).all()  # no table has more bits than the code


def wait_until(is_so):
    end = time.monotonic() + seconds(60)
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def children_of(pid):
    """Processes whose session that process led."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == pid and fields[0] != "Z":
            found.append(path)
    return found
