"""Indexes: from codes to the items near them.

>>> import numpy as np, bittern as bt
>>> codes = bt.Codes.from_bits(np.random.default_rng(0).random((1000, 64)) < 0.5)
>>> bt.MultiIndex(codes).search(codes[:3], k=1).to_lists()
[[(0, 0)], [(1, 0)], [(2, 0)]]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bittern.index.base import Index
from bittern.index.exchange import (
    read_bytes,
    read_faiss,
    read_faiss_index,
    read_octets,
    write_bytes,
    write_faiss,
    write_octets,
)
from bittern.index.flat_index import FlatIndex
from bittern.index.hash_tables import Tables
from bittern.index.hits import Hits
from bittern.index.multi_index import MultiIndex
from bittern.index.near_codes import NearCodes, groups_within
from bittern.index.pairs import Pairs, iter_pairs, pairs_within
from bittern.index.rerank import DISTANCES, rerank, rerank_asymmetric
from bittern.index.table_index import TableIndex
from bittern.registry import Registry

KINDS: tuple[type[Index], ...] = (FlatIndex, MultiIndex, TableIndex)
INDEXES: Registry[type[Index]] = Registry("index", {kind.kind: kind for kind in KINDS})

# These live in ``bittern.tables``, and are available here for convenience.
_EVALUATION = (
    "RankingComparison",
    "TableProfile",
    "TableSurface",
    "compare_with_ranking",
    "table_profile",
    "table_surface",
)

# These load the quantisers, which most searches do not need.
_QUANTISED = {
    "CascadeIndex": "cascade_index",
    "QuantisedIndex": "quantised_index",
    "RescoredIndex": "quantised_index",
    "read_faiss_rabitq": "rabitq_files",
    "write_faiss_rabitq": "rabitq_files",
}

__all__ = [
    "DISTANCES",
    "INDEXES",
    "FlatIndex",
    "Hits",
    "Index",
    "MultiIndex",
    "NearCodes",
    "Pairs",
    "TableIndex",
    "Tables",
    "groups_within",
    "iter_pairs",
    "pairs_within",
    "read_bytes",
    "read_faiss",
    "read_faiss_index",
    "read_octets",
    "rerank",
    "rerank_asymmetric",
    "write_bytes",
    "write_faiss",
    "write_octets",
    *_EVALUATION,
    *_QUANTISED,
]


def __getattr__(name: str) -> Any:
    if name in _EVALUATION:
        return getattr(import_module("bittern.tables"), name)
    if name in _QUANTISED:
        return getattr(import_module(f"bittern.index.{_QUANTISED[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
