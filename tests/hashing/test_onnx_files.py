"""ONNX graphs of hash functions: the bytes of ``encode``, also next to every threshold."""

import sys
from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
from test_hasher_contract import QUICK, WITHOUT_LOGITS, labelled_blobs

import bittern as bt
from bittern.hashing import HASHERS

X, Y = labelled_blobs(3, n=150, dim=10, dtype=np.float32)
#: Each method, and options that change its graph.
METHODS = {name: (name, QUICK.get(name, {})) for name in HASHERS}
METHODS |= {
    "agh, one layer": ("agh", {"layers": 1}),
    "dbq on itq": ("dbq", {"projection": "itq"}),
    "dpsh, mlp": ("dpsh", {"network": "mlp", "hidden": 20, "n_epochs": 3}),
    "grh, linear": ("grh", {"n_anchors": None}),
    "klsh, cosine": ("klsh", {"kernel": "cosine"}),
    "klsh, linear": ("klsh", {"kernel": "linear"}),
    "structhash, boosted": ("structhash", QUICK["structhash"] | {"learner": "boosted"}),
    "structhash, tree": ("structhash", QUICK["structhash"] | {"learner": "tree"}),
    "talr, kernel": ("talr", {"network": "kernel", "n_anchors": 30, "n_epochs": 3}),
}


@cache
def trained(title, n_bits=13):
    name, options = METHODS[title]
    return HASHERS[name](n_bits=n_bits, **options).fit(X, Y)


@pytest.fixture(params=METHODS)
def fitted(request):
    return trained(request.param)


def run(path, rows):
    """All outputs of a graph, by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (port,) = session.get_inputs()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {port.name: rows}), strict=True))


def beside_thresholds(bits_of, rows, n_steps=60):
    """Neighbouring rows with different bits, by bisection; ``bits_of`` gives the bits of rows."""
    rng = np.random.default_rng(0)
    a, b = (rows[rng.permutation(len(rows))] for _ in range(2))
    wanted = bits_of(a)
    for _ in range(n_steps):
        middle = (a + b) / 2
        on_this_side = (bits_of(middle) == wanted).all(axis=1)[:, None]
        a, b = np.where(on_this_side, middle, a), np.where(on_this_side, b, middle)
    apart = (bits_of(a) != bits_of(b)).any(axis=1)
    assert apart.mean() > 0.5, "the rows meet no threshold"
    return np.concatenate([a[apart], b[apart]])


def test_a_graph_gives_the_bytes_of_encode(fitted, tmp_path):
    rows = np.concatenate([X, beside_thresholds(fitted.transform, X)])
    assert rows.dtype == np.float32
    for bitorder in ("big", "little"):
        fitted.to_onnx(tmp_path / "model.onnx", bitorder=bitorder)
        (codes,) = run(tmp_path / "model.onnx", rows).values()
        assert codes.dtype == np.uint8
        np.testing.assert_array_equal(codes, fitted.encode(rows).to_packed(bitorder))
        alone = run(tmp_path / "model.onnx", rows[:1])["codes"]
        np.testing.assert_array_equal(alone, codes[:1])


def test_a_graph_of_double_rows_gives_the_bytes_of_encode(fitted, tmp_path):
    rows = beside_thresholds(fitted.transform, X.astype(np.float64), n_steps=30)
    fitted.to_onnx(tmp_path / "model.onnx", dtype="float64")
    (codes,) = run(tmp_path / "model.onnx", rows).values()
    np.testing.assert_array_equal(codes, fitted.encode(rows).to_packed())


def test_a_graph_has_logits_if_asked(fitted, tmp_path):
    path = tmp_path / "model.onnx"
    if fitted.name in WITHOUT_LOGITS:
        with pytest.raises(bt.InputError, match="has no logits, because its bits are not the sig"):
            fitted.to_onnx(path, logits=True)
        assert not path.exists()
        return
    fitted.to_onnx(path, logits=True)
    found = run(path, X)
    expected = fitted.logits(X)
    np.testing.assert_array_equal(found["codes"], fitted.encode(X).to_packed())
    assert found["logits"].dtype == np.float32 and found["logits"].shape == expected.shape
    size = np.abs(expected).max()
    np.testing.assert_allclose(found["logits"], expected, rtol=1e-5, atol=1e-6 * size)
    np.testing.assert_array_equal(found["logits"] > 0, expected > 0)


def test_codes_of_single_rows_are_those_of_the_same_rows_in_double(fitted):
    rows = beside_thresholds(fitted.transform, X)
    assert fitted.encode(rows) == fitted.encode(rows.astype(np.float64))


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_single_sums_are_nearer_than_their_bound(offset):
    # The bound decides which rows are computed again; numbers of one sign are its worst case.
    rows = np.random.default_rng(0).random((300, 700), np.float32) + np.float32(offset)
    hasher = bt.hashing.LSH(n_bits=64).fit(rows[:100])
    hasher.projection_ = np.abs(hasher.projection_)
    single = rows @ hasher.projection_.astype(np.float32)
    single -= (hasher.mean_ @ hasher.projection_).astype(np.float32)
    error = np.abs(single - (rows.astype(np.float64) - hasher.mean_) @ hasher.projection_)
    longest = np.linalg.norm(rows, axis=1).max()
    share = (error / hasher._rounding(rows, longest)).max()
    assert 1e-4 < share < 0.5


@pytest.mark.parametrize("n_bits", [1, 8, 65])
@pytest.mark.parametrize("name", ["itq", "dbq", "vbq"])
def test_codes_of_any_length_are_packed(name, n_bits, tmp_path):
    hasher = HASHERS[name](n_bits=n_bits).fit(X, Y)
    hasher.to_onnx(tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", X)["codes"]
    np.testing.assert_array_equal(found, hasher.encode(X).to_packed())


def test_a_graph_says_what_it_is(tmp_path):
    trained("mhq").to_onnx(tmp_path / "model.onnx", bitorder="little")
    model = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    about = {one.key: one.value for one in model.metadata_props}
    assert about == {
        "hasher": "mhq",
        "n_bits": str(trained("mhq").n_stored_bits),
        "bitorder": "little",
        "bittern": bt.__version__,
    }
    (port,) = model.graph.input
    assert port.name == "vectors" and port.type.tensor_type.shape.dim[1].dim_value == 10


class Middle(bt.hashing.CustomHasher):
    """The sign of each column."""

    name = "middle"

    def __init__(self, n_bits=10, random_state=0):
        self.n_bits = n_bits
        self.random_state = random_state

    def learn(self, X, targets):
        """The means."""
        return {"middle_": X.mean(axis=0)}

    def bits(self, X):
        """Above or below."""
        return X[:, : self.n_bits] > self.middle_[: self.n_bits]


@pytest.mark.parametrize(
    ("hasher", "options", "sentence"),
    [
        (Middle().fit(X), {}, "Middle: has no ONNX graph, because its bits are computed by Python"),
        (bt.hashing.ITQ(4), {}, "ITQ: call fit"),
        (
            bt.hashing.LSH(4).fit(X),
            {"bitorder": "middle"},
            "bitorder must be one of 'big', 'little'",
        ),
        (bt.hashing.LSH(4).fit(X), {"dtype": "int8"}, "LSH: dtype must be .*float32.*, got 'int8'"),
    ],
)
def test_what_cannot_be_written_is_refused(hasher, options, sentence, tmp_path):
    with pytest.raises(bt.BitternError, match=sentence):
        hasher.to_onnx(tmp_path / "model.onnx", **options)
    assert not list(tmp_path.iterdir())


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(bt.MissingExtraError, match=r"to_onnx\(\): needs onnx; pip install 'bitter"):
        trained("lsh").to_onnx(tmp_path / "model.onnx")
