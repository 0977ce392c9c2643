"""TableProfile: what a look-up in hash tables retrieves, what it misses, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index.hash_tables import Buckets, Retrieved, Tables, look_up_blocks
from bittern.metrics import MetricName, Scores, evaluate
from bittern.metrics.pooled import micro_fbeta, micro_precision, micro_recall
from bittern.metrics.precision import fbeta, precision, recall
from bittern.parallel import run_blocks
from bittern.profile import TieProfile
from bittern.relevance import Relevance

# Retrieved items are at distance 0, so that radius 0 is the look-up.
TABLE_METRICS = (
    "precision@r0",
    "precision@r0:empty-zero",
    "recall@r0",
    "f1@r0",
    "micro-precision@r0",
    "micro-recall@r0",
    "micro-f1@r0",
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableProfile:
    """What hash tables retrieve for each query: true and false positives, false negatives, cost.

    An item is retrieved if it collides with the query in at least one table.  ``examined`` counts
    it once for each table in which it collides, which is what the look-up has to read.  Bit j of
    ``occupied[q]`` is set if look-up j of query q found a bucket that is not empty.

    Profiles of shards of one database add up to the profile of the whole: counts are summed, and a
    bucket that is in both shards counts once.
    """

    true_positives: NDArray[np.int64]  # (n_queries,)
    false_positives: NDArray[np.int64]  # (n_queries,)
    false_negatives: NDArray[np.int64]  # (n_queries,)
    examined: NDArray[np.int64]  # (n_queries,)
    occupied: NDArray[np.uint8]  # (n_queries, n_look_ups / 8)
    tables: Tables

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.true_positives)

    @property
    def retrieved(self) -> NDArray[np.int64]:
        """Items retrieved for each query, each counted once."""
        return self.true_positives + self.false_positives

    @property
    def n_look_ups(self) -> int:
        """Number of look-ups of every query: one for each table and probe."""
        return self.tables.n_look_ups

    @property
    def buckets(self) -> NDArray[np.int64]:
        """Number of buckets that each query visited: its look-ups that found something."""
        return np.bitwise_count(self.occupied).sum(axis=1, dtype=np.int64)

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which queries retrieved nothing."""
        return self.retrieved == 0

    @property
    def ties(self) -> TieProfile:
        """The look-up as a ranking: the retrieved items, tied at distance 0.

        So every metric within radius 0 applies to the look-up, with the usual rules.
        """
        counts = np.stack([self.false_positives, self.true_positives], axis=1)[:, None]
        missing = np.stack([np.zeros_like(self.false_negatives), self.false_negatives], axis=1)
        return TieProfile(
            counts=counts.astype(np.uint64), gains=np.array([0, 1]), unretrieved=missing
        )

    def precision(self, *, empty_is_zero: bool = False) -> Float64Array:
        """Precision of each query (eq. 3.6 of [Moran-2016]).

        NaN if nothing is relevant.  NaN if nothing is retrieved, or 0 with ``empty_is_zero``.
        """
        return precision(self.ties, None, 0, empty_is_zero)

    def recall(self) -> Float64Array:
        """Recall of each query (eq. 3.7 of [Moran-2016]); NaN if nothing is relevant."""
        return recall(self.ties, None, 0)

    def f_beta(self, beta: float = 1.0) -> Float64Array:
        """F of each query (eq. 3.10 of [Moran-2016]); 0 if empty, NaN if nothing is relevant."""
        return fbeta(self.ties, None, 0, beta)

    def micro_precision(self) -> float:
        """Precision of all queries together (eq. 3.8); NaN if nothing is retrieved."""
        return micro_precision(self.ties, None, 0)()

    def micro_recall(self) -> float:
        """Recall of all queries together (eq. 3.9); NaN if nothing is relevant."""
        return micro_recall(self.ties, None, 0)()

    def micro_f_beta(self, beta: float = 1.0) -> float:
        """F of all queries together (eq. 3.10); NaN if nothing is relevant."""
        return micro_fbeta(self.ties, None, 0, beta)()

    def scores(self, metrics: Sequence[str | MetricName] = TABLE_METRICS) -> Scores:
        """Scores of metrics at radius 0, by default macro and micro precision, recall and F1."""
        return evaluate(self.ties, metrics)

    def __add__(self, other: TableProfile) -> TableProfile:
        """The profile of two shards of one database together."""
        if not isinstance(other, TableProfile):
            return NotImplemented
        if self.n_queries != other.n_queries or self.tables != other.tables:
            raise InputError(
                "TableProfile: only shards of one database, for the same queries and tables, can "
                f"be added, got {self!r} and {other!r}."
            )
        return TableProfile(
            true_positives=self.true_positives + other.true_positives,
            false_positives=self.false_positives + other.false_positives,
            false_negatives=self.false_negatives + other.false_negatives,
            examined=self.examined + other.examined,
            occupied=self.occupied | other.occupied,
            tables=self.tables,
        )

    def __repr__(self) -> str:
        return (
            f"<TableProfile: {self.n_queries:,} queries, {self.is_empty.sum():,} of them empty, "
            f"in {self.tables!r}>"
        )


def table_profile(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    *,
    n_tables: int,
    bits_per_table: int,
    segments: str = "consecutive",
    probe: int = 0,
    random_state: int = 0,
    n_threads: int | None = None,
) -> TableProfile:
    """Look up every query in hash tables of the database, and count what they retrieve.

    ``n_tables`` tables (L) have keys of ``bits_per_table`` bits (K): consecutive segments of the
    codes, or random bits with ``segments="random"``.  A query also looks into the buckets of keys
    that differ from its own in up to ``probe`` bits.  A gain above 0 is relevant.

    Reference: section 3.4.2 of [Moran-2016].
    """
    check_sides("table_profile", queries, database, relevance)
    tables = Tables.choose(
        "table_profile", queries.n_bits, n_tables, bits_per_table, segments, probe, random_state
    )
    buckets = Buckets.build(database.words, tables, n_threads)
    keys = tables.all_keys(queries.words)
    sizes = buckets.sizes(keys, n_threads)
    hits, retrieved, examined = np.zeros((3, len(queries)), np.int64)
    occupied = np.zeros((len(queries), -(-tables.n_look_ups // 8)), np.uint8)

    def look_up(rows: slice) -> None:
        part = relevance.take(rows)
        found = buckets.look_up(np.ascontiguousarray(keys[:, rows]), sizes[rows], part.excluded)
        hits[rows] = _relevant(part, found)
        retrieved[rows] = np.diff(found.offsets)
        examined[rows], occupied[rows] = found.examined, found.occupied

    run_blocks(look_up, look_up_blocks(sizes), n_threads)
    return TableProfile(
        true_positives=hits,
        false_positives=retrieved - hits,
        false_negatives=relevance.n_relevant - hits,
        examined=examined,
        occupied=occupied,
        tables=tables,
    )


def check_sides(owner: str, queries: Codes, database: Codes, relevance: Relevance) -> None:
    """Fail if the codes have different lengths, or the ground truth is for other codes."""
    check_type(queries, Codes, f"{owner}: queries")
    check_type(database, Codes, f"{owner}: database")
    check_type(relevance, Relevance, f"{owner}: relevance")
    if queries.n_bits != database.n_bits:
        raise InputError(
            f"{owner}: queries and database must have codes of the same length, "
            f"got {queries.n_bits} and {database.n_bits} bits."
        )
    sides = len(queries), len(database)
    if (relevance.n_queries, relevance.n_database) != sides:
        raise InputError(
            f"{owner}: the ground truth is for {relevance.n_queries} queries and "
            f"{relevance.n_database} items, got {sides[0]} and {sides[1]}."
        )
    if 0 in sides:
        raise InputError(
            f"{owner}: needs at least one query and one item, got {sides[0]} and {sides[1]}."
        )


def _relevant(relevance: Relevance, found: Retrieved) -> NDArray[np.int64]:
    """Number of relevant items that each query found."""
    n = relevance.n_queries
    query = np.repeat(np.arange(n), np.diff(found.offsets))
    levels = relevance.levels_of(query, found.rows.astype(np.intp))
    return np.bincount(query[levels > 0], minlength=n)
