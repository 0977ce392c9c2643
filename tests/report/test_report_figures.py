"""Figures as files: valid, whole, without variables, and drawn from the records."""

import re
import xml.etree.ElementTree as ET
from importlib.resources import files

import numpy as np
import pytest
from made_records import CLEAN, drawn, protocol_of, records_of, three_methods
from matplotlib.cbook import boxplot_stats

from bittern.analysis import analyse, summarise, sweep_of
from bittern.errors import FileError, InputError, UnknownNameError
from bittern.experiments import Protocol, Records
from bittern.report import page_of, to_svg, write_figures
from bittern.report.figures import FIGURES
from bittern.report.figures.retrieval import classes_figure

SVG = "{http://www.w3.org/2000/svg}"
RECORDS = records_of(three_methods(), spread=0.02)


def swept(values, parameter="n_iter", name="itq", lengths=(8,), **others):
    """Records of methods that differ in a parameter: label, its value, and the centre of AP."""
    methods = [
        {"name": name, "label": label, "parameters": {parameter: value} | others.get(label, {})}
        for label, value, _ in values
    ]
    protocol = Protocol.of(
        {
            "title": "A sweep",
            "dataset": {"name": "digits"},
            "split": {"name": "improved"},
            "n_bits": list(lengths),
            "runs": 3,
            "metrics": ["ap"],
            "method": methods,
        }
    )
    found = {
        (label, n): drawn(3, 20, centre, i)
        for i, (label, _, centre) in enumerate(values)
        for n in lengths
    }
    return records_of(found, protocol=protocol)


def no_codes():
    values = {("float", None): drawn(3, 9, 0.5, 0), ("other", None): drawn(3, 9, 0.6, 1)}
    protocol = protocol_of(["float", "other"], n_bits=[8])
    return records_of(values, protocol=protocol)


# What a sweep is


def test_methods_that_differ_in_one_number_are_a_curve_over_it():
    records = swept([("ITQ, 20", 20, 0.5), ("ITQ, 5", 5, 0.3), ("ITQ, 10", 10, 0.4)])
    sweep = sweep_of(records)
    assert sweep.parameter == "n_iter" and sweep.values == [5, 10, 20]
    assert sweep.series == {"ITQ": {5: "ITQ, 5", 10: "ITQ, 10", 20: "ITQ, 20"}}
    means = {s.method: s.mean for s in summarise(records, "ap")}
    found = sweep.summaries(records, "ap", 8)["ITQ"]
    assert [s.mean for s in found.values()] == [means["ITQ, 5"], means["ITQ, 10"], means["ITQ, 20"]]


def test_series_with_labels_that_begin_alike_are_named_after_what_differs():
    labels = [(f"k {k}, {n}", k, 0.5) for n in (50, 100) for k in (5, 10, 20)]
    others = {f"k {k}, {n}": {"n_anchors": n} for n in (50, 100) for k in (5, 10, 20)}
    sweep = sweep_of(swept(labels, "n_neighbours", "agh", **others))
    assert sweep.parameter == "n_neighbours"
    assert list(sweep.series) == ["agh, n_anchors = 50", "agh, n_anchors = 100"]
    assert sweep.series["agh, n_anchors = 100"] == {5: "k 5, 100", 10: "k 10, 100", 20: "k 20, 100"}


@pytest.mark.parametrize(
    "values",
    [
        [("a", 5, 0.5), ("b", 10, 0.5)],  # two points are no curve
        [("a", 5, 0.5), ("b", 5, 0.4), ("c", 5, 0.3)],
    ],
)
def test_few_values_are_no_sweep(values):
    assert sweep_of(swept(values)) is None
    assert to_svg(swept(values), "parameter") is None


def test_methods_that_differ_elsewhere_too_are_no_sweep():
    values = [("a", 5, 0.5), ("b", 10, 0.4), ("c", 20, 0.3)]
    others = {label: {"random_state": i} for i, label in enumerate("abc")}
    assert sweep_of(swept(values, **others)) is None


def test_a_sweep_is_drawn_on_the_page_and_as_a_file():
    records = swept([(f"ITQ, {n}", n, 0.3 + n / 100) for n in (1, 5, 20)], lengths=(8, 16))
    page = page_of(records)
    assert 'id="sweep"' in page and "Quality against n_iter" in page
    names = [t.text for t in drawn_of(records, "parameter").iter(f"{SVG}text")]
    assert {"n_iter", "ap", "1", "5", "20", "8 bits", "16 bits"} <= set(names)
    assert 'id="sweep"' not in page_of(RECORDS)


# Files


def drawn_of(records, name):
    return ET.fromstring(to_svg(records, name))


@pytest.mark.parametrize("name", ["bits", "ties", "costs"])
def test_a_figure_is_valid_needs_no_variables_and_says_what_it_shows(name):
    text = to_svg(RECORDS, name)
    whole = ET.fromstring(text)
    assert whole.tag == f"{SVG}svg"
    assert "var(" not in text and "--" not in text
    inner = [one for one in whole.iter(f"{SVG}svg") if one is not whole]
    assert inner and all(one.get("aria-label") for one in inner)
    assert to_svg(RECORDS, name) == text


def test_every_class_of_a_figure_has_its_colour():
    text = to_svg(RECORDS, "bits")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    used = set(re.findall(r'class="((?:line|mark|band|stroke) \w+)"', text))
    assert used
    for one in used:
        kind, colour = one.split()
        assert re.search(rf"\.{kind}\.{colour} {{[^}}]*#[0-9a-f]+", style), one


def test_no_drawing_leaves_the_sheet_or_lies_on_another():
    whole = drawn_of(records_of(three_methods(), spread=0.02), "costs")
    width, height = (float(whole.get(side)) for side in ("width", "height"))
    boxes = []
    for group in whole.iter(f"{SVG}g"):
        for one in group.findall(f"{SVG}svg"):
            x, y = map(float, re.findall(r"[\d.]+", group.get("transform")))
            boxes.append((x, y, x + float(one.get("width")), y + float(one.get("height"))))
    assert len(boxes) == 3
    for i, (x1, y1, x2, y2) in enumerate(boxes):
        assert x1 >= 0 and x2 <= width and y1 >= 0 and y2 <= height
        for a1, b1, a2, b2 in boxes[:i]:
            assert x1 >= a2 or a1 >= x2 or y1 >= b2 or b1 >= y2


def test_names_in_a_figure_are_text():
    values = {(f"<b>&{label}", 8): drawn(3, 9, 0.5, i) for i, label in enumerate("ab")}
    names = [one.text for one in drawn_of(records_of(values), "bits").iter(f"{SVG}text")]
    assert "<b>&a" in names


def test_many_names_of_a_legend_take_several_rows():
    values = {(f"a method with a long name {i}", 8): drawn(2, 9, 0.5, i) for i in range(9)}
    whole = drawn_of(records_of(values), "bits")
    width = float(whole.get("width"))
    rows = set()
    for group in whole.iter(f"{SVG}g"):
        words = group.find(f"{SVG}text")
        if words is not None and group.get("transform"):
            x, y = map(float, re.findall(r"[\d.]+", group.get("transform")))
            rows.add(y)
            assert x + 36 + 6 * len(words.text) <= width
    assert len(rows) > 1


def test_methods_without_codes_are_points_with_the_best_on_top():
    records = no_codes()
    assert 'id="methods"' in page_of(records) and 'id="bits"' not in page_of(records)
    whole = drawn_of(records, "methods")
    heights = {one.text: float(one.get("y")) for one in whole.iter(f"{SVG}text")}
    best, other = sorted(summarise(records, "ap"), key=lambda s: -s.mean)
    assert heights[best.method] < heights[other.method]
    assert to_svg(RECORDS, "methods") is None


def test_every_figure_that_there_is_something_for_is_written(tmp_path):
    written = write_figures(RECORDS, tmp_path / "new" / "figures")
    names = {path.stem for path in written}
    assert names == {name for name in FIGURES if to_svg(RECORDS, name) is not None}
    assert {"bits", "ties", "costs"} <= names and "tables" not in names
    assert all(path.read_text() == to_svg(RECORDS, path.stem) for path in written)


def test_ties_of_one_method_are_drawn_against_length():
    values = {("a", n): drawn(3, 9, 0.3 + n / 100, n) for n in (8, 16)}
    alone = records_of(values, spread=0.05)
    label = drawn_of(alone, "ties").find(f".//{SVG}svg").get("aria-label")
    for s in summarise(alone, "ap"):
        assert f"best order of ties, {s.n_bits} bits: {s.spread[1]:.3f}" in label
        assert f"expected, {s.n_bits} bits: {s.mean:.3f}" in label
        assert f"worst order of ties, {s.n_bits} bits: {s.spread[0]:.3f}" in label
    assert "bars run from the lowest run" in page_of(alone)
    values["a", 16] = [[np.nan]] * 3
    assert "nan" not in to_svg(records_of(values, spread=0.05), "ties")


TIE_METRICS = ("ap", "ap:database-order", "ap:optimistic", "ap:pessimistic")


def many_runs(labels=("a",), runs=12, metrics=TIE_METRICS):
    values = {
        (label, n): drawn(runs, 9, 0.3 + n / 100, i + n)
        for i, label in enumerate(labels)
        for n in (8, 16)
    }
    protocol = protocol_of(labels, runs=runs, n_bits=(8, 16), metrics=metrics)
    return records_of(values, spread=0.05, protocol=protocol)


def test_many_runs_of_ties_are_box_plots():
    records = many_runs()
    label = drawn_of(records, "ties-boxes").find(f".//{SVG}svg").get("aria-label")
    for n_bits in (8, 16):
        means = records.over_runs("a", n_bits, "ap")
        box = boxplot_stats(means)[0]
        numbers = [box[key] for key in ("med", "q1", "q3", "whislo", "whishi")]
        words = "median {:.3f}, quartiles {:.3f} and {:.3f}, whiskers {:.3f} and {:.3f}"
        assert f"expected, {n_bits} bits: {words.format(*numbers)}" in label
    assert to_svg(records, "ties-boxes").count('class="box ') == 6  # three orders at two lengths
    assert to_svg(records, "ties") is None  # the same without quartiles


@pytest.mark.parametrize("records", [many_runs(runs=9), many_runs(metrics=("ap",))])
def test_few_runs_or_no_extremes_are_no_box_plots(records):
    assert to_svg(records, "ties-boxes") is None
    assert to_svg(records, "ties") is not None


def test_several_methods_have_a_panel_of_boxes_each_below_their_bars():
    records = many_runs(("a", "b"))
    panels = drawn_of(records, "ties-boxes").findall(f".//{SVG}svg")
    assert len(panels) == 2 and "b over runs" in panels[1].get("aria-label")
    page = page_of(records)
    assert page.count("<h2") == len(set(re.findall(r"<h2[^>]*>(.*?)</h2>", page)))
    assert page.index("Each bar runs from") < page.index("A box spans")


def test_nothing_measured_is_no_figure(tmp_path):
    with pytest.raises(InputError, match="no records yet"):
        write_figures(Records(protocol_of(["a"]), ()), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_undefined_values_are_no_place(tmp_path):
    undefined = records_of({("a", 8): [[np.nan]] * 2, ("b", 8): [[0.5]] * 2}, spread=0.1)
    for path in write_figures(undefined, tmp_path):
        assert "nan" not in path.read_text()


def test_a_wrong_name_and_a_wrong_folder_are_told(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'ties'"):
        to_svg(RECORDS, "tie")
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be created"):
        write_figures(RECORDS, tmp_path / "file")


# Many classes, and small screens.


def of_classes(n_classes):
    """Two methods on a query of each class, the first class the hardest."""
    means = np.linspace(0.1, 0.9, n_classes)
    split = CLEAN | {"class_names": [f"kind {i}" for i in range(n_classes)]}
    values = {("a", 8): [means], ("b", 8): [means + 0.05]}
    return records_of(values, query_labels=tuple(range(n_classes)), split=split)


def names_in(panel):
    return re.findall(r">(kind \d+|…)</text>", str(panel.svg))


def test_a_chart_of_many_classes_shows_both_ends_and_the_table_has_all():
    figure = classes_figure(analyse(of_classes(101)))
    (panel,) = figure.panels
    assert panel.height < 720  # it was 2,098
    easiest = [f"kind {i}" for i in range(100, 85, -1)]
    hardest = [f"kind {i}" for i in range(14, -1, -1)]
    assert names_in(panel)[::-1] == [*easiest, "…", *hardest]
    assert str(panel.svg).count("<title>a, kind ") == 30  # marks of each method
    assert "Of 101 classes, the 15 with the highest and the 15 with the lowest" in figure.caption[0]
    page = page_of(of_classes(101))
    table = page[page.index("ap by class, 8 bits") :]
    assert all(f">kind {i}</th>" in table for i in range(101))


@pytest.mark.parametrize("n_classes", [4, 31])
def test_a_chart_of_a_few_classes_shows_all(n_classes):
    figure = classes_figure(analyse(of_classes(n_classes)))
    (panel,) = figure.panels
    assert len(names_in(panel)) == n_classes and "…" not in names_in(panel)
    assert "Of " not in figure.caption[0]


@pytest.mark.parametrize("chart_width", [480, 560])
def test_text_of_wide_charts_is_readable_on_a_phone(chart_width):
    sheet = files("bittern.report.templates").joinpath("page.css").read_text()
    phone = sheet[sheet.index("@media (max-width: 32rem)") :]
    own = re.search(rf'"0 0 {chart_width} "\] text {{ font-size: ([\d.]+)px', phone)
    general = re.search(r"\.wide \.chart text { font-size: ([\d.]+)px", phone)
    size = float((own or general)[1])
    assert size * (390 - 2 * 16) / chart_width >= 11  # pixels, beside the page's margins
