"""The paradigm "evidence": the values, what is refused, and what cells share on disk."""

import io
import multiprocessing
import os
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bittern as bt
from bittern.errors import FileError, InputError, UnknownNameError
from bittern.experiments import Protocol, Record, cells_of
from bittern.experiments.evidence import scores as scores_module
from bittern.experiments.evidence.methods import LEAST_PRIOR
from bittern.experiments.evidence.scores import KnnSettings, texts_of
from bittern.experiments.measure import measure_cell
from bittern.experiments.run_data import load_dataset
from bittern.io.cache import ArrayCache, CachedArray

CLASSES, PER_CLASS = 4, 16
FEATURES = ["rgb-moments", "thumbnail", "smoothness"]
PROTOCOLS = Path(bt.__file__).parent / "protocols"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder laid out as Corel-5K is: images whose colour tells a little of their category."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), PER_CLASS)
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for number, label in enumerate(labels):
            pixels = rng.integers(0, 160, (16, 16, 3)) + 20 * label * np.array([1, 0, 2]) // 2
            buffer = io.BytesIO()
            Image.fromarray(pixels.astype(np.uint8)).save(buffer, "PNG")
            archive.writestr(f"{1000 + number}.png", buffer.getvalue())
    names = np.eye(CLASSES, dtype=np.uint8)[labels]  # a word that names the category
    others = rng.random((len(labels), 5)) < 0.2 + 0.15 * (labels[:, None] == np.arange(5))
    np.savez(
        folder / "labels.npz",
        image_id=1000 + np.arange(len(labels)),
        category=labels,
        is_test=np.zeros(len(labels), np.uint8),
        annot=np.hstack([names, others.astype(np.uint8)]),
        words=np.array(["tiger", "boat", "snow", "horse", "grass", "sky", "rock", "tree", "water"]),
    )
    return folder


def table(*methods, split="corel", **changes):
    """A small protocol; a method is a name, or a name with what else is told of it."""
    listed = [{"name": m} if isinstance(m, str) else {"name": m[0], **m[1]} for m in methods]
    sizes = {"per_size": 1, "sizes": [1, 2]} if split == "corel" else {}
    evidence = {"k": 4, "n_negatives": 5, "features": FEATURES, "n_topics": 4, "n_examples": 2}
    return {
        "title": "small",
        "paradigm": "evidence",
        "runs": 2,
        "metrics": ["ap", "precision@3"],
        "dataset": {"name": "corel5k", "options": {"min_images": 2}},
        "split": {"name": split, "sizes": sizes},
        "evidence": evidence | changes.pop("evidence", {}),
        "method": listed,
    } | changes


def prepared(protocol, root, folder):
    """The data of run 0."""
    dataset = load_dataset(protocol.dataset, root)
    return protocol.kind.prepare(protocol, dataset, 0, Path(folder))


def measured(root, folder, *methods, **changes):
    """The records of run 0, by label."""
    protocol = Protocol.of(table(*methods, **changes))
    cells = [cell for cell in cells_of(protocol) if cell.run == 0]
    data = prepared(protocol, root, folder)
    return {c.method.label: measure_cell(protocol, c, data) for c in cells}


def sides_by_hand(root, names, protocol):
    """Scores of both partitions, and which item is relevant, without any part of the experiment."""
    dataset = bt.load("corel5k", root, min_images=2)
    split = bt.make_split("corel", dataset, random_state=0, run=0, per_size=1, sizes=(1, 2))
    state = prepared(protocol, root, root).random_state
    found = []
    for asked, pool, database in (
        (split.training_queries, split.validation_queries, split.validation_database),
        (split.test_queries, split.queries, split.database),
    ):
        place = {p: i for i, p in enumerate(pool)}
        positives = [[place[p] for p in row if p >= 0] for row in asked.images]
        negatives = bt.fusion.draw_negatives(positives, np.arange(len(pool)), 5, random_state=state)
        scores = []
        for name in names:
            rows = bt.features.FEATURES[name]().fit_transform(dataset["image"])
            s = bt.fusion.similarities(positives, negatives, rows[pool], rows[database], k=4)
            scores.append(s.astype(np.float32))
        labels = dataset.labels[database]
        found.append((np.stack(scores), asked.categories, labels, asked.sizes, state))
    return found


class Copied(bt.features.RGBMoments):
    """The same feature, as a plug-in has it."""

    name = "copied"


def only_first(scores):
    return scores[0].astype(np.float64)


def too_flat(scores):
    return scores[0, 0]


def test_features_and_fusions_of_plug_ins_take_part(root, tmp_path):
    copied, first = f"{__name__}:Copied", f"{__name__}:only_first"
    methods = ("rgb-moments", copied, (first, {"parameters": {"features": [copied, "thumbnail"]}}))
    ours, theirs, fused = measured(root, tmp_path, *methods).values()
    assert ours.values == theirs.values == fused.values
    assert theirs.versions[f"feature {copied}"] == copied
    assert fused.versions[f"fusion {first}"] == first
    assert f"feature {copied}" in fused.versions
    assert not [name for name in ours.versions if name.startswith("feature")]
    with pytest.raises(InputError, match=r"too_flat: must return floats of shape \(\d+, \d+\)"):
        measured(root, tmp_path, f"{__name__}:too_flat")
    with pytest.raises(UnknownNameError, match="fusion 'no_such:x': there is no module"):
        Protocol.of(table("no_such:x"))
    with pytest.raises(UnknownNameError, match="feature 'no_such:x': there is no module"):
        Protocol.of(table("comb-sum", evidence={"features": ["no_such:x"]}))


def ap(fused, categories, labels):
    truth = bt.Relevance.from_classes(categories, labels)
    profile = bt.TieProfile.from_distances(-fused, truth)
    return bt.evaluate(profile, ["ap"])["ap"].per_query


def assert_ap(record, expected):
    np.testing.assert_array_equal(record.per_query("ap"), expected)


def test_values_are_those_of_the_fusions_by_hand(root, tmp_path):
    found = measured(
        root,
        tmp_path,
        "thumbnail",
        "comb-sum",
        "borda",
        ("svm", {"parameters": {"n_per_category": 2}}),
        ("raster", {"parameters": {"step": 0.5, "features": FEATURES[:2]}}),
        ("oracle", {"parameters": {"step": 0.5}}),
        ("oracle-raster", {"parameters": {"step": 0.5}}),
    )
    protocol = Protocol.of(table("comb-sum"))
    train, test = sides_by_hand(root, FEATURES, protocol)
    scores, categories, labels, sizes, state = test
    t_scores, t_categories, t_labels, t_sizes, _ = train
    relevant = t_categories[:, None] == t_labels
    assert_ap(found["thumbnail"], ap(scores[1], categories, labels))
    assert_ap(found["comb-sum"], ap(bt.fusion.comb_sum(scores), categories, labels))
    assert_ap(found["borda"], ap(bt.fusion.borda(scores), categories, labels))
    fused = np.empty(scores.shape[1:])
    for n in (1, 2):
        svm = bt.fusion.SVMFusion(2, random_state=state)
        svm.fit(t_scores[:, t_sizes == n], relevant[t_sizes == n], t_categories[t_sizes == n])
        fused[sizes == n] = svm.combine(scores[:, sizes == n])
        learned = found["svm"].parameters["learned"]["weights"][f"{n} examples"]
        assert list(learned.values()) == svm.weights_.tolist()
    assert_ap(found["svm"], ap(fused, categories, labels))
    raster = bt.fusion.RasterFusion(step=0.5).fit(t_scores[:2], relevant)
    assert_ap(found["raster"], ap(raster.combine(scores[:2]), categories, labels))
    bound = bt.fusion.oracle_weights(scores, categories[:, None] == labels, step=0.5).ap
    np.testing.assert_allclose(found["oracle"].per_query("ap"), bound, rtol=1e-6)
    seen = bt.fusion.RasterFusion(step=0.5).fit(scores, categories[:, None] == labels)
    assert found["oracle-raster"].values["ap"].mean == pytest.approx(seen.mean_ap_)
    assert all("looks_at" in found[name].parameters for name in ("oracle", "oracle-raster"))
    assert "looks_at" not in found["raster"].parameters


def test_predicted_weights_are_learned_from_training_queries_around_those_of_svms(root, tmp_path):
    folds = ("predicted-weights", {"parameters": {"n_folds": 2}})
    (record,) = measured(root, tmp_path, folds).values()
    train, test = sides_by_hand(root, FEATURES, Protocol.of(table("comb-sum")))
    scores, categories, labels, sizes, state = train
    relevant = categories[:, None] == labels
    svms = [
        bt.fusion.SVMFusion(random_state=state).fit(
            scores[:, sizes == n], relevant[sizes == n], categories[sizes == n]
        )
        for n in (1, 2)
    ]
    prior = np.maximum(np.mean([svm.weights_ for svm in svms], axis=0), LEAST_PRIOR)
    predictor = bt.fusion.WeightPredictor(n_folds=2, random_state=state)
    predictor.fit(scores, relevant, categories, prior=prior)
    assert_ap(record, ap(predictor.combine(test[0]), test[1], test[2]))
    weights = record.parameters["learned"]["mean_weights"]["all queries"]
    assert list(weights.values()) == predictor.weights(test[0]).mean(axis=0).tolist()
    assert "looks_at" not in record.parameters


def test_a_record_has_queries_split_and_settings_and_survives_a_file(root, tmp_path):
    (record,) = measured(root, tmp_path, "comb-sum").values()
    assert len(record.query_positions) == len(record.query_labels) == len(record.n_relevant) == 8
    assert record.query_labels == tuple(np.repeat(np.arange(CLASSES), 2))
    assert record.parameters == {"features": FEATURES, "k": 4, "n_negatives": 5}
    assert record.split["name"] == "corel"
    assert record.split["leaks"] == 0
    assert record.split["leak_check"]
    assert set(record.values) == {"ap", "precision@3"}
    assert record.n_bits is None and record.profile is None
    record.save(tmp_path / "r.json.gz")
    assert Record.load(tmp_path / "r.json.gz").same_values(record)


def test_the_best_features_are_those_of_the_training_queries(root, tmp_path):
    labels = [f"best {n}" for n in (1, 2, 3)]
    methods = [
        ("comb-sum", {"label": label, "parameters": {"best": n}})
        for n, label in enumerate(labels, start=1)
    ]
    found = measured(root, tmp_path, *methods)
    train, test = sides_by_hand(root, FEATURES, Protocol.of(table("comb-sum")))
    means = [ap(scores, train[1], train[2]).mean() for scores in train[0]]
    order = np.argsort([-mean for mean in means], kind="stable")
    assert len(set(means)) == len(FEATURES)
    for n, label in enumerate(labels, start=1):
        assert found[label].parameters["features"] == [FEATURES[i] for i in order[:n]]
        fused = bt.fusion.comb_sum(test[0][order[:n]])
        assert_ap(found[label], ap(fused, test[1], test[2]))


def test_topics_are_left_out_in_turn_and_words_that_name_them_withheld(root, tmp_path):
    methods = ("bag-of-words", ("svm", {"parameters": {"n_per_category": 2}}))
    features = {"features": ["bag-of-words", *FEATURES[:2]]}
    protocol = Protocol.of(table(*methods, split="trecvid", evidence=features))
    data = prepared(protocol, root, tmp_path)
    found = measured(root, tmp_path, *methods, split="trecvid", evidence=features)
    assert found["bag-of-words"].parameters["withheld_words"] == sorted(
        ["tiger", "boat", "snow", "horse"]
    )
    knn = KnnSettings(4, 5)
    train, test = (data.scores(p, features["features"], knn) for p in ("training", "test"))
    fused = np.empty(test.scores.shape[1:])
    for q, category in enumerate(test.categories):
        others = train.categories != category
        assert others.sum() == 3
        svm = bt.fusion.SVMFusion(2, random_state=data.random_state)
        svm.fit(train.scores[:, others], train.relevant[others], train.categories[others])
        fused[q] = svm.combine(test.scores[:, q : q + 1])[0]
    assert_ap(
        found["svm"], ap(fused, test.categories, data.dataset.labels[data.queries.test.database])
    )
    queries = data.queries
    ranked = np.concatenate([queries.split.train, queries.test.database, queries.test.pool])
    assert not np.isin(queries.test.images, ranked).any()
    assert np.isin(queries.test.images, queries.split.queries).all()  # the leak check sees them


def test_words_can_be_topics_and_are_withheld_then(root, tmp_path):
    settings = {"topics": "words", "n_topics": 2, "features": ["bag-of-words", "rgb-moments"]}
    methods = [
        ("topic-svm", {"label": f"SVM {n}", "parameters": {"n_per_category": n}}) for n in (1, 4)
    ]
    protocol = Protocol.of(table(*methods, split="trecvid", evidence=settings))
    data = prepared(protocol, root, tmp_path)
    dataset, side = data.dataset, data.queries.test
    counts = dataset.tags.sum(axis=0)
    assert sorted(counts[[dataset.tag_names.index(n) for n in data.queries.names]]) == sorted(
        np.sort(counts)[-2:]
    )
    for q, name in enumerate(data.queries.names):
        has_word = np.asarray(dataset.tags)[:, dataset.tag_names.index(name)] > 0
        assert side.relevant[q].tolist() == has_word[side.database].tolist()
        assert has_word[side.images[q]].all() and not np.isin(side.images, side.database).any()
        assert name not in " ".join(data.texts.texts).split()
    for cell in cells_of(protocol)[:2]:
        record = measure_cell(protocol, cell, data)
        assert record.parameters["withheld_words"] == sorted(data.queries.names)
        assert len(record.parameters["learned"]["weights"]) == 2


def test_words_that_name_a_category_are_withheld(root):
    texts, withheld = texts_of(bt.load("corel5k", root, min_images=2))
    assert set(withheld) == {"tiger", "boat", "snow", "horse"}
    assert not {"tiger", "boat", "snow", "horse"} & set(" ".join(texts).split())
    assert "grass" in " ".join(texts)


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"method": [{"name": "comb-sun"}]}, UnknownNameError, "'comb-sum'"),
        ({"method": [{"name": "svm", "parameters": {"n_per_categry": 1}}]}, InputError, "n_per_c"),
        ({"method": [{"name": "gist", "parameters": {"best": 1}}]}, InputError, "single feature"),
        ({"method": [{"name": "svm", "parameters": {"best": 4}}]}, InputError, "best"),
        ({"method": [{"name": "svm", "grid": {"C": [1.0]}}]}, InputError, "cannot have grid"),
        ({"method": [{"name": "svm", "parameters": {"features": ["gits"]}}]}, Exception, "'gist'"),
        ({"method": [{"name": "svm", "parameters": {"features": "gist"}}]}, InputError, "a list"),
        ({"method": [{"name": "oracle", "label": "best"}]}, InputError, "say oracle"),
        ({"evidence": {"n_negative": 3}}, InputError, "'n_negatives'"),
        ({"evidence": {"features": ["gits"]}}, UnknownNameError, "'gist'"),
        ({"evidence": {"features": ["gist", "gist"]}}, InputError, "distinct"),
        ({"evidence": {"k": 0}}, InputError, "k must"),
        ({"evidence": {"topics": "word"}}, UnknownNameError, "'words'"),
        ({"evidence": {"features": ["boosted-gits"]}}, UnknownNameError, "boosted-gist"),
        ({"evidence": {"partition": "trainin"}}, UnknownNameError, "'training'"),
        ({"metrics": ["ap:database-order"]}, InputError, "is for rankings by codes"),
        ({"split": "improved"}, UnknownNameError, "corel, trecvid"),
        ({"truth": {"kind": "tags"}}, InputError, "truth"),
    ],
)
def test_what_is_unknown_is_refused_before_any_work(changes, error, said):
    with pytest.raises(error, match=said):
        Protocol.of(table("svm", **changes))


def test_what_learns_is_not_judged_on_the_training_partition(root, tmp_path):
    with pytest.raises(InputError, match="learns on the training"):
        Protocol.of(table("svm", evidence={"partition": "training"}))
    (found,) = measured(root, tmp_path, "comb-sum", evidence={"partition": "training"}).values()
    train, _ = sides_by_hand(root, FEATURES, Protocol.of(table("comb-sum")))
    assert_ap(found, ap(bt.fusion.comb_sum(train[0]), train[1], train[2]))


def test_k_and_negatives_may_be_a_methods_own(root, tmp_path):
    methods = ["comb-sum", ("comb-sum", {"label": "k 2", "parameters": {"k": 2}})]
    found = measured(root, tmp_path, *methods)
    assert found["k 2"].parameters["k"] == 2
    assert found["k 2"].per_query("ap").tolist() != found["comb-sum"].per_query("ap").tolist()


def test_what_is_cached_is_not_made_again(root, tmp_path, monkeypatch):
    first = measured(root, tmp_path, "comb-sum")["comb-sum"]
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "evidence").rglob("*.npz")}
    assert {p.parent.name for p in files} == {"vectors", "scores", "splits"}

    def never(*_, **__):
        raise AssertionError("made again")

    monkeypatch.setattr(scores_module, "score_items", never)
    again = measured(root, tmp_path, "comb-sum")["comb-sum"]
    assert again.same_values(first)
    assert files == {p: p.stat().st_mtime_ns for p in (tmp_path / "evidence").rglob("*.npz")}
    with pytest.raises(AssertionError, match="made again"):  # other settings are other scores
        measured(root, tmp_path, ("comb-sum", {"parameters": {"k": 3}}))


@pytest.mark.parametrize("kind", ["vectors", "scores", "splits"])
def test_a_damaged_file_is_named_and_made_anew_once_deleted(root, tmp_path, kind):
    first = measured(root, tmp_path, "rgb-moments")["rgb-moments"]
    (path,) = (tmp_path / "evidence" / kind).glob("*.npz")
    path.write_bytes(path.read_bytes()[:-100])
    if kind == "vectors":  # looked at only to make scores
        for scores in (tmp_path / "evidence" / "scores").glob("*.npz"):
            scores.unlink()
    with pytest.raises(FileError, match=path.name):
        measured(root, tmp_path, "rgb-moments")
    path.unlink()
    assert measured(root, tmp_path, "rgb-moments")["rgb-moments"].same_values(first)


def test_scores_whose_bytes_changed_are_refused(root, tmp_path):
    measured(root, tmp_path, "rgb-moments")
    (path,) = (tmp_path / "evidence" / "scores").glob("*.npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match=path.name):
        measured(root, tmp_path, "rgb-moments")


def test_what_an_experiment_beside_it_made_is_linked(tmp_path):
    first, second = ArrayCache(tmp_path / "a" / "evidence"), ArrayCache(tmp_path / "b" / "evidence")
    place = first.get(CachedArray("made", "x", 0, lambda: np.arange(3))).path
    other = CachedArray("made", "x", 0, lambda: np.arange(4))
    assert second.get(other).load().size == 4  # "a" is no experiment yet
    (tmp_path / "b" / "evidence" / "made" / place.name).unlink()
    (tmp_path / "a" / "protocol.toml").touch()
    linked = second.get(other)
    assert linked.load().size == 3
    assert linked.path.samefile(place) and linked.path.is_relative_to(tmp_path / "b")
    assert second.get(CachedArray("made", "x", 1, lambda: np.arange(4))).load().size == 4


def test_a_damaged_array_of_an_experiment_beside_it_is_made_anew(tmp_path):
    first, second = ArrayCache(tmp_path / "a" / "evidence"), ArrayCache(tmp_path / "b" / "evidence")
    array = CachedArray("made", "x", 0, lambda: np.arange(300))
    place = first.get(array).path
    (tmp_path / "a" / "protocol.toml").touch()
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(bytes(content))
    assert second.get(array).load().tolist() == list(range(300))


def _slow_array(folder, name):
    """An array that takes a while, and logs who makes it."""

    def make():
        time.sleep(0.2)
        with (folder / "log").open("a") as log:
            log.write(f"{name} {os.getpid()}\n")
        return np.arange(3)

    return CachedArray("made", name, 0, make)


def _fetch_both(folder, names):
    cache = ArrayCache(folder)
    return [a.load().tolist() for a in cache.get_all([_slow_array(folder, n) for n in names])]


def test_two_processes_share_the_work_and_make_nothing_twice(tmp_path):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        both = pool.starmap(_fetch_both, [(tmp_path, ["a", "b"])] * 2, chunksize=1)
    assert both == [[[0, 1, 2], [0, 1, 2]]] * 2
    lines = (tmp_path / "log").read_text().split()
    assert sorted(lines[::2]) == ["a", "b"]


def _measure_in_a_process(root, folder, label):
    protocol = Protocol.of(table("comb-sum", ("svm", {"parameters": {"n_per_category": 2}})))
    cell = next(c for c in cells_of(protocol) if c.method.label == label and c.run == 0)
    record = measure_cell(protocol, cell, prepared(protocol, root, folder))
    record.save(folder / f"{label}-{os.getpid()}.gz")


def test_two_cells_in_two_processes_agree_with_one_after_the_other(root, tmp_path):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        jobs = [(root, tmp_path, label) for label in ("comb-sum", "svm")]
        pool.starmap(_measure_in_a_process, jobs, chunksize=1)
    alone = measured(
        root, tmp_path / "alone", "comb-sum", ("svm", {"parameters": {"n_per_category": 2}})
    )
    for label, record in alone.items():
        (path,) = tmp_path.glob(f"{label}-*.gz")
        assert Record.load(path).same_values(record)


@pytest.mark.parametrize("path", sorted(PROTOCOLS.glob("evidence-*.toml")), ids=lambda p: p.stem)
def test_shipped_protocols_are_sound(path):
    protocol = Protocol.load(path)
    assert protocol.main_metric == "ap"
    assert all((protocol.reproduces, protocol.differs, protocol.takes))
    first = [line.split(" = ")[0] for line in path.read_text().splitlines()[:4]]
    assert first == ["title", "reproduces", "differs", "takes"]


def test_every_table_and_figure_of_the_paper_has_a_protocol():
    names = {path.stem for path in PROTOCOLS.glob("evidence-*.toml")}
    assert names >= {f"evidence-{part}" for part in ("table-1", "table-2", "table-3", "figure-1")}
