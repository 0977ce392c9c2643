import sys

import numpy as np
import pytest
from processes import run_python

import bittern as bt
from bittern import tables
from bittern.index import read_bytes, read_faiss, write_bytes, write_faiss

BITS = np.random.default_rng(0).random((30, 48)) < 0.5
CODES = bt.Codes.from_bits(BITS)


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss")


def test_faiss_reads_what_we_write_and_finds_the_same(faiss, tmp_path):
    write_faiss(tmp_path / "a.faiss", CODES)
    index = faiss.read_index_binary(str(tmp_path / "a.faiss"))
    assert (index.ntotal, index.d) == (30, 48)
    stored = faiss.vector_to_array(index.xb).reshape(30, 6)
    np.testing.assert_array_equal(stored, np.packbits(BITS, axis=1, bitorder="little"))
    distances, ids = index.search(stored[:3], 30)
    for q, (i, d) in enumerate(zip(ids, distances, strict=True)):
        by_hand = (BITS[i] != BITS[q]).sum(axis=1)
        np.testing.assert_array_equal(d, by_hand)
    assert [path.name for path in tmp_path.iterdir()] == ["a.faiss"]


def test_we_read_what_faiss_writes(faiss, tmp_path):
    index = faiss.IndexBinaryFlat(48)
    index.add(np.packbits(BITS, axis=1, bitorder="little"))
    faiss.write_index_binary(index, str(tmp_path / "a.faiss"))
    codes = read_faiss(tmp_path / "a.faiss")
    np.testing.assert_array_equal(codes.to_bits(), BITS)


@pytest.mark.parametrize("n_bits", [1, 8, 12, 65])
def test_any_length_goes_there_and_back(faiss, tmp_path, n_bits):
    codes = bt.Codes.from_bits(np.random.default_rng(1).random((9, n_bits)) < 0.5)
    write_faiss(tmp_path / "a", codes)
    assert read_faiss(tmp_path / "a", n_bits=n_bits) == codes
    assert read_faiss(tmp_path / "a").n_bits == -(-n_bits // 8) * 8
    write_bytes(tmp_path / "b.npy", codes)
    assert read_bytes(tmp_path / "b.npy", n_bits=n_bits) == codes
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), np.packbits(codes.to_bits(), axis=1))


def test_an_index_is_written_without_what_was_removed(faiss, tmp_path):
    index = bt.FlatIndex(CODES)
    index.remove([0, 5])
    write_faiss(tmp_path / "a", index)
    kept = CODES[[i for i in range(30) if i not in (0, 5)]]
    assert read_faiss(tmp_path / "a") == kept
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


def test_without_faiss_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    for call in (lambda: write_faiss(tmp_path / "a", CODES), lambda: read_faiss(tmp_path / "a")):
        with pytest.raises(bt.MissingExtraError, match=r"pip install 'bittern\[io\]'"):
            call()


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
