"""Files of codes for other programs, byte by byte, and the commands ``export`` and ``import``."""

import csv
import json
import struct

import numpy as np
import pytest

import bittern as bt
from bittern import store
from bittern.cli import exchange as command
from bittern.io import exchange
from bittern.io.exchange import TARGETS

RNG = np.random.default_rng(0)
BITS = RNG.random((5, 12)) < 0.5
CODES = bt.Codes.from_bits(BITS)
IDS = [7, 3, 900, 0, 12]
METADATA = {"label": ["a", None, 'x"y', "l\nm", "é"], "size": [1, 2, None, 4, 5], "old": [True] * 5}
ENDINGS = {"pgvector": ".csv", "lancedb": ".lance", "vespa": ".jsonl", "milvus": ".db"}
LIGHT = [kind for kind in TARGETS if kind not in ("lancedb", "milvus", "huggingface")]
NEEDS = {
    "faiss": ["faiss"],
    "sqlite-vec": ["apsw", "sqlite_vec"],
    "usearch": ["usearch"],
    "parquet": ["pyarrow"],
    "arrow": ["pyarrow"],
}


@pytest.mark.parametrize("n_bits", [1, 8, 12, 65])
@pytest.mark.parametrize("kind", LIGHT)
def test_codes_of_any_length_go_there_and_back(kind, n_bits, tmp_path):
    for module in NEEDS.get(kind, ()):
        pytest.importorskip(module)
    codes = bt.Codes.from_bits(RNG.random((9, n_bits)) < 0.5)
    path = tmp_path / f"a{ENDINGS.get(kind, '')}"
    codes.to(kind, path)
    assert bt.Codes.from_(kind, path, n_bits=n_bits) == codes
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", [kind for kind in LIGHT if not TARGETS[kind].is_fixed])
def test_an_order_of_bits_that_is_not_fixed_can_be_chosen(kind, tmp_path):
    for module in NEEDS.get(kind, ()):
        pytest.importorskip(module)
    CODES.to(kind, tmp_path / "a", bitorder="little")
    assert bt.Codes.from_(kind, tmp_path / "a", n_bits=12, bitorder="little") == CODES
    found = exchange.read(kind, tmp_path / "a", n_bits=12, bitorder="little")
    np.testing.assert_array_equal(found.packed, np.packbits(BITS, axis=1, bitorder="little"))


def test_parquet_and_arrow_say_length_and_order(tmp_path):
    parquet, feather = map(pytest.importorskip, ("pyarrow.parquet", "pyarrow.feather"))
    CODES.to("parquet", tmp_path / "a.parquet", ids=IDS, bitorder="little")
    CODES.to("arrow", tmp_path / "a.arrow", ids=IDS)
    for schema, order in (
        (parquet.read_schema(tmp_path / "a.parquet"), b"little"),
        (feather.read_table(tmp_path / "a.arrow").schema, b"big"),
    ):
        assert schema.metadata == {b"n_bits": b"12", b"bitorder": order}
        assert str(schema.field("code").type) == "fixed_size_binary[2]"
    table = parquet.read_table(tmp_path / "a.parquet")
    rows = np.packbits(BITS, axis=1, bitorder="little")
    assert table["code"].to_pylist() == [row.tobytes() for row in rows]
    assert table["id"].to_pylist() == IDS
    with pytest.raises(bt.FileError, match="holds codes of 12 bits, not n_bits=16"):
        bt.Codes.from_("parquet", tmp_path / "a.parquet", n_bits=16)
    with pytest.raises(bt.FileError, match="has the order of bits 'little', not 'big'"):
        bt.Codes.from_("parquet", tmp_path / "a.parquet", bitorder="big")


def test_tables_of_others_are_read_too(tmp_path):
    pa, parquet = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
    rows = np.packbits(BITS, axis=1)
    table = {"id": IDS, "ubinary": pa.array(rows.tolist(), pa.list_(pa.uint8())), "at": [1.5] * 5}
    parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    items = store.read_items("parquet", tmp_path / "a.parquet", n_bits=12)
    assert items.codes == CODES and items.ids.tolist() == IDS
    assert items.metadata == [{"at": 1.5}] * 5
    parquet.write_table(pa.table({"x": [1.0]}), tmp_path / "b.parquet")
    with pytest.raises(bt.FileError, match=r"codes must be a column 'code'.*the columns are x"):
        bt.Codes.from_("parquet", tmp_path / "b.parquet")


def test_embeddings_are_those_of_sentence_transformers(tmp_path):
    # As its documentation defines them: np.packbits, for binary minus 128 as int8.
    bits = RNG.standard_normal((6, 24)) > 0
    ubinary = np.packbits(bits, axis=1)
    binary = (ubinary.astype(int) - 128).astype(np.int8)
    codes = bt.Codes.from_bits(bits)
    for kind, wanted in (("ubinary", ubinary), ("binary", binary)):
        codes.to(kind, tmp_path / "a.npy")
        found = np.load(tmp_path / "a.npy")
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
        np.save(tmp_path / "b.npy", wanted.astype(np.int64))  # as a list from JSON would be
        assert bt.Codes.from_(kind, tmp_path / "b.npy") == codes
    with pytest.raises(bt.FileError, match="from 0 to 255"):
        bt.Codes.from_("ubinary", tmp_path / "a.npy")


def test_the_library_itself_makes_the_same_embeddings(tmp_path):
    library = pytest.importorskip("sentence_transformers.quantization")
    vectors = RNG.standard_normal((6, 24)).astype(np.float32)
    for kind in ("ubinary", "binary"):
        np.save(tmp_path / "a.npy", library.quantize_embeddings(vectors, precision=kind))
        assert bt.Codes.from_(kind, tmp_path / "a.npy") == bt.Codes.from_bits(vectors > 0)


def test_csv_for_pgvector_has_bits_as_text(tmp_path):
    path = tmp_path / "a.csv"
    CODES.to("pgvector", path, ids=IDS, metadata=METADATA)
    assert path.read_text().startswith("id,code,label,size,old\n7,")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["code"] for row in rows] == ["".join(map(str, row)) for row in BITS.astype(int)]
    assert rows[2] == {**rows[2], "id": "900", "label": 'x"y', "size": "", "old": "true"}
    items = store.read_items("pgvector", path)
    assert items.codes == CODES and items.ids.tolist() == IDS
    assert [item.get("label") for item in items.metadata] == METADATA["label"]
    assert [item.get("size") for item in items.metadata] == METADATA["size"]
    assert all(item["old"] is True for item in items.metadata)
    path.write_text("\n".join(row["code"] for row in rows))
    assert bt.Codes.from_("pgvector", path) == CODES
    path.write_text("id,code\n1,0101\n2,01x1\n")
    with pytest.raises(bt.FileError, match="codes have only 0 and 1, got '01x1'"):
        bt.Codes.from_("pgvector", path)
    path.write_text("id,code\n1,0101\n2,011\n")
    with pytest.raises(bt.FileError, match="codes must have one length"):
        bt.Codes.from_("pgvector", path)
    path.write_text("id,code\n1,0101\nx,0111\n")
    with pytest.raises(bt.FileError, match="not a readable file of codes"):
        bt.Codes.from_("pgvector", path)
    with pytest.raises(bt.InputError, match=r"are a \.csv file"):
        CODES.to("pgvector", tmp_path / "a.txt")


def postgres_file(path, with_extension=True):
    """Ids, lengths and bytes of a file, read as the manual of PostgreSQL describes it."""
    content = path.read_bytes()
    assert content[:11] == b"PGCOPY\n\xff\r\n\0"
    flags, length = struct.unpack(">ii", content[11:19])
    assert flags == 0 and (length > 0) is with_extension
    at, rows = 19 + length, []
    while (n := struct.unpack(">h", content[at : at + 2])[0]) >= 0:
        at, fields = at + 2, []
        for _ in range(n):
            size = struct.unpack(">i", content[at : at + 4])[0]
            fields.append(content[at + 4 : at + 4 + size] if size >= 0 else None)
            at += 4 + max(size, 0)
        rows.append(fields)
    assert content[at:] == b"\xff\xff"
    return rows


def test_binary_copy_is_the_format_of_the_manual(tmp_path):
    path = tmp_path / "a.bin"
    CODES.to("pgvector-copy", path, ids=IDS, metadata={**METADATA, "at": [0.5] * 5})
    rows = postgres_file(path)
    assert [int.from_bytes(row[0], "big") for row in rows] == IDS
    packed = np.packbits(BITS, axis=1)
    assert [row[1] for row in rows] == [b"\0\0\0\x0c" + one.tobytes() for one in packed]
    assert [row[2] for row in rows] == [b"a", None, b'x"y', b"l\nm", "é".encode()]
    assert [row[3] and int.from_bytes(row[3], "big") for row in rows] == [1, 2, None, 4, 5]
    assert {row[4] for row in rows} == {b"\x01"} and {row[5] for row in rows} == {
        struct.pack(">d", 0.5)
    }
    items = store.read_items("pgvector-copy", path)
    assert items.codes == CODES and items.ids.tolist() == IDS
    assert [item.get("label") for item in items.metadata] == METADATA["label"]
    content = path.read_bytes()
    for cut in (3, 15, 40, len(content) - 20, len(content) - 2):
        path.write_bytes(content[:cut])
        with pytest.raises(bt.FileError, match=r"COPY"):
            bt.Codes.from_("pgvector-copy", path)


def test_binary_copy_of_a_server_has_no_names(tmp_path):
    path = tmp_path / "a.bin"
    rows = [
        struct.pack(">hiqii", 2, 8, i, 6, 12) + one.tobytes()
        for i, one in zip(IDS, np.packbits(BITS, axis=1), strict=True)
    ]
    start = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
    path.write_bytes(start + b"".join(rows) + b"\xff\xff")
    items = store.read_items("pgvector-copy", path)
    assert items.codes == CODES and items.ids.tolist() == IDS
    path.write_bytes(start + struct.pack(">hiii", 3, -1, -1, -1) + b"\xff\xff")
    with pytest.raises(bt.FileError, match="has 3 columns without names; copy id and code alone"):
        bt.Codes.from_("pgvector-copy", path)


def test_documents_of_vespa(tmp_path):
    path = tmp_path / "a.jsonl"
    CODES.to("vespa", path, ids=IDS, metadata=METADATA, name="pets")
    first = json.loads(path.read_text().splitlines()[0])
    values = np.packbits(BITS, axis=1).view(np.int8)[0].tolist()
    assert first == {
        "put": "id:pets:pets::7",
        "fields": {"code": {"values": values}, "label": "a", "size": 1, "old": True},
    }
    lines = [
        {"id": f"id:n:t::{i}", "fields": {"code": {"values": row.tobytes().hex()}}}
        for i, row in zip("abcde", np.packbits(BITS, axis=1), strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    items = store.read_items("vespa", path, n_bits=12)
    assert items.codes == CODES and items.metadata[4] == {"name": "e"}
    for bad in ({"values": [200]}, {"values": "xy"}, {"cells": {}}, None):
        path.write_text(json.dumps({"put": "id:n:t::1", "fields": {"code": bad}}))
        with pytest.raises(bt.FileError, match=r"line 1: the field 'code' must have"):
            bt.Codes.from_("vespa", path)


def test_what_a_target_cannot_hold_is_refused(tmp_path):
    for kind, given, says in (
        ("npy", {"ids": IDS}, "npy: has no place for ids"),
        ("ubinary", {"metadata": METADATA}, "ubinary: has no place for metadata"),
        ("npy", {"name": "x"}, "npy: has nothing that a name could be for"),
        ("pgvector", {"bitorder": "little"}, "pgvector: has the order of bits 'big', not 'little'"),
        ("npy", {"bitorder": "middle"}, "bitorder must be one of 'big', 'little', got 'middle'"),
        ("arrow", {"ids": [1] * 5}, "arrow: ids must be distinct, 1 is not"),
        ("arrow", {"metadata": {"id": IDS}}, "keys of metadata must be of letters"),
        ("arow", {}, "no target is called 'arow'; did you mean 'arrow'"),
    ):
        with pytest.raises(bt.BitternError, match=says):
            CODES.to(kind, tmp_path / "a.csv", **given)
    assert not list(tmp_path.iterdir())
    CODES.to("npy", tmp_path / "a.npy", ids=range(5))


def test_ids_that_are_dropped_are_mentioned(tmp_path):
    CODES.to("pgvector-copy", tmp_path / "a", ids=IDS)
    with pytest.warns(UserWarning, match=r"has ids, which Codes.from_\(\) drops"):
        assert bt.Codes.from_("pgvector-copy", tmp_path / "a") == CODES


@pytest.mark.parametrize("kind", LIGHT)
def test_other_files_are_refused_in_one_sentence(kind, tmp_path):
    for module in NEEDS.get(kind, ()):
        pytest.importorskip(module)
    path = tmp_path / f"a{ENDINGS.get(kind, '')}"
    with pytest.raises(bt.FileError, match="no such file"):
        bt.Codes.from_(kind, path)
    for content in (b"", b"nothing\n", bytes(range(256)) * 4):
        path.write_bytes(content)
        with pytest.raises(bt.FileError) as caught:
            bt.Codes.from_(kind, path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_the_help_names_every_target():
    for function in (command.export_codes, command.import_codes):
        words = function.__doc__.replace(",", " ").replace(".", " ").replace(";", " ").split()
        assert {*TARGETS, command.RABITQ} <= set(words)


def made_sources(folder):
    """Codes, an index and a collection of the same items."""
    CODES.save(folder / "codes.npz")
    bt.FlatIndex(CODES, ids=IDS).save(folder / "index.npz")
    with store.create(folder / "a.bittern", 12) as collection:
        collection.add(CODES, IDS, METADATA)
    return {"codes.npz": list(range(5)), "index.npz": IDS, "a.bittern": IDS}


def test_the_commands_take_codes_indexes_and_collections(tmp_path, run):
    for name, ids in made_sources(tmp_path).items():
        out = tmp_path / f"{name}.bin"
        code, said, err = run("export", tmp_path / name, out, "--to", "pgvector-copy")
        assert code == 0, err
        assert "5 codes of 12 bits, pgvector bit(n) for binary COPY, bit order big" in said
        assert store.read_items("pgvector-copy", out).ids.tolist() == ids
        back = tmp_path / f"{name}.back.npz"
        code, said, err = run("import", out, "--from", "pgvector-copy", "-o", back)
        assert code == 0 and "5 codes of 12 bits" in said, err
        assert bt.Codes.load(back) == CODES and np.load(back)["ids"].tolist() == ids
    assert np.load(tmp_path / "a.bittern.back.npz")["labels"].tolist()[2] == 'x"y'
    again = tmp_path / "again.bittern"
    code, _, err = run("import", out, "--from", "pgvector-copy", "-o", again)
    assert code == 0, err
    with store.open(again) as collection, store.open(tmp_path / "a.bittern") as first:
        ours, theirs = (one.get(one.ids) for one in (collection, first))
    assert ours.codes == theirs.codes and ours.ids.tolist() == theirs.ids.tolist()
    assert ours.metadata == theirs.metadata


def test_the_commands_warn_of_what_is_lost_and_replace_by_force_alone(tmp_path, run):
    made_sources(tmp_path)
    out = tmp_path / "a.npy"
    code, _, err = run("export", tmp_path / "a.bittern", out, "--to", "ubinary")
    assert code == 0 and "has no place for ids and metadata" in err
    np.testing.assert_array_equal(np.load(out), np.packbits(BITS, axis=1))
    code, _, err = run("export", tmp_path / "codes.npz", out, "--to", "binary")
    assert code == 2 and "exists already" in err
    code, _, err = run("export", tmp_path / "codes.npz", out, "--to", "binary", "--force")
    assert code == 0 and not err and np.load(out).dtype == np.int8
    imported = ["import", out, "--from", "binary", "--bits", 12, "-o"]
    for name in ("b.npz", "b.npy"):
        assert run(*imported, tmp_path / name)[0] == 0
        assert bt.Codes.load(tmp_path / name) == CODES


def test_a_quantiser_goes_to_faiss_and_back_by_the_commands(tmp_path, run):
    faiss = pytest.importorskip("faiss")
    X = RNG.standard_normal((200, 16)).astype(np.float32)
    quantiser = bt.quantise.RaBitQ(6).fit(X)
    quantiser.save(tmp_path / "model.npz")
    quantiser.encode(X).save(tmp_path / "bytes.npz")
    out, model = tmp_path / "a.faiss", ["--quantiser", tmp_path / "model.npz"]
    code, said, err = run("export", tmp_path / "bytes.npz", out, "--to", "faiss-rabitq", *model)
    assert code == 0 and "200 items, FAISS IndexRaBitQ" in said, err
    assert faiss.read_index(str(out)).ntotal == 200
    back = ["import", out, "--from", "faiss-rabitq", "-o", tmp_path / "back.npz"]
    assert run(*back, *model)[0] == 0
    np.testing.assert_array_equal(
        np.load(tmp_path / "back.npz")["bytes"], quantiser.encode(X).bytes
    )
    again = ["export", tmp_path / "back.npz", tmp_path / "b.faiss", "--to", "faiss-rabitq"]
    assert run(*again, *model)[0] == 0
    assert (tmp_path / "b.faiss").read_bytes() == out.read_bytes()
    code, _, err = run(*back, "--force")
    assert code == 2 and "give the fitted quantiser, --quantiser" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["export", "nowhere.npz", "a", "--to", "arrow"], "nowhere.npz"),
        (["export", "codes.npz", "a", "--to", "arow"], "did you mean 'arrow'"),
        (["export", "codes.npz", "a", "--to", "rabitq"], "did you mean 'faiss-rabitq'"),
        (["export", "vectors.npy", "a", "--to", "npy"], "holds neither codes nor a saved index"),
        (["export", "codes.npz", "codes.npz", "--to", "npy"], "would be overwritten"),
        (["export", "codes.npz", "no/a", "--to", "npy"], "there is no folder no"),
        (["export", "codes.npz", "a", "--to", "npy", "--quantiser", "x"], "--quantiser is for"),
        (["export", "codes.npz", "a.csv", "--to", "vespa"], "are a .jsonl file"),
        (["import", "codes.npz", "--from", "pgvector-copy", "-o", "a.npz"], "is no binary file"),
        (["import", "nowhere", "--from", "npy", "-o", "a.npz"], "nowhere: no such file"),
    ],
)
def test_bad_commands_are_refused_in_one_sentence(arguments, says, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    CODES.save("codes.npz")
    np.save("vectors.npy", np.ones((5, 12), np.float32))
    code, out, err = run(*arguments)
    assert code == 2 and says in err, err
    assert len(err.strip().splitlines()) == 1 and not out
    assert {path.name for path in tmp_path.iterdir()} == {"codes.npz", "vectors.npy"}


def test_an_index_of_usearch_is_read_as_usearch_reads_it(tmp_path):
    usearch = pytest.importorskip("usearch.index")
    rng = np.random.default_rng(3)
    keys, rows = rng.permutation(2000)[:600].astype(np.uint64), rng.integers(0, 256, (600, 8))
    index = usearch.Index(ndim=64, metric="hamming", dtype="b1")
    index.add(keys, rows.astype(np.uint8))
    index.remove(keys[:9])
    (tmp_path / "codes.usearch").write_bytes(index.save())
    found = bt.store.read_items("usearch", tmp_path / "codes.usearch", n_bits=64)
    assert found.ids.tolist() == sorted(keys[9:].tolist())
    expected = np.stack([np.asarray(index.get(int(key))).ravel() for key in found.ids])
    assert np.array_equal(found.codes.to_packed(), expected.view(np.uint8))
