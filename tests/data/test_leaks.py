"""Identical content on both sides of a wall."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from made_sets import dataset
from PIL import Image

from bittern.data import Dataset
from bittern.data.images import ImageFiles
from bittern.data.leaks import find_leaks
from bittern.data.rows import RowView, SparseRows, Texts
from bittern.data.splits import Split
from bittern.errors import InputError


def halves(n, **more):
    """The first third queries, the next database, the last training."""
    third = n // 3
    return Split(
        name="halves",
        n_items=n,
        queries=np.arange(third),
        database=np.arange(third, 2 * third),
        train=np.arange(2 * third, n),
        **more,
    )


def textbook_number(rows, split):
    """Items with an equal item behind a wall, pair by pair."""
    guilty = set()
    for one, other in split.disjoint_pairs:
        for p in split.sets[one]:
            for q in split.sets[other]:
                if np.array_equal(rows[p], rows[q]) and np.any(rows[p]):
                    guilty |= {int(p), int(q)}
    return len(guilty)


small = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 1)), min_size=6, max_size=40)


@given(small, st.sampled_from([np.float32, np.float64, np.int8, np.int64]), st.booleans())
def test_equals_the_comparison_of_all_pairs(points, dtype, is_sparse):
    rows = np.array(points, dtype=dtype)
    split = halves(len(rows))
    given_rows = SparseRows(scipy.sparse.csr_array(rows)) if is_sparse else rows
    report = find_leaks(dataset(rows=given_rows), split)
    assert report.number == textbook_number(rows, split)
    assert report.n_blank == np.sum(~rows.any(axis=1))
    assert report.is_clean == (report.number == 0)


def test_the_report_counts_and_names_the_first():
    rows = np.arange(60, dtype=np.float64).reshape(30, 2) + 1
    rows[12] = rows[13] = rows[3]  # a query that is twice in the database
    ids = np.array([f"image-{i}" for i in range(30)])
    report = find_leaks(dataset(rows=rows, ids=ids), halves(30))
    assert report.number == 3
    (leak,) = report.leaks
    assert (leak.one, leak.other, leak.n_one, leak.n_other) == ("queries", "database", 1, 2)
    assert leak.examples == (("image-3", "image-12"),)
    assert "30 items checked: 3 have a duplicate in a set that should be disjoint" in str(report)
    assert "1 of 10 queries are also among database (2 of 10): image-3 = image-12" in str(report)
    assert repr(report) == str(report) and repr(report.leaks[0]) == str(report.leaks[0])


def test_sets_that_overlap_on_purpose_are_no_leak():
    rows = np.arange(1, 31, dtype=np.float32)[:, None]
    split = Split(
        name="seen",
        n_items=30,
        queries=np.arange(10),
        database=np.arange(10, 30),
        train=np.arange(15, 20),
        parts=(("train", "database"),),
    )
    assert find_leaks(dataset(rows=rows), split).is_clean
    rows[12] = rows[17]  # duplicates within the database, one of which trains, are allowed
    assert find_leaks(dataset(rows=rows), split).is_clean
    rows[2] = rows[17]
    report = find_leaks(dataset(rows=rows), split)
    assert {(leak.one, leak.other) for leak in report.leaks} == {
        ("train", "queries"),
        ("queries", "database"),
    }
    assert report.number == 3


def test_minus_zero_is_zero():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])
    assert find_leaks(dataset(rows=rows), halves(3)).number == 2


def test_a_row_is_not_a_row_of_another_length_in_zeros():
    matrix = scipy.sparse.csr_array(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    assert find_leaks(dataset(rows=SparseRows(matrix)), halves(3)).is_clean


def test_stored_zeros_and_order_of_columns_do_not_matter():
    data = np.array([1.0, 2.0, 2.0, 1.0, 0.0, 5.0])
    columns = np.array([0, 2, 2, 0, 1, 1])
    matrix = scipy.sparse.csr_array((data, columns, [0, 2, 5, 6]), shape=(3, 3))
    assert find_leaks(dataset(rows=SparseRows(matrix)), halves(3)).number == 2


@pytest.fixture
def made_images(tmp_path):
    """Nine files of different images and sizes; the third also as a file of another kind."""
    rng = np.random.default_rng(1)
    paths = []
    for i in range(9):
        pixels = rng.integers(0, 256, (4 + i, 5, 3), dtype=np.uint8)
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(pixels).save(paths[-1])
    twin = tmp_path / "4.bmp"
    Image.open(paths[2]).save(twin)
    return paths, twin


def test_images_are_compared_by_their_pixels(made_images):
    paths, twin = made_images
    assert find_leaks(dataset(rows=ImageFiles(paths)), halves(9)).is_clean
    paths[4] = twin
    report = find_leaks(dataset(rows=ImageFiles(paths)), halves(9))
    assert report.number == 2
    assert report.leaks[0].examples == (("2", "4"),)
    view = RowView(ImageFiles(paths), np.array([8, 2, 1, 0, 4, 3, 5, 6, 7]))
    assert find_leaks(dataset(rows=view), halves(9)).leaks[0].examples == (("1", "4"),)


def test_arrays_of_images_and_texts():
    images = np.arange(6 * 12, dtype=np.uint8).reshape(6, 2, 2, 3)
    images[5] = images[0]
    texts = Texts(["a bird", "", "a bittern", "a bird", " ", "reeds"])
    both = Dataset(name="both", modalities={"image": images, "text": texts})
    report = find_leaks(both, halves(6))
    assert [leak.modality for leak in report.leaks] == ["image", "text"]
    assert report.number == 3  # items 0 and 5 by image, 0 and 3 by text
    assert report.n_blank == 2
    assert find_leaks(both, halves(6), "text").number == 2


def test_a_black_image_is_an_image():
    images = np.zeros((3, 2, 2, 3), dtype=np.uint8)
    assert find_leaks(dataset(rows=images), halves(3)).number == 3


def test_digests_decide_where_checksums_are_equal(monkeypatch):
    from bittern.data import leaks

    monkeypatch.setattr(
        leaks,
        "_checksums",
        lambda rows: (np.zeros(len(rows), np.uint64), np.zeros(len(rows), bool)),
    )
    rows = np.arange(1, 31, dtype=np.float32)[:, None]
    rows[20] = rows[4]
    assert find_leaks(dataset(rows=rows), halves(30)).number == 2


def test_rows_are_read_in_blocks():
    class Counting:
        shape = (300, 1 << 16)
        most = 0

        def __len__(self):
            return 300

        def __getitem__(self, rows):
            Counting.most = max(Counting.most, len(rows))
            return np.repeat(np.asarray(rows, np.float64)[:, None] + 1, 4, axis=1)

    assert find_leaks(dataset(rows=Counting()), halves(300)).is_clean
    assert 0 < Counting.most <= 32  # 16 MiB of rows of half a MiB


def test_a_dataset_of_another_size_is_refused():
    with pytest.raises(InputError, match=r"items of dataset and split must agree, got 4 and 3"):
        halves(3).check(dataset(4))
