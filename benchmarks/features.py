"""Images per second of every image feature, against decoding the JPEG.

    python benchmarks/features.py [--root DATA] [--write docs/results/speed.md] [--only NAME …]

Images of 384 × 256 pixels out of Corel-1000, one thread, decoded by Pillow from memory.  Each
feature takes turns with decoding, and the best round of each counts, so that a slow moment of the
machine hits both; seconds are the processor's, since others may use the machine.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from results import Section, Target
from timing import fastest

from bittern.data.catalogue import data_root
from bittern.features import FEATURES, NINE, Deep, Gist, VisualWords, extract
from bittern.features.gist import MARGIN, _filters, _grey_square, _prefiltered, _stretched

LIMIT = 2.0  # times decoding, for hand-crafted features
N_IMAGES = 40
ROUNDS = 12


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--write", type=Path, help="also write the tables into this Markdown file")
    parser.add_argument("--only", nargs="*", help="names of features")
    options = parser.parse_args()
    archive = data_root(options.root) / "corel1000" / "corel1000_jpg.zip"
    files = jpegs(archive)
    sections = [features(files, options.only)]
    if not options.only:
        sections += [peers(files), folders(archive)]
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        Section.write(options.write, "features", "python benchmarks/features.py", sections)
    sys.exit(0 if all(section.holds for section in sections) else 1)


def jpegs(path: Path) -> list[bytes]:
    """Images from the whole collection."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
        return [archive.read(name) for name in names[:: len(names) // N_IMAGES]]


def features(files: list[bytes], only: list[str] | None) -> Section:
    """A row for each feature, with default settings."""
    section = Section(
        f"Features: {len(files)} JPEGs of 384 × 256, one thread",
        ("feature", "dimensions", "ms per image", "images/s", "× decoding"),
    )
    images = [decode(file) for file in files]
    for name in NINE:
        if only and name not in only:
            continue
        feature = FEATURES[name]()
        n_columns = feature.transform(images[:1]).shape[1]  # compiles, too
        bare, own = fastest(
            lambda: [decode(file) for file in files],
            lambda feature=feature: feature.transform(images),
            rounds=ROUNDS,
            clock=time.process_time,
        )
        ratio = Target(own / bare, at_most=LIMIT)
        ms, rate = own / len(files) * 1e3, f"{len(files) / own:,.0f}"
        section.row(name, f"{n_columns:,}", ms, rate, ratio)
    (bare,) = fastest(
        lambda: [decode(file) for file in files], rounds=ROUNDS, clock=time.process_time
    )
    section.row("decoding alone", "", bare / len(files) * 1e3, f"{len(files) / bare:,.0f}", 1.0)
    return section


def peers(files: list[bytes]) -> Section:
    """GIST, visual words and deep features against other libraries doing the main part."""
    import cv2

    cv2.setNumThreads(1)
    images = [decode(file) for file in files]
    gist, words = Gist(), VisualWords(200).fit(images)
    deep = Deep(n_threads=1).fit(images)
    model = deep._loaded()
    batches = [deep._input(model, images[i : i + 8]) for i in range(0, len(images), 8)]
    greys = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images]
    rows = (
        ("gist", gist, "every filter by SciPy's whole inverse transform", whole_gists(images), 1),
        (
            "visual-words",
            words,
            "OpenCV's SIFT alone",
            lambda: [cv2.SIFT_create().detectAndCompute(grey, None) for grey in greys],
            1.3,
        ),
        ("deep", deep, "ONNX Runtime alone", lambda: [model(batch) for batch in batches], 1.4),
    )
    section = Section(
        f"Features and their peers: {len(files)} decoded images of 384 × 256, one thread",
        ("feature", "ms per image", "peer", "peer, ms", "× the peer"),
    )
    for name, feature, peer, call, limit in rows:
        theirs, own = fastest(
            call,
            lambda feature=feature: feature.transform(images),
            rounds=4,
            clock=time.process_time,
        )
        ms = [seconds / len(files) * 1e3 for seconds in (own, theirs)]
        section.row(name, ms[0], peer, ms[1], Target(own / theirs, at_most=limit))
    section.note(
        "No public GIST package installs here (those on PyPI need Python 2 or FFTW's headers), so "
        "its peer is the plain computation in single precision; the last two peers do only "
        "part of the work."
    )
    return section


def folders(archive: Path) -> Section:
    """``extract`` over a folder, with processes, decoding and writing."""
    section = Section(
        "extract: a folder of 1,000 JPEGs of 384 × 256, two processes, the whole command",
        ("features", "s", "images/s"),
    )
    sets = [NINE, ("gist",), ("visual-words",), ("deep",)]
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(Path(scratch, "images"))
        for names in sets:
            began = time.perf_counter()
            found = extract(Path(scratch, "images"), names, Path(scratch, "out.npz"), jobs=2)
            seconds = time.perf_counter() - began
            shown = names[0] if len(names) == 1 else "the nine together"
            section.row(shown, seconds, f"{len(found) / seconds:,.0f}")
    return section


def whole_gists(images: list[np.ndarray]) -> Callable[[], object]:
    """GIST of images by inverse transforms of all frequencies."""
    from scipy.fft import fft2, ifft2

    side = 128
    n = side + 2 * MARGIN
    gains = np.zeros((32, n, n), np.float32)
    for scale, (band, some) in enumerate(_filters(n, 4, 8)):
        gains[8 * scale : 8 * scale + 8, band[:, None], band] = some
    inside = slice(MARGIN, MARGIN + side)

    def one(image: np.ndarray) -> np.ndarray:
        even = _prefiltered(_stretched(_grey_square(image, side)))
        spectrum = fft2(np.pad(even, MARGIN, mode="symmetric"))
        strengths = [np.abs(ifft2(spectrum * gain))[inside, inside] for gain in gains]
        return np.stack(strengths).reshape(32, 4, side // 4, 4, side // 4).mean(axis=(2, 4))

    return lambda: [one(image) for image in images]


def decode(file: bytes) -> np.ndarray:
    """An image as features receive it."""
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


if __name__ == "__main__":
    main()
