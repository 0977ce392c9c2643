"""Visual words: counts of the kinds of local patches in an image."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_choice, check_count
from bittern.errors import InputError, NotFittedError
from bittern.extras import import_extra, require
from bittern.features.base import ImageArray, ImageFeature, iter_images
from bittern.progress import track

DIM = 128  # numbers of a descriptor
LENGTH = 512  # roughly the Euclidean length of OpenCV's descriptors
NEAREST, VARIANCE = 3, 6250.0  # r and σ² of soft assignment, for descriptors of that length
N_ROUNDS = 20  # of k-means
ASSIGNMENTS = ("hard", "soft")
NORMS = ("l1", "l2", "none")


class VisualWords(ImageFeature):
    r"""Counts of each kind of local patch in an image.

    SIFT [Lowe-2004] finds the key points of an image and describes the patch around each by 128
    numbers d; k-means over such descriptors of the training images gives ``n_words`` words
    :math:`c_1, \ldots, c_n`, kept in ``words_``.  With hard assignment a descriptor adds 1 to the
    word nearest to it [Sivic-Zisserman-2003]; with ``assignment="soft"`` it adds to each word i of
    its r = 3 nearest words

    .. math:: w_i = \frac{\exp(-\|d - c_i\|^2 / 2\sigma^2)}
        {\sum_{j=1}^{r} \exp(-\|d - c_j\|^2 / 2\sigma^2)}, \qquad \sigma^2 = 6250,

    so that it still adds 1 in total [Philbin-Chum-Isard-Sivic-Zisserman-2008].  A row is then
    divided by its sum (``normalise="l1"``), by its Euclidean length (``"l2"``) or not divided
    (``"none"``).  An image without key points, such as one of a single colour, gets a row of zeros.

    ``root=True`` replaces d by :math:`512 \sqrt{d / \|d\|_1}`, so that Euclidean distances become
    Hellinger distances [Arandjelovic-Zisserman-2012].  ``dense=step`` describes upright patches of
    ``2 * step`` × ``2 * step`` pixels, on a grid of that step, instead of key points; patches
    without any gradient are left out.

    Images with a side longer than ``max_side`` pixels are first scaled down to it.  Words are
    learned from at most ``n_descriptors`` descriptors, drawn at random, equally many per image.
    """

    name = "visual-words"

    words_: Float32Array  # (n_words, 128)

    def __init__(
        self,
        n_words: int = 500,
        *,
        assignment: str = "hard",
        normalise: str = "l1",
        root: bool = False,
        dense: int | None = None,
        max_side: int = 512,
        n_descriptors: int = 100_000,
        random_state: int | None = 0,
    ):
        self.n_words = n_words
        self.assignment = assignment
        self.normalise = normalise
        self.root = root
        self.dense = dense
        self.max_side = max_side
        self.n_descriptors = n_descriptors
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the words from the descriptors of training images."""
        self._check()
        rng = np.random.default_rng(self.random_state)
        sample = self._sample(X, rng)
        if len(sample) < self.n_words:
            raise InputError(
                f"{self._title}: n_words must be at most the number of descriptors that the "
                f"images have, got {self.n_words} and {len(sample)}; pass more images."
            )
        self.words_ = _centres(sample, self.n_words, int(rng.integers(1 << 31)))
        return self

    def transform(self, X: Any) -> Float32Array:
        """One row of ``n_words`` numbers for each image."""
        if not hasattr(self, "words_"):
            raise NotFittedError(f"{self._title}: call fit() before transform().")
        return super().transform(X)

    def _check(self) -> None:
        for name in ("n_words", "max_side", "n_descriptors"):
            check_count(getattr(self, name), f"{self._title}: {name}")
        check_choice(self.assignment, f"{self._title}: assignment", ASSIGNMENTS)
        check_choice(self.normalise, f"{self._title}: normalise", NORMS)
        if self.dense is not None:
            check_count(self.dense, f"{self._title}: dense", 2)
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)
        require({self._title: self.needs_modules})

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """OpenCV for descriptors, and FAISS for words."""
        return ("cv2", "faiss")

    def _describe(self, image: ImageArray) -> Float32Array:
        descriptors = self._descriptors(image)
        nearest = 1 if self.assignment == "hard" else min(NEAREST, len(self.words_))
        counts = np.zeros(len(self.words_))
        if len(descriptors):
            squares, found = _nearest(descriptors, self.words_, nearest)
            np.add.at(counts, found, _weights(squares))
        return _normalised(counts, self.normalise)

    def _descriptors(self, image: ImageArray) -> Float32Array:
        """The descriptors ``(n, 128)`` of an image, without all-zero ones."""
        grey = _grey(image, self.max_side)
        found = _at_key_points(grey) if self.dense is None else _on_grid(grey, self.dense)
        found = found[found.any(axis=1)]
        return _root(found) if self.root else found

    def _sample(self, X: Any, rng: np.random.Generator) -> Float32Array:
        """At most ``n_descriptors`` of all images, about equally many per image."""
        share = -(-self.n_descriptors // max(1, len(X)))
        images = track(iter_images(X, self._title), f"{self._title}: learning words", len(X))
        parts = [_some(self._descriptors(image), share, rng) for image in images]
        return _some(np.concatenate(parts), self.n_descriptors, rng)


def _grey(image: ImageArray, max_side: int) -> ImageArray:
    cv2 = _opencv()
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    scale = max_side / max(grey.shape)
    if scale >= 1:
        return grey
    height, width = (max(1, round(scale * length)) for length in grey.shape)
    return cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)


def _at_key_points(grey: ImageArray) -> Float32Array:
    cv2 = _opencv()
    _, found = cv2.SIFT_create().detectAndCompute(grey, None)
    return np.empty((0, DIM), np.float32) if found is None else found


def _on_grid(grey: ImageArray, step: int) -> Float32Array:
    """Descriptors of patches of 2 × 2 steps, in the middle of each step × step of the image."""
    cv2 = _opencv()
    # A patch is 4 × 4 cells and a cell 3/2 of what OpenCV calls a key point's size.
    size = step / 3
    ys, xs = (np.arange(min(step, length) / 2, length, step) for length in grey.shape)
    points = [cv2.KeyPoint(float(x), float(y), size, 0) for y in ys for x in xs]
    return cv2.SIFT_create().compute(grey, points)[1]


def _root(descriptors: Float32Array) -> Float32Array:
    return LENGTH * np.sqrt(descriptors / descriptors.sum(axis=1, keepdims=True))


def _some(rows: Float32Array, most: int, rng: np.random.Generator) -> Float32Array:
    """At most ``most`` of the rows, drawn at random, in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _centres(sample: Float32Array, n_words: int, seed: int) -> Float32Array:
    """Centres ``(n_words, 128)`` of k-means."""
    faiss = _faiss()
    # Use the whole sample, and do not warn about few points per word.
    bounds = {"min_points_per_centroid": 1, "max_points_per_centroid": len(sample)}
    with _one_thread():
        means = faiss.Kmeans(DIM, n_words, niter=N_ROUNDS, seed=seed, **bounds)
        means.train(np.ascontiguousarray(sample))
    return means.centroids


def _nearest(
    descriptors: Float32Array, words: Float32Array, k: int
) -> tuple[Float32Array, NDArray[np.int64]]:
    """Squared distances and numbers of the k nearest words; each ``(n, k)``."""
    faiss = _faiss()
    with _one_thread():
        return faiss.knn(np.ascontiguousarray(descriptors), words, k)


def _weights(squares: Float32Array) -> NDArray[np.float64]:
    """What a descriptor adds to each of its nearest words; 1 in total."""
    further = squares.astype(np.float64) - squares.min(axis=1, keepdims=True)
    weights = np.exp(-further / (2 * VARIANCE))
    return weights / weights.sum(axis=1, keepdims=True)


def _normalised(counts: NDArray[np.float64], norm: str) -> Float32Array:
    order = {"l1": 1, "l2": 2}.get(norm)
    length = 1.0 if order is None else np.linalg.norm(counts, order)
    return (counts / (length or 1.0)).astype(np.float32)


@contextmanager
def _one_thread() -> Iterator[None]:
    """FAISS on one thread, because rounding depends on the number of threads."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _opencv() -> Any:
    return import_extra("cv2", "VisualWords")


def _faiss() -> Any:
    return import_extra("faiss", "VisualWords")
