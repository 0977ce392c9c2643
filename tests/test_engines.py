"""Codes in other engines: each finds, at every distance, what our index finds."""

import json

import numpy as np
import pytest

import bittern as bt
from bittern import store
from bittern.index import read_faiss_rabitq, write_faiss_rabitq

N = 60
RNG = np.random.default_rng(0)
BITS = RNG.random((N, 104)) < 0.5
IDS = RNG.permutation(1000)[:N]
METADATA = {
    "label": [None if i == 3 else f'c"at, {i}\nü' for i in range(N)],
    "year": [1990 + i for i in range(N)],
    "score": [i / 3 for i in range(N)],
    "is_new": [i % 2 == 0 for i in range(N)],
    "words": [["a", f"{i}"] for i in range(N)],
}
QUERIES = 4


def in_faiss(path, queries):
    faiss = pytest.importorskip("faiss")
    distances, ids = faiss.read_index_binary(str(path)).search(queries.to_packed(), N)
    return ids, distances


def in_sqlite(path, queries):
    database = opened(path)
    found = [
        database.execute(
            "SELECT id, distance FROM codes WHERE code MATCH vec_bit(?) AND k = ?",
            (query.tobytes(), N),
        ).fetchall()
        for query in queries.to_packed("little")
    ]
    database.close()
    return np.array(found).transpose(2, 0, 1)


def in_usearch(path, queries):
    index = pytest.importorskip("usearch.index").Index.restore(path)
    found = index.search(queries.to_packed(), N, exact=True)
    return found.keys, found.distances


def in_lancedb(path, queries):
    table = pytest.importorskip("lancedb").connect(path.parent).open_table(path.stem)
    found = [
        table.search(query.tolist()).distance_type("hamming").limit(N).to_arrow()
        for query in queries.to_packed()
    ]
    return [one["id"].to_pylist() for one in found], [one["_distance"].to_pylist() for one in found]


def in_milvus(path, queries):
    client = pytest.importorskip("pymilvus").MilvusClient(str(path))
    client.load_collection("codes")
    rows = [query.tobytes() for query in queries.to_packed("little")]
    found = client.search(
        "codes", rows, limit=N, anns_field="code", search_params={"metric_type": "HAMMING"}
    )
    client.close()
    return [[one["id"] for one in hits] for hits in found], [
        [one["distance"] for one in hits] for hits in found
    ]


def in_duckdb(path, queries):
    duckdb = pytest.importorskip("duckdb")
    sql = f"SELECT id, bit_count(xor(code::BIT, ?::BLOB::BIT)) AS d FROM '{path}' ORDER BY d"
    found = [duckdb.execute(sql, [query.tobytes()]).fetchall() for query in queries.to_packed()]
    return np.array(found).transpose(2, 0, 1)


def in_arrow(path, queries):
    table = pytest.importorskip("pyarrow.feather").read_table(path)
    rows = np.stack([np.frombuffer(code.as_py(), np.uint8) for code in table["code"]])
    return by_bytes(rows, queries.to_packed(), table["id"].to_numpy())


def in_datasets(path, queries):
    datasets = pytest.importorskip("datasets")
    found = datasets.load_from_disk(str(path)).with_format("numpy")
    return by_bytes(found["code"][:], queries.to_packed(), found["id"][:])


def in_vespa(path, queries):
    """There is no wheel of Vespa: its Hamming distance of int8, as its reference defines it."""
    documents = [json.loads(line) for line in path.read_text().splitlines()]
    rows = np.array([one["fields"]["code"]["values"] for one in documents], np.int8)
    ids = [int(one["put"].removeprefix("id:codes:codes::")) for one in documents]
    return by_bytes(rows.view(np.uint8), queries.to_packed(), np.array(ids))


def by_bytes(rows, queries, ids):
    distances = np.bitwise_count(rows ^ queries[:, None]).sum(axis=2)
    return np.broadcast_to(ids, distances.shape), distances


def opened(path):
    apsw, vec = pytest.importorskip("apsw"), pytest.importorskip("sqlite_vec")
    database = apsw.Connection(str(path))
    database.enable_load_extension(True)
    database.load_extension(vec.loadable_path())
    return database


ENGINES = {
    "faiss": ("a.faiss", in_faiss),
    "sqlite-vec": ("a.db", in_sqlite),
    "usearch": ("a.usearch", in_usearch),
    "lancedb": ("a.lance", in_lancedb),
    "milvus": ("a.db", in_milvus),
    "parquet": ("a.parquet", in_duckdb),
    "arrow": ("a.arrow", in_arrow),
    "huggingface": ("a", in_datasets),
    "vespa": ("a.jsonl", in_vespa),
}
BY_ID = ("sqlite-vec", "usearch")  # that keep no order
NEEDS = {
    "sqlite-vec": ("apsw", "sqlite_vec"),
    "usearch": ("usearch",),
    "lancedb": ("lancedb",),
    "milvus": ("pymilvus", "milvus_lite"),
    "huggingface": ("datasets",),
    "faiss": ("faiss",),
    "parquet": ("pyarrow", "duckdb"),
    "arrow": ("pyarrow",),
    "vespa": (),
}


@pytest.mark.slow  # LanceDB, Milvus Lite and datasets take seconds to import
@pytest.mark.parametrize("n_bits", [104, 100])  # whole bytes, and a padded one
@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_finds_what_we_find_and_gives_everything_back(kind, n_bits, tmp_path):
    for module in NEEDS[kind]:
        pytest.importorskip(module)
    name, search = ENGINES[kind]
    codes, path = bt.Codes.from_bits(BITS[:, :n_bits]), tmp_path / name
    has_metadata = kind not in ("faiss", "usearch")
    codes.to(kind, path, ids=IDS, metadata=METADATA if has_metadata else None)
    hits = bt.FlatIndex(codes, ids=IDS).search(codes[:QUERIES], N)
    found = [
        dict(zip(ids, distances, strict=True))
        for ids, distances in zip(*map(plain, search(path, codes[:QUERIES])), strict=True)
    ]
    assert found == [dict(hit) for hit in hits.to_lists()]  # all items, at the same distances
    order = np.argsort(IDS) if kind in BY_ID else np.arange(N)
    back = store.read_items(kind, path, n_bits=n_bits)
    assert back.codes == codes[order] and back.ids.tolist() == IDS[order].tolist()
    if has_metadata:
        assert_same_metadata(back.metadata, order, is_json_text=kind == "huggingface")


def plain(rows):
    return np.asarray(rows).astype(int).tolist()


def assert_same_metadata(found, order, *, is_json_text=False):
    for row, item in zip(order, found, strict=True):
        wanted = {name: values[row] for name, values in METADATA.items()}
        if is_json_text:
            wanted["words"] = json.dumps(wanted["words"])
        assert item == {name: value for name, value in wanted.items() if value is not None}


def test_sqlite_vec_has_the_first_bit_lowest(tmp_path):
    pytest.importorskip("apsw"), pytest.importorskip("sqlite_vec")
    codes = bt.Codes.from_bits(BITS)
    codes.to("sqlite-vec", tmp_path / "a.db", name="mine")
    database = opened(tmp_path / "a.db")
    rows = database.execute("SELECT vec_to_json(vec_bit(code)) FROM mine ORDER BY id").fetchall()
    database.close()
    np.testing.assert_array_equal([json.loads(row) for (row,) in rows], BITS.astype(int))
    assert bt.Codes.from_("sqlite-vec", tmp_path / "a.db") == codes
    assert bt.Codes.from_("sqlite-vec", tmp_path / "a.db", name="mine") == codes
    with pytest.raises(bt.FileError, match=r"must have one table called 'other'.*there are mine"):
        bt.Codes.from_("sqlite-vec", tmp_path / "a.db", name="other")


def test_databases_and_folders_are_never_replaced(tmp_path):
    codes = bt.Codes.from_bits(BITS)
    for kind, name, module in (
        ("sqlite-vec", "a.db", "sqlite_vec"),
        ("huggingface", "b", "datasets"),
        ("lancedb", "c.lance", "lancedb"),
    ):
        pytest.importorskip(module)
        codes.to(kind, tmp_path / name)
        with pytest.raises(bt.FileError, match="exists already"):
            codes[:3].to(kind, tmp_path / name)
        assert bt.Codes.from_(kind, tmp_path / name) == codes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b", "c.lance"]


def test_a_failed_write_leaves_nothing(tmp_path):
    pytest.importorskip("apsw"), pytest.importorskip("sqlite_vec")
    with pytest.raises(bt.FileError, match="SQLite reports an error"):
        bt.Codes.from_bits(BITS).to("sqlite-vec", tmp_path / "a.db", name="select")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_bytes", [7, 5])  # all 40 dimensions, and 24 principal components
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner-product"])
@pytest.mark.parametrize("fitted", [False, True])
def test_faiss_estimates_what_rabitq_estimates(metric, n_bytes, fitted, tmp_path):
    faiss = pytest.importorskip("faiss")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 40)) @ rng.standard_normal((40, 40)) / 3
    X = (X + rng.standard_normal(40)).astype(np.float32)
    queries = X[:5] + rng.standard_normal((5, 40)).astype(np.float32)
    quantiser = bt.quantise.RaBitQ(n_bytes, metric=metric, fitted=fitted).fit(X[50:])
    index = bt.QuantisedIndex(quantiser, quantiser.encode(X), ids=2 * np.arange(300) + 1)
    write_faiss_rabitq(tmp_path / "a.faiss", index)
    found, ids = faiss.read_index(str(tmp_path / "a.faiss")).search(queries, 300)
    theirs = np.empty_like(found)
    np.put_along_axis(theirs, ids // 2, found, axis=1)
    ours = quantiser.distances(queries, index.stored)
    rows = quantiser._rows(queries)
    lacking = lengths(rows - quantiser.centres_)  # what FAISS does not see of the queries
    lacking -= lengths((rows - quantiser.centres_) @ quantiser.axes_)
    if metric == "inner-product":
        outside = rows - rows @ quantiser.axes_ @ quantiser.axes_.T
        theirs = -theirs - outside @ quantiser.centres_.T
    else:
        ours = np.maximum(ours * (2 if metric == "cosine" else 1) - lacking[:, None], 0)
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=2e-6 * np.abs(ours).max())
    if metric == "inner-product":
        with pytest.raises(bt.InputError, match="too little for inner products"):
            read_faiss_rabitq(tmp_path / "a.faiss", quantiser)
    else:
        back = read_faiss_rabitq(tmp_path / "a.faiss", quantiser)
        np.testing.assert_array_equal(back.stored.bytes, index.stored.bytes)
        assert back.ids.tolist() == index.ids.tolist()


def lengths(rows):
    return np.square(rows).sum(axis=1)


def test_only_rabitq_of_one_bit_goes_to_faiss(tmp_path):
    faiss = pytest.importorskip("faiss")
    X = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    path = tmp_path / "a.faiss"
    for quantiser, says in (
        (bt.quantise.RaBitQ(8, bits=2), "fit RaBitQ with bits=1 and centres=False"),
        (bt.quantise.Int8(), "FAISS has no Int8 like ours"),
    ):
        index = bt.QuantisedIndex(quantiser.fit(X), quantiser.encode(X))
        with pytest.raises(bt.InputError, match=says):
            write_faiss_rabitq(path, index)
    first, second = (bt.quantise.RaBitQ(6).fit(rows) for rows in (X[:150], X[150:]))
    write_faiss_rabitq(path, bt.QuantisedIndex(first, first.encode(X)))
    assert read_faiss_rabitq(path, first).ids.tolist() == list(range(300))
    with pytest.raises(bt.FileError, match="was written with another quantiser"):
        read_faiss_rabitq(path, second)
    faiss.write_index(faiss.IndexFlatL2(16), str(path))
    with pytest.raises(bt.FileError, match="holds no IndexRaBitQ of this quantiser"):
        read_faiss_rabitq(path, first)
