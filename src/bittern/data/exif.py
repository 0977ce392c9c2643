"""What an image file says about itself: size, and what the camera wrote into its EXIF block."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bittern.data.images import exif_of, open_image

# EXIF 2.32, sections 4.6.4 to 4.6.6
MAKE, MODEL, ORIENTATION, CHANGED = 0x010F, 0x0110, 0x0112, 0x0132
CAMERA, TAKEN, DIGITISED = 0x8769, 0x9003, 0x9004
GPS, LATITUDE, LONGITUDE = 0x8825, 2, 4  # the reference, N, S, E or W, is the tag before
SIDEWAYS = (5, 6, 7, 8)  # orientations that swap width and height
KEYS = (
    "width",
    "height",
    "taken",
    "camera_make",
    "camera_model",
    "orientation",
    "latitude",
    "longitude",
)


def read_facts(path: Path) -> dict[str, Any]:
    """What is known of an image, under some of :data:`KEYS`; nothing if it cannot be read.

    ``width`` and ``height`` are those of the image turned upright; ``taken`` is
    ``YYYY-MM-DD HH:MM:SS`` in the camera's time; ``latitude`` and ``longitude`` are degrees, north
    and east positive.  A value that is damaged or impossible is left out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about what is left out here
        return _read_facts(path)


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        with open_image(path) as image:
            size, exif, form = image.size, exif_of(image), image.format
    except Exception:  # Pillow raises a dozen kinds on damaged files
        return {}
    orientation = _whole(exif.get(ORIENTATION), 1, 8)
    # Pillow itself gives the size of a TIFF turned upright.
    width, height = size[::-1] if orientation in SIDEWAYS and form != "TIFF" else size
    camera, gps = _block(exif, CAMERA), _block(exif, GPS)
    dates = (camera.get(TAKEN), camera.get(DIGITISED), exif.get(CHANGED))
    facts = {
        "width": width,
        "height": height,
        "taken": next(filter(None, map(_date, dates)), None),
        "camera_make": _text(exif.get(MAKE)),
        "camera_model": _text(exif.get(MODEL)),
        "orientation": orientation,
        "latitude": _degrees(gps, LATITUDE, "NS", 90),
        "longitude": _degrees(gps, LONGITUDE, "EW", 180),
    }
    known = {key: value for key, value in facts.items() if value is not None}
    if not {"latitude", "longitude"} <= known.keys():  # one is no place
        known = {k: v for k, v in known.items() if k not in ("latitude", "longitude")}
    return known


def _block(exif: Any, tag: int) -> Mapping[int, Any]:
    """A block of further tags; empty if it is missing or damaged."""
    try:
        found: Mapping[int, Any] = exif.get_ifd(tag)
    except Exception:
        return {}
    return found


def _text(value: Any) -> str | None:
    """Text up to the first NUL, without spaces around it."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return None
    text = " ".join(value.partition("\0")[0].split())
    return text.encode("utf-8", "replace").decode() or None


def _date(value: Any) -> str | None:
    text = _text(value)
    try:
        return None if text is None else str(datetime.strptime(text[:19], "%Y:%m:%d %H:%M:%S"))
    except ValueError:  # such as 0000:00:00 00:00:00, of a clock that was never set
        return None


def _whole(value: Any, least: int, most: int) -> int | None:
    return value if isinstance(value, int) and least <= value <= most else None


def _degrees(gps: Mapping[int, Any], tag: int, signs: str, most: int) -> float | None:
    """Degrees from degrees, minutes and seconds; negative for the second of ``signs``."""
    side = _text(gps.get(tag - 1))
    try:
        degrees, minutes, seconds = map(float, gps[tag])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    value = degrees + minutes / 60 + seconds / 3600
    if side is None or side.upper() not in tuple(signs) or not 0 <= value <= most:  # NaN is not
        return None
    return round(-value if side.upper() == signs[1] else value, 7)
