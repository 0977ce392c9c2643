import csv
import dataclasses
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from made_records import CLEAN, drawn, protocol_of, record_of, records_of, three_methods, value_of
from processes import seconds

from bittern.analysis import compare_methods, summarise
from bittern.errors import InputError
from bittern.experiments import Protocol, Records, Value
from bittern.experiments.record import TaskResult
from bittern.metrics.latex import escaped
from bittern.profile import TieProfile
from bittern.report.formats import REPORTS
from bittern.report.latex import to_latex
from bittern.report.markdown import markdown_text, to_markdown
from bittern.report.page import page_of
from bittern.report.results_table import metric_title, results_table, to_text
from bittern.report.sentences import in_words, leak_check, listed, sentences

NAN = np.nan
VALUES = three_methods()
SPREADS = {"float": None, "a": 0.01, "b": 0.05, "c": 0.01}
RECORDS = records_of(VALUES, spread=SPREADS)
NASTY = r"50% of x_1 & {y} #2 $z$ ~a^b\c <d> |e| naïve Łódź α ≥ ½ 中"


def one_method():
    return records_of({("a", 8): drawn(3, 5, 0.5, 0)})


def one_run():
    return records_of({("a", 8): drawn(1, 20, 0.5, 0), ("b", 8): drawn(1, 20, 0.6, 1)})


def all_undefined():
    return records_of({("a", 8): [[NAN, NAN]] * 2, ("b", 8): [[NAN, NAN]] * 2}, spread=0.1)


def no_codes():
    return records_of({("float", None): drawn(3, 5, 0.5, 0)})


def a_gap():
    return records_of({("a", 8): [[0.2], None, [0.4]], ("b", 16): [[0.1], [0.2], [0.3]]})


def a_metric_that_one_lacks():
    protocol = protocol_of(["float", "a"], runs=2, n_bits=[8], metrics=["ap", "precision@r2"])
    both = {"ap": value_of([0.5, 0.6]), "precision@r2": value_of([0.1, NAN])}
    found = [record_of("a", 8, run, both) for run in (0, 1)]
    found += [record_of("float", None, run, {"ap": value_of([0.7, 0.8])}) for run in (0, 1)]
    return Records(protocol, tuple(found))


def nasty_names():
    values = {(f"{NASTY} {label}", 8): drawn(2, 9, 0.5, 0) for label in "ab"}
    records = records_of(values)
    return dataclasses.replace(
        records, protocol=dataclasses.replace(records.protocol, title=f"All of {NASTY}")
    )


CASES = [
    one_method,
    one_run,
    all_undefined,
    no_codes,
    a_gap,
    a_metric_that_one_lacks,
    nasty_names,
    lambda: RECORDS,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("name", REPORTS)
def test_every_format_writes_every_case(name, case):
    records = case()
    written = REPORTS[name](records)
    assert "nan" not in re.findall(r"[a-z]+", written.lower())
    if name != "words":
        for line in (written, *map(str, written.splitlines())):
            assert "None" not in line
    plain = {"latex": escaped, "markdown": markdown_text}.get(name, str)
    for method in records.methods:
        assert plain(method) in written


@pytest.mark.parametrize("name", ["text", "latex", "markdown"])
def test_a_table_without_records_is_refused(name):
    with pytest.raises(InputError, match="no records yet"):
        REPORTS[name](Records(protocol_of(["a"]), ()))


@pytest.mark.parametrize("name", ["text", "latex", "markdown", "words"])
def test_what_is_missing_is_told(name):
    assert re.search(
        r"7 (of 12 )?cells (of the protocol )?are (missing|not)", REPORTS[name](a_gap())
    )


@pytest.mark.parametrize("name", ["text", "latex", "markdown", "words"])
def test_codes_that_store_more_than_their_length_are_told(name):
    def stored(n_columns):
        return TieProfile(
            counts=np.ones((1, n_columns, 2), np.uint32),
            gains=np.array([0, 1]),
            unretrieved=np.zeros((1, 2), np.int64),
        )

    records = records_of({("a", 8): [[0.5], [0.6]], ("b", 8): [[0.4], [0.7]]})
    columns = {("a", 0): 9, ("a", 1): 9, ("b", 0): 13, ("b", 1): 14}
    changed = tuple(
        dataclasses.replace(r, profile=stored(columns[r.method, r.run])) for r in records
    )
    text = REPORTS[name](dataclasses.replace(records, records=changed))
    assert "Thermometer codes store more bits than their length: b 12.5 at 8." in text
    assert "Thermometer" not in REPORTS[name](records)


def test_why_nothing_was_measured_is_told():
    failed = Records(protocol_of(["a"]), (), failures={"a, 8 bits, run 0": "no memory"})
    with pytest.raises(InputError, match="1 cells failed, a, 8 bits, run 0: no memory"):
        REPORTS["text"](failed)


# The table


def test_the_table_has_the_summaries_and_the_verdicts():
    grid = results_table(RECORDS)
    summaries = {(s.method, s.n_bits): s for s in summarise(RECORDS, "ap")}
    assert grid.columns == (8, 16)
    for column, n_bits in enumerate(grid.columns):
        verdicts = compare_methods(RECORDS, "ap", n_bits)
        for method, row in grid.rows.items():
            entry, verdict = row[column], verdicts.of(method)
            expected = summaries.get((method, n_bits)) or summaries[method, None]
            assert entry.summary == expected
            assert entry.is_best == (method == "b")
            assert entry.is_different == (verdict is not None and verdict.is_different)
    assert grid.rows["a"][0].is_different  # not vacuous
    assert grid.rows["c"][0].within_tie_spread and not grid.rows["a"][0].within_tie_spread


def test_text_stars_the_best_and_explains_its_marks():
    text = to_text(RECORDS)
    lines = text.splitlines()
    assert lines[0] == "Average precision, mean ± standard deviation over 6 runs"
    assert lines[2].split() == ["method", "8", "bits", "16", "bits"]
    of_method = {line.split()[0]: line for line in lines[4:8]}
    summary = next(s for s in summarise(RECORDS, "ap") if (s.method, s.n_bits) == ("b", 8))
    assert f"*{summary.mean:.4f} ± {summary.deviation:.4f}" in of_method["b"]
    assert of_method["b"].count("*") == 2 and "*" not in of_method["a"]
    assert of_method["a"].count("†") == 2 and of_method["c"].count("≈") == 2
    for mark in ("* best code", "† differs from b", "≈ another order"):
        assert mark in text


def test_digits_of_the_text_stand_below_each_other():
    lines = to_text(RECORDS).splitlines()[4:8]
    assert len({tuple(m.start() for m in re.finditer("±", line)) for line in lines}) == 1


def test_text_of_one_run_has_no_deviation_and_of_few_runs_a_caution():
    assert "±" not in to_text(one_run())
    assert "one run" in to_text(one_run())
    assert "needs at least two runs" in to_text(one_run())


def test_a_table_of_another_metric_can_be_asked_for():
    text = to_text(a_metric_that_one_lacks(), "precision@r2")
    assert text.startswith("Precision within radius 2")
    assert re.search(r"^float +–$", text, flags=re.MULTILINE)


def two_metrics():
    """Two methods whose order differs by metric, with three metrics."""
    metrics = ["ap", "ap@500", "rr"]
    protocol = protocol_of(["a", "b"], runs=1, n_bits=[8], metrics=metrics)
    found = [
        record_of(m, 8, 0, dict(zip(metrics, map(value_of, ([x], [y], [0.9])), strict=True)))
        for m, x, y in (("a", 0.5, 0.1), ("b", 0.6, 0.05))
    ]
    return Records(protocol, tuple(found))


@pytest.mark.parametrize("write", [to_text, to_markdown])
def test_the_second_metric_has_its_own_table(write):
    before, after = write(two_metrics()).split("Average precision at 500, one run")
    assert re.search(r"^\W*b\W+0\.6000", before, flags=re.MULTILINE)
    assert re.search(r"^\W*a\W+0\.1000", after, flags=re.MULTILINE)
    assert re.search(r"^\W*b\W+0\.0500", after, flags=re.MULTILINE)
    assert "0.9000" not in before + after  # the third one is on the page
    assert "0.0500" not in write(two_metrics(), metric="ap")


def test_the_page_shows_the_second_metric_openly_and_the_others_on_request():
    page = page_of(two_metrics())
    shown, folded = page.split("<summary>The other metrics</summary>")
    assert "0.1000" in shown and "0.1000" not in folded.partition("</details>")[0]
    assert "0.9000" in folded.partition("</details>")[0]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("ap", "average precision"),
        ("precision@100", "precision at 100"),
        ("precision@r2", "precision within radius 2"),
        ("ndcg@10:linear", "normalised discounted cumulative gain at 10, linear"),
        ("f0.5@r2", "f0.5 within radius 2"),
    ],
)
def test_a_metric_has_a_title(name, title):
    assert metric_title(name) == title


# CSV


def test_csv_has_every_summary_in_full_precision():
    rows = list(csv.DictReader(io.StringIO(REPORTS["csv"](RECORDS))))
    summaries = summarise(RECORDS, "ap")
    assert len(rows) == len(summaries)
    for row, summary in zip(rows, summaries, strict=True):
        assert row["method"] == summary.method
        assert row["n_bits"] == ("" if summary.n_bits is None else str(summary.n_bits))
        assert float(row["mean"]) == summary.mean
        assert float(row["deviation"]) == summary.deviation
        assert (float(row["low"]), float(row["high"])) == summary.interval
        if summary.spread is None:
            assert row["pessimistic"] == row["optimistic"] == ""
        else:
            assert (float(row["pessimistic"]), float(row["optimistic"])) == summary.spread
        assert int(row["n_runs"]) == 6 and int(row["undefined"]) == 0


def test_csv_has_every_metric_and_leaves_undefined_empty():
    records = a_metric_that_one_lacks()
    rows = list(csv.DictReader(io.StringIO(REPORTS["csv"](records))))
    assert [row["metric"] for row in rows] == ["ap", "ap", "precision@r2", "precision@r2"]
    assert rows[2]["mean"] == "" and rows[3]["undefined"] == "2"


def test_csv_quotes_names():
    records = records_of({('a, "b"', 8): [[0.5]]})
    (row,) = csv.DictReader(io.StringIO(REPORTS["csv"](records)))
    assert row["method"] == 'a, "b"'


# Markdown


def test_markdown_has_title_table_words_and_command():
    protocol = protocol_of(
        ["float", "a", "b", "c"], runs=6, reproduces="Table 1.", differs="Digits, not CIFAR-10."
    )
    records = records_of(VALUES, spread=SPREADS, protocol=protocol)
    written = to_markdown(records, heading="Ties", level=3, command="bittern reproduce ties")
    assert written.startswith("### Ties\n\nReproduces: Table 1.\n\nDiffers: Digits, not CIFAR-10.")
    assert "| method | 8 bits | 16 bits |\n| --- | --: | --: |\n| float |" in written
    assert len(re.findall(r"\*\*0\.\d{4}\*\* ± 0\.\d{4}", written)) == 2
    assert "over 6 runs" in written
    assert markdown_text(in_words(records)) in written
    assert written.endswith("```bash\nbittern reproduce ties\n```\n")


def test_markdown_shows_what_the_order_of_ties_could_do():
    written = to_markdown(RECORDS)
    said = "The same ap under the worst and the best order of tied items:"
    _, after = written.split(said)
    row = next(line for line in after.splitlines() if line.startswith("| b |"))
    low, high = next(s for s in summarise(RECORDS, "ap") if s.method == "b").spread
    assert f"| {low:.4f} to {high:.4f} |" in row
    assert next(line for line in after.splitlines() if line.startswith("| float |")).count("–") == 2
    assert said not in to_markdown(records_of(VALUES))
    assert said not in to_markdown(records_of(VALUES, spread=0.0))


def test_markdown_has_what_hash_tables_retrieve():
    surface = {
        "bits_per_table": [4, 8],
        "n_tables": [1, 2],
        "precision": [[0.5, 0.4], [0.75, None]],
        "recall": [[0.25, 0.5], [0.125, None]],
        "f1": [[0.3333, 0.4444], [0.2143, None]],
    }
    written = to_markdown(records_of({("a", 8): drawn(2, 5, 0.5, 0)}, surface=surface))
    table = "|  | L = 1 | L = 2 |\n| --- | --: | --: |\n| K = 4 | 0.3333 | 0.4444 |\n"
    assert f"F1 of L tables of K bits, a, 8 bits:\n\n{table}| K = 8 | 0.2143 |  |\n" in written
    assert "F1 of L tables" not in to_markdown(RECORDS)


def test_markdown_shows_images():
    assert "![Made up](images/x.svg)" in to_markdown(RECORDS, images=["images/x.svg"])


def test_markdown_has_the_protocols_title_and_counts_undefined_queries():
    written = to_markdown(a_metric_that_one_lacks())
    assert written.startswith("## Made up\n")
    assert "Undefined, at most: precision@r2 2 of 4 (a)." in written
    assert "Undefined" not in to_markdown(RECORDS)


def test_names_cannot_break_a_markdown_table():
    written = to_markdown(nasty_names())
    rows = [line for line in written.splitlines() if line.startswith("| 50%")]
    assert len(rows) == 2
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 3


# LaTeX


def test_latex_has_bold_best_values_and_marks():
    written = to_latex(RECORDS)
    summary = next(s for s in summarise(RECORDS, "ap") if (s.method, s.n_bits) == ("b", 16))
    assert rf"\textbf{{{summary.mean:.4f}}} $\pm$ {summary.deviation:.4f}" in written
    assert written.count(r"\textbf") == 2
    assert r"$^{\dagger}$" in written and r"\approx}$" in written
    assert r"\caption{Made up. Average precision" in written
    assert "toprule" not in written


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & 50%", r"a\_b \& 50\%"),
        ("\\{}", r"\textbackslash{}\{\}"),
        ("é ç ü", r"\'{e} \c{c} \"{u}"),
        ("α ≥ 1", r"$\alpha$ $\geq$ 1"),
        ("two\nlines", "two lines"),
        ("中", "U+4E2D"),
    ],
)
def test_text_is_escaped_for_latex(text, latex):
    assert escaped(text) == latex


@pytest.mark.slow  # starts pdflatex, once for all cases
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_without_packages(tmp_path):
    tables = "\n".join(to_latex(case()) for case in CASES)
    source = f"\\documentclass{{article}}\n\\begin{{document}}\n{tables}\n\\end{{document}}\n"
    (tmp_path / "tables.tex").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [
            "pdflatex",
            "-interaction=nonstopmode",
            "-halt-on-error",
            "-no-shell-escape",
            "tables.tex",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds(120),
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "tables.pdf").read_bytes().startswith(b"%PDF")
    assert "Missing character" not in (tmp_path / "tables.log").read_text(errors="replace")


# Words


def test_words_say_who_is_best_and_by_how_much():
    words = in_words(RECORDS)
    assert words.startswith("4 methods were measured on digits at 8 and 16 bits in 6 runs")
    means = {(s.method, s.n_bits): s.mean for s in summarise(RECORDS, "ap")}
    first = f"{means['b', 8]:.4f} at 8 bits ({means['b', 8] - means['c', 8]:.4f} over c)"
    assert f"b is best at every length: {first}" in words
    below = means["float", None] - means["b", 16]
    assert f"the best code, b at 16 bits, is {below:.4f} below it" in words


def test_words_name_each_winner_where_lengths_differ():
    values = {("a", 8): [[0.5]], ("b", 8): [[0.4]], ("a", 16): [[0.6]], ("b", 16): [[0.7]]}
    words = in_words(records_of(values))
    assert "a is best at 8 bits with 0.5000 (0.1000 over b); b is best at 16 bits" in words


def test_words_count_significant_differences_and_name_the_others():
    words = in_words(RECORDS)
    verdicts = [one for n in (8, 16) for one in compare_methods(RECORDS, "ap", n)]
    apart = sum(one.is_different for one in verdicts)
    assert 0 < apart < len(verdicts)  # not vacuous
    assert f"{apart} of {len(verdicts)} differences from b are significant" in words
    assert "not significant: c at 8 bits" in words
    assert (
        "The differences of c at 8 bits and c at 16 bits are smaller than the tie spread." in words
    )


def test_words_say_when_no_difference_is_smaller_than_the_ties():
    assert "No difference is smaller than the tie spread." in in_words(one_run())
    assert "tie spread" not in in_words(one_method())


def test_words_count_undefined_queries():
    assert "Every query has a value of ap." in in_words(RECORDS)
    assert "at most 2 of 4, for a at 8 bits" in in_words(a_metric_that_one_lacks(), "precision@r2")
    assert "Average precision is undefined for every method." in in_words(all_undefined())


def test_words_tell_a_leak():
    assert "No leaks were found across the split in 6 runs." in in_words(RECORDS)
    leaky = CLEAN | {"leaks": 3, "leak_check": "improved: 3 of 86 items have a twin\n  x: 1 = 2"}
    found = [dataclasses.replace(r, split=leaky) if r.run == 1 else r for r in RECORDS]
    words = in_words(dataclasses.replace(RECORDS, records=tuple(found)))
    assert "Leaks were found in 1 of 6 runs" in words
    assert "86 items checked: 3 have duplicates across the split; x: 1 = 2." in words
    assert "No leaks" not in words


@pytest.mark.parametrize(
    ("leaks", "recorded", "said"),
    [
        (0, "x: 0 of 1,797 items have a twin behind one of 3 walls", "no duplicates"),
        (0, "x: 1,797 items checked: no duplicates across the split", "no duplicates"),
        (1, "x: 1 of 1,797 items have a twin behind one of 3 walls", "1 has a duplicate"),
        (
            12,
            "x: 1,797 items checked: 12 have a duplicate in a set that should be disjoint",
            "12 have duplicates",
        ),
    ],
)
def test_the_check_for_leaks_reads_the_same_whatever_the_record_says(leaks, recorded, said):
    expected = f"1,797 items checked: {said} across the split"
    assert leak_check({"leaks": leaks, "leak_check": recorded}) == expected
    blank = {"leaks": leaks, "leak_check": f"{recorded}, 5 empty rows left out\n  pairs: 1 = 2"}
    assert leak_check(blank) == f"{expected} (5 empty rows not compared); pairs: 1 = 2"


def test_words_tell_sets_that_overlap_as_the_split_wants():
    split = CLEAN | {"overlaps": "train is part of database; all else is disjoint"}
    said = in_words(records_of(VALUES, split=split))
    assert "50 database items; train is part of database; all else is disjoint." in said
    assert "disjoint" not in in_words(RECORDS)


def test_words_tell_what_was_not_searched_for_leaks():
    found = [dataclasses.replace(r, split={}) for r in RECORDS]
    words = in_words(dataclasses.replace(RECORDS, records=tuple(found)))
    assert "not checked for leaks" in words


def test_words_tell_missing_and_failed_cells():
    records = a_gap()
    assert "missing" not in in_words(RECORDS)
    assert f"{len(records.missing)} cells of the protocol are missing" in in_words(records)
    failed = dataclasses.replace(records, failures={"a, 8 bits, run 1": "out of memory"})
    assert "failed: a, 8 bits, run 1 (out of memory)." in in_words(failed)


def test_words_of_nothing_say_so():
    assert sentences(Records(protocol_of(["a"]), ())) == ["Nothing has been measured yet."]


def test_words_compare_areas_and_means_where_both_were_asked_for():
    protocol = protocol_of(["a", "b"], runs=1, n_bits=[8], metrics=["ap", "auprc"])
    found = [
        record_of(m, 8, 0, {"ap": value_of([ap]), "auprc": Value(mean=area)})
        for m, ap, area in (("a", 0.5, 0.4), ("b", 0.6, 0.3))
    ]
    assert "rank the methods differently" in in_words(Records(protocol, tuple(found)))
    assert "AUPRC" not in in_words(RECORDS)


def test_lists_are_read_aloud_and_long_ones_cut():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d and 2 more"


def test_many_tasks_are_summed_up_in_two_sentences():
    changes = ["mirrored", "jpeg-50", "jpeg-10", "cropped-5", "cropped-10", "resized-50"]
    plan = Protocol.of(
        {
            "title": "Copies",
            "paradigm": "near-duplicates",
            "runs": 1,
            "metrics": ["ap"],
            "dataset": {"name": "folder"},
            "split": {"name": "improved", "sizes": {"queries": 4, "train": 4}},
            "method": [{"name": "phash"}, {"name": "dhash"}],
            "near_duplicates": {"changes": changes},
        }
    )
    values = {"phash": (0.1, 0.9, 0.9, 0.4, 0.4, 1.0), "dhash": (0.2, 0.8, 0.9, 0.5, 0.5, 0.9)}
    records = Records(plan, tuple(task_record(plan, *one) for one in values.items()))
    said = sentences(records)
    (wins,) = [one for one in said if "Of the 6 tasks" in one]
    assert wins.startswith(
        "Of the 6 tasks, a shared first place counted for each, dhash is best in 4 and phash in 3"
    )
    (ends,) = [one for one in said if "hardest" in one]
    assert "mirrored → image, originals (0.2000 at best), the easiest resized 50 %" in ends
    assert sum("→" in one for one in said) == 1  # no sentence for each task


def task_record(plan, method, values):
    """A record with these means of the tasks of a protocol."""
    names = [task.name for task in plan.kind.tasks(plan)]
    tasks = {
        name: TaskResult(values={"ap": value_of(np.full(4, mean))})
        for name, mean in zip(names, values, strict=True)
    }
    return record_of(method, 64, 0, {"ap": value_of(np.full(4, np.mean(values)))}, tasks=tasks)
