"""Collections filled from shards, and what the engine behind them finds."""

import numpy as np
import pytest
from places import new_place, random_codes
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import app
from bittern.errors import InputError
from bittern.io.milvus import MilvusAddress, connect
from bittern.scale import Shards
from bittern.store import building

N, N_BITS = 2000, 40
CODES, QUERIES = random_codes(N, N_BITS), random_codes(15, N_BITS, 1)
LABELS = np.arange(N) % 7
IDS = 3 * np.arange(N) + 11


@pytest.fixture
def shards(tmp_path):
    Shards.create(tmp_path / "shards", CODES, labels=LABELS, ids=IDS, shard_size=600)
    return tmp_path / "shards"


@pytest.mark.parametrize("store", ["file", "milvus"])
def test_a_collection_from_shards_is_searched_as_the_shards_are(store, shards, tmp_path):
    place = new_place(store, tmp_path)
    done = CliRunner().invoke(app, ["index", "create", place, "--from", str(shards)])
    assert f"{N:,} items of {N_BITS} bits" in done.output, done.output
    with bt.store.open(place) as collection:
        found, some = collection.search(QUERIES, 10), collection.get(IDS[[0, 599, 600, 1999]])
        among = collection.search(QUERIES, 10, where="label = 3")
    assert found.to_lists() == bt.scale.search(QUERIES, shards, 10).to_lists()
    assert some.codes == CODES[[0, 599, 600, 1999]]
    assert [known["label"] for known in some.metadata] == LABELS[[0, 599, 600, 1999]].tolist()
    assert (LABELS[(among.ids - 11) // 3] == 3).all()
    audited = bt.audit(QUERIES, shards, found)
    assert audited.is_complete and audited.reported.are_right
    if store == "milvus":
        audited = bt.audit(QUERIES, shards, milvus_hits(place))
        assert audited.is_complete and audited.reported.are_right


def milvus_hits(place):
    """What Milvus itself answers, with ties as it breaks them."""
    address = MilvusAddress.parse(place)
    client = connect(address)
    client.load_collection(address.name)
    found = client.search(
        address.name,
        [row.tobytes() for row in QUERIES.to_packed("little")],
        limit=10,
        anns_field="code",
        search_params={"metric_type": "HAMMING"},
    )
    client.close()
    hits = np.array([[(hit["id"], hit["distance"]) for hit in one] for one in found])
    return hits[..., 0].astype(np.int64), hits[..., 1]


def test_filling_goes_on_after_a_stop_and_reads_no_shard_twice(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "BATCH", 500)
    place, filled = tmp_path / "a.bittern", []
    encode = bt.store.shard_items.ShardItems.encode

    def stopping(self, recipe, rows):
        if len(filled) == 2:
            raise KeyboardInterrupt
        filled.append(rows)
        return encode(self, recipe, rows)

    with monkeypatch.context() as patch:
        patch.setattr("bittern.store.shard_items.ShardItems.encode", stopping)
        with pytest.raises(KeyboardInterrupt, match="Run the same command again"):
            building.build_collection(place, shards, bt.store.Recipe())
    filled.clear()
    monkeypatch.setattr(
        "bittern.store.shard_items.ShardItems.encode",
        lambda self, recipe, rows: filled.append(rows) or encode(self, recipe, rows),
    )
    building.build_collection(place, shards, bt.store.Recipe())
    assert [rows.start for rows in filled] == [1000, 1500]
    with bt.store.open(place) as collection:
        assert collection.ids.tolist() == IDS.tolist()
        assert collection.get(IDS).codes == CODES


def test_shards_that_cannot_fill_a_collection_are_refused(shards, tmp_path):
    vectors = np.random.default_rng(0).standard_normal((20, 8))
    Shards.create(tmp_path / "vectors", vectors=vectors)
    place = tmp_path / "a.bittern"
    with pytest.raises(InputError, match="have no codes; 'bittern shards encode' makes them"):
        building.build_collection(place, tmp_path / "vectors", bt.store.Recipe())
    with pytest.raises(InputError, match="holds codes; leave out --hasher itq"):
        building.choose_recipe(shards, "itq", None)
    wrong = bt.store.Recipe(bt.hashing.ITQ(8).fit(vectors))
    with pytest.raises(InputError, match="codes of 40 bits, but the model makes codes of 8"):
        building.build_collection(place, shards, wrong)
    assert not place.exists()
