"""Open vocabulary: which words are held out, what training loses, and what single words find."""

import tomllib

import numpy as np
import pytest

from bittern.errors import InputError, UnknownNameError
from bittern.experiments import Protocol, Records, cells_of, trials_of
from bittern.experiments.measure import measure_cell
from bittern.experiments.open_vocabulary import (
    HELD_OUT,
    KNOWN,
    OpenVocabularySettings,
    QueryWords,
    WordData,
    without_words,
)
from bittern.experiments.run_data import SplitSet, load_dataset
from bittern.hashing.crossmodal import CROSSMODAL
from bittern.io.protocol_files import shipped
from bittern.io.toml import to_toml
from bittern.report import to_markdown

N, N_TAGS = 200, 12
WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibex", "jay", "kiwi", "lynx"]
PLAN = """
title = "Words"
paradigm = "open-vocabulary"
n_bits = [8]
runs = 2
metrics = ["ap", "precision@5"]
dataset = { name = "arrays", options = { vectors = ["image"] }, steps = [] }
split = { name = "improved", sizes = { train = 120, queries = 20, validation_queries = 0, validation_database = 0 } }
truth = { kind = "tags" }
method = [{ name = "dch", parameters = { kernel = "linear" } }, { name = "cca-itq" }]
open_vocabulary = { n_words = 3, least = 0.02, most = 0.6 }
"""  # noqa: E501


def plan_of(**changes):
    plan = tomllib.loads(PLAN)
    plan["dataset"]["options"]["tag_names"] = WORDS
    return Protocol.of(plan | changes)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Images whose vectors are sums over their words, in a folder of .npy files."""
    folder, rng = tmp_path_factory.mktemp("made") / "arrays", np.random.default_rng(0)
    folder.mkdir()
    tags = rng.random((N, N_TAGS)) < 0.2
    tags[~tags.any(axis=1), 0] = True
    rows = tags @ rng.standard_normal((N_TAGS, 10)) + 0.1 * rng.standard_normal((N, 10))
    np.save(folder / "image.npy", rows.astype(np.float32))
    np.save(folder / "tags.npy", tags)
    return folder


def prepared(plan, data, run=0):
    return plan.kind.prepare(plan, load_dataset(plan.dataset, data), run, data)


def expected_ap(distances, relevant):
    """The mean AP over many random orders of the items at equal distances."""
    rng, values = np.random.default_rng(0), []
    for _ in range(4000):
        order = np.lexsort((rng.random(len(distances)), distances))
        hits = relevant[order]
        values.append((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())
    return np.mean(values)


def test_words_come_in_pairs_of_about_the_same_frequency():
    searched = np.arange(100)[:, None] < np.arange(0, 80, 4)  # word j is on 4 j images
    train = np.ones((5, 20), np.bool_)
    train[:, 10] = False  # no training row has it
    settings = OpenVocabularySettings(n_words=4, least=0.08, most=0.44)
    fitting = {2, 3, 4, 5, 6, 7, 8, 9, 11}
    firsts = set()
    for seed in range(20):
        words = QueryWords.draw(settings, train, searched, np.random.default_rng(seed))
        drawn = np.concatenate((words.known, words.held_out))
        assert len(set(drawn)) == 8 and set(drawn) <= fitting
        assert np.abs(words.known - words.held_out).max() <= 3  # neighbours by frequency
        firsts.add(bool(words.known[0] < words.held_out[0]))
    assert firsts == {True, False}  # either of a pair can be the one that is held out


def test_items_lose_the_words_and_leave_if_they_have_no_other():
    tags = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], np.bool_)
    items = SplitSet(np.array([4, 5, 6]), np.eye(3), tags=tags)
    left = without_words(items, np.array([1]))
    assert left.positions.tolist() == [4, 6]
    assert left.tags.astype(int).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert tags[0, 1]  # the original keeps its words


def test_training_sees_no_held_out_word_and_no_searched_image(data):
    run = prepared(plan_of(), data)
    assert not run.train.tags[:, run.words.held_out].any()
    assert run.train.tags[:, run.words.known].any(axis=0).all()
    assert not np.isin(run.database.positions, run.train.positions).any()
    assert len(run.database) == N - 120
    everything = np.load(data / "tags.npy")
    np.testing.assert_array_equal(run.database.tags, everything[run.database.positions])
    names = [run.names[i] for i in run.words.held_out]
    assert f"held-out words: {', '.join(names)}." in run.statement["notes"]
    assert run.statement["sizes"] == {"train": len(run.train), "queries": 6, "database": 80}


def test_each_run_draws_its_own_words(data):
    runs = [prepared(plan_of(), data, run).words.held_out.tolist() for run in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("words", [False, True])
def test_single_words_search_the_unseen_images(data, words):
    """By hand: captions without the held-out words, a fit, codes, and AP over random orders."""
    parameters = {"kernel": "linear", "words": words}
    plan = plan_of(method=[{"name": "dch", "parameters": parameters}])
    run, cell = prepared(plan, data), cells_of(plan)[0]
    record = measure_cell(plan, cell, run)

    tags = np.load(data / "tags.npy")[run.split.train]
    tags[:, run.words.held_out] = False
    kept = tags.any(axis=1)
    images, tags = np.load(data / "image.npy")[run.split.train][kept], tags[kept]
    idf = np.log(len(tags) / np.maximum(tags.sum(axis=0), 1)) * tags.any(axis=0)
    texts = tags * idf / (tags * idf).sum(axis=1, keepdims=True)
    single = np.diag(tags.any(axis=0)).astype(float)  # a held-out word has no column of its own
    y = tags[:, tags.any(axis=0)]
    if words:
        image, word = np.nonzero(tags)
        images = np.concatenate((images, images[image]))
        texts, y = np.concatenate((texts, single[word])), np.concatenate((y, y[image]))
    keep = tags.any(axis=0)
    model = CROSSMODAL["dch"](8, kernel="linear", random_state=cell.random_state(plan))
    model.fit(images.astype(np.float32), texts[:, keep].astype(np.float32), y)
    unseen = run.database.positions
    items = model.transform(images=np.load(data / "image.npy")[unseen])
    for task in (KNOWN, HELD_OUT):
        result = record.tasks[task.name]
        column = run.words.of(task)[0]
        query = model.transform(texts=single[[column]][:, keep].astype(np.float32))
        relevant = np.load(data / "tags.npy")[unseen, column]
        assert result.n_relevant[0] == relevant.sum()
        by_hand = expected_ap((items != query).sum(axis=1), relevant)
        assert result.values["ap"].per_query[0] == pytest.approx(by_hand, abs=0.01)
    both = [record.tasks[task.name].values["ap"].mean for task in (KNOWN, HELD_OUT)]
    assert record.values["ap"].mean == pytest.approx(np.mean(both))


class Closed(WordData):
    """The data of a run whose searched images must not be touched."""

    @property
    def database(self):
        """Not for trials."""
        raise AssertionError("the test images were touched")

    queries = statement = database


def test_a_trial_holds_out_further_words_and_touches_no_test_image(data):
    method = {"name": "dch", "grid": {"kernel": ["linear", "rbf"]}}
    plan = plan_of(method=[method], search={"held_out": 0.5})
    run, trial = prepared(plan, data), trials_of(plan)[0]
    closed = Closed(run.dataset, run.prepared, run.split, run.modality, words=run.words)
    record = measure_cell(plan, trial, closed)
    assert 0 < record.values["ap"].mean <= 1 and record.parameters == {"kernel": "linear"}
    (captions,) = {key[1:] for key in closed._texts}
    used = {word for caption in captions for word in caption.split()}
    assert len(used) == N_TAGS - 6  # three words of the test and three of the trial are gone
    assert not used & {run.names[i] for i in run.words.held_out}


def test_words_are_given_to_methods_that_take_them(data, monkeypatch):
    pytest.importorskip("torch")
    parameters = {"network": "linear", "n_steps": 1, "words": True}
    plan = plan_of(method=[{"name": "cm-talr", "parameters": parameters}])
    run, seen = prepared(plan, data), {}
    fit = CROSSMODAL["cm-talr"].fit

    def spy(self, images, texts, y=None, *, words=None, held_out=None):
        seen.update(words=words, n=len(texts))
        return fit(self, images, texts, y, words=words, held_out=held_out)

    monkeypatch.setattr(CROSSMODAL["cm-talr"], "fit", spy)
    measure_cell(plan, cells_of(plan)[0], run)
    assert seen["n"] == len(run.train)
    assert seen["words"].shape == (N_TAGS - 3, N_TAGS - 3)  # every word that is not held out


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"open_vocabulary": {"n_words": 0}}, InputError, "n_words must be at least 1"),
        ({"open_vocabulary": {"least": 0.5, "most": 0.1}}, InputError, "got 0.5 and 0.1"),
        ({"open_vocabulary": {"colour": 1}}, InputError, "colour"),
        ({"truth": {"kind": "classes"}}, InputError, "give kind = 'tags', without grades"),
        ({"truth": {"kind": "tags", "graded": True}}, InputError, "without grades"),
        ({"method": [{"name": "itq"}]}, UnknownNameError, "cross-modal hasher"),
        ({"method": [{"name": "dch", "parameters": {"text": "gist"}}]}, UnknownNameError,
         "no feature of texts is called 'gist'"),
        ({"method": [{"name": "dch", "parameters": {"words": 1}}]}, InputError, "true or false"),
        ({"method": [{"name": "dch", "learns_from": "classes"}]}, InputError, "learns_from"),
        ({"method": [{"name": "dch", "grid": {"mu": [1.0, 2.0]}}],
          "search": {"database": "train"}}, InputError, "not 'train'"),
        ({"n_bits": []}, InputError, "n_bits is missing"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(changes, error, says):
    with pytest.raises(error, match=says):
        plan_of(**changes)


def test_too_few_words_are_refused(data):
    plan = plan_of(open_vocabulary={"n_words": 7, "least": 0.02, "most": 0.6})
    with pytest.raises(InputError, match=r"needs 14 words .* found 12; lower n_words"):
        prepared(plan, data)


def test_reports_show_both_kinds_of_words_side_by_side(data, tmp_path):
    plan = plan_of()
    (tmp_path / "protocol.toml").write_text(to_toml(plan.to_dict()))
    (tmp_path / "cells").mkdir()
    for run in range(2):
        sets = prepared(plan, data, run)
        for cell in cells_of(plan):
            if cell.run == run:
                measure_cell(plan, cell, sets).save(cell.place(tmp_path))
    text = to_markdown(Records.read(tmp_path))
    assert "mean of known word → image and held-out word → image, unseen" in text
    assert "| method | known word → image, unseen | held-out word → image, unseen |" in text


def test_the_shipped_protocol_gives_every_method_the_same_budget():
    plan = Protocol.load(shipped()["crossmodal-corel5k-open"])
    assert plan.search is not None and all(method.grid for method in plan.method)
    texts = [method.parameters["text"] for method in plan.method]
    assert set(texts) == {"bag-of-words", "sentence"}
    grids = {method.name: method.grid for method in plan.method}
    assert all(method.grid == grids[method.name] for method in plan.method)
    sizes = [np.prod([len(values) for values in grid.values()]) for grid in grids.values()]
    assert min(sizes) >= plan.search.points  # none has fewer points than another
