"""The service: every kind of search, items, images and writes, in one process and shared."""

import base64
import json
import re
import shutil
import time

import numpy as np
import pytest
from collections_to_serve import N_BITS, N, Shared, make_images, make_vectors, png, vectors
from fastapi.testclient import TestClient

import bittern as bt
from bittern import store
from bittern.data.export import write_folder
from bittern.store import building
from bittern.store.queries import search_by_text
from bittern.web.app import create_app
from bittern.web.asked import hex_of
from bittern.web.images import Limits
from bittern.web.source import CollectionSource


def client_of(source, **more):
    app = create_app(source, **more)
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_vectors(tmp_path_factory.mktemp("made"))


KINDS = ["one process", "shared"]


@pytest.fixture(scope="module", params=KINDS)
def served(request, made, tmp_path_factory):
    """A client, and the collection behind it, which nobody changes."""
    yield from serve(request.param, made, tmp_path_factory.mktemp("served"))


@pytest.fixture(params=KINDS)
def changed(request, made, tmp_path):
    """The same for one test alone."""
    yield from serve(request.param, made, tmp_path)


def serve(kind, made, folder):
    path = shutil.copy(made, folder)
    if kind == "shared":
        shared = Shared(path, folder / "run", vectors())
        yield client_of(shared.source), shared.writer.collection
        shared.close()
    else:
        with store.open(path) as opened:
            yield client_of(CollectionSource(opened, vectors=vectors())), opened


@pytest.fixture
def images(tmp_path):
    with store.open(make_images(tmp_path)) as opened:
        yield client_of(CollectionSource(opened), limits=Limits(100_000, 10_000)), opened


def ask(client, status=200, at="/search", **asked):
    answer = client.post(at, json=asked)
    assert answer.status_code == status, answer.text
    return answer.json()


def hits_of(client, **asked):
    (result,) = ask(client, **asked)["results"]
    return [(hit["id"], hit["distance"]) for hit in result["hits"]]


def oracle(collection, query):
    """Ids by distance to all items, and the distances."""
    bits = collection.get(collection.ids).codes.to_bits()
    distances = (bits != query.to_bits()).sum(axis=1)
    order = np.argsort(distances, kind="stable")
    return list(zip(collection.ids[order].tolist(), distances[order].tolist(), strict=True))


def test_every_kind_of_query_finds_the_same_as_a_comparison_with_all_codes(served):
    client, collection = served
    query = collection.get([7]).codes
    wanted = oracle(collection, query)
    assert hits_of(client, id=7, k=20) == wanted[:20]
    assert hits_of(client, codes=hex_of(query), k=20) == wanted[:20]
    assert hits_of(client, codes=[query.to_bits()[0].astype(int).tolist()], k=3) == wanted[:3]
    assert hits_of(client, vectors=vectors()[7:8].tolist(), k=20) == wanted[:20]
    assert hits_of(client, id=7, radius=4) == [hit for hit in wanted if hit[1] <= 4]
    assert hits_of(client, id=7, k=10_000) == wanted


def test_several_queries_have_results_in_their_order(served):
    client, collection = served
    found = ask(client, vectors=vectors()[:5].tolist(), k=2)["results"]
    assert [result["hits"][0]["id"] for result in found] == [
        oracle(collection, collection.get([i]).codes)[0][0] for i in range(5)
    ]


def test_ties_are_counted_over_the_collection_and_a_cut_one_is_told(served):
    client, collection = served
    wanted = oracle(collection, collection.get([7]).codes)
    counts = np.bincount([distance for _, distance in wanted], minlength=N_BITS + 1)
    cut = 0
    for k in range(1, 30):
        (result,) = ask(client, id=7, k=k, metadata=False)["results"]
        last = wanted[k - 1][1]
        assert result["tie_is_cut"] == (wanted[k][1] == last)
        cut += result["tie_is_cut"]
        told = {tie["distance"]: tie["count"] for tie in result["ties"]}
        assert told == {d: counts[d] for d in range(last + 1) if counts[d]}
        assert "metadata" not in result["hits"][0]
    assert 0 < cut < 29  # otherwise the data shows nothing
    (result,) = ask(client, id=7, radius=6, histogram=True)["results"]
    assert result["histogram"] == counts.tolist()
    assert not result["tie_is_cut"]


def test_a_condition_restricts_hits_counts_and_lists(served):
    client, collection = served
    where = "label = 'dog' AND number < 100"
    allowed = set(collection._matching(where).tolist())
    wanted = [hit for hit in oracle(collection, collection.get([7]).codes) if hit[0] in allowed]
    assert hits_of(client, id=7, k=10, where=where) == wanted[:10]
    (result,) = ask(client, id=7, k=3, where=where, histogram=True)["results"]
    assert sum(result["histogram"]) == len(allowed)
    assert all(hit["metadata"]["label"] == "dog" for hit in result["hits"])
    page = client.get("/items", params={"where": where, "start": 2, "size": 3}).json()
    assert page["total"] == len(allowed)
    assert [item["id"] for item in page["items"]] == sorted(allowed)[2:5]
    for bad in ("label =", "nix = 3", "id IN (SELECT 1)", "  "):
        assert "error" in ask(client, 422, id=7, where=bad)


def test_examples_for_and_against_rank_by_similarity(served):
    client, collection = served
    (result,) = ask(client, like=[3, 8], unlike=[12], k=150)["results"]
    values = {hit["id"]: hit["similarity"] for hit in result["hits"]}
    bits = collection.get(range(N)).codes.to_bits().astype(int)

    def near(i, j):
        return 1 / (np.abs(bits[i] - bits[j]).sum() + 1)

    for i in (0, 3, 12, 77):
        expected = (near(i, 3) + near(i, 8)) / (near(i, 12) + 1)
        assert values[i] == pytest.approx(expected)
    assert sorted(values.values(), reverse=True) == list(values.values())


def test_reranking_sorts_by_the_stored_vectors_and_counts_those_without(changed):
    client, _ = changed
    x = vectors()
    (result,) = ask(client, vectors=x[7:8].tolist(), k=5, rerank=N)["results"]
    true = np.linalg.norm(x - x[7], axis=1)
    assert [hit["id"] for hit in result["hits"]] == np.argsort(true)[:5].tolist()
    given = [hit["vector_distance"] for hit in result["hits"]]
    assert given == pytest.approx(np.sort(true)[:5].tolist(), abs=1e-5)
    assert result["without_vector"] == 0
    ask(client, at="/add", vectors=x[7:8].tolist())
    (result,) = ask(client, id=7, k=5, rerank=N + 1)["results"]
    assert result["without_vector"] == 1
    code = hex_of(bt.Codes.from_bits(np.zeros((1, N_BITS), bool)))
    assert "vector" in ask(client, 422, codes=code, rerank=5)["error"]


def test_items_are_listed_in_pages_and_one_has_its_code_and_metadata(served):
    client, collection = served
    page = client.get("/items", params={"start": 140, "size": 100}).json()
    assert (page["total"], page["start"]) == (N, 140)
    assert [item["id"] for item in page["items"]] == list(range(140, N))
    items = collection.get(range(N))
    for i in (0, 1, 149):
        item = client.get(f"/items/{i}").json()
        wanted = {"id": i, "code": hex_of(items.codes[i : i + 1])[0], "metadata": items.metadata[i]}
        assert item == wanted
    assert client.get("/items?start=1000").json()["items"] == []


def test_what_is_added_replaced_or_deleted_is_found_at_once(changed):
    client, collection = changed
    code = "f0f0"
    (new,) = ask(client, at="/add", codes=[code], metadata=[{"label": "new", "x": [1, "a"]}])["ids"]
    assert new == N
    assert hits_of(client, codes=[code], k=1) == [(new, 0)]
    assert client.get(f"/items/{new}").json()["metadata"] == {"label": "new", "x": [1, "a"]}
    assert hits_of(client, codes=[code], k=9, where="label = 'new'") == [(new, 0)]
    assert "exists" in ask(client, 409, at="/add", codes=["0000"], ids=[new])["error"]
    ask(client, at="/add", codes=["0f0f"], ids=[new], metadata=[{"label": "x"}], replace=True)
    assert client.get(f"/items/{new}").json()["code"] == "0f0f"
    assert client.get("/health").json()["items"] == N + 1 == len(collection)
    assert ask(client, at="/delete", ids=[new, 0]) == {"deleted": 2}
    assert hits_of(client, codes=["0f0f"], radius=0, where=f"id = {new}") == []
    assert client.get(f"/items/{new}").status_code == client.get("/items/0").status_code == 404
    assert ask(client, 404, at="/delete", ids=[1, 0])["error"] == "No item has the id 0."
    assert client.get("/items/1").status_code == 200  # all or none
    assert ask(client, at="/delete", where="label = 'dog'")["deleted"] == 49
    assert client.get("/items?size=1").json()["total"] == 100 == len(collection)


BAD = [
    ("/search", 422, {}),
    ("/search", 422, {"id": 3, "text": "two kinds"}),
    ("/search", 422, {"id": 3, "k": 0}),
    ("/search", 422, {"id": 3, "k": 3, "radius": 1}),
    ("/search", 422, {"id": 3, "nonsense": 1}),
    ("/search", 422, {"id": -1}),
    ("/search", 404, {"id": 1000}),
    ("/search", 422, {"codes": ["00"]}),
    ("/search", 422, {"codes": ["xyzw"]}),
    ("/search", 422, {"codes": [[0, 1]]}),
    ("/search", 422, {"codes": []}),
    ("/search", 422, {"vectors": [[1.0]]}),
    ("/search", 422, {"vectors": [[1.0], [1.0, 2.0]]}),
    ("/search", 422, {"text": "no texts here"}),
    ("/search", 422, {"image": base64.b64encode(png()).decode()}),
    ("/search", 400, {"image": "not base64!"}),
    ("/search", 422, {"unlike": [3]}),
    ("/search", 404, {"like": [3, 5000]}),
    ("/search", 422, {"id": 3, "to": "image"}),
    ("/add", 422, {"codes": ["0000"], "metadata": []}),
    ("/add", 422, {"codes": ["0000"], "metadata": [{"label": 3}]}),
    ("/add", 422, {"codes": ["0000"], "metadata": [{"big": 10**400}]}),
    ("/add", 422, {"codes": ["0000"], "metadata": [{"deep": json.loads("[" * 500 + "]" * 500)}]}),
    ("/add", 422, {"codes": ["0000"], "metadata": [{"bad key": 3}]}),
    ("/add", 422, {"codes": ["0000", "0001"], "ids": [500, 500]}),
    ("/add", 422, {"codes": ["0000"], "metadata": [{"path": "/etc/hostname"}]}),
    ("/add", 422, {"codes": ["0000"], "replace": True}),
    ("/delete", 422, {}),
    ("/delete", 422, {"where": "nix ="}),
]


def test_a_bad_request_gets_one_sentence_and_changes_nothing(served):
    client, collection = served
    for at, status, asked in BAD:
        answer = client.post(at, json=asked)
        assert answer.status_code == status, (asked, answer.text)
        assert list(answer.json()) == ["error"]
        assert re.fullmatch(r"[^\n]+\.", answer.json()["error"])
        assert "Traceback" not in answer.text
    assert len(collection) == N == client.get("/health").json()["items"]


def test_a_server_without_vectors_says_so_whatever_is_reranked(images):
    for asked in ({"id": 3}, {"codes": ["0" * 16]}):
        assert "--vectors" in ask(images[0], 422, **asked, rerank=5)["error"]


def test_other_bad_requests(served):
    client, _ = served
    as_json = {"content-type": "application/json"}
    assert client.post("/search", content=b"{", headers=as_json).status_code == 400
    answer = client.post("/search", content=b"[1]", headers=as_json)
    assert answer.status_code == 422
    assert answer.json()["error"] == "The request is not valid: it must be a JSON object."
    deep = b"[" * 100_000
    assert client.post("/search", content=deep, headers=as_json).status_code == 400
    assert client.post("/search", content=b"id=3").status_code == 415
    assert client.post("/delete", data={"ids": 3}).status_code == 415
    assert client.get("/items/abc").status_code == 422
    assert client.get("/items?size=0").status_code == 422
    assert client.get("/search").status_code == 405
    assert client.get("/nothing").status_code == 404
    for answer in (client.get("/nothing"), client.get("/search"), client.get("/items/x")):
        assert list(answer.json()) == ["error"]


N_MISTAKES = 300_000


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("/search", '{"vectors": [[' + '"",' * N_MISTAKES + "0]]}"),
        ("/search", '{"codes": [[' + '"",' * N_MISTAKES + "0]]}"),
        ("/search", '{"vectors": [' + "[]," * N_MISTAKES + "[]]}"),
        ("/search", '{"like": [' + "{}," * N_MISTAKES + "1]}"),
        ("/search", "{" + ",".join(f'"{i}": 1' for i in range(N_MISTAKES)) + "}"),
        ("/add", '{"vectors": [' + '["",""],' * N_MISTAKES + "[]]}"),
        ("/add", '{"codes": ["0000"], "metadata": [' + "1," * N_MISTAKES + "1]}"),
        ("/add", '{"codes": ["0000"], "ids": [' + "-1," * N_MISTAKES + "1]}"),
    ],
)
def test_millions_of_mistakes_in_one_request_take_no_more_than_one(made, at, text):
    with store.open(made, read_only=True) as opened:
        client = client_of(CollectionSource(opened))
        before = time.process_time()
        answer = client.post(at, content=text, headers={"content-type": "application/json"})
    assert time.process_time() - before < 10  # counting them took a minute, and gigabytes
    assert answer.status_code in (413, 422) and len(answer.text) < 1100


def test_no_message_is_long_or_has_what_is_no_text(images):
    client, as_json = images[0], {"content-type": "application/json"}
    for text in ('{"%s": 1}' % ("a" * 90_000), '{"%s": 1}' % ("\\ud800" * 9000)):
        answer = client.post("/search", content=text, headers=as_json)
        assert answer.status_code == 422 and len(answer.text) < 2000
    missing = {"content-type": "multipart/form-data"}
    answer = client.post("/search", content=b"", headers=missing)
    assert answer.status_code == 400 and not answer.json()["error"].endswith("..")


def test_an_answer_has_no_more_hits_than_fit_the_memory(served, monkeypatch):
    monkeypatch.setattr("bittern.web.searching.MOST_HITS", 2 * N)
    client, _ = served
    assert len(hits_of(client, id=3, radius=N_BITS)) == N
    assert len(ask(client, codes=["0000"] * 2, radius=N_BITS)["results"]) == 2
    assert len(ask(client, codes=["0000"] * 200, radius=0)["results"]) == 200
    assert "hits" in ask(client, 422, codes=["0000"] * 3, radius=N_BITS)["error"]


def test_a_request_adds_no_thousands_of_keys(changed):
    client, _ = changed
    for metadata in ([{f"k{i}": 1 for i in range(5000)}], [{f"k{i}": 1} for i in range(5000)]):
        refused = ask(client, 422, "/add", codes=["0000"] * len(metadata), metadata=metadata)
        assert "1,000 different keys" in refused["error"]
    assert "k0" not in client.get("/info").json()["metadata"]


def test_a_mistake_of_ours_is_a_sentence_too(served, monkeypatch):
    client, _ = served
    monkeypatch.setattr("bittern.web.answers.results", lambda *_: 1 / 0)
    assert "mistake" in ask(client, 500, id=3)["error"]


def test_images_are_searched_by_upload_base64_and_example(images):
    client, _ = images
    files = {"image": ("x.png", png(3), "image/png")}
    answer = client.post("/search", files=files, data={"query": json.dumps({"k": 1})})
    assert answer.json()["results"][0]["hits"][0]["id"] == 3
    text = base64.b64encode(png(5)).decode()
    assert hits_of(client, image=text, k=1) == [(5, 0)]
    assert hits_of(client, image=f"data:image/png;base64,{text}", k=1) == [(5, 0)]
    (result,) = ask(client, like=[text, 5], k=1)["results"]
    assert result["hits"][0]["id"] == 5
    assert client.post("/search", files={"nix": ("x", b"")}).status_code == 422
    assert client.post("/search", files=files, data={"query": "{"}).status_code == 400
    assert client.post("/search", files=files, data={"query": "[]"}).status_code == 422
    broken = client.post("/search", content=b"x", headers={"content-type": "multipart/form-data"})
    assert broken.status_code == 400


def test_words_find_images_and_texts(tmp_path):
    write_folder(bt.load("captions", n=24, side=16), tmp_path / "photos")
    recipe = building.make_recipe("cca-itq", 16, features="hsv-global", texts="bag-of-words")
    path = tmp_path / "photos.bittern"
    building.build_collection(str(path), tmp_path / "photos", recipe, texts="captions.csv")
    shared = Shared(path, tmp_path / "run")
    client, collection = client_of(shared.source), shared.writer.collection
    for to in ("image", "text"):
        found = search_by_text(collection, "two red circles", to=to, k=9)
        wanted = list(zip(found.ids.tolist(), found.values.tolist(), strict=True))
        assert hits_of(client, text="two red circles", to=to, k=9) == wanted
    assert "word" in ask(client, 422, text="  ")["error"]
    assert "xyzzy" in ask(client, 422, text="xyzzy")["error"]
    assert "to" in ask(client, 422, id=3, to="sound")["error"]
    shared.close()


def test_an_added_image_is_kept_and_shown(images):
    client, collection = images
    files = [("images", ("a.png", png(20), "image/png")), ("images", ("b", png(21), "image/png"))]
    answer = client.post("/add", files=files, data={"items": '{"metadata": [{"x": 1}, {"x": 2}]}'})
    assert answer.json() == {"ids": [8, 9]}
    assert client.get("/items/9/image").content == png(21)
    assert client.get("/items/9").json()["metadata"]["x"] == 2
    assert hits_of(client, image=base64.b64encode(png(20)).decode(), k=1) == [(8, 0)]
    kept = collection.folder / "photos.bittern.images"
    assert sorted(file.read_bytes() for file in kept.iterdir()) == sorted([png(20), png(21)])


def test_the_description_has_examples_that_the_service_accepts(changed):
    client, _ = changed
    described = client.get("/openapi.json").json()
    assert {"/search", "/items", "/add", "/delete", "/health", "/metrics"} <= set(
        described["paths"]
    )
    for path in ("/search", "/add", "/delete"):
        content = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert len(content["examples"]) >= 2
        for example in content["examples"].values():
            status = client.post(path, json=example["value"]).status_code
            assert status in (200, 404, 409) or set(example["value"]) & {"codes", "vectors", "text"}
        assert {"400", "401", "413", "503"} <= set(described["paths"][path]["post"]["responses"])


def test_metrics_count_requests_errors_and_items(changed):
    client, collection = changed
    for _ in range(3):
        ask(client, id=3)
    client.get("/items/5000")
    text = client.get("/metrics").text
    assert 'bittern_requests_total{route="/search",status="200"} 3' in text
    assert 'bittern_requests_total{route="/items/{id}",status="404"} 1' in text
    assert f"bittern_items {len(collection)}" in text
    assert 'bittern_request_seconds_bucket{route="/search",le="+Inf"} 3' in text
    assert 'bittern_request_seconds_count{route="/search"} 3' in text
    assert "bittern_errors_total 0" in text
    for line in text.splitlines():
        assert re.fullmatch(
            r"# (HELP|TYPE) \w+ .+|\w+(\{[^}]*(\{id\}[^}]*)?\})? [\d.e+-]+", line
        ), line


def test_a_snapshot_is_not_changed(made):
    with store.open(made, read_only=True) as opened:
        client = client_of(CollectionSource(opened))
        assert "reads" in ask(client, 403, at="/add", codes=["0000"])["error"]
        assert "reads" in ask(client, 403, at="/delete", ids=[3])["error"]
        assert hits_of(client, id=3, k=1) == [(3, 0)]
