"""Rows in blobs, one for each class, and what can be said of them as ``y``."""

import numpy as np

import bittern as bt


def blobs(n=120, dim=6, n_classes=3, gap=3.0, random_state=0):
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, n_classes, n)
    return rng.standard_normal((n, dim)) + gap * rng.standard_normal((n_classes, dim))[y], y


X, Y = blobs()
TAGS = np.eye(3, dtype=int)[Y] | np.eye(3, dtype=int)[Y[::-1]]
KINDS = {
    "labels": Y,
    "tags": TAGS,
    "Relevance": bt.Relevance.from_tags(TAGS, TAGS, graded=True),
}
