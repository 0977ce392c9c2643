"""Quantisers keep a few bytes of each vector, and estimate distances from full queries to them.

>>> import numpy as np, bittern as bt
>>> X = np.random.default_rng(0).standard_normal((1000, 32))
>>> quantiser = bt.quantise.QUANTISERS["tcq"](n_bytes=8, centres=False).fit(X)
>>> stored = quantiser.encode(X)
>>> stored
<1,000 items of 8 bytes>
>>> quantiser.distances(X[:3], stored).argmin(axis=1)
array([0, 1, 2])
"""

from __future__ import annotations

from typing import Any

from bittern.quantise.asymmetric import Asymmetric
from bittern.quantise.base import Quantiser, Scorer
from bittern.quantise.product import OPQ, PQ, RQ
from bittern.quantise.rabitq import RaBitQ
from bittern.quantise.scalar import Float16, Int8
from bittern.quantise.sign import Sign
from bittern.quantise.storage import load
from bittern.quantise.stored import QuantisedCodes
from bittern.quantise.tcq import TCQ
from bittern.quantise.water_filled import WaterFilled
from bittern.registry import OpenRegistry, check_class

__all__ = [
    "OPQ",
    "PQ",
    "QUANTISERS",
    "RQ",
    "TCQ",
    "Asymmetric",
    "Float16",
    "Int8",
    "QuantisedCodes",
    "Quantiser",
    "RaBitQ",
    "Scorer",
    "Sign",
    "WaterFilled",
    "load",
]

METHODS: tuple[type[Quantiser], ...] = (
    Float16,
    Int8,
    Sign,
    Asymmetric,
    RaBitQ,
    PQ,
    OPQ,
    RQ,
    WaterFilled,
    TCQ,
)


def _accepted(value: Any, title: str) -> type[Quantiser]:
    return check_class(value, Quantiser, title, ("n_bytes", "metric", "random_state"))


QUANTISERS: OpenRegistry[type[Quantiser]] = OpenRegistry(
    "quantiser",
    {method.name: method for method in METHODS},
    group="bittern.quantisers",
    accept=_accepted,
)


def __dir__() -> list[str]:
    return sorted(__all__)
