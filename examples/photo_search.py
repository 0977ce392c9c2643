"""Index a folder of images, then search it by one of them.

    python examples/photo_search.py [FOLDER [IMAGE [MONTAGE.png]]]

Without a folder, the script writes two hundred of scikit-learn's digits to a temporary one.  Keep
the collection's file to open it again with ``bt.store.open`` or ``bittern search``.  Needs the
extra ``store``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import bittern as bt
from bittern.cli import collecting, searching


def main() -> None:
    """Index, search, and show the results."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else digits(Path(scratch, "digits"))
        place = str(Path(scratch, "images.bittern"))
        plan = collecting.Plan(source=folder, features="gist", hasher="itq", n_bits=64, skips=True)
        print(collecting.create(place, plan))
        image = Path(sys.argv[2]) if len(sys.argv) > 2 else next(folder.rglob("*.png"))
        answer = searching.ask(place, searching.Question(images=(image,), k=5))
        for id_, distance, known in zip(answer.ids, answer.values, answer.metadata, strict=True):
            print(f"{id_:6}  {distance:3}  {known.get('label', '')}  {Path(known['path']).name}")
        if len(sys.argv) > 3:
            searching.draw_montage(answer, Path(sys.argv[3]))


def digits(folder: Path) -> Path:
    """Write images of digits, a sub-folder for each digit."""
    some = bt.load("digits").take(np.arange(200))
    images = (15 * some.vectors[:]).astype(np.uint8).reshape(-1, 8, 8)
    for i, (image, label) in enumerate(zip(images, some.labels, strict=True)):
        path = folder / str(label) / f"{i:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).resize((32, 32)).save(path)
    return folder


if __name__ == "__main__":
    main()
