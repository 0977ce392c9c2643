"""Hash functions: vectors to :class:`~bittern.Codes`, one file a method.

>>> import numpy as np, bittern as bt
>>> X = np.random.default_rng(0).standard_normal((100, 8))
>>> bt.hashing.ITQ(n_bits=16).fit(X).encode(X)
<100 codes of 16 bits>
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bittern.hashing.agh import AGH
from bittern.hashing.base import Hasher
from bittern.hashing.bre import BRE
from bittern.hashing.dbq import DBQ
from bittern.hashing.dpsh import DPSH
from bittern.hashing.dtsh import DTSH
from bittern.hashing.fasthash import FastHash
from bittern.hashing.gradient import require_torch
from bittern.hashing.isohash import IsoHash
from bittern.hashing.itq import ITQ
from bittern.hashing.itq_cca import ITQCCA
from bittern.hashing.klsh import KLSH
from bittern.hashing.ksh import KSH
from bittern.hashing.lsh import LSH, SKLSH, PStableLSH
from bittern.hashing.machash import MACHash
from bittern.hashing.pcah import PCAH
from bittern.hashing.sdh import SDH
from bittern.hashing.sh import SH
from bittern.hashing.sth import STH
from bittern.hashing.storage import load
from bittern.hashing.structhash import StructHash
from bittern.hashing.talr import TALR
from bittern.hashing.targets import Targets
from bittern.registry import Registry

METHODS: tuple[type[Hasher], ...] = (
    LSH,
    PStableLSH,
    SKLSH,
    KLSH,
    PCAH,
    ITQ,
    ITQCCA,
    SH,
    AGH,
    STH,
    IsoHash,
    DBQ,
    BRE,
    KSH,
    SDH,
    MACHash,
    FastHash,
    StructHash,
    DPSH,
    DTSH,
    TALR,
)

#: Every method by its name.
HASHERS: Registry[type[Hasher]] = Registry("hasher", {method.name: method for method in METHODS})

__all__ = [
    "AGH",
    "BRE",
    "DBQ",
    "DPSH",
    "DTSH",
    "HASHERS",
    "ITQ",
    "ITQCCA",
    "KLSH",
    "KSH",
    "LSH",
    "PCAH",
    "SDH",
    "SH",
    "SKLSH",
    "STH",
    "TALR",
    "FastHash",
    "Hasher",
    "IsoHash",
    "MACHash",
    "PStableLSH",
    "StructHash",
    "Targets",
    "load",
]


def __getattr__(name: str) -> Any:
    """The parts that need PyTorch, imported when they are first asked for."""
    if name in ("backbones", "objectives"):
        require_torch(f"bt.hashing.{name}")
        return import_module(f"bittern.hashing.{name}")
    raise AttributeError(f"module 'bittern.hashing' has no attribute {name!r}")
