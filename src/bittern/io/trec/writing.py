"""TREC runs written whole or not at all."""

from __future__ import annotations

from os import PathLike

from bittern.errors import InputError
from bittern.io.files import atomic_write
from bittern.io.trec.records import Run

__all__ = ["write_run"]

WHITE = frozenset(" \t\n\r\v\f")  # what a reader splits at


def write_run(run: Run, path: str | PathLike[str], *, tag: str = "bittern") -> None:
    """Write a run as lines of ``query Q0 document rank score tag``, as plain text.

    Scores have as many digits as it takes to read the same numbers again.  Of tied documents the
    rank, which trec_eval ignores, is by id.
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


def _check_word(text: str, name: str) -> None:
    if not text or WHITE & set(text):
        raise InputError(f"write_run: {name} must be words without white space, got {text!r}.")
