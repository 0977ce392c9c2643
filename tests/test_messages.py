"""Messages are short and printable, and odd rows, names and numbers get one."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from PIL import Image
from processes import seconds

import bittern as bt
from bittern.data.steps import make_steps
from bittern.errors import LONGEST, BitternError, InputError, KindError, UnknownNameError
from bittern.io.exchange import TARGETS
from bittern.io.exchange import read as read_items
from bittern.io.npz import write_arrays
from bittern.io.toml import parse_change
from bittern.parallel import available_threads

X = np.random.default_rng(0).standard_normal((60, 5))
DIGITS = "9" * 5000  # more than Python makes a number of
CODES = bt.Codes.from_bits(np.random.default_rng(1).random((20, 64)) < 0.5)


# Messages.


@pytest.mark.parametrize("kind", [BitternError, InputError, KindError, UnknownNameError])
def test_a_long_message_loses_its_middle(kind):
    said = str(kind("begin " + "x" * 100_000 + " end."))
    assert len(said) < LONGEST + 50
    assert said.startswith("begin x") and said.endswith("x end.") and "characters…" in said
    assert str(kind("short.")) == "short."


def test_a_name_that_is_too_long_for_the_system_is_not_repeated_in_full(run):
    code, _, said = run("report", "x" * 100_000)
    assert code == 2 and len(said) < LONGEST + 50 and "too long" in said


EVIL = "x\x1b[31m\x1b]0;title\x07\u202e\n2  0  forged"


def test_names_cannot_steer_the_terminal_or_forge_a_line(tmp_path, run, monkeypatch):
    code, _, said = run("report", EVIL)
    assert code == 2 and said.startswith(
        r"bittern: x\x1b[31m\x1b]0;title\x07\u202e\n2  0  forged: "
    )
    names = np.array([EVIL, "café"] * 10)
    write_arrays(tmp_path / "c.npz", {"words": CODES.words, "n_bits": 64, "paths": names})
    place = tmp_path / "c.bittern"
    assert run("index", "create", place, "--from", tmp_path / "c.npz")[0] == 0
    _, table, _ = run("search", place, "--row", 0, "-k", 3, "--columns", "path")
    assert len(table.splitlines()) == 4 and r"x\x1b[31m\x1b]0;title\x07\u202e" in table
    assert not set(table) & set("\x1b\x07\u202e")
    for encoding in ("utf-8", "ascii"):  # data for programs are whole on every terminal
        monkeypatch.setenv("PYTHONIOENCODING", encoding)
        words = (sys.executable, "-m", "bittern", "search", place, "--row", "0", "--format", "json")
        done = subprocess.run(words, capture_output=True, encoding=encoding, check=True)
        assert {hit["path"] for hit in json.loads(done.stdout)} == {EVIL, "café"}


def test_csv_keeps_every_character_of_a_name(tmp_path, run):
    for name in ("a.png", "a\x1b[31m.png"):
        Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(tmp_path / name)
    code, out, _ = run("duplicates", tmp_path, "--format", "csv")
    assert code == 0
    names = {row["name"] for row in csv.DictReader(io.StringIO(out))}
    assert names == {"a.png", "a\x1b[31m.png"}


# Odd rows.

ODD = {
    "text": ("abc", "got a str"),
    "numbers as text": (np.full((2, 5), "1"), "got text"),
    "lists of text": ([["1", "2", "3", "4", "5"]], "got text"),
    "np.matrix": (X.view(np.matrix), "np.asarray"),
    "a dict": ({"a": 1}, "got a dict"),
    "records": (np.zeros(3, [("a", "f4"), ("b", "f4")]), "fields a, b"),
    "NaN": (np.where(np.arange(60)[:, None] == 3, np.nan, X), "row 3 has NaN or infinity"),
    "one axis": (X[0], r"got shape \(5,\)"),
    "complex": (X + 1j, "Complex data not supported"),
    "dates": (np.zeros((2, 5), "M8[s]"), "got dates"),
    "nothing": (None, "got NoneType"),
    "a number": (3, "got int"),
    "objects": (np.array([[1, 2, 3, 4, {}]], object), "got a dict"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_rows_get_one_sentence(name):
    rows, says = ODD[name]
    fitted = bt.hashing.LSH(8).fit(X)
    quantiser = bt.quantise.QUANTISERS["int8"]().fit(X)
    for call in (bt.hashing.ITQ(4).fit, fitted.encode, quantiser.encode, quantiser.fit):
        with pytest.raises(InputError, match=says) as error:
            call(rows)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 250


@pytest.mark.parametrize("name", ["itq", "itq-cca", "isohash", "bre", "ksh", "sdh", "fasthash"])
def test_more_bits_than_rows_can_teach_are_refused_at_once(name):
    hasher = bt.hashing.HASHERS[name](n_bits=4096)
    with pytest.raises(InputError, match="4,096 bits are more than 60 training rows can teach"):
        hasher.fit(X, np.arange(60) % 3)


def test_the_cost_of_very_long_codes_is_said():
    hasher = bt.hashing.ITQ(n_bits=2048)
    with pytest.warns(UserWarning, match="2,048 bits takes some 32,768 times as long as 64"):
        hasher._check_cost(1000)


# Names and numbers.


@pytest.mark.parametrize("name", [["itq"], {"a": 1}, None, 3])
def test_what_is_no_name_is_an_unknown_name(name):
    for table in (bt.hashing.HASHERS, bt.quantise.QUANTISERS, TARGETS):
        with pytest.raises(UnknownNameError, match=r"no (hasher|quantiser|target) is called"):
            table[name]


@pytest.mark.parametrize("line", ["runs = 1" + "0" * 400, "random_state = 9223372036854775808"])
def test_a_huge_number_in_a_protocol_gets_a_sentence(tmp_path, line):
    (tmp_path / "p.toml").write_text(
        f'title = "T"\n{line}\nn_bits = [8]\n[dataset]\nname = "digits"\n'
    )
    with pytest.raises(InputError, match=r"at most 64 bits|not a readable"):
        bt.experiments.Protocol.load(tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"runs = {DIGITS}", "4300 digits"),
        ("runs = " + "[" * 100_000, "nested too deeply"),
        ("a." * 100_000 + "a = 1", "line 2 has more than 2,000 dots"),  # tomllib took 20 GB
    ],
    ids=["digits", "nested", "dotted"],
)
def test_toml_that_its_parser_cannot_take_gets_a_sentence(tmp_path, line, says):
    (tmp_path / "p.toml").write_text(f'title = "T"\n{line}\n')
    with pytest.raises(bt.FileError, match=says):
        bt.experiments.Protocol.load(tmp_path / "p.toml")


@pytest.mark.parametrize(
    "call",
    [
        lambda path: bt.metrics.parse(f"ap@{DIGITS}"),
        lambda path: make_steps([f"pca{DIGITS}"]),
        lambda path: make_steps(["pca²"]),
        lambda path: parse_change("x=" + "[" * 100_000, "x=1"),
    ],
    ids=["metric", "step", "superscript", "--set"],
)
def test_numbers_that_are_none_get_a_sentence(call, tmp_path):
    with pytest.raises(BitternError, match=r"got '|no step is called|not TOML"):
        call(tmp_path)


@pytest.mark.parametrize("said", ["²", DIGITS, "-1", "two"])
def test_threads_that_are_no_number_get_a_sentence(monkeypatch, said):
    monkeypatch.setenv("BITTERN_THREADS", said)
    with pytest.raises(InputError, match="BITTERN_THREADS must be a whole number at least 1"):
        available_threads()


@pytest.mark.parametrize("name", [DIGITS, "9" * 25, "²", "cat"])
def test_an_id_that_is_no_number_is_a_name(tmp_path, name):
    document = {"put": f"id:photos:photo::{name}", "fields": {"code": "0102030405060708"}}
    (tmp_path / "d.jsonl").write_text(json.dumps(document) + "\n")
    found = read_items("vespa", tmp_path / "d.jsonl")
    assert found.ids is None and found.columns["name"].values.tolist() == [name]


def test_a_damaged_matrix_in_memory_is_refused():
    tags = scipy.sparse.csr_array(np.eye(3))
    tags.indices[1] = 1000
    for make in (
        lambda: bt.Relevance.from_tags(tags, tags),
        lambda: bt.Relevance.from_matrix(tags),
    ):
        with pytest.raises(InputError, match="the sparse matrix is damaged"):
            make()


LONG_CALL = """
import hashlib
from bittern.parallel import QUICK, interruptible

print("begun", flush=True)
interruptible(lambda: hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1), QUICK + 1)
"""


def test_ctrl_c_does_not_wait_for_a_long_compiled_call():
    child = subprocess.Popen(
        [sys.executable, "-c", LONG_CALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    child.stdout.readline()
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    try:
        assert b"KeyboardInterrupt" in child.communicate(timeout=seconds(2))[1]
    finally:
        child.kill()


@pytest.mark.parametrize("name", ["itq", "itq-cca", "isohash"])
def test_rotations_of_thousands_of_bits_are_such_calls(name, monkeypatch):
    sides = []

    def noted(work, side):
        sides.append(side)
        return work()

    monkeypatch.setattr("bittern.hashing.itq.interruptible", noted)
    monkeypatch.setattr("bittern.hashing.isohash.interruptible", noted)
    X = np.random.default_rng(0).standard_normal((50, 8))
    bt.hashing.HASHERS[name](8).fit(X, np.arange(50) % 3)
    assert len(sides) > 2 and max(sides) == 8
