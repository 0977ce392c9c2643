"""Sharded databases: written, resumed, verified; and the same answers as one machine's."""

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import bittern as bt
from bittern.scale import evaluating
from bittern.scale.shards import MANIFEST

N, Q = 1000, 20


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    vectors = rng.integers(0, 9, (N, 6)).astype(np.float32)
    return {
        "codes": bt.Codes.from_bits(rng.integers(0, 2, (N, 12))),  # few bits, many ties
        "labels": rng.integers(0, 5, N),
        "tags": rng.integers(0, 2, (N, 7)),
        "vectors": vectors,
        "ids": np.sort(rng.choice(10 * N, N, replace=False)),
    }


@pytest.fixture(scope="module")
def asked(data):
    rng = np.random.default_rng(1)
    return {
        "codes": bt.Codes.from_bits(rng.integers(0, 2, (Q, 12))),
        "labels": rng.integers(0, 6, Q),
        "tags": rng.integers(0, 2, (Q, 7)),
        "vectors": rng.integers(0, 9, (Q, 6)).astype(np.float32),
    }


def made(folder, data, size=300, **changes):
    parts = {**data, **changes}
    return bt.scale.Shards.create(folder, parts.pop("codes"), shard_size=size, **parts)


def truths(data, asked):
    yield (
        bt.scale.Classes(asked["labels"]),
        bt.Relevance.from_classes(asked["labels"], data["labels"]),
    )
    for graded in (False, True):
        yield (
            bt.scale.Tags(asked["tags"], graded),
            bt.Relevance.from_tags(asked["tags"], data["tags"], graded),
        )
    yield (
        bt.scale.Balls(asked["vectors"], [3, 6], [2, 1]),
        bt.Relevance.from_thresholds(asked["vectors"], data["vectors"], [3, 6], [2, 1]),
    )
    yield (
        bt.scale.Neighbours(asked["vectors"], 25),
        bt.Relevance.from_neighbours(asked["vectors"], data["vectors"], 25),
    )


@pytest.mark.parametrize("size", [300, 5000])
def test_every_ground_truth_gives_the_profile_of_one_machine(tmp_path, data, asked, size):
    shards = made(tmp_path / "db", data, size)
    for over_shards, whole in truths(data, asked):
        expected = bt.TieProfile.from_codes(asked["codes"], data["codes"], whole)
        for relevance in (over_shards, whole):
            assert bt.scale.profile(asked["codes"], shards, relevance) == expected
        scores = bt.scale.evaluate(asked["codes"], tmp_path / "db", over_shards, ["ap", "ndcg"])
        for name in ("ap", "ndcg"):
            wanted = bt.evaluate(expected, [name])[name].per_query
            np.testing.assert_array_equal(scores[name].per_query, wanted)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors_give_the_same_answers(tmp_path, data, asked, pool):
    shards = made(tmp_path / "db", data)
    whole = bt.Relevance.from_classes(asked["labels"], data["labels"])
    with pool(2) as executor:
        found = bt.scale.profile(
            asked["codes"], shards, bt.scale.Classes(asked["labels"]), executor=executor
        )
        hits = bt.scale.search(asked["codes"], shards, k=40, executor=executor)
    assert found == bt.TieProfile.from_codes(asked["codes"], data["codes"], whole)
    expected = bt.FlatIndex(data["codes"], ids=data["ids"]).search(asked["codes"], 40)
    np.testing.assert_array_equal(hits.ids, expected.ids)
    np.testing.assert_array_equal(hits.distances, expected.distances)


@pytest.mark.parametrize("size", [70, 333, 1000])
@pytest.mark.parametrize("with_ids", [True, False])
def test_a_search_does_not_depend_on_how_the_database_was_cut(
    tmp_path, data, asked, size, with_ids
):
    ids = data["ids"] if with_ids else None
    shards = bt.scale.Shards.create(tmp_path / "db", data["codes"], ids=ids, shard_size=size)
    index = bt.FlatIndex(data["codes"], ids=ids)
    for k in (1, 30, 2 * N):
        hits, expected = (
            bt.scale.search(asked["codes"], shards, k),
            index.search(asked["codes"], k),
        )
        np.testing.assert_array_equal(hits.ids, expected.ids)
        np.testing.assert_array_equal(hits.distances, expected.distances)
    near, expected = (
        bt.scale.search(asked["codes"], shards, radius=3),
        index.within(asked["codes"], 3),
    )
    assert near.to_lists() == expected.to_lists()


def test_ground_truth_for_other_queries_is_refused_before_any_shard_is_read(tmp_path, data, asked):
    shards = made(tmp_path / "db", data)
    for truth, message in (
        (bt.scale.Classes(asked["labels"][1:]), "20 queries, but labels for 19"),
        (bt.scale.Tags(asked["tags"][1:].tolist()), "20 queries, but tags for 19"),
        (bt.scale.Neighbours(asked["vectors"][1:], 3), "20 queries, but vectors for 19"),
    ):
        with pytest.raises(bt.InputError, match=rf"scale: there are {message} of them\."):
            bt.scale.evaluate(asked["codes"], shards, truth)
    with pytest.raises(bt.InputError, match="shard 000000: "):
        bt.scale.evaluate(asked["codes"], shards, bt.scale.Classes(3))


def test_an_evaluation_that_was_stopped_goes_on(tmp_path, data, asked, monkeypatch):
    shards, truth = made(tmp_path / "db", data), bt.scale.Classes(asked["labels"])
    expected = bt.scale.profile(asked["codes"], shards, truth)
    counted, real = [], evaluating._profile_of

    def stops(task):
        if len(counted) == 2:
            raise KeyboardInterrupt
        counted.append(task[1].name)
        return real(task)

    monkeypatch.setattr(evaluating, "_profile_of", stops)
    arguments = {"partial": tmp_path / "partial"}
    with pytest.raises(KeyboardInterrupt):
        bt.scale.profile(asked["codes"], shards, truth, **arguments)
    assert len(list((tmp_path / "partial").glob("*/*.npz"))) == 2
    monkeypatch.setattr(evaluating, "_profile_of", lambda t: counted.append(t[1].name) or real(t))
    assert bt.scale.profile(asked["codes"], shards, truth, **arguments) == expected
    assert sorted(counted) == [shard.name for shard in shards]  # none was counted twice
    assert not (tmp_path / "partial").exists()


@pytest.mark.parametrize("n_others", [Q, Q - 1])
def test_evaluations_at_the_same_time_do_not_disturb_each_other(
    tmp_path, data, asked, monkeypatch, n_others
):
    shards, real, begun = made(tmp_path / "db", data), evaluating._profile_of, []

    def evaluated(n):
        truth = bt.scale.Classes(asked["labels"][:n])
        return bt.scale.profile(asked["codes"][:n], shards, truth, partial=tmp_path / "partial")

    def meanwhile(task):
        begun.append(task[1].name)
        if len(begun) == 3:  # another one, the same or with other queries, begins and ends
            evaluated(n_others)
        return real(task)

    expected = evaluated(Q)
    monkeypatch.setattr(evaluating, "_profile_of", meanwhile)
    assert evaluated(Q) == expected
    assert not (tmp_path / "partial").exists()


@pytest.mark.parametrize("n_shards", [1, 2, 5, 7, 8, 13])
def test_the_shape_of_a_sum_does_not_depend_on_which_shard_is_done_first(n_shards):
    class Term(str):  # says how it was added up
        def __add__(self, other):
            return Term(f"({self}{other})")

    rng = np.random.default_rng(n_shards)
    orders = [np.arange(n_shards), *(rng.permutation(n_shards) for _ in range(5))]
    found = set()
    for order in orders:
        total = evaluating._Sum(n_shards)
        for place in order[:-1].tolist():
            total.add(place, Term("abcdefghijklm"[place]))
            assert total.whole is None
        total.add(int(order[-1]), Term("abcdefghijklm"[order[-1]]))
        found.add(total.whole)
    assert len(found) == 1
    if n_shards == 5:
        assert found == {"(((ab)(cd))e)"}


def test_partial_sums_of_other_queries_are_not_used(tmp_path, data, asked, monkeypatch):
    shards = made(tmp_path / "db", data)
    monkeypatch.setattr(evaluating._Partial, "remove", lambda self: None)
    for rows in (slice(0, 10), slice(10, 20)):
        labels = asked["labels"][rows]
        found = bt.scale.profile(
            asked["codes"][rows], shards, bt.scale.Classes(labels), partial=tmp_path / "partial"
        )
        whole = bt.Relevance.from_classes(labels, data["labels"])
        assert found == bt.TieProfile.from_codes(asked["codes"][rows], data["codes"], whole)


def test_writing_goes_on_after_a_stop(tmp_path, data, monkeypatch):
    from bittern.scale import shards as module

    real, calls = module._written, []

    def stops(*arguments):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(arguments[1])
        return real(*arguments)

    monkeypatch.setattr(module, "_written", stops)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "db", data)
    monkeypatch.setattr(module, "_written", real)
    with pytest.raises(bt.FileError, match="is not finished"):
        bt.scale.Shards.open(tmp_path / "db")
    other = {"labels": data["labels"] + 1}
    with pytest.raises(bt.InputError, match="the beginning of another database"):
        made(tmp_path / "db", data, **other)
    resumed = made(tmp_path / "db", data)
    assert resumed.verify() == []
    whole = made(tmp_path / "again", data)
    assert [s.files for s in resumed] == [s.files for s in whole]
    with pytest.raises(bt.InputError, match="has a sharded database already"):
        made(tmp_path / "db", data)


def test_a_damaged_or_missing_shard_is_named(tmp_path, data, asked):
    truth = bt.scale.Classes(asked["labels"])
    made(tmp_path / "db", data)
    path = tmp_path / "db" / "000001.codes.npy"
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[-5] ^= 1
    for content, message in (
        (bytes(flipped), "codes of shard 000001 are damaged"),
        (good[:-1], "should have"),
        (None, "No such file"),
    ):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        shards = bt.scale.Shards.open(tmp_path / "db")
        with pytest.raises(bt.FileError, match=f"shard 000001: .*{message}"):
            bt.scale.evaluate(asked["codes"], shards, truth, ["ap"])
        (problem,) = shards.verify()
        assert message in problem
        path.write_bytes(good)
    assert bt.scale.Shards.open(tmp_path / "db").verify() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_items": 5}, "promises 5 items"),
        ({"version": 9}, "newer version"),
        ({"shards": 3}, "manifest of shards"),
        ({"shards": [{"name": "../x", "n": 1, "files": {}}]}, "files that no shard has"),
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, data, change, message):
    made(tmp_path / "db", data)
    path = tmp_path / "db" / MANIFEST
    manifest = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps(manifest))
    is_newer = "version" in change
    with pytest.raises(bt.FileError, match=message if is_newer else "its checksum differs"):
        bt.scale.Shards.open(tmp_path / "db")
    del manifest["checksum"]  # as in earlier manifests
    path.write_text(json.dumps(manifest))
    with pytest.raises(bt.FileError, match=message):
        bt.scale.Shards.open(tmp_path / "db")


def test_encoding_where_the_vectors_are(tmp_path, data):
    hasher = bt.hashing.ITQ(6, random_state=0).fit(data["vectors"])
    hasher.save(tmp_path / "itq.npz")
    made(tmp_path / "db", data, codes=None)
    with pytest.raises(bt.InputError, match="have no codes"):
        bt.scale.search(hasher.encode(data["vectors"][:2]), tmp_path / "db", 3)
    encoded = bt.scale.encode(tmp_path / "itq.npz", tmp_path / "db")
    assert encoded.n_bits == 6
    assert bt.scale.Shards.open(tmp_path / "db").made_by["hasher"] == "itq.npz"
    words = np.concatenate([shard.codes.words for shard in encoded])
    np.testing.assert_array_equal(words, hasher.encode(data["vectors"]).words)
    before = (tmp_path / "db" / "000000.codes.npy").stat().st_mtime_ns
    bt.scale.encode(tmp_path / "itq.npz", tmp_path / "db")  # nothing is left to do
    assert (tmp_path / "db" / "000000.codes.npy").stat().st_mtime_ns == before
    bt.hashing.LSH(6, random_state=1).fit(data["vectors"]).save(tmp_path / "lsh.npz")
    with pytest.raises(bt.InputError, match="codes of another hasher"):
        bt.scale.encode(tmp_path / "lsh.npz", tmp_path / "db")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, q: bt.scale.search(q, s), "pass k or radius"),
        (lambda s, q: bt.scale.search(q, s, 3, 2), "pass k or radius"),
        (lambda s, q: bt.scale.search(bt.Codes.from_bits([[1]]), s, 3), "have 1 bits"),
        (lambda s, q: bt.scale.search(q, s, 3, executor=7), "executor must be"),
        (
            lambda s, q: bt.scale.evaluate(q, s, bt.Relevance.from_classes([1], [1])),
            "1 queries by 1 items",
        ),
        (lambda s, q: bt.scale.evaluate(q, s, bt.scale.Neighbours(np.ones((Q, 6)), N + 1)), "most"),
    ],
)
def test_wrong_calls_say_so(tmp_path, data, asked, call, message):
    shards = made(tmp_path / "db", data)
    with pytest.raises(bt.InputError, match=message):
        call(shards, asked["codes"])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"codes": None, "vectors": None}, "codes or vectors"),
        ({"labels": [1, 2]}, "codes and labels"),
        ({"ids": np.arange(N)[::-1]}, "ascend"),
        ({"ids": np.arange(N) - 1}, "negative"),
        ({"vectors": np.ones(N)}, "2-D"),
    ],
)
def test_wrong_parts_are_refused_before_anything_is_written(tmp_path, data, parts, message):
    with pytest.raises(bt.InputError, match=message):
        made(tmp_path / "db", data, **parts)
    assert not (tmp_path / "db").exists()
