"""The join of buckets against its NumPy twin, key by key."""

import numpy as np
import pytest
from twins import join_reference

from bittern.kernels import join


@pytest.mark.parametrize("n_words", [1, 2, 4])
@pytest.mark.parametrize(("since", "is_among"), [(0, True), (40, True), (40, False)])
def test_every_key_reports_its_pairs(n_words, since, is_among):
    rng = np.random.default_rng(n_words)
    words = rng.integers(0, 8, (70, n_words), dtype=np.uint64)
    masks = np.array([[3] * n_words, [4] * n_words, [0] * n_words], np.uint64)
    masks[1, 1:] = 0
    n_found = 0
    for key, width in enumerate((3, 1, 0)):
        offsets, rows = np.empty((1 << width) + 1, np.uint32), np.empty(70, np.uint32)
        codes = np.empty_like(words)
        join.fill_buckets(words, masks[key], width, offsets, rows, codes)
        np.testing.assert_array_equal(codes, words[rows])
        room = np.empty((join.largest_bucket(offsets), 3), np.int64)  # so that it is filled often
        cursor, found = np.zeros(2, np.int64), []
        while cursor[0] < len(offsets) - 1:
            n = join.join_buckets(
                codes, rows, offsets, masks, key, 2, since, is_among, cursor, 70, room
            )
            found += map(tuple, room[:n].tolist())
        want = join_reference.pairs_of_key(words, masks, key, 2, since, is_among)
        assert sorted(found) == sorted(want)
        n_found += len(found)
    assert n_found > 10
