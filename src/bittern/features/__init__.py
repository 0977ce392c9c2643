"""Images and texts to vectors: one file for each family of features.

>>> import numpy as np, bittern as bt
>>> grey = np.full((1, 32, 48), 128, np.uint8)
>>> bt.features.FEATURES["rgb-moments"]().fit(grey).transform(grey).shape
(1, 12)
"""

from __future__ import annotations

from bittern.features.base import Feature, ImageFeature
from bittern.features.colour import HSVFocus, HSVGlobal
from bittern.features.colour_structure import ColourStructure
from bittern.features.convolution import Convolution
from bittern.features.deep import Deep
from bittern.features.extract import extract
from bittern.features.extracted import Extracted, load_features
from bittern.features.gist import Gist
from bittern.features.moments import RGBMoments
from bittern.features.thumbnail import Thumbnail
from bittern.features.tiles import Smoothness, Uniformity
from bittern.features.topics import Topics
from bittern.features.variance import Variance
from bittern.features.visual_words import VisualWords
from bittern.features.words import BagOfWords
from bittern.registry import Registry

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
KINDS: tuple[type[Feature], ...] = (*VISUAL, BagOfWords, Gist, VisualWords, Topics, Deep)

#: Names of the nine visual features of 2.1 of [Yavlinsky-2004].
NINE = tuple(kind.name for kind in VISUAL)

#: Every feature by its name.
FEATURES: Registry[type[Feature]] = Registry("feature", {kind.name: kind for kind in KINDS})

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
    "RGBMoments",
    "Smoothness",
    "Thumbnail",
    "Topics",
    "Uniformity",
    "Variance",
    "VisualWords",
    "extract",
    "load_features",
]
