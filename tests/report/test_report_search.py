"""The sections Search and Training: drawn from the trials, and true to them."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from made_records import protocol_of, record_of, records_of, three_methods, value_of

from bittern.analysis import analyse
from bittern.experiments import Records, trials_of
from bittern.report import choices_to_text, page_of, to_markdown, to_svg

SVG = "{http://www.w3.org/2000/svg}"
GRID = {"n_epochs": [20, 5, 10], "start": ["a", "b"]}
EPOCHS = {
    "train_exact": (0.2, 0.5, 0.8),
    "train_relaxed": (0.1, 0.4, 0.6),
    "held_out_exact": (0.2, 0.4, 0.5),
    "held_out_relaxed": (0.1, 0.3, 0.4),
}


def score(trial):
    """Best with 10 epochs and start = b, and better with longer codes."""
    epochs, start = trial.point["n_epochs"], trial.point["start"]
    return 0.5 + trial.n_bits / 100 - abs(epochs - 10) / 50 + 0.1 * (start == "b")


def records_with(*, points=None, curves=None, cell_curves=None, missing=0):
    """Made-up records of two methods, with the trials of the second one's grid."""
    method = [{"name": "sdh", "label": "first"}, {"name": "talr", "label": "second", "grid": GRID}]
    search = {} if points is None else {"points": points}
    plan = protocol_of([], method=method, search=search, runs=1)
    trials = trials_of(plan)
    done = trials[: len(trials) - missing]
    values = [{"ap": value_of([score(trial)])} for trial in done]
    more = {"training_curves": curves or {}}
    tried = tuple(
        replace(record_of("second", trial.n_bits, 0, found, **more), parameters=trial.parameters)
        for trial, found in zip(done, values, strict=True)
    )
    cells = tuple(
        record_of(label, n, 0, {"ap": value_of([0.5, 0.6])}, training_curves=cell_curves or {})
        for label in ("first", "second")
        for n in (8, 16)
    )
    return Records(plan, cells, trials=tried, missing_trials=tuple(trials[len(done) :]))


def texts(svg):
    return [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_an_outcome_has_every_point_the_chosen_one_and_the_range():
    first, second = analyse(records_with()).searches
    assert (first.method, first.n_bits, second.n_bits) == ("second", 8, 16)
    assert len(first.tried) == first.size == 6
    assert first.chosen.point == {"n_epochs": 10, "start": "b"}
    assert first.chosen.score == pytest.approx(0.5 + 0.08 + 0.1)
    assert first.reach == pytest.approx((0.58 - 0.2, 0.68))
    assert first.values("n_epochs") == [5, 10, 20] and first.values("start") == ["a", "b"]
    assert first.best_with("n_epochs", 20) == pytest.approx(0.68 - 0.2)
    assert first.best_with("start", "a") == pytest.approx(0.58)


def test_the_table_of_choices_is_on_the_page_in_markdown_and_in_text():
    records = records_with(points=4)
    (outcome, _) = analyse(records).searches
    chosen = (
        f"n_epochs = {outcome.chosen.point['n_epochs']}, start = {outcome.chosen.point['start']}"
    )
    page = page_of(records)
    assert 'id="search"' in page and "Search of the parameters" in page
    assert f"<td>{chosen}</td>" in page and "<td>4 of 6</td>" in page
    row = re.escape(chosen.replace("_", r"\_"))
    assert re.search(rf"\| second \| 8 bits \| {row} \| 0\.\d+ \| 4 of 6 \|", to_markdown(records))
    assert chosen in choices_to_text(records) and "4 of 6" in choices_to_text(records)


def test_trials_without_a_result_are_counted():
    rows = choices_to_text(records_with(missing=2)).splitlines()
    assert "(2 trials missing)" in rows[-1] and "missing" not in rows[-2]


def test_the_figure_has_a_panel_per_parameter_and_a_mark_per_point():
    svg = to_svg(records_with(), "search")
    assert {"n_epochs", "start", "second", "5", "10", "20", "a", "b", "8 bits"} <= set(texts(svg))
    titles = [title.text for title in ET.fromstring(svg).iter(f"{SVG}title")]
    assert len(titles) == 2 * 2 * 6  # parameters × lengths × points
    assert titles.count("chosen: 8 bits, n_epochs = 10, start = b: 0.680") == 2
    assert [t for t in texts(svg) if t in ("5", "10", "20")] == ["5", "10", "20"]  # ascending


def test_a_parameter_with_one_value_has_no_panel():
    records = records_with()
    method = replace(records.protocol.method[1], grid=GRID | {"hidden": [64]})
    plan = replace(records.protocol, method=(records.protocol.method[0], method))
    trials = tuple(replace(t, parameters=t.parameters | {"hidden": 64}) for t in records.trials)
    svg = to_svg(replace(records, protocol=plan, trials=trials), "search")
    assert "hidden" not in texts(svg) and "n_epochs" in texts(svg)


def test_without_trials_or_curves_there_are_no_such_sections():
    page = page_of(records_of(three_methods(n_runs=2)))
    assert 'id="search"' not in page and 'id="training"' not in page
    assert "Chosen on" not in to_markdown(records_of(three_methods(n_runs=2)))
    assert to_svg(records_with(), "training") is None


def test_the_training_of_the_chosen_trial_is_drawn_at_the_middle_length():
    records = records_with(curves=EPOCHS, cell_curves={"train_exact": (0.3, 0.9)})
    first, second = analyse(records).trainings
    assert (first.method, first.is_trial, list(first.curves)) == ("first", False, ["train_exact"])
    assert (second.method, second.is_trial, second.n_bits) == ("second", True, 16)
    assert second.curves == EPOCHS
    svg = to_svg(records, "training")
    assert {"first, 16 bits", "second, 16 bits", "epoch", "held-out rows, relaxed"} <= set(
        texts(svg)
    )
    lines = [one for one in ET.fromstring(svg).iter(f"{SVG}path") if "L" in one.get("d", "")]
    assert sum("line" in one.get("class", "").split() for one in lines) == 4 + 1
    page = page_of(records)
    assert 'id="training"' in page and "is overfitting" in page and "underfitting" in page
    assert "trial of the chosen parameters: second" in page


def test_the_chosen_trial_is_the_one_whose_curves_are_shown():
    records = records_with(curves=EPOCHS)
    marked = tuple(
        replace(t, training_curves={"train_exact": (float(t.parameters["n_epochs"]),)})
        for t in records.trials
    )
    (training,) = analyse(replace(records, trials=marked)).trainings
    assert training.curves == {"train_exact": (10.0,)}
    assert "10.000" in to_svg(replace(records, trials=marked), "training")  # one epoch is a point
