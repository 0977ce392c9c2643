"""The kernels of hash tables against their twins in NumPy."""

import numpy as np
import pytest
from twins import hash_table_reference

from bittern.kernels import hash_tables

MODULES = (hash_tables, hash_table_reference)


def random_keys(rng, n, n_bits):
    """Keys with many repetitions, and the highest bit in use."""
    pool = rng.integers(0, 2**n_bits, max(1, n // 3), dtype=np.uint64, endpoint=False)
    pool[0] |= np.uint64(1 << (n_bits - 1))
    keys = rng.choice(pool, n)
    return keys.astype(np.uint32 if n_bits <= 32 else np.uint64)


@pytest.mark.parametrize(("key_type", "width"), [(np.uint32, 20), (np.uint64, 63)])
def test_keys_are_gathered_as_by_numpy(key_type, width):
    rng = np.random.default_rng(width)
    words = rng.integers(0, 2**64, (40, 3), dtype=np.uint64)
    pieces = np.array([[0, 60, 15, 0], [1, 0, 31, 4], [2, 63, 1, width - 1]], np.uint64)
    ours, theirs = np.ones((2, 40), key_type)  # overwritten, not added to
    hash_tables.gather_keys(words, pieces, ours)
    hash_table_reference.gather_keys(words, pieces, theirs)
    by_hand = [
        (a >> 60) | ((b & 31) << 4) | ((c >> 63) << (width - 1)) for a, b, c in words.tolist()
    ]
    assert ours.tolist() == theirs.tolist() == by_hand


@pytest.mark.parametrize("n_bits", [1, 11, 12, 32, 33, 64])
@pytest.mark.parametrize("n", [1, 2, 300])
def test_keys_are_sorted_as_by_numpy(n, n_bits):
    keys = random_keys(np.random.default_rng(n + n_bits), n, n_bits)
    results = []
    for module in MODULES:
        own, ids = keys.copy(), np.empty(n, np.uint32)
        module.sort_keys(own, n_bits, ids, np.empty_like(own), np.empty(n, np.uint32))
        results.append((own.tolist(), ids.tolist()))
    assert results[0] == results[1]
    pairs = sorted((key, i) for i, key in enumerate(keys.tolist()))
    assert results[0] == ([key for key, _ in pairs], [i for _, i in pairs])


def some_tables(n_bits, shift, random_state):
    """Two tables of 80 items, sorted, with the keys of three queries."""
    rng = np.random.default_rng(random_state)
    keys = np.stack([random_keys(rng, 80, n_bits) for _ in range(2)])
    query_keys = np.stack([rng.choice(table, 3) for table in keys])
    query_keys[:, 2] ^= query_keys.dtype.type(1)
    order = np.argsort(keys, axis=1, kind="stable")
    keys = np.take_along_axis(keys, order, axis=1)
    directories = np.zeros((2, 2, (1 << (n_bits - int(shift))) + 1), np.uint32)
    for module, directory in zip(MODULES, directories, strict=True):
        for t in range(2):
            module.count_prefixes(keys[t], shift, directory[t])
    np.testing.assert_array_equal(*directories)
    assert (directories[:, :, -1] == 80).all()
    kept = keys if shift else keys[:, :0].copy()
    return query_keys, directories[0], kept, order.astype(np.uint32)


@pytest.mark.parametrize(("n_bits", "shift"), [(6, 0), (12, 6), (32, 26), (64, 58)])
def test_look_ups_find_as_by_numpy(n_bits, shift):
    shift = np.uint64(shift)
    query_keys, directory, keys, ids = some_tables(n_bits, shift, n_bits)
    probes = np.array([0, 1, 2], query_keys.dtype)
    excluded = np.array([-1, ids[0, 0], 7])
    results = []
    for module in MODULES:
        sizes, examined = np.zeros((2, 3), np.int64)
        module.measure_buckets(query_keys, probes, shift, directory, keys, sizes)
        seen, offsets = np.zeros(2, np.uint64), np.zeros(4, np.int64)
        found, occupied = np.zeros(sizes.sum(), np.uint32), np.zeros((3, 1), np.uint8)
        is_sound = module.collect(
            query_keys,
            probes,
            shift,
            directory,
            keys,
            ids,
            excluded,
            seen,
            offsets,
            found,
            examined,
            occupied,
        )
        assert is_sound and not seen.any()
        found[offsets[-1] :] = 0
        results.append([a.tolist() for a in (sizes, offsets, found, examined, occupied)])
    assert results[0] == results[1]
    assert min(results[0][0]) > 0  # every query found something


def test_distances_are_measured_as_by_numpy():
    rng = np.random.default_rng(0)
    queries, words = (rng.integers(0, 2**64, (n, 2), dtype=np.uint64) for n in (3, 20))
    offsets, found = np.array([0, 4, 4, 9]), rng.integers(0, 20, 9).astype(np.uint32)
    ours, theirs = np.zeros((2, 9), np.uint64)
    hash_tables.measure_found(queries, words, offsets, found, ours)
    hash_table_reference.measure_found(queries, words, offsets, found, theirs)
    assert ours.tolist() == theirs.tolist()
    by_hand = sum(
        (int(a) ^ int(b)).bit_count() for a, b in zip(queries[2], words[found[8]], strict=True)
    )
    assert ours[8] == by_hand > 0


@pytest.mark.parametrize("key_type", [np.uint32, np.uint64])
@pytest.mark.parametrize("probe", [0, 2])
def test_first_collisions_are_counted_as_by_numpy(key_type, probe):
    rng = np.random.default_rng(probe)
    query_keys, item_keys = (rng.integers(0, 12, (5, n)).astype(key_type) for n in (4, 1100))
    kinds = rng.integers(0, 3, (4, 1100)).astype(np.uint8)
    bins = np.array([0, 0, 1, 2, 2, 3])
    results = []
    for module in MODULES:
        counts, examined = np.full((4, 3, 4), 5), np.full((4, 4), 7)  # added to, not overwritten
        module.count_collisions(query_keys, item_keys, probe, kinds, bins, counts, examined)
        results.append((counts.tolist(), examined.tolist()))
    assert results[0] == results[1]
    assert np.sum(results[0][0]) == 4 * 1100 + 4 * 3 * 4 * 5
