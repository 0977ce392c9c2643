"""What every hasher promises, tested over the whole table."""

import json
import pickle
import re
import zipfile
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import bittern as bt
from bittern.hashing import HASHERS


def labelled_blobs(random_state, n=120, dim=16, n_classes=3, dtype=np.float64):
    """Classes of points, read-only: a hasher that writes to its input fails here."""
    rng = np.random.default_rng(random_state)
    labels = rng.integers(0, n_classes, n)
    features = (rng.standard_normal((n, dim)) + 2 * labels[:, None]).astype(dtype)
    features.flags.writeable = labels.flags.writeable = False
    return features, labels


FEATURES, LABELS = labelled_blobs(random_state=7)
TAGS = np.eye(3, dtype=bool)[LABELS]
NAMES = list(HASHERS)
SUPERVISED = [name for name in NAMES if HASHERS[name].needs_y]


#: Shorter training than by default: the contract is not about quality.
QUICK = {
    **{name: {"n_epochs": 15, "learning_rate": 0.05} for name in ("dpsh", "dtsh", "csq", "talr")},
    "bre": {"n_sweeps": 1, "n_landmarks": 10, "n_pairs": 20},
    "ksh": {"n_steps": 20},
    "fasthash": {"n_sweeps": 1, "n_trees": 10},
    "structhash": {"n_queries": 40, "n_relevant": 10, "n_irrelevant": 10},
}


def make(name, n_bits=8):
    return HASHERS[name](n_bits=n_bits, **QUICK.get(name, {}))


@pytest.fixture(params=NAMES)
def hasher(request):
    return make(request.param)


@cache
def trained(name):
    return make(name).fit(FEATURES, LABELS)


@pytest.fixture(params=NAMES)
def fitted(request):
    """Fitted once for all tests that only look at it."""
    return trained(request.param)


def test_the_table_is_that_of_the_papers():
    published = {
        "lsh", "sklsh", "klsh", "pcah", "itq", "itq-cca", "sh", "agh", "sth", "isohash", "dbq",
        "bre", "ksh", "sdh", "machash", "fasthash", "structhash", "dpsh", "dtsh", "csq", "talr",
    }  # fmt: skip
    assert published <= set(NAMES)
    assert all(HASHERS[name].name == name for name in NAMES)


def test_an_unknown_name_is_met_with_the_nearest():
    with pytest.raises(bt.UnknownNameError, match="no hasher is called 'itk'; did you mean 'itq'"):
        HASHERS["itk"]


def test_every_class_is_reached_by_its_name(hasher):
    assert getattr(bt.hashing, type(hasher).__name__) is type(hasher)
    assert type(hasher).__doc__
    assert re.search(r"\[[A-Z][\w-]+-\d{4}[a-z]?\]", type(hasher).__doc__), "cites its reference"


def test_fit_returns_self_and_leaves_hyper_parameters_alone(hasher):
    before = hasher.get_params(deep=False)
    assert hasher.fit(FEATURES, LABELS) is hasher
    assert hasher.get_params(deep=False) == before


def test_numbers_may_be_those_of_numpy_and_real_ones_may_be_whole(hasher):
    def of_another_type(value):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return np.int64(value) if type(value) is int else value

    before = hasher.get_params(deep=False)
    odd = {name: of_another_type(value) for name, value in before.items()}
    assert hasher.set_params(**odd).fit(FEATURES, LABELS).encode(FEATURES) == (
        clone(hasher).set_params(**before).fit(FEATURES, LABELS).encode(FEATURES)
    )


def test_fitting_again_changes_nothing(hasher):
    first = hasher.fit(FEATURES, LABELS).encode(FEATURES)
    again = hasher.fit(FEATURES, LABELS).encode(FEATURES)
    elsewhere = clone(hasher).fit(FEATURES, LABELS).encode(FEATURES)
    assert first == again == elsewhere


def test_a_code_depends_on_its_own_row_only(fitted):
    whole = fitted.encode(FEATURES)
    assert fitted.encode(FEATURES[::7]) == whole[::7]
    assert fitted.encode(FEATURES[3:4]) == whole[3:4]
    np.testing.assert_array_equal(fitted.transform(FEATURES), whole.to_bits())


#: Methods whose bits are not signs: stripes, and several thresholds per direction.
WITHOUT_LOGITS = {"p-stable", "dbq", "mhq", "npq", "vbq"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_are_the_signs_of_logits(fitted, dtype):
    X = FEATURES.astype(dtype)
    if fitted.name in WITHOUT_LOGITS:
        with pytest.raises(bt.InputError, match="has no logits, because its bits are not the sig"):
            fitted.logits(X)
        return
    logits = fitted.logits(X)
    assert logits.shape == (len(X), fitted.n_stored_bits) and np.isfinite(logits).all()
    np.testing.assert_array_equal(logits > 0, fitted.encode(X).to_bits())
    assert len(np.unique(np.abs(logits))) > 2  # numbers, not signs


def test_codes_separate_the_classes(fitted):
    # Not vacuous: a hasher that returned a constant would pass everything above.
    bits = fitted.encode(FEATURES).to_bits()
    apart = (bits[:, None] != bits[None]).sum(axis=-1)
    same = LABELS[:, None] == LABELS[None]
    assert apart[same].mean() < apart[~same].mean()


@pytest.mark.parametrize(("n_bits", "n"), [(1, 120), (7, 120), (64, 40), (65, 40)])
def test_codes_have_as_many_bits_as_asked(hasher, n_bits, n):
    X, y = FEATURES[:n], LABELS[:n]  # few for many bits: some methods learn one after the other
    codes = hasher.set_params(n_bits=n_bits).fit(X, y).encode(X)
    assert hasher.n_bits == n_bits
    assert (len(codes), codes.n_bits) == (n, hasher.n_stored_bits)
    assert len(np.unique(codes.words, axis=0)) > 1


@pytest.mark.parametrize(("n", "dim"), [(30, 50), (200, 5), (40, 1)])
def test_there_may_be_fewer_or_more_rows_than_dimensions(hasher, n, dim):
    X, y = labelled_blobs(1, n, dim)
    codes = hasher.fit(X, y).encode(X)
    assert codes.n_bits == hasher.n_stored_bits
    assert len(np.unique(codes.words, axis=0)) > 1


def test_rows_in_single_precision_give_nearly_the_same_codes(hasher):
    X, y = labelled_blobs(2, dtype=np.float32)
    single = hasher.fit(X, y).encode(X).to_bits()
    double = hasher.fit(X.astype(np.float64), y).encode(X.astype(np.float64)).to_bits()
    assert single.shape == double.shape
    # Methods that choose one of two equally good solutions may flip bits; distances tell.
    apart = [(bits[:, None] != bits).sum(axis=-1).ravel() for bits in (single, double)]
    assert np.corrcoef(*apart)[0, 1] > 0.8


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda X, y: (np.where(np.arange(16) < 5, 3.0, X), y), id="constant columns"),
        pytest.param(lambda X, y: (np.repeat(X[:30], 4, 0), np.repeat(y[:30], 4)), id="duplicates"),
        pytest.param(lambda X, y: (X, np.zeros_like(y)), id="one class"),
        pytest.param(lambda X, y: (X, np.arange(len(y))), id="a class for each row"),
        pytest.param(lambda X, y: (X * 1e6, y), id="large numbers"),
        pytest.param(lambda X, y: (X * 1e-6, y), id="small numbers"),
        pytest.param(lambda X, y: (np.ones_like(X), y), id="all rows equal"),
    ],
)
def test_awkward_rows_are_hashed_all_the_same(hasher, spoil):
    X, y = spoil(FEATURES, LABELS)
    codes = hasher.fit(X, y).encode(X)
    assert (len(codes), codes.n_bits) == (120, hasher.n_stored_bits)
    equal = np.unique(X, axis=0, return_inverse=True)[1]
    for rows in (np.flatnonzero(equal == k) for k in range(equal.max() + 1)):
        assert codes[rows] == codes[np.repeat(rows[:1], len(rows))], "equal rows, equal codes"


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    "y",
    [
        pytest.param(np.array(["ant", "bee", "cat"])[LABELS], id="strings"),
        pytest.param(TAGS, id="tags"),
        pytest.param(bt.Relevance.from_classes(LABELS, LABELS), id="Relevance"),
        pytest.param(
            bt.Relevance.from_tags(TAGS | TAGS[::-1], TAGS | TAGS[::-1], graded=True), id="graded"
        ),
    ],
)
def test_y_may_be_labels_tags_or_a_square_relevance(name, y):
    codes = make(name).fit(FEATURES, y).encode(FEATURES)
    assert len(np.unique(codes.words, axis=0)) > 1


@pytest.mark.parametrize("name", SUPERVISED)
def test_supervised_hashers_follow_the_labels_not_the_rows(name):
    # The labels are cut along a direction of small variance, which no principal axis finds.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) * [3, 2, 1, 1, 1, 1]
    y = (X[:, 2] > 0).astype(int)
    bits = make(name).fit(X, y).encode(X).to_bits()
    apart = (bits[:, None] != bits[None]).sum(axis=-1)
    same = y[:, None] == y[None]
    assert apart[same].mean() < 0.7 * apart[~same].mean()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SUPERVISED])
def test_unsupervised_hashers_need_no_y(name):
    hasher = make(name).fit(FEATURES)
    assert hasher.encode(FEATURES).n_bits == hasher.n_stored_bits


THERMOMETERS = ("mhq", "npq", "vbq")


def test_codes_are_as_long_as_asked_except_thermometers(fitted):
    assert fitted.n_bits == 8
    if fitted.name in THERMOMETERS:
        assert fitted.n_stored_bits >= 8 and len(fitted.thresholds_) == fitted.n_stored_bits
    else:
        assert fitted.n_stored_bits == 8


@pytest.mark.parametrize("name", [name for name in NAMES if HASHERS[name].is_nested])
def test_the_first_bits_of_nested_methods_are_a_shorter_code(name):
    long, short = (make(name, n_bits).fit(FEATURES, LABELS).encode(FEATURES) for n_bits in (8, 5))
    assert long.truncate(5) == short and long.n_bits == 8


def test_pickles(fitted):
    assert pickle.loads(pickle.dumps(fitted)).encode(FEATURES) == fitted.encode(FEATURES)


def test_saves_and_loads_as_arrays_and_json(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    again = bt.hashing.load(tmp_path / "model.npz")
    assert type(again) is type(fitted)
    assert again.encode(FEATURES) == fitted.encode(FEATURES)
    assert {k: v for k, v in again.get_params(deep=False).items() if k != "projection"} == {
        k: v for k, v in fitted.get_params(deep=False).items() if k != "projection"
    }
    with zipfile.ZipFile(tmp_path / "model.npz") as file:
        assert all(name.endswith(".npy") for name in file.namelist())
        for name in file.namelist():
            assert b"'O'" not in file.read(name)[:200], "no pickled objects"
    head = json.loads(np.load(tmp_path / "model.npz")["model"].tobytes())
    assert head["model"]["hasher"] == fitted.name


def test_encodes_rows_on_disk_by_blocks(fitted, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", FEATURES)
    monkeypatch.setattr("bittern.hashing.base.MEMORY", 2000)  # a few rows at a time
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    whole = fitted.encode(FEATURES)
    assert fitted.encode(mapped) == whole
    monkeypatch.undo()
    assert fitted.encode(FEATURES) == whole


def test_encode_before_fit_is_refused(hasher):
    title = type(hasher).__name__
    for call in (hasher.encode, hasher.transform, hasher.save):
        with pytest.raises(bt.NotFittedError, match=f"^{title}: call fit\\(\\) before"):
            call(FEATURES)


@pytest.mark.parametrize(
    ("X", "y", "parameters", "says"),
    [
        (np.full((9, 3), np.nan), range(9), {}, "row 0 has NaN or infinity"),
        (np.full((9, 3), np.inf), range(9), {}, "row 0 has NaN or infinity"),
        (np.ones(9), range(9), {}, "needs rows (n, dim), got shape (9,)"),
        (np.ones((9, 3, 2)), range(9), {}, "needs vectors"),
        (np.ones((0, 3)), [], {}, "Found array with 0 sample"),
        (np.full((9, 3), 1e160), range(9), {}, "a number is larger than 1e+100"),
        (np.full((9, 3), 1e-160), range(9), {}, "no number is larger than 1e-100"),
        (np.ma.masked_less(np.eye(9), 1), range(9), {}, "X has masked entries"),
        ([["a"] * 3] * 9, range(9), {}, "needs rows of numbers, got text"),
        (np.ones((9, 3)), range(9), {"n_bits": 0}, "n_bits must be"),
        (np.ones((9, 3)), range(9), {"n_bits": 4097}, "n_bits must be"),
        (np.ones((9, 3)), range(9), {"n_bits": 3.5}, "n_bits must be"),
        (np.ones((9, 3)), range(9), {"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_rows_and_parameters_are_refused_in_one_sentence(hasher, X, y, parameters, says):
    if "random_state" in parameters and "random_state" not in hasher.get_params():
        pytest.skip("this method draws nothing")
    with pytest.raises(bt.InputError) as caught:
        hasher.set_params(**parameters).fit(X, list(y))
    message = str(caught.value)
    assert message.startswith(type(hasher).__name__) and says in message


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "requires y to be passed, but the target y is None; pass class labels"),
        (LABELS[:5], "y must have one entry for each row, got 5 for 120"),
        (TAGS[:5], "y must have one entry for each row, got 5 for 120"),
        (np.full((120, 2), 0.5), "tags as y must be booleans or 0/1"),
        (np.full(120, 0.5), "y"),
        (bt.Relevance.from_classes(LABELS[:9], LABELS), "must relate the 120 training rows"),
    ],
)
def test_a_bad_y_is_refused_in_one_sentence(name, y, says):
    with pytest.raises(bt.InputError) as caught:
        make(name).fit(FEATURES, y)
    assert str(caught.value).startswith(HASHERS[name].__name__) and says in str(caught.value)


def test_other_rows_than_it_was_fitted_on_are_refused(fitted):
    with pytest.raises(bt.InputError, match="expecting 16 features"):
        fitted.encode(FEATURES[:, :5])


#: Checks of scikit-learn that a hasher does not pass, and why.
EXPECTED = {
    "check_supervised_y_2d": "a column of labels (n, 1) is read as one tag, for tags are 2-D too",
    "check_classifiers_regression_target": "hashers are no classifiers",
}


def barely_trained(name):
    hasher = make(name, 4)
    return hasher.set_params(n_epochs=3) if "n_epochs" in hasher.get_params() else hasher


@parametrize_with_checks(
    [barely_trained(name) for name in NAMES],
    expected_failed_checks=lambda estimator: EXPECTED if estimator.needs_y else {},
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
