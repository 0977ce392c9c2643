"""What every cross-modal hasher promises, tested over the whole table."""

import json
import re
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import bittern as bt
from bittern.hashing.crossmodal import CROSSMODAL

NAMES = list(CROSSMODAL)
SUPERVISED = [name for name in NAMES if CROSSMODAL[name].needs_y]


def pairs(random_state, n=120, n_classes=3, dtype=np.float64):
    """Images (12 columns) and texts (9 counts of words) of classes; read-only."""
    rng = np.random.default_rng(random_state)
    labels = rng.integers(0, n_classes, n)
    images = 5 + rng.standard_normal((n, 12)) + 2 * rng.standard_normal((n_classes, 12))[labels]
    rates = rng.exponential(1.5, (n_classes, 9))[labels] + 0.2
    texts = rng.poisson(rates).astype(dtype)
    images = images.astype(dtype)
    images.flags.writeable = texts.flags.writeable = labels.flags.writeable = False
    return images, texts, labels


IMAGES, TEXTS, LABELS = pairs(3)
TAGS = np.eye(3, dtype=bool)[LABELS]

#: Shorter training than by default: the contract is not about quality.
GRADIENT = dict(network="linear", n_epochs=5, batch_size=60, learning_rate=0.03, dropout=0.1)
QUICK = {
    "dlfh": {"n_iter": 10},
    "crh": {"n_pairs": 2000},
    "dcmh": GRADIENT,
    "cm-talr": GRADIENT,
}

#: Methods that have at most as many bits as directions, and say so.
LIMITED = pytest.mark.filterwarnings("ignore:CVH. images of")


def make(name, n_bits=8):
    return CROSSMODAL[name](n_bits=n_bits, **QUICK.get(name, {}))


def both(hasher, images=IMAGES, texts=TEXTS):
    return hasher.encode(images=images), hasher.encode(texts=texts)


@pytest.fixture(params=NAMES)
def hasher(request):
    return make(request.param)


@cache
def trained(name):
    return make(name).fit(IMAGES, TEXTS, LABELS)


@pytest.fixture(params=NAMES)
def fitted(request):
    """Fitted once for all tests that only look at it."""
    return trained(request.param)


@LIMITED
def test_bits_are_the_signs_of_logits(fitted):
    for side, rows in {"images": IMAGES, "texts": TEXTS}.items():
        logits = fitted.logits(**{side: rows})
        assert logits.shape == (len(rows), fitted.n_bits) and np.isfinite(logits).all()
        np.testing.assert_array_equal(logits > 0, fitted.transform(**{side: rows}))
        assert len(np.unique(np.abs(logits))) > 2  # numbers, not signs


def test_the_table_has_the_methods_by_name():
    assert {"cvh", "cca-itq"} <= set(NAMES)
    assert all(CROSSMODAL[name].name == name for name in NAMES)
    assert not set(NAMES) & set(bt.hashing.HASHERS), "a model file names its class"
    with pytest.raises(bt.UnknownNameError, match="no cross-modal hasher is called 'cva'"):
        CROSSMODAL["cva"]


def test_every_method_is_on_the_page_about_them(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[3] / "docs" / "crossmodal.md").read_text()
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == NAMES
    monkeypatch.chdir(tmp_path)
    exec("".join(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)), {})
    assert "ap" in capsys.readouterr().out


def test_every_class_is_public_and_cites_its_reference(hasher):
    assert getattr(bt.hashing.crossmodal, type(hasher).__name__) is type(hasher)
    assert re.search(r"\[[A-Z][\w-]+-\d{4}[a-z]?\]", type(hasher).__doc__)


def test_fit_returns_self_and_leaves_hyper_parameters_alone(hasher):
    before = hasher.get_params(deep=False)
    assert hasher.fit(IMAGES, TEXTS, LABELS) is hasher
    assert hasher.get_params(deep=False) == before
    assert clone(hasher).get_params(deep=False) == before


def test_numbers_may_be_those_of_numpy_and_real_ones_may_be_whole(hasher):
    def of_another_type(value):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return np.int64(value) if type(value) is int else value

    before = hasher.get_params(deep=False)
    odd = {name: of_another_type(value) for name, value in before.items()}
    assert both(hasher.set_params(**odd).fit(IMAGES, TEXTS, LABELS)) == (
        both(clone(hasher).set_params(**before).fit(IMAGES, TEXTS, LABELS))
    )


def test_the_same_random_state_gives_the_same_codes(hasher):
    first = both(hasher.fit(IMAGES, TEXTS, LABELS))
    assert both(hasher.fit(IMAGES, TEXTS, LABELS)) == first
    assert both(clone(hasher).fit(IMAGES, TEXTS, LABELS)) == first


def test_a_code_depends_on_its_own_row_only(fitted):
    images, texts = both(fitted)
    assert both(fitted, IMAGES[::7], TEXTS[::7]) == (images[::7], texts[::7])
    assert both(fitted, IMAGES[3:4], TEXTS[5:6]) == (images[3:4], texts[5:6])
    np.testing.assert_array_equal(fitted.transform(images=IMAGES), images.to_bits())
    np.testing.assert_array_equal(fitted.transform(texts=TEXTS), texts.to_bits())


def test_texts_are_near_images_of_their_class(fitted):
    # Not vacuous: functions that returned a constant would pass everything above.
    images, texts = (codes.to_bits() for codes in both(fitted))
    apart = (images[:, None] != texts[None]).sum(axis=-1)
    same = LABELS[:, None] == LABELS[None]
    # Three classes have two smooth functions; the other bits of IMH are nearly noise.
    share = 0.9 if fitted.name == "imh" else 0.8
    assert apart[same].mean() < share * apart[~same].mean()


@LIMITED
@pytest.mark.parametrize(("n_bits", "n"), [(1, 120), (7, 120), (64, 40), (65, 40)])
def test_codes_have_as_many_bits_as_asked(hasher, n_bits, n):
    images, texts, y = IMAGES[:n], TEXTS[:n], LABELS[:n]
    hasher.set_params(n_bits=n_bits).fit(images, texts, y)
    for codes in both(hasher, images, texts):
        assert (len(codes), codes.n_bits) == (n, n_bits)
        assert len(np.unique(codes.words, axis=0)) > 1


@LIMITED
@pytest.mark.parametrize(
    ("images", "texts"),
    [
        pytest.param(IMAGES[:, :1], TEXTS, id="one column of images"),
        pytest.param(IMAGES, TEXTS[:, :1], id="one column of texts"),
        pytest.param(np.where(np.arange(12) < 4, 1.0, IMAGES), TEXTS, id="constant columns"),
        pytest.param(1e6 * IMAGES, 1e-6 * TEXTS, id="very different scales"),
        pytest.param(np.repeat(IMAGES[:40], 3, 0), np.repeat(TEXTS[:40], 3, 0), id="duplicates"),
        pytest.param(np.ones_like(IMAGES), TEXTS, id="all images equal"),
        pytest.param(IMAGES, np.zeros_like(TEXTS), id="no words at all"),
    ],
)
def test_awkward_rows_are_hashed_all_the_same(hasher, images, texts):
    hasher.fit(images, texts, LABELS)
    for rows, codes in zip((images, texts), both(hasher, images, texts), strict=True):
        assert (len(codes), codes.n_bits) == (120, 8)
        equal = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        first = np.unique(equal, return_index=True)[1]
        assert codes == codes[first[equal]], "equal rows, equal codes"


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    "y",
    [
        pytest.param(np.zeros(120, int), id="one class"),
        pytest.param(np.arange(120), id="a class for each pair"),
        pytest.param(np.array(["ant", "bee", "cat"])[LABELS], id="strings"),
        pytest.param(TAGS | TAGS[::-1], id="tags"),
        pytest.param(scipy.sparse.csr_array(TAGS), id="sparse tags"),
        pytest.param(TAGS * (np.arange(120) % 3 > 0)[:, None], id="some pairs without tags"),
        pytest.param(bt.Relevance.from_classes(LABELS, LABELS), id="Relevance"),
    ],
)
def test_y_may_be_labels_tags_or_a_square_relevance(name, y):
    assert [codes.n_bits for codes in both(make(name).fit(IMAGES, TEXTS, y))] == [8, 8]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SUPERVISED])
def test_methods_without_labels_ignore_y(name):
    assert both(make(name).fit(IMAGES, TEXTS)) == both(trained(name))


def test_sparse_rows_and_single_precision_give_nearly_the_same_codes(hasher):
    expected = both(hasher.fit(IMAGES, TEXTS, LABELS))
    sparse = scipy.sparse.csr_array(TEXTS)
    assert both(hasher.fit(IMAGES, sparse, LABELS), texts=sparse) == expected
    assert hasher.encode(texts=scipy.sparse.csc_matrix(TEXTS)) == expected[1]
    single = hasher.fit(IMAGES.astype(np.float32), TEXTS.astype(np.float32), LABELS)
    assert [codes.n_bits for codes in both(single)] == [8, 8]


def test_encodes_rows_on_disk_by_blocks(fitted, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", TEXTS)
    whole = fitted.encode(texts=TEXTS)
    monkeypatch.setattr("bittern.hashing.base.MEMORY", 2000)  # a few rows at a time
    assert fitted.encode(texts=np.load(tmp_path / "rows.npy", mmap_mode="r")) == whole


def test_saves_and_loads_as_arrays_and_json(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    again = bt.hashing.load(tmp_path / "model.npz")
    assert type(again) is type(fitted)
    assert both(again) == both(fitted)
    assert again.get_params(deep=False) == fitted.get_params(deep=False)
    with zipfile.ZipFile(tmp_path / "model.npz") as file:
        for name in file.namelist():
            assert name.endswith(".npy") and b"'O'" not in file.read(name)[:200]
    head = json.loads(np.load(tmp_path / "model.npz")["model"].tobytes())
    assert head["model"]["hasher"] == fitted.name


def test_a_file_whose_arrays_do_not_fit_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    for name in [name for name in arrays if name.startswith("learned.text")]:
        del arrays[name]
    np.savez(tmp_path / "less.npz", **arrays)
    with pytest.raises(bt.FileError, match=r"less\.npz: not a readable model"):
        bt.hashing.load(tmp_path / "less.npz")


def test_before_fit_there_are_no_codes(hasher, tmp_path):
    title = type(hasher).__name__
    for call in (
        lambda: hasher.encode(images=IMAGES),
        lambda: hasher.transform(texts=TEXTS),
        lambda: hasher.save(tmp_path / "model.npz"),
    ):
        with pytest.raises(bt.NotFittedError, match=f"^{title}: call fit\\(\\) before"):
            call()


def test_exactly_one_modality_is_encoded(fitted):
    for given in ({}, {"images": IMAGES, "texts": TEXTS}):
        with pytest.raises(bt.InputError, match="give either images=… or texts=…"):
            fitted.encode(**given)
        with pytest.raises(bt.InputError, match="give either images=… or texts=…"):
            fitted.transform(**given)
    with pytest.raises(TypeError):
        fitted.encode(IMAGES)


@pytest.mark.parametrize(
    ("images", "texts", "parameters", "says"),
    [
        (np.full((9, 3), np.nan), np.ones((9, 2)), {}, "images: rows must be finite"),
        (np.ones((9, 3)), np.full((9, 2), np.inf), {}, "texts: rows must be finite"),
        (np.ones(9), np.ones((9, 2)), {}, "images: needs rows (n, dim)"),
        (np.ones((9, 3)), ["a tiger"] * 9, {}, "texts: needs vectors"),
        (np.ones((0, 3)), np.ones((0, 2)), {}, "images: Found array with 0 sample"),
        (np.ones((9, 3)), np.ones((8, 2)), {}, "must come in pairs, got 9 images and 8 texts"),
        (np.ones((9, 3)), np.ones((9, 2)), {"n_bits": 0}, "n_bits must be"),
        (np.ones((9, 3)), np.ones((9, 2)), {"n_bits": 3.5}, "n_bits must be"),
        (np.ones((9, 3)), np.ones((9, 2)), {"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_rows_and_parameters_are_refused_in_one_sentence(
    hasher, images, texts, parameters, says
):
    with pytest.raises(bt.InputError) as caught:
        hasher.set_params(**parameters).fit(images, texts, np.arange(9))
    message = str(caught.value)
    assert message.startswith(type(hasher).__name__) and says in message


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "requires y to be passed"),
        (LABELS[:5], "y must have one entry for each row, got 5 for 120"),
        (np.full((120, 2), 0.5), "tags as y must be booleans or 0/1"),
        (bt.Relevance.from_classes(LABELS[:9], LABELS), "must relate the 120 training rows"),
    ],
)
def test_a_bad_y_is_refused_in_one_sentence(name, y, says):
    with pytest.raises(bt.InputError) as caught:
        make(name).fit(IMAGES, TEXTS, y)
    assert str(caught.value).startswith(CROSSMODAL[name].__name__) and says in str(caught.value)


def test_rows_of_other_columns_or_with_nan_are_refused(fitted):
    title = type(fitted).__name__
    with pytest.raises(bt.InputError, match=f"^{title}: images must have the 12 columns"):
        fitted.encode(images=TEXTS)
    with pytest.raises(bt.InputError, match=f"^{title}: texts must have the 9 columns"):
        fitted.encode(texts=IMAGES)
    with pytest.raises(bt.InputError, match=f"^{title}: texts: rows must be finite"):
        fitted.encode(texts=np.where(TEXTS > 1, np.nan, TEXTS))


def test_ctrl_c_keeps_the_model_learned_so_far(hasher, monkeypatch):
    whole, keep = both(hasher.fit(IMAGES, TEXTS, LABELS)), type(hasher)._keep

    def stop_after(self, **learned):
        keep(self, **learned)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(hasher), "_keep", stop_after)
    with pytest.warns(UserWarning, match="stopped early; the model is the one learned so far"):
        hasher.fit(IMAGES, TEXTS, LABELS)
    assert hasher.stopped_early_
    assert [codes.n_bits for codes in both(hasher)] == [8, 8]
    monkeypatch.setattr(
        type(hasher), "_fit", lambda self, *data: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt, match="stopped before there was a model"):
        hasher.fit(IMAGES, TEXTS, LABELS)
    with pytest.raises(bt.NotFittedError):
        hasher.encode(images=IMAGES)
    monkeypatch.undo()
    assert both(hasher.fit(IMAGES, TEXTS, LABELS)) == whole


def test_codes_of_the_optimisation_are_those_of_the_training_pairs(fitted):
    if hasattr(fitted, "training_bits_"):
        assert fitted.training_bits_.dtype == bool
        assert fitted.training_bits_.shape == (120, 8)
        agree = (fitted.training_bits_ == fitted.transform(images=IMAGES)).mean()
        assert agree > 0.7, "the functions predict them"


def test_a_file_without_the_width_of_a_modality_is_refused(fitted, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    head = json.loads(arrays["model"].tobytes())
    del head["model"]["learned"]["image_dim_"]
    np.savez(path, **arrays | {"model": np.frombuffer(json.dumps(head).encode(), np.uint8)})
    with pytest.raises(bt.FileError, match=r"model\.npz: not a readable model .*image_dim_"):
        bt.hashing.load(path)
