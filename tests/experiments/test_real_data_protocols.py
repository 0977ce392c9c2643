"""The protocols for real NUS-WIDE, LabelMe and SIFT1M, on small files of the published formats."""

from dataclasses import replace
from functools import partial

import pytest
from made_protocols import command
from processes import one_after_another
from real_formats import write_labelme, write_nuswide, write_sift1m

from bittern.experiments import Protocol, Records, measure
from bittern.io.protocol_files import shipped

DEEP = ("DPSH", "DTSH", "TALR-AP", "TALR-NDCG", "DCMH", "CM-TALR")
SHORT = ("runs=1", "n_bits=[8]")
NUSWIDE = ("split.sizes={n_labels=21, queries_per_label=1, train_per_label=4}",)
LABELME = ("split.sizes={queries=20, train=100}",)
IMPROVED = "split.sizes={queries=20, train=100, validation_queries=0, validation_database=0}"
PAIRS = (
    "split.sizes={queries=20, train=60, validation_queries=0, validation_database=0}",
    "crossmodal.text_steps=['pca20']",
    "search.points=1",
)
CASES = {
    "ties-table-1-nuswide-real": (write_nuswide, NUSWIDE),
    "ties-table-2-nuswide-real": (write_nuswide, NUSWIDE),
    "ties-table-2-labelme-real": (write_labelme, LABELME),
    "crossmodal-nuswide": (write_nuswide, PAIRS),
    "methodology-labelme-ball": (write_labelme, (IMPROVED,)),
    "methodology-sift1m-ball": (write_sift1m, ("dataset.rows=400", IMPROVED)),
    "methodology-sift1m-neighbours": (write_sift1m, ("dataset.rows=400", IMPROVED)),
}
STAND_INS = {
    "ties-table-1-nuswide-real": "ties-table-1-nuswide",
    "ties-table-2-nuswide-real": "ties-table-2-nuswide",
    "ties-table-2-labelme-real": "ties-table-2",
}


@pytest.fixture
def bittern(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)  # a process would import all anew
    return partial(command, monkeypatch, capsys, tmp_path)


def shorter(protocol):
    """Few steps and units of the methods that train by gradients, one point of their grids."""
    deep = [method for method in protocol.method if method.label in DEEP]
    lasts = {m.label: "n_steps" if "n_steps" in m.parameters else "n_epochs" for m in deep}
    points = ["search.points=1"] if protocol.search else []
    narrow = [f"method.{m.label}.parameters.hidden=16" for m in deep if "hidden" in m.parameters]
    return (
        [f"method.{label}.parameters.{name}=2" for label, name in lasts.items()] + narrow + points
    )


def words_of(changes):
    return [word for change in changes for word in ("--set", change)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow  # fits every method of a table
def test_a_protocol_for_real_data_runs_to_the_end_of_its_table(name, bittern, tmp_path):
    write, sizes = CASES[name]
    protocol = Protocol.load(shipped()[name])
    write(tmp_path / "data" / protocol.dataset.name)
    changes = (*SHORT, *sizes, *shorter(protocol))
    words = ("run", name, "--root", "data", "--out", "made", "--jobs", "1", *words_of(changes))
    code, out, err = bittern(*words)
    assert code == 0, err
    records = Records.read(tmp_path / "made")
    assert not records.missing and records.methods == protocol.labels
    assert records.protocol.dataset == protocol.dataset or "dataset.rows=400" in changes
    for metric in protocol.metrics[:2]:
        assert all(record.values[metric].mean > 0 for record in records)
    lines = [line.split("  ")[0].strip() for line in out.splitlines()]
    n_tables = 2 + bool(records.tasks)  # with several tasks, also all of them side by side
    assert all(lines.count(label) == n_tables for label in protocol.labels)


@pytest.mark.parametrize(("real", "stand_in"), STAND_INS.items())
def test_a_protocol_for_real_data_has_the_methods_of_its_stand_in(real, stand_in):
    one, other = (Protocol.load(shipped()[name]) for name in (real, stand_in))
    assert one.method == other.method and one.truth == other.truth
    # What is searched by held-out rows depends on the split, which is another one.
    assert one.search == (other.search and replace(other.search, database=one.search.database))
    assert one.n_bits == other.n_bits and one.significance == other.significance
    assert stand_in in one.differs and real in other.differs


def test_a_stand_in_runs_on_the_real_data_by_replacing_its_tables(bittern, tmp_path):
    write_nuswide(tmp_path / "data" / "nuswide")
    changes = (
        *SHORT, "dataset={name='nuswide', options={concepts=21}}",
        "split={name='nuswide-21', sizes={queries_per_label=1, train_per_label=4}}",
    )  # fmt: skip
    words = ("reproduce", "ties-table-1-nuswide", "--root", "data", "--only", "method=ITQ")
    code, out, err = bittern(*words, *words_of(changes))
    assert code == 0, err
    assert "ITQ" in out and "Average precision at 500" in out
    assert "Changed by --set: runs=1, n_bits=[8], dataset=" in out
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.startswith("ties-table-1-nuswide-")
    assert (folder / "report.html").exists()
