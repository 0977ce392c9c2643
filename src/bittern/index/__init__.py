"""Indexes: from codes to what is near them; and what hash tables would have found.

>>> import numpy as np, bittern as bt
>>> codes = bt.Codes.from_bits(np.random.default_rng(0).random((1000, 64)) < 0.5)
>>> bt.MultiIndex(codes).search(codes[:3], k=1).to_lists()
[[(0, 0)], [(1, 0)], [(2, 0)]]
"""

from __future__ import annotations

from bittern.index.base import Index
from bittern.index.exchange import read_faiss, read_octets, write_faiss, write_octets
from bittern.index.flat import FlatIndex
from bittern.index.hits import Hits
from bittern.index.multi import MultiIndex
from bittern.index.rerank import DISTANCES, rerank, rerank_asymmetric
from bittern.index.table import TableIndex
from bittern.index.tables import Tables
from bittern.registry import Registry
from bittern.tables.profile import TableProfile, table_profile
from bittern.tables.ranking import RankingComparison, compare_with_ranking
from bittern.tables.surface import TableSurface, table_surface

KINDS: tuple[type[Index], ...] = (FlatIndex, MultiIndex, TableIndex)
INDEXES: Registry[type[Index]] = Registry("index", {kind.kind: kind for kind in KINDS})

__all__ = [
    "DISTANCES",
    "INDEXES",
    "FlatIndex",
    "Hits",
    "Index",
    "MultiIndex",
    "RankingComparison",
    "TableIndex",
    "TableProfile",
    "TableSurface",
    "Tables",
    "compare_with_ranking",
    "read_faiss",
    "read_octets",
    "rerank",
    "rerank_asymmetric",
    "table_profile",
    "table_surface",
    "write_faiss",
    "write_octets",
]
