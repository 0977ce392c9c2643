"""The protocol of quantisers, on a small dataset."""

from functools import partial

import pytest
from made_protocols import command

from bittern.experiments import Protocol, Records
from bittern.io.protocol_files import shipped

NAME = "methodology-quantisation"
SMALL = (
    "dataset={name='digits'}",
    "split.sizes={queries=30, train=200, validation_queries=0, validation_database=0}",
    "n_bits=[8]",
    "runs=1",
)


@pytest.fixture
def bittern(tmp_path, monkeypatch, capsys):
    return partial(command, monkeypatch, capsys, tmp_path)


def test_every_direction_has_every_quantiser():
    methods = Protocol.load(shipped()[NAME]).method
    quantisers = {"lsh": "SBQ", "itq": "SBQ"} | {n: n.upper() for n in ("dbq", "mhq", "npq", "vbq")}
    directions = [one.parameters.get("projection", one.name) for one in methods]
    expected = [
        f"{d.upper()}, {quantisers[m.name]}" for d, m in zip(directions, methods, strict=True)
    ]
    assert [one.label for one in methods] == expected
    assert len(set(expected)) == 10


def test_tables_list_nominal_lengths_and_say_what_is_stored(bittern, tmp_path):
    changes = [word for change in SMALL for word in ("--set", change)]
    code, out, err = bittern("run", NAME, "--out", "made", "--jobs", "1", *changes)
    assert code == 0, err
    records = Records.read(tmp_path / "made")
    assert not records.missing and {one.n_bits for one in records} == {8}
    stored = {one.method: one.profile.counts.shape[1] - 1 for one in records}
    assert stored["LSH, SBQ"] == stored["ITQ, DBQ"] == 8
    assert stored["LSH, MHQ"] == stored["ITQ, NPQ"] == 12
    said = next(line for line in out.splitlines() if line.startswith("Thermometer codes store"))
    assert "LSH, MHQ 12 at 8; LSH, NPQ 12 at 8" in said and "SBQ" not in said
    assert all(one.values["auprc"].mean > 0 for one in records)
