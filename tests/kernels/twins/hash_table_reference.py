"""Twins of ``bittern.kernels.hash_tables``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def gather_keys(words: Array, pieces: Array, keys: Array) -> None:
    """Twin of ``hash_tables.gather_keys``."""
    keys[:] = 0
    for word, right, mask, left in pieces:
        keys |= ((words[:, word] >> right & mask) << left).astype(keys.dtype)


def sort_keys(keys: Array, n_bits: int, ids: Array, spare_keys: Array, spare_ids: Array) -> None:
    """Twin of ``hash_tables.sort_keys``."""
    ids[:] = np.argsort(keys, kind="stable")
    keys[:] = keys[ids]


def count_prefixes(keys: Array, shift: Any, directory: Array) -> None:
    """Twin of ``hash_tables.count_prefixes``."""
    prefixes = (keys.astype(np.uint64) >> shift).astype(np.intp)
    directory[1:] = np.cumsum(np.bincount(prefixes, minlength=len(directory) - 1))


def measure_buckets(
    query_keys: Array, probes: Array, shift: Any, directory: Array, keys: Array, sizes: Array
) -> None:
    """Twin of ``hash_tables.measure_buckets``."""
    for q, _, start, stop, _ in _ranges(query_keys, probes, shift, directory, keys):
        sizes[q] += stop - start


def collect(
    query_keys: Array,
    probes: Array,
    shift: Any,
    directory: Array,
    keys: Array,
    ids: Array,
    excluded: Array,
    seen: Array,
    offsets: Array,
    found: Array,
    examined: Array,
    occupied: Array,
) -> bool:
    """Twin of ``hash_tables.collect``, which stops at the first item that does not exist."""
    union: list[list[int]] = [[] for _ in examined]
    for q, t, start, stop, look_up in _ranges(query_keys, probes, shift, directory, keys):
        if (ids[t, start:stop] >= ids.shape[1]).any():
            return False
        items = [int(item) for item in ids[t, start:stop] if item != excluded[q]]
        examined[q] += len(items)
        occupied[q, look_up // 8] |= np.uint8(bool(items) << look_up % 8)
        union[q] += items
    for q, items in enumerate(union):
        once = list(dict.fromkeys(items))
        offsets[q + 1] = offsets[q] + len(once)
        found[offsets[q] : offsets[q + 1]] = once
    return True


def measure_found(
    queries: Array, words: Array, offsets: Array, found: Array, distances: Array
) -> None:
    """Twin of ``hash_tables.measure_found``."""
    q = np.repeat(np.arange(len(queries)), np.diff(offsets))
    distances[:] = np.bitwise_count(queries[q] ^ words[found[: len(q)]]).sum(axis=1)


def _ranges(query_keys: Array, probes: Array, shift: Any, directory: Array, keys: Array) -> Any:
    """Query, table, start, stop and number of every look-up."""
    for q in range(query_keys.shape[1]):
        for look_up in range(len(query_keys) * len(probes)):
            t, p = divmod(look_up, len(probes))
            key = np.uint64(query_keys[t, q]) ^ np.uint64(probes[p])
            start, stop = (int(directory[t, int(key >> shift) + j]) for j in (0, 1))
            if keys.shape[1]:
                inside = np.flatnonzero(keys[t, start:stop] == key)
                start, stop = start + int(inside[0] if len(inside) else 0), stop
                stop = start + len(inside)
            yield q, t, start, stop, look_up


def count_collisions(
    query_keys: Array,
    item_keys: Array,
    probe: int,
    kinds: Array,
    bins: Array,
    counts: Array,
    examined: Array,
) -> None:
    """Twin of ``hash_tables.count_collisions``."""
    hit = np.bitwise_count(query_keys[:, :, None] ^ item_keys[:, None]) <= probe
    first = np.where(hit.any(axis=0), hit.argmax(axis=0), len(hit))
    rows = np.broadcast_to(np.arange(len(kinds))[:, None], kinds.shape)
    np.add.at(counts, (rows, kinds, bins[first]), 1)
    for t, of_table in enumerate(hit):
        examined[:, bins[t]] += (of_table & (kinds < 2)).sum(axis=1)
