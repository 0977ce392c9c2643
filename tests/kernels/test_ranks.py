import numpy as np
import pytest
from twins import rank_reference

from bittern.kernels import ranks


@pytest.mark.parametrize("n_words", [1, 2])
@pytest.mark.parametrize("n_levels", [2, 4])
def test_the_kernel_equals_its_twin(n_words, n_levels):
    rng = np.random.default_rng(n_words + n_levels)
    n, n_bits = 60, 64 * n_words
    words = rng.integers(0, 8, (n + 7, n_words)).astype(np.uint64)  # three bits vary: many ties
    queries, database = words[:7], words[7:]
    levels = rng.integers(0, n_levels, (7, n))
    levels[3] = 0  # nothing relevant
    excluded = np.where(np.arange(7) % 2, rng.integers(0, n, 7), -1)
    distance = np.bitwise_count(queries[:, None] ^ database).sum(axis=2, dtype=np.intp)
    total, relevant = np.zeros((2, 7, n_bits + 1), np.int64)
    for q in range(7):
        items = np.arange(n) != excluded[q]
        np.add.at(total[q], distance[q, items], 1)
        np.add.at(relevant[q], distance[q, items & (levels[q] > 0)], 1)

    def filled(module):
        state = [np.cumsum(side, axis=1) - side for side in (total, relevant)]
        out = np.zeros((2, 7, relevant.sum(axis=1).max()), np.int64)
        module.rank_relevant(queries, database, levels, excluded, *state, *out)
        return [*state, *out]

    for found, wanted in zip(filled(ranks), filled(rank_reference), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(filled(ranks)[2])) > 40  # not vacuous
