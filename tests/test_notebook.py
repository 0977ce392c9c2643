"""What notebooks show: cards that are well-formed, escaped and right, and the search view."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bittern as bt
from bittern import notebook
from bittern.data import Dataset
from bittern.data.images import ImageFiles
from bittern.data.rows import SparseRows
from bittern.hashing.feature_signs import FeatureSigns
from bittern.notebook import ShownItem, bands_of
from bittern.store.widget import answer

EVIL = "<script>alert('x')</script>\"&"
VOID = {"img", "br", "path", "rect"}


class Card(HTMLParser):
    """Reads a card: fails if tags do not match, and keeps the texts and elements."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts, self.elements = [], [], []
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        """Keep the element, and remember that it is open."""
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        """Keep the element."""
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        """Must close the element that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep what people read."""
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self):
        """All texts in one."""
        return " ".join(self.texts)

    def classed(self, tag, name):
        """Attributes of the elements of a class."""
        return [found for one, found in self.elements if one == tag and found.get("class") == name]


def card_of(thing):
    html = thing._repr_html_()
    assert "<script" not in html
    assert not re.search(r"(?:src|href)=\"(?!data:image/)", html)  # asks no server for anything
    return Card(html)


@pytest.fixture
def profile():
    queries = bt.Codes.from_bits([[0, 0, 0, 0], [1, 1, 1, 1]])
    database = bt.Codes.from_bits([[0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 1, 1]])
    return bt.TieProfile.from_codes(queries, database, bt.Relevance.from_classes([0, 1], [0, 1, 1]))


def test_scores_show_every_metric_with_interval_spread_and_note(profile):
    scores = bt.evaluate(profile, ["ap", "precision@1"])
    card = card_of(scores)
    for row in scores.rows():
        for cell in filter(None, row):
            assert cell in card.texts
    assert scores.note() in card.text


def test_a_profile_is_drawn_as_mean_counts_by_distance(profile):
    # Distances are 1, 1, 4 and 3, 3, 0; relevant are one of the two at 1, and those at 3 and 0.
    card = card_of(profile)
    bars = {
        kind: [float(one["height"]) for one in card.classed("rect", kind)]
        for kind in ("all", "part")
    }
    assert np.allclose(np.array(bars["all"]) / max(bars["all"]), [0.5, 1, 0, 1, 0.5])
    assert np.allclose(np.array(bars["part"]) / max(bars["all"]), [0.5, 0.5, 0, 0.5, 0])
    assert "distance 1: 1 items, 0.5 relevant" in card.text
    assert "distance 0" in card.text
    assert "distance 4" in card.text


def test_a_profile_of_real_distances_and_one_of_many_distances_have_few_columns():
    rng = np.random.default_rng(0)
    relevance = bt.Relevance.from_classes([0, 1], np.arange(400) % 2)
    for distances in (rng.random((2, 400)), rng.integers(0, 5000, (2, 400))):
        card = card_of(bt.TieProfile.from_distances(distances, relevance))
        heights = [float(one["height"]) for one in card.classed("rect", "all")]
        assert 10 < len(heights) <= 80
        counts = [float(n) for n in re.findall(r"([\d.]+) items, ", card.text)]
        assert sum(counts) == pytest.approx(400)


def test_an_empty_profile_says_so():
    relevance = bt.Relevance.from_classes([0], [0])
    hits = bt.Hits(np.array([[-1]]), np.array([[np.iinfo(np.int32).max]], np.int32))
    assert "Nothing was retrieved" in card_of(hits.profile(relevance)).text


def test_codes_show_the_share_of_each_bit():
    codes = bt.Codes.from_bits([[1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 0, 0]])
    card = card_of(codes)
    assert "4 codes of 3 bits" in card.text
    assert [t for t in card.texts if t.startswith("bit ") and "set" in t] == [
        "bit 0: set in 100.0%",
        "bit 1: set in 25.0%",
        "bit 2: set in 25.0%",
    ]
    assert "0 codes of 3 bits" in card_of(codes[:0]).text


def test_many_codes_are_sampled_and_the_card_says_so(monkeypatch):
    monkeypatch.setattr("bittern.codes.MOST_SHOWN", 10)
    codes = bt.Codes.from_bits(np.ones((1000, 2), np.bool_))
    assert "share of 10 codes spread over all" in card_of(codes).text


def test_hits_are_in_one_band_per_distance_with_its_count():
    ids = np.arange(20)[None]
    distances = np.repeat([0, 3, 4], [1, 14, 5])[None].astype(np.int32)
    hits = bt.Hits(ids, distances)
    found = hits.bands(most_items=2)["bands"]
    assert [(band["distance"], band["count"], len(band["items"])) for band in found] == [
        (0, 1, 1),
        (3, 14, 2),
        (4, 5, 2),
    ]
    assert [item["id"] for band in found for item in band["items"]] == [0, 1, 2, 15, 16]
    card = card_of(hits)
    assert len(card.classed("div", "band")) == 3
    assert "14 items" in card.text
    assert "2 more" in card.text
    assert "The farthest box may lack items" in card.text


def test_hits_of_many_queries_without_any_and_of_real_distances():
    none = bt.Hits(np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(6, np.int64))
    text = card_of(none).text
    assert text.count("Nothing found.") == 3
    assert "and 2 more queries" in text
    assert "may lack" not in text
    real = bt.Hits(np.array([[1, 2]]), np.array([[0.5, 1 / 3 + 1]]))
    assert "distance 1.333" in card_of(real).text


def test_hits_show_the_images_and_labels_of_a_dataset():
    pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    data = Dataset(
        name="made",
        modalities={"image": pixels},
        labels=np.array([0, 1, 0, -1]),
        class_names=(EVIL, "dog"),
    )
    hits = bt.Hits(np.array([[2, 0, 3]]), np.array([[0, 0, 1]], np.int32))
    card = card_of(hits.with_items(data))
    images = [one for tag, one in card.elements if tag == "img"]
    assert len(images) == 3
    assert all(one["src"].startswith("data:image/jpeg;base64,") for one in images)
    assert f"2: {EVIL}" in card.texts  # escaped on the way in, the same on the way out
    assert "3" in card.texts


def test_hits_that_cannot_be_looked_up_show_their_ids():
    data = Dataset(name="made", modalities={"x": np.zeros((2, 3))})
    hits = bt.Hits(np.array([[7]]), np.array([[0]], np.int32)).with_items(data)
    assert "7" in card_of(hits).texts


def test_a_dataset_shows_what_it_has_and_an_image_of_each_class(tmp_path):
    files = [tmp_path / f"{i}.png" for i in range(3)]
    for i in (0, 1):
        Image.new("RGB", (20, 10), (80 * i, 0, 0)).save(files[i])
    data = Dataset(
        name=EVIL,
        modalities={"image": ImageFiles(files), "vectors": np.zeros((3, 5), np.float32)},
        labels=np.array([1, 0, 2]),
        class_names=("cat", "dog", "gone"),
        official={"test": np.array([2])},
        notes=("checked",),
    )
    card = card_of(data)
    assert f"Dataset {EVIL}: 3 items" in card.texts
    for text in ("modality vectors", "5 float32", "3: cat, dog, gone", "official test", "checked"):
        assert text in card.texts
    assert len([1 for tag, _ in card.elements if tag == "img"]) == 2  # one file is missing
    assert "2: gone" in card.texts


def test_a_dataset_of_sparse_rows_has_no_images():
    from scipy.sparse import csr_array

    data = Dataset(name="made", modalities={"text": SparseRows(csr_array(np.eye(3)))})
    card = card_of(data)
    assert "Dataset made: 3 items" in card.texts
    assert not [1 for tag, _ in card.elements if tag == "img"]


def test_an_advice_shows_the_answer_the_table_and_the_notes():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(600, 16)).astype(np.float32)
    advice = bt.experiments.advise(
        vectors, methods=["lsh"], n_bits=[32], target=0.5, budget=20, random_state=0
    )
    card = card_of(advice)
    assert advice.sentence in card.texts
    assert advice.notes() in card.texts
    assert {"float32", "lsh", "bytes"} <= set(card.texts)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    hasher = FeatureSigns.of_length(64)
    collection = bt.store.create(
        tmp_path / "photos.bittern", hasher=hasher, features=bt.features.PHash()
    )
    names = [f"{i}.png" for i in range(6)]
    for i, name in enumerate(names):
        seed = np.random.default_rng(i // 2)  # two of each
        Image.fromarray(seed.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(folder / name)
    paths = [str(folder / name) for name in names]
    collection.add(paths, metadata={"path": paths})
    yield collection
    collection.close()


def test_the_search_view_answers_by_id_and_by_image(photos):
    found = answer(photos, {"kind": "search", "query": {"id": 2}, "k": 6})
    assert found["kind"] == "bands"
    first = found["bands"][0]
    assert (first["distance"], first["count"]) == (0, 2)
    assert [item["id"] for item in first["items"]] == [2, 3]
    assert [item["label"] for item in first["items"]] == ["2.png", "3.png"]
    assert first["items"][0]["thumbnail"].startswith("data:image/jpeg;base64,")
    assert sum(band["count"] for band in found["bands"]) == 6
    json.dumps(found)  # plain values
    path = photos.get([2]).metadata[0]["path"]
    content = memoryview(Path(path).read_bytes())
    same = answer(photos, {"kind": "search", "query": {"image": "a.png"}, "k": 6}, [content])
    assert same == found


@pytest.mark.parametrize(
    ("message", "buffers", "says"),
    [
        ({}, [], "kind 'search' and one query"),
        ({"kind": "search", "query": {"id": 99}}, [], "no item has the id 99"),
        ({"kind": "search", "query": {"id": -1}}, [], "id must be at least 0, got -1"),
        ({"kind": "search", "query": {"id": "1"}}, [], "id must be a whole number"),
        ({"kind": "search", "query": {"id": 1}, "k": 5000}, [], "k must be"),
        ({"kind": "search", "query": {"text": "cat"}}, [], "was made without texts"),
        ({"kind": "search", "query": {"image": "a.png"}}, [], "an image with its bytes"),
        ({"kind": "search", "query": {"image": EVIL}}, [b"no image"], "not a readable image"),
    ],
)
def test_the_search_view_says_what_is_wrong_in_one_sentence(photos, message, buffers, says):
    found = answer(photos, message, buffers)
    assert found["kind"] == "error"
    assert says in found["sentence"]


def test_a_collection_shows_its_images_in_bands(photos):
    hits = photos.search(photos.get([0]).codes, 3)
    card = card_of(hits)
    assert len([1 for tag, _ in card.elements if tag == "img"]) == 3
    assert {"0.png", "1.png"} <= set(card.texts)
    photos.close()
    assert "0" in card_of(hits).texts  # closed since: the ids alone


def test_the_widget_says_which_extra_it_needs(photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(bt.MissingExtraError, match=r"bittern\[notebook\]"):
        bt.store.search_widget(photos)


def test_the_widget_answers_a_message_of_the_browser(photos):
    pytest.importorskip("anywidget", reason="the extra 'notebook' is not installed")
    widget = bt.store.search_widget(photos, k=4)
    assert (widget.k, widget.by_text, widget.by_image) == (4, False, True)
    assert "export function drawBands" in widget._esm
    assert "export default { render }" in widget._esm
    sent = []
    widget.send = lambda content, buffers=None: sent.append(content)
    widget._handle_msg(
        {"content": {"data": {"method": "custom", "content": MESSAGE}}, "buffers": []}
    )
    assert sent == [answer(photos, MESSAGE)]
    assert sent[0]["bands"][0]["count"] == 2


MESSAGE = {"kind": "search", "query": {"id": 4}, "k": 4}


def test_bands_keep_the_order_of_distances_and_escape_labels():
    items = [ShownItem(i, EVIL) for i in range(3)]
    found = bands_of(items, [1, 1, 2.5])
    assert [(band["distance"], band["count"]) for band in found["bands"]] == [(1, 2), (2.5, 1)]
    card = Card(notebook.draw_bands(found))
    assert card.texts.count(EVIL) == 3
    assert "script" not in [tag for tag, _ in card.elements]


def test_more_bands_than_fit_are_counted():
    found = bands_of([ShownItem(i, str(i)) for i in range(30)], list(range(30)))
    assert "18 more at 18 larger distances" in notebook.draw_bands(found)
