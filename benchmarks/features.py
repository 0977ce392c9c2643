"""Pictures a second of every feature of pictures, against decoding the JPEG.

    python benchmarks/features.py [--root DATA] [--write docs/results.md] [--only NAME …]

Pictures of 384 × 256 pixels out of Corel-1000, one thread, decoded by Pillow from memory.  Each
feature takes turns with decoding, and the best round of each counts, so that a slow moment of the
machine hits both; seconds are the processor's, since others may use the machine.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from results import Section, Target

from bittern.data.fetch import data_root
from bittern.features.base import PictureFeature
from bittern.features.colour import HSVFocus, HSVGlobal
from bittern.features.colour_structure import ColourStructure
from bittern.features.convolution import Convolution
from bittern.features.moments import RGBMoments
from bittern.features.thumbnail import Thumbnail
from bittern.features.tiles import Smoothness, Uniformity
from bittern.features.variance import Variance

HAND_MADE: list[type[PictureFeature]] = [
    HSVGlobal,
    HSVFocus,
    ColourStructure,
    RGBMoments,
    Thumbnail,
    Convolution,
    Variance,
    Smoothness,
    Uniformity,
]
LIMIT = 2.0  # times decoding, for the hand-made ones
N_PICTURES = 40
ROUNDS = 12


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (else BITTERN_DATA)")
    parser.add_argument("--write", type=Path, help="also put the table into this Markdown file")
    parser.add_argument("--only", nargs="*", help="names of features")
    options = parser.parse_args()
    files = jpegs(data_root(options.root) / "corel1000" / "corel1000_jpg.zip")
    section = features(files, options.only)
    print(section.text())
    if options.write:
        Section.write(options.write, "features", "python benchmarks/features.py", [section])
    sys.exit(0 if section.holds else 1)


def jpegs(path: Path) -> list[bytes]:
    """Files of pictures from all over the collection."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
        return [archive.read(name) for name in names[:: len(names) // N_PICTURES]]


def features(files: list[bytes], only: list[str] | None) -> Section:
    """A row for each feature, as it is by default."""
    section = Section(
        f"Features: {len(files)} JPEGs of 384 × 256, one thread",
        ("feature", "dimensions", "ms a picture", "pictures/s", "× decoding"),
    )
    pictures = [decode(file) for file in files]
    for kind in HAND_MADE:
        if only and kind.name not in only:
            continue
        feature = kind()
        n_columns = feature.transform(pictures[:1]).shape[1]  # compiles, too
        bare, own = fastest(
            lambda: [decode(file) for file in files],
            lambda feature=feature: feature.transform(pictures),
        )
        ratio = Target(own / bare, at_most=LIMIT)
        ms, rate = own / len(files) * 1e3, f"{len(files) / own:,.0f}"
        section.row(kind.name, f"{n_columns:,}", ms, rate, ratio)
    bare = fastest(lambda: [decode(file) for file in files])[0]
    section.row("decoding alone", "", bare / len(files) * 1e3, f"{len(files) / bare:,.0f}", 1.0)
    return section


def decode(file: bytes) -> np.ndarray:
    """A picture as features get it."""
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


def fastest(*calls: Callable[[], object]) -> list[float]:
    """Seconds of the processor in the best round of each call; calls take turns."""
    best = [np.inf] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            began = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - began)
    return best


if __name__ == "__main__":
    main()
