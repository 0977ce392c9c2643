"""TREC run and qrels files, plain or gzip, read into arrays; and runs written."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.io.files import atomic_write
from bittern.io.trec_lines import QRELS, RUN, Integers, TrecFile, first_repeated, read_columns

WHITE = frozenset(" \t\n\r\v\f")  # separates columns


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The documents that a system retrieved for each query, with scores.

    Row ``i`` is one retrieved document.  The rows of query ``q`` are ``offsets[q]`` to ``offsets[q
    + 1]``, by score descending, then by document id ascending; no document is repeated.  Ids are
    distinct and ascend by code point, which is the byte order of UTF-8 and so the order of C's
    ``strcmp``: the numbers in ``documents`` compare as the ids do.
    """

    query_ids: NDArray[np.str_]  # (n_queries,)
    document_ids: NDArray[np.str_]  # (n_documents,)
    offsets: Integers  # (n_queries + 1,)
    documents: Integers  # (n_rows,), positions in document_ids
    scores: NDArray[np.float64]  # (n_rows,), finite

    def __post_init__(self) -> None:
        _check_table("Run", self, "scores", self.scores, np.float64)
        wrong = np.flatnonzero(~np.isfinite(self.scores))
        if len(wrong):
            raise InputError(f"Run: scores must be finite, but row {wrong[0]} is not.")
        above, below = self.scores[:-1], self.scores[1:]
        ascends = self.documents[:-1] <= self.documents[1:]
        holds = (above > below) | ((above == below) & ascends)
        _check_rows("Run", self, "score descending, then document ascending", holds)


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """Which documents were judged for each query, and how relevant they are.

    Row ``i`` is one judgement.  The rows of query ``q`` are ``offsets[q]`` to ``offsets[q + 1]``,
    by document id ascending; no document is repeated.  Ids are as in :class:`Run`.  Gains are as in
    the file, and may be negative.
    """

    query_ids: NDArray[np.str_]  # (n_queries,)
    document_ids: NDArray[np.str_]  # (n_documents,)
    offsets: Integers  # (n_queries + 1,)
    documents: Integers  # (n_rows,), positions in document_ids
    gains: Integers  # (n_rows,)

    def __post_init__(self) -> None:
        _check_table("Qrels", self, "gains", self.gains, np.int64)
        ascends = self.documents[:-1] <= self.documents[1:]
        _check_rows("Qrels", self, "document ascending", ascends)


def read_run(path: str | PathLike[str]) -> Run:
    """Read a run: lines of ``query Q0 document rank score tag``, in any order.

    Any ASCII white space separates columns; blank lines are skipped.  The text is UTF-8 (a byte
    order mark is skipped), plain or gzip, whatever the file's name.  Only query, document and score
    are used: the ranking is by score, as in trec_eval, which ignores the rank too.  Infinite
    scores, NaN and repeated documents are errors.
    """
    table = read_columns(TrecFile(RUN, Path(path)))
    order = np.lexsort((table.documents, -table.values, table.queries))
    return Run(*table.sorted_by(order))


def read_qrels(path: str | PathLike[str]) -> Qrels:
    """Read judgements: lines of ``query iteration document gain``, in any order.

    The text is as in :func:`read_run`.  The second column is ignored.  Gains must be whole numbers;
    negative ones are kept.
    """
    table = read_columns(TrecFile(QRELS, Path(path)))
    order = np.lexsort((table.documents, table.queries))
    return Qrels(*table.sorted_by(order))


def write_run(run: Run, path: str | PathLike[str], *, tag: str = "bittern") -> None:
    """Write a run as plain text: lines of ``query Q0 document rank score tag``.

    Scores have enough digits to read back as the same numbers.  Tied documents are ranked by id;
    trec_eval ignores the rank.
    """
    for name, ids in (("query_ids", run.query_ids), ("document_ids", run.document_ids)):
        for text in ids.tolist():
            _check_word(text, name)
    _check_word(tag, "tag")
    with atomic_write(path) as file:
        for q, query in enumerate(run.query_ids.tolist()):
            rows = slice(run.offsets[q], run.offsets[q + 1])
            documents = run.document_ids[run.documents[rows]].tolist()
            scored = zip(documents, run.scores[rows].tolist(), strict=True)
            lines = (
                f"{query} Q0 {document} {rank} {score!r} {tag}\n"
                for rank, (document, score) in enumerate(scored, 1)
            )
            file.write("".join(lines).encode())


def trec_order(run: Run) -> Integers:
    """Positions of the rows, query by query, in the order in which trec_eval ranks them.

    trec_eval sorts by score descending, then by document id descending (``strcmp``), and keeps
    scores in *single* precision: 1 + 1e-9 and 1 are tied there, and so are 1e300 and 1e301, both
    infinite.  We found this by experiment with pytrec_eval 0.5; our tests repeat it.
    """
    with np.errstate(over="ignore"):
        single = run.scores.astype(np.float32)
    return np.lexsort((-run.documents, -single, _query_of_row(run.offsets)))


def _check_table(
    owner: str, table: Run | Qrels, name: str, values: NDArray[Any], dtype: type[np.generic]
) -> None:
    """Check that ids, offsets, documents and values are consistent."""
    _check_ids(owner, "query_ids", table.query_ids)
    _check_ids(owner, "document_ids", table.document_ids)
    n_rows = table.documents.size
    _check_array(owner, "offsets", table.offsets, np.int64, len(table.query_ids) + 1)
    _check_array(owner, "documents", table.documents, np.int64, n_rows)
    _check_array(owner, name, values, dtype, n_rows)
    first, last = table.offsets[0], table.offsets[-1]
    if (first, last) != (0, n_rows) or np.any(np.diff(table.offsets) < 0):
        raise InputError(
            f"{owner}: offsets must rise from 0 to the number of rows, {n_rows}, "
            f"got {first} to {last}, or a decrease between."
        )
    n = len(table.document_ids)
    if np.any((table.documents < 0) | (table.documents >= n)):
        raise InputError(
            f"{owner}: documents must be positions among {n} document_ids, "
            f"got {table.documents.min()} to {table.documents.max()}."
        )


def _check_ids(owner: str, name: str, ids: NDArray[np.str_]) -> None:
    if ids.dtype.kind != "U" or ids.ndim != 1:
        raise InputError(
            f"{owner}: {name} must be a 1-D array of str, got {ids.dtype} of shape {ids.shape}."
        )
    if not np.all(ids[:-1] < ids[1:]):
        raise InputError(
            f"{owner}: {name} must be distinct and ascending; np.unique makes them so."
        )


def _check_array(
    owner: str, name: str, array: NDArray[Any], dtype: type[np.generic], length: int
) -> None:
    if array.dtype != dtype or array.shape != (length,):
        raise InputError(
            f"{owner}: {name} must be {dtype.__name__} of shape ({length},), "
            f"got {array.dtype} of shape {array.shape}."
        )


def _check_rows(owner: str, table: Run | Qrels, rule: str, holds: NDArray[np.bool_]) -> None:
    """``holds[i]`` is whether rows i and i + 1 of one query are in order."""
    query = _query_of_row(table.offsets)
    wrong = np.flatnonzero(~holds & (query[:-1] == query[1:]))
    if len(wrong):
        raise InputError(
            f"{owner}: rows of a query must be sorted by {rule}; row {wrong[0] + 1} is not."
        )
    row = first_repeated(query, table.documents)
    if row is not None:
        raise InputError(f"{owner}: a query must not repeat a document; row {row} does.")


def _query_of_row(offsets: Integers) -> Integers:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _check_word(text: str, name: str) -> None:
    if not text or WHITE & set(text):
        raise InputError(f"write_run: {name} must be words without white space, got {text!r}.")
