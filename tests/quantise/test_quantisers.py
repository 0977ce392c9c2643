"""What every quantiser promises: bytes, distances, files, and kind refusals."""

import numpy as np
import pytest
from sklearn.base import clone

import bittern as bt
from bittern.errors import FileError, InputError, NotFittedError
from bittern.quantise import QUANTISERS, QuantisedCodes

SIZES = {"float16": None, "int8": None, "sign": None, "rq": 2, "pq": 4}
FAST = {"tcq": {"centres": False}, "water-filled": {"centres": False}}


def made(name, metric="euclidean", **more):
    return QUANTISERS[name](
        n_bytes=SIZES.get(name, 8), metric=metric, **{**FAST.get(name, {}), **more}
    )


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((24, 24)) * np.geomspace(3, 0.1, 24)
    return (rng.standard_normal((700, 24)) @ mixing.T + rng.standard_normal(24)).astype(np.float32)


@pytest.fixture(scope="module")
def fitted(rows):
    return {name: made(name).fit(rows[:600]) for name in QUANTISERS}


def exact(metric, queries, items):
    q, x = queries.astype(np.float64), items.astype(np.float64)
    if metric == "cosine":
        q = q / np.linalg.norm(q, axis=1, keepdims=True)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return 1 - q @ x.T
    if metric == "inner-product":
        return -q @ x.T
    return np.square(q[:, None] - x).sum(axis=2)


@pytest.mark.parametrize("name", QUANTISERS)
def test_bytes_are_as_many_as_asked(name, fitted, rows):
    stored = fitted[name].encode(rows)
    assert stored.bytes.dtype == np.uint8 and stored.bytes.shape == (700, stored.n_bytes)
    asked = fitted[name].n_bytes
    assert stored.n_bytes == fitted[name].n_bytes_
    if asked is not None:
        assert stored.n_bytes <= asked
    else:
        assert stored.n_bytes == {"float16": 48, "int8": 24, "sign": 3}[name]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner-product"])
@pytest.mark.parametrize("name", [name for name in QUANTISERS if name != "sign"])
def test_estimates_are_near_the_true_distances(name, metric, rows):
    quantiser = made(name, metric).fit(rows[:600])
    queries = rows[600:650]
    found = quantiser.distances(queries, quantiser.encode(rows[:600]))
    assert found.shape == (50, 600) and found.dtype == np.float32
    true = exact(metric, queries, rows[:600])
    correlation = np.corrcoef(found.ravel(), true.ravel())[0, 1]
    assert correlation > (0.99999 if name in ("float16", "int8") else 0.8), correlation


@pytest.mark.parametrize("name", ["float16", "int8", "pq", "opq", "rq"])
def test_distances_are_those_of_the_decoded_vectors(name, fitted, rows):
    quantiser, queries = fitted[name], rows[600:620]
    stored = quantiser.encode(rows[:100])
    if name == "opq":  # the rotation keeps all dimensions here, so products are kept
        assert quantiser.axes_.shape[1] >= 24
    decoded = quantiser.decode(stored)
    expected = exact("euclidean", queries, decoded)
    np.testing.assert_allclose(quantiser.distances(queries, stored), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("name", QUANTISERS)
def test_a_block_does_not_change_its_rows(name, fitted, rows):
    whole = fitted[name].encode(rows).bytes
    np.testing.assert_array_equal(fitted[name].encode(rows[100:130]).bytes, whole[100:130])


@pytest.mark.parametrize("name", QUANTISERS)
def test_pairs_have_the_distances_of_blocks(name, fitted, rows):
    stored = fitted[name].encode(rows)
    q, r = np.array([0, 3, 3, 4]), np.array([10, 0, 699, 55])
    found = fitted[name].scorer(rows[:5]).of(stored, q, r)
    expected = fitted[name].distances(rows[:5], stored)[q, r]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", QUANTISERS)
def test_saved_and_loaded_it_is_the_same(name, fitted, rows, tmp_path):
    fitted[name].save(tmp_path / "model.npz")
    again = bt.quantise.load(tmp_path / "model.npz")
    stored = fitted[name].encode(rows)
    stored.save(tmp_path / "codes.npz")
    for mmap in (False, True):
        loaded = QuantisedCodes.load(tmp_path / "codes.npz", mmap=mmap)
        np.testing.assert_array_equal(
            again.distances(rows[:3], loaded), fitted[name].distances(rows[:3], stored)
        )


@pytest.mark.parametrize("name", QUANTISERS)
def test_it_can_be_cloned_and_fitted_twice_alike(name, fitted, rows):
    again = clone(fitted[name]).fit(rows[:600])
    assert again.fingerprint == fitted[name].fingerprint


@pytest.mark.parametrize("name", QUANTISERS)
def test_bad_input_is_refused_in_one_sentence(name, fitted, rows):
    with pytest.raises(NotFittedError):
        made(name).encode(rows)
    with pytest.raises(InputError, match="metric"):
        made(name, "manhattan").fit(rows)
    with pytest.raises(InputError):
        made(name).fit(np.full((300, 4), np.nan))
    with pytest.raises(InputError):
        fitted[name].encode(rows[:, :5])
    with pytest.raises(InputError):
        fitted[name].encode(rows[0])
    with pytest.raises(InputError, match="random_state"):
        made(name, random_state=-1).fit(rows)


def test_codes_of_another_quantiser_are_refused(fitted, rows):
    stored = fitted["int8"].encode(rows)
    other = QUANTISERS["int8"]().fit(rows[:50])
    with pytest.raises(InputError, match="another quantiser"):
        other.distances(rows[:2], stored)
    with pytest.raises(InputError, match="one quantiser"):
        QuantisedCodes.concatenate([stored, other.encode(rows)])
    both = QuantisedCodes.concatenate([stored[:3], stored[3:]])
    np.testing.assert_array_equal(both.bytes, stored.bytes)
    with pytest.raises(InputError, match="rows"):
        stored[0]


def test_a_file_of_something_else_is_refused(tmp_path, fitted, rows):
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(FileError):
        QuantisedCodes.load(tmp_path / "other.npz")
    with pytest.raises(FileError):
        bt.quantise.load(tmp_path / "other.npz")
    fitted["tcq"].save(tmp_path / "model.npz")
    (tmp_path / "half.npz").write_bytes((tmp_path / "model.npz").read_bytes()[:-200])
    with pytest.raises(FileError):
        bt.quantise.load(tmp_path / "half.npz")


@pytest.mark.parametrize("name", [name for name in QUANTISERS if name not in ("pq", "opq", "rq")])
def test_constant_rows_and_few_rows(name):
    same = np.ones((20, 6), np.float32)
    quantiser = made(name).fit(same)
    found = quantiser.distances(same[:2], quantiser.encode(same))
    assert np.isfinite(found).all() and np.ptp(found) == 0


@pytest.mark.parametrize("name", ["tcq", "water-filled"])
def test_too_few_bytes_for_all_parts_are_refused(name, rows):
    with pytest.raises(InputError, match="leave none"):
        QUANTISERS[name](3, centres=True, correction=True).fit(np.repeat(rows, 2, axis=0))
    with pytest.raises(InputError, match="'auto'"):
        QUANTISERS[name](8, centres="yes").fit(rows)
    assert QUANTISERS[name](3).fit(rows).n_bytes_ == 3


def test_prefixes_keep_the_first_columns(rows):
    head = QUANTISERS["int8"](6).fit(rows)
    assert head.encode(rows).n_bytes == 6
    changed = rows.copy()
    changed[:, 6:] += 100
    np.testing.assert_array_equal(head.encode(rows).bytes, head.encode(changed).bytes)
    with pytest.raises(InputError, match="hold no number"):
        QUANTISERS["float16"](1).fit(rows)


def test_sign_distances_are_hamming_distances(rows):
    for centred in (True, False):
        quantiser = QUANTISERS["sign"](centred=centred).fit(rows)
        shift = rows.mean(axis=0, dtype=np.float64).astype(np.float32) if centred else 0
        bits = rows > shift
        expected = (bits[:5, None] != bits[None]).sum(axis=2)
        np.testing.assert_array_equal(
            quantiser.distances(rows[:5], quantiser.encode(rows)), expected
        )
        np.testing.assert_array_equal(quantiser.encode(rows).bytes, np.packbits(bits, axis=1))
