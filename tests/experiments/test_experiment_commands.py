"""``bittern run``, ``reproduce``, ``verify`` and ``report``, as a user types them."""

import csv
from functools import partial

import pytest
from made_protocols import PLAIN, command, write_arrays
from processes import one_after_another

from bittern.experiments import Records, measure


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    write_arrays(folder / "arrays")
    (folder / "mine.toml").write_text(PLAIN.replace("runs = 2", "runs = 1"))
    return folder


@pytest.fixture
def bittern(place, monkeypatch, capsys):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    return partial(command, monkeypatch, capsys, place)


@pytest.fixture
def done(bittern, place):
    """The folder of a finished experiment, measured once for all tests here."""
    if not (place / "results" / "mine").exists():
        code, out, err = bittern("run", "mine.toml", "--root", "arrays")
        assert code == 0, err
        assert "itq" in out and "bittern report results/mine" in out
        assert "5/5" in err
    return place / "results" / "mine"


def test_run_stores_and_shows(done):
    assert len(Records.read(done)) == 5


def test_running_again_measures_nothing(done, bittern):
    code, out, err = bittern("run", "mine.toml", "--root", "nowhere")
    assert code == 0 and "5 cells are done, 0 are left" in err and "itq" in out


def test_only_some_cells_are_measured(bittern, place):
    words = ("run", "mine.toml", "--root", "arrays", "--out", "some")
    code, out, _ = bittern(*words, "--only", "method=lsh", "--only", "bits=4")
    assert code == 0 and "4 of 5 cells are not measured yet" in out
    assert [r.method for r in Records.read(place / "some")] == ["lsh"]


def test_a_changed_protocol_has_its_own_folder(done, bittern, place):
    words = ("run", "mine.toml", "--root", "arrays", "--only", "method=lsh", "--set", "n_bits=[5]")
    code, out, _ = bittern(*words, "--set", "method.lsh.label=short")
    assert code == 2 and not out  # no method of that label is left to measure
    code, out, _ = bittern(*words)
    assert code == 0 and "5 bits" in out and "8 bits" not in out
    folders = [one for one in (place / "results").iterdir() if one.name.startswith("mine-")]
    (made,) = folders
    assert Records.read(made).protocol.differs == "Changed by --set: n_bits=[5]."
    assert len(Records.read(done)) == 5  # untouched
    code, out, err = bittern(*words)
    assert code == 0 and "1 cells are done, 0 are left" in err


@pytest.mark.parametrize("command", ["run", "reproduce"])
def test_a_wrong_change_is_an_error_of_one_sentence(bittern, command):
    code, out, err = bittern(command, "mine.toml", "--set", "rnus=1")
    assert code == 2 and not out and len(err.strip().splitlines()) == 1
    assert "no key is called 'rnus'; did you mean 'runs'?" in err


def test_verify_says_that_it_is_the_same(done, bittern):
    code, out, _ = bittern("verify", done, "--root", "arrays", "--only", "method=lsh")
    assert code == 0 and "every value is the same, to the last bit" in out


def test_reports_in_every_form(done, bittern, place):
    names = {"html": "r.html", "latex": "r.tex", "csv": "r.csv", "markdown": "r.md",
             "parquet": "r.parquet"}  # fmt: skip
    words = [word for form, name in names.items() for word in (f"--{form}", name)]
    code, out, _ = bittern("report", done, *words)
    assert code == 0 and all(name in out for name in names.values())
    assert (place / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert r"\begin{tabular}" in (place / "r.tex").read_text()
    rows = list(csv.DictReader((place / "r.csv").read_text().splitlines()))
    assert {row["method"] for row in rows} == {"float ranking", "lsh", "itq"}
    assert "| itq |" in (place / "r.md").read_text()
    assert (place / "r.parquet").read_bytes()[:4] == b"PAR1"
    code, out, _ = bittern("report", done)  # nothing asked for: the table
    assert code == 0 and "lsh" in out


def test_every_figure_is_written_into_a_folder(done, bittern, place):
    code, out, _ = bittern("report", done, "--figures", "drawn")
    assert code == 0 and "bits.svg" in out
    assert (place / "drawn" / "ties.svg").read_text().startswith("<svg")


def test_two_experiments_are_compared(done, bittern, place):
    code, out, _ = bittern("compare", done, done)
    assert code == 0 and "+0.0000" in out and "the same queries" in out
    code, out, _ = bittern("compare", done, done, "--markdown", "c.md")
    assert code == 0 and "c.md" in out
    assert "| itq | 4 bits |" in (place / "c.md").read_text()


def test_reproduce_lists_the_protocols(bittern):
    code, out, _ = bittern("reproduce")
    assert code == 0
    for name in ("ties-table-1", "ties-figure-1", "evidence-table-1", "methodology-tables"):
        assert name in out
    assert "On cifar10. " in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "none.toml"), "none.toml: no such file"),
        (("run", "ties-table-11"), "did you mean 'ties-table-1'"),
        (("reproduce", "nothing"), "no protocol is called 'nothing'"),
        (("run", "mine.toml", "--only", "method=lhs"), "did you mean 'lsh'"),
        (("run", "mine.toml", "--jobs", 0, "--root", "arrays", "--out", "x"), "jobs"),
        (("report", "arrays"), "has no protocol.toml"),
        (("verify", "arrays"), "has no protocol.toml"),
        (("report", "arrays", "--html", "none/r.html"), "there is no folder none"),
        (("compare", "arrays", "arrays"), "has no protocol.toml"),
        (("run", "mine.toml", "--root", "nowhere", "--out", "new"), "nowhere"),
        (("report", "results/mine", "--csv", "x", "--latex", "x"), "is given for two reports"),
        (("report", "results/mine", "--csv", "results/mine/protocol.toml"), "belongs to the exper"),
        (("report", "results/mine", "--csv", "results/mine/cells/x"), "belongs to the experiment"),
    ],
)
def test_a_mistake_is_one_sentence(done, bittern, words, says):
    code, out, err = bittern(*words)
    assert (code, out) == (2, "")
    assert err.startswith("bittern: ") and err.count("\n") == 1 and says in err


def test_a_failed_cell_is_reported_and_the_exit_code_is_one(bittern, place):
    text = PLAIN.replace("runs = 2", "runs = 1").replace("n_iter = [1, 20]", "n_iter = [-1, -2]")
    (place / "bad.toml").write_text(text)
    code, out, _ = bittern("run", "bad.toml", "--root", "arrays")
    assert code == 1
    assert "failed: itq, 4 bits, run 0" in out and "n_iter" in out and "lsh" in out
