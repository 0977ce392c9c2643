"""``bittern explore``: what it opens, what it refuses, and how it ends."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from dataclasses import replace

import pytest
from explored import blobs, make_rows
from fastapi.testclient import TestClient
from processes import one_after_another, seconds

from bittern.cli.explore import opened
from bittern.experiments import Protocol, measure, run
from bittern.experiments.run_data import load_dataset
from bittern.metrics import evaluate
from bittern.web.explorer import experiment_quality
from bittern.web.explorer.experiment import Experiment

LOOPBACK = ("127.0.0.1",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explore")


@pytest.fixture(scope="module")
def rows(folder):
    return make_rows(folder)


@pytest.fixture(scope="module")
def client(rows):
    with opened(str(rows), hosts=LOOPBACK) as app:
        yield TestClient(app, base_url="http://127.0.0.1")


def test_it_prints_its_address_answers_there_and_ends_with_ctrl_c(rows):
    words = [sys.executable, "-m", "bittern", "explore", rows, "--no-browser", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            line = process.stdout.readline()
            address = line.split()[1]
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(address, timeout=seconds(60)) as answer:
                assert answer.url.endswith("/search") and b"Bittern" in answer.read()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(seconds(60)) == 0


@pytest.mark.parametrize("query", ["", "?view=codes", "?view=nothing", "?views=1&name=x"])
def test_a_page_is_that_of_its_path_whatever_else_the_address_says(client, query):
    plain = client.get("/search")
    assert plain.status_code == 200 and "Search" in plain.text
    assert client.get(f"/search{query}").text == plain.text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.bittern"], "nowhere.bittern"),
        ([".", "--against", "other.bittern"], "for collections"),
        (["."], "protocol.toml"),
        (["rows.bittern", "--host", "0.0.0.0"], "needs --token"),
        (["rows.bittern", "--port", "70000"], "--port"),
        (["rows.bittern", "--token", "a;b"], "the token must be"),
    ],
)
def test_a_mistake_gets_one_sentence(run, rows, monkeypatch, words, says):
    monkeypatch.chdir(rows.parent)
    monkeypatch.delenv("BITTERN_TOKEN", raising=False)
    code, _, errors = run("explore", *words, "--no-browser")
    assert code == 2 and says in errors and errors.count("\n") == 1


def test_every_view_has_a_page_that_may_load_nothing_from_elsewhere(client):
    for view in ("search", "compare", "quality", "codes", "duplicates"):
        page = client.get(f"/{view}")
        assert page.status_code == 200 and "rows.bittern" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "http" not in page.text.replace("http-equiv", "")
        assert (
            client.get(f"/static/{view}.js").headers["content-type"].startswith("text/javascript")
        )


def test_errors_are_one_sentence_as_json(client):
    for path, status in (
        ("/view/search", 422),
        ("/view/search?item=999", 422),
        ("/view/search?item=-1", 422),
        ("/view/search?like=1,x", 422),
        ("/view/search?item=99999999999999999999", 422),
        ("/view/quality/query?item=99999999999999999999", 422),
        ("/view/search?image=gone", 404),
        ("/view/search?code=zz", 422),
        ("/view/codes/bit/99", 422),
        ("/view/compare?item=3", 422),
        ("/view/duplicates?radius=99", 422),
        ("/view/nothing", 404),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert list(answer.json()) == ["error"] and answer.json()["error"].endswith("."), path
    refused = client.post("/view/image", content=b"not an image")
    assert refused.status_code in (415, 422)


def test_the_pages_of_other_sites_decide_nothing(client):
    evil = {"Origin": "http://evil.example"}
    assert client.post("/view/decisions", json={"1": "keep"}, headers=evil).status_code == 403
    assert client.post("/view/decisions", json={"1": "keep"}).json() == {"n_decided": 1}
    assert client.post("/view/decisions", json={"1": None}).json() == {"n_decided": 0}


def test_filters_offer_the_values_of_a_column(client):
    assert sorted(client.get("/view/values?column=label").json()) == ["a", "b", "c"]
    assert client.get("/view/info").json()["columns"]["number"] == "BIGINT"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """An experiment with three methods, and a client of its pages."""
    place = tmp_path_factory.mktemp("experiment") / "digits"
    protocol = Protocol.of(
        {
            "title": "Digits",
            "dataset": {"name": "digits", "rows": 300},
            "split": {"name": "improved", "sizes": {"train": 60, "queries": 30}},
            "n_bits": [8],
            "runs": 1,
            "metrics": ["ap"],
            "method": [{"name": "exact", "label": "float"}, {"name": "lsh"}, {"name": "itq"}],
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "run_tasks", one_after_another)
        records = run(protocol, place, jobs=1)
    with opened(str(place), hosts=LOOPBACK) as app:
        yield records, TestClient(app, base_url="http://127.0.0.1")


def test_an_experiment_tells_what_its_records_have(digits):
    records, client = digits
    (record,) = records.of("lsh", 8)
    said = client.get("/view/quality").json()
    values = record.values["ap"].per_query
    assert said["mean"] == pytest.approx(sum(values) / len(values))
    assert said["low"] <= said["mean"] <= said["high"] and len(said["cells"]) == 3
    found = client.get("/view/quality/queries?n=5").json()
    worst = [one["ap"] for one in found["queries"]]
    assert worst == pytest.approx(sorted(values)[:5])
    position = found["queries"][0]["query"]["id"]
    i = record.query_positions.index(position)
    one = client.get(f"/view/quality/query?item={position}").json()
    assert one["histogram"] == record.profile.total[i].tolist()
    assert one["recall"][-1] == 1.0 and one["score"]["ap"] == pytest.approx(values[i])
    image = client.get(one["query"]["src"])
    assert image.content.startswith(b"\x89PNG")
    assert client.get("/view/quality/query?item=99999").status_code == 422
    assert client.get("/view/experiment/images/99999").status_code == 404


def test_two_methods_of_an_experiment_are_compared_query_by_query(digits):
    records, client = digits
    (first,), (second,) = records.of("lsh", 8), records.of("itq", 8)
    numbers = [records.records.index(one) for one in (first, second)]
    said = client.get("/view/compare").json()  # the first with codes, and another of its length
    assert [one["cell"] for one in said["sides"]] == numbers
    values = {
        position: (a, b)
        for position, a, b in zip(
            first.query_positions,
            first.values["ap"].per_query,
            second.values["ap"].per_query,
            strict=True,
        )
    }
    assert first.query_positions == second.query_positions
    shown = dict(zip(said["positions"], map(tuple, said["points"]), strict=True))
    assert shown == {p: pytest.approx(v, abs=1e-5) for p, v in values.items()}
    ends = {}
    for side, record in enumerate((first, second)):
        scores = evaluate(record.profile, ["ap:pessimistic", "ap:optimistic"])
        for i, position in enumerate(record.query_positions):
            ends[position, side] = [one.per_query[i] for one in scores.values()]
    ahead = [p for p in values if values[p][1] > values[p][0]]
    sure = [p for p in ahead if ends[p, 1][0] > ends[p, 0][1]]
    assert said["n_better"][1] == len(ahead) and said["n_sure"][1] == len(sure)
    asked = f"first={numbers[0]}&second={numbers[1]}"
    found = client.get(f"/view/compare/queries?{asked}&better=second&n=50").json()["queries"]
    gains = [values[one["query"]["id"]][1] - values[one["query"]["id"]][0] for one in found]
    assert gains == sorted(gains, reverse=True) and len(gains) == len(ahead)
    for one in found:
        for side in (0, 1):
            score = one["sides"][side]["score"]
            assert [score["low"], score["high"]] == pytest.approx(ends[one["query"]["id"], side])
    item = found[0]["query"]["id"]
    (one,) = client.get(f"/view/compare/queries?{asked}&item={item}").json()["queries"]
    assert one == found[0]
    assert client.get(f"/view/compare/queries?{asked}&better=both").status_code == 422
    assert client.get(f"/view/compare/queries?{asked}&item=99999").status_code == 422


def test_confusions_of_an_experiment_are_those_of_the_recorded_neighbours(digits):
    records, client = digits
    (record,) = records.of("lsh", 8)
    labels = load_dataset(records.protocol.dataset).labels
    said = client.get("/view/quality/confusion").json()
    numbers = [one["number"] for one in said["classes"]]
    counts = Counter(
        (int(labels[one.query]), int(labels[item])) for one in record.examples for item in one.items
    )
    for i, of in enumerate(numbers):
        n = sum(counts[of, label] for label in numbers)
        for j, label in enumerate(numbers):
            assert said["shares"][i][j] == pytest.approx(counts[of, label] / max(n, 1), abs=1e-4)
    of, label = max((pair for pair in counts if pair[0] != pair[1]), key=counts.__getitem__)
    found = client.get(f"/view/quality/confused?of={of}&as={label}").json()
    items = [item for one in found["queries"] for item in one["items"]]
    assert len(items) == counts[of, label]
    assert {labels[item["id"]] for item in items} == {label}


def test_an_experiment_without_classes_says_why_nothing_is_confused(digits):
    records, _ = digits
    found = Experiment(records.folder)
    found.items.__dict__["_dataset"] = None  # it was moved away
    assert "not where it was" in experiment_quality.confusion(found, None)["note"]
    number = found.number(None)
    bare = replace(found.record(None), examples=())
    found._numbered[number] = bare
    assert "neighbours of no query" in experiment_quality.confusion(found, None)["note"]
    found._numbered[number] = replace(bare, query_labels=None)
    assert "no classes" in experiment_quality.confusion(found, None)["note"]


def test_the_vectors_of_a_file_rank_again(folder, rows):
    import numpy as np

    np.save(folder / "vectors.npy", blobs()[0])
    with opened(str(rows), vectors=folder / "vectors.npy", hosts=LOOPBACK) as app:
        client = TestClient(app, base_url="http://127.0.0.1")
        assert client.get("/view/rankings").json() == ["vectors", "real"]
        found = client.get("/view/search?item=4&radius=5&rank=vectors").json()
        assert found["ranked"]["items"]
