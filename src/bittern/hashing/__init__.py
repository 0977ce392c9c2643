"""Hash functions: vectors to :class:`~bittern.Codes`, one file a method.

>>> import numpy as np, bittern as bt
>>> X = np.random.default_rng(0).standard_normal((100, 8))
>>> bt.hashing.LSH(n_bits=16).fit(X).encode(X)
<100 codes of 16 bits>
"""

from __future__ import annotations

from bittern.hashing.base import Hasher
from bittern.hashing.lsh import LSH
from bittern.hashing.storage import load
from bittern.hashing.targets import Targets
from bittern.registry import Registry

METHODS: tuple[type[Hasher], ...] = (LSH,)

#: Every method by its name.
HASHERS: Registry[type[Hasher]] = Registry("hasher", {method.name: method for method in METHODS})

__all__ = ["HASHERS", "LSH", "Hasher", "Targets", "load"]
