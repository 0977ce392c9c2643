"""Changes that copies of images go through: resizing, compression, cropping, borders and so on."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.registry import Registry

Pixels = NDArray[np.uint8]  # (h, w, 3)


@dataclass(frozen=True, slots=True)
class ImageChange:
    """A kind of change and its amount in percent, written ``cropped-10`` or ``mirrored``.

    >>> str(ImageChange.parse("cropped-10"))
    'cropped-10'
    """

    kind: str
    percent: int | None = None

    @classmethod
    def parse(cls, text: str) -> ImageChange:
        """Read what ``str()`` writes, and nothing looser."""
        match = (
            re.fullmatch(r"([a-z]+)(?:-([1-9][0-9]?))?", text) if isinstance(text, str) else None
        )
        if match is None:
            raise InputError(
                f"a change of images is written like 'cropped-10' or 'mirrored', got {text!r}."
            )
        takes_percent = CHANGES[match[1]].takes_percent
        if takes_percent != (match[2] is not None):
            way = f"{match[1]}-10" if takes_percent else match[1]
            raise InputError(f"a change of images is written like {way!r}, got {text!r}.")
        return cls(match[1], int(match[2]) if match[2] else None)

    def __str__(self) -> str:
        return self.kind if self.percent is None else f"{self.kind}-{self.percent}"

    @property
    def words(self) -> str:
        """The change as tables show it: ``cropped 10 %``."""
        return self.kind if self.percent is None else f"{self.kind} {self.percent} %"

    @property
    def meaning(self) -> str:
        """What the change does, in words."""
        return CHANGES[self.kind].meaning

    def apply(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        """The changed image; ``rng`` decides where it is cut or marked."""
        return CHANGES[self.kind].apply(pixels, (self.percent or 0) / 100, rng)


@dataclass(frozen=True, slots=True)
class _Kind:
    apply: Callable[[Pixels, float, np.random.Generator], Pixels]
    meaning: str
    takes_percent: bool = True


def _resized(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    from PIL import Image

    height, width = (max(1, round(share * side)) for side in pixels.shape[:2])
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)


def _compressed(pixels: Pixels, quality: float, rng: np.random.Generator) -> Pixels:
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "jpeg", quality=round(100 * quality))
    return np.asarray(Image.open(content))


def _cropped(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    (top, height), (left, width) = (_part(side, share, rng) for side in pixels.shape[:2])
    return pixels[top : top + height, left : left + width]


def _part(side: int, share: float, rng: np.random.Generator) -> tuple[int, int]:
    """Where a part of a side begins, and its length, if a share is cut away."""
    cut = round(share * side)
    return int(rng.integers(cut + 1)), side - cut


def _bordered(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    wide = round(share * min(pixels.shape[:2]))
    return np.pad(pixels, ((wide, wide), (wide, wide), (0, 0)))


def _watermarked(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    height, width = pixels.shape[:2]
    tall, wide = max(round(share * height), 1), max(round(width / 2), 1)
    top, left = int(rng.integers(height - tall + 1)), int(rng.integers(width - wide + 1))
    letters = np.arange(wide) * 16 // wide % 2 == 0
    ink = np.broadcast_to(np.where(letters, 255.0, 0.0)[None, :, None], (tall, wide, 3))
    marked = pixels.copy()
    place = marked[top : top + tall, left : left + wide]
    place[:] = np.round(0.5 * place + 0.5 * ink)
    return marked


def _brighter(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    return np.minimum(np.round(pixels * (1 + share)), 255).astype(np.uint8)


def _darker(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    return np.round(pixels * (1 - share)).astype(np.uint8)


def _mirrored(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    return np.ascontiguousarray(pixels[:, ::-1])


#: Kinds of changes by name; in most, the percentage is a share of the sides.
CHANGES: Registry[_Kind] = Registry(
    "change of images",
    {
        "resized": _Kind(_resized, "both sides scaled to that share"),
        "jpeg": _Kind(_compressed, "compressed with that JPEG quality"),
        "cropped": _Kind(_cropped, "that share of both sides cut away, at a random place"),
        "bordered": _Kind(_bordered, "a black border of that share of the shorter side"),
        "watermarked": _Kind(
            _watermarked,
            "a half-transparent band of bars, as high as that share of the image and half as wide "
            "as the image, at a random place",
        ),
        "brighter": _Kind(_brighter, "every value raised by that share"),
        "darker": _Kind(_darker, "every value lowered by that share"),
        "mirrored": _Kind(_mirrored, "left and right exchanged", takes_percent=False),
    },
)
