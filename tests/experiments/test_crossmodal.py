"""Search across modalities: what is searched in each setting, and what records and reports say."""

import json
import re
import tomllib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from made_protocols import command
from processes import one_after_another

import bittern as bt
from bittern.analysis import analyse
from bittern.errors import BitternError, InputError, UnknownNameError
from bittern.experiments import Protocol, Record, Records, cells_of, measure, trials_of
from bittern.experiments.crossmodal import PairedData
from bittern.experiments.measure import measure_cell
from bittern.experiments.record import TaskResult, Value, mean_values
from bittern.experiments.run_data import load_dataset
from bittern.hashing.crossmodal import CROSSMODAL
from bittern.io.protocol_files import shipped
from bittern.report import to_csv, to_latex, to_markdown, to_text
from bittern.report.page import page_of

N, METRICS = 150, ["ap", "precision@5"]
PLAN = """
title = "Pairs"
paradigm = "crossmodal"
n_bits = [6]
runs = 1
metrics = ["ap", "precision@5"]
dataset = { name = "arrays", options = { vectors = ["image", "text"] } }
split = { name = "improved", sizes = { train = 80, queries = 20, validation_queries = 0, validation_database = 0 } }
method = [{ name = "cca-itq" }, { name = "dch" }]
"""  # noqa: E501


def plan_of(**changes):
    return Protocol.of(tomllib.loads(PLAN) | changes)


def write_pairs(folder, random_state=0):
    """Images and texts of three classes, and tags, in a folder of .npy files."""
    rng = np.random.default_rng(random_state)
    labels = np.arange(N) % 3
    folder.mkdir(parents=True, exist_ok=True)
    for name, dim in (("image", 12), ("text", 7)):
        rows = rng.standard_normal((N, dim)) + rng.standard_normal((3, dim))[labels]
        np.save(folder / f"{name}.npy", rows.astype(np.float32))
    np.save(folder / "labels.npy", labels)
    np.save(folder / "tags.npy", rng.random((N, 4)) < 0.4)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("made") / "arrays")


def prepared(plan, data, run=0):
    return plan.kind.prepare(plan, load_dataset(plan.dataset, data), run, data)


def measured(plan, data, place=0):
    return measure_cell(plan, cells_of(plan)[place], prepared(plan, data))


def precision_at_5(query, items, relevant):
    """For one query, with the tie at the border taken in equal shares; NaN if none is relevant."""
    if not relevant.any():
        return np.nan
    apart = (items != query).sum(axis=1)
    border = np.sort(apart)[4]
    nearer, tied = apart < border, apart == border
    return (relevant[nearer].sum() + (5 - nearer.sum()) * relevant[tied].mean()) / 5


def by_hand(queries, items, relevant, left_out=()):
    """Precision at 5 of each query; ``left_out`` has one item that it does not search."""
    values = []
    for i, query in enumerate(queries):
        kept = np.arange(len(items)) != (left_out[i] if len(left_out) else -1)
        values.append(precision_at_5(query, items[kept], relevant[i, kept]))
    return np.array(values)


# What a cell measures


@pytest.mark.parametrize("truth", ["classes", "tags"])
def test_every_task_searches_what_its_name_says(data, truth):
    """By hand: split, fit, encode both sides, and rank by sorted distances."""
    directions = ["image-to-text", "text-to-image", "image-to-image"]
    plan = plan_of(truth={"kind": truth}, crossmodal={"directions": directions})
    dataset = load_dataset(plan.dataset, data)
    split = bt.make_split("improved", dataset, random_state=0, run=0, **plan.split.sizes)
    rows = {name: np.asarray(dataset[name][:]) for name in ("image", "text")}
    y = dataset.labels if truth == "classes" else np.asarray(dataset.tags)
    same = y[:, None] == y[None] if y.ndim == 1 else y.astype(int) @ y.T.astype(int) > 0
    for place, name in enumerate(("cca-itq", "dch")):
        cell = cells_of(plan)[place]
        model = CROSSMODAL[name](6, random_state=cell.random_state(plan))
        model.fit(rows["image"][split.train], rows["text"][split.train], y[split.train])
        bits = {"image": model.transform(images=rows["image"]),
                "text": model.transform(texts=rows["text"])}  # fmt: skip
        record = measured(plan, data, place)
        assert len(record.tasks) == (9 if name == "dch" else 6)  # only DCH has training codes
        for task, result in record.tasks.items():
            query, found, setting = re.fullmatch(r"(\w+) → (\w+), (\w+)", task).groups()
            database = split.database if setting == "unseen" else split.train
            items = model.training_bits_ if setting == "leak" else bits[found][database]
            relevant = same[split.queries][:, database]
            expected = by_hand(bits[query][split.queries], items, relevant)
            np.testing.assert_allclose(result.values["precision@5"].per_query, expected)


def test_without_an_unseen_database_each_query_searches_the_other_queries(data):
    plan = plan_of(split={"name": "standard", "sizes": {"train": 110, "queries": 40,
                   "validation_queries": 0, "validation_database": 0}})  # fmt: skip
    run = prepared(plan, data)
    assert run.unseen is run.queries
    record = measure_cell(plan, cells_of(plan)[0], run)
    model = CROSSMODAL["cca-itq"](6, random_state=cells_of(plan)[0].random_state(plan))
    model.fit(run.train.vectors, run.train.texts)
    texts = model.transform(texts=run.queries.texts)
    images = model.transform(images=run.queries.vectors)
    same = run.queries.labels[:, None] == run.queries.labels[None]
    expected = by_hand(texts, images, same, left_out=np.arange(40))
    found = record.tasks["text → image, unseen"].values["precision@5"]
    np.testing.assert_allclose(found.per_query, expected)
    assert (expected != by_hand(texts, images, same)).any()  # its own pair would count
    assert record.split["sizes"]["unseen_database"] == 39
    assert "the other queries" in record.split["overlaps"]


def test_training_rows_are_never_part_of_the_unseen_database(data):
    plan = plan_of(split={"name": "standard", "sizes": {"train": 60, "queries": 20,
                   "validation_queries": 0, "validation_database": 0}})  # fmt: skip
    run = prepared(plan, data)
    assert not np.isin(run.unseen.positions, run.train.positions).any()
    assert len(run.unseen) == N - 80


def test_the_values_of_a_record_are_the_mean_of_both_directions(data):
    plan = plan_of(crossmodal={"directions": ["image-to-text", "image-to-image", "text-to-image"]})
    record = measured(plan, data)
    across = [record.tasks[f"{way}, unseen"] for way in ("image → text", "text → image")]
    for metric in METRICS:
        rows = [one.values[metric].per_query for one in across]
        np.testing.assert_allclose(record.values[metric].per_query, np.mean(rows, axis=0))
        spreads = [one.values[metric].spread for one in across]
        assert record.values[metric].spread == pytest.approx(tuple(np.mean(spreads, axis=0)))
    assert [t.name for t in plan.kind.tasks(plan) if t.is_main] == [
        "image → text, unseen", "text → image, unseen",
    ]  # fmt: skip


def test_a_query_without_a_value_in_one_task_has_none_in_the_mean():
    values = [
        Value(mean=0.5, undefined=1, per_query=(0.5, np.nan), spread=(0.2, 0.6)),
        Value(mean=0.3, undefined=0, per_query=(0.1, 0.5), spread=(0.2, 0.6)),
    ]
    one = mean_values([TaskResult(values={"ap": value}) for value in values])["ap"]
    assert one.mean == pytest.approx(0.3) and one.undefined == 1
    assert np.isnan(one.per_query[1]) and one.spread == pytest.approx((0.2, 0.6))
    pooled = [TaskResult(values={"auprc": Value(mean=mean)}) for mean in (0.2, 0.4)]
    assert mean_values(pooled)["auprc"] == Value(mean=pytest.approx(0.3))


def test_examples_are_of_the_main_tasks(data):
    record = measured(plan_of(), data)
    assert {name for name, one in record.tasks.items() if one.examples} == {
        "image → text, unseen", "text → image, unseen",
    }  # fmt: skip
    run = prepared(plan_of(), data)
    example = record.tasks["image → text, unseen"].examples[0]
    assert example.query in run.queries.positions
    assert np.isin(example.items, run.unseen.positions).all()


def test_items_that_lack_a_modality_are_left_out(data, tmp_path):
    folder = write_pairs(tmp_path / "arrays")
    text = np.load(folder / "text.npy")
    text[[3, 50, 149]] = np.nan
    np.save(folder / "text.npy", text)
    run = prepared(plan_of(), folder)
    used = np.concatenate([run.split.train, run.split.queries, run.split.database])
    assert len(used) == N - 3 and not np.isin([3, 50, 149], used).any()
    assert "3 items lack a modality and are left out." in run.statement["notes"]


# Trials


class Closed(PairedData):
    """The data of a run whose test sets must not be touched."""

    @property
    def queries(self):
        """Not for trials."""
        raise AssertionError("the test queries were touched")

    database = unseen = statement = queries


@pytest.mark.parametrize("where", ["held-out", "train"])
def test_a_trial_searches_held_out_training_rows_in_both_directions(data, where):
    grid = {"name": "cca-itq", "grid": {"n_iter": [1, 5]}}
    search = {"database": where, "metric": "precision@5"}
    plan = plan_of(method=[grid], search=search)
    run, trial = prepared(plan, data), trials_of(plan)[1]
    closed = Closed(run.dataset, run.prepared, run.split, run.modality, run.text_modality)
    record = measure_cell(plan, trial, closed)

    order = np.random.default_rng(trial.held_out_seed(plan)).permutation(80)
    held, rest = np.sort(order[:16]), np.sort(order[16:])
    images, texts, y = run.train.vectors, run.train.texts, run.train.labels
    model = CROSSMODAL["cca-itq"](6, n_iter=5, random_state=trial.random_state(plan))
    model.fit(images[rest], texts[rest])
    sides = model.transform(images=images), model.transform(texts=texts)
    items = rest if where == "train" else held
    own = () if where == "train" else np.arange(16)
    same = y[held][:, None] == y[items][None]
    expected = [
        np.nanmean(by_hand(query[held], found[items], same, own))
        for query, found in (sides, sides[::-1])
    ]
    assert record.values["precision@5"].mean == pytest.approx(np.mean(expected))
    assert record.parameters == {"n_iter": 5} and not record.tasks


# Bad input


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"crossmodal": {"directions": ["up"]}}, UnknownNameError, "no direction is called 'up'"),
        ({"crossmodal": {"settings": ["leak"]}}, InputError, "must be 'unseen' or 'seen'"),
        ({"crossmodal": {"settings": []}}, InputError, "settings must name at least one"),
        ({"crossmodal": {"settings": ["seen", "seen"]}}, InputError, "seen is named twice"),
        ({"crossmodal": {"text": "image"}}, InputError, "both the modality 'image'"),
        ({"crossmodal": {"colour": 1}}, InputError, "colour"),
        ({"truth": {"kind": "ball"}}, InputError, "'classes' or 'tags', got 'ball'"),
        ({"method": [{"name": "itq"}]}, UnknownNameError, "cross-modal hasher"),
        ({"method": [{"name": "dch", "parameters": {"mus": 1}}]}, InputError, "mus"),
        ({"n_bits": []}, InputError, "n_bits is missing"),
        ({"dataset": {"name": "arrays", "steps": ["l2"]}}, InputError, "image_steps"),
        ({"paradigm": "ranking", "method": [{"name": "lsh"}], "crossmodal": {"text": "t"}},
         InputError, "is for paradigm = 'crossmodal'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(changes, error, says):
    with pytest.raises(error, match=says):
        plan_of(**changes)


def test_an_unknown_modality_is_refused(data):
    with pytest.raises(BitternError, match="no modality is called 'sound'"):
        prepared(plan_of(crossmodal={"text": "sound"}), data)


def test_texts_that_are_not_vectors_are_refused(tmp_path):
    folder = write_pairs(tmp_path / "arrays")
    np.save(folder / "texts.npy", np.array([f"cat {i}" for i in range(N)]))
    (folder / "text.npy").unlink()
    plan = plan_of(dataset={"name": "arrays", "options": {"vectors": ["image"]}})
    with pytest.raises(InputError, match="modality 'text' holds texts; experiments need vectors"):
        prepared(plan, folder)


# Records and reports


@pytest.fixture(scope="module")
def records(tmp_path_factory, data):
    """Two runs of two methods, measured in this process."""
    plan, folder = plan_of(runs=2, n_bits=[4, 6]), tmp_path_factory.mktemp("records")
    (folder / "cells").mkdir()
    from bittern.io.toml import to_toml

    (folder / "protocol.toml").write_text(to_toml(plan.to_dict()))
    for run in range(2):
        sets = prepared(plan, data, run)
        for cell in cells_of(plan):
            if cell.run == run:
                measure_cell(plan, cell, sets).save(cell.place(folder))
    return Records.read(folder)


def test_a_record_with_tasks_survives_its_file(records, tmp_path):
    record = records.records[0]
    record.save(tmp_path / "r.json.gz")
    again = Record.load(tmp_path / "r.json.gz")
    assert again.same_values(record) and again.tasks.keys() == record.tasks.keys()
    name, one = next(iter(record.tasks.items()))
    changed = replace(one, n_relevant=(99, *one.n_relevant[1:]))
    assert not again.same_values(replace(record, tasks=record.tasks | {name: changed}))


def test_a_new_metric_is_computed_for_every_task(records):
    (records.folder / "old.toml").write_text((records.folder / "protocol.toml").read_text())
    text = (records.folder / "old.toml").read_text()
    wider = text.replace('"precision@5"', '"precision@5", "precision@3"')
    (records.folder / "protocol.toml").write_text(wider)
    try:
        again = Records.read(records.folder)
    finally:
        (records.folder / "protocol.toml").write_text(text)
    record = again.records[0]
    of_tasks = [one.values["precision@3"].mean for one in record.tasks.values()]
    assert record.values["precision@3"].mean == pytest.approx(np.mean(of_tasks[:2]))


def test_every_report_names_direction_and_setting(records):
    mean = "mean of image → text and text → image, unseen"
    tables = to_text(records)
    assert f"Average precision, {mean}" in tables and "each task at 6 bits" in tables
    assert tables.count("text → image, leak") == 2 and "a warning, not a result" in tables
    assert "| method | image → text, unseen | text → image, unseen |" in to_markdown(records)
    assert r"image $\rightarrow$ text, seen" in to_latex(records)
    lines = to_csv(records).splitlines()
    assert lines[0].endswith(",task")
    assert sum(line.endswith(',"image → text, leak"') for line in lines) == 2 * 2  # only of DCH
    names = {row["task"] for row in records.rows()}
    assert names == {mean, *(task.name for task in records.tasks)}
    columns = records.per_query_rows()
    assert set(columns["task"]) == names and len(columns["task"]) == len(columns["value"])


def test_the_table_of_all_tasks_has_the_values_of_each(records):
    text = to_text(records)
    lines = text[text.index("each task at 4 bits") :].splitlines()
    assert lines[2].split("  ")[0] == "method" and lines[2].count("→") == 6
    row = next(line for line in lines if line.startswith("dch"))
    shown = [float(value) for value in re.findall(r"(0\.\d{4}) ±", row)]
    cells = records.of("dch", 4)
    means = [np.mean([r.tasks[t.name].values["ap"].mean for r in cells]) for t in records.tasks]
    np.testing.assert_allclose(shown, means, atol=6e-5)


def test_a_leak_has_no_best_method_and_no_test(records):
    text = to_text(records)
    rows = [line for line in text.splitlines() if re.match(r"(dch|cca-itq)  .*–", line)]
    assert len(rows) == 2  # cca-itq has no leak, at each of two lengths
    leaks = [task for task in analyse(records).tasks if task.setting == "leak"]
    assert leaks and not any(task.competes for task in leaks)
    page = page_of(records)
    assert "<h3>image → text, seen</h3>" in page and "<h3>image → text, leak</h3>" not in page
    assert page.count("<svg") > 10 and "Directions and settings" in page


def test_tests_pair_the_queries_of_one_task(records):
    task, one = next(iter(analyse(records).tasks.items()))
    verdict = next(iter(one.verdicts()[0]))
    pairs = [records.of(name, 4) for name in (verdict.method, verdict.baseline)]
    a, b = (np.mean([r.tasks[task.name].values["ap"].mean for r in side]) for side in pairs)
    assert verdict.difference == pytest.approx(a - b)


@pytest.fixture
def bittern(tmp_path, monkeypatch, capsys):
    return partial(command, monkeypatch, capsys, tmp_path)


@pytest.mark.slow  # measures a cell in another process
def test_the_commands_work_on_these_records(bittern, records, data, monkeypatch):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    code, out, err = bittern("verify", records.folder, "--only", "method=dch", "--only", "bits=4",
                             "--only", "run=1", "--root", data)  # fmt: skip
    assert code == 0 and "every value is the same, to the last bit" in out, err
    code, out, err = bittern("compare", records.folder, records.folder)
    assert code == 0, err
    assert "First: Pairs, mean of image → text and text → image, unseen." in out
    assert "Second: Pairs, text → image, leak." in out


def test_the_gallery_shows_texts_and_images(records, tmp_path):
    from PIL import Image

    folder = tmp_path / "copy"
    folder.mkdir()
    images = folder / "images"
    images.mkdir()
    texts = {str(position): f"words of {position}" for position in range(N)}
    (images / "texts.json").write_text(json.dumps(texts))
    for position in range(N):
        Image.new("RGB", (2, 2)).save(images / f"{position}.png")
    page = page_of(replace(records, folder=folder))
    gallery = page[page.index('id="gallery"') :]
    first, second = gallery.split("text → image, unseen, 4 bits")
    assert "image → text, unseen, 4 bits" in first
    assert 'class="item words' in first and 'class="item words' not in second
    assert 'class="query-text"' in second and 'class="query-text"' not in first
    example = records.of("dch", 4)[0].tasks["image → text, unseen"].examples[0]
    assert f"words of {example.items[0]}" in first
    assert f"words of {example.query}" in second
    (images / "texts.json").unlink()  # an image in place of a text would mislead
    assert 'id="gallery"' not in page_of(replace(records, folder=folder))


# The protocols


def names_of(protocol):
    return [(method.name, method.grid) for method in protocol.method]


def test_the_protocols_for_two_modalities_have_the_same_methods_and_grids():
    found = {
        name: Protocol.load(path)
        for name, path in shipped().items()
        if name.startswith("crossmodal-") and not name.endswith("-shapes")
    }
    found = {name: one for name, one in found.items() if one.paradigm == "crossmodal"}  # fmt: skip
    first = names_of(found["crossmodal-wiki"])
    assert len(found) == 7 and "cm-talr" in [name for name, _ in first]
    fewer = {f"crossmodal-corel5k-{kind}" for kind in ("words", "graded", "improved")}
    for name, protocol in found.items():
        methods = names_of(protocol)
        assert methods == [one for one in first if one in methods]
        assert len(methods) == (8 if name in fewer else 14)
        points = 4 if "corel5k" in name or "improved" in name else 8
        assert protocol.search is not None and protocol.search.points == points
        assert "ap@50:retrieved" in protocol.metrics
    graded = found["crossmodal-corel5k-graded"]
    assert graded.main_metric == "ndcg" and graded.truth == {"kind": "tags", "graded": True}


def test_a_method_by_its_path_is_the_same_method(data):
    path = "bittern.hashing.crossmodal.cvh:CVH"
    found = []
    for name in ("cvh", path):
        protocol = plan_of(method=[{"name": name, "label": "x"}])
        prepared = protocol.kind.prepare(
            protocol, load_dataset(protocol.dataset, data), 0, data.parent
        )
        found.append(measure_cell(protocol, cells_of(protocol)[0], prepared))
    ours, theirs = found
    assert ours.values == theirs.values
    assert theirs.versions[f"cross-modal hasher {path}"].startswith(path)
    with pytest.raises(InputError, match="must be a subclass of CrossModalHasher"):
        plan_of(method=[{"name": "bittern.hashing:ITQ"}])
