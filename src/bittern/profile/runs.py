"""Counts from a TREC run and its judgements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.io.trec import Qrels, Run, trec_order
from bittern.profile.tallies import Counts, tally_values

__all__ = ["CountedRun", "count_run"]


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A TREC run counted twice: with its ties, and in trec_eval's order."""

    query_ids: NDArray[np.str_]
    gains: NDArray[np.int64]
    unretrieved: NDArray[np.int64]
    counts: Counts
    distances: NDArray[np.float64]
    trec_counts: Counts
    trec_ranks: NDArray[np.float64]


def count_run(run: Run, qrels: Qrels) -> CountedRun:
    """Count a run against judgements; queries of either file, sorted by id."""
    query_ids = np.union1d(run.query_ids, qrels.query_ids)
    gains = np.unique(np.append(np.maximum(qrels.gains, 0), [0, 1]))
    run_query = np.searchsorted(query_ids, run.query_ids)
    query = np.repeat(run_query, np.diff(run.offsets))
    levels = np.searchsorted(gains, _judged(run, qrels, query, query_ids))
    shape = len(query_ids), len(gains)

    counts, distances = tally_values(query, -run.scores, levels, *shape)
    order = trec_order(run)
    rank = np.arange(len(order)) - np.repeat(run.offsets[:-1], np.diff(run.offsets))
    trec_counts, trec_ranks = tally_values(query, rank.astype(np.float64), levels[order], *shape)

    judged_query = np.repeat(np.searchsorted(query_ids, qrels.query_ids), np.diff(qrels.offsets))
    judged = np.zeros(shape, np.int64)
    np.add.at(judged, (judged_query, np.searchsorted(gains, np.maximum(qrels.gains, 0))), 1)
    unretrieved = judged - counts.sum(axis=1, dtype=np.int64)
    unretrieved[:, 0] = 0
    return CountedRun(query_ids, gains, unretrieved, counts, distances, trec_counts, trec_ranks)


def _judged(
    run: Run, qrels: Qrels, query: NDArray[np.intp], query_ids: NDArray[np.str_]
) -> NDArray[np.int64]:
    """The gain of every row of a run, 0 where it was not judged."""
    documents = np.union1d(run.document_ids, qrels.document_ids)
    n = len(documents)
    of_run = np.searchsorted(documents, run.document_ids)[run.documents]
    of_qrels = np.searchsorted(documents, qrels.document_ids)[qrels.documents]
    qrels_query = np.repeat(np.searchsorted(query_ids, qrels.query_ids), np.diff(qrels.offsets))
    keys = qrels_query.astype(np.int64) * n + of_qrels
    order = np.argsort(keys)
    wanted = query.astype(np.int64) * n + of_run
    place = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found = order[place]
    return np.where(keys[found] == wanted, np.maximum(qrels.gains[found], 0), 0)
