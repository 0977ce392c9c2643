"""TREC run and qrels files, plain or gzip, read into arrays; and runs written."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from bittern.io.trec.records import Qrels, Run, trec_order
from bittern.io.trec.text import (
    QRELS,
    RUN,
    File,
    read_table,
)
from bittern.io.trec.writing import write_run

__all__ = ["Qrels", "Run", "read_qrels", "read_run", "trec_order", "write_run"]


def read_run(path: str | PathLike[str]) -> Run:
    """Read a run: lines of ``query Q0 document rank score tag``, in any order.

    Columns are separated by any ASCII white space; blank lines are skipped.  The text is UTF-8
    (a byte order mark is skipped), or gzip of it, which is known by its content and not by its
    name.  Only query, document and score are used: the ranking is by score, as in trec_eval,
    which ignores the rank too.  Scores that are not finite and repeated documents are refused.
    """
    table = read_table(File(RUN, Path(path)))
    order = np.lexsort((table.documents, -table.values, table.queries))
    return Run(*table.sorted_by(order))


def read_qrels(path: str | PathLike[str]) -> Qrels:
    """Read judgements: lines of ``query iteration document gain``, in any order.

    The text is as in :func:`read_run`.  The second column is ignored.  Gains must be whole
    numbers; negative ones are kept as they are.
    """
    table = read_table(File(QRELS, Path(path)))
    order = np.lexsort((table.documents, table.queries))
    return Qrels(*table.sorted_by(order))
