from pathlib import Path

import numpy as np

from bittern.data.readers import digits


def test_digits_need_no_files():
    dataset = digits.SPEC.load(Path("nowhere"))
    assert not digits.SPEC.needs_files
    assert dataset["pixels"].shape == (1797, 64) and dataset["pixels"].dtype == np.float32
    assert dataset["pixels"].min() == 0 and dataset["pixels"].max() == 16
    # As UCI counts the test part of the set.
    assert list(np.bincount(dataset.labels)) == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert dataset.class_names == tuple("0123456789")
