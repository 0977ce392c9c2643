"""Index a folder of images, then search it by one of them.

    python examples/photo_search.py [FOLDER [IMAGE [MONTAGE.png]]]

Without a folder, two hundred of scikit-learn's digits are written to a temporary one.  A collection
lasts: keep the file, and open it again with ``bt.store.open`` or ``bittern search``.  Needs the
extra ``store``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import bittern as bt
from bittern.features import FEATURES
from bittern.store.building import build_collection
from bittern.store.montage import draw_montage
from bittern.store.queries import search_by_images


def main() -> None:
    """Index, search, and show what was found."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else digits(Path(scratch, "digits"))
        place = str(Path(scratch, "images.bittern"))
        recipe = bt.store.Recipe(bt.hashing.ITQ(n_bits=64), FEATURES["gist"]())
        print(build_collection(place, folder, recipe, skip_broken=True))
        image = Path(sys.argv[2]) if len(sys.argv) > 2 else next(folder.rglob("*.png"))
        with bt.store.open(place, read_only=True) as photos:
            found = search_by_images(photos, [image], k=5)
        for id_, distance, known in zip(found.ids, found.values, found.metadata, strict=True):
            print(f"{id_:6}  {distance:3}  {known.get('label', '')}  {Path(known['path']).name}")
        if len(sys.argv) > 3:
            draw_montage(found, Path(sys.argv[3]))


def digits(folder: Path) -> Path:
    """Write images of digits, one sub-folder per digit."""
    some = bt.load("digits").take(np.arange(200))
    images = (15 * some.vectors[:]).astype(np.uint8).reshape(-1, 8, 8)
    for i, (image, label) in enumerate(zip(images, some.labels, strict=True)):
        path = folder / str(label) / f"{i:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).resize((32, 32)).save(path)
    return folder


if __name__ == "__main__":
    main()
