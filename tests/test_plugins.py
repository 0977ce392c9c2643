"""Tables that others extend: at run time, by entry points, and by paths."""

import subprocess
import sys

import numpy as np
import pytest

import bittern as bt
from bittern.hashing import HASHERS, LSH, CustomHasher
from bittern.hashing.crossmodal import CROSSMODAL, CustomCrossModalHasher
from bittern.registry import OpenRegistry

X = np.random.default_rng(0).standard_normal((40, 6))


def accept(value, title):
    if not callable(value):
        raise bt.InputError(f"{title}: must be a function, got {value!r}.")
    return value


def birds(**options):
    return OpenRegistry("bird", {"heron": len}, group="test.birds", accept=accept, **options)


def install(folder, name, module, points, version="1.0"):
    """A package of one module, as an installer would leave it."""
    (folder / f"{name}.py").write_text(module)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)


class Signs(CustomHasher):
    """Signs of the first columns, from their means."""

    def __init__(self, n_bits=4, *, random_state=0):
        self.n_bits = n_bits
        self.random_state = random_state

    def learn(self, X, targets):
        """The mean of each column."""
        return {"mean_": X.mean(axis=0)}

    def bits(self, X):
        """Which columns are above their mean."""
        return X[:, : self.n_bits] > self.mean_[: self.n_bits]


class Crossed(CustomCrossModalHasher):
    """Signs of the first columns of both modalities."""

    def __init__(self, n_bits=3, *, random_state=0):
        self.n_bits = n_bits
        self.random_state = random_state

    def learn(self, images, texts, targets):
        """The mean of each column."""
        return {"images_": images.mean(axis=0), "texts_": texts.mean(axis=0)}

    def bits(self, rows, modality):
        """Which columns are above their mean."""
        return (rows > getattr(self, f"{modality}_"))[:, : self.n_bits]


@pytest.fixture
def forgetful(monkeypatch):
    """Undo what a test registers."""
    for table in (HASHERS, CROSSMODAL, bt.METRICS, bt.DATASETS):
        monkeypatch.setattr(table, "_entries", dict(table._entries))
        monkeypatch.setattr(table, "_registered", dict(table._registered))


def test_what_is_registered_is_found_and_listed_last():
    table = birds()
    assert table.register("wren", max) is max
    assert table["wren"] is max
    assert list(table) == ["heron", "wren"]
    assert "wren" in table and len(table) == 2


def test_register_is_also_a_decorator():
    table = birds()

    @table.register("gull")
    def call():
        return "mew"

    assert table["gull"] is call and call() == "mew"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("heron", max, "bird 'heron': the name is taken"),
        ("dodo", max, "bird 'dodo': the name is reserved"),
        ("Gull", max, "a name is lower-case words joined by hyphens"),
        ("a:b", max, "a name is lower-case words joined by hyphens"),
        ("gull", 3, "bird 'gull': must be a function, got 3"),
    ],
)
def test_what_cannot_be_registered_is_refused(name, value, says):
    table = birds(reserved=["dodo"])
    with pytest.raises(bt.InputError, match=says):
        table.register(name, value)
    assert list(table) == ["heron"] and table["heron"] is len


def test_a_class_defined_again_replaces_itself_and_no_other():
    def define():
        class Gull:
            pass

        return Gull

    table, first, second = birds(), define(), define()
    table.register("gull", first)
    table.register("gull", second)
    assert table["gull"] is second
    with pytest.raises(bt.InputError, match="the name is taken"):
        table.register("gull", min)


def test_a_class_that_calls_itself_otherwise_is_refused():
    class Gull:
        name = "tern"

    with pytest.raises(bt.InputError, match="calls itself 'tern'"):
        birds().register("gull", Gull)


def test_entry_points_join_the_table_when_they_are_needed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(
        tmp_path,
        "reeds",
        "def sing(): return 'boom'\n",
        "[test.birds]\nwarbler = reeds:sing\n[other]\nnone = reeds:none\n",
        version="2.5",
    )
    table = birds()
    assert table["heron"] is len
    assert "reeds" not in sys.modules
    assert list(table) == ["heron", "warbler"]
    assert table["warbler"]() == "boom"
    assert table.origin("warbler") == "reeds:sing (reeds 2.5)"
    assert table.origin("heron") is None
    with pytest.raises(bt.InputError, match="the name is taken"):
        table.register("warbler", max)


def test_a_broken_entry_point_gets_one_warning_and_the_others_stay(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "sound", "sing = len\n", "[test.birds]\nwarbler = sound:sing\n")
    install(tmp_path, "ill", "1 / 0\n", "[test.birds]\nrail = ill:sing\n")
    install(tmp_path, "ends", "raise SystemExit(3)\n", "[test.birds]\ncrake = ends:sing\n")
    table = birds()
    with pytest.warns(UserWarning) as caught:
        assert list(table) == ["heron", "warbler"]
    said = sorted(str(one.message) for one in caught)
    assert len(said) == 2
    assert said[0].startswith("left out: bird 'crake' (ends 1.0): ends:sing cannot be imported")
    assert "bird 'rail' (ill 1.0): ill:sing cannot be imported (ZeroDivisionError" in said[1]
    assert list(table) == ["heron", "warbler"]  # and no second warning
    with pytest.raises(bt.UnknownNameError, match=r"bird 'rail' \(ill 1.0\).*ZeroDivisionError"):
        table["rail"]


def test_an_entry_point_never_replaces_a_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "cuckoo", "sing = max\n", "[test.birds]\nheron = cuckoo:sing\n")
    table = birds()
    with pytest.warns(UserWarning, match=r"bird 'heron' \(cuckoo 1.0\): the name is taken"):
        assert list(table) == ["heron"]
    assert table["heron"] is len


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no_such_thing:x", "there is no module 'no_such_thing'; install it, or add its folder"),
        ("json.no_such:x", "there is no module 'json.no_such'"),
        ("json:dumbs", "json has no 'dumbs'; did you mean 'dumps'?"),
        ("json:", "a path is written like package.module:Class"),
        ("json:__version__x!", "a path is written like"),
        ("json:__name__", "must be a function, got 'json'"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path, says):
    with pytest.raises(bt.BitternError) as caught:
        birds().find(path)
    assert str(caught.value).startswith(f"bird {path!r}: ")
    assert says in str(caught.value)


def test_a_module_that_fails_to_import_says_why(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needy_bird.py").write_text("import no_such_library\n")
    with pytest.raises(bt.InputError, match=r"needy_bird cannot be imported .*no_such_library"):
        birds().find("needy_bird:x")


def test_a_path_is_followed_but_not_listed():
    table = birds()
    assert table.find("json:dumps") is table.find("json:dumps")
    assert table.find("heron") is len
    assert list(table) == ["heron"] and "json:dumps" not in table
    assert table.knows("json:dumps") and not table.knows("json:loads")


def test_a_hasher_of_one_s_own_fits_encodes_and_comes_back_from_a_file(tmp_path, forgetful):
    HASHERS.register("signs", Signs)
    hasher = HASHERS["signs"](n_bits=5).fit(X)
    expected = X[:, :5] > X.mean(axis=0)[:5]
    assert (hasher.encode(X).to_bits() == expected).all()
    hasher.save(tmp_path / "signs.npz")
    again = bt.hashing.load(tmp_path / "signs.npz")
    assert type(again) is Signs
    assert again.encode(X) == hasher.encode(X)


def test_a_file_of_an_unknown_class_says_what_to_do(tmp_path, monkeypatch, forgetful):
    HASHERS.register("signs", Signs)
    Signs().fit(X).save(tmp_path / "signs.npz")
    monkeypatch.delitem(HASHERS._entries, "signs")
    with pytest.raises(bt.UnknownNameError) as caught:
        bt.hashing.load(tmp_path / "signs.npz")
    assert "no hasher is called 'signs'" in str(caught.value)
    assert "If it is of a plug-in, install or register that first." in str(caught.value)


def test_a_file_cannot_name_a_module_to_import(tmp_path, monkeypatch, forgetful):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trap.py").write_text("raise RuntimeError('imported')\n")
    HASHERS.register("signs", Signs)
    hasher = Signs().fit(X)
    monkeypatch.setattr(Signs, "name", "trap:Signs")
    hasher.save(tmp_path / "signs.npz")
    with pytest.raises(bt.UnknownNameError, match="no hasher is called 'trap:Signs'"):
        bt.hashing.load(tmp_path / "signs.npz")
    assert "trap" not in sys.modules


def test_a_subclass_is_not_saved_under_the_name_of_its_parent(tmp_path):
    class Mine(LSH):
        pass

    with pytest.raises(bt.InputError, match="Mine: cannot be saved as 'lsh', which is the name of"):
        Mine(n_bits=4).fit(X).save(tmp_path / "mine.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_class_without_a_name_cannot_be_saved(tmp_path):
    class Nameless(Signs):
        name = None

    with pytest.raises(bt.InputError, match="Nameless: cannot be saved without a name"):
        Nameless().fit(X).save(tmp_path / "nameless.npz")


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ({"mean": 3}, "names like 'mean_'"),
        ({"_mean_": 3}, "names like 'mean_'"),
        (None, r"learn\(\) must return a dict"),
    ],
)
def test_what_is_learned_needs_names(monkeypatch, returned, says):
    monkeypatch.setattr(Signs, "learn", lambda self, X, targets: returned)
    with pytest.raises(bt.InputError, match=f"Signs: .*{says}"):
        Signs().fit(X)


@pytest.mark.parametrize("wrong", [np.zeros((40, 4)), np.zeros((40, 3), bool), np.zeros(40, bool)])
def test_bits_of_another_kind_are_refused(monkeypatch, wrong):
    hasher = Signs().fit(X)
    monkeypatch.setattr(Signs, "bits", lambda self, X: wrong)
    with pytest.raises(bt.InputError, match=r"bits\(\) must return booleans of shape \(40, 4\)"):
        hasher.encode(X)


def test_a_class_that_lacks_something_is_refused():
    class Half(CustomHasher):
        def learn(self, X, targets):
            return {}

    class Fixed(Signs):
        def __init__(self, length=4):
            self.length = length

    for value, says in (
        (Half, "Half lacks bits"),
        (dict, "must be a subclass of Hasher"),
        (Fixed, "its constructor lacks n_bits and random_state"),
    ):
        with pytest.raises(bt.InputError, match=f"hasher 'half': .*{says}"):
            HASHERS.register("half", value)
    assert "half" not in HASHERS


def test_names_of_methods_of_protocols_stay_free():
    for name in ("exact", "codes"):
        with pytest.raises(bt.InputError, match="reserved"):
            HASHERS.register(name, Signs)


def test_a_cross_modal_hasher_of_one_s_own(tmp_path, forgetful):
    CROSSMODAL.register("crossed", Crossed)
    model = Crossed().fit(X, X[:, ::-1])
    assert (model.transform(texts=X[:, ::-1]) == (X[:, ::-1] > X[:, ::-1].mean(0))[:, :3]).all()
    model.save(tmp_path / "crossed.npz")
    assert bt.hashing.load(tmp_path / "crossed.npz").encode(images=X) == model.encode(images=X)


def profile():
    queries = bt.Codes.from_bits([[0, 0, 1], [1, 1, 1]])
    database = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
    return bt.TieProfile.from_codes(queries, database, bt.Relevance.from_classes([7, 3], [3, 7, 7]))


def half_of_first(profile):
    """Half of the items that tie for the first place."""
    return profile.total[:, 0] / 2


def items_until(profile, cutoff=2):
    """Something with a cut-off."""
    return np.full(profile.n_queries, cutoff)


def test_a_function_of_a_profile_is_a_metric(forgetful):
    bt.METRICS.register("half-of-first", half_of_first)
    bt.METRICS.register("items-until", items_until)
    scores = bt.evaluate(profile(), ["half-of-first", "items-until@7"])
    assert scores["half-of-first"].per_query.tolist() == [0.5, 0.0]
    assert scores["items-until@7"].mean == 7
    with pytest.raises(bt.InputError, match="half-of-first takes no cut-off"):
        bt.metrics.parse("half-of-first@3")
    with pytest.raises(bt.InputError, match="lower-case words"):
        bt.METRICS.register("f2", half_of_first)


def test_a_metric_by_its_path_survives_the_trip_through_text():
    name = f"{__name__}:items_until@9"
    assert str(bt.metrics.parse(name)) == name
    assert bt.evaluate(profile(), [name])[name].mean == 9
    best = f"{__name__}:items_until:optimistic"
    assert bt.metrics.parse(best).tie_rule == "optimistic"
    with pytest.raises(bt.UnknownNameError, match="has no 'items_unti'"):
        bt.metrics.parse(f"{__name__}:items_unti")


def test_a_metric_must_give_each_query_a_number(forgetful):
    bt.METRICS.register("lonely", lambda profile: np.zeros(5))
    with pytest.raises(bt.InputError, match="one number for each of 2 queries, got float64 of"):
        bt.evaluate(profile(), ["lonely"])["lonely"].mean  # noqa: B018


def grid(*, side=4):
    """Points of a grid."""
    points = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    return bt.Dataset(name="grid", modalities={"points": points.astype(np.float32)})


def test_a_function_is_a_dataset_and_its_keywords_are_the_options(forgetful):
    bt.DATASETS.register("grid", grid)
    assert len(bt.load("grid")) == 16
    assert len(bt.load("grid", side=3)) == 9
    path = f"{__name__}:grid"
    assert bt.load(path).name == path
    with pytest.raises(bt.InputError, match="no option of grid is called 'sides'"):
        bt.load("grid", sides=3)
    bt.DATASETS.register("nothing", lambda: None)
    with pytest.raises(bt.InputError, match="nothing: must return a Dataset, got NoneType"):
        bt.load("nothing")


def test_a_dataset_with_a_spec_has_its_folder_and_steps(tmp_path, forgetful):
    spec = bt.data.DatasetSpec(
        name="dots",
        title="Dots",
        folder="dots",
        steps=("centre",),
        load=lambda folder: bt.Dataset(
            name="anything", modalities={"points": np.load(folder / "dots.npy")}
        ),
    )
    bt.DATASETS.register("dots", spec)
    (tmp_path / "dots").mkdir()
    np.save(tmp_path / "dots" / "dots.npy", X)
    dataset = bt.load("dots", tmp_path)
    assert dataset.name == "dots"
    prepared = dataset.prepared(np.arange(40))
    assert np.allclose(np.asarray(prepared.vectors[:]).mean(axis=0), 0, atol=1e-6)
    with pytest.raises(bt.InputError, match="must be a DatasetSpec or a function, got 3"):
        bt.DATASETS.register("three", 3)


def test_a_fusion_is_a_function_of_scores():
    scores = np.array([[[0.9, 0.2]], [[0.1, 0.4]]])
    assert bt.fusion.FUSIONS.find("numpy:median")(scores).shape == ()
    lists = [[([4, 7], [0.9, 0.1])], [([7, 4], [2.0, 1.0])]]
    path = f"{__name__}:first_source"
    assert bt.fusion.fuse_lists(lists, path).ids[0].tolist() == [4, 7]
    with pytest.raises(bt.InputError, match="first_source: takes no weights"):
        bt.fusion.fuse_lists(lists, path, weights=[1, 2])
    for wrong in ("collections:Counter", "math:pi", "time:time"):
        with pytest.raises(bt.InputError, match="must be a function"):
            bt.fusion.FUSIONS.find(wrong)


def first_source(scores):
    return scores[0]


def test_a_feature_states_what_it_takes():
    with pytest.raises(bt.InputError, match="must be a subclass of Feature"):
        bt.features.FEATURES.find("json:JSONEncoder")

    class Vague(bt.features.Feature):
        def transform(self, X):
            return X

    with pytest.raises(bt.InputError, match="Vague must state its name, and what it takes"):
        bt.features.FEATURES.register("vague", Vague)


def test_importing_and_evaluating_look_for_no_entry_points():
    script = """
import sys
import bittern as bt
assert bt.METRICS["ap"] and bt.hashing.HASHERS["itq"] and bt.DATASETS["digits"]
print([t._points for t in (bt.METRICS, bt.hashing.HASHERS, bt.DATASETS)])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[None, None, None]"
