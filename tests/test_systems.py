"""Several systems in one table: ``bittern evaluate --system`` and ``compare_systems``."""

import csv
import io
import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import app, main
from bittern.metrics import compare_systems

N_QUERIES, N_ITEMS = 40, 120
METRICS = "ap,ndcg@20,precision@r1,auprc"
LABELLED = ("--query-labels", "ql.npy", "--database-labels", "dl.npy")
NOISE = {"ours": (24, 0.10), "itq": (24, 0.12), "lsh": (12, 0.35)}  # bits, share of flipped bits
SYSTEMS = ("--system", "ours=ours.npz", "--system", "itq=itq.npz", "--system", "lsh=lsh.npz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("systems")
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, N_QUERIES + N_ITEMS)
    np.save(here / "ql.npy", labels[:N_QUERIES])
    np.save(here / "dl.npy", labels[N_QUERIES:])
    vectors = rng.standard_normal((len(labels), 6))
    np.save(here / "qv.npy", vectors[:N_QUERIES])
    np.save(here / "dv.npy", vectors[N_QUERIES:])
    for name, (n_bits, flipped) in NOISE.items():
        bits = (rng.random((4, n_bits)) < 0.5)[labels] ^ (rng.random((160, n_bits)) < flipped)
        q, d = bits[:N_QUERIES], bits[N_QUERIES:]
        np.savez(here / f"{name}.npz", queries=q, database=d)
        np.save(here / f"{name}-q.npy", q)
        np.save(here / f"{name}-d.npy", d)
        truth = {"query_labels": labels[:N_QUERIES], "database_labels": labels[N_QUERIES:]}
        np.savez(here / f"{name}-own.npz", queries=q, database=d, **truth)
        np.savez(here / f"{name}-all.npz", codes=bits, labels=labels)
    np.savez(here / "few.npz", queries=q[:30], database=d)
    np.savez(here / "half.npz", queries=q)
    np.savez(here / "other.npz", queries=q, database=d, **{n: a[::-1] for n, a in truth.items()})
    return here


@pytest.fixture
def call(folder, monkeypatch, capsys):
    def run(*words):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["bittern", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return run


def rows(text):
    return {(row["system"], row["metric"]): row for row in csv.DictReader(io.StringIO(text))}


def by_hand(p_values):
    """Holm's correction, step by step: the smallest p times n, the next times n - 1, …."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for step, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def test_the_numbers_are_those_of_each_system_alone(call):
    code, out, err = call("evaluate", *SYSTEMS, *LABELLED, "--metrics", METRICS, "--format", "csv")
    assert code == 0, err
    together = rows(out)
    assert len(together) == 3 * 4
    for name in NOISE:
        files = f"{name}-q.npy", f"{name}-d.npy"
        _, alone, _ = call("evaluate", *files, *LABELLED, "--metrics", METRICS, "--format", "csv")
        for row in csv.DictReader(io.StringIO(alone)):
            assert row.items() <= together[name, row["metric"]].items()
            assert together[name, row["metric"]]["n_bits"] == str(NOISE[name][0])


def test_significance_by_scipy_and_holm_by_hand(call, folder):
    words = ("--metrics", "ap,auprc", "--test", "t-test", "--baseline", "itq", "--format", "csv")
    _, out, _ = call("evaluate", *SYSTEMS, *LABELLED, *words)
    table = rows(out)
    per_query = folder / "values.csv"
    call("evaluate", *SYSTEMS, *LABELLED, "--metrics", "ap", "--per-query", per_query)
    values = {name: [] for name in NOISE}
    for row in csv.DictReader(io.StringIO(per_query.read_text())):
        values[row["system"]].append(float(row["ap"] or "nan"))
    others = ["ours", "lsh"]
    p = [float(scipy.stats.ttest_rel(values[name], values["itq"]).pvalue) for name in others]
    for name, raw, adjusted in zip(others, p, by_hand(p), strict=True):
        row = table[name, "ap"]
        assert row["baseline"] == "itq"
        np.testing.assert_allclose(float(row["p_value"]), raw, rtol=1e-9)
        np.testing.assert_allclose(float(row["adjusted_p"]), adjusted, rtol=1e-9)
        assert row["significant"] == str(adjusted <= 0.05)
        difference = np.mean(values[name]) - np.mean(values["itq"])
        np.testing.assert_allclose(float(row["difference"]), difference, rtol=1e-9)
    assert table["lsh", "ap"]["significant"] == "True"
    assert table["itq", "ap"]["baseline"] == table["ours", "auprc"]["p_value"] == ""


def test_the_table_marks_and_says_what_was_tested(call):
    code, out, _ = call("evaluate", *SYSTEMS, *LABELLED, "--metrics", METRICS)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["method", "bits", "ap", "ndcg@20", "precision@r1", "auprc"]
    ours, _, lsh = lines[2:5]
    assert ours.split()[:2] == ["ours", "24"] and lsh.split()[:2] == ["lsh", "12"]
    assert "*" in ours and "†" in lsh and "†" not in ours
    assert (
        "Compared with ours: randomisation test paired by query, two-sided, Holm-corrected" in out
    )
    assert "auprc has one value for all queries: not tested." in out
    assert "precision@r1 is undefined for more queries: " in out


def test_a_difference_inside_the_tie_spread_is_marked():
    truth = bt.Relevance.from_classes([0, 0], [0, 1, 0, 1])
    tied = bt.Codes.from_bits(np.zeros((4, 2)))
    good = bt.Codes.from_bits([[0, 0], [1, 1], [0, 0], [1, 0]])
    query = bt.Codes.from_bits(np.zeros((2, 2)))
    scores = {
        "good": bt.evaluate(query, good, truth, ["ap"]),
        "tied": bt.evaluate(query, tied, truth, ["ap"]),
    }
    table = compare_systems(scores)
    worst, best = scores["tied"]["ap"].spread
    assert worst < scores["good"]["ap"].mean <= best
    assert table.within_tie_spread("tied", "ap") == (scores["good"]["ap"].mean < best)
    assert not table.within_tie_spread("good", "ap")
    other = compare_systems({"tied": scores["tied"], "same": scores["tied"]})
    assert other.within_tie_spread("same", "ap") and "≈" in str(other)
    assert other.comparison("same", "ap").adjusted_p == 1


def test_every_way_to_name_the_files(call):
    ways = {
        ("ours=ours.npz", "lsh=lsh.npz"): LABELLED,
        ("ours=ours-q.npy,ours-d.npy", "lsh=lsh.npz"): LABELLED,
        ("ours=ours-own.npz", "lsh=lsh-own.npz"): (),
        ("ours=ours-own.npz", "lsh=lsh.npz"): (),
    }
    found = []
    for systems, truth in ways.items():
        words = [word for system in systems for word in ("--system", system)]
        code, out, err = call("evaluate", *words, *truth, "--format", "json", "--metrics", "ap")
        assert code == 0, err
        found.append(json.loads(out))
    assert all(one == found[0] for one in found)
    assert [one["system"] for one in found[0]] == ["ours", "lsh"]
    assert found[0][0]["scores"][0]["comparison"] is None
    assert found[0][1]["scores"][0]["comparison"]["baseline"] == "ours"


def test_systems_that_search_themselves(call, folder):
    words = ("--system", "ours=ours-all.npz", "--system", "lsh=lsh-all.npz", "--metrics", "ap")
    code, out, err = call("evaluate", *words, "--format", "csv")
    assert code == 0, err
    _, alone, _ = call("evaluate", "lsh-all.npz", "--metrics", "ap", "--format", "csv")
    assert rows(out)["lsh", "ap"]["mean"] == next(csv.DictReader(io.StringIO(alone)))["mean"]


def test_neighbours_as_ground_truth(call, folder):
    truth = ("--query-vectors", "qv.npy", "--database-vectors", "dv.npy", "--neighbours", 5)
    _, out, err = call("evaluate", *SYSTEMS, *truth, "--metrics", "ap", "--format", "csv")
    q, d = (np.load(folder / f"{side}v.npy") for side in "qd")
    nearest = np.argsort(((q[:, None] - d) ** 2).sum(axis=2), axis=1)[:, :5]
    gains = np.zeros((N_QUERIES, N_ITEMS), int)
    np.put_along_axis(gains, nearest, 1, axis=1)
    with np.load(folder / "itq.npz") as stored:
        sides = [bt.Codes.from_bits(stored[side]) for side in ("queries", "database")]
    expected = bt.evaluate(*sides, bt.Relevance.from_matrix(gains), ["ap"])["ap"].mean
    assert float(rows(out)["itq", "ap"]["mean"]) == expected, err


def test_latex_and_the_plot_are_written(call, tmp_path):
    table, plot = tmp_path / "t.tex", tmp_path / "pr.svg"
    words = ("--metrics", "ap", "--latex", table, "--plot", plot)
    code, _, err = call("evaluate", *SYSTEMS, *LABELLED, *words)
    assert code == 0, err
    text = table.read_text()
    assert r"\begin{tabular}{lrr}" in text and text.count(r" \\") == 4
    assert r"\textbf{" in text and r"lsh & 12 & 0." in text and r"$^{\dagger" in text
    drawn = plot.read_text()
    assert drawn.startswith("<?xml") and "ours" in drawn.replace("-->", "").split("legend")[-1]
    _, printed, _ = call("evaluate", *SYSTEMS, *LABELLED, "--metrics", "ap", "--format", "latex")
    assert printed.strip() == text.strip()


def test_names_of_systems_are_escaped_in_latex():
    truth = bt.Relevance.from_classes([0, 1], [0, 1])
    codes = bt.Codes.from_bits([[0, 1], [1, 1]])
    scores = bt.evaluate(codes, codes, truth, ["ap"])
    text = compare_systems({"a_b & c": scores, "d%": scores}).to_latex()
    assert r"a\_b \& c & " in text and r"d\% & " in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--system", "a=ours.npz"), "give --system at least twice"),
        (("--system", "a=ours.npz", "--system", "a=lsh.npz"), "two systems are called 'a'"),
        (("--system", "ours.npz", "--system", "b=lsh.npz"), "--system takes NAME=FILE or"),
        (("--system", "a=ours.npz", "--system", "b=few.npz"), "a has 40 queries and 120 items, b"),
        (
            ("--system", "a=ours.npz", "--system", "b=half.npz"),
            "half.npz: has one array of queries",
        ),
        (("--system", "a=ours.npz", "--system", "b=none.npz"), "none.npz: no such file"),
        (
            ("--system", "a=ours-q.npy,ours-d.npy", "--system", "b=lsh-q.npy,ours-d.npy"),
            "lsh-q.npy has codes of 12 bits, ours-d.npy of 24",
        ),
        ((*SYSTEMS, "--baseline", "sh"), "no system is called 'sh'"),
        ((*SYSTEMS, "--test", "anova"), "no test is called 'anova'"),
        ((*SYSTEMS, "ours-q.npy"), "--system names all files of codes"),
        (("ours-q.npy", "ours-d.npy", "--baseline", "a"), "--baseline is for several systems"),
    ],
)
def test_mistakes_are_one_sentence(call, words, says):
    code, out, err = call("evaluate", *words, *LABELLED)
    assert (code, out) == (2, "") and says in err and err.count("\n") == 1


def test_systems_with_different_labels_of_their_own(call):
    words = ("--system", "a=ours-own.npz", "--system", "b=other.npz")
    code, _, err = call("evaluate", *words)
    assert code == 2 and "ours-own.npz and other.npz have different labels; give" in err
    assert call("evaluate", *words, *LABELLED, "--metrics", "ap")[0] == 0


def test_systems_that_cannot_be_compared_in_python():
    truth = bt.Relevance.from_classes([0, 1], [0, 1])
    codes = bt.Codes.from_bits([[0, 1], [1, 1]])
    scores = bt.evaluate(codes, codes, truth, ["ap"])
    one = bt.evaluate(codes[:1], codes, truth.take([0]), ["ap"])
    other = bt.evaluate(codes, codes, truth, ["ndcg"])
    for systems, says in [
        ({"a": scores}, "at least 2"),
        ({"a": scores, "b": one}, "b has 1 queries and a has 2"),
        ({"a": scores, "b": other}, "the same metrics"),
    ]:
        with pytest.raises(bt.InputError, match=says):
            compare_systems(systems)


def test_the_help_names_the_options():
    text = CliRunner().invoke(app, ["evaluate", "--help"], terminal_width=200).output
    assert "--system" in text and "--code-layout" in text and "--latex" in text


def test_the_page_runs_as_it_is_typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "comparing-systems.md").read_text()
    (python,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^```bash\n(bittern .*?)^```", page, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(method .*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(python, {})
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit):
        main()
    said, number = capsys.readouterr().out, r"\d\.\d{4}"
    assert re.sub(number, "#", said) == re.sub(number, "#", shown)
    means = [np.array(re.findall(number, text), float) for text in (said, shown)]
    np.testing.assert_allclose(*means, atol=0.02)  # processors round differently
    assert Path("pr.svg").exists() and "itq & 32" in Path("table.tex").read_text()


def test_a_file_is_parsed_once(folder, call, monkeypatch):
    from bittern.io import arrays, csv_columns

    for name in ("ours", "itq"):
        with np.load(folder / f"{name}-all.npz") as file:
            bits, labels = file["codes"].astype(int), file["labels"]
        header = ",".join([*(f"b{i}" for i in range(bits.shape[1])), "labels"])
        table = np.column_stack([bits, labels])
        np.savetxt(folder / f"{name}.csv", table, "%d", ",", header=header, comments="")
    parsed = []

    def read(path):
        parsed.append(path.name)
        return csv_columns.read_columns(path)

    opener = partial(arrays._in_memory, read)
    monkeypatch.setitem(arrays.OPENERS, arrays.IS_CSV, opener)
    words = "--system", "ours=ours.csv", "--system", "itq=itq.csv", "--metrics", "ap"
    code, out, err = call("evaluate", *words, "--format", "csv")
    assert code == 0, err
    assert sorted(parsed) == ["itq.csv", "ours.csv"]
    _, alone, _ = call("evaluate", "itq-all.npz", "--metrics", "ap", "--format", "csv")
    assert rows(out)["itq", "ap"]["mean"] == next(csv.DictReader(io.StringIO(alone)))["mean"]
    parsed.clear()
    arrays.open_table(folder / "ours.csv")  # nothing is kept
    assert parsed == ["ours.csv"]
