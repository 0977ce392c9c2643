import sys

import numpy as np
import pytest
from processes import run_python

import bittern as bt
from bittern import tables
from bittern.index import read_bytes, read_faiss, read_faiss_index, write_bytes, write_faiss

BITS = np.random.default_rng(0).random((30, 48)) < 0.5
CODES = bt.Codes.from_bits(BITS)


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss")


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("n_bits", [16, 21, 48])
def test_faiss_finds_the_neighbours_that_we_find(faiss, tmp_path, bitorder, n_bits):
    codes = CODES.truncate(n_bits)
    write_faiss(tmp_path / "a.faiss", codes, bitorder=bitorder)
    assert [path.name for path in tmp_path.iterdir()] == ["a.faiss"]
    theirs = faiss.read_index_binary(str(tmp_path / "a.faiss"))
    assert type(theirs) is faiss.IndexBinaryFlat
    assert (theirs.ntotal, theirs.d) == (30, -(-n_bits // 8) * 8)
    assert_same_neighbours(theirs, bt.FlatIndex(codes), codes[:5], bitorder)


def test_the_default_order_of_a_faiss_file_is_that_of_our_bytes(faiss, tmp_path):
    write_faiss(tmp_path / "a.faiss", CODES)
    theirs = faiss.read_index_binary(str(tmp_path / "a.faiss"))
    distances, _ = theirs.search(CODES.to_packed(), 1)
    assert (distances == 0).all()
    distances, _ = theirs.search(CODES.to_packed("little"), 1)
    assert (distances > 0).any()  # the other order gives wrong neighbours, so this test can fail


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_faiss_keeps_the_ids_of_an_index(faiss, tmp_path, bitorder):
    ids = np.random.default_rng(1).permutation(1000)[:30]
    ours = bt.FlatIndex(CODES, ids=ids)
    ours.remove(ids[:2])
    write_faiss(tmp_path / "a", ours, bitorder=bitorder)
    theirs = faiss.read_index_binary(str(tmp_path / "a"))
    assert type(theirs) is faiss.IndexBinaryIDMap
    assert_same_neighbours(theirs, ours, CODES[:5], bitorder)
    back = read_faiss_index(tmp_path / "a", bitorder=bitorder)
    assert back.codes == CODES[2:] and back.ids.tolist() == ids[2:].tolist()
    with pytest.warns(UserWarning, match="has ids, which read_faiss.. drops; read_faiss_index"):
        assert read_faiss(tmp_path / "a", bitorder=bitorder) == CODES[2:]
    write_faiss(tmp_path / "b", CODES[2:], ids=ids[2:], bitorder=bitorder)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def assert_same_neighbours(theirs, ours, queries, bitorder):
    """Every item at the same distance; the order of ties is each engine's own."""
    distances, ids = theirs.search(queries.to_packed(bitorder), len(ours))
    hits = ours.search(queries, len(ours))
    np.testing.assert_array_equal(distances, hits.distances)
    for i, d, wanted in zip(ids.tolist(), distances.tolist(), hits.to_lists(), strict=True):
        assert dict(zip(i, d, strict=True)) == dict(wanted)


def test_bad_ids_and_orders_are_refused(faiss, tmp_path):
    with pytest.raises(bt.InputError, match="write_faiss: ids must be distinct, 3 is not"):
        write_faiss(tmp_path / "a", CODES, ids=[3] * 30)
    with pytest.raises(bt.InputError, match="the numbers of ids and of codes"):
        write_faiss(tmp_path / "a", CODES, ids=[3])
    for write in (write_faiss, write_bytes):
        with pytest.raises(
            bt.InputError, match="bitorder must be one of 'big', 'little', got 'middle'"
        ):
            write(tmp_path / "a", CODES, bitorder="middle")
    assert not list(tmp_path.iterdir())
    write_bytes(tmp_path / "a.npy", CODES)
    with pytest.raises(
        bt.InputError, match="bitorder must be one of 'big', 'little', got 'middle'"
    ):
        read_bytes(tmp_path / "a.npy", bitorder="middle")
    twice = faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(48))
    twice.add_with_ids(CODES.to_packed(), np.zeros(30, np.int64))
    faiss.write_index_binary(twice, str(tmp_path / "b"))
    with pytest.raises(bt.FileError, match="ids must be distinct, 0 is not"):
        read_faiss_index(tmp_path / "b")


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_we_read_what_faiss_writes(faiss, tmp_path, bitorder):
    index = faiss.IndexBinaryFlat(48)
    index.add(np.packbits(BITS, axis=1, bitorder=bitorder))
    faiss.write_index_binary(index, str(tmp_path / "a.faiss"))
    codes = read_faiss(tmp_path / "a.faiss", bitorder=bitorder)
    np.testing.assert_array_equal(codes.to_bits(), BITS)
    assert read_faiss_index(tmp_path / "a.faiss", bitorder=bitorder).ids.tolist() == [*range(30)]


def test_the_encoders_of_faiss_are_little_endian(faiss):
    vectors = np.where(BITS, 1, -1).astype(np.float32)
    encoder = faiss.IndexLSH(48, 48, False, False)
    packed = encoder.sa_encode(vectors)
    assert bt.Codes.from_packed(packed, bitorder="little") == CODES


@pytest.mark.parametrize("n_bits", [1, 8, 12, 65])
def test_any_length_goes_there_and_back(faiss, tmp_path, n_bits):
    codes = bt.Codes.from_bits(np.random.default_rng(1).random((9, n_bits)) < 0.5)
    write_faiss(tmp_path / "a", codes)
    assert read_faiss(tmp_path / "a", n_bits=n_bits) == codes
    assert read_faiss(tmp_path / "a").n_bits == -(-n_bits // 8) * 8
    write_bytes(tmp_path / "b.npy", codes)
    assert read_bytes(tmp_path / "b.npy", n_bits=n_bits) == codes
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), np.packbits(codes.to_bits(), axis=1))
    write_bytes(tmp_path / "b.npy", codes, bitorder="little")
    assert read_bytes(tmp_path / "b.npy", n_bits=n_bits, bitorder="little") == codes
    packed = np.packbits(codes.to_bits(), axis=1, bitorder="little")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), packed)


def test_an_index_is_written_without_what_was_removed(faiss, tmp_path):
    index = bt.FlatIndex(CODES)
    index.remove([0, 5])
    write_faiss(tmp_path / "a", index)
    kept = CODES[[i for i in range(30) if i not in (0, 5)]]
    assert read_faiss_index(tmp_path / "a").codes == kept
    write_bytes(tmp_path / "b.npy", index)
    assert read_bytes(tmp_path / "b.npy") == kept


def test_files_of_another_kind_are_refused(faiss, tmp_path):
    (tmp_path / "text").write_text("no index at all")
    with pytest.raises(bt.FileError, match="not a readable binary index of FAISS"):
        read_faiss(tmp_path / "text")
    hashed = faiss.IndexBinaryHash(48, 8)
    hashed.add(np.packbits(BITS, axis=1, bitorder="little"))
    faiss.write_index_binary(hashed, str(tmp_path / "hash"))
    with pytest.raises(bt.FileError, match="holds a IndexBinaryHash; only IndexBinaryFlat"):
        read_faiss(tmp_path / "hash")
    write_faiss(tmp_path / "a", CODES)
    with pytest.raises(bt.FileError, match="64 bits take 8 bytes per row, got 6"):
        read_faiss(tmp_path / "a", n_bits=64)
    whole = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(bt.FileError, match="not a readable"):
        read_faiss(tmp_path / "a")
    np.save(tmp_path / "floats.npy", np.zeros((3, 4)))
    with pytest.raises(bt.FileError, match="not a file of packed codes"):
        read_bytes(tmp_path / "floats.npy")


def test_without_faiss_files_are_read_and_the_extra_is_named(faiss, tmp_path, monkeypatch):
    write_faiss(tmp_path / "a", CODES)
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert read_faiss(tmp_path / "a") == CODES
    with pytest.raises(bt.MissingExtraError, match=r"pip install 'bittern\[io\]'"):
        write_faiss(tmp_path / "b", CODES)


def test_the_old_names_keep_working():
    assert bt.index.write_octets is write_bytes
    assert bt.index.read_octets is read_bytes
    for name in bt.index._EVALUATION:
        assert getattr(bt.index, name) is getattr(tables, name)
    assert {"table_profile", "compare_with_ranking"} < set(dir(bt.index))
    with pytest.raises(AttributeError, match="no attribute 'tabel_profile'"):
        _ = bt.index.tabel_profile


def test_indexes_do_not_load_the_evaluation_of_tables():
    run_python("""
        import sys
        import bittern.index
        assert "bittern.tables" not in sys.modules
    """)
