"""What every collection promises, in a file and on Milvus."""

import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from places import STORES, new_place, random_codes
from processes import seconds

import bittern as bt
from bittern.errors import FileError, InputError, MissingExtraError

N_BITS = 12  # few, so that there are many ties
CODES = random_codes(300, N_BITS)
QUERIES = bt.Codes.concatenate([CODES[:2], random_codes(6, N_BITS, random_state=1)])
ITEMS = [
    {"label": ["cat", "dog", "it's"][i % 3], "year": 1990 + i % 40, "share": i / 8}
    | ({"tags": ["wild", "old"][: i % 3], "is_good": i % 2 == 0} if i % 5 else {})
    for i in range(len(CODES))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("collections")


@pytest.fixture(scope="module", params=STORES)
def filled(request, folder):
    """A collection that tests only read."""
    with bt.store.create(new_place(request.param, folder), N_BITS) as collection:
        collection.add(CODES[:100], metadata=ITEMS[:100])
        collection.add(CODES[100:], metadata=ITEMS[100:])
        yield collection


@pytest.fixture(params=STORES)
def place(request, folder):
    return new_place(request.param, folder)


@pytest.fixture
def empty(place):
    with bt.store.create(place, N_BITS) as collection:
        yield collection


def nearest_by_hand(queries, codes, ids, k=None, radius=None):
    """Pairs of id and distance by the definition: by distance, then by place."""
    answers = []
    for query in queries.to_bits():
        apart = [int(np.sum(query != code)) for code in codes.to_bits()]
        ranked = sorted(
            (d, place) for place, d in enumerate(apart) if radius is None or d <= radius
        )
        answers.append([(int(ids[place]), d) for d, place in ranked[:k]])
    return answers


@pytest.mark.parametrize("k", [1, 7, 299, 1000])
def test_search_finds_the_nearest_with_ties_in_the_order_of_adding(filled, k):
    hits = filled.search(QUERIES, k)
    assert hits.to_lists() == nearest_by_hand(QUERIES, CODES, range(300), k=k)
    assert hits.ids.shape == (8, min(k, 300))


@pytest.mark.parametrize("radius", [0, 2, N_BITS, 1000])
def test_within_finds_all_in_the_radius(filled, radius):
    expected = nearest_by_hand(QUERIES, CODES, range(300), radius=radius)
    assert filled.within(QUERIES, radius).to_lists() == expected
    assert any(expected)


# In SQL an item without a year is neither in 1990 nor out of it.
CONDITIONS = {
    "label = 'cat'": lambda item: item["label"] == "cat",
    "label = 'it''s'": lambda item: item["label"] == "it's",
    "label <> 'cat' AND year >= 2020": lambda item: item["label"] != "cat" and item["year"] >= 2020,
    "year IN (1990, 1995) OR year BETWEEN 2001 AND 2003": lambda item: (
        item["year"] in (1990, 1995, 2001, 2002, 2003)
    ),
    "NOT (label = 'cat' OR share < 12.5)": lambda item: (
        item["label"] != "cat" and item["share"] >= 12.5
    ),
    "label LIKE 'd%'": lambda item: item["label"].startswith("d"),
    "is_good = TRUE": lambda item: item.get("is_good") is True,
    "is_good <> TRUE": lambda item: item.get("is_good") is False,
    "NOT is_good = FALSE": lambda item: item.get("is_good") is True,
    '"year" NOT IN (1990, 1991)': lambda item: item["year"] not in (1990, 1991),
    "label = 'nothing'": lambda item: False,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_applies_inside_the_search(filled, where):
    rows = [i for i, item in enumerate(ITEMS) if CONDITIONS[where](item)]
    assert filled.count(where) == len(rows)
    assert rows or where == "label = 'nothing'"
    hits = filled.search(QUERIES, 9, where=where)
    assert hits.to_lists() == nearest_by_hand(QUERIES, CODES[rows], rows, k=9)
    near = filled.within(QUERIES, 3, where=where)
    assert near.to_lists() == nearest_by_hand(QUERIES, CODES[rows], rows, radius=3)


def test_a_condition_on_ids(filled):
    assert filled.count("id < 10 OR id = 299") == 11


def test_get_gives_what_was_added_in_the_order_asked(filled):
    items = filled.get([250, 3, 250])
    assert items.ids.tolist() == [250, 3, 250]
    assert items.codes == CODES[[250, 3, 250]]
    assert items.metadata == [ITEMS[250], ITEMS[3], ITEMS[250]]


def test_info_tells_size_and_place(filled):
    info = filled.info()
    assert (info["n_items"], info["n_bits"], info["hasher"]) == (300, N_BITS, None)
    assert info["place"] in repr(filled) and "300 codes of 12 bits" in repr(filled)


def test_export_holds_every_item(filled, tmp_path):
    import pyarrow.parquet

    filled.export(tmp_path / "all.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "all.parquet").to_pydict()
    assert table["id"] == list(range(300))
    assert table["word_0"] == CODES.words[:, 0].tolist()
    assert table["label"] == [item["label"] for item in ITEMS]
    assert table["tags"] == [item.get("tags") for item in ITEMS]
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]


def nested(depth):
    """A list in a list in a list, so many times."""
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda c: c.add(CODES[:2], ids=[400, 299]), "the id 299 exists already; upsert"),
        (lambda c: c.add(CODES[:3], ids=[401, 400, 401]), "distinct, 401 is repeated"),
        (lambda c: c.add(CODES[:2], ids=[-1, 5]), "at least 0, got -1"),
        (lambda c: c.add(CODES[:2], ids=[1]), "ids and of items must agree, got 1 and 2"),
        (lambda c: c.add(CODES[:1], ids=["a"]), "put other names into the metadata"),
        (lambda c: c.add(random_codes(2, 16)), "must have the 12 bits of the collection, got 16"),
        (lambda c: c.add(np.zeros((2, 12))), "must be Codes, as this collection has no hasher"),
        (lambda c: c.add(CODES[:2], metadata=[{}]), "must agree, got 1 and 2"),
        (lambda c: c.add(CODES[:1], metadata={"a": "x"}), "'a' must be a list of one value"),
        (lambda c: c.add(CODES[:1], metadata=[{"id": 3}]), "not be one of code, id, position"),
        (lambda c: c.add(CODES[:1], metadata=[{"a b": 3}]), "letters, digits and _"),
        (lambda c: c.add(CODES[:1], metadata=[{"a": 1, "A": 2}]), "differ by more than case"),
        (lambda c: c.add(CODES[:1], metadata=[{"a": {1j}}]), "'a' must be numbers, strings"),
        (lambda c: c.add(CODES[:1], metadata=[{"a": "\udcff"}]), "'a' must be text"),
        (lambda c: c.add(CODES[:1], metadata=[{"a": ["\udcff"]}]), "'a' must be text"),
        (
            lambda c: c.add(CODES[:1], metadata=[{"a": 10**400}]),
            r"'a' must be at most 1.79769e\+308",
        ),
        (lambda c: c.add(CODES[:1], metadata=[{"a": nested(101)}]), "nested at most 100 deep"),
        (lambda c: c.add(CODES[:1], metadata=[{"a": nested(9999)}]), "nested at most 100 deep"),
        (lambda c: c.search(random_codes(1, 8), 3), "12 bits of the collection, got 8"),
        (lambda c: c.search(QUERIES, 0), "k must be at least 1, got 0"),
        (lambda c: c.within(QUERIES, -1), "radius must be at least 0"),
        (lambda c: c.search(QUERIES, 3, where=" "), "where must be a condition like"),
        (lambda c: c.count("label = "), "where must be"),
        (lambda c: c.get([3, 777]), "no item has the id 777"),
        (lambda c: c.delete([3, 777]), "no item has the id 777"),
        (lambda c: c.delete(), "takes either ids or where"),
        (lambda c: c.delete([1], where="id = 1"), "takes either ids or where"),
    ],
)
def test_bad_input_says_what_rule_it_broke_and_changes_nothing(filled, call, says):
    with pytest.raises(InputError, match=says):
        call(filled)
    assert len(filled) == filled.count("id >= 0") == 300


def test_writes_of_all_kinds_are_in_the_hits_and_survive_closing(place):
    with bt.store.create(place, N_BITS) as collection:
        assert collection.add(CODES[:50], metadata=ITEMS[:50]).tolist() == list(range(50))
        assert collection.add(CODES[50:52], ids=[700, 60]).tolist() == [700, 60]
        assert collection.add(CODES[52:53]).tolist() == [701]
        collection.upsert(CODES[53:55], ids=[3, 90], metadata=[{"label": "new"}, {}])
        assert collection.delete([0, 49, 49]) == 2
        assert collection.delete(where="label = 'dog'") == 16
        ids = [i for i in range(50) if i not in (0, 3, 49) and ITEMS[i]["label"] != "dog"]
        rows, ids = [*ids, 50, 51, 52, 53, 54], [*ids, 700, 60, 701, 3, 90]
        expected = nearest_by_hand(QUERIES, CODES[rows], ids, k=20)
        assert collection.search(QUERIES, 20).to_lists() == expected
        assert len(collection) == len(ids)
    with pytest.raises(InputError, match="was closed"):
        collection.search(QUERIES, 1)
    with bt.store.open(place, read_only=True) as again:
        assert again.search(QUERIES, 20).to_lists() == expected
        assert again.get([3]).metadata == [{"label": "new"}]
        for write in (
            lambda: again.add(CODES[:1]),
            lambda: again.upsert(CODES[:1], [0]),
            lambda: again.delete([3]),
        ):
            with pytest.raises(InputError, match="was opened for reading"):
                write()


def test_an_id_is_not_given_again_after_its_item_is_deleted(place):
    with bt.store.create(place, N_BITS) as collection:
        collection.add(CODES[:5])
        collection.delete([4])
    with bt.store.open(place) as collection:
        assert collection.add(CODES[:1]).tolist() == [5]


def test_an_empty_collection_has_no_hits(empty):
    assert len(empty) == empty.count("id = 3") == 0
    assert empty.search(QUERIES, 5).ids.shape == (8, 0)
    assert empty.within(QUERIES, 5).to_lists() == [[]] * 8
    assert empty.add(CODES[:0]).tolist() == []
    assert len(empty.get([])) == 0
    assert empty.delete(where="id >= 0") == 0


def test_a_vector_is_a_query_after_opening_again(place):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((60, 16))
    hasher = bt.hashing.ITQ(N_BITS).fit(vectors)
    with bt.store.create(place, hasher=hasher) as collection:
        collection.add(vectors)
    with bt.store.open(place) as collection:
        assert collection.info()["hasher"] == "itq"
        hits = collection.search(vectors[:4], 3)
        codes = hasher.encode(vectors)
        assert hits.to_lists() == nearest_by_hand(codes[:4], codes, range(60), k=3)
        with pytest.raises(InputError, match="must be Codes or vectors"):
            collection.search(["a.jpg"], 3)


def test_an_image_is_a_query_after_opening_again(place):
    images = np.random.default_rng(0).integers(0, 256, (12, 24, 32, 3), np.uint8)
    features = bt.features.Thumbnail()
    rows = features.fit_transform(images)
    hasher = bt.hashing.LSH(24).fit(rows)
    with bt.store.create(place, hasher=hasher, features=features) as collection:
        collection.add(list(images))
    with bt.store.open(place) as collection:
        assert collection.info()["features"] == "thumbnail"
        hits = collection.search(images[5:7], 1)
        assert hits.to_lists() == [[(5, 0)], [(6, 0)]]


@pytest.mark.parametrize("n_bits", [1, 65, 4096])
def test_codes_of_any_length(n_bits, place):
    codes = random_codes(20, n_bits)
    with bt.store.create(place, n_bits) as collection:
        collection.add(codes)
        assert collection.get(range(20)).codes == codes
        expected = nearest_by_hand(codes[:3], codes, range(20), k=20)
        assert collection.search(codes[:3], 20).to_lists() == expected


def test_a_collection_is_not_made_twice_nor_opened_where_there_is_none(place, folder):
    with pytest.raises(FileError, match="no such"):
        bt.store.open(place)
    bt.store.create(place, N_BITS).close()
    with pytest.raises(FileError, match=r"exists already; open\(\) it"):
        bt.store.create(place, N_BITS)


def test_a_draft_is_refused_until_it_is_finished(place):
    assert not bt.store.exists(place)
    with bt.store.create(place, N_BITS, draft="of cats") as collection:
        collection.add(CODES[:5])
    assert bt.store.exists(place)
    with pytest.raises(FileError, match="is an unfinished draft; repeat the command"):
        bt.store.open(place, read_only=True)
    with bt.store.open(place, drafts=True) as collection:
        assert collection.draft == "of cats"
        collection.add(CODES[5:8])
        collection.finish()
    with bt.store.open(place) as collection:
        assert collection.draft is None and len(collection) == 8
        collection.finish()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda path: bt.store.create(path), "give n_bits, or the hasher"),
        (lambda path: bt.store.create(path, 0), "n_bits must be between 1 and 4096"),
        (lambda path: bt.store.create(path, 16, hasher=FITTED), "n_bits must be the hasher's 8"),
        (
            lambda path: bt.store.create(path, hasher="itq"),
            "hasher must be a fitted one of bittern.hash",
        ),
        (
            lambda path: bt.store.create(path, 8, features="deep"),
            "features must be a fitted one of",
        ),
        (lambda path: bt.store.create(path / "none" / "x", 8), "no such folder"),
        (lambda path: bt.store.open(path.parent), "is a folder"),
        (lambda path: bt.store.open("milvus://"), "an address is milvus://host:port/NAME"),
        (lambda path: bt.store.open("milvus://me:secret@h/a-b"), "got 'milvus://me@h/a-b'"),
    ],
)
def test_what_cannot_be_made_or_opened_is_refused(call, says, tmp_path):
    with pytest.raises(InputError, match=says):
        call(tmp_path / "x.bittern")
    assert list(tmp_path.iterdir()) == []


FITTED = bt.hashing.LSH(8).fit(np.eye(4))


def test_a_hasher_must_be_fitted(tmp_path):
    with pytest.raises(bt.NotFittedError, match="call fit"):
        bt.store.create(tmp_path / "x.bittern", hasher=bt.hashing.LSH(8))
    assert list(tmp_path.iterdir()) == []


def test_features_keep_what_they_learned(tmp_path):
    texts = ["red apples and green apples", "green cars", "red cars drive", "apples grow"]
    features = bt.features.BagOfWords().fit(texts)
    rows = features.transform(texts)
    hasher = bt.hashing.LSH(32).fit(rows)
    with bt.store.create(tmp_path / "texts.bittern", hasher=hasher, features=features):
        pass
    with bt.store.open(tmp_path / "texts.bittern") as collection:
        again = collection.recipe.features
        np.testing.assert_array_equal(again.transform(texts), rows)


# In a file, conditions are all that DuckDB has, and nothing beside conditions.


@pytest.fixture
def in_file(tmp_path):
    with bt.store.create(tmp_path / "a.bittern", N_BITS) as collection:
        collection.add(CODES, metadata=ITEMS)
        yield collection


def test_conditions_in_a_file_know_functions_and_lists(in_file):
    assert in_file.count("list_contains(tags, 'wild')") == sum(
        "wild" in item.get("tags", []) for item in ITEMS
    )
    assert in_file.count("upper(label) = 'CAT' AND is_good IS NULL -- a remark") == 20


@pytest.mark.parametrize(
    "where",
    [
        "true; DELETE FROM codes",
        "true) UNION SELECT id FROM metadata WHERE (true",
        "true) LIMIT (1",
        "true), (false",
        "id IN (SELECT id FROM codes)",
        "EXISTS (FROM codes)",
        "id = ?",
        "lable = 'cat'",
        "label::INTEGER = 3",
        "read_text('/etc/hostname') = 'x'",
        "error(current_setting('temp_directory'))",
        "upper(ERROR('x')) = 'X'",
        "pg_catalog.pg_sleep(1000)",
        "len(range(100000000000)) > 0",
        "repeat(label, 100000000000) = 'x'",
        "list_reduce([label], lambda x, y: x || x) = 'x'",
        "word_0 = 3",
        "label",
        "(",
    ],
)
def test_what_is_not_a_condition_on_the_metadata_is_refused(in_file, where):
    for call in (
        lambda: in_file.count(where),
        lambda: in_file.search(QUERIES, 3, where=where),
        lambda: in_file.delete(where=where),
    ):
        with pytest.raises(InputError, match="Collection: where "):
            call()
    assert len(in_file) == 300


def test_a_condition_that_takes_too_long_is_stopped(in_file, monkeypatch):
    matching = in_file.condition_reader(0.1)
    assert len(matching("upper(label) = 'CAT'")) == in_file.count("label = 'cat'")
    monkeypatch.setattr("bittern.store.file_conditions.FUNCTIONS", {"sleep_ms"})
    with pytest.raises(InputError, match=r"takes more than 0\.1 s"):
        matching("sleep_ms(60000)")
    monkeypatch.undo()
    assert len(matching("id < 3")) == 3


def test_a_file_is_closed_while_a_condition_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("bittern.store.file_conditions.FUNCTIONS", {"sleep_ms"})
    with bt.store.create(tmp_path / "a.bittern", N_BITS) as collection:
        collection.add(CODES)
        matching = collection.condition_reader(600)
        reader = threading.Thread(target=_forgiving, args=(matching, "sleep_ms(600000)"))
        reader.start()
        time.sleep(0.1)
    reader.join(seconds(10))
    assert not reader.is_alive()
    with bt.store.open(tmp_path / "a.bittern") as collection:
        assert len(collection) == len(CODES)


def _forgiving(call, *arguments):
    with suppress(KeyboardInterrupt, InputError):
        call(*arguments)


def test_the_connection_reaches_no_other_file(in_file, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with pytest.raises(FileError, match="disabled by configuration"):
        in_file._file.rows(f"SELECT * FROM read_csv('{secret}')")


def test_columns_take_what_fits_and_refuse_the_rest(in_file):
    in_file.add(CODES[:2], metadata={"year": [1990.5, None], "Label": ["x", np.nan]})
    assert in_file.get([300, 301]).metadata == [{"label": "x", "year": 1990.5}, {}]
    assert in_file.count("year > 1990 AND year < 1991") == 1
    in_file.add(CODES[:1], metadata=[{"year": 7, "notes": {"a": [1]}}])
    in_file.add(CODES[:1], metadata=[{"notes": "plain"}])
    assert [m.get("notes") for m in in_file.get([302, 303]).metadata] == [{"a": [1]}, "plain"]
    with pytest.raises(InputError, match="'label' is of type VARCHAR in this collection, got BIG"):
        in_file.add(CODES[:1], metadata=[{"label": 3}])
    assert len(in_file) == 304


def test_many_deletes(in_file):
    more = random_codes(20_000, N_BITS, random_state=2)
    ids = in_file.add(more)
    assert in_file.delete(np.random.default_rng(0).permutation(ids)) == 20_000
    assert in_file.search(QUERIES, 5).to_lists() == nearest_by_hand(QUERIES, CODES, range(300), k=5)


@pytest.mark.slow  # a million items are written and deleted
def test_a_million_deletes(tmp_path):
    codes = bt.Codes(np.arange(10**6 + 5, dtype=np.uint64)[:, None], 64)
    with bt.store.create(tmp_path / "a.bittern", 64) as collection:
        collection.add(codes)
        assert collection.delete(where="id >= 5") == 10**6
        assert collection.search(codes[:1], 9).ids.tolist() == [[0, 1, 2, 4, 3]]
    with bt.store.open(tmp_path / "a.bittern") as collection:
        assert collection.ids.tolist() == [0, 1, 2, 3, 4]


def test_a_missing_library_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"needs DuckDB; pip install 'bittern\[store\]'"):
        bt.store.create(tmp_path / "a.bittern", 8)
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtraError, match=r"needs pymilvus; pip install 'bittern\[milvus"):
        bt.store.create("milvus://localhost/a", 8)
    assert list(tmp_path.iterdir()) == []


def test_all_codes_and_one_column_are_in_the_order_of_the_ids(filled):
    items = filled.get(filled.ids)
    assert filled.codes.to_bits().tolist() == items.codes.to_bits().tolist()
    assert filled.column("tags") == [known.get("tags") for known in items.metadata]
    assert filled.column("year") == [known["year"] for known in items.metadata]
    assert filled.column("nobody's") == [None] * len(CODES)


def test_codes_follow_the_ids_after_changes_and_an_empty_collection_has_none(empty):
    assert len(empty.codes) == 0 and empty.codes.n_bits == N_BITS and empty.column("a") == []
    empty.add(CODES[:4], metadata={"a": list("wxyz")})
    empty.upsert(CODES[7:8], [1], metadata={"a": ["new"]})
    empty.delete([0])
    by_id = dict(zip(empty.ids.tolist(), empty.codes.to_bits().tolist(), strict=True))
    expected = CODES.to_bits().tolist()
    assert by_id == {1: expected[7], 2: expected[2], 3: expected[3]}
    named = dict(zip(empty.ids.tolist(), empty.column("a"), strict=True))
    assert named == {1: "new", 2: "y", 3: "z"}
