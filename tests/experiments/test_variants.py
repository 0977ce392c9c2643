"""Variants of the papers' protocols, from the command to the end of the table, with less of all."""

from functools import partial

import pytest
from made_protocols import command

from bittern.experiments import Protocol, Records
from bittern.io.protocol_files import shipped

IMPROVED = "split.sizes={queries=20, train=60, validation_queries=20, validation_database=30}"
UNBALANCED = IMPROVED.replace("}", ", balanced=false}")
SHAPES = "dataset.options={n=160, side=16, text='words'}"
WORDS = ("method.DCMH.parameters.n_steps=2", "method.CM-TALR.parameters.n_steps=2")
CASES = {
    "methodology-radius-2-digits": ("n_bits=[8]", "truth.sample=30", UNBALANCED),
    "methodology-tables-digits": ("n_bits=[16]", "tables={bits_per_table=[4, 8], n_tables=[1, 2]}"),
    "evidence-settings-shapes": (
        "evidence.features=['rgb-moments', 'variance']",
        "dataset.options={n=400, side=16}",
    ),
    "crossmodal-corel5k-words-shapes": ("n_bits=[8]", "search.points=1", SHAPES, *WORDS),
}


@pytest.fixture
def bittern(tmp_path, monkeypatch, capsys):
    return partial(command, monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_a_variant_runs_to_the_end_of_its_table_without_any_file(name, bittern, tmp_path):
    words = [word for change in ("runs=1", *CASES[name]) for word in ("--set", change)]
    nowhere = tmp_path / "nowhere"
    code, out, err = bittern(
        "reproduce", name, "--root", nowhere, "--jobs", 1, "--out", "made", *words
    )
    assert code == 0, err
    records = Records.read(tmp_path / "made")
    protocol = Protocol.load(shipped()[name])
    assert not records.missing and not records.failures and records.methods == protocol.labels
    assert all(record.values[protocol.main_metric].mean > 0 for record in records)
    assert "numbers are not" in out and all(label in out for label in protocol.labels)
    assert (tmp_path / "made" / "report.html").exists()
