"""Hash tables and near-duplicates over shards, against the database in one piece."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bittern as bt


@pytest.fixture(scope="module")
def codes():
    """Clusters, chains, and codes that many items have, in different shards."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (120, 70)).astype(bool)
    more = bits[rng.integers(0, 120, 500)] ^ (rng.random((500, 70)) < 0.02)
    same = bits[rng.integers(0, 8, 60)]
    return bt.Codes.from_bits(rng.permutation(np.concatenate([bits, more, same])))


@pytest.mark.parametrize("size", [150, 1000])
@pytest.mark.parametrize("link", ["complete", "connected"])
def test_groups_are_those_of_one_piece(tmp_path, codes, size, link):
    ids = np.sort(np.random.default_rng(1).choice(9999, len(codes), replace=False))
    shards = bt.scale.Shards.create(tmp_path / "db", codes, ids=ids, shard_size=size)
    for radius in (0, 3):
        expected = bt.index.groups_within(codes, radius, link=link)
        assert len(expected) > 5  # not vacuous
        found = bt.scale.duplicates(shards, radius, link=link)
        assert [g.tolist() for g in found] == [ids[g].tolist() for g in expected]


def test_threads_of_an_executor_find_the_same(tmp_path, codes):
    shards = bt.scale.Shards.create(tmp_path / "db", codes, shard_size=100)
    with ThreadPoolExecutor(3) as executor:
        found = bt.scale.duplicates(shards, 3, executor=executor)
    expected = bt.index.groups_within(codes, 3)
    assert [g.tolist() for g in found] == [g.tolist() for g in expected]


def test_nothing_near_is_no_group(tmp_path):
    codes = bt.Codes.from_bits(np.repeat(np.eye(4, dtype=bool), 8, axis=1))
    shards = bt.scale.Shards.create(tmp_path / "db", codes, shard_size=3)
    assert bt.scale.duplicates(shards, 3) == []


@pytest.mark.parametrize("segments", ["consecutive", "random"])
def test_surfaces_are_those_of_one_piece(tmp_path, codes, segments):
    labels = np.arange(len(codes)) % 3
    shards = bt.scale.Shards.create(tmp_path / "db", codes, labels=labels, shard_size=200)
    queries, asked = codes[:9], labels[:9]
    grid = {"bits_per_table": [4, 12, 40], "n_tables": [1, 2, 5], "segments": segments, "probe": 1}
    whole = bt.Relevance.from_classes(asked, labels)
    expected = bt.table_surface(queries, codes, whole, **grid)
    for relevance in (bt.scale.Classes(asked), whole):
        found = bt.scale.table_surface(queries, shards, relevance, **grid)
        for name in ("true_positives", "false_positives", "examined", "n_relevant"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert found.settings == expected.settings
    assert expected.true_positives.max() > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: bt.scale.duplicates(s, -1), "radius"),
        (lambda s: bt.scale.duplicates(s, 1, link="single"), "link"),
        (
            lambda s: bt.scale.table_surface(
                bt.Codes.from_bits([[1]]), s, bt.scale.Classes([0]), bits_per_table=1, n_tables=1
            ),
            "have 1 bits",
        ),
    ],
)
def test_wrong_calls_say_so(tmp_path, codes, call, message):
    shards = bt.scale.Shards.create(tmp_path / "db", codes)
    with pytest.raises(bt.InputError, match=message):
        call(shards)


def test_a_damaged_shard_is_named(tmp_path, codes):
    shards = bt.scale.Shards.create(tmp_path / "db", codes, shard_size=300)
    (tmp_path / "db" / "000001.codes.npy").unlink()
    with pytest.raises(bt.FileError, match="shard 000001"):
        bt.scale.duplicates(shards, 2)
