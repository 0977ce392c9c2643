"""The page: well formed, escaped, self-contained, accessible, and as a browser shows it."""

import dataclasses
import json
import re
import shutil
import subprocess
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest
from made_records import record_of, value_of
from markupsafe import Markup
from PIL import Image
from processes import seconds

import bittern as bt
from bittern.analysis.curves import mean_curve, mean_surface
from bittern.errors import FileError
from bittern.experiments import Example, Protocol, Record, Records, cells_of
from bittern.experiments.record import values_of
from bittern.io.toml import to_toml
from bittern.report.charts import join, linear, logarithmic, ordinal, styles_of
from bittern.report.charts import tag as element
from bittern.report.page import page_of, write_page

VOID = {"br", "col", "hr", "img", "input", "link", "meta"}
EVIL = "<script>alert('x')</script> & \"quotes\""
METRICS = ["ap", "precision@r2", "auprc"]
CLEAN = {
    "name": "improved",
    "fingerprint": "abc",
    "sizes": {"train": 30, "queries": 12, "database": 40},
    "overlaps": "all sets are disjoint",
    "balanced_by": "class",
    "leaks": 0,
    "leak_check": "improved: 0 of 82 items have a twin behind one of 3 walls",
    "notes": [],
}


def protocol_of(methods=("float", "lsh", "itq"), lengths=(8, 16), runs=2, **other):
    table = {
        "title": "A test",
        "reproduces": "Nothing.",
        "differs": "In everything.",
        "takes": "No time.",
        "dataset": {"name": "digits"},
        "split": {"name": "improved"},
        "n_bits": list(lengths),
        "runs": runs,
        "metrics": METRICS,
        "method": [
            {"name": "exact" if label == "float" else "lsh", "label": label} for label in methods
        ],
    }
    return Protocol.of(table | other)


def measured(cell, *, nothing_relevant=False, split=CLEAN, **other):
    """A record of random codes: right in form, and good in proportion to the length."""
    rng = np.random.default_rng([cell.run, cell.n_bits or 0, len(cell.method.label)])
    labels, query_labels = np.arange(40) % 4, np.arange(12) % 4
    if nothing_relevant:
        query_labels = query_labels + 10
    truth = bt.Relevance.from_classes(query_labels, labels)
    centres = rng.random((20, 16)) < 0.5
    rows = np.where(rng.random((52, 16)) < 0.25, ~centres[0], centres[np.r_[query_labels, labels]])
    if cell.n_bits is None:
        apart = (rows[:12, None] != rows[None, 12:]).sum(axis=2) + rng.random((12, 40))
        profile = bt.TieProfile.from_distances(apart, truth)
    else:
        codes = bt.Codes.from_bits(rows[:, : cell.n_bits])
        profile = bt.TieProfile.from_codes(codes[:12], codes[12:], truth)
    known = {
        "method": cell.method.label,
        "n_bits": cell.n_bits,
        "run": cell.run,
        "fingerprint": cell.fingerprint,
        "parameters": {},
        "values": values_of(profile, METRICS),
        "profile": None if cell.n_bits is None else profile,
        "curves": {
            "micro": bt.pr_curve(profile),
            "interpolated": bt.interpolated_pr_curve(profile),
        },
        "query_positions": tuple(range(12)),
        "query_labels": tuple(query_labels.tolist()),
        "n_relevant": tuple(profile.n_relevant.tolist()),
        "seconds": {"fit": 0.5, "encode": 0.01, "evaluate": 0.1},
        "peak_memory": 1 << 28,
        "split": split,
        "versions": {"bittern": "0.1.0", "python": "3.11"},
    }
    return Record(**(known | other))


def records_of(protocol=None, folder=None, **other):
    protocol = protocol or protocol_of()
    found = tuple(measured(cell, **other) for cell in cells_of(protocol))
    return Records(protocol, found, folder=folder)


def tables_of():
    surface = {
        "bits_per_table": [4, 8],
        "n_tables": [1, 2],
        "precision": [[0.5, 0.4], [0.75, None]],
        "recall": [[0.25, 0.5], [0.125, None]],
        "f1": [[0.3333, 0.4444], [0.2143, None]],
    }
    grid = {"bits_per_table": [4, 8], "n_tables": [1, 2]}
    protocol = protocol_of(["lsh"], [8], paradigm="tables", tables=grid)
    return records_of(protocol, surface=surface)


def with_a_gap():
    protocol = protocol_of()
    cells = cells_of(protocol)
    found = tuple(measured(cell) for cell in cells[:-2])
    failures = {cells[-1].name: f"no memory {EVIL}"}
    return Records(protocol, found, tuple(cells[-2:]), failures)


def with_evil_names():
    protocol = protocol_of(["float", f"{EVIL} a", f"{EVIL} b"], title=EVIL, reproduces=EVIL)
    return records_of(protocol, split=CLEAN | {"leak_check": EVIL, "notes": [EVIL]})


KINDS = {
    "three methods": records_of,
    "one method": lambda: records_of(protocol_of(["lsh"])),
    "one run": lambda: records_of(protocol_of(runs=1)),
    "one length": lambda: records_of(protocol_of(lengths=[8])),
    "one of everything": lambda: records_of(protocol_of(["lsh"], [8], 1)),
    "no codes": lambda: records_of(protocol_of(["float"])),
    "all undefined": lambda: records_of(nothing_relevant=True),
    "no classes": lambda: records_of(query_labels=None),
    "many methods": lambda: records_of(protocol_of([f"method {i}" for i in range(17)], [8], 1)),
    "tables": tables_of,
    "a gap": with_a_gap,
    "nothing yet": lambda: Records(protocol_of(), (), tuple(cells_of(protocol_of()))),
    "evil names": with_evil_names,
}


@pytest.fixture(params=KINDS, scope="module")
def page(request):
    return page_of(KINDS[request.param]())


class Reader(HTMLParser):
    """Elements in order, with what is opened and never closed, or closed and never opened."""

    def __init__(self, page):
        super().__init__()
        self.open, self.wrong, self.found = [], [], []
        self.feed(page)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attributes):
        """Keep it, and that it is open."""
        self.found.append((tag, dict(attributes), tuple(self.open)))
        names = [name for name, _ in attributes]
        self.wrong += [f"{tag} has {name} twice" for name in names if names.count(name) > 1]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """It must be the last that was opened."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def all(self, tag):
        """The attributes of every such element."""
        return [attributes for name, attributes, _ in self.found if name == tag]


def text_of(page):
    """What a reader sees, without the style sheet."""
    return re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))


def test_every_element_is_closed_where_it_should_be(page):
    reader = Reader(page)
    assert len(reader.found) > 20
    assert not reader.wrong


def test_the_reader_of_these_tests_finds_wrong_markup():
    assert Reader("<p><b>x</p></b>").wrong
    assert Reader("<p>").wrong
    assert not Reader("<p>a<br>b</p>").wrong


def test_addresses_are_unique_and_links_lead_to_them(page):
    reader = Reader(page)
    ids = [a["id"] for _, a, _ in reader.found if "id" in a]
    assert len(set(ids)) == len(ids)
    links = [a["href"] for a in reader.all("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_nothing_is_asked_for_from_elsewhere(page):
    reader = Reader(page)
    for tag, attributes, _ in reader.found:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    assert not re.findall(r"@import", page)
    assert all(one.startswith("data:") for one in re.findall(r"url\(([^)]*)\)", page))
    assert not {"script", "link", "iframe", "img"} & {tag for tag, *_ in reader.found}
    (policy,) = [a["content"] for a in reader.all("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'")


def test_every_figure_says_what_it_shows_in_words(page):
    drawn = Reader(page).all("svg")
    for attributes in drawn:
        hidden = attributes.get("aria-hidden") == "true"
        assert hidden or (attributes.get("role") == "img" and len(attributes["aria-label"]) > 10)


def test_every_table_has_a_caption_and_its_headers_say_of_what(page):
    reader = Reader(page)
    assert len(reader.all("caption")) == len(reader.all("table"))
    assert all(attributes.get("scope") in ("col", "row") for attributes in reader.all("th"))


def test_no_place_on_a_figure_is_undefined(page):
    assert not re.findall(r'="[^"]*\b(?:nan|inf)\b[^"]*"', page)


def test_the_page_is_in_a_language_and_fits_a_phone(page):
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert any(a.get("name") == "viewport" for a in Reader(page).all("meta"))
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_names_are_text_and_never_markup():
    page = page_of(with_evil_names())
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") > 10
    assert not Reader(page).wrong


def test_the_sections_come_in_their_order():
    anchors = [a["id"] for a in Reader(page_of(records_of())).all("section")]
    assert anchors == [
        "table", "bits", "curves", "ties", "costs", "classes", "areas", "split", "again",
    ]  # fmt: skip


def test_the_page_tells_what_the_protocol_says_of_itself():
    text = text_of(page_of(records_of()))
    for said in ("A test", "Nothing.", "In everything.", "No time."):
        assert said in text


def test_the_values_of_the_table_are_those_of_the_records():
    records = records_of()
    page = page_of(records)
    for method in ("lsh", "itq"):
        assert f"{records.over_runs(method, 16, 'ap').mean():.4f}" in page


def test_a_leak_is_printed_where_nobody_misses_it():
    leak = "improved: 3 of 82 items have a twin behind one of 3 walls"
    records = records_of(split=CLEAN | {"leaks": 3, "leak_check": leak})
    page = page_of(records)
    assert "Leaks were found" in page
    assert page.index("82 items checked: 3 have duplicates") < page.index('id="table"')
    warnings = [a for a in Reader(page).all("div") if a.get("class") == "warning"]
    assert len(warnings) == 2


def test_a_leak_in_one_run_alone_is_printed_too():
    records = records_of()
    leaky = CLEAN | {"leaks": 1, "leak_check": "one twin"}
    last = dataclasses.replace(records.records[-1], split=leaky)
    page = page_of(dataclasses.replace(records, records=(*records.records[:-1], last)))
    assert "in 1 run: one twin" in page


def test_without_a_leak_there_is_no_warning():
    page = page_of(records_of())
    assert "No leak was found" in page
    assert "82 items checked: no duplicates across the split." in page
    assert "twin" not in page and "wall" not in page
    assert not [a for a in Reader(page).all("div") if a.get("class") == "warning"]


def test_a_split_that_was_not_checked_is_not_called_clean():
    unchecked = {key: one for key, one in CLEAN.items() if not key.startswith("leak")}
    page = page_of(records_of(split=unchecked))
    assert "The split was not checked for leaks." in page and "No leak was found" not in page


def test_undefined_queries_are_counted_and_have_no_value():
    text = text_of(page_of(records_of(nothing_relevant=True)))
    assert "ap: 96 of 96 over methods, lengths and runs" in text
    assert not re.search(r"\bnan\b", text)


def test_zero_undefined_queries_are_told_too():
    page = page_of(records_of(protocol_of(metrics=["ap"])))
    assert "none: every query has a value of every metric" in page


def test_missing_cells_are_listed_with_their_reasons():
    text = text_of(page_of(with_a_gap()))
    assert "2 of 10 cells are missing" in text
    assert "no memory" in text
    assert "not run yet" in text


def test_impossible_settings_of_tables_are_blank():
    page = page_of(tables_of())
    section = page[page.index('id="surface"') : page.index("Run it again</h2>")]
    assert len(re.findall('<rect class="cell"', section)) == 3
    assert "K = 4, L = 2: F1 0.444, precision 0.400, recall 0.500" in section
    assert "The best is 0.444, with K = 4 and L = 2." in section


def test_without_tables_there_is_no_surface():
    assert 'id="surface"' not in page_of(records_of())


def test_the_protocol_on_the_page_can_be_read_again():
    truth = {"kind": "thresholds", "gains": [1, 2], "percentiles": [5.0, 0.5]}
    title = 'A "title"\\ of\ttwo\nlines'
    protocol = protocol_of(["float", f"{EVIL} a"], truth=truth, title=title)
    text = to_toml(protocol.to_dict())
    assert Protocol.of(tomllib.loads(text)) == protocol


def test_the_protocol_is_printed_as_its_file_has_it(tmp_path):
    (tmp_path / "protocol.toml").write_text("# why it was run\n")
    assert "# why it was run" in page_of(records_of(folder=tmp_path))


def test_the_page_is_the_same_for_the_same_records():
    assert page_of(records_of()) == page_of(records_of())


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    write_page(records_of(), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page_of(records_of())
    with pytest.raises(FileError):
        write_page(records_of(), tmp_path / "nowhere" / "page.html")


# The gallery


def with_images(folder, missing=(), name="images"):
    images = folder / name
    images.mkdir()
    for position in set(range(20)) - set(missing):
        Image.new("L", (8, 8), 10 * position).save(images / f"{position}.png")
    example = Example(
        query=2, items=(5, 6, 7, 8), distances=(1, 3, 3, 4), relevant=(True, True, False, False)
    )
    return records_of(folder=folder, examples=(example,))


def test_each_image_is_in_the_page_once(tmp_path):
    page = page_of(with_images(tmp_path))
    assert page.count("data:image/png;base64,") == 5
    assert "image-rendering:pixelated" in page


def test_images_of_earlier_experiments_are_in_pictures(tmp_path):
    page = page_of(with_images(tmp_path, name="pictures"))
    assert page.count("data:image/png;base64,") == 5 and 'id="gallery"' in page


def test_ties_share_a_box_with_the_distance_written_once(tmp_path):
    page = page_of(with_images(tmp_path))
    row = re.search(r'<div class="ties">(.*?)</div>', page)[1]
    boxes = re.findall(r'class="(tie(?: many)?)"><span class="distance">([^<]+)', row)
    assert boxes == [("tie", "1"), ("tie many", "3"), ("tie", "4")]
    between = row[row.index("tie many") : row.rindex('class="tie"')]
    assert ("p6" in between, "p7" in between, "p8" in between) == (True, True, False)


def test_right_and_wrong_are_told_without_colour(tmp_path):
    row = re.search(r'<div class="ties">(.*?)</div>', page_of(with_images(tmp_path)))[1]
    assert re.findall(r'aria-label="item (\d), (\w+)">(.)<', row) == [
        ("5", "right", "✓"), ("6", "right", "✓"), ("7", "wrong", "✗"), ("8", "wrong", "✗"),
    ]  # fmt: skip


def test_a_missing_image_leaves_its_frame(tmp_path):
    page = page_of(with_images(tmp_path, missing=[7]))
    assert page.count("data:image/png;base64,") == 4
    assert not Reader(page).wrong


def test_without_images_there_is_no_gallery(tmp_path):
    records = with_images(tmp_path)
    assert 'id="gallery"' in page_of(records)
    shutil.rmtree(tmp_path / "images")
    assert 'id="gallery"' not in page_of(records)
    assert 'id="gallery"' not in page_of(dataclasses.replace(records, folder=None))


# Charts and averages


def test_text_is_escaped_and_markup_is_not():
    made = element(
        "text", "a < b & c", element("b", "d"), None, class_='x"y', stroke_width=1.5, id=None
    )
    assert made == '<text class="x&#34;y" stroke-width="1.5">a &lt; b &amp; c<b>d</b></text>'
    assert join("<", Markup("<br>"), None) == "&lt;<br>"


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.2, 0.97], ["0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0.0, 1.2], ["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"]),
        ([3.0, 14.0], ["2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]),
        ([0.61, 0.61], ["0.525", "0.550", "0.575", "0.600", "0.625", "0.650", "0.675"]),
        ([np.nan, 0, 5000], ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]),
    ],
)
def test_ticks_are_round_and_hold_all_values(values, ticks):
    scale = linear(values)
    assert [name for _, name in scale.ticks] == ticks
    assert scale.low <= np.nanmin(values) <= np.nanmax(values) <= scale.high


@pytest.mark.parametrize("values", [[], [np.nan], [0.0], [-1e-9, 1e9], [1e-300, 2e-300]])
def test_a_scale_can_be_made_of_anything(values):
    for scale in (linear(values), logarithmic(values), ordinal([])):
        assert 0 <= scale.share(0.5) <= 1


def test_a_logarithmic_scale_has_powers_of_ten():
    scale = logarithmic([0.002, 0, 40.0])
    assert [name for _, name in scale.ticks] == ["0.001", "0.01", "0.1", "1", "10", "100"]
    assert scale.share(0.1) == pytest.approx(0.4)


def test_no_two_methods_look_alike():
    styles = styles_of([str(i) for i in range(28)])
    assert len(set(styles.values())) == 28


def test_curves_are_averaged_radius_by_radius():
    records = records_of(protocol_of(["lsh"], [8], 2))
    curve = mean_curve(records, "lsh", 8, "micro")
    each = [record.curves["micro"] for record in records]
    radius = 4
    assert curve.radius[radius] == radius
    assert curve.recall[radius] == pytest.approx(np.mean([c.recall[radius] for c in each]))
    assert curve.precision[radius] == pytest.approx(np.mean([c.precision[radius] for c in each]))


def test_curves_over_real_distances_are_averaged_at_recalls():
    steep, flat = (
        bt.Curve(np.array([0.0, 1.0]), np.array([1.0, low]), np.array([0.0, far]))
        for low, far in ((0.0, 2.5), (0.5, 1.5))
    )
    records = records_of(protocol_of(["float"]))
    found = [
        dataclasses.replace(record, curves={"micro": curve})
        for record, curve in zip(records, (steep, flat), strict=True)
    ]
    curve = mean_curve(dataclasses.replace(records, records=tuple(found)), "float", None, "micro")
    assert curve.precision[50] == pytest.approx((0.5 + 0.75) / 2)
    assert mean_curve(records, "float", None, "unknown") is None


def test_surfaces_are_averaged_and_impossible_settings_stay_so():
    surface = mean_surface(tables_of(), "lsh", 8)
    np.testing.assert_allclose(surface.f1, [[0.3333, 0.4444], [0.2143, np.nan]])
    assert mean_surface(records_of(), "lsh", 8) is None


# As a browser shows it

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0",
    "--window-size=1000,1400",
)  # fmt: skip
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")


def shown(path, folder, *flags):
    """The image of a page, what its console said, and what it asked for."""
    image, log = folder / "page.png", folder / "net.json"
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'user'}",
         f"--log-net-log={log}", f"--screenshot={image}", path.as_uri()],
        capture_output=True, text=True, timeout=seconds(120), check=True,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    events = json.loads(log.read_text())["events"]
    # Chromium's own requests have no origin; a page's have, that of a file is called null.
    asked = {
        event["params"]["url"]
        for event in events
        if event.get("params", {}).get("initiator") == "null"
    }
    return np.asarray(Image.open(image).convert("L")), said, asked


@needs_chromium
@pytest.mark.slow  # a browser starts
def test_what_these_tests_ask_of_the_browser_is_heard(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        '<!DOCTYPE html><title>x</title><img src="http://asked.invalid/x.png" alt="">'
        "<script>console.log('heard')</script>"
    )
    image, said, asked = shown(path, tmp_path)
    assert len(np.unique(image)) < 8
    assert any("heard" in line for line in said)
    assert asked == {"http://asked.invalid/x.png"}


@needs_chromium
@pytest.mark.slow  # a browser starts
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_shown_with_a_clean_console_and_asks_for_nothing(tmp_path, scheme):
    path = tmp_path / "page.html"
    write_page(with_images(tmp_path), path)
    wish = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    image, said, asked = shown(path, tmp_path, *wish)
    assert (said, asked) == ([], set())
    assert len(np.unique(image)) > 50
    ground = np.bincount(image.ravel()).argmax()
    assert (ground > 230) == (scheme == "light") and (ground < 60) == (scheme == "dark")
    assert (np.abs(image.astype(int) - ground) > 60).mean() > 0.01  # something is on it


def test_the_ties_are_a_table_like_that_of_the_paper():
    """Expected value, value in database order, and both extremes in brackets, for each length."""
    protocol = protocol_of(["a", "b"], runs=1, metrics=("ap", "ap:database-order"))
    means = {("a", 8): 0.5, ("a", 16): 0.6, ("b", 8): 0.25, ("b", 16): 0.35}
    found = tuple(
        record_of(
            label,
            n_bits,
            0,
            {
                "ap": value_of([mean, mean], spread=0.04),
                "ap:database-order": value_of([mean + 0.01, mean - 0.03]),
            },
        )
        for (label, n_bits), mean in means.items()
    )
    page = page_of(Records(protocol, found, (), {}))
    table = page[page.index("<caption>ap by the order of tied items, 8 bits") :].split("</table>")[
        0
    ]
    assert re.findall(r'<th scope="col">(.*?)</th>', table)[1:] == [
        "ap",
        "ap:database-order",
        "(best order, worst order)",
    ]
    rows = re.findall(r'<th scope="row">(.)</th>(.*?)</tr>', table, re.DOTALL)
    assert {name: re.findall("<td>(.*?)</td>", cells) for name, cells in rows} == {
        "a": ["0.500", "0.490", "(0.540, 0.460)"],
        "b": ["0.250", "0.240", "(0.290, 0.210)"],
    }
    assert "in the order of the database" in page
    assert page.count("in database order: 0.490") == 1
