"""Milvus behind the same interface: its conditions, its ties, its limits, and a real server."""

import socket
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from places import new_place, skip_without_milvus
from same_answers import CODES, CONDITIONS, N_BITS, check_same, fill, filled_pair

import bittern as bt
from bittern.data.export import write_folder
from bittern.errors import FileError, InputError
from bittern.io.milvus import MilvusAddress, connect
from bittern.store import building
from bittern.store.conditions import to_milvus
from bittern.store.queries import search_by_images, search_by_text


@pytest.mark.parametrize(
    ("sql", "milvus"),
    [
        ("label = 'cat'", '$meta["label"] == "cat"'),
        ("id <= 7", "id <= 7"),
        ("label = 'it''s \"x\"'", '$meta["label"] == "it\'s \\"x\\""'),
        ('"Label" == -1.5e3', '$meta["Label"] == -1.5e3'),
        ("a <> 3", '($meta["a"] < 3 or $meta["a"] > 3)'),
        ("a != TRUE", '$meta["a"] == false'),
        ("a = 1 or b = 2 and c = 3", '($meta["a"] == 1 or ($meta["b"] == 2 and $meta["c"] == 3))'),
        ("NOT (a < 1 AND b >= 2)", '($meta["a"] >= 1 or $meta["b"] < 2)'),
        ("not not a > 1", '$meta["a"] > 1'),
        ("a IN (1, 'x')", '$meta["a"] in [1, "x"]'),
        ("a NOT IN (1)", '($meta["a"] < 1 or $meta["a"] > 1)'),
        ("a NOT BETWEEN 1 AND 2", '($meta["a"] < 1 or $meta["a"] > 2)'),
        ("a LIKE 'x%'", '$meta["a"] like "x%"'),
    ],
)
def test_conditions_are_said_in_the_words_of_milvus(sql, milvus):
    assert to_milvus(sql) == milvus


@pytest.mark.parametrize(
    "sql",
    [
        "a",
        "a =",
        "a = b",
        "= 3",
        "a = 1 b = 2",
        "(a = 1",
        "a = 1)",
        "a = 'x",
        "a IN ()",
        "a IN 3",
        "a IS NULL",
        "upper(a) = 'X'",
        "a = 1; b = 2",
        "a LIKE '%x'",
        "a LIKE 'x_y%'",
        "a LIKE 'x'",
        "a LIKE 3",
        "a NOT LIKE 'x%'",
        '"a""] == 1 or id > 0 or $meta[""b" = 1',
        "a BETWEEN 1 OR 2",
        "TRUE",
    ],
)
def test_other_conditions_are_refused_and_never_sent(sql):
    with pytest.raises(InputError, match="Milvus"):
        to_milvus(sql)


def test_addresses():
    assert MilvusAddress.parse("milvus://h:1/x") == MilvusAddress("http://h:1", "x", "", None)
    assert MilvusAddress.parse("milvus://me:p%40ss@h/x").token == "me:p@ss"
    lite = MilvusAddress.parse("milvus:///a%20b/c.db")
    assert (lite.file, lite.name) == ("/a b/c.db", "items")
    for bad in ("milvus://h:port/x", "milvus://h/", "milvus:///a.txt", "milvus://h/x?y=1"):
        with pytest.raises(InputError, match="an address is"):
            MilvusAddress.parse(bad)


def test_what_is_written_counts_at_once():
    """Milvus Lite has a clock of milliseconds, and files in memory are written faster."""
    skip_without_milvus()
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("needs files in memory")
    with (
        TemporaryDirectory(dir=memory) as folder,
        bt.store.create(f"milvus://{folder}/a.db", N_BITS) as collection,
    ):
        for i in range(40):
            collection.add(CODES[:2], ids=[2 * i, 2 * i + 1])
            collection.delete([2 * i])
            assert len(collection) == i + 1
            assert collection.get([2 * i + 1]).codes == CODES[1:2]


@pytest.mark.parametrize(("place", "is_asked"), [("/a.db", False), ("h/x", True)])
def test_milvus_lite_is_not_asked_whether_it_lives(place, is_asked, monkeypatch):
    """It would close the connection ("Too many pings") after half a minute."""

    def made(uri, **options):
        return SimpleNamespace(insert=None, upsert=None, delete=None, options=options)

    library = SimpleNamespace(MilvusClient=made, MilvusException=ValueError)
    monkeypatch.setattr("bittern.io.milvus.pymilvus_module", lambda: library)
    client = connect(MilvusAddress.parse(f"milvus://{place}"))
    assert is_asked == ("grpc_options" not in client.options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all, so that one server starts."""
    return tmp_path_factory.mktemp("milvus")


@pytest.fixture(scope="module")
def pair(folder):
    """One collection on Milvus Lite, the same in a file."""
    with filled_pair("milvus", folder) as both:
        yield both


def test_hits_are_those_of_a_file(pair):
    check_same(*pair)


def test_more_hits_than_milvus_gives_at_once_are_asked_for_in_parts(pair, monkeypatch):
    monkeypatch.setattr("bittern.store.milvus_collection.MAX_HITS", 17)
    monkeypatch.setattr("bittern.store.milvus_collection.HITS_PER_CALL", 40)
    check_same(*pair, CONDITIONS[1:2])


def test_items_go_over_the_wire_in_parts(pair, monkeypatch):
    monkeypatch.setattr("bittern.store.served.ITEMS_PER_CALL", 32)
    served, embedded = pair
    for collection in pair:
        ids = collection.add(CODES[:100], ids=np.arange(5000, 5100))
    assert served.get(ids).codes == embedded.get(ids).codes == CODES[:100]
    for collection in pair:
        assert collection.delete(where="id BETWEEN 5000 AND 5099") == 100
    check_same(*pair)


def test_a_long_recipe_is_kept_in_parts(folder, monkeypatch):
    monkeypatch.setattr("bittern.store.milvus.PART_CHARACTERS", 500)
    monkeypatch.setattr("bittern.store.milvus.PARTS_PER_CALL", 3)
    vectors = np.random.default_rng(0).standard_normal((50, 40))
    place = new_place("milvus", folder)
    hasher = bt.hashing.ITQ(16).fit(vectors)
    bt.store.create(place, hasher=hasher).close()
    with bt.store.open(place) as collection:
        assert collection.recipe.hasher.encode(vectors) == hasher.encode(vectors)


def test_what_a_killed_creation_left_is_no_collection_and_in_nobodys_way(folder, monkeypatch):
    place = new_place("milvus", folder)

    def killed(client, collection, name, blob):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bittern.store.milvus_collection.put_entry", killed)
        with pytest.raises(KeyboardInterrupt):
            bt.store.create(place, N_BITS)
    assert not bt.store.exists(place)
    with bt.store.create(place, N_BITS) as collection:
        assert collection.add(CODES[:3]).tolist() == [0, 1, 2]


def test_a_creation_goes_on_that_left_a_part_of_a_batch(tmp_path, folder, monkeypatch):
    source, place = tmp_path / "some.npy", new_place("milvus", folder)
    np.save(source, np.random.default_rng(0).standard_normal((50, 8)))
    recipe = bt.store.Recipe(bt.hashing.ITQ(8))
    monkeypatch.setattr(building, "BATCH", 20)
    monkeypatch.setattr("bittern.store.served.ITEMS_PER_CALL", 8)
    with monkeypatch.context() as patch:
        patch.setattr("bittern.store.milvus_collection.getattr", cut_off_after(4), raising=False)
        with pytest.raises(KeyboardInterrupt, match="Run the same command again to continue"):
            building.build_collection(place, source, recipe)
    with bt.store.open(place, drafts=True) as draft:
        assert 20 < len(draft) < 40
    building.build_collection(place, source, recipe)
    building.build_collection(str(tmp_path / "a.bittern"), source, recipe)
    with bt.store.open(place) as served, bt.store.open(tmp_path / "a.bittern") as embedded:
        codes = embedded.get(range(50)).codes
        assert served.get(range(50)).codes == codes
        assert served.search(codes, 9).to_lists() == embedded.search(codes, 9).to_lists()


def cut_off_after(n):
    """A getattr whose n + 1st answer cannot be called: nothing goes over the wire any more."""
    answers = iter(range(n))

    def get(thing, name):
        if next(answers, None) is None:
            raise KeyboardInterrupt
        return getattr(thing, name)

    return get


def test_a_server_that_is_not_there_is_one_sentence(monkeypatch):
    skip_without_milvus()
    monkeypatch.setattr("bittern.io.milvus.CONNECT_SECONDS", 1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(
            FileError, match=rf"milvus://127.0.0.1:{port}/pets: Milvus reports an error"
        ):
            bt.store.open(f"milvus://127.0.0.1:{port}/pets")


@pytest.mark.slow  # a whole server starts, which takes twenty seconds
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the wheel leaves sockets open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_hits_of_a_real_server_are_those_of_a_file(tmp_path):
    skip_without_milvus()
    if find_spec("milvus") is None:
        pytest.skip("needs the server of the wheel 'milvus' 2.3.5; pip install milvus==2.3.5")
    from milvus import MilvusServer

    server = MilvusServer()
    server.set_base_dir(str(tmp_path / "server"))
    with server:
        place = f"milvus://127.0.0.1:{server.listen_port}/pets"
        with (
            bt.store.create(place, N_BITS) as served,
            bt.store.create(tmp_path / "a.bittern", N_BITS) as embedded,
        ):
            for collection in (served, embedded):
                fill(collection)
            check_same(served, embedded)
        with bt.store.open(place, read_only=True) as again:
            assert len(again) > 300


def test_words_find_the_same_images_as_in_a_file(tmp_path):
    photos = tmp_path / "photos"
    write_folder(bt.load("captions", n=30, side=16), photos)
    found = []
    for store in ("file", "milvus"):
        place = new_place(store, tmp_path)
        recipe = building.make_recipe("cca-itq", 16, features="hsv-global", texts="bag-of-words")
        building.build_collection(place, photos, recipe, texts="captions.csv")
        with bt.store.open(place) as opened:
            found.append(
                [
                    search_by_text(opened, "a red circle", k=30),
                    search_by_text(opened, "a red circle", k=30, to="text"),
                    search_by_images(opened, [photos / "00003.png"], to="text", k=30),
                ]
            )
    for one, other in zip(*found, strict=True):
        assert one.values.tolist() == other.values.tolist()
        assert one.ids.tolist() == other.ids.tolist()
        assert [m["text"] for m in one.metadata] == [m["text"] for m in other.metadata]
