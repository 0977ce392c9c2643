import os
import pickle
import struct
import time

import numpy as np
import pytest
import python2
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern.errors import FileError
from bittern.io.pickles import MOST_BYTES, read_pickle

PIXELS = [bytes(range(256)) * 12, bytes(3072)]
BATCH = python2.batch(PIXELS, [6, 9], [b"frog_1.png", b"truck_2.png"])


def test_a_batch_of_python_2_is_read():
    batch = read_pickle(BATCH, "data_batch_1")
    assert batch["batch_label"] == "training batch 1 of 5"
    assert batch["labels"] == [6, 9]
    assert batch["filenames"] == ["frog_1.png", "truck_2.png"]
    assert batch["data"].dtype == np.uint8
    np.testing.assert_array_equal(batch["data"][0], np.arange(3072) % 256)
    assert not batch["data"][1].any()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_what_python_3_pickles_is_read_as_python_reads_it(protocol):
    content = {
        b"labels": [1, 2, 255, 256, 70000, -1],
        b"data": np.arange(12, dtype=np.uint8).reshape(3, 4),
        b"wide": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "name": "été",
        b"bytes": b"\x00\xff",
        b"flags": (True, False, None),
    }
    if protocol == 0:  # it writes the array's bytes as text through other calls
        del content[b"bytes"]
    pickled = pickle.dumps(content, protocol=protocol)
    ours, theirs = read_pickle(pickled, "p"), pickle.loads(pickled)
    assert set(ours) == {k.decode() if isinstance(k, bytes) else k for k in theirs}
    for key, value in theirs.items():
        mine = ours[key.decode() if isinstance(key, bytes) else key]
        if isinstance(value, np.ndarray):
            assert mine.dtype == value.dtype
        np.testing.assert_array_equal(mine, value)


def test_both_names_of_numpys_core_are_known():
    for module in (b"numpy.core.multiarray", b"numpy._core.multiarray"):
        pickled = python2.a_dict({b"a": python2.array(b"\x01\x02", (2,), module=module)})
        np.testing.assert_array_equal(read_pickle(pickled, "p")["a"], [1, 2])


def reduce_of(function, *arguments):
    class Malicious:
        def __reduce__(self):
            return function, arguments

    return Malicious()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("function", "names"),
    [
        (os.system, "system"),
        (eval, "eval"),
        (exec, "exec"),
        (getattr, "getattr"),
        (__import__, "__import__"),
        (open, "open"),
        (np.fromfile, "fromfile"),
        (bytearray, "bytearray"),
    ],
)
def test_code_is_never_run(tmp_path, protocol, function, names):
    proof = tmp_path / "ran"
    argument = {
        "system": f"touch {proof}",
        "open": str(proof),
    }.get(names, f"__import__('pathlib').Path({str(proof)!r}).touch()")
    if names == "open":
        malicious = reduce_of(function, argument, "w")
    else:
        malicious = reduce_of(function, argument)
    for content in (malicious, {b"data": malicious}, {b"labels": [malicious]}):
        with pytest.raises(FileError, match=r"^evil: .*must not run code"):
            read_pickle(pickle.dumps(content, protocol=protocol), "evil")
    assert not proof.exists()


def test_the_attack_is_real(tmp_path):
    # Not vacuous: Python's own unpickler does run it.
    proof = tmp_path / "ran"
    pickle.loads(pickle.dumps(reduce_of(os.system, f"touch {proof}"), protocol=2))
    assert proof.exists()


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"


@pytest.mark.parametrize(
    ("pickled", "says"),
    [
        (b"", "not a readable pickle"),
        (b"\x80\x02", "not a readable pickle"),
        (b"\x80\x02}", "not a readable pickle"),
        (b"\x80\x02].", "must hold a dict, got list"),
        (b"\x80\x02N.", "must hold a dict, got NoneType"),
        (b"\x80\x02cos\nsystem\n.", r"asks for 'os\.system'; a data file must not run code"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", r"asks for 'os\.system'"),
        (b"\x80\x02\x82\x01.", "asks for EXT1, which no data file needs"),
        (b"P1\n.", "asks for PERSID"),
        (b"(ios\nsystem\n.", "asks for INST"),
        (b"(K\x01o.", "asks for OBJ"),
        (b"\x80\x02K\x01)R.", "not callable"),
        (b"\x80\x02cnumpy\nndarray\n(K\x05t\x85R.", "not callable"),
        (b"\x80\x02cnumpy\ndtype\nU\x01OK\x00K\x01\x87R.", "not one of plain numbers"),
        (b"\x80\x02cnumpy\ndtype\nU\x0c(1000000,)u1K\x00K\x01\x87R.", "not one of plain numbers"),
        (b"\x80\x02}U\x01aK\x01K\x02s.", "does not support item assignment"),
        (b"\x80\x02}K\x01K\x02s.", "keys are text"),
        (b"\x80\x02}(K\x01K\x02u.", "keys are text"),
        (b"(K\x01K\x02d.", "keys are text"),
        (b"c_codecs\nencode\n}U\x01aK\x01sb.", "only arrays and dtypes have a state"),
        (b"\x80\x02h\x05.", "not a readable pickle"),
        (b"\x80\x02R.", "pop from empty list"),
        (b"\x80\x02}U\x01a" + RECONSTRUCT + b"K\x00\x85U\x01b\x87Rs.", "array .* has no content"),
    ],
)
def test_what_is_no_data_is_refused_by_name(pickled, says):
    with pytest.raises(FileError, match=rf"^bad: .*{says}"):
        read_pickle(pickled, "bad")


def test_an_array_has_the_bytes_that_its_shape_says():
    huge = python2.a_dict({b"a": python2.array(b"\x01", (2**31 - 1, 2**31 - 1))})
    with pytest.raises(FileError, match="cannot have 1 bytes"):
        read_pickle(huge, "p")
    negative = python2.a_dict({b"a": python2.array(b"", (-1, 0))})
    with pytest.raises(FileError, match="shape or content"):
        read_pickle(negative, "p")


BOMBS = {
    "length beyond the file": b"\x80\x03B\xff\xff\xff\xff.",
    "memo at a huge place": b"\x80\x02}r\xff\xff\xff\xff.",
    "a long number": b"L" + b"9" * 100_000 + b"L\n.",
    "a frame beyond the file": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.",
    "text of 8 bytes of length": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"a.",
    "more marks than items": b"(" * 100_000 + b"t" * 99_000,
    "nested tuples": b"\x80\x02N" + b"\x85" * 200_000 + b".",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_bombs_do_not_go_off(bomb):
    start = time.process_time()
    try:
        assert read_pickle(bomb, "p") == {}
    except FileError as error:
        assert str(error).startswith("p: ")
    assert time.process_time() - start < 5


def test_shared_tuples_are_no_keys():
    # Hashing (t, t) of (t, t) of … would take 2**60 steps.
    pickled = b"\x80\x02}N" + b"q\x00h\x00\x86" * 60 + b"K\x01s."
    with pytest.raises(FileError, match="keys are text"):
        read_pickle(pickled, "p")


def test_deep_tuples_are_no_keys():
    # Hashing them would overflow the stack of the process.
    with pytest.raises(FileError, match="keys are text"):
        read_pickle(b"\x80\x02}N" + b"\x85" * 500_000 + b"K\x01s.", "p")


def test_too_many_bytes_and_too_many_steps_are_refused(monkeypatch):
    with pytest.raises(FileError, match="at most"):
        read_pickle(bytes(MOST_BYTES + 1), "p")
    monkeypatch.setattr("bittern.io.pickles.MOST_STEPS", 10)
    with pytest.raises(FileError, match="more than 10 instructions"):
        read_pickle(BATCH, "p")


def test_every_truncation_is_refused():
    small = python2.meta([b"cat", b"dog"])
    for end in range(len(small)):
        with pytest.raises(FileError, match=r"^p: "):
            read_pickle(small[:end], "p")
    assert read_pickle(small, "p")["label_names"] == ["cat", "dog"]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_end_in_our_error_or_in_a_dict(data):
    content = bytearray(python2.batch([bytes(3072)], [3], [b"a.png"]))
    places = st.integers(0, len(content) - 1).map(lambda p: p if p % 2 else p % 200)
    for place in data.draw(st.lists(places, min_size=1, max_size=5)):
        content[place] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(read_pickle(bytes(content), "p"), dict)
    except FileError as error:
        assert str(error).startswith("p: ")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_end_in_our_error_or_in_a_dict(content):
    try:
        assert isinstance(read_pickle(b"\x80\x02" + content + b".", "p"), dict)
    except FileError as error:
        assert str(error).startswith("p: ")
