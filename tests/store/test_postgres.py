"""PostgreSQL behind the same interface: conditions, ties, writers at once, and what goes wrong."""

import json
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest
from places import new_place, random_codes
from postgres_server import PASSWORD, port, postgres_place, run_sql
from processes import seconds
from same_answers import CODES, N_BITS, QUERIES, check_same, filled_pair

import bittern as bt
from bittern.errors import FileError, InputError
from bittern.io.addresses import without_password
from bittern.store import building
from bittern.store.conditions import to_postgres
from bittern.store.postgres import PostgresAddress

pytest.importorskip("psycopg", reason="needs psycopg; pip install 'bittern[postgres]'")


@pytest.fixture
def place():
    return new_place("postgres", None)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """One collection in PostgreSQL, the same in a file."""
    with filled_pair("postgres", tmp_path_factory.mktemp("pair")) as both:
        yield both


def test_hits_are_those_of_a_file(pair):
    check_same(*pair)


def test_many_hits_are_fetched_in_parts_of_one_snapshot(pair, monkeypatch):
    monkeypatch.setattr("bittern.store.postgres_collection.HITS_PER_CALL", 64)
    monkeypatch.setattr("bittern.store.served.ITEMS_PER_CALL", 32)
    check_same(*pair)


def test_an_approximate_index_is_never_asked():
    place = new_place("postgres", None)
    with bt.store.create(place, N_BITS) as collection:
        collection.add(CODES)
        expected = collection.search(QUERIES, 300).to_lists()
    name = place.partition("collection=")[2]
    run_sql(f"CREATE INDEX ON {name} USING hnsw (code bit_hamming_ops)")
    options = quote("-c enable_seqscan=off")  # the planner prefers any index to a scan
    with bt.store.open(f"{place}&options={options}") as collection:
        asked = f"SELECT id FROM {name} ORDER BY code <~> '{'0' * N_BITS}' LIMIT 300"
        plan = collection._connection.execute(f"EXPLAIN {asked}").fetchall()
        assert "hnsw" in str(plan) or "Index Scan" in str(plan)
        assert len(collection._connection.execute(asked).fetchall()) < 300
        assert collection.search(QUERIES, 300).to_lists() == expected


# What has a value of another type, or none, meets neither a condition nor its negation.
MIXED = [
    *({"a": value} for value in (1, 2.5, -3, 1e300, True, False, "1", "é", "Z", "a_b", "a%b")),
    *({"a": value} for value in ("a\\b", "it's", "%s", ["x"], {"y": 1})),
    {},
    {"A": 1},
]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("a = 1", [1]),
        ("a <> 1.0", [2.5, -3, 1e300]),
        ("a > -3 AND a < 1e9", [1, 2.5]),
        ("NOT (a > -3 AND a < 1e9)", [-3, 1e300]),
        ("a BETWEEN .5 AND +3", [1, 2.5]),
        ("a NOT BETWEEN 1. AND 3", [-3, 1e300]),
        ("a = TRUE", [True]),
        ("a <> TRUE", [False]),
        ("a = '1'", ["1"]),
        ("a IN (1, '1', TRUE, 7)", [1, True, "1"]),
        ("a NOT IN ('1', 'Z')", ["é", "a_b", "a%b", "a\\b", "it's", "%s"]),
        ("a > 'a'", ["é", "a_b", "a%b", "a\\b", "it's"]),
        ("a < 'a'", ["1", "Z", "%s"]),
        ("a LIKE 'a_b'", ["a_b", "a%b", "a\\b"]),
        ("a LIKE 'a\\b'", ["a\\b"]),
        ("a LIKE '%s'", ["it's", "%s"]),
        ("a NOT LIKE '%a%'", ["1", "é", "Z", "it's", "%s"]),
        ("a = 'it''s' OR a = '%s'", ["it's", "%s"]),
        ('"A" = 1', [None]),
        ("a = '''; DROP TABLE codes; --'", []),
    ],
)
def test_conditions_look_at_the_type_too(mixed, where, found):
    ids = mixed._matching(where)
    values = [row.get("a") for row in mixed.get(ids).metadata]
    assert values == found and list(map(type, values)) == list(map(type, found))


@pytest.fixture(scope="module")
def mixed():
    with bt.store.create(new_place("postgres", None), N_BITS) as collection:
        for i, metadata in enumerate(MIXED):
            collection.add(CODES[i : i + 1], metadata=[metadata])
        yield collection


def test_names_and_values_are_never_part_of_the_statement():
    text, values = to_postgres("label = 'x'' OR 1=1' AND (id < 3 OR n IN (1, 2))")
    assert "label" not in text and "x'" not in text
    assert text.count('COLLATE "C"') == 1  # the server of the tests has no other order of strings
    assert values == ["label", "string", "label", "x' OR 1=1", "3", "n", "number", "n", ["1", "2"]]


@pytest.mark.parametrize(
    "where", ["a", "a = b", "a = 1; DROP TABLE x", "a IS NULL", "upper(a) = 'X'", "id = 'x'", "("]
)
def test_other_conditions_are_refused_and_never_sent(where):
    with pytest.raises(InputError, match=r"PostgreSQL cannot evaluate|ids are whole numbers"):
        to_postgres(where)


def test_metadata_come_back_as_they_were(mixed, place):
    assert mixed.get(range(len(MIXED))).metadata == MIXED
    with bt.store.create(place, N_BITS) as collection:
        collection.add(CODES[:3], metadata={"n": [2**63 - 1, -(2**63) + 1, 0]})
        assert [m["n"] for m in collection.get([0, 1, 2]).metadata] == [2**63 - 1, 1 - 2**63, 0]
        collection.set_metadata([2, 0], [{"t": "new"}, {}])
        assert collection.get([0, 2]).metadata == [{}, {"t": "new"}]
        for bad, says in (({"x": np.inf}, "must be finite"), ({"x": "a\0b"}, "reports an error")):
            with pytest.raises(InputError, match=says):
                collection.add(CODES[:2], metadata=[{"x": 1}, bad])
        assert len(collection) == 3 and collection.add(CODES[:1]).tolist() == [3]
        assert collection.info()["metadata"] == {"n": "number", "t": "string"}


def test_addresses():
    address = PostgresAddress.parse("postgresql://me:p%40%2F@h:7/zoo?sslmode=require&collection=a")
    assert (address.name, address.file, address.recipe_name) == ("a", None, "a_recipe")
    assert str(address) == "postgresql://me@h:7/zoo?sslmode=require&collection=a"
    assert address.parameters["password"] == "p@/" and address.parameters["dbname"] == "zoo"
    assert "p@/" not in repr(address)
    local = PostgresAddress.parse("postgres:///zoo?collection=a&host=/run/x&password=secret")
    assert local.parameters["host"] == "/run/x"
    assert str(local) == "postgres:///zoo?collection=a&host=/run/x&password=…"


@pytest.mark.parametrize(
    "rest",
    [
        "h/zoo",
        "h/zoo?collection=",
        "h/zoo?collection=a&collection=b",
        "h/zoo?collection=a-b",
        'h/zoo?collection=a"b',
        f"h/zoo?collection={'a' * 56}",
        "h/zoo?collection=a&colour=red",
        "h:port:7/zoo?collection=%zz",
        "sec@ret@h/zoo?collection=a",
        "sec/ret@h/zoo?collection=a",
        "sec?ret@h/zoo?collection=a",
    ],
)
def test_other_addresses_are_refused_without_showing_a_password(rest):
    with pytest.raises(InputError, match="an address is postgresql://user@host") as error:
        bt.store.open(f"postgresql://me:secret{rest}" if "ret@" in rest else f"postgresql://{rest}")
    assert "secret" not in str(error.value) and "ret@" not in str(error.value)


def test_another_kind_of_server_is_refused_without_showing_a_password():
    with pytest.raises(InputError, match=r"begins with .*, got 'mysql://me@h/zoo'"):
        bt.store.create("mysql://me:secret@h/zoo", 8)


@pytest.mark.parametrize("n_bits", [1, 8, 64, 65, 100])
@pytest.mark.parametrize("form", ["text", "binary"])
def test_codes_go_through_copy_bit_for_bit_and_the_server_counts_as_we_do(form, n_bits):
    import psycopg

    codes = random_codes(20, n_bits)
    packed = codes.to_packed("big")  # the first bit is the highest of its byte
    texts = ["".join(map(str, row)) for row in codes.to_bits().astype(int)]
    if form == "text":
        sent = "".join(f"{i}\t{text}\n" for i, text in enumerate(texts)).encode()
    else:
        body = [
            struct.pack("!hiiii", 2, 4, i, 4 + len(code), n_bits) + code.tobytes()
            for i, code in enumerate(packed)
        ]
        sent = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"".join(body) + b"\xff\xff"
    with psycopg.connect(postgres_place("x").partition("?")[0]) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE TEMP TABLE x (id int, code bit({n_bits}))")
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY x FROM STDIN (FORMAT {form})") as copy:
                copy.write(sent)
            with cursor.copy(f"COPY x TO STDOUT (FORMAT {form})") as copy:
                assert b"".join(map(bytes, copy)) == sent
        assert connection.execute("SELECT code::text FROM x ORDER BY id").fetchall() == [
            (text,) for text in texts
        ]
        apart = connection.execute(
            "SELECT x.code <~> y.code FROM x, x AS y ORDER BY x.id, y.id"
        ).fetchall()
    by_hand = (codes.to_bits()[:, None] != codes.to_bits()[None]).sum(axis=2)
    np.testing.assert_array_equal(np.array(apart).reshape(20, 20), by_hand)


def test_writers_at_once_lose_nothing_and_get_distinct_ids(place):
    bt.store.create(place, N_BITS).close()

    def write(label):
        with bt.store.open(place) as mine:
            ids = [mine.add(CODES[:7], metadata={"label": [label] * 7}) for _ in range(6)]
            mine.upsert(CODES[:2], [9_000, 9_001], metadata={"label": ["shared"] * 2})
            return np.concatenate(ids)

    with ThreadPoolExecutor(3) as pool:
        given = list(pool.map(write, "abc"))
    with bt.store.open(place, read_only=True) as collection:
        assert len(collection) == 3 * 42 + 2
        assert len(np.unique(np.concatenate(given))) == 3 * 42
        for label, ids in zip("abc", given, strict=True):
            assert sorted(collection._matching(f"label = '{label}'")) == sorted(ids)
            assert collection.get(ids[:7]).codes == CODES[:7]


def test_of_two_creators_at_once_one_succeeds(place):
    start = threading.Barrier(2)

    def create(_):
        start.wait(seconds(60))
        try:
            bt.store.create(place, N_BITS).close()
        except FileError as error:
            return str(error)
        return "made"

    with ThreadPoolExecutor(2) as pool:
        one, other = sorted(pool.map(create, range(2)))
    assert one == "made" and "exists already; open() it" in other


def test_threads_may_search_one_collection(pair):
    served, embedded = pair
    expected = embedded.search(QUERIES, 20).to_lists()
    with ThreadPoolExecutor(4) as pool:
        for hits in pool.map(lambda _: served.search(QUERIES, 20), range(12)):
            assert hits.to_lists() == expected


def test_a_lost_connection_is_one_sentence_and_leaves_no_half_of_a_write(place, monkeypatch):
    collection = bt.store.create(place, N_BITS)
    collection.add(CODES[:5])
    backend = collection._connection.info.backend_pid
    monkeypatch.setattr(
        collection,
        "_put_entry",
        lambda *_: run_sql(f"SELECT pg_terminate_backend({backend}, 9000)"),
    )
    for call in (
        lambda: collection.upsert(CODES[5:9], [2, 3, 70, 80]),
        lambda: collection.search(QUERIES, 3),
        lambda: collection.add(CODES[:1]),
    ):
        with pytest.raises(FileError, match="connection to PostgreSQL was lost; open the") as error:
            call()
        assert quote(PASSWORD, safe="") not in str(error.value)
    collection.close()
    with bt.store.open(place) as again:
        assert again.ids.tolist() == [0, 1, 2, 3, 4]
        assert again.get(range(5)).codes == CODES[:5]


def test_a_killed_creation_goes_on_where_it_stopped(place, tmp_path, monkeypatch):
    source = tmp_path / "some.npy"
    np.save(source, np.random.default_rng(0).standard_normal((50, 8)))
    recipe = bt.store.Recipe(bt.hashing.ITQ(8))
    monkeypatch.setattr(building, "BATCH", 20)
    monkeypatch.chdir(tmp_path)
    kept = bt.store.postgres_collection.PostgresCollection._put_entry

    def killed(self, name, content):
        if content == b"40":
            raise KeyboardInterrupt
        kept(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr("bittern.store.postgres_collection.PostgresCollection._put_entry", killed)
        with pytest.raises(KeyboardInterrupt, match="Run the same command again to continue"):
            building.build_collection(place, source, recipe)
    with bt.store.open(place, drafts=True) as draft:
        assert len(draft) == 20
    building.build_collection(place, source, recipe)
    building.build_collection(str(tmp_path / "a.bittern"), source, recipe)
    with bt.store.open(place) as served, bt.store.open(tmp_path / "a.bittern") as embedded:
        codes = embedded.get(range(50)).codes
        assert served.get(range(50)).codes == codes
        assert served.search(codes, 9).to_lists() == embedded.search(codes, 9).to_lists()


def test_from_the_command_line(run, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown, vectors = without_password(place), np.random.default_rng(0).standard_normal((40, 8))
    np.savez("some.npz", vectors=vectors, labels=np.repeat(["cat", "dog"], 20))
    create = ("index", "create", place, "--from", "some.npz", "--bits", "16")
    said = f"{shown}: 40 items of 16 bits; itq was fitted on 40 of them.\n"
    assert run(*create) == (0, said, "")
    assert run("index", "create", "a.bittern", *create[3:])[0] == 0
    for options in (
        ("--row", 3, "-k", 9),
        ("--row", 3, "--vectors", "some.npz", "--radius", 6, "--where", "label = 'dog'"),
    ):
        code, out, _ = run("search", place, *options, "--format", "json")
        assert code == 0 and json.loads(out)
        assert out == run("search", "a.bittern", *options, "--format", "json")[1]
    code, out, _ = run("index", "info", place)
    assert code == 0 and "n_items   40" in out and shown in out
    assert run("index", "remove", place, "--id", 3)[1] == f"{shown}: 1 items removed, 39 left.\n"
    assert run("index", "add", place, "--from", "some.npz")[1].startswith(f"{shown}: 40 items add")
    assert run("index", "export", place, "-o", "all.parquet")[0] == 0
    code, out, err = run(*create)
    assert (code, out, err.count("\n")) == (2, "", 1) and f"{shown}: exists already" in err


def fails(run, *command):
    """The sentence that a command fails with, without its beginning."""
    code, out, err = run(*command)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert PASSWORD not in err and quote(PASSWORD, safe="") not in err and "wrong" not in err
    return err.removeprefix("bittern: ").strip()


def test_what_goes_wrong_is_one_sentence(run, place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("some.npy", np.eye(20))
    monkeypatch.setattr("bittern.store.postgres.CONNECT_SECONDS", 5)
    create = ("index", "create", place, "--from", "some.npy", "--bits", "4")
    shown = without_password(place)
    assert fails(run, "index", "info", place) == f"{shown}: there is no such collection."
    assert "(password authentication failed for user" in fails(
        run, "index", "info", postgres_place("a", password="wrong")
    )
    no_login = place.replace(f":{quote(PASSWORD, safe='')}", "")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert "PGPASSWORD, ~/.pgpass or the address" in fails(run, "index", "info", no_login)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert fails(run, "index", "info", no_login) == f"{shown}: there is no such collection."
    assert '(database "zoo" does not exist)' in fails(
        run, "index", "info", postgres_place("a", database="zoo")
    )
    nowhere = place.replace(f":{port()}", ":1")
    assert "cannot connect to PostgreSQL (" in fails(run, "search", nowhere, "--row", 1)
    run_sql(f"CREATE TABLE {shown.rpartition('=')[2]} (x int)")
    assert "the name is taken, by a table 'c" in fails(run, *create)


def test_a_server_without_pgvector_is_one_sentence(run, place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("some.npy", np.eye(20))
    create = ("index", "create", place, "--from", "some.npy", "--bits", "4")
    with monkeypatch.context() as patch:
        patch.setattr("bittern.store.postgres.EXTENSION", "no_such_extension")
        assert "the server has no pgvector; install pgvector 0.7 or" in fails(run, *create)
    with monkeypatch.context() as patch:
        patch.setattr("bittern.store.postgres.OLDEST", (99, 0))
        assert "cannot compare bits; update it to 99.0 or later" in fails(run, *create)
    assert not bt.store.exists(place)


def test_a_user_with_few_rights_and_pgvector_in_another_schema(place, tmp_path):
    name, few = f"db_{place.rpartition('=')[2]}", f"user_{place.rpartition('=')[2]}"
    run_sql(f"CREATE DATABASE {name} STRATEGY file_copy")
    run_sql(f"CREATE USER {few} PASSWORD 'p'")
    theirs = postgres_place("pets", few, "p", name)
    with pytest.raises(FileError, match="an administrator must run CREATE EXTENSION vector"):
        run_sql(f"GRANT CREATE ON SCHEMA public TO {few}", database=name)
        bt.store.create(theirs, N_BITS)
    run_sql("CREATE SCHEMA extras", database=name)
    run_sql("CREATE EXTENSION vector SCHEMA extras", database=name)
    run_sql(f"GRANT USAGE ON SCHEMA extras TO {few}", database=name)
    with bt.store.create(postgres_place("pets", database=name), N_BITS) as collection:
        collection.add(CODES[:9])
        expected = collection.search(QUERIES, 5).to_lists()
    run_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {few}", database=name)
    with bt.store.open(theirs) as collection:
        assert collection.search(QUERIES, 5).to_lists() == expected
        with pytest.raises(FileError, match=r"reports an error \(permission denied for table pets"):
            collection.add(CODES[:1])


def test_a_collection_that_was_dropped_is_one_sentence(place):
    with bt.store.create(place, N_BITS) as collection:
        name = place.rpartition("=")[2]
        run_sql(f"DROP TABLE {name}, {name}_recipe")
        with pytest.raises(FileError, match="there is no such collection"):
            collection.search(QUERIES, 3)
