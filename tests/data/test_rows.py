import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.data.dataset import Dataset
from bittern.data.rows import DecodedRows, StackedRows
from bittern.errors import InputError, PositionError

PARTS = [np.arange(6).reshape(3, 2), np.zeros((0, 2), int), np.arange(10, 18).reshape(4, 2)]
WHOLE = np.array([[0, 1], [2, 3], [4, 5], [10, 11], [12, 13], [14, 15], [16, 17]])


def test_shape_and_content_are_those_of_the_parts_in_order():
    rows = StackedRows(PARTS)
    assert len(rows) == 7 and rows.shape == (7, 2) and rows.ndim == 2
    np.testing.assert_array_equal(np.asarray(rows), WHOLE)
    assert np.asarray(rows, dtype=np.float32).dtype == np.float32


slices = st.slices(7)
positions = st.lists(st.integers(-7, 6), max_size=9).map(lambda p: np.array(p, int))
masks = st.lists(st.booleans(), min_size=7, max_size=7).map(np.array)


@given(st.one_of(st.integers(-7, 6), slices, positions, masks, positions.map(list)))
def test_indexing_is_that_of_one_array(rows):
    expected = WHOLE[np.array(rows, int)] if isinstance(rows, list) else WHOLE[rows]
    np.testing.assert_array_equal(StackedRows(PARTS)[rows], expected)


@pytest.mark.parametrize("rows", [7, -8, [0, 7], [0.5], np.ones(6, bool)])
def test_rows_that_are_not_there_are_refused(rows):
    with pytest.raises(PositionError, match="rows: "):
        StackedRows(PARTS)[rows]


def test_rows_of_several_shapes_are_refused():
    with pytest.raises(InputError, match="the same shape"):
        StackedRows([np.zeros((1, 2)), np.zeros((1, 3))])


def test_parts_are_not_copied():
    part = np.zeros((5, 3))
    assert np.shares_memory(StackedRows([part])[1:4], part)


def test_decoded_rows_are_decoded_when_read():
    rows = DecodedRows(np.array([[0, 1], [2, 3]], np.uint8), lambda q: q.astype(np.float32) / 2)
    assert rows.shape == (2, 2) and rows.dtype == np.float32
    np.testing.assert_array_equal(rows[1], [1.0, 1.5])
    np.testing.assert_array_equal(np.asarray(rows), [[0, 0.5], [1, 1.5]])
    with pytest.raises(PositionError, match="no such rows among 2"):
        rows[5]


def test_a_dataset_takes_rows_through_them():
    dataset = Dataset(name="d", modalities={"x": StackedRows(PARTS)})
    np.testing.assert_array_equal(dataset.take([6, 0])["x"][:], WHOLE[[6, 0]])
