"""Features turn images and texts into vectors; each file is one family.

>>> import numpy as np, bittern as bt
>>> grey = np.full((1, 32, 48), 128, np.uint8)
>>> bt.features.FEATURES["rgb-moments"]().fit(grey).transform(grey).shape
(1, 12)
"""

from __future__ import annotations

from typing import Any

from bittern.errors import InputError
from bittern.features.base import Feature, ImageFeature, iter_images
from bittern.features.cifar10 import prepare_cifar10
from bittern.features.colour import ColourStructure, HSVFocus, HSVGlobal, RGBMoments
from bittern.features.deep import Deep
from bittern.features.extract import extract
from bittern.features.extracted import Extracted, load_features
from bittern.features.gist import Gist
from bittern.features.sentence import Sentence
from bittern.features.storage import load
from bittern.features.text import BagOfWords, Topics
from bittern.features.texture import Convolution, Smoothness, Thumbnail, Uniformity, Variance
from bittern.features.visual_words import VisualWords
from bittern.registry import OpenRegistry, check_class

VISUAL: tuple[type[Feature], ...] = (
    HSVGlobal,
    HSVFocus,
    ColourStructure,
    RGBMoments,
    Thumbnail,
    Convolution,
    Variance,
    Smoothness,
    Uniformity,
)
KINDS: tuple[type[Feature], ...] = (
    *VISUAL,
    BagOfWords,
    Gist,
    VisualWords,
    Topics,
    Deep,
    Sentence,
)

#: Names of the nine visual features of 2.1 of [Yavlinsky-2004].
NINE = tuple(kind.name for kind in VISUAL)


def _accept(value: Any, title: str) -> type[Feature]:
    kind: type[Feature] = check_class(value, Feature, title)
    if getattr(kind, "takes", None) not in ("images", "texts") or not hasattr(kind, "name"):
        raise InputError(
            f"{title}: {kind.__name__} must state its name, and what it takes: 'images' or 'texts'."
        )
    return kind


#: Every feature by its name; installed packages may add to it.
FEATURES: OpenRegistry[type[Feature]] = OpenRegistry(
    "feature",
    {kind.name: kind for kind in KINDS},
    group="bittern.features",
    accept=_accept,
)

PictureFeature = ImageFeature  # its old name

__all__ = [
    "FEATURES",
    "NINE",
    "BagOfWords",
    "ColourStructure",
    "Convolution",
    "Deep",
    "Extracted",
    "Feature",
    "Gist",
    "HSVFocus",
    "HSVGlobal",
    "ImageFeature",
    "PictureFeature",
    "RGBMoments",
    "Sentence",
    "Smoothness",
    "Thumbnail",
    "Topics",
    "Uniformity",
    "Variance",
    "VisualWords",
    "extract",
    "iter_images",
    "load",
    "load_features",
    "prepare_cifar10",
]


def __dir__() -> list[str]:
    return sorted(__all__)
