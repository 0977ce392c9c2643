"""Every feature by its name, and a list of them that imports none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from bittern.errors import InputError
from bittern.registry import OpenRegistry, check_class, summary_of

if TYPE_CHECKING:
    from bittern.features.base import Feature

# Name: what it takes, and its class, which is imported when it is first used.
BUILT_IN = {
    "hsv-global": ("images", "bittern.features.colour:HSVGlobal"),
    "hsv-focus": ("images", "bittern.features.colour:HSVFocus"),
    "colour-structure": ("images", "bittern.features.colour:ColourStructure"),
    "rgb-moments": ("images", "bittern.features.colour:RGBMoments"),
    "thumbnail": ("images", "bittern.features.texture:Thumbnail"),
    "convolution": ("images", "bittern.features.texture:Convolution"),
    "variance": ("images", "bittern.features.texture:Variance"),
    "smoothness": ("images", "bittern.features.texture:Smoothness"),
    "uniformity": ("images", "bittern.features.texture:Uniformity"),
    "bag-of-words": ("texts", "bittern.features.text:BagOfWords"),
    "gist": ("images", "bittern.features.gist:Gist"),
    "visual-words": ("images", "bittern.features.visual_words:VisualWords"),
    "topics": ("texts", "bittern.features.text:Topics"),
    "deep": ("images", "bittern.features.deep:Deep"),
    "sentence": ("texts", "bittern.features.sentence:Sentence"),
    "phash": ("images", "bittern.features.perceptual:PHash"),
    "dhash": ("images", "bittern.features.perceptual:DHash"),
    "ahash": ("images", "bittern.features.perceptual:AHash"),
    "whash": ("images", "bittern.features.perceptual:WHash"),
    "pdq": ("images", "bittern.features.pdq:PDQ"),
}

#: Names of the nine visual features of 2.1 of [Yavlinsky-2004].
NINE = tuple(BUILT_IN)[:9]

#: Names of the features that are hashes: their signs are the bits of a code.
PERCEPTUAL = tuple(BUILT_IN)[-5:]


def _accept(value: Any, title: str) -> type[Feature]:
    from bittern.features.base import Feature

    kind: type[Feature] = check_class(value, Feature, title)
    if getattr(kind, "takes", None) not in ("images", "texts") or not hasattr(kind, "name"):
        raise InputError(
            f"{title}: {kind.__name__} must state its name, and what it takes: 'images' or 'texts'."
        )
    return kind


#: Every feature by its name; installed packages may add to it.
FEATURES: OpenRegistry[type[Feature]] = OpenRegistry(
    "feature",
    {},
    group="bittern.features",
    accept=_accept,
    later={name: path for name, (_, path) in BUILT_IN.items()},
)


class Listed(NamedTuple):
    """A feature in a list."""

    name: str
    takes: str
    summary: str


def listed() -> Iterator[Listed]:
    """Every feature in the order of the table; those of the package are not imported."""
    for name in FEATURES:
        if name in BUILT_IN:
            takes, path = BUILT_IN[name]
            yield Listed(name, takes, summary_of(path))
        else:
            kind = FEATURES[name]
            yield Listed(name, kind.takes, (kind.__doc__ or "").strip().partition("\n")[0])
