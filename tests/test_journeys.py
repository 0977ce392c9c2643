"""The journeys of docs/architecture.md: each command runs, and meets the files listed there."""

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from processes import one_after_another

import bittern as bt
from bittern.cli import main
from bittern.experiments import measure

ROOT = Path(bt.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
PROTOCOL = """
title = "Digits"
runs = 2
n_bits = [8, 16]
metrics = ["ap", "precision@100"]
dataset.name = "digits"
split.name = "improved"
truth.kind = "classes"
method = [{name = "lsh"}, {name = "itq"}]
"""


def listed(title):
    """The files of a journey, in order."""
    (section,) = re.findall(rf"^### {title}\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)
    files = re.findall(r"^\d+\. `([\w/.]+)`", section, re.MULTILINE)
    assert len(files) == len(set(files)) > 5
    assert all((ROOT / file).is_file() for file in files)
    return files


def visited(work):
    """Files of the package with a function or template that runs, imports aside."""
    found = set()

    def note(frame, event, _):
        path = frame.f_code.co_filename
        is_new = event == "call" and path.startswith(str(ROOT)) and path not in found
        if is_new and not is_importing(frame):
            found.add(path)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
    return {Path(path).relative_to(ROOT).as_posix() for path in found}


def is_importing(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def inside(files, *stages):
    """Those of these stages: a folder, or a module."""
    return {file for file in files if file.split("/")[0].removesuffix(".py") in stages}


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["bittern", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code


@pytest.mark.usefixtures("numpy_alone")
def test_evaluate_is_followed_in_fourteen_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, n in (("q", 20), ("d", 200)):
        np.save(f"{name}.npy", rng.random((n, 64)) < 0.5)
        np.save(f"{name}l.npy", rng.integers(0, 3, n))
    labels = ("--query-labels", "ql.npy", "--database-labels", "dl.npy")
    found = visited(lambda: command(monkeypatch, "evaluate", "q.npy", "d.npy", *labels))
    assert "auprc" in capsys.readouterr().out
    files = listed("`bittern evaluate`")
    assert len(files) <= 14
    stages = ("inputs", "codes", "kernels", "relevance", "profile", "metrics", "data", "report")
    assert inside(found, "cli", *stages) == set(files)


def test_a_step_of_talr_is_followed_in_seven_files():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 8)), np.arange(60) % 3
    hasher = bt.hashing.TALR(n_bits=8, n_epochs=2, batch_size=30)
    found = visited(lambda: hasher.fit(X, y))
    files = listed("A training step of TALR")
    assert len(files) <= 7
    assert inside(found, "hashing", "networks", "features") == set(files)


@pytest.mark.slow  # a small experiment and its page
def test_run_and_report_are_followed_in_thirty_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(PROTOCOL)
    # A trace does not see other processes, so the cells are measured in this one.
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    found = visited(lambda: command(monkeypatch, "run", "p.toml"))
    found |= visited(lambda: command(monkeypatch, "report", "results/p", "--html", "p.html"))
    assert "itq" in capsys.readouterr().out and Path("p.html").exists()
    files = listed("`bittern run` and `bittern report`")
    assert len(files) <= 30
    assert inside(found, "cli", "experiments", "analysis", "report") == set(files)
