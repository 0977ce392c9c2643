"""Changes of a protocol from the command line, and options of ground truth and training."""

import tomllib

import numpy as np
import pytest
from made_protocols import PLAIN, protocol, run_data, write_arrays

import bittern as bt
from bittern.errors import BitternError, InputError
from bittern.experiments import Protocol, run
from bittern.experiments.changes import apply_changes
from bittern.experiments.truth import read_truth
from bittern.io.protocol_files import shipped

TABLE = tomllib.loads(PLAIN)


@pytest.mark.parametrize(
    ("change", "where", "value"),
    [
        ("runs=1", ("runs",), 1),
        ("n_bits=[16, 32]", ("n_bits",), [16, 32]),
        (" runs = 3 ", ("runs",), 3),
        ("dataset.name=nuswide", ("dataset", "name"), "nuswide"),
        ("dataset.name='nuswide'", ("dataset", "name"), "nuswide"),
        ("dataset.options.concepts=21", ("dataset", "options", "concepts"), 21),
        ("split.sizes.balanced=false", ("split", "sizes", "balanced"), False),
        ("dataset={name='digits'}", ("dataset",), {"name": "digits"}),
        ("title=a = b", ("title",), "a = b"),
        ("method.itq.grid.n_iter=[2]", ("method", 2, "grid", "n_iter"), [2]),
        ("method.float ranking.parameters.metric=cosine",
         ("method", 0, "parameters", "metric"), "cosine"),
    ],
)  # fmt: skip
def test_a_change_replaces_or_adds_one_value(change, where, value):
    found = apply_changes(TABLE, [change])
    for key in where:
        found = found[key]
    assert found == value
    assert tomllib.loads(PLAIN) == TABLE  # the table itself stays as it is


def test_a_label_may_contain_dots():
    table = TABLE | {"method": [{"name": "lsh"}, {"name": "lsh", "label": "lsh.2 v0.5"}]}
    found = apply_changes(table, ["method.lsh.2 v0.5.n_bits=[4]", "method.lsh.n_bits=[8]"])
    assert [one["n_bits"] for one in found["method"]] == [[8], [4]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("runs", "--set takes KEY=VALUE"),
        ("=1", "--set takes KEY=VALUE"),
        ("n_bits=[16", "the value is not TOML"),
        ("runs=", "the value is not TOML"),
        ("dataset..name=x", "a part of the key is empty"),
        ("dataset.name.x=1", "dataset.name is not a table, it is 'arrays'"),
        ("rnus=1", "no key is called 'rnus'; did you mean 'runs'?"),
        ("dataset.nam=x", "dataset: no key is called 'nam'; did you mean 'name'?"),
        ("dataset.name=nuswyde", "no dataset is called 'nuswyde'; did you mean 'nuswide'?"),
        ("split.sizes.querys=1", "did you mean 'queries'?"),
        ("truth.kind=bal", "did you mean 'ball'?"),
        ("runs=many", "runs must be a whole number, got 'many'"),
        ("runs=nan", "finite numbers"),
        ("method.itk.n_bits=[8]", "no method is called 'itk'; did you mean 'itq'?"),
        ("method.itq=3", "name a value of the method"),
        ("method.itq.parameters.n_itre=3", "did you mean 'n_iter'"),
    ],
)
def test_a_wrong_change_is_one_sentence(change, says, tmp_path):
    (tmp_path / "mine.toml").write_text(PLAIN)
    with pytest.raises(BitternError) as error:
        Protocol.load(tmp_path / "mine.toml", [change])
    assert says in str(error.value) and len(str(error.value).splitlines()) == 1


def test_changes_are_told_and_make_another_fingerprint(tmp_path):
    (tmp_path / "mine.toml").write_text(PLAIN)
    plain = Protocol.load(tmp_path / "mine.toml")
    changed = Protocol.load(tmp_path / "mine.toml", ["runs=1", "n_bits=[4]"])
    assert changed.differs == "Changed by --set: runs=1, n_bits=[4]."
    assert plain.differs == "" and plain.fingerprint != changed.fingerprint
    assert changed.runs == 1 and changed.n_bits == (4,)


# Ground truth and training


def set_of(vectors):
    from bittern.experiments.run_data import SplitSet

    return SplitSet(np.arange(len(vectors)), np.asarray(vectors, np.float32))


def test_a_ball_among_the_database_holds_about_as_many_of_its_items():
    rng = np.random.default_rng(0)
    queries, database, train = (set_of(rng.random((n, 3))) for n in (200, 4000, 1000))
    sizes = {
        among: read_truth({"kind": "ball", "neighbours": 40, "sample": 1000, "among": among})
        .between(queries, database, train)
        .n_relevant.mean()
        for among in ("train", "database")
    }
    # By hand: the radius to the 10th of 1,000 training rows holds about 40 of 4,000 items.
    radius = np.mean([np.sort(np.linalg.norm(train.vectors - row, axis=1))[10]
                      for row in train.vectors])  # fmt: skip
    expected = [(np.linalg.norm(database.vectors - q, axis=1) <= radius).sum()
                for q in queries.vectors]  # fmt: skip
    assert sizes["database"] == pytest.approx(np.mean(expected), rel=0.01)
    assert sizes["database"] == pytest.approx(40, rel=0.2)
    assert sizes["train"] > 3 * sizes["database"]


def test_a_ball_is_the_same_by_default_as_before():
    rng = np.random.default_rng(0)
    queries, database, train = (set_of(rng.random((n, 3))) for n in (20, 300, 100))
    radius = bt.ball_radius(train.vectors, neighbours=5, sample=100)
    expected = bt.Relevance.from_ball(queries.vectors, database.vectors, radius)
    found = read_truth({"kind": "ball", "neighbours": 5}).between(queries, database, train)
    np.testing.assert_array_equal(found.n_relevant, expected.n_relevant)
    trained = read_truth({"kind": "ball", "neighbours": 5, "among": "database"})
    of_train = trained.target(train, graded=False)  # the rows are their own database
    same = bt.Relevance.from_ball(train.vectors, train.vectors, radius)
    np.testing.assert_array_equal(of_train.n_relevant, same.n_relevant)


def test_too_few_training_rows_for_a_ball_are_refused():
    rng = np.random.default_rng(0)
    queries, database, train = (set_of(rng.random((n, 3))) for n in (2, 400, 20))
    truth = read_truth({"kind": "ball", "neighbours": 5, "among": "database"})
    with pytest.raises(InputError, match="20 training rows are too few for a ball of 5 among 400"):
        truth.between(queries, database, train)
    with pytest.raises(InputError, match="among must be 'train' or 'database', got 'test'"):
        read_truth({"kind": "ball", "among": "test"})


def test_a_method_may_learn_from_classes_whatever_is_relevant(tmp_path):
    data = write_arrays(tmp_path / "arrays")
    methods = [
        {"name": "itq-cca", "label": "classes", "learns_from": "classes"},
        {"name": "itq-cca", "label": "balls"},
        {"name": "lsh"},
    ]
    made = protocol(
        method=methods, runs=1, n_bits=[8], truth={"kind": "ball", "neighbours": 5},
        split={"name": "standard", "sizes": {"train": 60, "queries": 20}},
    )  # fmt: skip
    records = run(made, tmp_path / "out", root=data, jobs=1)
    sets = run_data(made, 0, data)
    truth = made.ground_truth.between(sets.queries, sets.database, sets.train)
    (learned,) = records.of("classes", 8)
    from bittern.experiments.cells import cells_of

    (cell,) = (one for one in cells_of(made) if one.method.label == "classes")
    hasher = bt.hashing.ITQCCA(8, random_state=cell.random_state(made))
    hasher.fit(sets.train.vectors, sets.train.labels)
    codes = (hasher.encode(part.vectors) for part in (sets.queries, sets.database))
    assert learned.profile == bt.TieProfile.from_codes(*codes, truth)
    assert learned.profile != records.of("balls", 8)[0].profile


def test_class_labels_to_learn_from_must_be_there(tmp_path):
    write_arrays(tmp_path / "arrays")
    (tmp_path / "arrays" / "labels.npy").unlink()
    methods = [{"name": "itq-cca", "learns_from": "classes"}]
    made = protocol(method=methods, truth={"kind": "neighbours", "k": 3})
    with pytest.raises(InputError, match="needs a dataset with class labels"):
        run(made, tmp_path / "out", root=tmp_path / "arrays", jobs=1)


def test_protocols_with_distances_as_ground_truth_are_not_balanced_by_class():
    found = {name: Protocol.load(path) for name, path in shipped().items()}
    by_distance = [p for p in found.values() if p.truth["kind"] in ("ball", "neighbours")]
    assert len(by_distance) >= 8
    labelled = [one for one in by_distance if one.dataset.name in ("cifar10", "digits")]
    assert len(labelled) >= 12 and all(one.split.sizes["balanced"] is False for one in labelled)
    assert all("among" in one.truth for one in by_distance if one.truth["kind"] == "ball")


@pytest.mark.parametrize("data", ["", "-digits"])
def test_the_protocols_that_compare_ground_truths_differ_in_nothing_else(data):
    names = ("classes", "ball", "ball-train", "neighbours")
    files = [shipped()[f"ground-truth-{name}{data}"] for name in names]
    found = [Protocol.load(path).to_dict() for path in files]
    truths = [one.pop("truth") for one in found]
    for one in found:
        for text in ("title", "reproduces", "differs", "takes"):
            one.pop(text)
    assert all(one == found[0] for one in found)
    assert len({str(truth) for truth in truths}) == 4
