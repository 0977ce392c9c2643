"""Hash tables by Python's dictionaries and sets, written from the definition."""

from itertools import combinations


def buckets_of(bits, positions):
    """The table over some positions: from a key to the set of items that have it."""
    table = {}
    for item, code in enumerate(bits.astype(int).tolist()):
        table.setdefault(tuple(code[j] for j in positions), set()).add(item)
    return table


def keys_around(key, radius):
    """All keys that differ in at most ``radius`` bits."""
    for size in range(radius + 1):
        for flipped in combinations(range(len(key)), size):
            yield tuple(1 - bit if j in flipped else bit for j, bit in enumerate(key))


def look_up(query, tables, positions, radius=0, excluded=-1):
    """What one query finds: the union, the items read, the buckets that had something."""
    found, n_read, n_buckets = set(), 0, 0
    for table, chosen in zip(tables, positions, strict=True):
        for key in keys_around(tuple(int(query[j]) for j in chosen), radius):
            bucket = table.get(key, set()) - {excluded}
            found |= bucket
            n_read += len(bucket)
            n_buckets += bool(bucket)
    return found, n_read, n_buckets


def segments(n_tables, width):
    return [list(range(t * width, (t + 1) * width)) for t in range(n_tables)]
