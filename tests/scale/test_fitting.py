"""Hashers learned from sums over shards, against fitting on the rows in one piece."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bittern as bt
from bittern.scale import fitting
from bittern.scale.tasks import Runner

N, DIM = 900, 12
HASHERS = {
    "lsh": bt.hashing.LSH(8, random_state=3),
    "pcah": bt.hashing.PCAH(8),
    "pcah, more bits than directions": bt.hashing.PCAH(16, random_state=1),
    "isohash": bt.hashing.IsoHash(8),
    "itq": bt.hashing.ITQ(8, random_state=2),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = np.array(["cat", "dog", "emu", "fox"])[np.sort(rng.integers(0, 4, N))]
    centres = rng.standard_normal((4, DIM)) * 2
    vectors = centres[np.unique(labels, return_inverse=True)[1]] + rng.standard_normal((N, DIM))
    vectors[:, -1] = vectors[:, 0]  # fewer directions than columns
    return (100 + vectors * np.arange(1, DIM + 1)).astype(np.float32), labels  # far from 0


def shards_of(folder, vectors, size, **parts):
    return bt.scale.Shards.create(folder, vectors=vectors, shard_size=size, **parts)


@pytest.mark.parametrize("name", HASHERS)
def test_it_is_the_hasher_of_the_rows_in_one_piece(tmp_path, data, name):
    from sklearn.base import clone

    vectors, labels = data
    whole = clone(HASHERS[name]).fit(vectors, labels)
    for size in (37, 400, N):
        shards = shards_of(tmp_path / str(size), vectors, size, labels=labels)
        for sample in (None, N) if size == 400 else (N,):
            found = bt.scale.fit(clone(HASHERS[name]), shards, sample=sample)
            np.testing.assert_allclose(found.mean_, whole.mean_, rtol=1e-12)
            np.testing.assert_allclose(found.projection_, whole.projection_, atol=1e-6)
            np.testing.assert_array_equal(found.encode(vectors).words, whole.encode(vectors).words)


@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_correlations_with_targets_are_sums(tmp_path, data, kind):
    vectors, y = data
    if kind == "tags":
        y = np.stack([y == "cat", y != "dog", np.arange(N) % 3 == 0], axis=1)
    whole, codes = bt.hashing.ITQCCA(6).fit(vectors, y), []
    for size in (37, 250, N):
        shards = shards_of(tmp_path / str(size), vectors, size, **{kind: y})
        found = bt.scale.fit(bt.hashing.ITQCCA(6), shards)
        np.testing.assert_allclose(found.mean_, whole.mean_, rtol=1e-12)
        # Rotations and signs of the directions cancel: what remains is what correlates.
        metric, expected = (one.projection_ @ one.projection_.T for one in (found, whole))
        np.testing.assert_allclose(metric, expected, rtol=1e-6, atol=1e-9 * expected.max())
        codes.append(found.encode(vectors).words)
    np.testing.assert_array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(codes[0], codes[2])


def test_it_does_not_depend_on_the_order_of_tasks(tmp_path, data, monkeypatch):
    vectors, labels = data
    shards = shards_of(tmp_path / "db", vectors, 100, labels=labels)
    found = [bt.scale.fit(bt.hashing.ITQCCA(8), shards)]
    with ThreadPoolExecutor(3) as executor:
        found.append(bt.scale.fit(bt.hashing.ITQCCA(8), shards, executor=executor))
    real = Runner.__call__

    def backwards(self, function, tasks, what, work=None):
        yield from reversed(list(real(self, function, tasks, what, work)))

    monkeypatch.setattr(Runner, "__call__", backwards)
    found.append(bt.scale.fit(bt.hashing.ITQCCA(8), shards))
    for other in found[1:]:  # to the last bit
        np.testing.assert_array_equal(other.projection_, found[0].projection_)


def test_sums_of_whole_numbers_are_exact_however_they_are_cut(tmp_path):
    rng = np.random.default_rng(1)
    vectors = rng.integers(0, 1000, (500, 5)).astype(np.float32)
    whole = bt.hashing.LSH(8).fit(vectors)
    for size in (7, 123, 500):
        shards = shards_of(tmp_path / str(size), vectors, size)
        found = bt.scale.fit(bt.hashing.LSH(8), shards)
        np.testing.assert_array_equal(found.mean_, whole.mean_)


def test_a_sample_is_the_same_however_the_rows_are_cut(tmp_path, data):
    vectors, _ = data
    found = []
    for size in (90, 700):
        shards = shards_of(tmp_path / str(size), vectors, size)
        found.append(bt.scale.fit(bt.hashing.ITQ(8), shards, sample=200).encode(vectors).words)
    np.testing.assert_array_equal(*found)
    everything = bt.hashing.ITQ(8).fit(vectors).encode(vectors).words
    assert not np.array_equal(found[0], everything)  # the sample was used


def lloyd(rows, means, n_iter):
    """Lloyd's algorithm from the definition."""
    for _ in range(n_iter):
        nearest = [int(np.argmin([((x - m) ** 2).sum() for m in means])) for x in rows]
        groups = [rows[np.array(nearest) == c] for c in range(len(means))]
        means = np.array(
            [g.mean(axis=0) if len(g) else m for g, m in zip(groups, means, strict=True)]
        )
    return means


@pytest.mark.parametrize("size", [64, 300])
def test_kmeans_is_lloyds_algorithm_on_all_rows(tmp_path, data, size):
    vectors = data[0][:300].astype(np.float64)
    shards = shards_of(tmp_path / "db", vectors, size)
    begin = vectors[fitting.random_positions(300, 6, 5)]
    found = bt.scale.kmeans(shards, 6, n_iter=4, random_state=5)
    np.testing.assert_allclose(found, lloyd(vectors, begin, 4), rtol=1e-9)
    assert not np.allclose(found, begin)


def test_wrong_calls_say_so(tmp_path, data):
    vectors, _ = data
    shards = shards_of(tmp_path / "db", vectors, 400)
    with pytest.raises(bt.InputError, match=r"does not learn from sums; .*itq.* do"):
        bt.scale.fit(bt.hashing.SH(8), shards)
    with pytest.raises(bt.InputError, match="itq-cca needs shards with labels or tags"):
        bt.scale.fit(bt.hashing.ITQCCA(8), shards)
    with pytest.raises(bt.InputError, match="n_clusters"):
        bt.scale.kmeans(shards, N + 1)
    only_codes = bt.scale.Shards.create(tmp_path / "codes", bt.Codes.from_bits([[1, 0]]))
    with pytest.raises(bt.InputError, match="no vectors to learn from"):
        bt.scale.fit(bt.hashing.PCAH(1), only_codes)
    bad = vectors.copy()
    bad[500, 3] = np.nan
    with pytest.raises(bt.InputError, match=r"shard 000001: .*NaN"):
        bt.scale.fit(bt.hashing.PCAH(8), shards_of(tmp_path / "bad", bad, 400))
