"""Indexes mapped from a damaged file: errors or wrong answers, never a crash."""

import numpy as np
import pytest
from processes import run_python

import bittern as bt
from bittern.index import multi_index

# Every array of each file in turn has four bytes set, here and there; then it is loaded and asked.
DAMAGE = """
    import sys
    import numpy as np
    import bittern as bt
    from pathlib import Path
    from bittern.index import multi_index
    from bittern.io.npz import stored_arrays

    multi_index.FEWEST = 1 << 12
    rng = np.random.default_rng(0)
    for path in map(Path, sys.argv[1:]):
        whole, n_read, n_refused = path.read_bytes(), 0, 0
        queries = bt.index.Index.load(path).codes[:12]
        for stored in stored_arrays(path).values():
            size = int(np.prod(stored.shape)) * stored.dtype.itemsize
            if size == 0 or stored.name == "index":
                continue
            for place in [0, size - 4, *rng.integers(0, size - 3, 5).tolist()]:
                damaged = bytearray(whole)
                begin = stored.offset + place - place % 4
                damaged[begin : begin + 4] = b"\\xff\\xff\\xff\\x7f" if place % 8 else b"\\xff" * 4
                path.write_bytes(damaged)
                try:
                    index = bt.index.Index.load(path, mmap=True)
                    for where in (None, np.arange(len(index)) % 2 == 0):
                        index.search(queries, 20, where=where)
                        index.within(queries, 9, where=where)
                    n_read += 1
                except bt.FileError:
                    n_refused += 1
        print(n_read, n_refused)
"""


def saved(index, path):
    index.save(path)
    return path


def test_no_damage_ends_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(multi_index, "FEWEST", 1 << 12)  # as in the process
    paths = []
    for kind, n_bits, settings in [
        (bt.TableIndex, 64, {"n_tables": 3, "bits_per_table": 14}),
        (bt.TableIndex, 100, {"n_tables": 3, "bits_per_table": 20, "probe": 1}),
        (bt.MultiIndex, 64, {}),
        (bt.MultiIndex, 200, {}),
    ]:
        # So many that most arrays are longer than what reading their headers verifies.
        bits = np.random.default_rng(0).random((20_000, n_bits)) < 0.1
        index = kind(bt.Codes.from_bits(bits), **settings)
        paths.append(saved(index, tmp_path / f"{len(paths)}.index"))
    outcomes = np.array(run_python(DAMAGE, *paths).split(), int).reshape(4, 2)
    assert (outcomes > 5).all()  # some of each are read, some refused


def damaged_map(tmp_path, monkeypatch, name, change):
    """An index whose array of that name was changed on disk, mapped."""
    index = bt.TableIndex(
        bt.Codes.from_bits(np.random.default_rng(0).random((300, 40)) < 0.5),
        n_tables=3,
        bits_per_table=12,
    )
    arrays = {key: array.copy() for key, array in index._arrays().items()}
    change(arrays[name])
    monkeypatch.setattr(bt.TableIndex, "_arrays", lambda _: arrays)
    return index, bt.TableIndex.load(saved(index, tmp_path / "a.index"), mmap=True)


def test_rows_that_are_not_there_are_refused_when_they_are_met(tmp_path, monkeypatch):
    def beyond(ids):
        ids[1] = 300

    index, mapped = damaged_map(tmp_path, monkeypatch, "ids", beyond)
    with pytest.raises(bt.FileError, match="name rows that do not exist, so their file is damaged"):
        mapped.search(index.codes[:5], 3)


def test_of_keys_out_of_order_a_part_is_found(tmp_path, monkeypatch):
    def backwards(keys):
        keys[:] = keys[:, ::-1].copy()

    index, mapped = damaged_map(tmp_path, monkeypatch, "keys", backwards)
    whole, some = (i.candidates(index.codes).to_lists() for i in (index, mapped))
    assert some != whole
    assert all(set(a) <= set(b) for a, b in zip(some, whole, strict=True))
