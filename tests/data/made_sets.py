"""Small datasets for the tests of splits, balance and leaks."""

import numpy as np
from hypothesis import strategies as st

from bittern.data import Dataset


def dataset(n=None, *, labels=None, tags=None, official=None, rows=None, ids=None):
    """A dataset whose rows all differ, unless they are given."""
    if n is None:
        given = next(x for x in (labels, tags, rows) if x is not None)
        n = given.shape[0] if hasattr(given, "shape") else len(given)
    labels = None if labels is None else np.asarray(labels, dtype=np.int64)
    n_classes = 0 if labels is None else int(labels.max(initial=-1)) + 1
    return Dataset(
        name="made",
        modalities={"vectors": np.arange(1, n + 1, dtype=np.float32)[:, None]}
        if rows is None
        else {"vectors": rows},
        ids=ids,
        labels=labels,
        class_names=tuple(f"class {c}" for c in range(n_classes)),
        tags=tags,
        tag_names=() if tags is None else tuple(f"tag {t}" for t in range(tags.shape[1])),
        official={} if official is None else official,
    )


def classes(n_classes, per_class):
    """Labels of classes of one size, mixed."""
    return np.tile(np.arange(n_classes), per_class)


def bits_of(number):
    """Twelve tags that depend on a number in a fixed, uneven way."""
    rng = np.random.default_rng(number)
    return rng.random(12) < np.linspace(0.05, 0.6, 12)


def multi_hot(n):
    """Twelve tags, from rare to frequent; some rows have none."""
    return np.array([bits_of(i) for i in range(n)])


labellings = st.lists(st.integers(-1, 4), min_size=20, max_size=120).map(np.array)
taggings = st.integers(20, 120).map(multi_hot)
