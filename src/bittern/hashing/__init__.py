"""Hash functions turn vectors into :class:`~bittern.Codes`; each file is one method.

>>> import numpy as np, bittern as bt
>>> X = np.random.default_rng(0).standard_normal((100, 8))
>>> bt.hashing.ITQ(n_bits=16).fit(X).encode(X)
<100 codes of 16 bits>
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bittern.extras import import_extra
from bittern.hashing.agh import AGH
from bittern.hashing.base import Hasher
from bittern.hashing.bre import BRE
from bittern.hashing.csq import CSQ
from bittern.hashing.custom import CustomHasher
from bittern.hashing.dbq import DBQ
from bittern.hashing.dpsh import DPSH
from bittern.hashing.dtsh import DTSH
from bittern.hashing.fasthash import FastHash
from bittern.hashing.grh import GRH
from bittern.hashing.isohash import IsoHash
from bittern.hashing.itq import ITQ
from bittern.hashing.itq_cca import ITQCCA
from bittern.hashing.klsh import KLSH
from bittern.hashing.ksh import KSH
from bittern.hashing.lsh import LSH, SKLSH, PStableLSH
from bittern.hashing.machash import MACHash
from bittern.hashing.mhq import MHQ
from bittern.hashing.npq import NPQ
from bittern.hashing.pcah import PCAH
from bittern.hashing.sdh import SDH
from bittern.hashing.sh import SH
from bittern.hashing.sth import STH
from bittern.hashing.storage import load
from bittern.hashing.structhash import StructHash
from bittern.hashing.talr import TALR
from bittern.hashing.targets import Targets
from bittern.hashing.vbq import VBQ
from bittern.registry import OpenRegistry, check_class

__all__ = [  # noqa: RUF022  (methods in the order of the tables in reports)
    "LSH",
    "PStableLSH",
    "SKLSH",
    "KLSH",
    "PCAH",
    "ITQ",
    "ITQCCA",
    "SH",
    "AGH",
    "STH",
    "IsoHash",
    "DBQ",
    "MHQ",
    "NPQ",
    "VBQ",
    "BRE",
    "KSH",
    "GRH",
    "SDH",
    "MACHash",
    "FastHash",
    "StructHash",
    "DPSH",
    "DTSH",
    "CSQ",
    "TALR",
    "HASHERS",
    "CustomHasher",
    "Hasher",
    "Targets",
    "load",
]

_classes = [globals()[name] for name in __all__[: __all__.index("HASHERS")]]


def _accept(value: Any, title: str) -> type[Hasher]:
    return check_class(value, Hasher, title, ("n_bits", "random_state"))


#: Every method by its name; installed packages may add to it.
HASHERS: OpenRegistry[type[Hasher]] = OpenRegistry(
    "hasher",
    {kind.name: kind for kind in _classes},
    group="bittern.hashers",
    accept=_accept,
    reserved=("exact", "codes"),  # methods of protocols
)

_LATER = {"crossmodal": "bittern.hashing.crossmodal"}
_NEED_TORCH = {"backbones": "bittern.networks", "objectives": "bittern.hashing.objectives"}


def __getattr__(name: str) -> Any:
    """The modules that are imported when first used."""
    if name in _LATER:
        return import_module(_LATER[name])
    if name in _NEED_TORCH:
        import_extra("torch", f"bt.hashing.{name}")
        return import_module(_NEED_TORCH[name])
    raise AttributeError(f"module 'bittern.hashing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER, *_NEED_TORCH})
