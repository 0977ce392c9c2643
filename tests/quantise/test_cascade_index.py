"""CascadeIndex and its steps: each one against the search that it shortens."""

import numpy as np
import pytest

import bittern as bt
from bittern.errors import FileError, InputError
from bittern.quantise import TCQ, Asymmetric, Int8


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    return (rng.standard_normal((1200, 24)) * np.geomspace(3, 0.3, 24)).astype(np.float32)


@pytest.fixture(scope="module")
def models(rows):
    quantiser = TCQ(8, centres=False, correction=1).fit(rows)
    return bt.hashing.ITQ(24, random_state=0).fit(rows), quantiser


def test_with_all_items_as_candidates_it_is_the_exact_search(models, rows):
    index = bt.CascadeIndex(*models, rows, candidates=1200)
    own = bt.QuantisedIndex(models[1], models[1].encode(rows))
    found, expected = index.search(rows[:20], 5), own.search(rows[:20], 5)
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-3)
    assert (found.ids == expected.ids).mean() > 0.97  # rounding may swap two
    full = index.rescore(rows).search(rows[:20], 5)
    exact = own.rescore(rows, factor=4).search(rows[:20], 5)
    assert (full.ids == exact.ids).mean() > 0.97
    assert full.ids[:, 0].tolist() == list(range(20))


def test_items_come_and_go_and_survive_a_file(models, rows, tmp_path):
    index = bt.CascadeIndex(*models, rows[:1000], ids=np.arange(1000) + 7)
    index.add(rows[1000:])
    index.remove([7, 8])
    assert len(index) == 1198 and index.ids[-1] == 1206
    found = index.search(rows[:3], 4)
    assert 9 in found.ids and not np.isin([7, 8], found.ids).any()
    with pytest.raises(InputError, match="exists already"):
        index.add(rows[:1], [9])
    with pytest.raises(InputError, match="no item"):
        index.remove([7])
    index.save(tmp_path / "one")
    again = bt.CascadeIndex.load(tmp_path / "one")
    np.testing.assert_array_equal(again.search(rows[:3], 4).ids, found.ids)
    index.remove([9])
    index.save(tmp_path / "two")
    (tmp_path / "one" / "codes.npz").replace(tmp_path / "two" / "codes.npz")
    with pytest.raises(FileError, match="same items"):
        bt.CascadeIndex.load(tmp_path / "two")


def test_few_queries_find_what_many_find(rows):
    for options in ({"centres": False, "correction": 0}, {"centres": True, "correction": 2}):
        quantiser = TCQ(8, **options).fit(rows)
        index = bt.QuantisedIndex(quantiser, quantiser.encode(rows[:900]))
        index.search(rows[:1], 5)
        index.add(quantiser.encode(rows[900:]))
        index.remove([3])
        many = index.search(rows[:40], 8)
        for q in (0, 1, 39):
            one = index.search(rows[q : q + 1], 8)
            np.testing.assert_allclose(one.distances[0], many.distances[q], rtol=1e-4, atol=1e-3)
        ranked = index.rerank(many, rows[:40], 6)
        np.testing.assert_allclose(ranked.distances, many.distances[:, :6], rtol=1e-4, atol=1e-3)


def test_stored_int8_rows_rescore_as_their_vectors_do(models, rows):
    index = bt.QuantisedIndex(models[1], models[1].encode(rows))
    fine = Int8().fit(rows)
    stored = fine.encode(rows)
    found = index.rescore(stored, quantiser=fine).search(rows[:30], 5)
    expected = index.rescore(fine.decode(stored)).search(rows[:30], 5)
    np.testing.assert_array_equal(found.ids, expected.ids)
    with pytest.raises(InputError, match="wrote them"):
        index.rescore(stored)


def test_corrections_make_the_bits_of_an_index_find_more(rows):
    train, items, queries = rows[:500], rows[500:1100], rows[1100:]
    hasher = bt.hashing.ITQ(24, random_state=0).fit(train)
    quantiser = Asymmetric(hasher, refit=False, correction=2).fit(train)
    codes = hasher.encode(items)
    candidates = bt.MultiIndex(codes).search(hasher.encode(queries), 600)
    z = hasher.logits(queries)
    corrections = quantiser.corrections(items)
    plain = bt.index.rerank_asymmetric(candidates, z, codes)
    better = bt.index.rerank_asymmetric(candidates, z, codes, corrections=corrections)
    true = np.argsort(np.square(queries[:, None] - items).sum(axis=2), axis=1)[:, :10]

    def recall(hits):
        return (hits.ids[:, :10, None] == true[:, None]).any(axis=2).mean()

    assert recall(better) > recall(plain) + 0.05
    own = bt.QuantisedIndex(quantiser, quantiser.encode(items)).search(queries, 10)
    assert (own.ids == better.ids[:, :10]).mean() > 0.95
    with pytest.raises(InputError, match="fitted"):
        Asymmetric(bt.hashing.ITQ(8), refit=False).fit(train)
    with pytest.raises(InputError, match="corrections"):
        bt.index.rerank_asymmetric(
            candidates, z, codes[:600], corrections=quantiser.corrections(train)
        )
