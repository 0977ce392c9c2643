"""A user's judgements of queries and items, as a matrix of gains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bittern.errors import FileError
from bittern.io.trec import Qrels

if TYPE_CHECKING:
    import scipy.sparse


def gains_of(
    qrels: Qrels, query_ids: Iterable[object], item_ids: Iterable[object], name: str
) -> scipy.sparse.csr_array:
    """Gains ``(n_queries, n_items)`` of judgements; queries without judgements have none.

    Ids are compared as text.  Judgements of gain 0 or below count as not relevant, and those of
    other queries are ignored; an item that is relevant but unknown is an error, after ``name``.
    """
    import scipy.sparse as sp

    queries = {str(one): i for i, one in enumerate(query_ids)}
    items = {str(one): i for i, one in enumerate(item_ids)}
    rows = np.repeat(np.arange(len(qrels.query_ids)), np.diff(qrels.offsets))
    places = np.array([queries.get(one, -1) for one in qrels.query_ids.tolist()], np.int64)
    columns = np.array([items.get(one, -1) for one in qrels.document_ids.tolist()], np.int64)
    row, column = places[rows], columns[qrels.documents]
    used = (qrels.gains > 0) & (row >= 0)
    if not used.any():
        raise FileError(f"{name}: nothing is relevant to any of the {len(queries)} queries.")
    unknown = used & (column < 0)
    if unknown.any():
        missing = str(qrels.document_ids[qrels.documents[unknown.argmax()]])
        raise FileError(f"{name}: no vector has the id {missing!r} of a relevant item.")
    shape = len(queries), len(items)
    return sp.csr_array((qrels.gains[used], (row[used], column[used])), shape=shape)
