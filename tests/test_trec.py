import gzip
import math
import re
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern.errors import FileError, InputError
from bittern.io import trec_lines as trec
from bittern.io.trec import (
    Qrels,
    Run,
    read_qrels,
    read_run,
    trec_order,
)


def slow_rows(text, number):
    """Per query, its (document, number) pairs in file order, read line by line."""
    rows = {}
    for line in text.split(b"\n"):
        if fields := line.split():
            query, document = fields[0].decode(), fields[2].decode()
            rows.setdefault(query, []).append((document, number(fields)))
    return rows


def slow_run(text):
    """Queries ascending; rows by score descending, then by the bytes of the document id."""
    rows = slow_rows(text, lambda fields: float(fields[4]))
    return {q: sorted(rows[q], key=lambda row: (-row[1], row[0].encode())) for q in sorted(rows)}


def slow_qrels(text):
    rows = slow_rows(text, lambda fields: int(fields[3]))
    return {q: sorted(rows[q], key=lambda row: row[0].encode()) for q in sorted(rows)}


def unfolded(table, values):
    """A Run or Qrels as the oracles write it."""
    bounds = zip(table.query_ids, table.offsets[:-1], table.offsets[1:], strict=True)
    names = table.document_ids[table.documents]
    return {
        str(query): [(str(names[i]), values[i].item()) for i in range(start, end)]
        for query, start, end in bounds
    }


@contextmanager
def constants(**values):
    """Other sizes in the module, so that small files meet the limits of large ones."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(trec, name, value)
        yield


@pytest.fixture
def write(tmp_path):
    def write(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


# Ids of lengths around the powers of two, with bytes above 127 and white space that is not ASCII.
ids = st.text(st.sampled_from("aAbz09-_é\u00a0\uffff\U0001f600"), min_size=1, max_size=20)
gap = st.text(st.sampled_from(" \t\v\f\r"), min_size=1, max_size=3)
edge = st.text(st.sampled_from(" \t\r"), max_size=2)
score = st.one_of(
    st.sampled_from(["0", "-0", "1", "+1", "1.", ".5", "1e-5", "-3", "1E3", "1e300", "-2.5e-310"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
gain = st.integers(-(2**63), 2**63 - 1).map(str) | st.sampled_from(["+2", "007", "-0"])


@st.composite
def files(draw, number, after):
    """A file with lines of query, anything, document, then e.g. rank, number, tag."""
    pairs = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=12, unique=True))
    lines = []
    for query, document in pairs:
        fields = [query, draw(ids), document, *(draw(number if f else ids) for f in after)]
        line = draw(edge) + fields[0] + "".join(draw(gap) + field for field in fields[1:])
        lines += [line + draw(edge), *draw(st.lists(edge, max_size=2))]
    text = draw(st.lists(edge, max_size=2)) + lines
    return ("\n".join(text) + draw(st.sampled_from(["", "\n", "\r\n", "\n\n"]))).encode()


block_bytes = st.sampled_from([1, 50, 1 << 22])
touching_files = settings(max_examples=60, deadline=None)  # a disk may be slow


@touching_files
@given(files(score, [False, True, False]), block_bytes)
def test_a_run_equals_the_one_read_line_by_line(tmp_path_factory, text, size):
    path = tmp_path_factory.getbasetemp() / "any.run"
    path.write_bytes(text)
    with constants(_BLOCK_BYTES=size):
        run = read_run(path)
    assert unfolded(run, run.scores) == slow_run(text)
    assert list(unfolded(run, run.scores)) == list(slow_run(text))
    assert run.document_ids.tolist() == sorted(
        {d for rows in slow_run(text).values() for d, _ in rows}
    )


@touching_files
@given(files(gain, [True]), block_bytes)
def test_qrels_equal_those_read_line_by_line(tmp_path_factory, text, size):
    path = tmp_path_factory.getbasetemp() / "any.qrels"
    path.write_bytes(text)
    with constants(_BLOCK_BYTES=size):
        qrels = read_qrels(path)
    assert unfolded(qrels, qrels.gains) == slow_qrels(text)
    assert list(unfolded(qrels, qrels.gains)) == list(slow_qrels(text))


WORKED = b"""\
q2 Q0 d1 1 0.5 tag
q10 Q0 d3 7 2 tag\r

q10\tQ0  d1 1\t1e1 tag
q2 x d3 2 -3 tag
q2 Q0 d10 9 0.5 tag"""


def test_worked_example_of_a_run(write):
    # "q10" < "q2" and "d1" < "d10" < "d3" as bytes; in q2, d1 and d10 tie at 0.5.
    run = read_run(write(WORKED))
    assert run.query_ids.tolist() == ["q10", "q2"]
    assert run.document_ids.tolist() == ["d1", "d10", "d3"]
    assert run.offsets.tolist() == [0, 2, 5]
    assert run.documents.tolist() == [0, 2, 0, 1, 2]
    assert run.scores.tolist() == [10.0, 2.0, 0.5, 0.5, -3.0]


def test_worked_example_of_qrels(write):
    qrels = read_qrels(write(b"7 0 b 2\n7 0 a -1\n51 0 b 0\n"))
    assert qrels.query_ids.tolist() == ["51", "7"]
    assert qrels.document_ids.tolist() == ["a", "b"]
    assert qrels.offsets.tolist() == [0, 1, 3]
    assert qrels.documents.tolist() == [1, 0, 1]
    assert qrels.gains.tolist() == [0, -1, 2]


def test_worked_example_of_the_order_of_trec_eval(write):
    # In single precision d1, d10 and d2 tie at 1, and ids descend: d2, d10, d1; then d0.
    text = b"q 0 d1 1 1 t\nq 0 d10 1 1.000000001 t\nq 0 d2 1 1 t\nq 0 d0 1 0.9 t\n"
    run = read_run(write(text))
    assert run.document_ids[run.documents].tolist() == ["d10", "d1", "d2", "d0"]
    assert trec_order(run).tolist() == [2, 0, 1, 3]


def test_gzip_is_known_by_its_content_whatever_the_name(write):
    plain = read_run(write(WORKED, "plain.gz"))
    zipped = read_run(write(gzip.compress(WORKED[:30]) + gzip.compress(WORKED[30:]), "zipped.txt"))
    assert unfolded(zipped, zipped.scores) == unfolded(plain, plain.scores) == slow_run(WORKED)


def test_a_path_may_be_a_str(write):
    assert len(read_run(str(write(WORKED))).scores) == 5


def test_a_byte_order_mark_is_no_part_of_the_first_query(write):
    run = read_run(write(b"\xef\xbb\xbf" + WORKED))
    assert run.query_ids.tolist() == ["q10", "q2"]
    with constants(_BLOCK_BYTES=1):  # only the file has a mark, not each block
        qrels = read_qrels(write("\ufeffq 0 a 1\n\ufeffq 0 a 1\n".encode()))
    assert qrels.query_ids.tolist() == ["q", "\ufeffq"]


@pytest.mark.parametrize("length", [7, 8, 9, 40, 64, 1000])
def test_ids_that_differ_only_in_their_last_byte_remain_different(write, length):
    names = ["x" * length + end for end in ("", "a", "b")]
    qrels = read_qrels(write("".join(f"q 0 {name} 1\n" for name in names).encode()))
    assert qrels.document_ids.tolist() == names
    assert qrels.documents.tolist() == [0, 1, 2]


def test_rows_of_one_query_may_be_anywhere_in_a_file_of_many_blocks(write):
    rng = np.random.default_rng(3)
    pairs = rng.permutation(3000)
    text = "".join(f"q{p % 30} 0 doc{p // 30} 1 {rng.integers(9)} t\n" for p in pairs).encode()
    with constants(_BLOCK_BYTES=500):
        run = read_run(write(text))
    assert unfolded(run, run.scores) == slow_run(text)
    assert len(run.query_ids) == 30
    assert len(run.document_ids) == 100


def test_one_long_id_does_not_widen_the_others_while_reading(write):
    text = b"".join(b"q 0 d%d 1\n" % i for i in range(5000)) + b"q 0 " + b"x" * 100_000 + b" 1\n"
    path = write(text)
    tracemalloc.start()
    with pytest.raises(FileError, match=r"array of the 5,001 ids .* one id has 100,000 bytes"):
        read_qrels(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # 5001 ids of that width would be 500 MB of bytes and 2 GB of str


def test_the_room_for_ids_grows_with_the_file_and_the_longest_is_named(write):
    # Two ids of at most 60 bytes make 2 * 60 * 4 = 480 bytes; the text has 14 + 55 + 60 = 129.
    path = write(b"q 0 %b 1\nq 0 %b 1\n" % (b"a" * 55, b"b" * 60))
    with constants(_TABLE_BYTES=400, _TABLE_RATIO=4):
        assert len(read_qrels(path).document_ids) == 2
    with constants(_TABLE_BYTES=480, _TABLE_RATIO=1):
        assert len(read_qrels(path).document_ids) == 2
    says = r"must fit 400 bytes, got 480 because one id has 60 bytes; shorten 'b{60}'\."
    with constants(_TABLE_BYTES=400, _TABLE_RATIO=1), pytest.raises(FileError, match=says):
        read_qrels(path)


def test_a_long_id_among_few_is_read(write):
    qrels = read_qrels(write(b"q 0 d 1\nq 0 " + b"x" * 100_000 + b" 2\n"))
    assert [len(name) for name in qrels.document_ids] == [1, 100_000]


RUN_LINE = b"q Q0 d%d 1 0.5 t\n"
BAD_RUNS = {
    "five columns": (b"\n" + RUN_LINE % 1 + b"q Q0 d2 1 0.5\n", r"line 3: .* 6 columns .*got 5\."),
    "seven columns": (b"q Q0 d 1 0.5 my tag\n", r"line 1: .*document rank score tag\), got 7\."),
    "two wrong lines that sum to two right ones": (
        b"a b c d e\nf g h i j k l\n",
        "line 1: .*got 5",
    ),
    "a word for a score": (
        RUN_LINE % 1 + b"q Q0 d2 1 high t\n",
        r"line 2: the score .* got 'high'\.",
    ),
    "NaN": (RUN_LINE % 1 + b"\r\nq Q0 d2 1 nan t", r"line 3: the score must be .*finite.* 'nan'\."),
    "infinity": (b"q Q0 d2 1 -inf t", r"line 1: .* got '-inf'\."),
    "a score too large": (b"q Q0 d2 1 1e999 t", r"line 1: .* got '1e999'\."),
    "digits grouped as in Python": (b"q Q0 d2 1 1_0 t", r"line 1: .* got '1_0'\."),
    "a hexadecimal score": (b"q Q0 d2 1 0x1p3 t", r"line 1: .* got '0x1p3'\."),
    "a score of signs": (b"q Q0 d2 1 -+.e t", r"line 1: .* got '-\+\.e'\."),
    "digits of another script": ("q Q0 d2 1 ٣ t".encode(), r"line 1: .* got '٣'\."),
    "bad scores of two lengths": (
        RUN_LINE % 1 + b"q Q0 d2 1 a_score_that_is_long t\nq Q0 d3 1 bad t\n",
        r"line 2: .* got 'a_score_that_is_long'\.",
    ),
    "bad scores of one length": (
        RUN_LINE % 1 + RUN_LINE % 2 + b"q Q0 d3 1 bad t\nq Q0 d4 1 0 t\nq Q0 d5 1 worse t\n",
        r"line 3: .* got 'bad'\.",
    ),
    "a very long score": (b"q Q0 d2 1 " + b"9" * 500 + b"x t", r"line 1: .* got '9{60}'…\."),
    "a repeated document": (
        RUN_LINE % 1 + b"p" + RUN_LINE % 1 + b"\n" + b"q Q0 d1 2 0.1 t\n" + RUN_LINE % 1,
        r"line 4: a query must not repeat a document, got document 'd1' again for query 'q'\.",
    ),
    "nothing": (b"", r"the file is blank\."),
    "blank lines": (b"\n \r\n\t", r"the file is blank\."),
    "a byte order mark alone": (b"\xef\xbb\xbf", r"the file is blank\."),
    "gzip of nothing": (gzip.compress(b""), r"the file is blank\."),
    "gzip cut short": (gzip.compress(WORKED)[:-9], r"the gzip file is truncated or corrupt"),
    "gzip cut in its head": (b"\x1f\x8b", r"the gzip file is truncated or corrupt"),
    "gzip with a wrong sum": (gzip.compress(WORKED)[:-8] + bytes(8), r"gzip .* corrupt \(CRC"),
    "gzip with wrong content": (gzip.compress(WORKED)[:10] + b"\xff" * 40, r"gzip .* corrupt"),
    "Latin-1": (
        RUN_LINE % 1 + b"q Q0 caf\xe9 1 0.5 t\n",
        r"line 2: .* be UTF-8 .* byte 0xe9; .*iconv",
    ),
    "UTF-16": (WORKED.decode().encode("utf-16"), r"line 1: .* be UTF-8"),
    "NUL": (RUN_LINE % 1 + b"q Q0 d\0 1 0.5 t\n", r"line 2: .* without NUL, got byte 0x00"),
}


@pytest.mark.parametrize("size", [1, 1 << 22])
@pytest.mark.parametrize(("text", "says"), BAD_RUNS.values(), ids=BAD_RUNS)
def test_a_bad_run_is_refused_with_its_name_and_line(write, text, says, size):
    path = write(text, "bad.run")
    with constants(_BLOCK_BYTES=size), pytest.raises(FileError, match=says) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"read_run: {path}")
    assert "\n" not in str(caught.value)


BAD_QRELS = {
    "six columns": (
        RUN_LINE % 1,
        r"line 1: .* 4 columns \(query iteration document gain\), got 6\.",
    ),
    "half a gain": (b"q 0 a 1\nq 0 b 0.5\n", r"line 2: the gain .* whole number .* got '0\.5'\."),
    "a decimal point": (b"q 0 a 1.0", r"line 1: .* written like 2 or -1, got '1\.0'\."),
    "a word": (b"q 0 a yes", r"line 1: .* got 'yes'\."),
    "digits grouped": (b"q 0 a 1_0", r"line 1: .* got '1_0'\."),
    "beyond 64 bits": (b"q 0 a 9223372036854775808", r"line 1: .* fits 64 bits.* got '92233720368"),
    "a repeated document": (
        b"q 0 a 1\nq 0 b 1\nq 0 a 1\n",
        r"line 3: a query must not repeat a document, got document 'a' again for query 'q'\.",
    ),
    "nothing": (b"", r"the file is blank\."),
}


@pytest.mark.parametrize(("text", "says"), BAD_QRELS.values(), ids=BAD_QRELS)
def test_bad_qrels_are_refused_with_their_name_and_line(write, text, says):
    path = write(text, "bad.qrels")
    with pytest.raises(FileError, match=says) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(f"read_qrels: {path}")


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_what_is_not_a_file_is_refused_by_name(tmp_path, read):
    says = re.escape(f"{tmp_path}: is a folder")
    with pytest.raises(FileError, match=says):
        read(tmp_path)
    with pytest.raises(FileError, match="none: no such file"):
        read(tmp_path / "none")


RECORD = {
    "query_ids": np.array(["p", "q"]),
    "document_ids": np.array(["a", "b", "c"]),
    "offsets": np.array([0, 1, 3]),
    "documents": np.array([2, 0, 1]),
}


@pytest.mark.parametrize("make", [Run, Qrels])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"query_ids": np.array(["q", "p"])}, "query_ids must be distinct and ascending"),
        ({"document_ids": np.array(["a", "a", "b"])}, "document_ids must be distinct"),
        (
            {"document_ids": np.array([1, 2, 3])},
            "document_ids must be a 1-D array of str, got int64",
        ),
        ({"offsets": np.array([0, 3])}, r"offsets must be int64 of shape \(3,\), got .*\(2,\)"),
        ({"offsets": np.array([0, 1, 2])}, "offsets must rise from 0 to the number of rows, 3"),
        ({"offsets": np.array([0, 4, 3])}, "offsets must rise"),
        ({"documents": np.array([3, 0, 1])}, "documents must be positions among 3 .* got 0 to 3"),
        ({"documents": np.array([-1, 0, 1])}, "documents must be positions"),
        ({"documents": np.array([2.0, 0, 1])}, "documents must be int64 .* got float64"),
        ({"documents": np.array([2, 1, 0])}, "document ascending; row 2 is not"),
        ({"documents": np.array([2, 1, 1])}, "a query must not repeat a document; row 2 does"),
        ({"values": np.zeros(2)}, r"must be (float64|int64) of shape \(3,\)"),
        (
            {"values": np.array(["1", "2", "3"])},
            r"must be (float64|int64) of shape \(3,\), got <U1",
        ),
    ],
)
def test_a_record_that_breaks_its_rule_is_refused_at_birth(make, change, says):
    dtype = np.float64 if make is Run else np.int64
    good = RECORD | {"values": np.zeros(3, dtype)}
    make(*good.values())
    with pytest.raises(InputError, match=f"{make.__name__}: .*{says}"):
        make(*(good | change).values())


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([1.0, np.nan, 0.0], "scores must be finite, but row 1 is not"),
        ([1.0, 0.0, np.inf], "scores must be finite, but row 2 is not"),
        ([1.0, 0.0, 2.0], "by score descending, then document ascending; row 2 is not"),
    ],
)
def test_scores_of_a_run_are_finite_and_descend(scores, says):
    with pytest.raises(InputError, match=f"Run: .*{says}"):
        Run(**RECORD, scores=np.array(scores))


def test_a_document_repeated_with_another_score_is_refused_at_birth():
    fields = RECORD | {"offsets": np.array([0, 0, 3]), "documents": np.array([1, 0, 1])}
    with pytest.raises(InputError, match="Run: a query must not repeat a document; row 2 does"):
        Run(**fields, scores=np.array([3.0, 2.0, 1.0]))


def ranks_of_trec_eval(scores):
    """Documents as trec_eval ranks them: one query for each, in which it alone is relevant."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judge = pytrec_eval.RelevanceEvaluator({d: {d: 1} for d in scores}, {"recip_rank"})
    values = judge.evaluate(dict.fromkeys(scores, scores))
    return sorted(scores, key=lambda d: -values[d]["recip_rank"])


def written(runs):
    return "".join(
        f"{q} Q0 {d} 0 {s!r} t\n" for q, scores in runs.items() for d, s in scores.items()
    ).encode()


near = st.builds(lambda a, b, c: a + b * 1e-9 + c * 2.0**-24, *[st.integers(-2, 2)] * 3)
extreme = st.sampled_from([0.0, -0.0, 1e300, 1e301, -1e300, 1e-60, 1e-44, 1.5e-45, 16777217.0])
any_score = near | extreme | st.floats(allow_nan=False, allow_infinity=False)


@touching_files
@given(st.dictionaries(ids, any_score, min_size=1, max_size=12))
def test_rows_come_in_the_order_of_trec_eval(tmp_path_factory, scores):
    path = tmp_path_factory.getbasetemp() / "order.run"
    path.write_bytes(written({"q": scores}))
    run = read_run(path)
    ranked = run.document_ids[run.documents[trec_order(run)]].tolist()
    assert ranked == ranks_of_trec_eval(scores)


def textbook(gains, judged):
    """Measures of one ranking's gains, as trec_eval defines them; ``judged`` are all gains."""
    hits = [rank for rank, gain in enumerate(gains, start=1) if gain > 0]
    n_relevant = sum(gain > 0 for gain in judged)

    def dcg(gains):
        return sum(g / math.log2(rank + 1) for rank, g in enumerate(gains, start=1) if g > 0)

    return {
        "map": sum(n / rank for n, rank in enumerate(hits, start=1)) / n_relevant,
        "recip_rank": 1 / hits[0] if hits else 0.0,
        "P_5": sum(rank <= 5 for rank in hits) / 5,
        "ndcg": dcg(gains) / dcg(sorted(judged, reverse=True)),
    }


def tied_runs(rng, n_queries=40, n_documents=60):
    """Runs and judgements with many ties, and with scores 1e-9 apart."""
    names = [f"d{i}" for i in range(n_documents)]
    runs, judgements = {}, {}
    for q in range(n_queries):
        found = rng.choice(names, n_documents // 2, replace=False).tolist()
        scores = rng.integers(0, 4, len(found)) + 1e-9 * rng.integers(0, 5, len(found))
        runs[f"q{q}"] = dict(zip(found, scores.tolist(), strict=True))
        gains = rng.choice([-1, 0, 0, 1, 2], n_documents).tolist()
        judgements[f"q{q}"] = dict(zip(names, [1, *gains[1:]], strict=True))
    return runs, judgements


def measured(run, qrels, order):
    """The textbook's measures of each query of a run whose rows are taken in this order."""
    judged = {q: dict(rows) for q, rows in unfolded(qrels, qrels.gains).items()}
    names = run.document_ids[run.documents[order]].tolist()
    bounds = zip(run.query_ids.tolist(), run.offsets[:-1], run.offsets[1:], strict=True)
    return {
        q: textbook([judged[q].get(d, 0) for d in names[start:end]], judged[q].values())
        for q, start, end in bounds
    }


def test_measures_in_this_order_are_those_of_trec_eval(write):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    runs, judgements = tied_runs(np.random.default_rng(5))
    measures = {"map", "recip_rank", "P_5", "ndcg"}
    theirs = pytrec_eval.RelevanceEvaluator(judgements, measures).evaluate(runs)
    run = read_run(write(written(runs), "run"))
    lines = [f"{q} 0 {d} {g}\n" for q, gains in judgements.items() for d, g in gains.items()]
    qrels = read_qrels(write("".join(lines).encode(), "qrels"))

    ours = measured(run, qrels, trec_order(run))
    assert ours.keys() == theirs.keys()
    for query in theirs:
        assert ours[query] == pytest.approx(theirs[query], abs=1e-9)

    # Not vacuous: in the order of the file's own scores, the values differ.
    as_read = measured(run, qrels, np.arange(len(run.scores)))
    assert sum(as_read[q]["map"] != pytest.approx(theirs[q]["map"]) for q in theirs) > 30
