"""``bittern onnx``: a model file in, a graph out; and the example with sentence-transformers."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import bittern as bt

X = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
EXAMPLE = Path(__file__).parents[1] / "examples" / "sentence_transformers_codes.py"


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bt.hashing.PCAH(n_bits=5).fit(X).save("pcah.npz")
    bt.hashing.DBQ(n_bits=4).fit(X).save("dbq.npz")
    bt.hashing.crossmodal.CCAITQ(n_bits=4).fit(X, X[:, :3]).save("pairs.npz")


def outputs(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    (port,) = session.get_inputs()
    return dict(zip(names, session.run(None, {port.name: rows}), strict=True))


def test_a_model_file_becomes_a_graph(run):
    code, out, _ = run("onnx", "pcah.npz", "pcah.onnx", "--bitorder", "little", "--logits")
    assert (code, out) == (0, "pcah.onnx: pcah, from rows to codes of 5 bits in 1 byte.\n")
    found, hasher = outputs("pcah.onnx", X), bt.hashing.load("pcah.npz")
    np.testing.assert_array_equal(found["codes"], hasher.encode(X).to_packed("little"))
    assert found["logits"].shape == (60, 5)
    assert run("onnx", "pcah.npz", "double.onnx", "--dtype", "float64")[0] == 0
    assert list(outputs("double.onnx", X.astype(np.float64))) == ["codes"]


def test_each_side_of_a_pair_has_its_graph(run):
    for side, rows in {"images": X, "texts": X[:, :3]}.items():
        assert run("onnx", "pairs.npz", f"{side}.onnx", "--modality", side)[0] == 0
        expected = bt.hashing.load("pairs.npz").encode(**{side: rows}).to_packed()
        np.testing.assert_array_equal(outputs(f"{side}.onnx", rows)["codes"], expected)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pcah.npz", "pcah.npz"), "pcah.npz: a graph is an .onnx file; choose such a name."),
        (("none.npz", "a.onnx"), "none.npz: no such file."),
        (("pcah.npz", "old.onnx"), "old.onnx: exists already; choose another name, or replace it"),
        (("pcah.npz", "a.onnx", "--modality", "texts"), "pcah hashes vectors of one kind: it has"),
        (("pairs.npz", "a.onnx"), "cca-itq hashes images and texts: give --modality images or"),
        (
            ("pairs.npz", "a.onnx", "--modality", "sounds"),
            "modality must be one of 'images', 'texts'",
        ),
        (("pcah.npz", "a.onnx", "--bitorder", "up"), "bitorder must be one of 'big', 'little'"),
        (("pcah.npz", "a.onnx", "--dtype", "int8"), "dtype must be one of 'float32', 'float64'"),
        (("dbq.npz", "a.onnx", "--logits"), "DBQ: has no logits, because its bits are not the"),
    ],
)
def test_mistakes_are_named_in_one_sentence(run, words, sentence):
    Path("old.onnx").write_bytes(b"old")
    code, out, err = run("onnx", *words)
    assert (code, out) == (2, "") and sentence in err and err.count("\n") == 1
    assert Path("old.onnx").read_bytes() == b"old" and not Path("a.onnx").exists()
    assert run("onnx", "pcah.npz", "old.onnx", "--force")[0] == 0


def load_example():
    spec = importlib.util.spec_from_file_location("sentence_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    load_example().main()
    out = capsys.readouterr().out
    assert "is not installed: pip install sentence-transformers" in out and "bittern advise" in out


def test_the_example_reports_on_the_vectors_of_sentences(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE)])
    example = load_example()
    sentences = example.read_sentences()
    words = sorted({word for one in sentences for word in one.split()})
    counts = np.array([[one.split().count(word) for word in words] for one in sentences])
    example.report(sentences, counts @ np.random.default_rng(0).standard_normal((len(words), 160)))
    out = capsys.readouterr().out
    assert "ubinary, 160 bits: recall" in out and "itq, 128: recall" in out
    assert out.count(" for the first time.") + out.count(".\n") >= 4 and "As an ONNX graph:" in out
