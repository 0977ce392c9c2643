"""Protocols that take over another one, and change some of it."""

import tomllib

import pytest
from made_protocols import PLAIN, protocol, write_arrays
from processes import one_after_another

from bittern.errors import BitternError, InputError
from bittern.experiments import Protocol, Records, cells_of, measure, run, verify
from bittern.io.protocol_files import extended

TEXTS = 'reproduces = "Something."\ndiffers = "In some ways."\n'
BALL = '\n[truth]\nkind = "ball"\nneighbours = 5\nsample = 50\namong = "train"\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plain.toml").write_text(TEXTS + PLAIN + BALL)
    return tmp_path


def load(folder, text, name="mine.toml"):
    (folder / name).write_text(f'title = "Mine"\nextends = "plain.toml"\n{text}')
    return Protocol.load(folder / name)


def test_everything_but_the_texts_is_taken_over(folder):
    old, new = Protocol.load(folder / "plain.toml"), load(folder, "")
    assert (new.title, new.reproduces, new.differs) == ("Mine", "", "")
    assert (old.reproduces, old.differs) == ("Something.", "In some ways.")
    assert new.fingerprint == old.fingerprint
    assert [c.fingerprint for c in cells_of(new)] == [c.fingerprint for c in cells_of(old)]


def test_a_value_replaces_the_old_one(folder):
    new = load(folder, "runs = 1\nn_bits = [16]")
    assert (new.runs, new.n_bits, new.method) == (1, (16,), load(folder, "").method)


def test_tables_are_merged_key_by_key(folder):
    new = load(folder, "[split.sizes]\ntrain = 50\n[truth]\nneighbours = 7\n[dataset]\nrows = 100")
    assert new.split.name == "improved"
    assert new.split.sizes == {
        "train": 50, "queries": 20, "validation_queries": 15, "validation_database": 30,
    }  # fmt: skip
    assert new.truth == {"kind": "ball", "neighbours": 7, "sample": 50, "among": "train"}
    assert (new.dataset.name, new.dataset.rows) == ("arrays", 100)


def test_a_table_that_names_another_thing_replaces_the_old_one(folder):
    new = load(folder, 'split = { name = "standard" }\ntruth = { kind = "neighbours", k = 3 }')
    assert new.split.sizes == {} and new.truth == {"kind": "neighbours", "k": 3}


def test_methods_are_changed_by_their_labels(folder):
    new = load(folder, '[method.itq.grid]\nn_iter = [5]\n[method."float ranking"]\nlabel = "exact"')
    assert [method.label for method in new.method] == ["exact", "lsh", "itq"]
    assert new.method[2].grid == {"n_iter": [5]}
    same = [c.fingerprint for c in cells_of(new) if c.method.label == "lsh"]
    assert same == [c.fingerprint for c in cells_of(load(folder, "")) if c.method.label == "lsh"]


def test_a_list_of_methods_replaces_all_of_them(folder):
    assert load(folder, '[[method]]\nname = "pcah"').labels == ("pcah",)


def test_the_result_is_the_protocol_written_in_full(folder):
    new = load(folder, "runs = 1\n[split.sizes]\nqueries = 10\n[method.itq.grid]\nn_iter = [5]")
    table = tomllib.loads((folder / "plain.toml").read_text())
    table["runs"], table["split"]["sizes"]["queries"] = 1, 10
    table["method"][2]["grid"] = {"n_iter": [5]}
    full = Protocol.of(table)
    assert new.fingerprint == full.fingerprint
    assert [c.fingerprint for c in cells_of(new)] == [c.fingerprint for c in cells_of(full)]


def test_a_protocol_that_extends_can_be_extended(folder):
    load(folder, "runs = 1")
    text = 'title = "Third"\nextends = "../mine.toml"\nn_bits = [6]'
    (folder / "inner").mkdir()
    (folder / "inner" / "third.toml").write_text(text)
    third = Protocol.load(folder / "inner" / "third.toml")
    assert (third.runs, third.n_bits, third.title) == (1, (6,), "Third")


def test_a_protocol_of_the_package_is_extended_by_its_name(tmp_path):
    changed = protocol('title = "Mine"\nextends = "demo"\nruns = 1')
    assert changed.dataset.name == "digits" and changed.runs == 1
    assert changed.labels[0] == "float ranking"
    text = 'title = "Mine"\nextends = "demo"\n[method.KSH.parameters]\nn_steps = 5'
    (tmp_path / "mine.toml").write_text(text)
    ksh = Protocol.load(tmp_path / "mine.toml").method[3]
    assert ksh.parameters == {"n_anchors": 200, "n_steps": 5}


def test_changes_apply_to_the_whole_protocol(folder):
    load(folder, "runs = 1")
    new = Protocol.load(folder / "mine.toml", ["method.itq.grid.n_iter=[7]", "runs=3"])
    assert new.runs == 3 and new.method[2].grid == {"n_iter": [7]}
    assert new.differs == "Changed by --set: method.itq.grid.n_iter=[7], runs=3."


def test_paths_start_from_the_file_that_is_run_unless_the_old_one_has_a_base(folder):
    (folder / "inner").mkdir()
    for base, found in (("", "inner"), ('base = "data"', "data")):
        text = PLAIN.replace("n_bits", f"{base}\nn_bits", 1)
        (folder / "plain.toml").write_text(text)
        (folder / "inner" / "new.toml").write_text('title = "x"\nextends = "../plain.toml"')
        assert Protocol.load(folder / "inner" / "new.toml").base == str((folder / found).resolve())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('extends = "ties-table-11"', "did you mean 'ties-table-1'"),
        ('extends = "none.toml"', r"none\.toml: no such file"),
        ("extends = 3", "must be the name of a protocol or a file, got 3"),
        ('extends = "mine.toml"', "extends itself"),
        ('extends = "plain.toml"\n[method.lhs]\nlabel = "x"', "did you mean 'lsh'"),
        ('extends = "plain.toml"\n[method]\nlsh = 3', r"method\.lsh must be a table, got 3"),
        ('extends = "plain.toml"\nrnus = 3', "did you mean 'runs'"),
        ('extends = "plain.toml"\nruns = {}', "runs must be a whole number"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_file(folder, text, says):
    (folder / "mine.toml").write_text(f'title = "Mine"\n{text}')
    with pytest.raises(BitternError, match=says) as caught:
        Protocol.load(folder / "mine.toml")
    assert ".toml" in str(caught.value) and "\n" not in str(caught.value)


def test_two_that_extend_each_other_are_an_error(folder):
    (folder / "other.toml").write_text('extends = "mine.toml"')
    (folder / "mine.toml").write_text('extends = "other.toml"')
    with pytest.raises(InputError, match="extends itself"):
        extended({"extends": "mine.toml"}, folder)


def test_the_folder_of_records_has_the_protocol_in_full(folder, monkeypatch):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    load(folder, "runs = 1\nn_bits = [4]")
    write_arrays(folder / "arrays")
    made = run(folder / "mine.toml", folder / "out", root=folder / "arrays", jobs=1)
    (folder / "plain.toml").unlink()
    assert "extends" not in tomllib.loads((folder / "out" / "protocol.toml").read_text())
    records = Records.read(folder / "out")
    assert len(records) == len(made) == 3 and not records.missing
    assert verify(folder / "out", root=folder / "arrays", random_state=0).is_same
