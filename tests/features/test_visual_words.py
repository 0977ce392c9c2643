"""Visual words against brute force, and what may not change them."""

import sys

import cv2
import faiss
import numpy as np
import pytest

import bittern as bt
from bittern.features.visual_words import VisualWords

RNG = np.random.default_rng(0)


def blobs(height=90, width=120, n=60):
    """An image of many ellipses, which have key points."""
    image = np.full((height, width, 3), 128, np.uint8)
    for _ in range(n):
        centre = int(RNG.integers(width)), int(RNG.integers(height))
        axes = tuple(int(a) for a in RNG.integers(2, 12, 2))
        colour = tuple(int(c) for c in RNG.integers(0, 256, 3))
        cv2.ellipse(image, centre, axes, float(RNG.integers(180)), 0, 360, colour, -1)
    return image


IMAGES = [blobs() for _ in range(6)]
FLAT = np.full((50, 60, 3), 90, np.uint8)


def sift(image):
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    return cv2.SIFT_create().detectAndCompute(grey, None)[1].astype(np.float64)


def row_by_hand(descriptors, words, assignment, norm):
    row = np.zeros(len(words))
    for d in descriptors:
        squares = ((words.astype(np.float64) - d) ** 2).sum(axis=1)
        chosen = np.argsort(squares)[: 3 if assignment == "soft" else 1]
        weights = np.exp(-squares[chosen] / (2 * 6250))
        row[chosen] += weights / weights.sum()
    lengths = {"l1": row.sum(), "l2": np.sqrt((row**2).sum()), "none": 1}
    return row / lengths[norm]


@pytest.mark.parametrize("norm", ["l1", "l2", "none"])
@pytest.mark.parametrize("assignment", ["hard", "soft"])
def test_rows_are_what_brute_force_counts(assignment, norm):
    feature = VisualWords(20, assignment=assignment, normalise=norm).fit(IMAGES)
    rows = feature.transform(IMAGES[:3])
    assert rows.dtype == np.float32 and rows.shape == (3, 20)
    for row, image in zip(rows, IMAGES, strict=False):
        expected = row_by_hand(sift(image), feature.words_, assignment, norm)
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-6)
        assert np.count_nonzero(expected) > 5


def test_soft_counts_are_shared_between_words():
    hard = VisualWords(20, normalise="none").fit(IMAGES).transform(IMAGES)
    soft = VisualWords(20, normalise="none", assignment="soft").fit(IMAGES).transform(IMAGES)
    np.testing.assert_array_equal(hard, hard.round())
    assert (soft != soft.round()).any()
    np.testing.assert_allclose(soft.sum(axis=1), hard.sum(axis=1), rtol=1e-5)


def test_root_takes_square_roots_of_shares():
    feature = VisualWords(20, root=True).fit(IMAGES)
    descriptors = sift(IMAGES[0])
    descriptors = 512 * np.sqrt(descriptors / descriptors.sum(axis=1)[:, None])
    np.testing.assert_allclose((descriptors**2).sum(axis=1), 512**2)
    expected = row_by_hand(descriptors, feature.words_, "hard", "l1")
    np.testing.assert_allclose(feature.transform(IMAGES[:1])[0], expected, atol=1e-6)
    plain = VisualWords(20).fit(IMAGES)
    assert not np.allclose(feature.words_, plain.words_)


def test_words_are_the_means_of_what_is_nearest_to_them():
    """Which k-means ends with, if it has rounds enough; few words on few points do."""
    words = VisualWords(4).fit(IMAGES).words_
    assert words.shape == (4, 128) and words.dtype == np.float32
    descriptors = np.concatenate([sift(image) for image in IMAGES])
    nearest = ((descriptors[:, None] - words) ** 2).sum(axis=2).argmin(axis=1)
    means = [descriptors[nearest == i].mean(axis=0) for i in range(4)]
    assert np.abs(means - words).max() < 3  # of values up to 255


def test_the_same_random_state_gives_the_same_words_on_any_number_of_threads():
    def learn(threads, random_state):
        ours, theirs = cv2.getNumThreads(), faiss.omp_get_max_threads()
        cv2.setNumThreads(threads)
        faiss.omp_set_num_threads(threads)
        try:
            feature = VisualWords(30, random_state=random_state, n_descriptors=300).fit(IMAGES)
            rows = feature.transform(IMAGES)
            assert faiss.omp_get_max_threads() == threads  # as it was found
        finally:
            cv2.setNumThreads(ours)
            faiss.omp_set_num_threads(theirs)
        return feature.words_, rows

    words, rows = learn(1, 5)
    for threads in (1, 2, 4):
        again, rows_again = learn(threads, 5)
        np.testing.assert_array_equal(again, words)
        np.testing.assert_array_equal(rows_again, rows)
    assert not np.array_equal(learn(1, 6)[0], words)


@pytest.mark.parametrize(("kind", "method"), [(faiss, "knn"), (faiss.Kmeans, "train")])
def test_faiss_works_on_one_thread(monkeypatch, kind, method):
    """Its sums differ in the last digits else, though hardly on data as small as here."""
    seen, real = [], getattr(kind, method)

    def watched(*args):
        seen.append(faiss.omp_get_max_threads())
        return real(*args)

    monkeypatch.setattr(kind, method, watched)
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        VisualWords(5).fit(IMAGES[:1]).transform(IMAGES[:1])
    finally:
        faiss.omp_set_num_threads(before)
    assert seen == [1]


def test_words_are_learned_from_a_bounded_sample_of_all_images():
    feature = VisualWords(8, n_descriptors=8).fit(IMAGES)  # as many words as descriptors
    everything = np.concatenate([sift(image) for image in IMAGES])
    owners = np.repeat(np.arange(6), [len(sift(image)) for image in IMAGES])
    distances = ((feature.words_[:, None] - everything) ** 2).sum(axis=2)
    np.testing.assert_array_equal(distances.min(axis=1), 0)
    assert len(set(owners[distances.argmin(axis=1)])) >= 4  # at most two of an image


@pytest.mark.parametrize("assignment", ["hard", "soft"])
@pytest.mark.parametrize("norm", ["l1", "l2", "none"])
@pytest.mark.parametrize("dense", [None, 8])
def test_images_without_anything_to_describe_have_rows_of_zeros(assignment, norm, dense):
    feature = VisualWords(5, assignment=assignment, normalise=norm, dense=dense).fit(IMAGES[:2])
    rows = feature.transform([FLAT, np.zeros((1, 1), np.uint8), IMAGES[0], FLAT])
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows.any(axis=1), [False, False, True, False])


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 90), (90, 1), (3, 5), (9, 9)])
@pytest.mark.parametrize("dense", [None, 4])
def test_tiny_images_work(shape, dense):
    feature = VisualWords(5, dense=dense).fit(IMAGES[:2])
    rows = feature.transform([RNG.integers(0, 256, shape, dtype=np.uint8)])
    assert rows.shape == (1, 5) and np.isfinite(rows).all()


def test_large_images_are_scaled_down_to_the_longest_side_allowed():
    large = cv2.resize(IMAGES[0], (480, 360), interpolation=cv2.INTER_NEAREST)
    feature = VisualWords(10, normalise="none", max_side=120).fit(IMAGES)
    rows = feature.transform([large, IMAGES[0]])
    np.testing.assert_array_equal(rows[0], rows[1])  # the mean of equal pixels is the pixel
    kept = VisualWords(10, normalise="none", max_side=480).fit(IMAGES)
    assert not np.array_equal(kept.transform([large]), kept.transform([IMAGES[0]]))


def test_a_dense_grid_has_a_patch_for_each_step():
    feature = VisualWords(10, dense=10, normalise="none").fit(IMAGES)
    noise = RNG.integers(0, 256, (70, 100, 3), dtype=np.uint8)  # no patch is flat
    rows = feature.transform([noise, noise[:35], noise[:, :9]])
    np.testing.assert_array_equal(rows.sum(axis=1), [7 * 10, 3 * 10, 7 * 1])


def test_a_dense_patch_is_two_steps_wide():
    feature = VisualWords(10, dense=16)
    before = RNG.integers(0, 256, (16, 80, 3), dtype=np.uint8)  # patches centred at 8, 24, …, 72
    after = before.copy()
    after[:, 64:] = 255 - after[:, 64:] // 2
    changed = (feature._descriptors(before) != feature._descriptors(after)).any(axis=1)
    assert changed.tolist() == [False, False, False, True, True]


def test_transform_before_fit_is_refused():
    with pytest.raises(bt.NotFittedError, match=r"^VisualWords: call fit\(\) before transform"):
        VisualWords().transform(IMAGES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_words": 0}, "n_words must be at least 1"),
        ({"n_words": 10_000}, "n_words must be at most the number of descriptors"),
        ({"assignment": "firm"}, "assignment must be one of 'hard', 'soft'"),
        ({"normalise": None}, "normalise must be one of 'l1', 'l2', 'none'"),
        ({"dense": 1}, "dense must be at least 2"),
        ({"max_side": 0}, "max_side must be at least 1"),
        ({"n_descriptors": 1.5}, "n_descriptors must be a whole number"),
        ({"random_state": -1}, "random_state must be at least 0"),
    ],
)
def test_bad_parameters_are_refused(options, words):
    with pytest.raises(bt.InputError, match=f"^VisualWords: {words}"):
        VisualWords(**options).fit(IMAGES)


def test_images_without_key_points_teach_no_words():
    with pytest.raises(bt.InputError, match="got 3 and 0; pass more images"):
        VisualWords(3).fit([FLAT])


@pytest.mark.parametrize(
    ("module", "library", "extra"), [("cv2", "OpenCV", "features"), ("faiss", "FAISS", "io")]
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, module, library, extra):
    monkeypatch.setitem(sys.modules, module, None)
    sentence = rf"^VisualWords: needs {library}; pip install 'bittern\[{extra}\]'\.$"
    with pytest.raises(bt.MissingExtraError, match=sentence):
        VisualWords().fit(IMAGES)
