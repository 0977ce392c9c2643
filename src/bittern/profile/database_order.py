"""Rankings with tied items in the order of the database, as a stable sort gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.codes import Codes
from bittern.parallel import run_blocks
from bittern.relevance.base import Relevance

MEMORY = 1 << 27  # bytes that a block of queries may use
TOGETHER = 8  # queries that one thread takes at a time

Counts = NDArray[np.int64]  # (n_queries, n_columns)


@dataclass(frozen=True, slots=True, eq=False)
class SearchedCodes:
    """The codes and the ground truth that a profile was counted from."""

    queries: Codes
    database: Codes
    relevance: Relevance

    def take(self, queries: NDArray[np.intp]) -> SearchedCodes:
        """The same for some queries."""
        kept = self.relevance.take(queries)
        return replace(self, queries=self.queries[queries], relevance=kept)

    def blocks(self, n_relevant: int) -> list[slice]:
        """Blocks of queries with bounded memory, if each has at most ``n_relevant`` items."""
        columns = 2 * n_relevant + 1
        row = 8 * len(self.database) + columns * (4 * self.relevance.n_levels + 16)
        return row_blocks(len(self.queries), row, MEMORY)

    def ranked_counts(self, rows: slice, total: Counts, relevant: Counts) -> NDArray[np.uint32]:
        """Counts of some queries, ``(n_queries, n_columns, n_levels)``, with every tie broken.

        ``total`` and ``relevant`` are their items at each distance.  Each relevant item has a
        column, and so have the other items before it and after the last one.
        """
        ranks, levels = self._relevant_ranks(rows, total, relevant)
        counts = np.zeros((len(ranks), 2 * ranks.shape[1] + 1, self.relevance.n_levels), np.uint32)
        query, place = np.nonzero(levels)
        counts[query, 2 * place + 1, levels[query, place]] = 1
        others = np.diff(ranks, axis=1, prepend=0) - 1
        counts[:, :-1:2, 0] = np.where(levels > 0, others, 0)
        counts[:, -1, 0] = total.sum(axis=1) - ranks.max(axis=1, initial=0)
        return counts

    def _relevant_ranks(
        self, rows: slice, total: Counts, relevant: Counts
    ) -> tuple[Counts, Counts]:
        """Rank and level of each relevant item, from nearest to farthest; 0 if there are fewer."""
        from bittern.kernels.ranks import rank_relevant

        queries = self.queries.words[rows]
        levels = np.ascontiguousarray(self.relevance.block(rows))
        excluded = self.relevance.excluded
        own = np.full(len(queries), -1) if excluded is None else excluded[rows]
        nearer, found = (
            np.ascontiguousarray(np.cumsum(side, axis=1) - side) for side in (total, relevant)
        )
        ranks, hits = np.zeros((2, len(queries), relevant.sum(axis=1).max(initial=0)), np.int64)

        def work(some: slice) -> None:
            state = (nearer[some], found[some], ranks[some], hits[some])
            rank_relevant(queries[some], self.database.words, levels[some], own[some], *state)

        run_blocks(work, row_blocks(len(queries), 1, TOGETHER))
        return ranks, hits
