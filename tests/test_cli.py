"""``bittern`` as a user meets it: files in, tables out, one sentence when something is wrong."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from processes import seconds
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import Format, app, evaluate, main
from bittern.metrics import DEFAULT_METRICS

N_BITS, N_QUERIES, N_DATABASE = 12, 9, 40
LABELLED = ("--query-labels", "ql.npy", "--database-labels", "dl.npy")
PAIR = ("q.npy", "d.npy")
NAMES = np.array(["cat", "dog", "crème brûlée", "emu"])
RUN = "a Q0 x 1 3.5 t\na Q0 y 2 3.5 t\na Q0 z 3 1 t\nb Q0 x 1 -2 t\n"
QRELS = "a 0 y 2\na 0 z 1\nb 0 z 1\nc 0 x 0\n"


@dataclass(frozen=True)
class Data:
    """What the files hold; query 0 has a class that the database lacks."""

    folder: Path
    bits: np.ndarray
    labels: np.ndarray
    tags: np.ndarray
    gains: np.ndarray

    @property
    def codes(self):
        """Queries and database."""
        codes = bt.Codes.from_bits(self.bits)
        return codes[:N_QUERIES], codes[N_QUERIES:]

    def scores(self, relevance, metrics=None):
        """What the library says without any file."""
        return bt.evaluate(*self.codes, relevance, metrics or DEFAULT_METRICS)

    @property
    def by_class(self):
        """The ground truth of the label files."""
        return bt.Relevance.from_classes(self.labels[:N_QUERIES], self.labels[N_QUERIES:])

    @property
    def alone(self):
        """Leave-one-out: every item searches the others."""
        n = len(self.bits)
        codes = bt.Codes.from_bits(self.bits)
        truth = bt.Relevance.from_classes(self.labels, self.labels).excluding(np.arange(n))
        return bt.evaluate(codes, codes, truth, DEFAULT_METRICS)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(3)
    n = N_QUERIES + N_DATABASE
    labels = rng.integers(0, 4, n)
    labels[0] = 77
    centres = rng.random((4, N_BITS)) < 0.5
    bits = centres[labels % 4] ^ (rng.random((n, N_BITS)) < 0.25)
    tags = rng.random((n, 5)) < 0.3
    gains = rng.integers(0, 3, (N_QUERIES, N_DATABASE))
    made = Data(tmp_path_factory.mktemp("files"), bits, labels, tags, gains)
    write_files(made)
    write_damaged_files(made.folder)
    return made


def write_files(data):
    def save(name, rows):
        for side, part in (("q", rows[:N_QUERIES]), ("d", rows[N_QUERIES:])):
            np.save(data.folder / f"{side}{name}.npy", part)

    codes = bt.Codes.from_bits(data.bits)
    save("", data.bits)
    save("-01", data.bits.astype(np.float32))
    save("-bytes", np.packbits(data.bits, axis=1))
    save("-little", np.packbits(data.bits, axis=1, bitorder="little"))
    save("-words", codes.words)
    save("-signed", np.where(data.bits, 1, -1).astype(np.int8))
    save("-short", data.bits[:, :8])
    save("l", data.labels)
    save("-names", NAMES[data.labels % 4])
    save("t", data.tags)
    for side, rows in (("q", slice(N_QUERIES)), ("d", slice(N_QUERIES, None))):
        here = data.folder
        codes[rows].save(here / f"{side}-saved.npz")
        codes[rows].save(here / f"{side}-saved.npy")
        np.savez(here / f"{side}-own.npz", bits=data.bits[rows], labels=data.labels[rows])
        np.savez(here / f"{side}-own-tags.npz", bits=data.bits[rows], tags=data.tags[rows])
        np.savez(here / f"{side}l.npz", labels=data.labels[rows], other=np.zeros(3))
        scipy.sparse.save_npz(here / f"{side}t.npz", scipy.sparse.csr_array(data.tags[rows]))
        (here / f"{side}l.txt").write_text("\n".join(map(str, data.labels[rows])) + "\n")
        text = "\r\n".join(NAMES[data.labels[rows] % 4])
        (here / f"{side}-names.txt").write_bytes(text.encode("utf-8-sig"))
    np.savez(data.folder / "own.npz", codes=data.bits, labels=data.labels)
    np.save(data.folder / "gains.npy", data.gains)
    scipy.sparse.save_npz(data.folder / "gains.npz", scipy.sparse.csc_array(data.gains))
    (data.folder / "run.txt").write_text(RUN)
    (data.folder / "qrels.txt").write_text(QRELS)
    (data.folder / "run.gz").write_bytes(gzip.compress(RUN.encode()))
    (data.folder / "qrels.gz").write_bytes(gzip.compress(QRELS.encode()))


def write_damaged_files(folder):
    """Files that are not what they should be."""
    rng = np.random.default_rng(0)
    np.save(folder / "pickled.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    np.save(folder / "flat.npy", np.ones(8, bool))
    np.save(folder / "no-columns.npy", np.ones((9, 0), bool))
    np.save(folder / "no-rows.npy", np.ones((0, N_BITS), bool))
    np.save(folder / "nan.npy", np.full((N_QUERIES, N_DATABASE), np.nan))
    np.save(folder / "real.npy", rng.random((N_QUERIES, N_BITS)))
    np.save(folder / "other-values.npy", np.full((N_QUERIES, N_BITS), 300))
    np.save(folder / "five.npy", np.arange(5))
    np.save(folder / "words.npy", np.array([["a", "b"]] * N_QUERIES))
    np.savez_compressed(folder / "whole.npz", bits=rng.random((50, 64)) < 0.5)
    whole = (folder / "whole.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[:200])
    (folder / "flipped.npz").write_bytes(whole[:60] + bytes(20) + whole[80:])
    (folder / "text.npy").write_text("1 0 1\n0 1 1\n")
    (folder / "nothing.npy").touch()
    (folder / "nothing.txt").touch()
    (folder / "gap.txt").write_text("cat\n\ndog\n")
    (folder / "latin1.txt").write_bytes("café\n".encode("latin-1"))
    matrix = scipy.sparse.csr_array(np.eye(N_QUERIES, N_DATABASE, dtype=int))
    matrix.indices[0] = 10**6
    scipy.sparse.save_npz(folder / "beyond.npz", matrix)


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def metrics(self):
        """The rows of ``--format csv`` by metric."""
        assert self.code == 0, self.err
        return {row["metric"]: row for row in csv.DictReader(self.out.splitlines())}


@pytest.fixture
def bittern(data, monkeypatch, capsys):
    """Call the command in this process, in the folder of the data."""

    def call(*words):
        monkeypatch.chdir(data.folder)
        monkeypatch.setattr(sys, "argv", ["bittern", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return Said(int(stop.value.code or 0), *capsys.readouterr())

    return call


def start(*words, **options):
    """The command as a process of its own."""
    env = {**os.environ, **options.pop("env", {})}
    command = [sys.executable, "-m", "bittern", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, env=env, **pipes)


def assert_same(said, scores, tolerance=0):
    """Every number of ``--format csv`` is that of the library, to the last digit."""
    assert list(said.metrics) == list(scores)
    for name, row in said.metrics.items():
        score = scores[name]
        spread = score.spread or (np.nan, np.nan)
        numbers = [float(row[key] or "nan") for key in ("mean", "low", "high")]
        ties = [float(row[key] or "nan") for key in ("pessimistic", "optimistic")]
        np.testing.assert_allclose(numbers, [score.mean, *score.interval], rtol=tolerance)
        np.testing.assert_allclose(ties, spread, rtol=tolerance)
        assert int(row["undefined"]) == score.undefined
    assert 0 < scores["ap"].mean < 1  # not vacuous


def assert_refused(said, *words):
    """One sentence on stderr that has these words, exit code 2, nothing on stdout."""
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("bittern: ") and said.err.endswith((".\n", "?\n"))
    assert said.err.count("\n") == 1 and "Traceback" not in said.err
    for word in words:
        assert word in said.err


# What comes in


@pytest.mark.parametrize(
    "codes",
    [
        ("q.npy", "d.npy"),
        ("q-01.npy", "d-01.npy"),
        ("q-bytes.npy", "d-bytes.npy", "--bits", N_BITS),
        ("q-words.npy", "d-words.npy", "--bits", N_BITS),
        ("q-little.npy", "d-little.npy", "--bits", N_BITS, "--bitorder", "little"),
        ("q-signed.npy", "d-signed.npy", "--signed"),
        ("q-signed.npy", "d-signed.npy"),
        ("q-bytes.npy", "d-bytes.npy", "--bits", N_BITS, "--code-layout", "ubinary"),
        ("q-saved.npz", "d-saved.npz"),
        ("q-saved.npy", "d-saved.npy"),
        ("q.npy", "d-bytes.npy", "--bits", N_BITS),
        ("q-own.npz", "d-bytes.npy", "--bits", N_BITS),
    ],
)
def test_codes_of_every_layout_give_the_same_scores(data, bittern, codes):
    said = bittern("evaluate", *codes, *LABELLED, "--format", "csv")
    assert_same(said, data.scores(data.by_class))


def test_bytes_without_a_length_have_padding_that_changes_no_distance(data, bittern):
    said = bittern("evaluate", "q-bytes.npy", "d-bytes.npy", *LABELLED, "--format", "csv")
    assert_same(said, data.scores(data.by_class), tolerance=1e-12)  # sums of more, empty columns


@pytest.mark.parametrize(
    ("query_labels", "database_labels"),
    [("ql.npy", "dl.npy"), ("ql.npz", "dl.npz"), ("ql.txt", "dl.txt"), ("ql.txt", "dl.npy")],
)
def test_labels_of_every_kind_of_file(data, bittern, query_labels, database_labels):
    given = ("--query-labels", query_labels, "--database-labels", database_labels)
    assert_same(bittern("evaluate", *PAIR, *given, "--format", "csv"), data.scores(data.by_class))


@pytest.mark.parametrize("ending", ["txt", "npy"])
def test_labels_may_be_names(data, bittern, ending):
    names = NAMES[data.labels % 4]
    truth = bt.Relevance.from_classes(names[:N_QUERIES], names[N_QUERIES:])
    given = ("--query-labels", f"q-names.{ending}", "--database-labels", f"d-names.{ending}")
    assert_same(bittern("evaluate", *PAIR, *given, "--format", "csv"), data.scores(truth))


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("source", ["dense", "sparse", "own"])
def test_tags(data, bittern, source, graded):
    words = {
        "dense": (*PAIR, "--query-tags", "qt.npy", "--database-tags", "dt.npy"),
        "sparse": (*PAIR, "--query-tags", "qt.npz", "--database-tags", "dt.npz"),
        "own": ("q-own-tags.npz", "d-own-tags.npz"),
    }[source]
    tags = data.tags[:N_QUERIES], data.tags[N_QUERIES:]
    truth = bt.Relevance.from_tags(*tags, graded=graded)
    option = ("--graded",) if graded else ()
    said = bittern("evaluate", *words, *option, "--format", "csv", "--metrics", "ap,ndcg")
    assert_same(said, data.scores(truth, ["ap", "ndcg"]))


def test_graded_tags_differ_from_plain_ones(data):
    # Otherwise the test above could not see whether --graded reached anything.
    tags = data.tags[:N_QUERIES], data.tags[N_QUERIES:]
    plain, graded = (
        data.scores(bt.Relevance.from_tags(*tags, graded=g), ["ndcg"])["ndcg"].mean
        for g in (False, True)
    )
    assert plain != graded


@pytest.mark.parametrize("gains", ["gains.npy", "gains.npz"])
def test_a_matrix_of_gains(data, bittern, gains):
    said = bittern("evaluate", *PAIR, "--relevance", gains, "--format", "csv")
    assert_same(said, data.scores(bt.Relevance.from_matrix(data.gains)))


def test_codes_may_bring_their_labels(data, bittern):
    said = bittern("evaluate", "q-own.npz", "d-own.npz", "--format", "csv")
    assert_same(said, data.scores(data.by_class))


def test_labels_that_are_given_go_before_those_that_the_codes_bring(data, bittern):
    labels = ("--query-labels", "q-names.txt", "--database-labels", "d-names.txt")
    names = NAMES[data.labels % 4]
    truth = bt.Relevance.from_classes(names[:N_QUERIES], names[N_QUERIES:])
    said = bittern("evaluate", "q-own.npz", "d-own.npz", *labels, "--format", "csv")
    assert_same(said, data.scores(truth))


def test_tags_that_are_given_go_before_labels_that_one_file_brings(data, bittern):
    tags = ("--query-tags", "qt.npy", "--database-tags", "dt.npy")
    truth = bt.Relevance.from_tags(data.tags[:N_QUERIES], data.tags[N_QUERIES:])
    said = bittern("evaluate", "q-own.npz", "d.npy", *tags, "--format", "csv")
    assert_same(said, data.scores(truth))


@pytest.mark.parametrize(
    "words", [("own.npz",), ("own.npz", "--query-labels", "own.npz")], ids=["own", "given"]
)
def test_one_file_is_searched_by_each_of_its_own(data, bittern, words):
    assert_same(bittern("evaluate", *words, "--format", "csv"), data.alone)


@pytest.mark.parametrize("run", ["run.txt", "run.gz"])
@pytest.mark.parametrize("qrels", ["qrels.txt", "qrels.gz"])
def test_trec_files_plain_and_gzipped(data, bittern, run, qrels):
    names = ["ap", "ap:trec", "ndcg@10", "rr"]
    given = ("--run", run, "--qrels", qrels, "--metrics", ",".join(names))
    said = bittern("evaluate", *given, "--format", "csv")
    profile = bt.TieProfile.from_trec(data.folder / "run.txt", data.folder / "qrels.txt")
    assert_same(said, bt.evaluate(profile, names))


# What comes out


def test_the_metrics_may_have_spaces_and_keep_their_order(bittern):
    said = bittern(
        "evaluate",
        *PAIR,
        *LABELLED,
        "--metrics",
        " recall@3 , ap:optimistic,f0.5@r2",
        "--format=csv",
    )
    assert list(said.metrics) == ["recall@3", "ap:optimistic", "f0.5@r2"]


def test_the_table_shows_the_library_s_numbers(data, bittern):
    said = bittern("evaluate", *PAIR, *LABELLED)
    scores = data.scores(data.by_class)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"{scores}\n"
    for name, score in scores.items():
        assert re.search(rf"^{name} +{score.mean:.4f} ", said.out, re.MULTILINE)
    assert "1 with nothing relevant" in said.out


def test_json(data, bittern):
    rows = json.loads(bittern("evaluate", *PAIR, *LABELLED, "--format", "json").out)
    scores = data.scores(data.by_class)
    assert [row["metric"] for row in rows] == list(scores)
    for row in rows:
        score = scores[row["metric"]]
        assert row["mean"] == score.mean
        assert tuple(row["interval"]) == score.interval
        assert row["tie_spread"] == (None if score.spread is None else list(score.spread))
        assert (row["undefined"], row["queries"]) == (score.undefined, N_QUERIES)


def test_latex(data, bittern):
    lines = bittern("evaluate", *PAIR, *LABELLED, "--format", "latex").out.splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{lrrrr}", r"\end{tabular}")
    cells = [line.removesuffix(r" \\").split(" & ") for line in lines if " & " in line][1:]
    scores = data.scores(data.by_class)
    assert [row[:2] for row in cells] == [[name, f"{s.mean:.4f}"] for name, s in scores.items()]


def test_a_terminal_without_our_signs_gets_question_marks(data, monkeypatch):
    written = io.BytesIO()
    monkeypatch.chdir(data.folder)
    monkeypatch.setattr(sys, "argv", ["bittern", "evaluate", *PAIR, *LABELLED])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    with pytest.raises(SystemExit, match="0"):
        main()
    lines = written.getvalue().splitlines()
    assert lines[1].strip(b"?") == b"" and lines[2].startswith(b"ap ")


def test_every_format_of_the_command_is_one_of_the_library():
    assert list(Format) == list(evaluate.FORMATS)


def test_per_query_values_are_written_in_full_and_undefined_ones_are_empty(data, bittern, tmp_path):
    path = tmp_path / "values.csv"
    metrics = ["ap", "precision@r1", "micro-f1@r2"]
    said = bittern(
        "evaluate", *PAIR, *LABELLED, "--per-query", path, "--metrics", ",".join(metrics)
    )
    assert said.code == 0
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = data.scores(data.by_class, metrics)
    assert [row["query"] for row in rows] == [str(q) for q in range(N_QUERIES)]
    assert list(rows[0]) == ["query", "ap", "precision@r1"]  # the micro value belongs to no query
    for name in ("ap", "precision@r1"):
        values = [float(row[name] or "nan") for row in rows]
        np.testing.assert_array_equal(values, scores[name].per_query)
    assert rows[0]["ap"] == ""
    assert list(tmp_path.iterdir()) == [path]


def test_per_query_values_of_a_run_have_its_query_ids(bittern, tmp_path):
    path = tmp_path / "values.csv"
    given = ("--run", "run.txt", "--qrels", "qrels.txt", "--metrics", "rr:trec")
    assert bittern("evaluate", *given, "--per-query", path).code == 0
    # a: trec_eval puts y before x, and y is relevant; b: x is not; c: nothing is relevant.
    assert path.read_text() == "query,rr:trec\na,1.0\nb,0.0\nc,\n"


MAGIC = {"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "SVG": b"<?xml"}


@pytest.mark.parametrize("ending", MAGIC)
def test_a_plot_is_of_the_kind_that_its_ending_says(bittern, tmp_path, ending):
    path = tmp_path / f"pr.{ending}"
    assert bittern("evaluate", *PAIR, *LABELLED, "--plot", path).code == 0
    assert path.read_bytes().startswith(MAGIC[ending])
    assert len(path.read_bytes()) > 5000
    assert list(tmp_path.iterdir()) == [path]


def test_a_plot_where_nothing_is_relevant_is_drawn_empty(bittern, tmp_path):
    labels = tmp_path / "other.txt"
    labels.write_text("none\n" * N_QUERIES)
    given = ("--query-labels", labels, "--database-labels", "d-names.txt")
    said = bittern("evaluate", *PAIR, *given, "--plot", tmp_path / "pr.svg")
    assert said.code == 0
    assert re.search(r"^ap +undefined +9$", said.out, re.MULTILINE)


def test_an_output_takes_the_place_of_an_older_one(bittern, tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("old\n" * 1000)
    assert bittern("evaluate", *PAIR, *LABELLED, "--per-query", path, "--metrics", "ap").code == 0
    assert path.read_text().startswith("query,ap\n") and "old" not in path.read_text()


def test_the_number_of_threads_changes_nothing(data, bittern):
    said = bittern("evaluate", *PAIR, *LABELLED, "--threads", 1, "--format", "csv")
    assert_same(said, data.scores(data.by_class))


@pytest.mark.slow  # all four methods, in processes
def test_the_demo_ends_with_a_table_a_page_and_commands_to_try(bittern, tmp_path, monkeypatch):
    from bittern.cli import demo as first_look

    real = first_look.protocol_of  # of shorter codes alone, which take a second each
    monkeypatch.setattr(first_look, "protocol_of", lambda *a: replace(real(*a), n_bits=(8,)))
    image, out = tmp_path / "demo.png", tmp_path / "demo"
    said = bittern("demo", "--runs", 1, "--plot", image, "--out", out)
    assert said.code == 0
    for name in ("float ranking", "LSH", "ITQ", "KSH", "TALR"):
        assert re.search(rf"^{name} +\*?0\.\d{{4}}", said.out, re.MULTILINE), name
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert str(out / "report.html") in said.out and str(image) in said.out
    assert len(re.findall(r"^  bittern \w+", said.out, re.MULTILINE)) == 5
    assert f"bittern demo --explore --out {out}" in said.out
    assert image.read_bytes().startswith(MAGIC["png"])
    assert "5/5" in said.err and "TALR" in said.err
    again = bittern("demo", "--runs", 1, "--out", out)  # nothing is measured twice
    assert again.code == 0 and "5 cells are done, 0 are left" in again.err


def test_the_demo_without_pytorch_says_so(monkeypatch):
    from bittern.cli import demo as first_look

    monkeypatch.setattr(first_look, "_has_torch", lambda: False)
    protocol = first_look.protocol_of()
    assert "TALR" not in protocol.labels and "KSH" in protocol.labels
    assert "pip install 'bittern[deep]'" in first_look.introduction(protocol)


def test_version_and_help(bittern):
    assert bittern("--version").out == bittern("-V").out == f"bittern {bt.__version__}\n"
    assert bittern("help").out == bittern("--help").out
    assert bittern("help", "index", "export").out == bittern("index", "export", "-h").out
    assert "--bitorder" in bittern("help", "index", "export").out
    assert bittern("help", "nope").code == 2
    listed = CliRunner().invoke(app, ["-h"]).output
    assert "evaluate" in listed and "demo" in listed


def test_a_shell_completes_commands(bittern, monkeypatch):
    monkeypatch.setenv("_BITTERN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "bittern eva")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert bittern().out.split() == ["evaluate"]


def test_without_arguments_it_shows_its_help_and_fails(bittern):
    said = bittern()
    assert said.code == 2
    assert "Usage: bittern" in said.out + said.err


def test_the_help_names_every_metric_and_option():
    text = CliRunner().invoke(app, ["evaluate", "--help"]).output
    for metric in bt.METRICS:
        assert metric.removeprefix("micro-") in text
    for option in {"optimistic", "pessimistic", "trec"}.union(
        *(metric.options for metric in bt.METRICS.values())
    ):
        assert f":{option}" in text


# What is wrong


@pytest.mark.parametrize(
    ("words", "says"),
    [
        # files
        (("none.npy", "d.npy", *LABELLED), ["none.npy: no such file"]),
        ((".", "d.npy", *LABELLED), ["is a folder"]),
        ((*PAIR, "--query-labels", "none", "--database-labels", "dl.npy"), ["none: no such file"]),
        ((*PAIR, "--relevance", "."), ["is a folder"]),
        (("cut.npz", "d.npy", *LABELLED), ["cut.npz: is a damaged .npz or zip file"]),
        (("flipped.npz", "d.npy", *LABELLED), ["flipped.npz: not a readable"]),
        (
            ("nothing.npy", "d.npy", *LABELLED),
            ["nothing.npy: is empty; give arrays as .npy, .npz, .pt"],
        ),
        (("text.npy", "d.npy", *LABELLED), ["text.npy: is text; give arrays as"]),
        (("pickled.npy", "d.npy", *LABELLED), ["holds pickled objects", "save it as numbers"]),
        (
            (*PAIR, "--query-tags", "ql.txt", "--database-tags", "dt.npy"),
            ["ql.txt: is text; give arrays as"],
        ),
        (
            (*PAIR, "--relevance", "beyond.npz"),
            ["beyond.npz", "'indices' must be whole numbers below 40"],
        ),
        ((*PAIR, "--relevance", "cut.npz"), ["cut.npz: is a damaged .npz or zip file"]),
        ((*PAIR, "--query-labels", "gap.txt", "--database-labels", "dl.txt"), ["line 2 is blank"]),
        ((*PAIR, "--query-labels", "nothing.txt", "--database-labels", "dl.txt"), ["no labels"]),
        ((*PAIR, "--query-labels", "latin1.txt", "--database-labels", "dl.txt"), ["UTF-8"]),
        # codes
        (("flat.npy", "d.npy", *LABELLED), ["flat.npy: codes are a 2-D array", "(8,)"]),
        (("no-columns.npy", "d.npy", *LABELLED), ["1 to 4096 columns, got shape (9, 0)"]),
        (("no-rows.npy", "d.npy", *LABELLED), ["no-rows.npy has 0 codes"]),
        (("no-rows.npy", "--query-labels", "nothing.npy"), ["nothing.npy: "]),
        (("q-bytes.npy", "d-bytes.npy", "--signed", *LABELLED), ["both signs", "got uint8"]),
        (("q.npy", "d.npy", "--signed", *LABELLED), ["both signs", "got bool"]),
        (("words.npy", "d.npy", "--signed", *LABELLED), ["both signs", "got <U1"]),
        (("words.npy", "d.npy", *LABELLED), ["codes must be bits", "<U1"]),
        (
            ("real.npy", "d.npy", *LABELLED),
            ["codes must be bits", "got float64 from 0", "--signed"],
        ),
        (("other-values.npy", "d.npy", *LABELLED), ["uint8", "got int64 from 300 to 300"]),
        ((*PAIR, "--bits", 8, *LABELLED), ["q.npy: holds codes of 12 bits, not 8"]),
        ((*PAIR, "--bits", 0, *LABELLED), ["q.npy: holds codes of 12 bits, not 0"]),
        (("q-bytes.npy", "d-bytes.npy", "--bits", 0, *LABELLED), ["between 1 and 4096, got 0"]),
        (("q-words.npy", "d-words.npy", "--bits", 0, *LABELLED), ["between 1 and 4096, got 0"]),
        (
            ("q-bytes.npy", "d-bytes.npy", "--bits", 9, *LABELLED),
            ["q-bytes.npy: words has bits set beyond --bits 9"],
        ),
        (
            ("q-saved.npz", "d-saved.npz", "--bits", 9, *LABELLED),
            ["q-saved.npz: holds codes of 12"],
        ),
        (("q-short.npy", "d.npy", *LABELLED), ["q-short.npy has codes of 8 bits, d.npy of 12"]),
        (("q.npy", "d-bytes.npy", *LABELLED), ["q.npy has codes of 12 bits", "--bits"]),
        # ground truth
        (PAIR, ["there is no ground truth; give --query-labels"]),
        ((*PAIR, "--query-labels", "ql.npy"), ["--database-labels is missing"]),
        ((*PAIR, "--database-tags", "dt.npy"), ["--query-tags is missing"]),
        ((*PAIR, *LABELLED, "--relevance", "gains.npy"), ["one ground truth"]),
        ((*PAIR, *LABELLED, "--query-tags", "qt.npy"), ["one ground truth"]),
        ((*PAIR, *LABELLED, "--graded"), ["--graded is for tags"]),
        ((*PAIR, "--relevance", "gains.npy", "--graded"), ["--graded is for tags"]),
        (("own.npz", "--graded"), ["there is no ground truth"]),
        (("q.npy", "d.npy", *LABELLED[:3], "five.npy"), ["is for 5 items, d.npy has 40 codes"]),
        (
            ("q.npy", "d.npy", "--query-labels", "five.npy", *LABELLED[2:]),
            ["5 queries, q.npy has 9"],
        ),
        (("q.npy", "--query-labels", "five.npy"), ["is for 5 queries, q.npy has 9 codes"]),
        ((*PAIR, "--relevance", "nan.npy"), ["--relevance must be whole numbers"]),
        ((*PAIR, "--relevance", "q.npy"), ["is for 12 items, d.npy has 40 codes"]),
        ((*PAIR, "--relevance", "five.npy"), ["must be 2-D (n_queries, n_database)"]),
        (
            (*PAIR, "--query-labels", "ql.npy", "--database-labels", "d-names.npy"),
            ["both be strings"],
        ),
        ((*PAIR, "--query-labels", "qt.npy", "--database-labels", "dl.npy"), ["must be 1-D"]),
        # runs
        ((), ["give files of codes (QUERIES and DATABASE), --system for several"]),
        (("--run", "run.txt"), ["--run and --qrels go together"]),
        (("--qrels", "qrels.txt"), ["--run and --qrels go together"]),
        ((*PAIR, "--run", "run.txt", "--qrels", "qrels.txt"), ["give files of codes"]),
        (("--run", "none.txt", "--qrels", "qrels.txt"), ["none.txt", "no such file"]),
        (("--run", "run.txt", "--qrels", "."), ["is a folder"]),
        (("--run", "qrels.txt", "--qrels", "run.txt"), ["qrels.txt, line 1", "6 columns"]),
        (("--run", "run.txt", "--qrels", "qrels.txt", "--bits", 8), ["--bits is for codes"]),
        (("--run", "run.txt", "--qrels", "qrels.txt", "--signed"), ["--signed is for codes"]),
        (
            ("--run", "run.txt", "--qrels", "qrels.txt", *LABELLED),
            ["--query-labels is for codes"],
        ),
        # numbers and names
        ((*PAIR, *LABELLED, "--threads", 0), ["bittern: --threads must be at least 1, got 0"]),
        ((*PAIR, *LABELLED, "--threads", -3), ["must be at least 1, got -3"]),
        ((*PAIR, *LABELLED, "--metrics", ""), ["a metric is written like 'ap'", "got ''"]),
        ((*PAIR, *LABELLED, "--metrics", "ap,"), ["got ''"]),
        ((*PAIR, *LABELLED, "--metrics", "ap ndcg"), ["got 'ap ndcg'"]),
        ((*PAIR, *LABELLED, "--metrics", "map"), ["no metric is called 'map'", "'ap'"]),
        ((*PAIR, *LABELLED, "--metrics", "precision"), ["needs a cut-off or a radius"]),
        ((*PAIR, *LABELLED, "--metrics", "ap@0"), ["got 'ap@0'"]),
    ],
)
def test_a_mistake_is_one_sentence(bittern, words, says):
    assert_refused(bittern("evaluate", *words), *says)


@pytest.mark.parametrize("words", [("--random-state", -1), ("--plot", "demo.gif")])
def test_a_mistake_in_the_demo_too(bittern, words):
    assert_refused(bittern("demo", *words))


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "--no-such-option"),
        ("evaluate", *PAIR, "third.npy"),
        ("evaluate", *PAIR, "--format", "xml"),
        ("evaluate", *PAIR, "--threads", "two"),
        ("evalute",),
    ],
)
def test_a_wrong_option_is_an_error_on_stderr(bittern, words):
    said = bittern(*words)
    assert (said.code, said.out) == (2, "")
    assert "Error" in said.err and "Traceback" not in said.err


@pytest.fixture
def no_work(monkeypatch):
    """Fail where the work would begin."""

    def work(*_, **__):
        raise AssertionError("the work began before the mistake was found")

    monkeypatch.setattr(evaluate, "count_systems", work)
    monkeypatch.setattr("bittern.cli.demo.run_demo", work)


@pytest.mark.parametrize(
    ("option", "output", "says"),
    [
        ("--plot", "pr.jpg", "written as .svg, .png or .pdf, got .jpg"),
        ("--plot", "pr", "written as .svg, .png or .pdf, got no ending"),
        ("--plot", "folder.svg", "folder.svg: is a folder"),
        ("--plot", "none/pr.svg", "there is no folder"),
        ("--plot", "file.txt/pr.svg", "there is no folder"),
        ("--per-query", "folder.svg", "folder.svg: is a folder"),
        ("--per-query", "none/values.csv", "there is no folder"),
        ("--per-query", "link", "link: is a link or a device"),
        ("--per-query", "pipe", "pipe: is a link or a device"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    bittern, tmp_path, option, output, says
):
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file.txt").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "file.txt")  # as /dev/stdout is one
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    said = bittern("evaluate", *PAIR, *LABELLED, option, tmp_path / output)
    assert_refused(said, says)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "link").is_symlink()
    if option == "--plot":
        assert_refused(bittern("demo", option, tmp_path / output), says)


@pytest.mark.usefixtures("no_work")
def test_a_read_only_folder_is_refused_before_the_work(bittern, tmp_path, monkeypatch):
    # Simulated: the superuser may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    said = bittern("evaluate", *PAIR, *LABELLED, "--per-query", tmp_path / "values.csv")
    assert_refused(said, "cannot be written", "is read-only")


@pytest.mark.parametrize(
    "outputs",
    [
        ("--per-query", "ql.npy"),
        ("--per-query", "./q.npy"),
        ("--per-query", "a.svg", "--plot", "a.svg"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_an_output_never_takes_the_place_of_an_input(data, bittern, outputs):
    assert_refused(bittern("evaluate", *PAIR, *LABELLED, *outputs), "would be overwritten")
    assert np.load(data.folder / "ql.npy").shape == (N_QUERIES,)


@pytest.mark.usefixtures("no_work")
def test_trec_s_order_of_ties_is_refused_for_codes_before_the_work(bittern):
    assert_refused(bittern("evaluate", *PAIR, *LABELLED, "--metrics", "ap:trec"), "--run")


def test_too_little_memory_names_the_way_out(bittern, monkeypatch):
    def work(*_, **__):
        raise MemoryError

    monkeypatch.setattr(evaluate, "count_systems", work)
    assert_refused(bittern("evaluate", *PAIR, *LABELLED), "not enough memory", "shards")


def test_a_mistake_of_ours_keeps_its_traceback(data, monkeypatch):
    # Only what is raised on purpose becomes a sentence; a bug must stay visible.
    def work(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(evaluate, "count_systems", work)
    monkeypatch.chdir(data.folder)
    monkeypatch.setattr(sys, "argv", ["bittern", "evaluate", *PAIR, *LABELLED])
    with pytest.raises(ZeroDivisionError):
        main()


# Processes


def test_exit_codes_and_streams_of_a_real_process(data):
    good = start("evaluate", *PAIR, *LABELLED, "--metrics", "ap", "--format=csv", cwd=data.folder)
    out, err = good.communicate(timeout=seconds(60))
    assert (good.returncode, err) == (0, b"")
    assert out.startswith(b"metric,mean,")

    bad = start("evaluate", "none.npy", cwd=data.folder)
    assert bad.communicate(timeout=seconds(60)) == (b"", b"bittern: none.npy: no such file.\n")
    assert bad.returncode == 2


def test_a_reader_that_went_away_is_no_traceback():
    with start("--version") as process:
        process.stdout.close()  # before the first line is written
        assert process.stderr.read() == b""
        assert process.wait(timeout=seconds(60)) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_under_stdout_is_one_sentence():
    with Path("/dev/full").open("wb") as full:
        process = start("--version", stdout=full)
        _, err = process.communicate(timeout=seconds(60))
    assert process.returncode == 2
    assert err == b"bittern: the output: No space left on device.\n"


@pytest.mark.slow  # works for a second until the bar shows, then is interrupted
def test_control_c_stops_soon_without_a_trace(tmp_path):
    pty = pytest.importorskip("pty")
    np.save(tmp_path / "q.npy", np.full((20_000, 32), 255, np.uint8))
    np.save(tmp_path / "d.npy", np.full((600_000, 32), 255, np.uint8))
    np.save(tmp_path / "ql.npy", np.zeros(20_000, np.uint8))
    np.save(tmp_path / "dl.npy", np.zeros(600_000, np.uint8))
    before = sorted(tmp_path.iterdir())

    ours, theirs = pty.openpty()
    outputs = ("--per-query", "values.csv", "--plot", "pr.svg", "--threads", 1)
    process = start(
        "evaluate", *PAIR, *LABELLED, *outputs, cwd=tmp_path, stderr=theirs, env={"TERM": "xterm"}
    )
    os.close(theirs)
    shown = read_until(ours, b"comparing")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    shown += read_until(ours)  # a terminal that nobody reads would block the process
    out, _ = process.communicate(timeout=seconds(30))
    assert time.monotonic() - began < seconds(10)

    assert (process.returncode, out) == (130, b"")
    assert b"comparing" in shown and b"Traceback" not in shown
    assert sorted(tmp_path.iterdir()) == before


def read_until(terminal, word=None):
    """What a terminal shows, up to a word or to its end."""
    shown = b""
    while word is None or word not in shown:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other end is closed
            part = b""
        if not part:
            os.close(terminal)
            break
        shown += part
    return shown
