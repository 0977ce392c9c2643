"""Audits of real engines: FAISS, usearch, PostgreSQL with pgvector, Milvus Lite.

Approximate engines are held to bounds only, and must be seen to lose what they lose.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from postgres_server import postgres_place

import bittern as bt

N, N_BITS, K = 2000, 64, 10


@pytest.fixture(scope="module")
def case():
    """Clustered codes, as an engine would meet them."""
    rng = np.random.default_rng(0)
    centres = rng.random((40, N_BITS)) < 0.5
    flips = rng.random((N + 25, N_BITS)) < 0.12
    codes = bt.Codes.from_bits(centres[rng.integers(40, size=N + 25)] ^ flips)
    return codes[N:], codes[:N]


def flat_answer(case):
    return bt.FlatIndex(case[1]).search(case[0], K)


def search_faiss(case, kind):
    faiss = pytest.importorskip("faiss")
    queries, items = case
    faiss.omp_set_num_threads(1)
    if kind == "flat":
        index = faiss.IndexBinaryFlat(N_BITS)
    elif kind == "hnsw":
        index = faiss.IndexBinaryHNSW(N_BITS, 4)
        index.hnsw.efConstruction, index.hnsw.efSearch = 10, 10
    else:
        index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(N_BITS), N_BITS, 100)
        index.cp.min_points_per_centroid = 1
        index.train(items.to_packed())
        index.nprobe = 1
    index.add(items.to_packed())
    return index, *index.search(queries.to_packed(), K)[::-1]


def test_faiss_flat_loses_nothing_though_its_ids_differ(case):
    _, ids, distances = search_faiss(case, "flat")
    found = bt.audit(*case, (ids, distances))
    assert found.is_complete and found.reported.are_right and not found.unordered.any()
    assert found.means["worst_recall"] < found.means["expected_recall"] < 1  # there are ties


@pytest.mark.parametrize(("kind", "least"), [("hnsw", 0.3), ("ivf", 0.2)])
def test_approximate_indexes_of_faiss_lose_items_and_say_true_distances(case, kind, least):
    index, ids, distances = search_faiss(case, kind)
    found = bt.audit(*case, (ids, distances))
    assert least < found.means["recall"] < 1
    assert found.reported.are_right and not found.repeated.any() and not found.unknown.any()
    by_hand = [
        sum(np.sort(d)[: len(t)] <= t[-1])  # returned items that are near enough
        for d, t in zip(distances, flat_answer(case).distances, strict=True)
    ]
    assert (found.found <= by_hand).all() and found.lost.sum() > 0
    if kind == "ivf":
        index.nprobe = 100  # all of it: exact
        again = index.search(case[0].to_packed(), K)[::-1]
        assert bt.audit(*case, again).is_complete


def test_a_range_search_of_faiss_is_strict(case):
    # Trap 19.
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexBinaryFlat(N_BITS)
    index.add(case[1].to_packed())
    radius = int(flat_answer(case).distances[:, 4].max())
    found = []
    for asked in (radius, radius + 1):
        lims, distances, ids = index.range_search(case[0].to_packed(), asked)
        hits = bt.Hits(ids, distances.astype(np.float64), lims.astype(np.int64))
        found.append(bt.audit(*case, hits, radius=radius))
    strict, right = found
    assert strict.is_strict and not strict.is_complete
    assert right.is_complete and right.reported.are_right and not right.farther.any()


def test_usearch_is_exact_if_asked_and_near_it_otherwise(case):
    usearch = pytest.importorskip("usearch.index")
    index = usearch.Index(ndim=N_BITS, metric="hamming", dtype="b1", connectivity=4)
    index.add(np.arange(N), case[1].to_packed(), threads=1)
    exact, near = (
        index.search(case[0].to_packed(), K, exact=how, threads=1) for how in (True, False)
    )
    found = bt.audit(*case, (exact.keys, exact.distances))
    assert found.is_complete and found.reported.are_right
    found = bt.audit(*case, (near.keys, near.distances))
    assert 0.3 < found.means["recall"] <= 1 and found.reported.are_right


@pytest.mark.slow  # a server starts
def test_pgvector_and_its_hnsw(case, tmp_path):
    place = postgres_place("x").partition("?")[0]  # skips if there is no server
    psycopg = pytest.importorskip("psycopg")
    rows = ["".join(map(str, row)) for row in case[1].to_bits().astype(int)]
    asked = ["".join(map(str, row)) for row in case[0].to_bits().astype(int)]
    with psycopg.connect(place, autocommit=True) as database:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector")
        database.execute(f"CREATE TABLE audited (id int PRIMARY KEY, code bit({N_BITS}))")
        with database.cursor().copy("COPY audited FROM STDIN") as copy:
            for i, bits in enumerate(rows):
                copy.write_row((i, bits))

        def search():
            sql = f"SELECT id, code <~> %s::bit({N_BITS}) AS d FROM audited ORDER BY d LIMIT {K}"
            found = [database.execute(sql, (bits,)).fetchall() for bits in asked]
            whole = [rows + [(-1, 0)] * (K - len(rows)) for rows in found]  # HNSW may find fewer
            return tuple(np.array(whole).transpose(2, 0, 1))

        exact = bt.audit(*case, search())
        rows_of_page(database, asked, tmp_path / "hits.csv")
        by_page = bt.audit(*case, tmp_path / "hits.csv")
        database.execute(
            "CREATE INDEX ON audited USING hnsw (code bit_hamming_ops) "
            "WITH (m = 2, ef_construction = 4)"
        )
        database.execute("SET hnsw.ef_search = 10")
        database.execute("SET enable_seqscan = off")
        near = bt.audit(*case, search())
        database.execute("DROP TABLE audited")
    assert exact.is_complete and exact.reported.are_right
    assert by_page.is_complete and by_page.reported.are_right and by_page.k == K
    assert 0.02 < near.means["recall"] < 1 and near.reported.are_right


def rows_of_page(database, asked, path):
    """Write the hits by the statement of docs/audit.md, with tables of its names."""
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    (sql,) = re.findall(r"```sql\n(.*?);\n```", page, re.DOTALL)
    database.execute(f"CREATE TEMP TABLE queries (id int, code bit({N_BITS}))")
    database.execute("CREATE TEMP VIEW items AS SELECT * FROM audited")
    for i, bits in enumerate(asked):
        database.execute(f"INSERT INTO queries VALUES (%s, %s::bit({N_BITS}))", (i, bits))
    with database.cursor().copy(sql.replace("'/tmp/hits.csv'", "STDOUT")) as copy:
        path.write_bytes(b"".join(copy))
    database.execute("DROP VIEW items")


@pytest.mark.slow  # Milvus Lite takes seconds to import
def test_milvus_lite_finds_everything_and_its_radius_is_strict(case, tmp_path):
    pymilvus = pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    case[1].to("milvus", tmp_path / "a.db")
    client = pymilvus.MilvusClient(str(tmp_path / "a.db"))
    client.load_collection("codes")
    asked = [row.tobytes() for row in case[0].to_packed("little")]
    radius = int(flat_answer(case).distances[:, 4].max())

    def search(limit, **bounds):
        parameters = {"metric_type": "HAMMING", "params": bounds}
        found = client.search(
            "codes", asked, limit=limit, anns_field="code", search_params=parameters
        )
        sizes = [len(one) for one in found]
        pairs = [(hit["id"], hit["distance"]) for one in found for hit in one]
        ids, distances = np.array(pairs).T
        return bt.Hits(ids.astype(np.int64), distances, np.cumsum([0, *sizes]))

    nearest = bt.audit(*case, search(K))
    strict = bt.audit(*case, search(N, radius=radius, range_filter=0), radius=radius)
    right = bt.audit(*case, search(N, radius=radius + 1, range_filter=0), radius=radius)
    client.close()
    assert nearest.is_complete and nearest.reported.are_right
    assert strict.is_strict and right.is_complete
