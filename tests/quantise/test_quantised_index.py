"""QuantisedIndex against sorting all distances."""

import numpy as np
import pytest

import bittern as bt
from bittern.errors import FileError, InputError
from bittern.quantise import TCQ, Int8, Sign, tcq


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).standard_normal((900, 20)).astype(np.float32)


@pytest.fixture(params=["sign", "tcq"])
def quantiser(request, rows):
    made = Sign() if request.param == "sign" else TCQ(6, centres=False)
    return made.fit(rows)


def test_it_finds_the_smallest_estimates_and_of_ties_the_first(quantiser, rows):
    stored = quantiser.encode(rows)
    index = bt.QuantisedIndex(quantiser, stored)
    scorer, pairs = quantiser.scorer(rows[:30]), np.indices((30, 900)).reshape(2, -1)
    distances = quantiser.distances(rows[:30], stored)
    if scorer.looks_up:  # rounded otherwise, so that equal estimates can be others
        by_pair = scorer.of(stored, *pairs, quantiser.keep(stored)).reshape(30, 900)
        np.testing.assert_allclose(by_pair, distances, rtol=1e-5, atol=1e-5)
        distances = by_pair
    order = np.argsort(distances, axis=1, kind="stable")[:, :50]
    hits = index.search(rows[:30], k=50)
    np.testing.assert_array_equal(hits.distances, np.take_along_axis(distances, order, 1))
    np.testing.assert_array_equal(hits.ids, order)
    assert index.search(rows[:2], k=5000).ids.shape == (2, 900)


def test_a_processor_that_multiplies_no_bytes_finds_the_same(rows, monkeypatch):
    quantiser = TCQ(6, centres=False).fit(rows)
    index = bt.QuantisedIndex(quantiser, quantiser.encode(rows))
    found = index.search(rows[:30], k=20)
    monkeypatch.setattr(tcq, "multiplies_bytes", lambda: False)
    slowly = index.search(rows[:30], k=20)
    np.testing.assert_allclose(found.distances, slowly.distances, rtol=1e-5, atol=1e-5)
    assert np.mean(found.ids == slowly.ids) > 0.99  # those rounded to equal estimates may differ


def test_where_ids_and_removal(quantiser, rows):
    stored = quantiser.encode(rows)
    ids = np.arange(900) * 3 + 5
    index = bt.QuantisedIndex(quantiser, stored, ids=ids)
    mask = np.arange(900) % 2 == 0
    by_mask, by_ids = (index.search(rows[:4], 7, where=w) for w in (mask, ids[mask]))
    np.testing.assert_array_equal(by_mask.ids, by_ids.ids)
    assert np.isin(by_mask.ids, ids[mask]).all()
    index.remove(ids[~mask])
    np.testing.assert_array_equal(index.search(rows[:4], 7).ids, by_mask.ids)
    assert len(index) == 450 and len(index.stored) == 450
    index.add(stored[:2])
    assert index.ids[-2:].tolist() == [ids[-1] + 1, ids[-1] + 2]
    with pytest.raises(InputError, match="exists already"):
        index.add(stored[:1], [ids[0]])
    with pytest.raises(InputError, match="mask"):
        index.search(rows[:1], 2, where=mask)
    empty = index.search(rows[:2], 3, where=[])
    assert empty.ids.shape == (2, 0)


@pytest.mark.parametrize("dtype", ["f4", "f2", "memmap"])
def test_rescoring_sorts_the_candidates_by_full_vectors(dtype, rows, tmp_path):
    quantiser = TCQ(6, centres=False).fit(rows)
    index = bt.QuantisedIndex(quantiser, quantiser.encode(rows))
    if dtype == "memmap":
        np.save(tmp_path / "rows.npy", rows)
        full = np.load(tmp_path / "rows.npy", mmap_mode="r")
    else:
        full = rows.astype(dtype)
    hits = index.rescore(full, factor=3).search(rows[:20], k=5)
    candidates = index.search(rows[:20], k=15).ids
    for q, found in enumerate(hits.ids):
        gaps = np.linalg.norm(full[candidates[q]].astype(np.float64) - rows[q], axis=1)
        assert found.tolist() == candidates[q][np.argsort(gaps, kind="stable")][:5].tolist()
    assert hits.ids[:, 0].tolist() == list(range(20))
    with pytest.raises(InputError, match="vectors"):
        index.rescore(rows[:, :4])


def test_a_ranking_ends_in_a_profile(rows):
    quantiser = Int8().fit(rows)
    index = bt.QuantisedIndex(quantiser, quantiser.encode(rows))
    labels = (rows[:, 0] > 0).astype(int)
    relevance = bt.Relevance.from_classes(labels[:30], labels)
    profile = index.search(rows[:30], k=100).profile(relevance)
    assert 0.5 < bt.evaluate(profile, ["precision@10"])["precision@10"].mean <= 1


def test_saved_and_loaded(quantiser, rows, tmp_path):
    index = bt.QuantisedIndex(quantiser, quantiser.encode(rows), ids=np.arange(900)[::-1].copy())
    index.remove([5])
    index.save(tmp_path / "index.npz")
    again = bt.QuantisedIndex.load(tmp_path / "index.npz", quantiser)
    np.testing.assert_array_equal(again.search(rows[:9], 9).ids, index.search(rows[:9], 9).ids)
    other = Int8().fit(rows)
    with pytest.raises((InputError, FileError), match="another quantiser"):
        bt.QuantisedIndex.load(tmp_path / "index.npz", other)
    with pytest.raises(InputError, match="Quantiser"):
        bt.QuantisedIndex("tcq")
