"""``bittern fuse`` and the runs that it reads and writes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import app, main
from bittern.fusion import FUSIONS, fuse_runs
from bittern.io.trec import (
    Run,
    read_qrels,
    read_run,
    write_run,
)

FIRST = "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 c 3 1 t\nq2 Q0 a 1 1 t\nq2 Q0 e 2 .5 t\n"
SECOND = "q1 Q0 c 1 9 t\nq1 Q0 d 2 8.25 t\nq3 Q0 a 1 1 t\n"
QRELS = "q1 0 c 1\nq1 0 a 0\nq2 0 e 1\nq3 0 a 2\n"
NAN = np.nan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in (("one.run", FIRST), ("two.run", SECOND), ("qrels", QRELS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fuse(*arguments):
    return CliRunner().invoke(app, ["fuse", "one.run", "two.run", *arguments])


def ranked(run, query):
    q = run.query_ids.tolist().index(query)
    rows = slice(run.offsets[q], run.offsets[q + 1])
    names = run.document_ids[run.documents[rows]].tolist()
    return dict(zip(names, run.scores[rows].tolist(), strict=True))


@pytest.mark.parametrize("method", [name for name in FUSIONS if name != "weighted-sum"])
def test_a_fused_run_is_the_fused_table_of_each_query(folder, method):
    fused = fuse_runs([read_run("one.run"), read_run("two.run")], method)
    table = FUSIONS[method](np.array([[3.0, 2, 1, NAN], [NAN, NAN, 9, 8.25]]))  # a b c d
    assert ranked(fused.run, "q1") == dict(zip("abcd", table, strict=True))
    assert list(ranked(fused.run, "q3")) == ["a"]
    assert fused.missing.tolist() == [2, 4]  # d and q3's a; a, b and q2's two
    assert fused.missing_queries.tolist() == [1, 1]


def test_what_is_written_is_read_again(folder):
    fused = fuse_runs([read_run("one.run"), read_run("two.run")], "reciprocal-rank")
    write_run(fused.run, "fused.run", tag="mine")
    again = read_run("fused.run")
    for name in ("query_ids", "offsets", "scores"):
        np.testing.assert_array_equal(getattr(fused.run, name), getattr(again, name))
    for query in ("q1", "q2", "q3"):
        assert ranked(fused.run, query) == ranked(again, query)
    first = (folder / "fused.run").read_text().splitlines()[0].split()
    assert (first[0], first[1], first[3], first[5]) == ("q1", "Q0", "1", "mine")


def test_ids_that_would_break_a_line_are_refused(folder):
    run = Run(*map(np.array, (["a b"], ["d"], [0, 1], [0], [1.0])))
    with pytest.raises(bt.InputError, match="query_ids must be words"):
        write_run(run, "x.run")
    assert not (folder / "x.run").exists()


def test_it_scores_every_run_and_the_fusion(folder):
    done = fuse("--qrels", "qrels", "--metrics", "ap,ndcg@10", "--format", "json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["run"] for row in rows] == ["one.run", "two.run", "comb-sum"]
    for row in rows[:2]:
        alone = bt.evaluate(bt.TieProfile.from_trec(row["run"], "qrels"), ["ap", "ndcg@10"])
        assert [s["mean"] for s in row["scores"]] == [score.mean for score in alone.values()]
    fused = fuse_runs([read_run("one.run"), read_run("two.run")])
    profile = bt.TieProfile.from_run(fused.run, read_qrels("qrels"))
    assert rows[2]["scores"][0]["mean"] == bt.evaluate(profile, ["ap"])["ap"].mean


def test_the_table_tells_what_is_missing(folder):
    done = fuse("--qrels", "qrels", "--method", "borda")
    assert done.exit_code == 0, done.output
    assert "borda of 2 runs: 3 queries, 7 documents." in done.stdout
    assert "two.run lacks 4 of the documents, and has nothing for 1 of the queries." in done.stdout
    assert done.stdout.count("95 % interval") == 3


@pytest.mark.parametrize(("form", "mark"), [("csv", '"two.run",ap,'), ("latex", "% two.run")])
def test_other_formats(folder, form, mark):
    done = fuse("--qrels", "qrels", "--metrics", "ap", "--format", form)
    assert done.exit_code == 0, done.output
    assert mark in done.stdout


def test_without_judgements_the_run_is_written_and_nothing_scored(folder):
    done = fuse("--method", "weighted-sum", "--weights", "1,0", "--output", "fused.run")
    assert done.exit_code == 0, done.output
    assert "interval" not in done.stdout
    assert next(iter(ranked(read_run("fused.run"), "q1"))) == "a"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give --qrels"),
        (["--method", "bord", "--qrels", "qrels"], "did you mean 'borda'"),
        (["--normalise", "zscor", "--qrels", "qrels"], "did you mean 'zscore'"),
        (["--weights", "1", "--qrels", "qrels"], "one number for each of 2 runs, got 1"),
        (["--weights", "1,x", "--qrels", "qrels"], "numbers separated by commas"),
        (["--weights", "1,nan", "--qrels", "qrels"], "finite"),
        (["--weights", "1,2", "--method", "comb-min", "--qrels", "qrels"], "takes no weights"),
        (["--output", "one.run"], "would be overwritten"),
        (["--output", "no/where"], "no folder"),
        (["--qrels", "nothing"], "nothing"),
        (["--qrels", "qrels", "--metrics", "app"], "app"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, monkeypatch, capsys, arguments, says):
    monkeypatch.setattr("sys.argv", ["bittern", "fuse", "one.run", "two.run", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.startswith("bittern: ") and len(said.splitlines()) == 1
    assert (folder / "one.run").read_text() == FIRST


def test_one_run_is_not_fused(folder):
    done = CliRunner().invoke(app, ["fuse", "one.run", "--qrels", "qrels"])
    assert isinstance(done.exception, bt.InputError)
    assert "at least two runs" in str(done.exception)
