"""NumPy twin of the join: the pairs that one key reports."""

import numpy as np


def pairs_of_key(words, masks, key, radius, since, is_among):
    """Rows and distances of the near pairs that agree in this key, and in none before it."""
    found = []
    for second in range(since, len(words)):
        first = np.arange(second if is_among else since)
        different = words[first] ^ words[second]
        distances = np.bitwise_count(different).sum(axis=1, dtype=np.int64)
        agrees = ~(different[:, None] & masks[: key + 1]).any(axis=2)
        chosen = (distances <= radius) & agrees[:, key] & ~agrees[:, :key].any(axis=1)
        found += [(i, second, d) for i, d in zip(first[chosen], distances[chosen], strict=True)]
    return found
