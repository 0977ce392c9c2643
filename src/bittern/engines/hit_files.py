"""Hits of any engine: arrays, and files of arrays, of rows, or of a TREC run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import LARGEST_ID, check_array
from bittern.errors import FileError, InputError
from bittern.index.hits import NONE, Hits
from bittern.io.arrays import ArrayTable, open_table
from bittern.io.files import existing_file
from bittern.io.kinds import ARRAYS, describe
from bittern.io.trec import read_run

# Usual names, in the order in which they are looked for.
IDS = ("ids", "id", "I", "indices", "labels", "keys", "neighbors", "neighbours", "item", "document")
VALUES = ("distances", "distance", "D", "dist", "scores", "score", "similarity", "similarities")
OFFSETS = ("offsets", "lims")
QUERIES = ("query", "query_id", "qid", "q")
RANKS = ("rank", "position")
UNKNOWN = -2  # the id of a name that no item has
Integers = NDArray[np.int64]


def read_hits(
    path: str | os.PathLike[str],
    n_queries: int,
    *,
    query_ids: ArrayLike | None = None,
    names: ArrayLike | None = None,
) -> Hits:
    """Hits from a file; distances are NaN where none are reported.

    It is one of

    - ``.npy``: ids ``(n_queries, k)``, -1 for an empty place;
    - ``.npz`` or another file of arrays: ``ids`` and ``distances`` (or ``I`` and ``D``, ``keys``,
      …) of that shape; or flat, with ``offsets`` (``lims``), as FAISS returns a range search;
    - CSV, Parquet or arrays with a row for each hit: ``query``, ``id``, and ``distance`` and
      ``rank`` if known; without a rank the hits of a query are in the order of their rows;
    - a TREC run, whose scores are the values reported, larger ones first.

    In rows and runs, queries are positions from 0, or one of ``query_ids``.  ``names`` are those of
    the items if ids are text; hits then have the positions of the items.
    """
    source = existing_file(path)
    if describe(source) not in ARRAYS:
        run = read_run(source)
        query = np.repeat(run.query_ids, np.diff(run.offsets))
        columns = query, run.document_ids[run.documents], run.scores
        return _from_rows(source, *columns, None, n_queries, query_ids, names)
    table = open_table(source)
    if (query_name := _name(table, QUERIES, 1)) is not None:
        ids = _column(table, IDS, "id")
        values = _values(table, len(ids))
        ranks = None if _name(table, RANKS, 1) is None else _column(table, RANKS, "rank")
        query = table[query_name].read()
        return _from_rows(source, query, ids, values, ranks, n_queries, query_ids, names)
    return _from_arrays(source, table, n_queries, names)


def to_hits(hits: Any) -> Hits:
    """Hits from what was given: Hits, ids ``(n_queries, k)``, or a pair of ids and distances."""
    if isinstance(hits, Hits):
        return hits
    values: Any = None
    if isinstance(hits, tuple):
        if len(hits) != 2:
            raise InputError(f"audit: hits are ids, or ids and distances, got {len(hits)} arrays.")
        hits, values = hits
    ids = _whole(check_array(hits, "audit: hits"), "audit: hits")
    if ids.ndim != 2:
        raise InputError(f"audit: hits must be ids (n_queries, k), got shape {ids.shape}.")
    if values is None:
        return Hits(ids, np.full(ids.shape, np.nan))
    v = check_array(values, "audit: distances")
    if v.dtype.kind not in "iufb" or v.shape != ids.shape:
        raise InputError(
            "audit: distances must be numbers with one for each id, "
            f"got {v.dtype} of shape {v.shape}."
        )
    return Hits(ids, v.astype(np.float64))


def _from_arrays(source: Path, table: ArrayTable, n_queries: int, names: Any) -> Hits:
    """Lists of one length as rows of a matrix, or of any length with offsets."""
    name = _name(table, IDS, 2) or _name(table, IDS, 1)
    if name is None and len(table) == 1:
        name = next(iter(table))
    if name is None:
        raise FileError(
            f"{source}: has no hits; they are arrays 'ids' and 'distances', or columns 'query', "
            f"'id' and 'distance'; the file has {table.listed()}."
        )
    ids = _positions(source, table[name].read(), names)
    starts = _name(table, OFFSETS, 1)
    n_axes = 2 if starts is None else 1
    if ids.ndim != n_axes:
        raise FileError(
            f"{source}: '{name}' must be ids (n_queries, k), or flat with 'offsets', "
            f"got shape {ids.shape}."
        )
    offsets = None if starts is None else _whole(table[starts].read(), f"{source}: '{starts}'")
    n_lists = len(ids) if offsets is None else len(offsets) - 1
    if n_lists != n_queries:
        raise FileError(f"{source}: has {n_lists:,} lists of hits for {n_queries:,} queries.")
    at = _name(table, VALUES, n_axes)
    values = np.full(ids.shape, np.nan) if at is None else _reals(table, at)
    try:
        return Hits(ids, values, offsets)
    except InputError as error:
        raise FileError(f"{source}: {str(error).removeprefix('Hits: ')}") from None


def _from_rows(
    source: Path,
    query: NDArray[Any],
    ids: NDArray[Any],
    values: NDArray[np.float64],
    ranks: NDArray[Any] | None,
    n_queries: int,
    query_ids: Any,
    names: Any,
) -> Hits:
    """One row for each hit, in the order of ranks, or of the rows."""
    lengths = [len(column) for column in (query, ids, values, ranks) if column is not None]
    if len(set(lengths)) > 1:
        raise FileError(f"{source}: its columns differ in length, got {lengths} rows.")
    q = _query_positions(source, query, n_queries, query_ids)
    items = _positions(source, ids, names)
    order = np.lexsort((q,)) if ranks is None else np.lexsort((ranks, q))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(q, minlength=n_queries))))
    return Hits(items[order], values[order], offsets.astype(np.int64))


def _query_positions(source: Path, query: NDArray[Any], n: int, query_ids: Any) -> Integers:
    """The position of each row's query."""
    if query_ids is None:
        q = _whole(query, f"{source}: queries")
        wrong = (q < 0) | (q >= n)
    else:
        q = _look_up(query, check_array(query_ids, "audit: query_ids"))
        wrong = q < 0
    if wrong.any():
        known = f"there are queries 0 to {n - 1}" if query_ids is None else "no query has that id"
        raise FileError(f"{source}: has hits of query {query[wrong][0]}, but {known}.")
    return q


def _positions(source: Path, ids: NDArray[Any], names: Any) -> Integers:
    """Ids as whole numbers; or, for items with names, their positions."""
    if names is None:
        return _whole(ids, f"{source}: ids")
    return _look_up(ids, check_array(names, "audit: names"))


def _look_up(values: NDArray[Any], known: NDArray[Any]) -> Integers:
    """The place of each value among the known ones, ``UNKNOWN`` for others."""
    if values.dtype.kind != known.dtype.kind:
        values, known = values.astype(str), known.astype(str)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known, values, sorter=order), len(known) - 1)
    found = order[places]
    return np.where(known[found] == values, found, UNKNOWN).astype(np.int64)


def _whole(values: NDArray[Any], name: str) -> Integers:
    """Whole numbers as int64; NaN and the largest uint64 mean no hit."""
    v = values
    if v.dtype.kind in "US":
        try:
            v = v.astype(np.int64)
        except (ValueError, OverflowError):
            raise InputError(
                f"{name} must be whole numbers, got {str(values.ravel()[0])!r}; text needs the "
                "ids of the queries or items beside it."
            ) from None
    if v.dtype.kind == "f":
        v = np.where(np.isnan(v), NONE, v)
        if (v != np.trunc(v)).any() or (np.abs(v) > LARGEST_ID).any():
            raise InputError(f"{name} must be whole numbers, got fractions or infinity.")
    if v.dtype.kind == "u":
        is_none = v == np.iinfo(np.uint64).max
        if (v[~is_none] > LARGEST_ID).any():
            raise InputError(f"{name} must be at most {LARGEST_ID}, got {v[~is_none].max()}.")
        v = np.where(is_none, NONE, v.astype(np.int64))
    if v.dtype.kind not in "if":
        raise InputError(f"{name} must be whole numbers, got {v.dtype}.")
    return v.astype(np.int64)


def _values(table: ArrayTable, n: int) -> NDArray[np.float64]:
    name = _name(table, VALUES, 1)
    if name is None:
        return np.full(n, np.nan)
    return _reals(table, name)


def _reals(table: ArrayTable, name: str) -> NDArray[np.float64]:
    column = table[name].read()
    if column.dtype.kind not in "iuf":
        raise FileError(f"{table.path}: '{name}' must be numbers, got {column.dtype}.")
    return column.astype(np.float64)


def _column(table: ArrayTable, known: tuple[str, ...], what: str) -> NDArray[Any]:
    name = _name(table, known, 1)
    if name is None:
        raise FileError(f"{table.path}: has no column '{what}'; the file has {table.listed()}.")
    return table[name].read()


def _name(table: ArrayTable, known: tuple[str, ...], n_axes: int) -> str | None:
    """The array of a usual name with so many axes; None if there is none."""
    there = (name for name in known if name in table)
    return next((name for name in there if len(table[name].shape) == n_axes), None)
