"""Hits from files of any engine, and the command that audits them."""

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import app
from bittern.engines import read_hits
from bittern.errors import FileError, InputError
from bittern.scale import Shards

RNG = np.random.default_rng(5)
ITEMS, QUERIES = (bt.Codes.from_bits(RNG.random((n, 40)) < 0.5) for n in (800, 12))
HITS = bt.FlatIndex(ITEMS).search(QUERIES, 6)


def rows(hits=HITS):
    query = np.repeat(np.arange(len(hits)), hits.sizes)
    rank = np.concatenate([np.arange(n) for n in hits.sizes])
    return query, hits.ids.ravel(), hits.distances.ravel(), rank


def write_csv(path, shuffle=False, header="query,id,distance,rank"):
    columns = rows()
    order = np.random.default_rng(0).permutation(len(columns[0])) if shuffle else slice(None)
    lines = [header, *(",".join(map(str, one)) for one in np.column_stack(columns)[order])]
    path.write_text("\n".join(lines) + "\n")
    return path


def as_npz(folder):
    np.savez(folder / "a.npz", ids=HITS.ids, distances=HITS.distances)
    return folder / "a.npz"


def as_faiss(folder):
    np.savez(folder / "f.npz", D=HITS.distances.astype(np.float32), I=HITS.ids.astype(np.uint64))
    return folder / "f.npz"


def as_flat(folder):
    lims = np.arange(0, HITS.ids.size + 1, 6, dtype=np.uint64)
    np.savez(folder / "r.npz", lims=lims, D=HITS.distances.ravel(), I=HITS.ids.ravel())
    return folder / "r.npz"


def as_parquet(folder):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = dict(zip(("qid", "id", "score", "rank"), rows(), strict=True))
    pandas.DataFrame(table).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def as_run(folder):
    query, ids, distances, rank = (column.tolist() for column in rows())
    lines = [
        f"{q} Q0 {i} {r} {-d} engine\n"
        for q, i, d, r in zip(query, ids, distances, rank, strict=True)
    ]
    (folder / "a.run").write_text("".join(lines))
    return folder / "a.run"


def as_csv(folder):
    return write_csv(folder / "a.csv", shuffle=True)


FILES = {
    "npz": as_npz,
    "faiss": as_faiss,
    "range": as_flat,
    "csv": as_csv,
    "parquet": as_parquet,
    "trec": as_run,
}


@pytest.mark.parametrize("kind", FILES)
def test_every_file_holds_the_same_hits(kind, tmp_path):
    read = read_hits(FILES[kind](tmp_path), len(QUERIES))
    sign = -1 if kind == "trec" else 1
    assert len(read) == len(HITS)
    for q in range(len(HITS)):
        (ids, values), (wanted, distances) = read[q], HITS[q]
        if kind == "trec":  # tied documents are sorted by their names
            assert sorted(zip(-values, ids, strict=True)) == sorted(
                zip(distances, wanted, strict=True)
            )
        else:
            assert ids.tolist() == wanted.tolist()
            assert (sign * values).tolist() == distances.tolist()
    found = bt.audit(QUERIES, ITEMS, read)
    assert found.is_complete and not found.unordered.any()
    assert found.reported.formula == ("-distance" if kind == "trec" else "distance")


def test_ids_alone_and_empty_places(tmp_path):
    ids = HITS.ids.astype(float)
    ids[2, 4:] = np.nan
    np.save(tmp_path / "a.npy", ids)
    read = read_hits(tmp_path / "a.npy", len(QUERIES))
    assert read.sizes.tolist() == [6, 6, 4, *[6] * 9] and np.isnan(read.distances).all()
    none = np.iinfo(np.uint64).max
    np.save(tmp_path / "b.npy", np.where(HITS.ids == HITS.ids[0, 0], none, HITS.ids.astype("u8")))
    assert read_hits(tmp_path / "b.npy", len(QUERIES)).sizes[0] == 5


def test_queries_and_items_by_their_names(tmp_path):
    names = np.array([f"item {i}" for i in range(len(ITEMS))])
    query_ids = np.arange(1000, 1012)
    query, ids, distances, _ = rows()
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["query", "id", "distance"])
    writer.writerows(zip(query_ids[query], names[ids], distances, strict=True))
    path = tmp_path / "a.csv"
    path.write_text(text.getvalue() + "1003,nobody,4\n")
    read = read_hits(path, len(QUERIES), query_ids=query_ids, names=names)
    assert read[0][0].tolist() == HITS[0][0].tolist()
    assert bt.audit(QUERIES, ITEMS, read, k=7).unknown.tolist() == [0, 0, 0, 1, *[0] * 8]
    with pytest.raises(FileError, match="hits of query 1000, but there are queries 0 to 11"):
        read_hits(path, len(QUERIES), names=names)
    with pytest.raises(InputError, match="must be whole numbers, got 'item"):
        read_hits(path, len(QUERIES), query_ids=query_ids)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,distance\n0,1\n", "has no column 'id'"),
        ("query,id,distance\n0,1,far\n", "'distance' must be numbers"),
        ("query,id\n0.5,1\n", "must be whole numbers, got fractions"),
        ("1,2,3\n4,5,6\n", "2 lists of hits for 12 queries"),
        ("a,b\n1,2\n", "has no hits; they are arrays 'ids' and 'distances'"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises((FileError, InputError), match=said):
        read_hits(tmp_path / "a.csv", 12)


def run(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)])


@pytest.fixture
def files(tmp_path):
    QUERIES.save(tmp_path / "queries.npz")
    ITEMS.save(tmp_path / "items.npz")
    damaged = HITS.ids.copy()
    damaged[4] = np.argmax(ITEMS.to_bits().sum(axis=1))  # one wrong item, six times
    np.savez(tmp_path / "damaged.npz", ids=damaged, distances=HITS.distances)
    return tmp_path


def test_the_command_says_one_sentence_and_a_table(files):
    good = run(files / "queries.npz", files / "items.npz", as_npz(files), "--fail-under", 1)
    assert good.exit_code == 0
    assert good.output.startswith("Nothing is lost: the 6 nearest of 12 queries are found")
    asked = files / "queries.npz", files / "items.npz", files / "damaged.npz"
    bad = run(*asked, "--worst", 1)
    assert bad.exit_code == 0
    assert "query 4 is the worst" in bad.output.splitlines()[0]
    assert bad.output.splitlines()[-1].split()[:2] == ["4", "6"]
    assert run(*asked, "--fail-under", "0.99").exit_code == 1
    assert run(*asked, "--fail-under", "0.5").exit_code == 0


def test_json_and_csv_have_the_numbers_of_python(files):
    asked = files / "queries.npz", files / "items.npz", files / "damaged.npz"
    found = bt.audit(QUERIES, ITEMS, files / "damaged.npz")
    told = json.loads(run(*asked, "--format", "json").output)
    assert told["recall"] == found.means["recall"] < 1
    assert [row["query"] for row in told["worst"]] == found.worst(5).tolist() == [4]
    listed = list(csv.DictReader(io.StringIO(run(*asked, "--format", "csv").output)))
    assert [float(row["recall"]) for row in listed] == found.recall.tolist()


def test_shards_collections_vectors_and_ids_are_databases(files):
    queries, hits = files / "queries.npz", as_npz(files)
    Shards.create(files / "shards", ITEMS, shard_size=300)
    with bt.store.create(files / "a.bittern", 40) as collection:
        collection.add(ITEMS)
    bt.MultiIndex(ITEMS).save(files / "index.npz")
    for database in ("shards", "a.bittern", "index.npz"):
        assert "Nothing is lost" in run(queries, files / database, hits).output
    np.savez(files / "named.npz", codes=ITEMS.to_bits(), ids=np.arange(800) + 5)
    named = files / "named.npz"
    assert "Nothing is lost" not in run(queries, named, hits).output
    assert "Nothing is lost" in run(queries, named, hits, "--positions").output
    vectors = np.random.default_rng(0).standard_normal((50, 4))
    np.save(files / "v.npy", vectors)
    near = np.argsort(((vectors[:, None] - vectors) ** 2).sum(axis=2), axis=1)[:, :3]
    np.save(files / "near.npy", near)
    told = run(files / "v.npy", files / "v.npy", files / "near.npy", "--metric", "euclidean")
    assert "Nothing is lost: the 3 nearest of 50 queries are found.\n" in told.output


def test_queries_by_their_ids_on_the_command_line(files):
    np.savez(files / "asked.npz", codes=QUERIES.to_bits(), ids=np.arange(100, 112))
    query, ids, distances, _ = rows()
    lines = [f"{q + 100},{i},{d}" for q, i, d in zip(query, ids, distances, strict=True)]
    (files / "a.csv").write_text("\n".join(["query,id,distance", *lines]) + "\n")
    told = run(files / "asked.npz", files / "items.npz", files / "a.csv", "--query-ids")
    assert told.output.startswith("Nothing is lost")
    bad = run(files / "queries.npz", files / "items.npz", files / "a.csv", "--query-ids")
    assert isinstance(bad.exception, InputError) and "leave out --query-ids" in str(bad.exception)
