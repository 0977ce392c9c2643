"""Hashers and quantisers as steps of scikit-learn: clones, pickles, pipelines and grid searches."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import bittern as bt
from bittern.hashing import HASHERS
from bittern.quantise import QUANTISERS

RNG = np.random.default_rng(0)
MANY_Y = np.arange(540) % 3  # codewords need 256 rows in each half
MANY = (RNG.standard_normal((540, 16)) + 2 * RNG.standard_normal((3, 16))[MANY_Y]).astype(
    np.float32
)
X, Y = MANY[:120], MANY_Y[:120]
#: Options under which training is short; the steps are what matters here.
QUICK = {
    **{name: {"n_epochs": 2} for name in ("dpsh", "dtsh", "csq", "talr")},
    "bre": {"n_sweeps": 1, "n_landmarks": 10, "n_pairs": 20},
    "fasthash": {"n_sweeps": 1, "n_trees": 3},
    "ksh": {"n_steps": 5},
    "machash": {"n_iter": 2},
    "structhash": {"n_queries": 20, "n_relevant": 5, "n_irrelevant": 5},
    "asymmetric": {"correction": True},
    "tcq": {"centres": False},
    "water-filled": {"centres": False},
}
#: Bytes that each quantiser can keep of 16 numbers; 4 by default.
SIZES = {"float16": (16, 32), "int8": (8, 16), "sign": (1, 2), "asymmetric": (3, 4), "rq": (1, 2)}


def hasher(name, n_bits=8):
    return HASHERS[name](n_bits=n_bits, **QUICK.get(name, {}))


def quantiser(name):
    return QUANTISERS[name](n_bytes=SIZES.get(name, (3, 4))[1], **QUICK.get(name, {}))


def ap(model, X, y):
    """Average precision of a search among the rows, as GridSearchCV's ``scoring``."""
    steps = model[:-1] if len(model) > 1 else None
    codes = model[-1].encode(X if steps is None else steps.transform(X))
    return bt.evaluate(codes, codes, bt.Relevance.from_classes(y, y), ["ap"])["ap"].mean


@pytest.mark.parametrize("name", [*HASHERS, *QUANTISERS])
def test_a_clone_has_the_parameters_and_nothing_learned(name):
    step, rows = (hasher(name), X) if name in HASHERS else (quantiser(name), MANY)
    given = step.get_params(deep=False)
    step.fit(rows, Y if name in HASHERS else None)
    copy = clone(step)
    assert copy.get_params(deep=False) == given == step.get_params(deep=False)
    with pytest.raises(bt.NotFittedError):
        copy.encode(X)
    assert copy.set_params(random_state=3).random_state == 3
    restored = pickle.loads(pickle.dumps(step))
    assert restored.get_params(deep=False) == given
    np.testing.assert_array_equal(as_bytes(restored.encode(X)), as_bytes(step.encode(X)))


def as_bytes(found):
    return found.to_packed() if isinstance(found, bt.Codes) else found.bytes


@pytest.mark.parametrize("name", HASHERS)
def test_a_hasher_ends_a_pipeline_or_stands_inside_one(name):
    alone = make_pipeline(PCA(8, random_state=0), hasher(name))
    bits = alone.fit(X, Y).transform(X)
    assert bits.dtype == bool and bits.shape == (len(X), alone[-1].n_stored_bits)
    again = pickle.loads(pickle.dumps(alone))
    np.testing.assert_array_equal(again.transform(X), bits)

    inside = make_pipeline(hasher(name), KNeighborsClassifier(3, metric="hamming"))
    key = f"{type(inside[0]).__name__.lower()}__n_bits"
    search = GridSearchCV(inside, {key: [2, 12]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.5 and len(search.cv_results_["params"]) == 2


@pytest.mark.parametrize("name", ["itq", "ksh"])
def test_a_metric_of_ours_chooses_the_settings_of_a_hasher(name):
    pipe = make_pipeline(PCA(8, random_state=0), hasher(name))
    key = f"{type(pipe[-1]).__name__.lower()}__n_bits"
    search = GridSearchCV(pipe, {key: [1, 8]}, scoring=ap, cv=2).fit(X, Y)
    assert search.best_params_ == {key: 8}


@pytest.mark.parametrize("name", QUANTISERS)
def test_a_quantiser_ends_a_pipeline_or_stands_inside_one(name):
    pipe = make_pipeline(PCA(16, random_state=0), quantiser(name))
    vectors = pipe.fit(MANY).transform(X)
    assert vectors.shape == X.shape and vectors.dtype == np.float32
    lost = np.square(pipe[:-1].transform(X) - vectors).sum(axis=1).mean()
    assert pipe.score(X) == pytest.approx(-lost, rel=1e-4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipe)).transform(X), vectors)

    key = f"{type(pipe[-1]).__name__.lower()}__n_bytes"
    few, many = SIZES.get(name, (3, 4))
    search = GridSearchCV(pipe, {key: [few, many]}, cv=2).fit(MANY)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    if name != "sign":  # whose bits stand for -1 and 1, not for values near the rows'
        assert search.best_params_ == {key: many}

    inside = make_pipeline(quantiser(name), KNeighborsClassifier(3))
    assert inside.fit(MANY, MANY_Y).score(X, Y) > 0.6
