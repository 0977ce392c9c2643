import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bittern import Codes, InputError, PositionError

LENGTHS = [1, 7, 8, 63, 64, 65, 128, 200, 4096]


def random_bits(n, n_bits, random_state=0):
    """Bits with both values, read-only: packing that writes to its input fails."""
    bits = np.random.default_rng(random_state).random((n, n_bits)) < 0.5
    bits[:2] = [[False], [True]]
    bits.flags.writeable = False
    return bits


def slow_words(bits):
    """Bit j of a code adds 2^(j mod 64) to word j div 64; Python integers do not round."""
    n_words = -(-bits.shape[1] // 64)
    words = [[0] * n_words for _ in bits]
    for code, row in zip(words, bits.tolist(), strict=True):
        for j, bit in enumerate(row):
            code[j // 64] += int(bit) << (j % 64)
    return words


def slow_distances(a, b):
    """Number of differing bits of every pair."""
    return (a[:, None] != b[None]).sum(axis=-1)


any_bits = st.tuples(st.integers(0, 6), st.integers(1, 140)).flatmap(lambda s: arrays(bool, s))
some_bits = st.tuples(st.integers(1, 6), st.integers(1, 140)).flatmap(lambda s: arrays(bool, s))


def test_worked_example():
    # Bits 0 and 2 are 1 + 4 = 5; bit 64 is bit 0 of the second word.
    bits = np.zeros((1, 65), bool)
    bits[0, [0, 2, 64]] = True
    assert Codes.from_bits(bits).words.tolist() == [[5, 1]]


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_bits_go_where_the_contract_says(n_bits):
    bits = random_bits(5, n_bits)
    codes = Codes.from_bits(bits)
    assert codes.words.tolist() == slow_words(bits)
    assert codes.words.dtype == np.uint64
    assert codes.words.flags.c_contiguous
    assert codes.n_bits == n_bits
    assert len(codes) == 5


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_bits_survive_the_round_trip(n_bits):
    bits = random_bits(9, n_bits)
    back = Codes.from_bits(bits).to_bits()
    assert back.dtype == bool
    np.testing.assert_array_equal(back, bits)


@given(any_bits)
@settings(deadline=None)
def test_any_bits_survive_every_round_trip(bits):
    codes = Codes.from_bits(bits)
    np.testing.assert_array_equal(codes.to_bits(), bits)
    for order in ("big", "little"):
        assert Codes.from_packed(codes.to_packed(order), codes.n_bits, order) == codes


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, float])
def test_booleans_whole_numbers_and_reals_pack_alike(dtype):
    bits = random_bits(4, 70)
    assert Codes.from_bits(bits.astype(dtype)) == Codes.from_bits(bits)


def test_nested_lists_and_strided_arrays_pack_alike():
    bits = random_bits(4, 70)
    assert Codes.from_bits(bits.tolist()) == Codes.from_bits(bits)
    assert Codes.from_bits(np.asfortranarray(bits)) == Codes.from_bits(bits)
    assert Codes.from_bits(bits[::-2, ::3]) == Codes.from_bits(bits[::-2, ::3].copy())


def test_packing_more_rows_than_a_block_holds():
    bits = random_bits(5000, 512)  # 20 MB of float64, where a block has 16
    assert Codes.from_bits(bits).words[::499].tolist() == slow_words(bits[::499])


@pytest.mark.parametrize(
    "bits",
    [[[1, -1]], [[-1.0, 1.0]], [[0, 2]], [[0.5, 1]], [[np.nan, 1]], [["0", "1"]], [[None, 1]]],
)
def test_what_is_neither_0_nor_1_is_refused_with_the_way_out(bits):
    with pytest.raises(InputError, match=r"booleans or 0/1; for ±1 codes pass codes > 0"):
        Codes.from_bits(bits)


def test_a_wrong_value_after_the_first_block_is_refused():
    bits = np.zeros((5000, 512), np.int8)
    bits[-1, -1] = -1
    with pytest.raises(InputError, match="booleans or 0/1"):
        Codes.from_bits(bits)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("n_bits", LENGTHS)
def test_packed_bytes_are_those_of_packbits(n_bits, order):
    bits = random_bits(6, n_bits)
    packed = np.packbits(bits, axis=1, bitorder=order)
    codes = Codes.from_bits(bits)
    assert codes.to_packed(order).dtype == np.uint8
    np.testing.assert_array_equal(codes.to_packed(order), packed)
    assert Codes.from_packed(packed, n_bits, order) == codes


def test_the_default_order_of_bits_is_that_of_packbits():
    bits = random_bits(6, 24)
    packed = np.packbits(bits, axis=1)
    np.testing.assert_array_equal(Codes.from_bits(bits).to_packed(), packed)
    assert Codes.from_packed(packed) == Codes.from_bits(bits)  # n_bits: all bits of the row
    with pytest.warns(DeprecationWarning, match="now .packed."):
        assert Codes.from_packed(octets=packed) == Codes.from_bits(bits)  # its former name


def test_the_two_orders_of_bits_differ():
    packed = np.array([[0b10000000]], np.uint8)
    assert Codes.from_packed(packed).to_bits().argmax() == 0
    assert Codes.from_packed(packed, bitorder="little").to_bits().argmax() == 7


@pytest.mark.parametrize("order", ["big", "little"])
def test_packed_bytes_with_bits_beyond_the_length_are_refused(order):
    with pytest.raises(InputError, match="bits set beyond n_bits=7"):
        Codes.from_packed(np.array([[255]], np.uint8), 7, order)


def test_strided_bytes_are_taken_as_they_look():
    packed = np.packbits(random_bits(8, 160), axis=1)
    assert Codes.from_packed(packed[::2, 3:13]) == Codes.from_packed(packed[::2, 3:13].copy())


@pytest.mark.parametrize("n_bits", [8, 64, 72, 128, 200])
def test_faiss_measures_the_same_distances(n_bits):
    queries, database = random_bits(5, n_bits, 1), random_bits(40, n_bits, 2)
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(Codes.from_bits(database).to_packed())
    distances, ids = index.search(Codes.from_bits(queries).to_packed(), 40)
    expected = np.take_along_axis(slow_distances(queries, database), ids, axis=1)
    np.testing.assert_array_equal(distances, expected)
    assert distances.max() > distances.min()


@pytest.mark.parametrize("n_bits", [8, 64, 72, 128, 200])
def test_distances_of_words_are_those_of_bits(n_bits):
    queries, database = random_bits(5, n_bits, 1), random_bits(40, n_bits, 2)
    q, d = Codes.from_bits(queries).words, Codes.from_bits(database).words
    by_words = np.bitwise_count(q[:, None] ^ d[None]).sum(axis=-1)
    np.testing.assert_array_equal(by_words, slow_distances(queries, database))


@pytest.mark.parametrize("n_bits", [1, 7, 63, 65, 127, 200])
def test_padding_bits_are_zero(n_bits):
    words = Codes.from_bits(np.ones((3, n_bits), bool)).words
    assert np.bitwise_count(words).sum(axis=1).tolist() == [n_bits] * 3


@pytest.mark.parametrize("n_bits", [1, 7, 63, 65, 127, 200])
def test_a_single_padding_bit_is_found_in_any_row(n_bits):
    words = np.zeros((5, -(-n_bits // 64)), np.uint64)
    for row in range(5):
        spoiled = words.copy()
        spoiled[row, -1] = np.uint64(1) << np.uint64(n_bits % 64)
        with pytest.raises(InputError, match=f"beyond n_bits={n_bits}"):
            Codes(spoiled, n_bits)


def test_a_padding_bit_is_found_after_a_million_rows():
    words = np.zeros((1_000_001, 1), np.uint64)
    words[-1] = 2
    with pytest.raises(InputError, match="beyond n_bits=1"):
        Codes(words, 1)


def test_a_collection_may_be_empty():
    codes = Codes.from_bits(np.zeros((0, 70), bool))
    assert len(codes) == 0
    assert codes.words.shape == (0, 2)
    assert codes.to_bits().shape == (0, 70)
    assert codes.to_packed().shape == (0, 9)
    assert Codes.concatenate([codes, codes]) == codes


def test_codes_are_frozen():
    codes = Codes.from_bits([[0, 1]])
    with pytest.raises(AttributeError):
        codes.n_bits = 3


def test_to_packed_gives_memory_of_its_own():
    codes = Codes.from_bits(random_bits(3, 64))
    before = codes.words.copy()
    for order in ("big", "little"):
        codes.to_packed(order)[:] = 0
    codes.truncate(60).words[:] = 0
    np.testing.assert_array_equal(codes.words, before)


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(1, 4),
        slice(None, None, -2),
        slice(7, 100),
        slice(3, 3),
        [4, 0, 0, -1],
        [],
        np.array([2, 5]),
        np.array([2, 5], np.uint8),
        np.arange(7) % 3 == 0,
        np.zeros(7, bool),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_bits", [7, 64, 130])
def test_rows_are_chosen_as_numpy_chooses_them(rows, n_bits):
    bits = random_bits(7, n_bits)
    chosen = Codes.from_bits(bits)[rows]
    np.testing.assert_array_equal(chosen.to_bits(), bits[rows])
    assert chosen.words.flags.c_contiguous
    assert chosen.n_bits == n_bits


@pytest.mark.parametrize("row", [0, 3, -1, -7, np.int64(2), np.uint8(2)])
def test_one_row_is_a_collection_of_one(row):
    bits = random_bits(7, 70)
    chosen = Codes.from_bits(bits)[row]
    assert isinstance(chosen, Codes)
    np.testing.assert_array_equal(chosen.to_bits(), bits[[row]])


@pytest.mark.parametrize(
    "rows", [7, -8, [0, 7], [-8], np.zeros(6, bool), np.zeros((7, 2), bool), 1.0, [0.5], "0", None]
)
def test_rows_that_are_not_there_are_refused(rows):
    with pytest.raises(PositionError) as caught:
        Codes.from_bits(random_bits(7, 70))[rows]
    assert isinstance(caught.value, IndexError)
    assert str(caught.value).startswith("Codes: ")


@pytest.mark.parametrize(
    "rows",
    [(slice(None), slice(None, None, -1)), (slice(None), [1, 0]), (slice(None), [0, 0])],
    ids=["reversed", "swapped", "repeated"],
)
def test_columns_of_words_cannot_be_chosen(rows):
    # They would be codes whose bits are not where the contract says.
    with pytest.raises(PositionError):
        Codes.from_bits(random_bits(7, 128))[rows]


def test_a_loop_over_codes_ends():
    codes = Codes.from_bits(random_bits(5, 70))
    assert Codes.concatenate(list(codes)) == codes


@given(some_bits, st.data())
@settings(deadline=None)
def test_parts_concatenate_to_the_whole(bits, data):
    cut = data.draw(st.integers(0, len(bits)))
    codes = Codes.from_bits(bits)
    assert Codes.concatenate([codes[:cut], codes[cut:]]) == codes


def test_parts_keep_their_order():
    a, b = Codes.from_bits([[0, 1]]), Codes.from_bits([[1, 1], [1, 0]])
    joined = Codes.concatenate((b, a, b))
    assert joined.to_bits().astype(int).tolist() == [[1, 1], [1, 0], [0, 1], [1, 1], [1, 0]]


def test_parts_of_two_lengths_are_refused():
    with pytest.raises(InputError, match=r"all of the same length, got lengths \[2, 3\]"):
        Codes.concatenate([Codes.from_bits([[0, 1]]), Codes.from_bits([[0, 1, 1]])])


@given(some_bits, st.data())
@settings(deadline=None)
def test_truncating_keeps_the_first_bits(bits, data):
    n_bits = data.draw(st.integers(1, bits.shape[1]))
    codes = Codes.from_bits(bits)
    assert codes.truncate(n_bits) == Codes.from_bits(bits[:, :n_bits])
    np.testing.assert_array_equal(codes.to_bits(), bits)  # it has not changed itself


def test_equality_looks_at_bits_and_length():
    codes = Codes.from_bits([[0, 1], [1, 1]])
    assert codes == Codes.from_bits([[0, 1], [1, 1]])
    assert codes != Codes.from_bits([[0, 1], [1, 0]])
    assert codes != Codes.from_bits([[0, 1]])
    assert codes != Codes.from_bits([[0, 1, 0], [1, 1, 0]])  # the same words, one bit more
    assert codes != "codes"


def test_codes_never_equal_an_array():
    codes = Codes.from_bits([[0, 1], [1, 1]])
    assert codes != codes.words
    assert codes.words != codes


def test_numpy_sees_the_bits():
    bits = random_bits(5, 70)
    codes = Codes.from_bits(bits)
    array = np.asarray(codes)
    assert array.dtype == bool
    np.testing.assert_array_equal(array, bits)
    np.testing.assert_array_equal(np.array(codes, dtype=np.float32), bits.astype(np.float32))
    array[:] = False
    assert codes == Codes.from_bits(bits)  # a copy
    with pytest.raises(ValueError, match="an array of them is a copy"):
        np.array(codes, copy=False)
    with pytest.raises(TypeError):
        np.add(codes, 1)


def test_codes_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Codes.from_bits([[0, 1]]))


def test_repr_tells_number_and_length():
    assert repr(Codes(np.zeros((1234, 2), np.uint64), 65)) == "<1,234 codes of 65 bits>"
