"""TableIndex against dictionaries, sets and sorting."""

import numpy as np
import pytest
from slow_tables import buckets_of, look_up
from slow_tables import segments as consecutive

import bittern as bt
from bittern import FileError, InputError
from bittern.index import Index, TableIndex


def some_codes(n, n_bits, random_state, ones=0.8):
    rng = np.random.default_rng(random_state)
    codes = bt.Codes.from_bits(rng.random((n, n_bits)) < ones)
    codes.words.flags.writeable = False
    return codes


def slow_ranking(queries, database, positions, probe=0, allowed=None):
    """What collides with each query as sorted pairs (distance, position)."""
    bits = database.to_bits()
    tables = [buckets_of(bits, chosen) for chosen in positions]
    rankings = []
    for query in queries.to_bits():
        found, _, _ = look_up(query, tables, positions, probe)
        found = found if allowed is None else found & allowed
        rankings.append(sorted((int((bits[i] != query).sum()), i) for i in found))
    return rankings


def pairs_of(hits):
    return [[(d, i) for i, d in hit] for hit in hits.to_lists()]


SETTINGS = [
    {"n_tables": 1, "bits_per_table": 6},
    {"n_tables": 4, "bits_per_table": 5},
    {"n_tables": 2, "bits_per_table": 9, "probe": 2},
    {"n_tables": 9, "bits_per_table": 11, "segments": "random", "random_state": 3},
    {"n_tables": 3, "bits_per_table": 4, "segments": "random", "probe": 1},
]


@pytest.mark.parametrize("n_bits", [20, 64, 100])
@pytest.mark.parametrize("setting", SETTINGS)
def test_it_finds_what_collides_ranked_by_distance_then_position(n_bits, setting):
    database, queries = some_codes(120, n_bits, 0), some_codes(11, n_bits, 1)
    index = bt.TableIndex(database, **setting)
    positions = index.tables.bits.tolist()
    if "segments" not in setting:
        assert positions == consecutive(setting["n_tables"], setting["bits_per_table"])
    wanted = slow_ranking(queries, database, positions, setting.get("probe", 0))
    assert pairs_of(index.candidates(queries)) == wanted
    for k in (1, 7, 500):
        assert pairs_of(index.search(queries, k)) == [ranking[:k] for ranking in wanted]
    for radius in (0, n_bits // 5, n_bits):
        near = [[(d, i) for d, i in ranking if d <= radius] for ranking in wanted]
        assert pairs_of(index.within(queries, radius)) == near
    assert sum(map(len, wanted)) > 20  # not vacuous


def test_where_fewer_than_k_collide_the_rest_is_empty():
    database = bt.Codes.from_bits([[0, 0, 1, 1], [1, 1, 0, 1], [0, 0, 0, 0]])
    index = bt.TableIndex(database, n_tables=1, bits_per_table=2)
    hits = index.search(bt.Codes.from_bits([[0, 0, 0, 1], [0, 1, 0, 0]]), k=3)
    assert hits.ids.tolist() == [[0, 2, -1], [-1, -1, -1]]
    far = np.iinfo(np.int32).max
    assert hits.distances.tolist() == [[1, 1, far], [far, far, far]]


@pytest.mark.parametrize("probe", [0, 1])
def test_within_the_certain_radius_it_is_exact(probe):
    database, queries = some_codes(300, 24, 0, 0.9), some_codes(20, 24, 1, 0.9)
    index = bt.TableIndex(database, n_tables=4, bits_per_table=6, probe=probe)
    radius = index.certain_radius
    assert radius == 4 * (probe + 1) - 1
    distances = (queries.to_bits()[:, None] != database.to_bits()).sum(axis=2)
    scan = [
        sorted((int(d), i) for i, d in enumerate(row) if d <= radius) for row in distances.tolist()
    ]
    assert pairs_of(index.within(queries, radius)) == scan
    assert sum(map(len, scan)) > 100


def test_an_index_that_grew_and_shrank_is_like_one_made_at_once():
    rng = np.random.default_rng(2)
    setting = {"n_tables": 3, "bits_per_table": 4}
    queries, index, kept = some_codes(6, 16, 9), bt.TableIndex(**setting), {}
    for step, n in enumerate([40, 1, 3, 1, 1, 60, 2, 5, 1]):
        codes = some_codes(n, 16, step)
        ids = index._items.next_id + np.arange(n)
        index.add(codes)
        kept |= dict(zip(ids.tolist(), codes.to_bits(), strict=True))
        if step % 2:
            gone = rng.choice(sorted(kept), len(kept) // 3, replace=False)
            index.remove(gone)
            kept = {i: bits for i, bits in kept.items() if i not in set(gone.tolist())}
        there = np.array(list(kept))
        fresh = bt.TableIndex(bt.Codes.from_bits(list(kept.values())), **setting)
        wanted = [
            [(int(there[i]), d) for i, d in hit] for hit in fresh.search(queries, 9).to_lists()
        ]
        assert index.search(queries, 9).to_lists() == wanted
    assert len(index) == len(kept) < 114
    assert any(wanted)


def test_parts_stay_few_when_codes_come_one_by_one():
    codes = some_codes(100, 16, 0)
    index = bt.TableIndex(n_tables=3, bits_per_table=4)
    sizes = []
    for i in range(100):
        index.add(codes[i])
        index.search(codes[:1], 1)
        sizes.append(len(index._parts))
    assert 2 <= max(sizes) <= 7
    assert sum(map(len, index._parts)) == 100


def test_filters_apply_inside_the_search():
    database, queries = some_codes(120, 20, 0), some_codes(8, 20, 1)
    index = bt.TableIndex(database, n_tables=4, bits_per_table=5)
    mask = np.arange(120) % 3 == 1
    wanted = slow_ranking(queries, database, consecutive(4, 5), 0, set(range(1, 120, 3)))
    for where in (mask, np.flatnonzero(mask), set(range(1, 200, 3))):
        got = index.search(queries, 5, where=where)
        assert pairs_of(got) == [ranking[:5] for ranking in wanted]
        assert pairs_of(index.candidates(queries, where=where)) == wanted
    assert any(wanted)


def test_blocks_and_threads_change_nothing(monkeypatch):
    database, queries = some_codes(200, 20, 0), some_codes(30, 20, 1)
    index = bt.TableIndex(database, n_tables=4, bits_per_table=5)
    whole = index.candidates(queries, n_threads=1)
    monkeypatch.setattr("bittern.index.hash_tables.BLOCK", 50)
    divided = index.candidates(queries, n_threads=3)
    assert divided.to_lists() == whole.to_lists()
    assert index.search(queries, 3, n_threads=3).to_lists() == [h[:3] for h in whole.to_lists()]


def test_its_hits_are_what_the_table_profile_counts():
    database, queries = some_codes(200, 20, 0), some_codes(30, 20, 1)
    relevance = bt.Relevance.from_classes(np.arange(30) % 4, np.arange(200) % 5)
    setting = {"n_tables": 3, "bits_per_table": 6, "probe": 1}
    hits = bt.TableIndex(database, **setting).candidates(queries).profile(relevance)
    profile = bt.table_profile(queries, database, relevance, **setting)
    np.testing.assert_array_equal(hits.total.sum(axis=1), profile.retrieved)
    np.testing.assert_array_equal(hits.relevant.sum(axis=1), profile.true_positives)
    np.testing.assert_array_equal(hits.unretrieved[:, 1:].sum(axis=1), profile.false_negatives)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("setting", [SETTINGS[1], SETTINGS[3]])
def test_an_index_comes_back_from_its_file(setting, mmap, tmp_path):
    database, queries = some_codes(120, 40, 0), some_codes(9, 40, 1)
    index = bt.TableIndex(database[:100], **setting)
    index.search(queries, 1)
    index.add(database[100:])  # two parts before, one in the file
    index.remove([3, 5])
    index.save(tmp_path / "tables.npz")
    for kind in (TableIndex, Index):
        loaded = kind.load(tmp_path / "tables.npz", mmap=mmap)
        assert isinstance(loaded, TableIndex) and len(loaded._parts) == 1
        assert loaded.tables == index.tables
        assert loaded.candidates(queries).to_lists() == index.candidates(queries).to_lists()
        loaded.add(queries)
        assert (loaded.search(queries, 1).distances == 0).all()


def test_an_empty_index_comes_back_too(tmp_path):
    index = bt.TableIndex(n_tables=2, bits_per_table=4, probe=1)
    index.save(tmp_path / "empty.npz")
    loaded = TableIndex.load(tmp_path / "empty.npz")
    assert len(loaded) == 0
    with pytest.raises(InputError, match="has no codes yet"):
        _ = loaded.certain_radius
    loaded.add(some_codes(5, 8, 0))
    assert loaded.certain_radius == 3


@pytest.mark.parametrize("name", ["ids", "directory", "keys", "bits"])
def test_tables_that_do_not_fit_the_codes_are_refused(name, tmp_path, monkeypatch):
    index = bt.TableIndex(some_codes(50, 40, 0), n_tables=3, bits_per_table=12)
    arrays = index._arrays()
    assert arrays["keys"].size
    arrays[name] = arrays[name][:, :-1]
    monkeypatch.setattr(TableIndex, "_arrays", lambda self: arrays)
    index.save(tmp_path / "damaged.npz")
    with pytest.raises(FileError, match=r"damaged\.npz: not a readable index"):
        TableIndex.load(tmp_path / "damaged.npz")


@pytest.mark.parametrize(("name", "place"), [("ids", (1, 7)), ("directory", (0, 3)), ("bits", 0)])
def test_positions_beyond_the_codes_are_refused(name, place, tmp_path, monkeypatch):
    index = bt.TableIndex(some_codes(50, 40, 0), n_tables=3, bits_per_table=12)
    arrays = {key: array.copy() for key, array in index._arrays().items()}
    arrays[name][place] = 2000
    monkeypatch.setattr(TableIndex, "_arrays", lambda self: arrays)
    index.save(tmp_path / "damaged.npz")
    with pytest.raises(FileError, match=r"damaged\.npz: not a readable index"):
        TableIndex.load(tmp_path / "damaged.npz")


def test_settings_that_do_not_fit_the_codes_are_refused_and_nothing_is_added():
    index = bt.TableIndex(n_tables=3, bits_per_table=8)
    with pytest.raises(InputError, match="3 segments of 8 bits do not fit into codes of 20 bits"):
        index.add(some_codes(5, 20, 0))
    assert len(index) == 0
    index.add(some_codes(5, 24, 0))
    with pytest.raises(InputError, match="must have the 24 bits"):
        index.search(some_codes(1, 20, 0), 1)
    with pytest.raises(InputError, match="codes must be a Codes"):
        index.add([[1, 0]])


@pytest.mark.parametrize(
    ("given", "n", "n_bits", "wanted"),
    [
        ({}, 1000, 64, (6, 10)),  # keys of log2(1000) bits, all segments that fit
        ({}, 5, 1, (1, 1)),
        ({}, 1, 40, (40, 1)),
        ({"n_tables": 8}, 1000, 64, (8, 8)),  # so many segments leave 8 bits each
        ({"n_tables": 2}, 1000, 64, (2, 10)),
        ({"bits_per_table": 20}, 1000, 64, (3, 20)),
    ],
)
def test_what_is_not_given_follows_from_the_first_codes(given, n, n_bits, wanted):
    codes = some_codes(n, n_bits, 0, 0.5)
    index = bt.TableIndex(codes, **given)
    assert (index.tables.n_tables, index.tables.bits_per_table) == wanted
    index.add(some_codes(3 * n, n_bits, 1, 0.5))
    assert (index.tables.n_tables, index.tables.bits_per_table) == wanted
    assert index.search(codes[:1], 1).distances.tolist() == [[0]]


def test_codes_that_were_refused_settle_nothing():
    index = bt.TableIndex()
    with pytest.raises(InputError, match="must be distinct"):
        index.add(some_codes(100, 32, 0), ids=np.zeros(100, int))
    index.add(some_codes(100, 16, 0))
    assert index.tables.n_bits == 16
    with pytest.raises(InputError, match="n_tables must be a whole number"):
        bt.TableIndex(some_codes(3, 16, 0), n_tables="four")


def test_codes_of_4096_bits_have_tables_too():
    database = some_codes(60, 4096, 0, 0.5)
    index = bt.TableIndex(database, n_tables=64, bits_per_table=64)
    assert index.search(database[:4], 1).to_lists() == [[(i, 0)] for i in range(4)]
    assert index.certain_radius == 63
