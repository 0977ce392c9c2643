"""Datasets of two modalities, of which an item may lack one."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA as TheirPCA

from bittern.data import Dataset
from bittern.data.describe import statistics
from bittern.data.images import ImageFiles
from bittern.data.prepare import prepared
from bittern.data.rows import SparseRows, Texts
from bittern.data.splits import Split
from bittern.errors import InputError, UnknownNameError
from bittern.experiments.run_data import RunData
from bittern.features.text import BagOfWords

N = 8
HAS_TEXT = np.array([1, 1, 0, 1, 1, 1, 0, 1], bool)
WORDS = ["red cat", "cat", "", "blue dog", "dog", "red", "", "blue"]


def pairs(**changes):
    """Eight images, of which two have no text."""
    rng = np.random.default_rng(0)
    known = {
        "name": "made",
        "modalities": {"image": rng.standard_normal((N, 3)), "text": Texts(WORDS)},
        "present": {"text": HAS_TEXT},
    }
    return Dataset(**{**known, **changes})


def with_rows(rows):
    return pairs(modalities={"image": np.ones((N, 2)), "text": rows})


def test_a_dataset_knows_what_its_items_lack():
    made = pairs()
    assert made.has("text").tolist() == HAS_TEXT.tolist()
    assert made.has("image").all() and len(made.has("image")) == N
    assert made.complete().tolist() == made.complete("text").tolist() == [0, 1, 3, 4, 5, 7]
    assert made.complete("image").tolist() == list(range(N))


def test_taken_items_take_it_along():
    taken = pairs().take([2, 1, 6])
    assert taken.has("text").tolist() == [False, True, False]
    assert taken.take([1]).complete().tolist() == [0]


def test_statistics_count_the_items_that_lack_a_modality():
    assert statistics(pairs()).descriptors == {
        "image": "3 float64",
        "text": "Texts; 2 items lack it",
    }


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"present": {"sound": HAS_TEXT}}, UnknownNameError, "no modality is called 'sound'"),
        ({"present": {"text": HAS_TEXT[:3]}}, InputError, "rows differ: .* present 'text' 3"),
        ({"present": {"text": HAS_TEXT.astype(int)}}, InputError, "one boolean per item, got int"),
        (
            {"present": {"text": HAS_TEXT, "image": np.arange(N) != 6}},
            InputError,
            "item 6 lacks every modality",
        ),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(changes, error, says):
    with pytest.raises(error, match=says):
        pairs(**changes)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("memory", [1, 1 << 20])  # row by row, and all at once
def test_steps_learn_only_from_rows_that_are_there(is_sparse, memory):
    rng = np.random.default_rng(1)
    rows = rng.random((N, 4)) * HAS_TEXT[:, None]
    made = with_rows(SparseRows(scipy.sparse.csr_array(rows)) if is_sparse else rows)
    train = np.arange(6)
    done = prepared(made, train, ["pca2"], "text", memory=memory)
    there = rows[[0, 1, 3, 4, 5]]
    theirs = TheirPCA(2, svd_solver="full").fit(there)
    signs = np.sign(theirs.components_ @ done["text"].pipeline[0].components_.T).diagonal()
    expected = np.where(HAS_TEXT[:, None], theirs.transform(rows) * signs, 0)
    np.testing.assert_allclose(np.asarray(done["text"]), expected, atol=1e-12)
    np.testing.assert_allclose(done["text"][[6, 2]], 0)  # only rows that are lacking
    np.testing.assert_allclose(done.take([7, 2])["text"][:], expected[[7, 2]], atol=1e-12)
    assert "fitted on 5 training rows" in done.notes[-1]


def test_rows_that_stay_sparse_have_empty_rows_where_they_lack():
    rows = scipy.sparse.csr_array(np.eye(N)[:, :3] + np.arange(3) * HAS_TEXT[:, None])
    done = prepared(with_rows(SparseRows(rows)), range(N), ["l2"], "text")["text"][:]
    assert scipy.sparse.issparse(done)
    np.testing.assert_allclose(np.linalg.norm(done.toarray(), axis=1), HAS_TEXT)


def test_a_text_feature_is_a_step_too():
    done = prepared(pairs(), [0, 1, 2, 3], [BagOfWords()], "text")["text"]
    bag = done.pipeline[0]
    assert bag.vocabulary_.tolist() == ["blue", "cat", "dog", "red"]
    np.testing.assert_allclose(bag.idf_, np.log([3, 1.5, 3, 3]))  # of the three texts there
    np.testing.assert_allclose(np.asarray(done).sum(axis=1), HAS_TEXT, rtol=1e-6)


def test_an_image_that_is_lacking_is_never_read(tmp_path):
    from PIL import Image

    paths = [str(tmp_path / f"{i}.png") for i in range(N)]
    has_image = np.arange(N) % 3 > 0
    for i in np.flatnonzero(has_image):
        Image.new("RGB", (2, 2), (int(i) * 9, 0, 0)).save(paths[i])
    made = Dataset(
        name="made",
        modalities={"text": Texts(list("abcdefgh")), "image": ImageFiles(paths)},
        present={"image": has_image},
    )
    split = Split(
        name="made",
        n_items=N,
        train=np.arange(4),
        queries=np.arange(4, 6),
        database=np.arange(6, 8),
    )
    report = split.check(made)
    assert report.is_clean and report.n_blank == 3


def test_without_a_training_row_there_is_nothing_to_learn():
    with pytest.raises(InputError, match="no training row has the modality 'text'"):
        prepared(pairs(), [2, 6], ["l2"], "text")


def test_an_experiment_on_items_that_lack_its_modality_is_refused():
    made = with_rows(np.random.default_rng(0).random((N, 2)))
    split = Split(
        name="made",
        n_items=N,
        train=np.array([0, 1]),
        queries=np.array([3]),
        database=np.array([2, 4]),
    )
    run = RunData(made, made, split, "text")
    assert run.train.vectors.shape == (2, 2)
    with pytest.raises(InputError, match=r"1 items of database lack the modality 'text'"):
        run.database  # noqa: B018
