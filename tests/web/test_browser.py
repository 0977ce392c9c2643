"""The explorer in a real browser, each view used as a person would."""

import csv
import io
import shutil

import numpy as np
import pytest
from browser import Page, require_browser, served, start_browser
from explored import blobs, make_rows
from processes import one_after_another

from bittern import store
from bittern.cli.demo import COLLECTION, IMAGES, make_collection
from bittern.cli.explore import opened
from bittern.experiments import Protocol, measure, run

pytestmark = pytest.mark.slow  # a browser takes seconds to start
N_IMAGES = 60
LOOPBACK = ("127.0.0.1",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def driver(folder):
    require_browser()
    found = start_browser(folder / "profile")
    yield found
    found.quit()


@pytest.fixture(scope="module")
def shapes(folder):
    """The demo's own collection, small."""
    return make_collection(folder, N_IMAGES)


@pytest.fixture(scope="module")
def shapes_address(shapes):
    with opened(str(shapes), hosts=LOOPBACK) as app, served(app) as address:
        yield address


@pytest.fixture(scope="module")
def rows_address(folder):
    """A collection of vectors, with another to compare it with."""
    np.save(folder / "vectors.npy", blobs()[0])
    first, second = make_rows(folder), make_rows(folder, 12, "other")
    with (
        opened(str(first), str(second), folder / "vectors.npy", hosts=LOOPBACK) as app,
        served(app) as address,
    ):
        yield address


@pytest.fixture
def shown(driver, shapes_address):
    yield from watched(Page(driver, shapes_address))


@pytest.fixture
def rows(driver, rows_address):
    yield from watched(Page(driver, rows_address))


def watched(page):
    """A page whose console must stay silent, and which must ask nobody but its own server."""
    page.complaints(), page.requests()
    page.is_refused = False  # a test that provokes a refusal says so
    yield page
    said = [one["message"] for one in page.complaints()]
    if page.is_refused:
        said = [one for one in said if "Failed to load resource" not in one]
    assert not said
    asked = page.requests()
    assert asked
    assert all(one.startswith((page.address, "data:", "blob:")) for one in asked), asked


def bands(page):
    """Distances and counts of the bands that are shown."""
    return page.run(
        "return [...document.querySelectorAll('.tie-band')].map((one) => "
        "[one.dataset.distance, one.querySelector('.count').textContent, "
        "one.querySelectorAll('.tile').length])"
    )


def test_search_by_an_item_slide_and_go_back(shown):
    shown.open("/")
    assert shown.driver.current_url.endswith("/search")
    assert shown.nameless() == []
    shown.one("header", "48 bits")
    shown.click(".tile a.face")
    shown.at("item=0")
    before = bands(shown)
    assert before and shown.one("output", "Radius")
    slider = shown.one("input[type=range]")
    slider.send_keys("\ue010")  # End
    shown.at("radius=48")
    shown.one("output", f"Radius 48: {N_IMAGES - 1} items")
    shown.back("item=0")
    assert bands(shown) == before
    shown.back("/search")
    shown.one(".lead", "The first")


def test_a_band_unfolds(rows):
    rows.open("/search?item=5&radius=16")
    rest = rows.one(".rest button", "more at distance")
    band = rest.find_element("xpath", "ancestor::li")
    n, left = len(band.find_elements("css selector", ".tile")), int(rest.text.split()[0])
    assert f"{n + left} tied" in band.text
    rows.click(".rest button", rest.text)
    rows.until(lambda: len(band.find_elements("css selector", ".tile")) == n + left, "the rest")
    assert "more at" not in band.text


def test_search_by_examples_for_and_against(shown):
    shown.open("/search?item=3")
    face = shown.one(".tile a.face")
    face.send_keys("+")
    shown.at("like=3")
    shown.one(".lead", "like 2 examples")
    other = shown.all(".tile")[2]
    other.find_element("css selector", ".face").send_keys("-")
    shown.at("unlike=")
    shown.one(".lead", "unlike 1")
    assert len(shown.all(".example-tile")) == 3
    shown.click(".example-tile.unlike")
    shown.one(".lead", "like 2 examples;")
    shown.back("unlike=")


def test_search_by_text_and_a_filter(shown):
    shown.open("/search")
    shown.run("document.body.focus()")
    shown.one("body").send_keys("/")
    words = shown.driver.switch_to.active_element
    assert words.get_attribute("id") == "ask-text"
    words.send_keys("red circle", "\n")
    shown.at("text=red+circle")
    shown.one(".asked-text", "red circle")
    shown.one(".builder input").send_keys("red")
    shown.click(".builder button")
    shown.at("where=")
    labels = {one.text for one in shown.all(".tie-band .caption")}
    assert labels == {"red"}
    shown.is_refused = True
    shown.open("/search?text=qqqq")
    shown.one(".error", "no text of this collection")
    shown.open("/search?item=3&where=nobody%20%3D%201")
    shown.one(".error", "nobody")


def drop(page, kind, path):
    """Drop or paste the image at an address as a file."""
    page.run(
        """
        const [kind, address] = arguments;
        fetch(address).then((one) => one.blob()).then((content) => {
          const data = new DataTransfer();
          data.items.add(new File([content], "mine.png", { type: "image/png" }));
          const event = kind === "drop"
            ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
          document.body.dispatchEvent(event);
        });
        """,
        kind,
        path,
    )


def test_search_by_an_image_that_is_dropped_pasted_or_chosen(shown, folder):
    for kind, item in (("drop", 7), ("paste", 8)):
        shown.open("/search")
        drop(shown, kind, f"/items/{item}/image")
        shown.at("image=")
        band = shown.one(".tie-band")
        assert band.get_attribute("data-distance") == "0"  # it is in the collection
        assert str(item) in [
            tile.get_attribute("data-id") for tile in band.find_elements("css selector", ".tile")
        ]
        shown.until(lambda: shown.run("return document.querySelector('.asked img')?.naturalWidth"),
                    "the image")  # fmt: skip
    chosen = folder / IMAGES / "00009.png"
    shown.one("input[type=file]").send_keys(str(chosen))
    shown.until(lambda: shown.all(".tile[data-id='9']"), "its item")
    shown.back("image=")
    shown.run("window.scrollTo(0, 0)")


def test_rank_again_side_by_side_by_vectors(rows):
    rows.open("/search?item=5&radius=5")
    rows.click(".picker label", "stored vectors")
    rows.at("rank=vectors")
    assert len(rows.all(".two > section")) == 2
    note = rows.one(".ranked .note")
    assert "Hamming" in note.text
    ranked = rows.run(
        "return [...document.querySelectorAll('.ranked .tile')].map((t) => t.dataset.id)"
    )
    vectors = blobs()[0]
    real = [float(np.linalg.norm(vectors[int(i)] - vectors[5])) for i in ranked]
    assert real == sorted(real) and len(real) > 5


def test_metadata_never_become_html(rows):
    rows.open("/search?item=5")
    assert "<b>5</b>" in rows.one(".asked figcaption").text
    assert not rows.all("main .asked b, main .tile .caption b")
    rows.click(".tile .quiet")
    assert "<b>" in rows.one("dialog h2").text
    assert rows.nameless() == []
    rows.click("dialog button", "Close")


def test_compare_two_collections_and_two_lengths(rows):
    rows.open("/compare")
    rows.click(".empty a", "Begin")
    rows.at("item=0")
    sides = rows.all(".two > section")
    assert [one.find_element("css selector", "h2").text for one in sides] == [
        "rows.bittern 16 bits",
        "other.bittern 12 bits",
    ]
    assert all(
        "Average precision" in one.text and "by the order of ties" in one.text for one in sides
    )
    assert all(one.find_elements("css selector", ".tile.only") for one in sides)
    assert rows.nameless() == []
    rows.one("#ask-bits").send_keys("8", "\n")
    rows.at("bits=8")
    rows.one("h2", "first 8 bits")
    rows.back("item=0")
    rows.one("h2", "other.bittern")


def test_quality_from_the_distribution_to_one_query(rows):
    rows.open("/quality")
    rows.one(".score", "Mean")
    rows.until(lambda: rows.all(".matrix button"), "the confusions")
    assert rows.nameless() == []
    worst = rows.one(".query-row strong").text
    rows.click(".columns .bar:not(:disabled)")
    rows.at("bin=")
    rows.one("h2", "with a value of")
    assert rows.one(".query-row strong").text == worst  # the first bar has the worst
    rows.back("/quality")
    rows.until(lambda: rows.all(".matrix button"), "the confusions")
    rows.click(".matrix tbody tr:nth-child(1) td:nth-child(3) button")
    rows.at("of=0")
    rows.one("h2", "neighbours of the other class")
    captions = {one.text for one in rows.all(".query-row .tile .caption")}
    assert captions == {"b"}
    rows.click(".query-row a.query")
    rows.at("item=")
    rows.one("h2", "The ground truth")
    assert rows.all(".curve svg path") and rows.all(".tile.good")
    rows.click("details summary")
    rows.one("table", "precision")
    assert rows.nameless() == []


def test_codes_a_bit_a_bucket_and_a_lasso_on_the_map(rows):
    from selenium.webdriver import ActionChains

    rows.open("/codes")
    rows.until(lambda: rows.all(".balance .bar"), "the bits")
    rows.one("h2", "Occupancy")
    canvas = rows.one("canvas.map")
    rows.until(lambda: canvas.get_attribute("data-milliseconds"), "the map")
    assert rows.nameless() == []
    rows.run("window.scrollTo(0, 0)")
    rows.click("button", "Lasso")
    size = canvas.size
    x, y = size["width"] // 2 - 6, size["height"] // 2 - 6
    walk = ActionChains(rows.driver).move_to_element_with_offset(canvas, -x, -y).click_and_hold()
    for to in ((x, -y), (x, y), (-x, y)):
        walk = walk.move_to_element_with_offset(canvas, *to)
    walk.release().perform()
    rows.at("lasso=")
    rows.one("h3", "120 items inside the lasso")
    rows.until(lambda: len(rows.all(".map-section .tile")) == 48, "the gallery")
    rows.click(".map-section button", "72 more")
    rows.until(lambda: len(rows.all(".map-section .tile")) == 96, "more of it")
    rows.driver.refresh()  # the lasso is in the address
    rows.one("h3", "120 items inside the lasso")
    rows.click(".balance .bar:nth-child(4)")
    rows.at("bit=3")
    rows.one("h2", "What turns bit 3 on")
    assert rows.one("h3", "Just on") and rows.one("h3", "Farthest off")
    rows.click("section[aria-label=Buckets] a.face")
    rows.at("radius=0")
    assert {distance for distance, _, _ in bands(rows)} == {"0"}


def test_duplicates_are_decided_by_keyboard_and_exported(rows, folder):
    rows.open("/duplicates?radius=0")
    rows.one("output", "Radius 0")
    assert rows.nameless() == []
    faces = rows.all(".group .face")
    ids = [one.get_attribute("data-id") for one in rows.all(".group .tile")]
    faces[0].send_keys("k")
    rows.driver.switch_to.active_element.send_keys("x")  # the next one has the focus
    rows.until(lambda: rows.all(".tile.kept") and rows.all(".tile.rejected"), "two decisions")
    rows.one("#decided", "2 decisions")
    with store.open(folder / "rows.bittern", read_only=True) as collection:
        from bittern.store.decisions import Decisions

        assert Decisions(collection).read() == {int(ids[0]): "keep", int(ids[1]): "reject"}
    rows.open("/duplicates?radius=0")
    assert len(rows.all(".tile.kept")) == len(rows.all(".tile.rejected")) == 1
    text = rows.run("return fetch('/view/decisions.csv').then((one) => one.text())")
    listed = list(csv.DictReader(io.StringIO(text)))
    assert [one["decision"] for one in listed if one["id"] == ids[1]] == ["reject"]
    rows.all(".group .face")[0].send_keys("u")
    rows.one("#decided", "1 decision")
    rows.one("input[type=range]").send_keys("\ue014")  # to the right
    rows.at("radius=1")
    rows.one("output", "Radius 1")
    rows.click(".picker label", "chain")
    rows.at("link=connected")
    rows.back("radius=1")


def test_an_experiment_opens_in_the_quality_view(driver, folder, monkeypatch):
    protocol = Protocol.of(
        {
            "title": "A few digits",
            "dataset": {"name": "digits", "rows": 400},
            "split": {"name": "improved", "sizes": {"train": 100, "queries": 40}},
            "n_bits": [8],
            "runs": 1,
            "metrics": ["ap"],
            "method": [{"name": "lsh"}, {"name": "itq"}],
        }
    )
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    run(protocol, folder / "experiment", jobs=1)
    with opened(str(folder / "experiment"), hosts=LOOPBACK) as app, served(app) as address:
        page = Page(driver, address)
        checked = watched(page)
        next(checked)
        page.open("/")
        page.one("header", "A few digits")
        page.one(".lead", "40 queries")
        page.one("h2", "Mean by class")
        assert page.nameless() == []
        page.until(lambda: page.run("return document.querySelector('.query img')?.naturalWidth"),
                   "the image of a query")  # fmt: skip
        page.click(".query-row a.query")
        page.at("item=")
        assert page.all(".curve svg path")
        page.back("/quality")
        page.click("header nav a", "Compare")
        page.one(".lead", "Of 40 queries, lsh, 8 bits is better for")
        assert page.nameless() == []
        page.click(".scatter canvas")  # its middle may have no point near
        page.click(".query-row .side a", "itq")
        page.at("cell=1")
        page.one("h2", "The ranking")
        next(checked, None)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_is_wider_than_a_narrow_window(shown, theme):
    shown.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    shown.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("/search?item=3", "/compare?item=3", "/quality", "/codes", "/duplicates"):
            shown.open(path)
            assert shown.run("return document.documentElement.scrollWidth") <= 390, path
            colour = shown.run("return getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, colour[4:-1].split(","))) > 600) == (theme == "light")
    finally:
        shown.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        shown.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_page_says_so_when_the_server_is_gone(driver, folder, shapes):
    copy = folder / "gone.bittern"
    shutil.copy(shapes, copy)
    assert copy.name != COLLECTION
    with opened(str(copy), hosts=LOOPBACK) as app, served(app) as address:
        page = Page(driver, address)
        page.open("/search?item=3")
    page.one("#ask-item").clear()
    page.one("#ask-item").send_keys("4", "\n")
    page.one(".error", "does not answer")
    page.complaints()
