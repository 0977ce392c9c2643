"""Images and texts in one space of codes, so that words find images and images find words.

>>> import numpy as np, bittern as bt
>>> images = np.random.default_rng(0).standard_normal((100, 8))
>>> texts = images[:, :5] ** 2 + images[:, :5]
>>> hasher = bt.hashing.crossmodal.CROSSMODAL["cca-itq"](n_bits=16).fit(images, texts)
>>> hasher.encode(images=images), hasher.encode(texts=texts[:3])
(<100 codes of 16 bits>, <3 codes of 16 bits>)
"""

from __future__ import annotations

from typing import Any

from bittern.hashing.crossmodal.base import CrossModalHasher
from bittern.hashing.crossmodal.cca_itq import CCAITQ
from bittern.hashing.crossmodal.cm_talr import CMTALR
from bittern.hashing.crossmodal.cmfh import CMFH
from bittern.hashing.crossmodal.cmssh import CMSSH
from bittern.hashing.crossmodal.crh import CRH
from bittern.hashing.crossmodal.custom import CustomCrossModalHasher
from bittern.hashing.crossmodal.cvh import CVH
from bittern.hashing.crossmodal.dch import DCH
from bittern.hashing.crossmodal.dcmh import DCMH
from bittern.hashing.crossmodal.dlfh import DLFH
from bittern.hashing.crossmodal.imh import IMH
from bittern.hashing.crossmodal.pdh import PDH
from bittern.hashing.crossmodal.rcmh import RCMH
from bittern.hashing.crossmodal.scm import SCM
from bittern.hashing.crossmodal.scratch import SCRATCH
from bittern.registry import OpenRegistry, check_class

__all__ = [  # noqa: RUF022  (methods in the order of the tables in reports)
    "CVH",
    "IMH",
    "PDH",
    "CCAITQ",
    "CMFH",
    "CMSSH",
    "CRH",
    "RCMH",
    "SCM",
    "DCH",
    "SCRATCH",
    "DLFH",
    "DCMH",
    "CMTALR",
    "CROSSMODAL",
    "CrossModalHasher",
    "CustomCrossModalHasher",
]

_classes = [globals()[name] for name in __all__[: __all__.index("CROSSMODAL")]]


def _accept(value: Any, title: str) -> type[CrossModalHasher]:
    return check_class(value, CrossModalHasher, title, ("n_bits", "random_state"))


#: Every method by its name; installed packages may add to it.
CROSSMODAL: OpenRegistry[type[CrossModalHasher]] = OpenRegistry(
    "cross-modal hasher",
    {kind.name: kind for kind in _classes},
    group="bittern.crossmodal",
    accept=_accept,
)


def __dir__() -> list[str]:
    return sorted(__all__)
