"""``bittern shards``, and ``bittern evaluate --shards``, as a user types them."""

import numpy as np
import pytest

import bittern as bt


@pytest.fixture
def run_cli(run):
    """What a command prints; it must succeed."""

    def call(*words):
        code, printed, complaint = run(*words)
        assert code == 0, complaint
        return printed

    return call


@pytest.fixture
def fail_cli(run):
    """What a command says when it fails, without a traceback."""

    def call(*words, code=2):
        found, printed, complaint = run(*words)
        assert found == code
        assert "Traceback" not in complaint
        return printed + complaint

    return call


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels, vectors = rng.integers(0, 4, 300), rng.standard_normal((300, 8)).astype(np.float32)
    hasher = bt.hashing.ITQ(8, random_state=0).fit(vectors)
    hasher.save("itq.npz")
    np.savez("vectors.npz", vectors=vectors[20:], labels=labels[20:])
    np.savez("query-vectors.npz", vectors=vectors[:20])
    for name, rows in (("queries", slice(0, 20)), ("database", slice(20, 300))):
        codes = hasher.encode(vectors[rows])
        np.savez(f"{name}.npz", words=codes.words, n_bits=8, labels=labels[rows])
    return tmp_path


def test_shards_from_codes_give_the_same_table(files, run_cli):
    made = run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "100")
    assert made == "db: 3 shards of 280 items: codes of 8 bits, labels.\n"
    whole = run_cli("evaluate", "queries.npz", "database.npz", "--format", "csv")
    for more in ((), ("--processes", "2")):
        assert (
            run_cli("evaluate", "queries.npz", "--shards", "db", "--format", "csv", *more) == whole
        )
    assert "280" in run_cli("shards", "info", "db")
    assert run_cli("shards", "verify", "db") == "db: 3 shards are as written.\n"


def test_vectors_are_encoded_shard_by_shard(files, run_cli):
    run_cli("shards", "create", "db", "--from", "vectors.npz", "--vectors", "--shard-size", "64")
    assert "codes of 8 bits" in run_cli("shards", "encode", "db", "itq.npz")
    near = ("--query-vectors", "query-vectors.npz", "--neighbours", "5", "--format", "csv")
    whole = run_cli(
        "evaluate", "queries.npz", "database.npz", *near, "--database-vectors", "vectors.npz"
    )
    assert run_cli("evaluate", "queries.npz", "--shards", "db", *near) == whole


def test_a_flipped_byte_is_found(files, run_cli, fail_cli):
    run_cli("shards", "create", "db", "--from", "database.npz", "--shard-size", "100")
    path = files / "db" / "000002.labels.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "labels of shard 000002 are damaged" in fail_cli("shards", "verify", "db", code=1)
    assert "shard 000002" in fail_cli("evaluate", "queries.npz", "--shards", "db")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shards", "nowhere"), "is not a sharded database"),
        (("--processes", "2"), "are for --shards"),
        (("database.npz", "--shards", "db"), "takes the place of DATABASE"),
        (("--shards", "db", "--database-labels", "x.npy"), "is not for --shards"),
        (("--shards", "db", "--processes", "2", "--dask", "tcp://x:1"), "not both"),
        (("--shards", "db", "--query-tags", "queries.npz"), "tags"),
    ],
)
def test_wrong_options_say_so(files, run_cli, fail_cli, words, message):
    run_cli("shards", "create", "db", "--from", "database.npz")
    assert message in fail_cli("evaluate", "queries.npz", *words)
