"""Variants of the papers' protocols, from the command to the end of the table, with less of all."""

from functools import partial

import pytest
from made_protocols import command
from processes import one_after_another

from bittern.experiments import Protocol, Records, measure
from bittern.io.protocol_files import shipped

SIZES = "queries=20, train=60, validation_queries=20, validation_database=30"
COPIES = "queries=20, train=66, validation_queries=0, validation_database=0"
CASES = {
    "duplicates-photographs-shapes": (
        "dataset.options={n=120, side=32}",
        f"split.sizes={{{COPIES}, balanced=false}}",
        "near_duplicates.changes=['jpeg-50', 'mirrored']",
    ),
    "methodology-radius-2-digits": ("n_bits=[8]", f"split.sizes={{{SIZES}, balanced=false}}"),
    "evidence-settings-shapes": (
        "evidence.features=['rgb-moments', 'variance']",
        "dataset.options={n=400, side=16}",
        "split.sizes={per_size=2, sizes=[1]}",
    ),
    "crossmodal-corel5k-words-shapes": (
        "n_bits=[8]",
        "search.points=1",
        "dataset.options={n=160, side=16, text='words'}",
        "method.DCMH.parameters.n_steps=2",
        "method.CM-TALR.parameters.n_steps=2",
    ),
}


@pytest.fixture
def bittern(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    return partial(command, monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow  # fits every method of a table
def test_a_variant_runs_to_the_end_of_its_table_without_any_file(name, bittern, tmp_path):
    words = [word for change in ("runs=1", *CASES[name]) for word in ("--set", change)]
    places = ("--root", tmp_path / "nowhere", "--out", "made")
    code, out, err = bittern("reproduce", name, *places, "--jobs", 1, *words)
    assert code == 0, err
    records, protocol = Records.read(tmp_path / "made"), Protocol.load(shipped()[name])
    assert not records.missing and not records.failures and records.methods == protocol.labels
    assert all(record.values[protocol.main_metric].mean > 0 for record in records)
    assert "numbers are not" in out and all(label in out for label in protocol.labels)
    assert (tmp_path / "made" / "report.html").exists()
