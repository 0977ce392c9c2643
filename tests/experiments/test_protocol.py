import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_protocols import PLAIN, protocol

from bittern.errors import BitternError
from bittern.experiments import PARADIGMS, Protocol, cells_of
from bittern.experiments.cells import select_cells
from bittern.experiments.paradigm import Paradigm
from bittern.io.protocol_files import find_protocol, shipped
from bittern.io.toml import to_toml
from bittern.registry import Registry


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ("n_bits =", "nbits =", "no key is called 'nbits'; did you mean 'n_bits'?"),
        ("n_bits = [4, 8]", "n_bits = 8", "n_bits must be a list, got 8"),
        ("n_bits = [4, 8]", "n_bits = [4, '8']", r"n_bits\[1\] must be a whole number, got '8'"),
        ("n_bits = [4, 8]", "", "method lsh: n_bits is missing"),
        ("n_bits = [4, 8]", "n_bits = [4, 8, 4]", "n_bits: 4 is named twice"),
        ("n_bits = [4, 8]", "n_bits = [4, 0]", "n_bits must be between 1 and 4096, got 0"),
        ('name = "lsh"', 'name = "lsh"\nn_bits = [3, 3]', "method lsh: n_bits: 3 is named twice"),
        ('"auprc"]', '"ap"]', "metrics: ap is named twice"),
        ("runs = 2", "runs = 0", "runs"),
        ("runs = 2", "runs = 2\ntruth = { kind = ['classes'] }", "kind must be a string in quotes"),
        (
            "runs = 2",
            "runs = 2\ntruth = { kind = 'ball', radius = -1.0 }",
            "radius must be greater",
        ),
        ("runs = 2", "runs = 2\nevidence = { k = 3 }", "is for paradigm = 'evidence'"),
        (
            "runs = 2",
            "runs = 2\nsignificance = { tests = ['t-test', 't-test'] }",
            "significance.tests: t-test is named twice",
        ),
        (
            "runs = 2",
            "runs = 2\nparadigm = 'tables'\ntables = { bits_per_table = [2, 2], n_tables = [1] }",
            "tables.bits_per_table: 2 is named twice",
        ),
        ("train = 60", "train = 2026-01-01", "train: must be text, finite numbers"),
        ("train = 60", "train = inf", "train: must be text, finite numbers"),
        ('name = "arrays"', 'name = "arrays"\nrows = -5', "dataset.rows must be at least 1"),
        (
            'name = "exact"',
            'name = "exact"\nparameters = { metric = "cosin" }',
            "no distance is called 'cosin'; did you mean 'cosine'",
        ),
        ('name = "exact"', 'name = "exact"\nn_bits = [8]', "neither grid nor n_bits"),
        ('name = "exact"', 'name = "exact"\ngrid = { metric = ["cosine"] }', "neither grid nor"),
        ("runs = 2", "runs = true", "runs must be a whole number, got True"),
        ('title = "Three classes"', "", "title is missing"),
        ('name = "arrays"', 'name = "array"', "no dataset is called 'array'"),
        ('name = "arrays"', 'name = "arrays"\nstep = []', "did you mean 'steps'"),
        ('name = "improved"', 'name = "improve"', "no split is called 'improve'"),
        ("train = 60", "trian = 60", "did you mean 'train'"),
        ('name = "lsh"', 'name = "lhs"', "no hasher is called 'lhs'; did you mean 'lsh'"),
        ('name = "lsh"', 'nmae = "lsh"', "did you mean 'name'"),
        ('name = "lsh"', 'name = "itq"', "two methods are called 'itq'"),
        ("n_iter = [1, 20]", "n_itr = [1, 20]", "method itq: no key is called 'n_itr'"),
        ("n_iter = [1, 20]", "n_iter = 20", "grid.n_iter must be a list of values, got 20"),
        ('"auprc"]', '"auprk"]', "auprk"),
        ('"auprc"]', '"ap:trec"]', "ap:trec is for runs read from TREC files"),
        ("runs = 2", "runs = 2\nparadigm = 'table'", "did you mean 'tables'"),
        ("runs = 2", "runs = 2\nparadigm = 'tables'", "tables: bits_per_table is missing"),
        (
            "runs = 2",
            "runs = 2\ntables = { bits_per_table = [2], n_tables = [1] }",
            r"\[tables\] is for paradigm = 'tables'",
        ),
        ("runs = 2", "runs = 2\ntruth = { kind = 'klasses' }", "did you mean 'classes'"),
        ("runs = 2", "runs = 2\ntruth = { kind = 'ball', radios = 1.0 }", "did you mean 'radius'"),
        ("runs = 2", "runs = 2\ntruth = { kind = 'neighbours' }", "k is missing"),
        ("runs = 2", "runs = 2\nsignificance = { tests = ['t'] }", "no test is called 't'"),
        ("runs = 2", "runs = 2\nsignificance = { baseline = 'LSH' }", "no method is called 'LSH'"),
    ],
)
def test_a_mistake_is_reported_before_any_work(tmp_path, wrong, right, says):
    assert wrong in PLAIN  # else nothing is changed
    path = tmp_path / "mine.toml"
    path.write_text(PLAIN.replace(wrong, right, 1))
    with pytest.raises(BitternError, match=says) as caught:
        Protocol.load(path)
    assert "mine.toml" in str(caught.value)


def test_a_file_that_is_not_toml_is_reported(tmp_path):
    (tmp_path / "p.toml").write_text("title = ")
    with pytest.raises(BitternError, match=r"p\.toml: not a readable TOML file"):
        Protocol.load(tmp_path / "p.toml")


def test_a_protocol_survives_the_trip_through_toml():
    one = protocol(significance={"tests": ["t-test"], "baseline": "lsh"})
    text = to_toml(one.to_dict())
    assert Protocol.of(tomllib.loads(text)) == one


plain = st.recursive(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    | st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.from_regex("[a-z_]{1,8}", fullmatch=True), plain, max_size=4))
def test_what_is_written_as_toml_is_read_back(table):
    whole = table | {"inner": table, "tables": [table, {"x": 1, "deep": table}]}
    assert tomllib.loads(to_toml(whole)) == whole


def test_cells_are_methods_by_lengths_by_runs():
    cells = cells_of(protocol())
    assert len(cells) == 2 * (1 + 2 + 2)
    assert len({cell.fingerprint for cell in cells}) == len(cells)
    assert [c.name for c in cells][:3] == ["float ranking, run 0", "lsh, 4 bits, run 0",
                                           "lsh, 8 bits, run 0"]  # fmt: skip


def changed(**changes):
    """Names of the cells whose fingerprint a change of the protocol alters."""
    before = {cell.name: cell.fingerprint for cell in cells_of(protocol())}
    after = {cell.name: cell.fingerprint for cell in cells_of(protocol(**changes))}
    return {name for name, mark in after.items() if before.get(name) != mark}


def test_a_changed_protocol_changes_only_the_cells_concerned():
    methods = tomllib.loads(PLAIN)["method"]
    texts = {"title": "Another", "reproduces": "x", "differs": "y", "takes": "long"}
    assert changed(**texts) == set()
    assert protocol(**texts).fingerprint == protocol().fingerprint
    assert changed(significance={"alpha": 0.01}) == set()
    assert {name.split(",")[-1] for name in changed(runs=3)} == {" run 2"}
    assert all(", 16 bits" in name for name in changed(n_bits=[4, 8, 16]))
    more = [*methods, {"name": "pcah"}]
    assert {name.split(",")[0] for name in changed(method=more)} == {"pcah"}
    other = [*methods[:2], {"name": "itq", "grid": {"n_iter": [1, 30]}}]
    assert {name.split(",")[0] for name in changed(method=other)} == {"itq"}
    assert len(changed(random_state=1)) == len(cells_of(protocol()))
    assert len(changed(truth={"kind": "neighbours", "k": 3})) == len(cells_of(protocol()))


def test_metrics_that_follow_from_the_profile_change_no_cell_with_codes():
    assert {n.split(",")[0] for n in changed(metrics=["ap", "rr"])} == {"float ranking"}
    # A grid is searched by the main metric.
    assert {n.split(",")[0] for n in changed(metrics=["rr", "ap"])} == {"float ranking", "itq"}


def test_only_some_cells():
    cells = cells_of(protocol())
    assert {c.method.label for c in select_cells(cells, ["method=lsh,itq", "bits=8"])} == {
        "lsh",
        "itq",
    }
    assert len(select_cells(cells, ["run=1"])) == 5
    both = select_cells(cells, ["method=lsh", "bits=8", "method=itq"])
    assert both == select_cells(cells, ["method=lsh,itq", "bits=8"])
    for wish, says in [
        ("lsh", "--only takes KEY=VALUE, for example method=itq"),
        ("method=lhs", "no method is called 'lhs'"),
        ("bits=5", "no bits is called '5'"),
        ("bits=None", "no bits is called 'None'"),
    ]:
        with pytest.raises(BitternError, match=says):
            select_cells(cells, [wish])
    with pytest.raises(BitternError, match="no cell matches all of bits=8, method=float ranking"):
        select_cells(cells, ["bits=8", "method=float ranking"])
    one = protocol(method=[{"name": "lsh", "label": "a, b"}, {"name": "itq", "label": "a"}])
    assert {c.method.label for c in select_cells(cells_of(one), ["method=a, b"])} == {"a, b"}


def test_letters_that_cannot_be_written_are_refused():
    with pytest.raises(BitternError, match="a character that cannot be written"):
        protocol(title="\udc80")


def test_seeds_differ_by_run_and_method_and_not_by_length():
    one = protocol()
    cells = {cell.name: cell.random_state(one) for cell in cells_of(one)}
    assert cells["lsh, 4 bits, run 0"] == cells["lsh, 8 bits, run 0"]
    assert cells["lsh, 4 bits, run 0"] != cells["lsh, 4 bits, run 1"]
    assert cells["lsh, 4 bits, run 0"] != cells["itq, 4 bits, run 0"]
    other = replace(one, random_state=1)
    assert cells_of(other)[1].random_state(other) != cells["lsh, 4 bits, run 0"]


def test_fingerprints_are_those_of_earlier_versions():
    # Records in folders of earlier versions are found by these.
    one = protocol()
    assert one.fingerprint == "48f58bfca84f"
    assert [cell.fingerprint for cell in cells_of(one)][:2] == ["9377c5f10f78", "9c4fbe237aaa"]
    tables = {"bits_per_table": [2, 4], "n_tables": [1, 2]}
    (cell, *_) = cells_of(protocol(paradigm="tables", tables=tables, method=[{"name": "lsh"}]))
    assert cell.fingerprint == "235775c15502"
    evidence = Protocol.load(shipped()["evidence-table-1"])
    assert cells_of(evidence)[0].fingerprint == "7ee45d581735"


class Counting(Paradigm):
    """A paradigm with a table of its own, as a new one would be."""

    table = "counting"

    def check(self, protocol):
        """Settings must have ``step``."""
        protocol.settings["step"]

    def lengths(self, protocol, method):
        """One length."""
        return (8,)

    def prepare(self, protocol, dataset, run, folder):
        """Nothing."""

    def measure(self, protocol, cell, data, clock):
        """Nothing."""
        return {}


def test_a_new_paradigm_is_a_class_and_a_line_in_the_table(monkeypatch):
    before = [cell.fingerprint for cell in cells_of(protocol())]
    more = Registry("paradigm", {**PARADIGMS, "counting": Counting()})
    monkeypatch.setattr("bittern.experiments.protocol.PARADIGMS", more)
    one = protocol(paradigm="counting", counting={"step": 2})
    assert one.kind.table == "counting" and one.settings == {"step": 2}
    assert Protocol.of(tomllib.loads(to_toml(one.to_dict()))) == one
    assert {cell.n_bits for cell in cells_of(one)} == {8}
    other = protocol(paradigm="counting", counting={"step": 3})
    assert cells_of(one)[0].fingerprint != cells_of(other)[0].fingerprint
    assert [cell.fingerprint for cell in cells_of(protocol())] == before
    with pytest.raises(BitternError, match=r"\[counting\] is for paradigm = 'counting'"):
        protocol(counting={"step": 2})


def test_every_shipped_protocol_can_be_read_and_says_what_it_is():
    assert len(shipped()) > 10
    for name, path in shipped().items():
        one = Protocol.load(path)
        assert one.title and one.reproduces and one.takes, name
        first_keys = list(tomllib.loads(path.read_text()))[:2]
        assert first_keys == ["title", "reproduces"], name
        assert cells_of(one), name


def test_a_protocol_is_found_by_name_or_by_file(tmp_path):
    assert find_protocol("ties-table-1").name == "ties-table-1.toml"
    assert find_protocol("mine/own.toml").name == "own.toml"
    with pytest.raises(BitternError, match="did you mean 'ties-table-1'"):
        find_protocol("ties-table1")
