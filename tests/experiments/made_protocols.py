"""Small experiments on made-up vectors in files."""

import sys
import tomllib

import numpy as np
import pytest

from bittern.cli import main
from bittern.experiments import Protocol
from bittern.experiments.run_data import load_dataset, prepare_run

PLAIN = """
title = "Three classes"
n_bits = [4, 8]
runs = 2
metrics = ["ap", "precision@5", "auprc"]

[dataset]
name = "arrays"

[split]
name = "improved"
sizes = { train = 60, queries = 20, validation_queries = 15, validation_database = 30 }

[[method]]
name = "exact"
label = "float ranking"

[[method]]
name = "lsh"

[[method]]
name = "itq"
grid = { n_iter = [1, 20] }
"""


def write_arrays(folder, random_state=0, n=180):
    """Three classes of 12-D points, in a folder of .npy files."""
    rng = np.random.default_rng(random_state)
    labels = np.arange(n) % 3
    vectors = rng.standard_normal((n, 12)) + 1.5 * rng.standard_normal((3, 12))[labels]
    folder.mkdir(exist_ok=True)
    np.save(folder / "vectors.npy", vectors.astype(np.float32))
    np.save(folder / "labels.npy", labels)
    return folder


def protocol(text=PLAIN, **changes):
    """The protocol of a text, with some of its keys changed."""
    return Protocol.of(tomllib.loads(text) | changes)


def command(monkeypatch, capsys, folder, *words):
    """What ``bittern`` says in a folder: exit code, output and errors."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["bittern", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def run_data(protocol, run, root):
    """The data of a run, read from a folder."""
    return prepare_run(protocol, load_dataset(protocol.dataset, root), run)
