"""Evaluation of hash tables: what L tables with keys of K bits retrieve, and what that costs."""

from __future__ import annotations

from bittern.tables.profile import TABLE_METRICS, TableProfile, table_profile
from bittern.tables.ranking import RankingComparison, compare_with_ranking
from bittern.tables.surface import TableSurface, table_surface

__all__ = [
    "TABLE_METRICS",
    "RankingComparison",
    "TableProfile",
    "TableSurface",
    "compare_with_ranking",
    "table_profile",
    "table_surface",
]


def __dir__() -> list[str]:
    return sorted(__all__)
